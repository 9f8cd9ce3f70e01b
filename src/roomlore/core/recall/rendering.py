"""The block of facts as a model reads it: one line a fact, which can be nothing but a line of the block."""

import re
from collections.abc import Sequence

from roomlore.core.text import truncate

HEAD, TAIL = "<memory>\n", "</memory>"
_OPENING = re.compile(r"[<＜﹤][\W_]*(memory)?", re.IGNORECASE)
_OPENERS = str.maketrans("<＜﹤", "‹‹‹")
_SCOPE_CHARACTERS = 64
_UNSEEN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2028\u2029\u2060-\u2069\ufeff\ud800-\udfff]+"
)


def line_of(statement: str, scope: str = "") -> str:
    """A fact's line, which neither opens nor closes a block. `scope`: named where the block may have facts of several
    scopes, '' where it has not."""
    whose = f"[{truncate(_flat(scope), _SCOPE_CHARACTERS).replace(']', ')')}] " if scope else ""
    return f"- {_OPENING.sub(_inert, whose + _flat(statement))}\n"


def block_of(lines: Sequence[str]) -> str:
    """The block, '' for no line."""
    return f"{HEAD}{''.join(lines)}{TAIL}" if lines else ""


def _inert(opening: re.Match[str]) -> str:
    """No tag where the word of the block's tags follows; each sign of a text is looked at once."""
    return opening[0].translate(_OPENERS) if opening[1] else opening[0]


def _flat(text: str) -> str:
    """One line, without what cannot be seen or sent."""
    return " ".join(_UNSEEN.sub(" ", text).split())
