"""The port `VectorIndex` on Qdrant: names of collections and points, requests, and searches.

A collection of the port is an alias in Qdrant. It points to a collection whose name holds the generation and the length
of the vectors, as in `group_memories` for `group_memories@0197f3.384`. So a write or a search with another generation
fails by itself.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar
from uuid import UUID, uuid5

import numpy as np
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.common.client_exceptions import QdrantException
from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse

from roomlore.core.errors import InvalidInput, RoomloreError, VectorsUnavailable
from roomlore.core.search.hits import EmbeddingModel, Ints, Nearest, VectorPoint, Vectors
from roomlore.core.texts import Phrase
from roomlore.ports.vectors import MESSAGES

T = TypeVar("T")

_NAMES = {MESSAGES: "room_messages"}
"""Other collections keep their name; `messages` is too general on a server that others share."""

_PREFIX = re.compile(r"[A-Za-z0-9_-]{0,64}")
_GENERATION = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PHYSICAL = re.compile(r"([A-Za-z0-9_-]+)@([A-Za-z0-9_-]{1,64})\.([1-9][0-9]{0,5})")
_ESCAPED = "\x1a"
_POINTS = UUID("5f0c5e3c-6c0f-4d52-9a53-0d6f6a1c7be4")


def check_prefix(prefix: str) -> str:
    if not _PREFIX.fullmatch(prefix):
        raise InvalidInput("qdrant_prefix_invalid", value=repr(prefix))
    return prefix


def alias_of(prefix: str, collection: str) -> str:
    return prefix + _NAMES.get(collection, collection)


@dataclass(frozen=True, slots=True)
class AliasData:
    """The data in the name of the collection behind an alias."""

    generation: str
    dimensions: int


def physical(alias: str, held: AliasData) -> str:
    """Return the name of the collection behind an alias. Raises `InvalidInput` if the generation cannot be part of a
    name."""
    if not _GENERATION.fullmatch(held.generation):
        raise InvalidInput("generation_invalid", value=repr(held.generation))
    return f"{alias}@{held.generation}.{held.dimensions}"


def held_by(alias: str, name: str) -> AliasData | None:
    """Parse a name made by `physical`; None for any other name."""
    match = _PHYSICAL.fullmatch(name)
    return AliasData(match[2], int(match[3])) if match and match[1] == alias else None


def storable(text: str) -> str:
    """Return the text as a key that JSON in UTF-8 can hold; different texts stay different."""
    if text.startswith(_ESCAPED) or not _is_utf8(text):
        return _ESCAPED + json.dumps(text)
    return text


def _is_utf8(text: str) -> bool:
    return text.encode("utf-8", "ignore").decode() == text


def point_id(tenant: str, scope: str, number: int) -> str:
    """Return the point's id: the same for the same three arguments, different for others."""
    return str(uuid5(_POINTS, json.dumps([tenant, scope, number])))


_WRONG_SHAPE = (AssertionError, AttributeError, LookupError, TypeError, ValueError)
CLIENT_ERRORS = (ApiException, QdrantException, OSError, RuntimeError, *_WRONG_SHAPE)


@contextmanager
def translated() -> Iterator[None]:
    """Translate the client's errors to `VectorsUnavailable`; the project's own errors pass unchanged."""
    try:
        yield
    except RoomloreError:
        raise
    except CLIENT_ERRORS as exc:
        raise VectorsUnavailable(_advice(exc)) from exc


@contextmanager
def passing_over_missing() -> Iterator[None]:
    """Ignore the error of a missing collection."""
    try:
        yield
    except CLIENT_ERRORS as exc:
        if not is_missing(exc):
            raise


def is_missing(exc: Exception) -> bool:
    """Return True if the collection is missing. A 404 of Qdrant is JSON; that of another server at this address is not
    and says nothing about the collection."""
    if isinstance(exc, UnexpectedResponse):
        return exc.status_code == 404 and exc.content.lstrip().startswith(b"{")
    return type(exc) is ValueError and str(exc).endswith(" not found")


