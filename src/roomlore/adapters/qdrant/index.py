"""The port of vectors on Qdrant.

What a generation promises here: once `prepare` has returned, no write and no search under an earlier generation
succeeds, whoever makes it, since its collection is gone. The alias is set last, so a half-made collection is none. A
collection deleted, made anew by hand or restored with an earlier generation has no alias or another one, and the next
call notices. Points taken out one by one, or an older state of the same generation, cannot be noticed: rebuild then.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import NoReturn, TypeVar

import numpy as np
from qdrant_client import AsyncQdrantClient, models

from roomlore.adapters.qdrant import points as shapes
from roomlore.adapters.qdrant.names import Held, alias_of, check_prefix, held_by, physical, point_id
from roomlore.adapters.qdrant.troubles import CLIENT_ERRORS, is_missing, passing_over_missing, translated
from roomlore.core.errors import InvalidInput, VectorsUnavailable
from roomlore.core.search import EmbeddingModel, Ints, Nearest, VectorPoint, Vectors

_TIES = 32
_MOST_TIES = 2_048
"""Asked for beyond the limit, so that of points equally near those with the smaller numbers are kept: a few at first,
more where they are not enough, and never more than this."""

_REMOVED_AT_ONCE = 1_000

T = TypeVar("T")


def connect(url: str, *, api_key: str | None, timeout_seconds: float) -> AsyncQdrantClient:
    """A client that has not called yet. Raises `InvalidInput` for a bad url."""
    try:
        return AsyncQdrantClient(
            url=url, api_key=api_key, timeout=max(1, round(timeout_seconds)), check_compatibility=False
        )
    except ValueError as exc:
        raise InvalidInput(
            "The address of Qdrant cannot be read. It looks like http://localhost:6333 or https://name:port."
        ) from exc


class QdrantVectors:
    """Vectors in Qdrant: exact in small scopes, nearly exact through a graph of its own in large ones.

    `client`: of a server over REST, or the client's local mode in tests. Seconds are for one request to the server.
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
        name = physical(alias, Held(generation, model.dimensions))
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
            for batch in shapes.batches(points):
                name = physical(alias, Held(generation, *lengths))
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
        name = physical(alias, Held(generation, length))
        with translated():
            parts = [
                await self._there(alias, generation, {length}, self._search(name, vectors.tolist(), where, limit))
                for where in shapes.filters(tenant, scope, only)
            ]
            return [shapes.nearest_of(found, limit) for found in zip(*parts, strict=True)]

    async def count(self, *, collection: str, tenant: str, scope: str) -> int:
        alias = self._alias(collection)
        with translated(), passing_over_missing():
            counted = self._client.count(alias, count_filter=shapes.within(tenant, scope), exact=True)
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
        """A collection that bears the alias as its own name was not made by roomlore: gone if empty, else left."""
        if alias not in await self._names():
            return
        if (await self._reading(self._client.count(alias, exact=True))).count:
            raise VectorsUnavailable(
                f"Qdrant holds a collection {alias} that roomlore did not make. Delete it, or use another server or "
                "another prefix for roomlore."
            )
        await self._writing(self._client.delete_collection(alias))

    async def _create(self, name: str, model: EmbeddingModel) -> None:
        await self._writing(self._client.delete_collection(name))
        await self._writing(self._client.create_collection(name, **shapes.settings_of(model)))
        for field, schema in shapes.INDEXES.items():
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
        return [found.name for found in (await self._reading(self._client.get_collections())).collections]

    async def _search(
        self, name: str, vectors: list[list[float]], where: models.Filter, limit: int
    ) -> list[models.QueryResponse]:
        """The nearest points of each vector, and as many more as it takes to know the smallest numbers among equals."""
        more = _TIES
        found = await self._ask(name, shapes.queries(vectors, where, limit + more))
        while more < _MOST_TIES:
            cut = [place for place, one in enumerate(found) if shapes.cut_among_equals(one, limit, limit + more)]
            if not cut:
                break
            more *= 8
            again = await self._ask(name, shapes.queries([vectors[place] for place in cut], where, limit + more))
            for place, one in zip(cut, again, strict=True):
                found[place] = one
        return found

    async def _ask(self, name: str, queries: list[models.QueryRequest]) -> list[models.QueryResponse]:
        answers = await self._reading(self._client.query_batch_points(name, requests=queries))
        if len(answers) != len(queries):
            raise ValueError(f"{len(answers)} answers to {len(queries)} questions")
        return answers

    async def _there(self, alias: str, generation: str, lengths: set[int], call: Awaitable[T]) -> T:
        """The answer of a call to a collection; where that is missing, the reason is raised."""
        try:
            return await call
        except CLIENT_ERRORS as exc:
            if not is_missing(exc):
                raise
            return await self._refuse(alias, generation, lengths)

    async def _refuse(self, alias: str, generation: str, lengths: set[int]) -> NoReturn:
        """Says why there is no collection of this generation for vectors so long."""
        held = held_by(alias, await self._target(alias) or "")
        if held is None:
            raise VectorsUnavailable(_lost(alias, "is not in Qdrant: it was never made, or was wiped"))
        if held.generation != generation:
            raise VectorsUnavailable(_lost(alias, f"is of generation {held.generation}, not {generation}"))
        if lengths != {held.dimensions}:
            raise InvalidInput(
                f"Vectors in {alias} have {held.dimensions} numbers, not {' or '.join(map(str, sorted(lengths)))}. "
                "Put vectors of the model that it was made for; another model needs `roomlore reindex`."
            )
        raise VectorsUnavailable(_lost(alias, "was lost"))

    async def _reading(self, call: Awaitable[T]) -> T:
        async with asyncio.timeout(self._read_seconds):
            return await call

    async def _writing(self, call: Awaitable[T]) -> T:
        async with asyncio.timeout(self._write_seconds):
            return await call


def _lost(alias: str, how: str) -> str:
    return f"The collection {alias} {how}. It is made anew from the database by itself, or by `roomlore reindex`."


def _nothing() -> Nearest:
    return Nearest(numbers=np.zeros(0, np.int64), similarities=np.zeros(0, np.float64))
