"""Judge whether a message says something that holds and is worth remembering: by what it does, the values that it
gives, and what others say to it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from roomlore.core.evolution.offline.cues import Purpose, Sense, manners_of
from roomlore.core.evolution.offline.nets import net
from roomlore.core.safety import SAFETY, importance
from roomlore.core.text import thanks, words
from roomlore.core.values import CLOCK, DAY, Value

PURPOSES: Sequence[Purpose] = get_args(Purpose)
MANNERS = ("announces", "jokes", "supposes", "hearsay", "past", "takes note", "has a figure")
EVIDENCE = (
    "constant",
    "score of the rules",
    "agreed",
    "agreed by several",
    "noted",
    "asks",
    "points",
    "names a day or a time",
    "answers a question",
    "very short",
    "length",
    *PURPOSES,
    *MANNERS,
    "a day",
    "a time of day",
    "an amount",
    "several values",
    "safety",
    "exclaims",
    "thanks",
)
LEAST = 0.32
"""The probability from which a message is remembered."""
_SHORT, _LONG = 12, 30
_SUPPOSED = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Reception:
    """What others say. `agreed`, `noted`: how many agreed with a message, or took note of it. `answers`: it follows a
    question."""

    agreed: int
    noted: int
    answers: bool


def evidence(folded: str, sense: Sense, values: Sequence[Value], reception: Reception) -> tuple[float, ...]:
    """Return the signs that a folded message holds, in the order of `EVIDENCE`."""
    kinds = {value.kind for value in values}
    return (
        1.0,
        sense.score,
        float(reception.agreed > 0),
        float(reception.agreed > 1),
        float(reception.noted > 0),
        float(sense.asked),
        float(sense.points),
        float(sense.timed),
        float(reception.answers),
        float(len(folded) < _SHORT),
        min(len(words(folded)), _LONG) / _LONG,
        *(float(purpose in sense.purposes) for purpose in PURPOSES),
        *map(float, manners_of(folded)),
        float(DAY in kinds),
        float(CLOCK in kinds),
        float(any(value.is_amount for value in values)),
        float(len(values) > 1),
        float(importance(folded) >= SAFETY),
        float("!" in folded),
        float(thanks(folded)),
    )


def likelihood(signs: Sequence[float]) -> float:
    """Return how likely it is that a message is worth remembering, in [0, 1): 0 for a joke, less for what is only
    supposed, or told of others, and nobody agreed with."""
    named = ("jokes", "supposes", "hearsay", "agreed")
    jokes, supposes, hearsay, agreed = (signs[EVIDENCE.index(name)] for name in named)
    likely = 1 / (1 + math.exp(-float(net("holding").scores(signs)[0])))
    return 0.0 if jokes else likely * _SUPPOSED if (supposes or hearsay) and not agreed else likely
