"""What a process's counters said lately, kept within bounds and read as rates, shares and quantiles."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

Growth = Sequence[tuple[float, ...]]
"""How much each number of one name grew from a reading to the next; one entry less than there are readings."""


@dataclass(frozen=True, slots=True)
class Reading:
    """`at`: aware. `counters`: numbers that only grow, by name; of one name always as many."""

    at: datetime
    counters: Mapping[str, tuple[float, ...]]


def kept(readings: Sequence[Reading], new: Reading, *, within: timedelta, most: int) -> tuple[Reading, ...]:
    """With a new reading at the end, of the time up to it, the newest `most` (at least 1). Those of a time that is
    still to come go: the clock was set back."""
    near = [one for one in readings if new.at - within <= one.at < new.at]
    return (*near, new)[-most:]


def thinned(readings: Sequence[Reading], most: int) -> tuple[Reading, ...]:
    """At most so many (at least 2): the first, the last, and some evenly between."""
    if len(readings) <= most:
        return tuple(readings)
    last = len(readings) - 1
    return tuple(readings[round(step * last / (most - 1))] for step in range(most))


def growth(readings: Sequence[Reading], name: str) -> list[tuple[float, ...]]:
    return [
        tuple(max(0.0, now - before) for before, now in zip(one.counters[name], other.counters[name], strict=True))
        for one, other in pairwise(readings)
    ]


def per_minute(readings: Sequence[Reading], grown: Growth) -> list[float]:
    """`grown`: of these readings, one number each."""
    minutes = [(other.at - one.at) / timedelta(minutes=1) for one, other in pairwise(readings)]
    return [amount / length for (amount,), length in zip(grown, minutes, strict=True)]


def share(part: float, whole: float) -> float | None:
    """None where there is nothing to share."""
    return part / whole if whole else None


def quantile(rank: float, bounds: Sequence[float], counts: Sequence[float]) -> float | None:
    """The value that a share `rank`, in [0, 1], of what was observed does not exceed, guessed within its bucket; None
    where nothing was. `bounds`: upper bounds of buckets, growing; `counts`: how much lies at or below each, and last
    how much there is in all. What lies above all bounds counts as the last one."""
    if not counts[-1]:
        return None
    wanted, lower, below = rank * counts[-1], 0.0, 0.0
    for bound, count in zip(bounds, counts, strict=False):
        if count >= wanted and count > below:
            return lower + (bound - lower) * max(0.0, wanted - below) / (count - below)
        lower, below = bound, count
    return bounds[-1]
