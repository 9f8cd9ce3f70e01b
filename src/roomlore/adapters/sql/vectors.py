"""Vectors beside the messages, in any database: BLOBs, searched exactly in memory.

A search asks the database one short question: which generation, and how far has the scope come? What is new since the
last search is loaded, the rest is in memory already. So every process sees at once what any other wrote; or, with
`late_seconds`, that much later, and most searches ask nothing.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import numpy as np

from roomlore.adapters.sql import vector_rows as rows
from roomlore.adapters.sql.drivers import Connection, Row
from roomlore.adapters.sql.store import SqlStorage
from roomlore.adapters.sql.values import escape
from roomlore.adapters.sql.vector_cache import Key, Rows, Scope, VectorCache
from roomlore.adapters.sql.vector_rows import Collection, ScopeState
from roomlore.adapters.sql.vector_search import NOTHING, nearest, of_length_one
from roomlore.adapters.sql.vector_states import LateStates, Name
from roomlore.core.errors import StorageUnavailable, VectorsUnavailable
from roomlore.core.search import EmbeddingModel, Ints, Nearest, VectorPoint, Vectors

KIND = "sql"
CACHE_BYTES = 512 << 20
_STORED = np.dtype("<f2")
_PAGE = 1_000
"""Rows loaded at once: they are unpacked on the loop, in about a millisecond."""
_INLINE = 8_000_000
"""A product of so many numbers takes the loop a few milliseconds; a larger one goes to a thread."""


class SqlVectors:
    """The port `VectorIndex` on the tables of a `SqlStorage`, which stays the caller's to close.

    `cache_bytes` bounds what is kept in memory between searches: 4 bytes a dimension for each vector, so 512 MiB hold
    some 300,000 vectors of 384 dimensions. A scope larger than that alone is loaded anew by each search.
    `late_seconds`: how long what other processes wrote may go unseen.
    """

    def __init__(self, storage: SqlStorage, *, cache_bytes: int = CACHE_BYTES, late_seconds: float = 0.0) -> None:
        self._storage = storage
        self._states = LateStates(late_seconds)
        self._cache = VectorCache(cache_bytes)

    @property
    def cached_bytes(self) -> int:
        return self._cache.nbytes

    async def generation(self, *, collection: str) -> str | None:
        async with reading(self._storage) as sql:
            found = await rows.find_collection(sql, collection)
        return found.generation if found is not None and found.kind == KIND else None

    async def prepare(self, *, collection: str, model: EmbeddingModel, generation: str) -> None:
        async with writing(self._storage) as sql:
            old = await rows.find_collection(sql, collection)
            await rows.make_collection(sql, collection, kind=KIND, model=model, generation=generation)
            if old is not None and old.kind != KIND:
                await sql.run(f"DROP TABLE IF EXISTS {rows.own_table(collection)}")
        self._states.clear()
        await sweep(self._storage, collection)

    async def put(self, *, collection: str, generation: str, points: Sequence[VectorPoint]) -> None:
        if not points:
            return
        async with writing(self._storage) as sql:
            held = await held_collection(sql, collection, KIND, generation)
            vectors = matrix_of(points, held.dimensions).astype(_STORED)
            for (tenant, scope), places in by_scope(points).items():
                state = await rows.take_stamps(sql, held, tenant=tenant, scope=scope, rows=len(places))
                await rows.put_rows(sql, _new_rows(state, escape(tenant), places, vectors))
        for tenant, scope in by_scope(points):
            self._states.forget((collection, tenant, scope))

    async def remove(self, *, collection: str, tenant: str, scope: str, numbers: Sequence[int]) -> None:
        if not numbers:
            return
        async with writing(self._storage) as sql:
            found = await rows.find_scope(sql, collection, tenant=tenant, scope=scope)
            if found is not None and found[0].kind == KIND and found[1].key:
                state = await rows.take_stamps(sql, found[0], tenant=tenant, scope=scope, rows=len(numbers))
                await rows.remove_rows(sql, state, [int(number) for number in numbers])
        self._states.forget((collection, tenant, scope))

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
        held, state = await self._state((collection, tenant, scope), generation)
        queries = of_length_one(vectors, held.dimensions)
        if not state.stamp:
            return [NOTHING] * len(queries)
        found = await self._rows((collection, held.epoch, tenant, scope), held.dimensions, state)
        if found.matrix.size * len(queries) < _INLINE:
            return nearest(found, queries, limit, only)
        return await asyncio.to_thread(nearest, found, queries, limit, only)

    async def count(self, *, collection: str, tenant: str, scope: str) -> int:
        async with reading(self._storage) as sql:
            found = await rows.find_scope(sql, collection, tenant=tenant, scope=scope)
            if found is None or found[0].kind != KIND or not found[1].key:
                return 0
            return await rows.count_vectors(sql, found[1].key)

    async def close(self) -> None:
        """Forgets what is in memory."""
        self._cache.clear()
        self._states.clear()

    async def _state(self, name: Name, generation: str) -> tuple[Collection, ScopeState]:
        late = self._states.find(name)
        if late is not None and late[0].generation == generation:
            return late
        collection, tenant, scope = name
        async with reading(self._storage) as sql:
            held, state = await held_scope(sql, collection, KIND, generation, tenant=tenant, scope=scope)
        self._states.keep(name, held, state)
        return held, state

    async def _rows(self, key: Key, dimensions: int, state: ScopeState) -> Rows:
        """The scope's rows, at least as far as `state` says. Where some are to be loaded, whoever comes meanwhile waits
        for it, without a connection."""
        cached = self._cache.scope(key, dimensions)
        if cached.stamp < state.stamp:
            async with cached.lock:
                if cached.stamp < state.stamp:
                    try:
                        async with reading(self._storage) as sql:
                            await _load(sql, cached, state, tenant=key[2])
                    finally:
                        self._cache.settle(key, cached)
        return cached.rows


async def _load(sql: Connection, cached: Scope, state: ScopeState, *, tenant: str) -> None:
    if state.stamp - cached.stamp > _PAGE:
        cached.reserve(await rows.count_rows(sql, state.key))
    while cached.stamp < state.stamp:
        page = await rows.page_after(sql, state.key, cached.stamp, tenant=tenant, count=_PAGE)
        _take_in(cached, page)
        if len(page) < _PAGE:
            cached.stamp = max(cached.stamp, state.stamp)


def _take_in(cached: Scope, page: Sequence[Row]) -> None:
    if not page:
        return
    put = [row for row in page if row[2] is not None]
    gone = [row[1] for row in page if row[2] is None]
    vectors = np.frombuffer(b"".join([row[2] for row in put]), _STORED).reshape(len(put), cached.rows.matrix.shape[1])
    cached.apply(np.array(gone, np.int64), np.array([row[1] for row in put], np.int64), vectors)
    cached.stamp = rows.stamp_of(page[-1][0])


def _new_rows(
    state: ScopeState, tenant: str, places: Mapping[int, int], vectors: np.ndarray[Any, Any]
) -> Iterable[tuple[int, int, int, str, bytes]]:
    first = rows.first_key(state.key, state.stamp - len(places)) + 1
    for key, (number, place) in enumerate(places.items(), first):
        yield key, state.key, number, tenant, vectors[place].tobytes()


def by_scope(points: Sequence[VectorPoint]) -> dict[tuple[str, str], dict[int, int]]:
    """Tenant and scope -> number -> the place of its last point, in one order for all writers so that none waits for
    another in a ring."""
    scopes: dict[tuple[str, str], dict[int, int]] = {}
    for place, point in enumerate(points):
        scopes.setdefault((point.tenant, point.scope), {})[int(point.number)] = place
    return dict(sorted(scopes.items()))


def matrix_of(points: Sequence[VectorPoint], dimensions: int) -> Vectors:
    """The points' vectors (n, dimensions), of length 1; `InvalidInput` where one is not as the collection's are."""
    strange = next((point for point in points if point.vector.shape != (dimensions,)), None)
    return of_length_one(
        np.stack([point.vector for point in points] if strange is None else [strange.vector]), dimensions
    )


async def held_collection(sql: Connection, collection: str, kind: str, generation: str) -> Collection:
    """The collection, which stays as it is while this transaction lasts; `VectorsUnavailable` where it is another."""
    found = await rows.find_collection(sql, collection, hold=True)
    if found is None:
        raise VectorsUnavailable(_missing(collection, generation))
    found.check(kind, generation)
    return found


async def held_scope(
    sql: Connection, collection: str, kind: str, generation: str, *, tenant: str, scope: str
) -> tuple[Collection, ScopeState]:
    """The collection and a scope of it as they are now; `VectorsUnavailable` where the collection is another."""
    found = await rows.find_scope(sql, collection, tenant=tenant, scope=scope)
    if found is None:
        raise VectorsUnavailable(_missing(collection, generation))
    found[0].check(kind, generation)
    return found


def _missing(collection: str, generation: str) -> str:
    return f"There is no collection {collection!r}, so none of generation {generation!r}: rebuild the index."


async def sweep(storage: SqlStorage, collection: str) -> None:
    """Drops what earlier makings of the collection left, a little in each transaction so that others can write."""
    left = True
    while left:
        async with writing(storage) as sql:
            left = await rows.sweep(sql, collection)


@asynccontextmanager
async def reading(storage: SqlStorage) -> AsyncIterator[Connection]:
    with _translated():
        async with storage.reading() as work:
            yield work.connection


@asynccontextmanager
async def writing(storage: SqlStorage) -> AsyncIterator[Connection]:
    with _translated():
        async with storage.writing() as work:
            yield work.connection


@contextmanager
def _translated() -> Iterator[None]:
    """To the caller of a vector index, the database is one."""
    try:
        yield
    except StorageUnavailable as exc:
        raise VectorsUnavailable(str(exc)) from exc
