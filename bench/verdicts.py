"""The verdict on what roomlore made of a case."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import roomlore

Verdict = Literal["right", "partly", "wrong"]
Case = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict. `group`: the row it counts in; `why`: what is missing or too much, '' if it is right."""

    group: str
    verdict: Verdict
    why: str = ""


Judge = Callable[[roomlore.Lore, Case], Awaitable[Sequence[Judged]]]


def has(text: str, words: Sequence[str | list[str]]) -> bool:
    """Return True if a text has all words; of a list of words, one."""
    folded = text.casefold()
    return all(
        any(alternative.casefold() in folded for alternative in ([word] if isinstance(word, str) else word))
        for word in words
    )
