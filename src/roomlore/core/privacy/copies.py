"""What one text takes over from another, word for word, however it frames it."""

import re
import unicodedata
from collections.abc import Iterable, Iterator

from roomlore.core.privacy.traces import Span, cut_out, weight

_RUN, _WIDE_RUN, _WIDE_LEAST = 24, 8, 6
"""A run of so many characters that two texts share is a copy; of so many where nearly all of them are wide."""
_LINE_LEAST = 8
"""A line that weighs so much is a copy wherever it stands; a shorter one where it is quoted."""
_INDENT = re.compile(r"^[>＞\s]*+", re.MULTILINE)


def without_copies(text: str, said: Iterable[str]) -> str:
    """The text with a mark in the place of every run, line or quoted line that it shares with one of these texts."""
    spans: list[Span] = []
    for one in said:
        spans += [*_shared(text, one), *_repeated(text, one)]
    return cut_out(text, spans)


def _shared(text: str, said: str) -> list[Span]:
    spans: list[Span] = []
    for size in (_WIDE_RUN, _RUN):
        known = {said[at : at + size] for at in range(len(said) - size + 1)}
        if size == _WIDE_RUN:
            known = {run for run in known if _is_wide(run)}
        if known:
            spans += [(at, at + size) for at in range(len(text) - size + 1) if text[at : at + size] in known]
    return spans


def _repeated(text: str, said: str) -> list[Span]:
    lines = {line.strip() for line in said.splitlines()} - {""}
    spans = [span for span in _quoted(text) if text[slice(*span)] in lines]
    for line in lines:
        if weight(line) >= _LINE_LEAST:
            spans += _places(text, line)
    return spans


def _quoted(text: str) -> Iterator[Span]:
    """Yield what stands on each line behind signs of quoting, those of lines above it too."""
    for indent in _INDENT.finditer(text):
        if ">" in indent[0] or "＞" in indent[0]:
            at = indent.end()
            line_end = text.find("\n", at)
            yield at, at + len(text[at : line_end if line_end >= 0 else None].rstrip())


def _places(text: str, line: str) -> Iterator[Span]:
    at = text.find(line)
    while at >= 0:
        yield at, at + len(line)
        at = text.find(line, at + len(line))


def _is_wide(run: str) -> bool:
    return sum(unicodedata.east_asian_width(sign) in "WF" for sign in run) >= _WIDE_LEAST
