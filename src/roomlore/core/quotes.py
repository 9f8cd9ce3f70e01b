"""A quotation at the beginning of a message, apart from the sender's own words."""

import re
from dataclasses import dataclass

from roomlore.core.text import READ_LIMIT

_LINES = re.compile(r"\s*(?:(?:>|&gt;)(?:[ \t]|(?=[^\W_]|[\"“「@]))[^\n]*(?:\n[ \t]*|$))+")
# The card WeChat copies: 「name: text」, a line of dashes, the answer.
_CARD = re.compile(r"\s*「(?:([^:：」\n]{1,64})[:：])?([^」]*)」\s*(?:[-—][ ]?){3,}\s*")
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
    return (Quotation("", _MARK.sub("", lines[0]).strip()), text[lines.end() :]) if lines else (None, text)


def named_author(quoted: str) -> tuple[str, str]:
    """Whom quoted lines may name at their beginning ('anna: ...'), and the rest; ('', all of it) where nobody."""
    found = _AUTHOR.match(quoted)
    return (found[1].strip(), quoted[found.end() :]) if found else ("", quoted)
