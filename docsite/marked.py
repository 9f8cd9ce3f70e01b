"""Generated regions of a page, and the prose around them that people write.

A region begins with `<!-- made: NAME -->` and ends with `<!-- end -->`; readers do not see either.
"""

import re
from collections.abc import Mapping, Sequence
from html import escape

_REGION = re.compile(r"(?m)^<!-- made: (?P<name>[^>]+?) -->\n(?P<body>.*?)^<!-- end -->$", re.DOTALL)
_BARRED = re.compile(r"`([^`]*\|[^`]*)`")


def filled(page: str, made: Mapping[str, str]) -> str:
    """Return the page with every region filled. Raises `KeyError` for regions that are missing or unknown."""
    there = [found["name"] for found in _REGION.finditer(page)]
    if sorted(there) != sorted(made):
        raise KeyError(f"regions that the code makes and the page lacks, or the other way: {set(there) ^ set(made)}")
    return _REGION.sub(lambda found: f"<!-- made: {found['name']} -->\n{made[found['name']]}<!-- end -->", page)


def table(*columns: str, rows: Sequence[tuple[str, ...]]) -> str:
    """Return a table in Markdown; a bar inside a cell does not end it."""

    def line(cells: tuple[str, ...]) -> str:
        return f"| {' | '.join(map(_cell, cells))} |\n"

    return "".join(("\n", line(columns), "|---" * len(columns), "|\n", *map(line, rows), "\n"))


def _cell(text: str) -> str:
    """Return a cell. Bars become entities, which Markdown reads everywhere but in code; code with a bar is written as
    HTML."""
    marked = _BARRED.sub(lambda code: f"<code>{escape(code[1], quote=False)}</code>", text)
    return marked.replace("|", "&#124;")


def in_words(names: Sequence[object]) -> str:
    """Return the names as code, with "or" before the last one."""
    marked = [f"`{name}`" for name in names]
    return " or ".join(filter(None, (", ".join(marked[:-1]), marked[-1])))


def escaped(text: str) -> str:
    """Return text from the code on one line: an angle bracket outside code begins no tag."""
    parts = " ".join(text.split()).split("`")
    return "`".join(part if place % 2 else part.replace("<", "&lt;") for place, part in enumerate(parts))
