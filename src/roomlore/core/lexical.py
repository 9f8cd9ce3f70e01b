"""BM25 over one room, from postings: exact, with the room's own statistics."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roomlore.core.query import SearchQuery
from roomlore.core.search import Floats, Ints, Postings, RoomFacts
from roomlore.core.search_weights import SearchWeights


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """Where the question's terms stand. One line a match: `rows` (place in the room's facts), `terms` (place in
    `worth`), `values` (how well the term is matched, below 1). `worth` of each term: the question's times its rarity.
    """

    rows: Ints
    terms: Ints
    values: Floats
    worth: Floats

    def scores(self, size: int) -> Floats:
        """What each of the room's `size` messages earns by its own words."""
        return np.bincount(self.rows, self.worth[self.terms] * self.values, minlength=size).astype(float)

    def table(self, rows: Ints, size: int) -> Floats:
        """The values as a table: a line for each of these rows, a column for each term."""
        table = np.zeros((rows.size, self.worth.size))
        if rows.size == size:
            table[self.rows, self.terms] = self.values
            return table
        line = np.full(size, -1)
        line[rows] = np.arange(rows.size)
        places = line[self.rows]
        kept = places >= 0
        table[places[kept], self.terms[kept]] = self.values[kept]
        return table


def matches(query: SearchQuery, postings: Postings, facts: RoomFacts, weights: SearchWeights) -> Matches:
    """The matches of a question in a room; those of messages that the facts do not know are left out."""
    sizes = postings.ends.copy()
    sizes[1:] -= postings.ends[:-1]
    count = max(postings.room.messages, 1)
    mean = max(postings.room.words / count, 1.0)
    given = dict(zip(query.terms, query.worth, strict=True))
    worth = np.array([given.get(word, 0.0) for word in postings.words]) * _rarity(sizes, count)
    rows = rows_of(facts, postings.arrivals)
    length = 1 - weights.length_norm + weights.length_norm * postings.lengths / mean
    values = postings.counts / (postings.counts + weights.saturation * length)
    terms = np.repeat(np.arange(sizes.size), sizes)
    known = rows >= 0
    if not known.all():
        rows, terms, values = rows[known], terms[known], values[known]
    return Matches(rows=rows, terms=terms, values=values, worth=worth)


def _rarity(found: NDArray[np.int64], count: int) -> Floats:
    return np.log1p((np.maximum(count - found, 0) + 0.5) / (found + 0.5))


def rows_of(facts: RoomFacts, arrivals: Ints) -> Ints:
    """Where these arrivals stand in the columns; -1 for those that are not there."""
    known = facts.arrivals
    if not known.size:
        return np.full(arrivals.size, -1)
    if known[-1] - known[0] + 1 == known.size:
        rows = arrivals - known[0]
        return np.where((rows >= 0) & (rows < known.size), rows, -1)
    rows = np.searchsorted(known, arrivals)
    rows[rows == known.size] = 0
    return np.where(known[rows] == arrivals, rows, -1)
