"""What keeps an answer from doing harm: what may be said, what says the same, and how much may go."""

import math
import re
import unicodedata
from functools import lru_cache

from roomlore.core.errors import InvalidInput
from roomlore.core.evolution.models import Rules
from roomlore.core.memory.intake import is_longer
from roomlore.core.text import fold

_PROSE = re.compile(r"(?<![a-z0-9])[,.!?;:'\"()\[\]]|[,.!?;:'\"()\[\]](?![a-z0-9])|[、。“”‘’《》〈〉「」『』【】…—]")
"""Punctuation that changes nothing; inside 1.5 and node.js it does."""
_LOOSE_SPACE = re.compile(r"(?<![a-z0-9]) | (?![a-z0-9])")
_DIRECTIONS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_WHITE = frozenset("\t\n\r")
_ROUNDING = 1e-9


@lru_cache(maxsize=1 << 10)
def said(statement: str) -> str:
    """The form in which statements are compared: folded, without white space and punctuation that change nothing."""
    return _LOOSE_SPACE.sub("", " ".join(_PROSE.sub(" ", fold(statement)).split()))


def clean_statement(given: str, rules: Rules) -> str:
    """The statement on one line. Raises `InvalidInput` with the reason why it cannot be kept."""
    if is_longer(given, rules.statement_chars):
        raise InvalidInput(f"The statement is longer than {rules.statement_chars} characters.")
    if not given.isprintable() and any(_is_control(character) for character in given):
        raise InvalidInput("The statement has control characters in it.")
    if not said(given):
        raise InvalidInput("The statement is empty.")
    return " ".join(given.split())


def clean_line(given: str) -> str:
    """A text without control characters, on one line."""
    if given.isprintable():
        return " ".join(given.split())
    return " ".join("".join(" " if _is_control(character) else character for character in given).split())


def most_deleted(active: int, rules: Rules) -> int:
    """How many of the active memories an evolution may delete, at least one."""
    return max(1, math.floor(rules.delete_share * active + _ROUNDING))


def _is_control(character: str) -> bool:
    return character not in _WHITE and (character in _DIRECTIONS or unicodedata.category(character) in {"Cc", "Cs"})
