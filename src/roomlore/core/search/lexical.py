"""Scores by words (BM25 over one room, exact) and by meaning, and the text of a message that is indexed."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roomlore.core.models import Message
from roomlore.core.search.hits import EmbeddingModel, Floats, Ints, Nearest, Postings, RoomFacts, SearchWeights
from roomlore.core.search.query import SearchQuery
from roomlore.core.text import terms

WORDS_MODEL = EmbeddingModel(name="words-1", dimensions=0)
"""Change the name whenever `indexed_words` gives other words for the same message; the lexical index is then
rebuilt."""


def _caption(message: Message) -> str:
    caption = message.metadata.get("caption")
    return caption if isinstance(caption, str) else ""


def indexed_words(message: Message) -> list[str]:
    """Return the words of a message's index entry, repeats kept."""
    return terms(message.sender_name or message.sender_id) + terms(message.text) + terms(_caption(message))


def passage(message: Message) -> str:
    """Return the text to embed for the message; empty if there is none."""
    said = " ".join(part for part in (message.text.strip(), _caption(message).strip()) if part)
    return f"{message.sender_name or message.sender_id}: {said}" if said else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """The matches of the question's terms, one row each: `rows` (index into the room's facts), `terms` (index into
    `worth`), `values` (quality of the match, below 1). `worth` of each term: its weight in the question times its
    rarity."""

    rows: Ints
    terms: Ints
    values: Floats
    worth: Floats

    def scores(self, size: int) -> Floats:
        """Return the score of each of the room's `size` messages by its own words."""
        return np.bincount(self.rows, self.worth[self.terms] * self.values, minlength=size).astype(float)

    def table(self, rows: Ints, size: int) -> Floats:
        """Return the values as a matrix: a row for each of these rows, a column for each term."""
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
    """Return the matches of a question in a room, without messages that the facts do not contain."""
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
    """Return the index of each arrival in the columns; -1 for those that are absent."""
    known = facts.arrivals
    if not known.size:
        return np.full(arrivals.size, -1)
    if known[-1] - known[0] + 1 == known.size:
        rows = arrivals - known[0]
        return np.where((rows >= 0) & (rows < known.size), rows, -1)
    rows = np.searchsorted(known, arrivals)
    rows[rows == known.size] = 0
    return np.where(known[rows] == arrivals, rows, -1)


_TRACE = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """The result of a vector search: `rows` (places in the room's facts); `similarity` and `nearness` have a value for
    every message of the room, 0 for those that were not found."""

    rows: Ints
    similarity: Floats
    nearness: Floats


def nearness(dense: Sequence[Nearest], facts: RoomFacts) -> Near:
    """Return each message's best similarity and mean nearness over several lists.

    Nearness is the distance of a similarity above the least one found, in quarters of their standard deviation; the
    nearest reach about 1 to 2.
    """
    size = facts.arrivals.size
    similarity, near = np.zeros(size), np.zeros(size)
    for nearest in dense:
        rows = rows_of(facts, nearest.numbers)
        kept, similar = rows[rows >= 0], nearest.similarities[rows >= 0]
        similarity[kept] = np.maximum(similarity[kept], similar)
        near[kept] += _spread(similar) / len(dense)
    return Near(rows=np.flatnonzero(near), similarity=similarity, nearness=near)


def _spread(similarities: Floats) -> Floats:
    """Return the spread, with a trace of the similarity itself, so that a found message never counts 0."""
    if not similarities.size:
        return similarities
    deviation = float(similarities.std())
    above = (similarities - similarities.min()) / (4 * deviation) if deviation > 1e-9 else np.zeros(similarities.size)
    return above + _TRACE * similarities
