"""What the messages around a message say for it: an answer seldom repeats the words of its question."""

from collections.abc import Iterator

import numpy as np

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

    `table` has a line for each term and a column for each of `rows`, which ascend. A neighbour counts by the words that
    the message itself lacks, and by how it stands to it.
    """
    total = np.zeros(rows.size)
    for here, there, shares in _pairs(rows, facts, weights):
        lacking = np.maximum(table[:, there] - table[:, here], 0.0)
        total[here] += shares * (worth @ lacking)
    return total


def _pairs(rows: Ints, facts: RoomFacts, weights: SearchWeights) -> Iterator[tuple[Ints, Ints, Floats]]:
    """Columns that lie one or two messages apart in one sitting, with the share of the second that counts for the
    first."""
    pause = weights.pause_hours * _HOUR
    for distance in range(1, REACH + 1):
        later = np.arange(rows.size)
        earlier = np.searchsorted(rows, rows - distance)
        near = rows[earlier] == rows - distance
        later, earlier = later[near], earlier[near]
        now, then = rows[later], rows[earlier]
        together = np.abs(facts.sent_at[now] - facts.sent_at[then]) < pause * distance
        later, earlier, now, then = later[together], earlier[together], now[together], then[together]
        if distance > 1:
            yield later, earlier, np.full(later.size, weights.beyond)
            yield earlier, later, np.full(later.size, weights.beyond)
            continue
        answers = facts.questions[then] & (facts.senders[now] != facts.senders[then])
        yield later, earlier, np.where(answers, weights.asked, weights.before)
        yield earlier, later, np.full(later.size, weights.after)
