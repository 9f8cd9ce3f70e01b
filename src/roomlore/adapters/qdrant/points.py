"""Points, filters and answers between the words of the port and those of qdrant-client."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from qdrant_client import models

from roomlore.adapters.qdrant.names import point_id, storable
from roomlore.core.search import EmbeddingModel, Ints, Nearest, VectorPoint

_BATCH_FLOATS = 50_000
_ONLY_AT_ONCE = 10_000
_SAME_TO = 6
"""Cosines that agree to so many decimals are taken for equal."""

TENANT, SCOPE, NUMBER = "tenant", "group_id", "number"

INDEXES: dict[str, models.KeywordIndexParams | models.IntegerIndexParams] = {
    SCOPE: models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True),
    TENANT: models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, enable_hnsw=False),
    NUMBER: models.IntegerIndexParams(
        type=models.IntegerIndexType.INTEGER, lookup=True, range=False, enable_hnsw=False
    ),
}
"""Each scope has a graph of its own and its points lie side by side. The others only narrow a search down: a graph for
each tenant would be the global one again."""


def settings_of(model: EmbeddingModel) -> dict[str, Any]:
    """How a collection for this model is made: no graph over all points, one for each scope that is large enough."""
    return {
        "vectors_config": models.VectorParams(size=model.dimensions, distance=models.Distance.COSINE),
        "hnsw_config": models.HnswConfigDiff(m=0, payload_m=16),
    }


def batches(points: Sequence[VectorPoint]) -> Iterator[list[models.PointStruct]]:
    """The points as the server takes them, in requests of less than about a megabyte; of one given twice the last."""
    latest = list({(point.tenant, point.scope, point.number): point for point in points}.values())
    size = max(1, _BATCH_FLOATS // max(1, len(latest[0].vector))) if latest else 1
    for start in range(0, len(latest), size):
        yield [_struct(point) for point in latest[start : start + size]]


def _struct(point: VectorPoint) -> models.PointStruct:
    own = {TENANT: storable(point.tenant), SCOPE: storable(point.scope), NUMBER: point.number}
    return models.PointStruct(
        id=point_id(point.tenant, point.scope, point.number),
        vector=point.vector.tolist(),
        payload={**_sendable(point.payload), **own},
    )


def _sendable(payload: Mapping[str, Any]) -> dict[str, Any]:
    """JSON in UTF-8 has no lone surrogates: each becomes a question mark."""
    sent: dict[str, Any] = json.loads(json.dumps(dict(payload), ensure_ascii=False).encode("utf-8", "replace"))
    return sent


def within(tenant: str, scope: str, only: list[int] | None = None) -> models.Filter:
    """The points of one scope of one tenant, among these numbers if given."""
    wanted = [_is(SCOPE, storable(scope)), _is(TENANT, storable(tenant))]
    if only is not None:
        wanted.append(models.FieldCondition(key=NUMBER, match=models.MatchAny(any=only)))
    return models.Filter(must=list(wanted))


def _is(key: str, value: str) -> models.FieldCondition:
    return models.FieldCondition(key=key, match=models.MatchValue(value=value))


def filters(tenant: str, scope: str, only: Ints | None) -> list[models.Filter]:
    """One filter, or one for each part of a long `only`: what each part finds is to be merged."""
    if only is None:
        return [within(tenant, scope)]
    numbers = only.tolist()
    parts = (numbers[start : start + _ONLY_AT_ONCE] for start in range(0, len(numbers), _ONLY_AT_ONCE))
    return [within(tenant, scope, part) for part in parts]


def queries(vectors: Sequence[list[float]], where: models.Filter, limit: int) -> list[models.QueryRequest]:
    shown = models.PayloadSelectorInclude(include=[NUMBER])
    return [models.QueryRequest(query=vector, filter=where, limit=limit, with_payload=shown) for vector in vectors]


def cut_among_equals(found: models.QueryResponse, limit: int, asked: int) -> bool:
    """Whether points that were not returned may be as near as the last one within the limit."""
    if len(found.points) < asked:
        return False
    scores = sorted((point.score for point in found.points), reverse=True)
    return round(scores[limit - 1], _SAME_TO) == round(scores[-1], _SAME_TO)


def nearest_of(found: Sequence[models.QueryResponse], limit: int) -> Nearest:
    """The best of all that was found for one vector."""
    points = [point for answer in found for point in answer.points]
    numbers = np.array([_number(point) for point in points], np.int64)
    cosines = np.array([point.score for point in points], np.float64)
    best = np.lexsort((numbers, -np.round(cosines, _SAME_TO)))[:limit]
    return Nearest(numbers=numbers[best], similarities=np.clip((1 + cosines[best]) / 2, 0.0, 1.0))


def _number(point: models.ScoredPoint) -> int:
    number = (point.payload or {})[NUMBER]
    if not isinstance(number, int):
        raise TypeError(f"a point whose {NUMBER} is {type(number).__name__}")
    return number