def _advice(exc: Exception) -> str:
    if isinstance(exc, TimeoutError):
        return Phrase("qdrant_late")
    if isinstance(exc, UnexpectedResponse):
        return _refused(exc.status_code or 0)
    if isinstance(exc, ResponseHandlingException):
        return Phrase("qdrant_unreachable", kind=type(exc.source).__name__)
    return Phrase("qdrant_failing", kind=type(exc).__name__)


def _refused(status: int) -> str:
    if status in (401, 403):
        return Phrase("qdrant_key_refused", status=status)
    if status in (400, 413, 422):
        return Phrase("qdrant_request_refused", status=status)
    return Phrase("qdrant_status", status=status)


_BATCH_FLOATS = 50_000
_ONLY_AT_ONCE = 10_000
_SAME_TO = 6
"""Cosines are equal if they agree to this many decimals."""

TENANT, SCOPE, NUMBER = "tenant", "group_id", "number"

INDEXES: dict[str, models.KeywordIndexParams | models.IntegerIndexParams] = {
    SCOPE: models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True),
    TENANT: models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, enable_hnsw=False),
    NUMBER: models.IntegerIndexParams(
        type=models.IntegerIndexType.INTEGER, lookup=True, range=False, enable_hnsw=False
    ),
}
"""Each scope has its own graph and its points are stored together. The other indexes only filter: a graph for each
tenant would be the global one again."""


def settings_of(model: EmbeddingModel) -> dict[str, Any]:
    """Return the settings of a collection for this model: no graph over all points, one for each large scope."""
    return {
        "vectors_config": models.VectorParams(size=model.dimensions, distance=models.Distance.COSINE),
        "hnsw_config": models.HnswConfigDiff(m=0, payload_m=16),
    }


def batches(points: Sequence[VectorPoint]) -> Iterator[list[models.PointStruct]]:
    """Yield the points in the server's form, in requests of less than about a megabyte; the last one of repeated
    points."""
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
    """Return the payload with each lone surrogate as a question mark, as JSON in UTF-8 cannot hold it."""
    sent: dict[str, Any] = json.loads(json.dumps(dict(payload), ensure_ascii=False).encode("utf-8", "replace"))
    return sent


def within(tenant: str, scope: str, only: list[int] | None = None) -> models.Filter:
    """Return a filter for the points of one scope of one tenant, limited to these numbers if given."""
    wanted = [_is(SCOPE, storable(scope)), _is(TENANT, storable(tenant))]
    if only is not None:
        wanted.append(models.FieldCondition(key=NUMBER, match=models.MatchAny(any=only)))
    return models.Filter(must=list(wanted))


def _is(key: str, value: str) -> models.FieldCondition:
    return models.FieldCondition(key=key, match=models.MatchValue(value=value))


def filters(tenant: str, scope: str, only: Ints | None) -> list[models.Filter]:
    """Return one filter, or one for each part of a long `only`; the results of the parts must be merged."""
    if only is None:
        return [within(tenant, scope)]
    numbers = only.tolist()
    parts = (numbers[start : start + _ONLY_AT_ONCE] for start in range(0, len(numbers), _ONLY_AT_ONCE))
    return [within(tenant, scope, part) for part in parts]


def queries(vectors: Sequence[list[float]], where: models.Filter, limit: int) -> list[models.QueryRequest]:
    shown = models.PayloadSelectorInclude(include=[NUMBER])
    return [models.QueryRequest(query=vector, filter=where, limit=limit, with_payload=shown) for vector in vectors]


def cut_among_equals(response: models.QueryResponse, limit: int, requested: int) -> bool:
    """Return True if points beyond the limit may be as near as the last one within it."""
    if len(response.points) < requested:
        return False
    scores = sorted((point.score for point in response.points), reverse=True)
    return round(scores[limit - 1], _SAME_TO) == round(scores[-1], _SAME_TO)


def nearest_of(answers: Sequence[models.QueryResponse], limit: int) -> Nearest:
    """Return the best of all results for one vector."""
    points = [point for answer in answers for point in answer.points]
    numbers = np.array([_number(point) for point in points], np.int64)
    cosines = np.array([point.score for point in points], np.float64)
    best = np.lexsort((numbers, -np.round(cosines, _SAME_TO)))[:limit]
    return Nearest(numbers=numbers[best], similarities=np.clip((1 + cosines[best]) / 2, 0.0, 1.0))


