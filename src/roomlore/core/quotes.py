"""A quotation at the beginning of a message, apart from the sender's own words."""

import re
from dataclasses import dataclass

from roomlore.core.text import READ_LIMIT

_QUOTED_LINES = r"(?:(?:>|&gt;)(?:[ \t]|(?=[^\W_]|[\"“「@]))[^\n]*(?:\n[ \t]*|\Z))+"
_LINES = re.compile(rf"\s*{_QUOTED_LINES}")
# The card WeChat copies: 「name: text」, a line of dashes, the answer.
_CARD = re.compile(r"\s*「(?:([^:：」\n]{1,64})[:：])?([^」]*)」\s*(?:[-—][ ]?){3,}\s*")
_LINES_INSIDE = re.compile(rf"^[ \t]*{_QUOTED_LINES}", re.MULTILINE)
_MARK = re.compile(r"^\s*(?:>|&gt;)[ \t]?", re.MULTILINE)
_AUTHOR = re.compile(r"\s*@?([^:：\n]{1,64})[:：]\s*(?:\n|(?=\S))")


@dataclass(frozen=True, slots=True)
class Quotation:
    """What is quoted, and whom the quotation itself names as its author ('' where it names nobody)."""

    author: str
    text: str


def split_quote(text: str) -> tuple[Quotation | None, str]:
    """The quotation a text begins with, if any, and the sender's own words after it.

    The author of quoted lines is not read here: `> name: ...` may as well be a line of the quoted text.
    """
    start = text[:READ_LIMIT].lstrip()[:1]
    if start == "「":
        card = _CARD.match(text, 0, READ_LIMIT)
        return (Quotation(card[1] or "", card[2]), text[card.end() :]) if card else (None, text)
    if start not in (">", "&"):
        return None, text
    lines = _LINES.match(text, 0, READ_LIMIT)
    return (_quotation(lines[0]), text[lines.end() :]) if lines else (None, text)


def split_quotes(text: str) -> list[Quotation | str]:
    """The text from its beginning to its end: what it quotes, there or in lines further down, and the sender's own
    words between."""
    first, rest = split_quote(text)
    parts: list[Quotation | str] = [] if first is None else [first]
    at = 0
    for lines in _LINES_INSIDE.finditer(rest, 0, READ_LIMIT):
        parts += [rest[at : lines.start()], _quotation(lines[0])]
        at = lines.end()
    return [*parts, rest[at:]]


def _quotation(lines: str) -> Quotation:
    return Quotation("", _MARK.sub("", lines).strip())


def named_author(quoted: str) -> tuple[str, str]:
    """Whom quoted lines may name at their beginning ('anna: ...'), and the rest; ('', all of it) where nobody."""
    found = _AUTHOR.match(quoted)
    return (found[1].strip(), quoted[found.end() :]) if found else ("", quoted)
