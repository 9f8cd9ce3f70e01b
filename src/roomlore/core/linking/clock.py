"""The clock of a room, by which the link model measures time.

Where messages come seldom it goes slower: a room of ten messages a day then reads like one of a message a minute. And a
long gap between two messages counts by its logarithm: a silence of a day as twice one of an hour.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.float64]

BUSY_SECONDS = 60.0
"""The usual gap between messages up to which the clock goes as fast as time."""
SILENCE_SECONDS = 420.0
"""The gap on the clock from which on only its logarithm counts."""
MOST_GAPS, DOUBT = 30, 8
"""How many gaps tell the pace of a room, and how many short ones are added to them: a few long gaps do not make a slow
room."""


def pace_of(at: Times) -> float:
    """Return how fast the clock goes, in (0, 1], after messages at these times: at most `MOST_GAPS` + 1, in seconds."""
    if len(at) <= DOUBT + 1:
        return 1.0
    times = np.sort(at)
    gaps = np.sort(times[1:] - times[:-1])
    return BUSY_SECONDS / max(BUSY_SECONDS, float(gaps[(len(gaps) - DOUBT) // 2]))


def on_clock(gap: float, pace: float) -> float:
    """Return how many seconds the clock counts for a gap in seconds, 0 for a negative one."""
    gap = max(0.0, gap * pace)
    return gap if gap <= SILENCE_SECONDS else SILENCE_SECONDS * (1 + math.log(gap / SILENCE_SECONDS))


def _all_on_clock(gaps: Times, pace: float) -> Times:
    """Return the same of many gaps, none of them negative."""
    gaps = gaps * pace
    long = gaps > SILENCE_SECONDS
    if long.any():
        gaps[long] = SILENCE_SECONDS * (1 + np.log(gaps[long] / SILENCE_SECONDS))
    return gaps


@dataclass(frozen=True, slots=True)
class RoomClock:
    """The clock as a message sees it. `times`: of the messages before it, ascending; `counted`: what the clock shows at
    each; `now`: and at the message itself. Gaps are those between any two messages, in whatever order they came."""

    times: Times
    counted: Times
    now: float

    @classmethod
    def at(cls, now: float, times: Times, pace: float) -> "RoomClock":
        """`times`: of the messages before it, at least one, in any order."""
        times = np.sort(times)
        counted = np.zeros(len(times))
        np.add.accumulate(_all_on_clock(times[1:] - times[:-1], pace), out=counted[1:])
        last = max(int(times.searchsorted(now, "right")) - 1, 0)
        return cls(times, counted, float(counted[last]) + on_clock(now - float(times[last]), pace))

    def since(self, at: Times) -> Times:
        """Return the seconds on the clock since each of these times, which are those of messages. What lies before the
        first message counts as it does."""
        return self.now - self.counted.take(self.times.searchsorted(at, "right") - 1, mode="clip")
