"""How near the vectors of messages lie to a question's, on a scale that every embedding model shares."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from roomlore.core.lexical import rows_of
from roomlore.core.search import Floats, Ints, Nearest, RoomFacts

_TRACE = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """What the vectors found: `rows` (places in the room's facts); `similarity` and `nearness` have a value for every
    message of the room, 0 for those that were not found."""

    rows: Ints
    similarity: Floats
    nearness: Floats


def nearness(dense: Sequence[Nearest], facts: RoomFacts) -> Near:
    """Of several lists each message's best similarity and mean nearness.

    Nearness is how far a similarity lies above the least one found, in quarters of their standard deviation; the
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
    """A trace of the similarity itself is left, so that what was found never counts nothing."""
    if not similarities.size:
        return similarities
    deviation = float(similarities.std())
    above = (similarities - similarities.min()) / (4 * deviation) if deviation > 1e-9 else np.zeros(similarities.size)
    return above + _TRACE * similarities
