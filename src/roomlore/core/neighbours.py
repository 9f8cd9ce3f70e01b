"""What the messages around a message say for it: an answer seldom repeats the words of its question."""

import numpy as np
from numpy.typing import NDArray

from roomlore.core.search import Floats, Ints, RoomFacts
from roomlore.core.search_weights import SearchWeights

REACH = 2
_HOUR = 3_600_000_000


def around(rows: Ints, size: int) -> Ints:
    """These rows and those up to `REACH` away, ascending, of a room of `size` messages."""
    reach = np.arange(-REACH, REACH + 1)
    return np.unique(np.clip(rows[:, None] + reach, 0, size - 1))


def gained(table: Floats, worth: Floats, rows: Ints, facts: RoomFacts, weights: SearchWeights) -> Floats:
    """What the neighbours of each row add to its own words.

    `table` has a line for each of `rows`, which ascend, and a column for each term. A neighbour counts by the words
    that the message itself lacks, and by how it stands to it.
    """
    total = np.zeros(rows.size)
    own = table @ worth
    for distance in range(1, REACH + 1):
        later, earlier = _pairs(rows, distance)
        if not own[earlier].any() and not own[later].any():
            continue
        together = _together(rows[later], rows[earlier], facts, weights.pause_hours * distance)
        back, forth = _shares(rows[later], rows[earlier], distance, facts, weights)
        # Of two messages, what the one has more than the other less the reverse is the difference of their own words.
        lacking = np.maximum(table[earlier] - table[later], 0.0) @ worth
        total[later] += back * together * lacking
        total[earlier] += forth * together * np.maximum(lacking + own[later] - own[earlier], 0.0)
    return total


def _pairs(rows: Ints, distance: int) -> tuple[Ints | slice, Ints | slice]:
    """The lines of rows that lie so far apart: the later ones, and the earlier one of each."""
    if rows.size and rows[-1] - rows[0] + 1 == rows.size:
        return slice(distance, None), slice(None, max(rows.size - distance, 0))
    earlier = np.searchsorted(rows, rows - distance)
    later = np.flatnonzero(rows[earlier] == rows - distance)
    return later, earlier[later]


def _together(now: Ints, then: Ints, facts: RoomFacts, hours: float) -> NDArray[np.bool_]:
    """Whether two messages are of one sitting."""
    together: NDArray[np.bool_] = np.abs(facts.sent_at[now] - facts.sent_at[then]) < hours * _HOUR
    return together


def _shares(
    now: Ints, then: Ints, distance: int, facts: RoomFacts, weights: SearchWeights
) -> tuple[Floats | float, float]:
    """How much of an earlier message counts for the later one, and the reverse."""
    if distance > 1:
        return weights.beyond, weights.beyond
    answers = facts.questions[then] & (facts.senders[now] != facts.senders[then])
    return weights.asked * answers, weights.after
