"""Compare a block of text with printed output. Ids, times and durations may be others."""

import re

_TIME = r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z?)?"
_WILD = {
    r"(?:\b[0-9a-f]{4,})?(?:…|\.\.\.)": ".*",
    rf"\b{_TIME}": _TIME,
    r"\b(?=[0-9a-f]*\d)(?:[0-9a-f]{8}|[0-9a-f]{12}|[0-9a-f]{32})\b": "[0-9a-f]{8,32}",
    r"\b\d+(?:\.\d+)? ms\b": r"\d+(?:\.\d+)? ms",
}
_ANY = re.compile("|".join(f"({pattern})" for pattern in _WILD))


def pattern_of(line: str) -> str:
    """Return the pattern of a printed line; spaces count as one, since columns are as wide as their content."""
    found, at = "", 0
    for wild in _ANY.finditer(line):
        found += _literal(line[at : wild.start()]) + list(_WILD.values())[wild.lastindex - 1]
        at = wild.end()
    return rf"\s*{found}{_literal(line[at:])}\s*"


def check_printed(shown: str, printed: str, place: str) -> None:
    """The shown lines, empty ones apart, must be among the printed ones, side by side and in their order.

    A line of `…` or `...` alone stands for any number of lines. Comments of an event stream, which come while a model
    takes long, are left out, as a client does.
    """
    wanted = [line.strip() for line in shown.splitlines() if line.strip()]
    lines = [line for line in printed.splitlines() if line.strip() and not line.startswith(": ")]
    assert wanted, f"{place} shows nothing"
    found = any(_matches(wanted, lines[start:]) for start in range(len(lines) + 1))
    assert found, f"{place} shows\n{shown}\nbut this was printed:\n{printed}"


def _matches(wanted: list[str], lines: list[str]) -> bool:
    if not wanted:
        return True
    if wanted[0] in ("…", "..."):
        return any(_matches(wanted[1:], lines[skipped:]) for skipped in range(len(lines) + 1))
    return bool(lines) and bool(re.fullmatch(pattern_of(wanted[0]), lines[0])) and _matches(wanted[1:], lines[1:])


def _literal(text: str) -> str:
    return re.sub(r"(?:\\?\s)+", r"\\s+", re.escape(text))
