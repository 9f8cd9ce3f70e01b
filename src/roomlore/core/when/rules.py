"""What the readers of both languages share: the question, what was found in it, and rules that read from a place on."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from roomlore.core.when.periods import Period

LOOK_BACK = 48


@dataclass(frozen=True, slots=True)
class Asked:
    """A question: folded character by character, as it was written, and what the clock on the asker's wall shows."""

    text: str
    written: str
    now: datetime


@dataclass(frozen=True, slots=True)
class Found:
    """A period and the words, text[at:to], that name it."""

    at: int
    to: int
    period: Period


Build = Callable[[re.Match[str], Asked], Period | None]
Rule = tuple[re.Pattern[str], Build]


def built(build: Build, match: re.Match[str], asked: Asked) -> Period | None:
    """None also for a date that does not exist."""
    try:
        return build(match, asked)
    except (ValueError, OverflowError):
        return None


def read(rules: Sequence[Rule], asked: Asked, position: int) -> Found | None:
    """The first rule that fits at a position."""
    for pattern, build in rules:
        match = pattern.match(asked.text, position)
        if match and (period := built(build, match, asked)):
            return Found(match.start(), match.end(), period)
    return None


def preceded(pattern: re.Pattern[str], asked: Asked, position: int) -> re.Match[str] | None:
    """What stands right before a position: the pattern ends with $ and is at most 48 characters long."""
    return pattern.search(asked.text, max(0, position - LOOK_BACK), position)
