"""Exact nearest neighbours in a matrix.

One product of the whole matrix measures every row. It sums the rows at a block's edge in another order, so equal
vectors may come out unequal by a hair; rows that lie so near each other are measured again one by one, and equal ones
come in the order of their numbers wherever they stand.
"""

import numpy as np
from numpy.typing import NDArray

from roomlore.adapters.sql.vector_cache import Rows
from roomlore.core.errors import InvalidInput
from roomlore.core.search import Floats, Ints, Nearest, Vectors

_SLACK = np.float32(1e-5)
"""More than a float32 product of vectors of length 1 errs by."""
_FEW = 4
"""Picking out rows pays where they are fewer than one in so many."""
NOTHING = Nearest(numbers=np.zeros(0, np.int64), similarities=np.zeros(0))


def of_length_one(vectors: Vectors, dimensions: int) -> Vectors:
    """The vectors (m, dimensions) scaled to length 1; `InvalidInput` where that cannot be."""
    if vectors.ndim != 2 or vectors.shape[1] != dimensions:
        raise InvalidInput(f"Vectors of {dimensions} dimensions are needed here, not of shape {vectors.shape}.")
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    if not (np.isfinite(lengths).all() and (lengths > 0).all()):
        raise InvalidInput("A vector needs finite numbers that are not all 0.")
    scaled: Vectors = (vectors / lengths[:, None]).astype(np.float32)
    return scaled


def nearest(rows: Rows, queries: Vectors, limit: int, only: Ints | None) -> list[Nearest]:
    """The nearest `limit` rows to each query, as the port says."""
    places = None if only is None else rows.places(only)
    if places is not None and len(places) * _FEW < len(rows.numbers):
        rows, places = Rows(rows.numbers[places], rows.matrix[places]), None
    scores = _products(queries, rows)
    allowed = rows.alive
    if places is not None:
        scores, allowed = _keep(scores, places), len(places)
    best = min(limit, allowed)
    return [_best(rows, query, row, best) for query, row in zip(queries, scores, strict=True)]


def _products(queries: Vectors, rows: Rows) -> Vectors:
    """(m, n); dead rows are infinitely far."""
    one = len(queries) == 1
    scores: Vectors = (rows.matrix @ queries[0])[None] if one else queries @ rows.matrix.T
    scores[:, rows.dead] = -np.inf
    return scores


def _keep(scores: Vectors, places: Ints) -> Vectors:
    kept = np.full_like(scores, -np.inf)
    kept[:, places] = scores[:, places]
    return kept


def _best(rows: Rows, query: Vectors, scores: Vectors, best: int) -> Nearest:
    if best <= 0:
        return NOTHING
    lowest = np.partition(scores, len(scores) - best)[len(scores) - best]
    candidates = np.flatnonzero(scores >= lowest - _SLACK)
    candidates = candidates[np.argsort(-scores[candidates])]
    cosines: Floats = scores[candidates].astype(np.float64)
    doubtful = _near_each_other(cosines)
    cosines[doubtful] = np.vecdot(rows.matrix[candidates[doubtful]], query)
    numbers = rows.numbers[candidates]
    order = np.lexsort((numbers, -cosines))[:best]
    return Nearest(numbers=numbers[order], similarities=np.clip((1 + cosines[order]) / 2, 0, 1))


def _near_each_other(falling: Floats) -> NDArray[np.bool_]:
    """Which of these values have a neighbour nearer than the product's error."""
    close = falling[:-1] - falling[1:] <= _SLACK
    doubtful = np.zeros(len(falling), np.bool_)
    doubtful[1:] |= close
    doubtful[:-1] |= close
    return doubtful
