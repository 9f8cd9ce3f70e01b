"""The clock of a room, by which the link model measures time.

Where messages come seldom it goes slower: a room of ten messages a day then reads like one of a message a minute. And a
long gap between two messages counts by its logarithm: a silence of a day as twice one of an hour.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.float64]

BUSY_SECONDS = 60.0
"""The usual gap between messages up to which the clock goes as fast as time."""
SILENCE_SECONDS = 420.0
"""The gap on the clock from which on only its logarithm counts."""
_PARTS = 2.0**30
"""What the clock counts for a gap is a multiple of so small a part of a second: then sums are the same in any order, as
they are of times, which come in parts of 2**-22 at the finest."""
MOST_GAPS, DOUBT = 30, 8
"""How many gaps tell the pace of a room, and how many short ones are added to them: a few long gaps do not make a slow
room."""


def pace_of(at: Times) -> float:
    """Return how fast the clock goes, in (0, 1], after messages at these times: at most `MOST_GAPS` + 1, in seconds."""
    if len(at) <= DOUBT + 1:
        return 1.0
    times = _in_order(at)
    gaps = times[1:] - times[:-1]
    gaps.sort()
    return BUSY_SECONDS / max(BUSY_SECONDS, float(gaps[(len(gaps) - DOUBT) // 2]))


def on_clock(gap: float, pace: float) -> float:
    """Return how many seconds the clock counts for a gap in seconds, 0 for a negative one."""
    if pace == 1.0 and gap <= SILENCE_SECONDS:
        return max(0.0, gap)
    gap = max(0.0, gap * pace)
    counted = gap if gap <= SILENCE_SECONDS else SILENCE_SECONDS * (1 + math.log(gap / SILENCE_SECONDS))
    return math.floor(counted * _PARTS) / _PARTS


def _all_on_clock(gaps: Times, pace: float) -> Times:
    """Return the same of many gaps, none of them negative."""
    if pace == 1.0 and (not len(gaps) or gaps[gaps.argmax()] <= SILENCE_SECONDS):
        return gaps
    gaps = gaps * pace
    long = (gaps > SILENCE_SECONDS).nonzero()[0]
    gaps[long] = SILENCE_SECONDS * (1 + np.log(gaps[long] / SILENCE_SECONDS))
    return np.floor(gaps * _PARTS) / _PARTS


def _in_order(at: Times) -> Times:
    times = at.copy()
    times.sort()
    return times


class RoomClock(NamedTuple):
    """The clock as a message sees it. `times`: of the messages before it, ascending; `counted`: what the clock shows at
    the first, and at each; `now`: and at the message itself. Gaps are those between any two messages, in whatever order
    they came."""

    times: Times
    counted: Times
    now: float

    @classmethod
    def at(cls, now: float, times: Times, pace: float) -> "RoomClock":
        """`times`: of the messages before it, at least one, in any order."""
        times = _in_order(times)
        counted = np.zeros(1 + len(times))
        np.add.accumulate(_all_on_clock(times[1:] - times[:-1], pace), out=counted[2:])
        heard = max(int(times.searchsorted(now, "right")), 1)
        return cls(times, counted, float(counted[heard]) + on_clock(now - float(times[heard - 1]), pace))

    def shown(self, at: Times) -> Times:
        """Return what the clock shows at each of these times, which are those of messages. What lies before the first
        message counts as it does."""
        return self.counted.take(self.times.searchsorted(at, "right"))

    def since(self, at: Times) -> Times:
        """Return the seconds on the clock since each of these times."""
        return self.now - self.shown(at)
