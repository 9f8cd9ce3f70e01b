"""The clock of a room, by which the link model measures time.

It goes slower where messages come seldom, and a long silence moves it little: a day of silence parts two messages
hardly more than an hour does, and a room of ten messages a day reads like one of ten messages an hour.
"""

import math

import numpy as np
import numpy.typing as npt

BUSY_SECONDS = 60.0
"""The median gap between messages up to which the clock goes as fast as time."""
SILENCE_SECONDS = 420.0
"""The gap on the clock from which on only its logarithm counts."""
MIN_GAPS, MOST_GAPS = 3, 30
_TICKS = 1024.0
"""Ticks a second. Times are whole ticks, so that sums of them are exact: a window that is rebuilt has the same."""


def rate(heard: npt.NDArray[np.float64]) -> float:
    """Return how fast the clock goes, in (0, 1], after messages at these times: at most `MOST_GAPS` + 1, in seconds."""
    if len(heard) <= MIN_GAPS:
        return 1.0
    gaps = np.sort(heard[1:] - heard[:-1])
    return BUSY_SECONDS / max(BUSY_SECONDS, float(gaps[len(gaps) // 2]))


def elapsed(seconds: float, rate: float) -> float:
    """Return how many seconds pass on the clock in these seconds, which are negative for a message that came late."""
    gap = abs(seconds) * rate
    if gap > SILENCE_SECONDS:
        gap = SILENCE_SECONDS * (1 + math.log(gap / SILENCE_SECONDS))
    return math.copysign(round(gap * _TICKS) / _TICKS, seconds)
