"""Readings of growing counters: which are kept, how much they grew between two of them, and quantiles of histograms."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

import numpy as np

Growth = Sequence[tuple[float, ...]]
"""The growth of each number of one counter between readings; one entry fewer than there are readings."""


@dataclass(frozen=True, slots=True)
class CounterReading:
    """A reading of counters. `at`: aware. `counters`: growing numbers by name; always the same count for a name."""

    at: datetime
    counters: Mapping[str, tuple[float, ...]]


def kept(
    readings: Sequence[CounterReading], new: CounterReading, *, within: timedelta, most: int
) -> tuple[CounterReading, ...]:
    """Return the readings with a new one at the end: those within this time, the newest `most` (at least 1). Readings
    from the future are dropped, since the clock was set back."""
    near = [one for one in readings if new.at - within <= one.at < new.at]
    return (*near, new)[-most:]


def thinned(readings: Sequence[CounterReading], most: int) -> tuple[CounterReading, ...]:
    """Return at most `most` readings (at least 2): the first, the last, and some evenly between."""
    if len(readings) <= most:
        return tuple(readings)
    last = len(readings) - 1
    return tuple(readings[round(step * last / (most - 1))] for step in range(most))


def growth(readings: Sequence[CounterReading], name: str) -> list[tuple[float, ...]]:
    return [
        tuple(max(0.0, now - before) for before, now in zip(one.counters[name], other.counters[name], strict=True))
        for one, other in pairwise(readings)
    ]


def per_minute(readings: Sequence[CounterReading], grown: Growth) -> list[float]:
    """Return rates per minute. `grown`: the growth between these readings, one number each."""
    minutes = [(other.at - one.at) / timedelta(minutes=1) for one, other in pairwise(readings)]
    return [amount / length for (amount,), length in zip(grown, minutes, strict=True)]


def share(part: float, whole: float) -> float | None:
    """Return the share; None if the whole is 0."""
    return part / whole if whole else None


def quantile(rank: float, bounds: Sequence[float], counts: Sequence[float]) -> float | None:
    """Return the quantile at `rank`, in [0, 1], interpolated within its bucket; None without observations.

    `bounds`: ascending upper bounds of buckets; `counts`: cumulative counts, and last the total. A value above all
    bounds counts as the last bound.
    """
    if not counts[-1]:
        return None
    # Just below the rank, so that empty buckets after it add nothing.
    wanted = math.nextafter(rank * counts[-1], 0.0)
    return float(np.interp(wanted, (0.0, *counts[:-1]), (0.0, *bounds)))