def _number(point: models.ScoredPoint) -> int:
    number = (point.payload or {})[NUMBER]
    if not isinstance(number, int):
        raise TypeError(f"a point whose {NUMBER} is {type(number).__name__}")
    return number


_TIES = 32
_MAX_TIES = 2_048
"""The most extra points requested beyond the limit, so that of equally near points those with the smallest numbers are
kept. A few are requested first, more if they are not enough."""

_REMOVED_AT_ONCE = 1_000


def connect(url: str, *, api_key: str | None, timeout_seconds: float) -> AsyncQdrantClient:
    """Return a client. No request is sent yet. Raises `InvalidInput` for an invalid url."""
    try:
        return AsyncQdrantClient(
            url=url, api_key=api_key, timeout=max(1, round(timeout_seconds)), check_compatibility=False
        )
    except ValueError as exc:
        raise InvalidInput("qdrant_address_invalid") from exc


class QdrantVectors:
    """The port `VectorIndex` in Qdrant: exact in small scopes, nearly exact through a graph of its own in large ones.

    `client`: of a server over REST, or the client's local mode in tests. The seconds are for one request.
    """

    def __init__(
        self,
        client: AsyncQdrantClient,
        *,
        prefix: str = "",
        timeout_seconds: float = 2.0,
        write_timeout_seconds: float = 30.0,
    ) -> None:
        self._client = client
        self._prefix = check_prefix(prefix)
        self._read_seconds = timeout_seconds
        self._write_seconds = write_timeout_seconds

    async def generation(self, *, collection: str) -> str | None:
        alias = self._alias(collection)
        with translated():
            name = await self._target(alias)
            if name is None or not await self._reading(self._client.collection_exists(name)):
                return None
        held = held_by(alias, name)
        return held.generation if held else None

    async def prepare(self, *, collection: str, model: EmbeddingModel, generation: str) -> None:
        alias = self._alias(collection)
        name = physical(alias, AliasData(generation, model.dimensions))
        with translated():
            await self._clear(alias)
            await self._create(name, model)
            await self._point_alias(alias, name)
            await self._drop_others(alias, name)

    async def put(self, *, collection: str, generation: str, points: Sequence[VectorPoint]) -> None:
        alias = self._alias(collection)
        lengths = {len(point.vector) for point in points}
        with translated():
            if len(lengths) > 1:
                await self._refuse(alias, generation, lengths)
            for batch in batches(points):
                name = physical(alias, AliasData(generation, *lengths))
                await self._there(
                    alias, generation, lengths, self._writing(self._client.upsert(name, batch, wait=True))
                )

    async def remove(self, *, collection: str, tenant: str, scope: str, numbers: Sequence[int]) -> None:
        alias = self._alias(collection)
        with translated(), passing_over_missing():
            for start in range(0, len(numbers), _REMOVED_AT_ONCE):
                ids = [point_id(tenant, scope, int(number)) for number in numbers[start : start + _REMOVED_AT_ONCE]]
                selector = models.PointIdsList(points=list(ids))
                await self._writing(self._client.delete(alias, selector, wait=True))

    async def nearest(
        self,
        *,
        collection: str,
        generation: str,
        tenant: str,
        scope: str,
        vectors: Vectors,
        limit: int,
        only: Ints | None = None,
    ) -> list[Nearest]:
        alias = self._alias(collection)
        if not len(vectors) or limit <= 0 or (only is not None and not len(only)):
            return [_nothing() for _ in vectors]
        length = vectors.shape[1]
        name = physical(alias, AliasData(generation, length))
        with translated():
            parts = [
                await self._there(alias, generation, {length}, self._search(name, vectors.tolist(), where, limit))
                for where in filters(tenant, scope, only)
            ]
            return [nearest_of(answers, limit) for answers in zip(*parts, strict=True)]

    async def count(self, *, collection: str, tenant: str, scope: str) -> int:
        alias = self._alias(collection)
        with translated(), passing_over_missing():
            counted = self._client.count(alias, count_filter=within(tenant, scope), exact=True)
            return (await self._reading(counted)).count
        return 0

    async def close(self) -> None:
        await self._client.close()

    def _alias(self, collection: str) -> str:
        return alias_of(self._prefix, collection)

    async def _target(self, alias: str) -> str | None:
        known = (await self._reading(self._client.get_aliases())).aliases
        return next((entry.collection_name for entry in known if entry.alias_name == alias), None)

    async def _clear(self, alias: str) -> None:
        """Remove an empty collection whose own name is the alias: roomlore did not create it. Raise
        `VectorsUnavailable` if it has points."""
        if alias not in await self._names():
            return
        if (await self._reading(self._client.count(alias, exact=True))).count:
            raise VectorsUnavailable("qdrant_collection_foreign", name=alias)
        await self._writing(self._client.delete_collection(alias))

    async def _create(self, name: str, model: EmbeddingModel) -> None:
        await self._writing(self._client.delete_collection(name))
        await self._writing(self._client.create_collection(name, **settings_of(model)))
        for field, schema in INDEXES.items():
            await self._writing(self._client.create_payload_index(name, field, field_schema=schema, wait=True))

    async def _point_alias(self, alias: str, name: str) -> None:
        operation = models.CreateAlias(alias_name=alias, collection_name=name)
        await self._writing(
            self._client.update_collection_aliases([models.CreateAliasOperation(create_alias=operation)])
        )

    async def _drop_others(self, alias: str, kept: str) -> None:
        for name in await self._names():
            if name != kept and held_by(alias, name):
                await self._writing(self._client.delete_collection(name))

    async def _names(self) -> list[str]:
        return [collection.name for collection in (await self._reading(self._client.get_collections())).collections]

    async def _search(
        self, name: str, vectors: list[list[float]], where: models.Filter, limit: int
    ) -> list[models.QueryResponse]:
        """Return the nearest points of each vector, and enough more to find the smallest numbers among equals."""
        more = _TIES
        answers = await self._ask(name, queries(vectors, where, limit + more))
        while more < _MAX_TIES:
            cut = [place for place, answer in enumerate(answers) if cut_among_equals(answer, limit, limit + more)]
            if not cut:
                break
            more *= 8
            again = await self._ask(name, queries([vectors[place] for place in cut], where, limit + more))
            for place, answer in zip(cut, again, strict=True):
                answers[place] = answer
        return answers

    async def _ask(self, name: str, queries: list[models.QueryRequest]) -> list[models.QueryResponse]:
        answers = await self._reading(self._client.query_batch_points(name, requests=queries))
        if len(answers) != len(queries):
            raise ValueError(f"{len(answers)} answers to {len(queries)} questions")
        return answers

    async def _there(self, alias: str, generation: str, lengths: set[int], call: Awaitable[T]) -> T:
        """Return the result of a call to a collection. If the collection is missing, raise the reason."""
        try:
            return await call
        except CLIENT_ERRORS as exc:
            if not is_missing(exc):
                raise
            return await self._refuse(alias, generation, lengths)

    async def _refuse(self, alias: str, generation: str, lengths: set[int]) -> NoReturn:
        """Raise the reason why there is no collection of this generation for vectors of this length."""
        held = held_by(alias, await self._target(alias) or "")
        if held is None:
            raise VectorsUnavailable(_lost(alias, Phrase("collection_not_in_qdrant")))
        if held.generation != generation:
            raise VectorsUnavailable(
                _lost(alias, Phrase("collection_of_other_generation", generation=held.generation, expected=generation))
            )
        if lengths != {held.dimensions}:
            raise InvalidInput(
                "qdrant_dimensions_differ",
                name=alias,
                dimensions=held.dimensions,
                lengths=" or ".join(map(str, sorted(lengths))),
            )
        raise VectorsUnavailable(_lost(alias, Phrase("collection_gone")))

    async def _reading(self, call: Awaitable[T]) -> T:
        async with asyncio.timeout(self._read_seconds):
            return await call

    async def _writing(self, call: Awaitable[T]) -> T:
        async with asyncio.timeout(self._write_seconds):
            return await call


def _lost(alias: str, how: str) -> str:
    return Phrase("collection_lost", name=alias, why=how)


def _nothing() -> Nearest:
    return Nearest(numbers=np.zeros(0, np.int64), similarities=np.zeros(0, np.float64))
