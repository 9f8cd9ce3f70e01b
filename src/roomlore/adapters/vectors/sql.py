"""The port `VectorIndex` on BLOBs in SQL, with scopes of vectors cached in memory, limited by bytes.

The rows of a scope are only appended. A search sees a frozen view of them, so it may run in a thread while the scope
grows. A replaced or removed vector stays in place and is listed as dead until the rows are packed.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from sqlalchemy import func, select, text

from roomlore.adapters.vectors import rows
from roomlore.adapters.vectors.rows import Collection, LateStates, Name, VectorScope
from roomlore.core.errors import Conflict, InvalidInput, RoomloreError, StorageUnavailable, VectorsUnavailable
from roomlore.core.search.hits import EmbeddingModel, Floats, Ints, Nearest, VectorPoint, Vectors
from roomlore.core.texts import Phrase
from roomlore.storage.engine import Connection, Row, Statement
from roomlore.storage.store import Storage

_NONE = np.zeros(0, np.int64)
_FEW_DEAD = 64
OVERHEAD = 1_000
"""The approximate bytes of a scope in addition to its rows."""


@dataclass(frozen=True)
class Rows:
    """Numbers (n,) and vectors (n, dimensions) of a scope, as loaded. `dead`: the indices to skip."""

    numbers: Ints
    matrix: Vectors
    dead: Ints = field(default_factory=_NONE.copy)

    @property
    def alive(self) -> int:
        return len(self.numbers) - len(self.dead)

    @cached_property
    def _places_by_number(self) -> tuple[Ints, Ints]:
        places = np.delete(np.arange(len(self.numbers)), self.dead)
        places = places[np.argsort(self.numbers[places], kind="stable")]
        return self.numbers[places], places

    def places(self, numbers: Ints) -> Ints:
        """Return the indices of the numbers that are present, each once."""
        known, places = self._places_by_number
        if not len(known) or not len(numbers):
            return _NONE
        positions = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
        return np.unique(places[positions[known[positions] == numbers]])


class CachedScope:
    """A scope in memory. `stamp`: all writes up to this stamp are in `rows`."""

    def __init__(self, dimensions: int) -> None:
        self.lock = asyncio.Lock()
        self.stamp = 0
        self._numbers = np.empty(0, np.int64)
        self._matrix = np.empty((0, dimensions), np.float32)
        self._highest = -1
        self.rows = Rows(self._numbers, self._matrix)

    @property
    def nbytes(self) -> int:
        return OVERHEAD + self._numbers.nbytes + self._matrix.nbytes

    def reserve(self, rows: int) -> None:
        """Make room for `rows` rows in all, or for half as many again as before if that is more."""
        capacity = len(self._numbers)
        if rows > capacity:
            self._move(self.rows, max(rows, capacity + capacity // 2))

    def apply(self, gone: Ints, numbers: Ints, vectors: np.ndarray) -> None:
        """Apply writes: removed numbers, and numbers with their vectors (of any float type)."""
        dead = np.concatenate((self.rows.dead, self._outdated(np.concatenate((gone, numbers)))))
        old = len(self.rows.numbers)
        new = old + len(numbers)
        self.reserve(new)
        self._numbers[old:new] = numbers
        self._matrix[old:new] = vectors
        self.rows = Rows(self._numbers[:new], self._matrix[:new], dead)
        self._highest = max(self._highest, int(numbers.max(initial=-1)))
        if len(dead) > max(_FEW_DEAD, new // 4):
            self._pack()

    def _outdated(self, numbers: Ints) -> Ints:
        """Return the indices of the old rows of these numbers. New messages have higher numbers, which is detected at
        once."""
        if numbers.min(initial=self._highest + 1) > self._highest:
            return _NONE
        return self.rows.places(numbers)

    def _pack(self) -> None:
        rows = self.rows
        alive = np.delete(np.arange(len(rows.numbers)), rows.dead)
        self._move(Rows(rows.numbers[alive], rows.matrix[alive]), len(alive))

    def _move(self, rows: Rows, capacity: int) -> None:
        size = len(rows.numbers)
        self._numbers = np.empty(capacity, np.int64)
        self._matrix = np.empty((capacity, rows.matrix.shape[1]), np.float32)
        self._numbers[:size] = rows.numbers
        self._matrix[:size] = rows.matrix
        self.rows = Rows(self._numbers[:size], self._matrix[:size], rows.dead)


Key = tuple[str, int, str, str]
"""Collection, epoch, tenant, scope."""


class VectorCache:
    """The scopes used last, with at most `max_bytes`. A larger single scope is not kept."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._scopes: OrderedDict[Key, CachedScope] = OrderedDict()
        self._sizes: dict[Key, int] = {}
        self._epochs: dict[str, int] = {}
        self.nbytes = 0

    @property
    def held(self) -> list[Key]:
        """The cached scopes, the least recently used one first."""
        return list(self._scopes)

    def scope(self, key: Key, dimensions: int) -> CachedScope:
        """Return the scope, empty if it is not cached. Scopes of the collection's earlier epochs are dropped."""
        self._forget_epochs_before(*key[:2])
        scope = self._scopes.get(key)
        if scope is None:
            scope = self._scopes[key] = CachedScope(dimensions)
            self._count(key, scope.nbytes)
        self._scopes.move_to_end(key)
        return scope

    def settle(self, key: Key, scope: CachedScope) -> None:
        """Update the size of a scope, and drop the least recently used scopes until the rest fits."""
        if self._scopes.get(key) is scope:
            self._count(key, scope.nbytes)
        while self.nbytes > self._max_bytes:
            self._drop(next(iter(self._scopes)))

    def clear(self) -> None:
        for key in self.held:
            self._drop(key)

    def _forget_epochs_before(self, collection: str, epoch: int) -> None:
        if self._epochs.get(collection) != epoch:
            self._epochs[collection] = epoch
            for key in self.held:
                if key[0] == collection and key[1] != epoch:
                    self._drop(key)

    def _count(self, key: Key, size: int) -> None:
        self.nbytes += size - self._sizes.get(key, 0)
        self._sizes[key] = size

    def _drop(self, key: Key) -> None:
        del self._scopes[key]
        self.nbytes -= self._sizes.pop(key)


_STORED = np.dtype("<f2")
_SLACK = np.float32(1e-5)
"""More than the error of a float32 product of vectors of length 1."""
_ONE_BY_ONE = 4
"""Up to so many queries are faster one after the other than as a product of matrices."""
_FEW = 4
"""Selecting rows pays off if they are fewer than one in this many."""
NOTHING = Nearest(numbers=np.zeros(0, np.int64), similarities=np.zeros(0))


def of_length_one(vectors: Vectors, dimensions: int) -> Vectors:
    """Return the vectors (m, dimensions) scaled to length 1. Raises `InvalidInput` if that is not possible."""
    if vectors.ndim != 2 or vectors.shape[1] != dimensions:
        raise InvalidInput("vectors_shape_invalid", dimensions=dimensions, shape=vectors.shape)
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    if not (np.isfinite(lengths).all() and (lengths > 0).all()):
        raise InvalidInput("vector_not_finite")
    scaled: Vectors = (vectors / lengths[:, None]).astype(np.float32)
    return scaled


def as_stored(vectors: np.ndarray[Any, Any]) -> Vectors:
    """Return vectors rounded as stored ones are, and of length 1 again, as pgvector compares them: both stores give the
    same similarities."""
    return of_length_one(vectors.astype(_STORED).astype(np.float32), vectors.shape[1])


def nearest(rows: Rows, queries: Vectors, limit: int, only: Ints | None) -> list[Nearest]:
    """Return the nearest `limit` rows to each query, as the port defines."""
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
    """Return the products (m, n); those of dead rows are minus infinity."""
    few = 0 < len(queries) <= _ONE_BY_ONE
    scores: Vectors = np.stack([rows.matrix @ query for query in queries]) if few else queries @ rows.matrix.T
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
    cosines: Floats = np.vecdot(rows.matrix[candidates].astype(np.float64), query.astype(np.float64))
    numbers = rows.numbers[candidates]
    order = np.lexsort((numbers, -cosines))[:best]
    return Nearest(numbers=numbers[order], similarities=np.clip((1 + cosines[order]) / 2, 0, 1))


KIND = "sql"
CACHE_BYTES = 512 << 20
_PAGE = 1_000
"""Rows loaded at once: converting them takes the event loop about a millisecond."""
_INLINE = 8_000_000
"""A product of this many numbers takes the event loop a few milliseconds; a larger one runs in a thread."""


class SqlVectors:
    """The port `VectorIndex` on the tables of a `Storage`, which the caller closes.

    `cache_bytes` limits the memory kept between searches: 4 bytes a dimension for each vector, so 512 MiB hold some
    300,000 vectors of 384 dimensions. A larger scope is loaded again by each search. `late_seconds`: how long writes of
    other processes may be missed.
    """

    def __init__(self, storage: Storage, *, cache_bytes: int = CACHE_BYTES, late_seconds: float = 0.0) -> None:
        self._storage = storage
        self._states = LateStates(late_seconds)
        self._cache = VectorCache(cache_bytes)

    @property
    def cached_bytes(self) -> int:
        return self._cache.nbytes

    async def generation(self, *, collection: str) -> str | None:
        async with reading(self._storage) as sql:
            held = await rows.find_collection(sql, collection)
        return held.generation if held is not None and held.kind == KIND else None

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
                await rows.put_rows(sql, _new_rows(state, tenant, places, vectors))
        for tenant, scope in by_scope(points):
            self._states.forget((collection, tenant, scope))

    async def remove(self, *, collection: str, tenant: str, scope: str, numbers: Sequence[int]) -> None:
        if not numbers:
            return
        async with writing(self._storage) as sql:
            held = await rows.find_scope(sql, collection, tenant=tenant, scope=scope)
            if held is not None and held[0].kind == KIND and held[1].key:
                state = await rows.take_stamps(sql, held[0], tenant=tenant, scope=scope, rows=len(numbers))
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
        queries = as_stored(of_length_one(vectors, held.dimensions))
        if not state.stamp:
            return [NOTHING] * len(queries)
        held_rows = await self._rows((collection, held.epoch, tenant, scope), held.dimensions, state)
        if held_rows.matrix.size * len(queries) < _INLINE:
            return nearest(held_rows, queries, limit, only)
        return await asyncio.to_thread(nearest, held_rows, queries, limit, only)

    async def count(self, *, collection: str, tenant: str, scope: str) -> int:
        async with reading(self._storage) as sql:
            held = await rows.find_scope(sql, collection, tenant=tenant, scope=scope)
            if held is None or held[0].kind != KIND or not held[1].key:
                return 0
            return await rows.count_vectors(sql, held[1].key)

    async def close(self) -> None:
        """Clear the cache."""
        self._cache.clear()
        self._states.clear()

    async def _state(self, name: Name, generation: str) -> tuple[Collection, VectorScope]:
        late = self._states.find(name)
        if late is not None and late[0].generation == generation:
            return late
        collection, tenant, scope = name
        async with reading(self._storage) as sql:
            held, state = await held_scope(sql, collection, KIND, generation, tenant=tenant, scope=scope)
        self._states.keep(name, held, state)
        return held, state

    async def _rows(self, key: Key, dimensions: int, state: VectorScope) -> Rows:
        """Return the scope's rows, at least up to `state`. While rows are being loaded, concurrent callers wait for
        them without a connection."""
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


async def _load(sql: Connection, cached: CachedScope, state: VectorScope, *, tenant: str) -> None:
    if state.stamp - cached.stamp > _PAGE:
        cached.reserve(await rows.count_rows(sql, state.key))
    while cached.stamp < state.stamp:
        page = await rows.page_after(sql, state.key, cached.stamp, tenant=tenant, count=_PAGE)
        _take_in(cached, page)
        if len(page) < _PAGE:
            cached.stamp = max(cached.stamp, state.stamp)


def _take_in(cached: CachedScope, page: Sequence[Row]) -> None:
    if not page:
        return
    put = [row for row in page if row[2] is not None]
    gone = [row[1] for row in page if row[2] is None]
    vectors = np.frombuffer(b"".join([row[2] for row in put]), _STORED).reshape(len(put), cached.rows.matrix.shape[1])
    numbers = np.array([row[1] for row in put], np.int64)
    cached.apply(np.array(gone, np.int64), numbers, as_stored(vectors))
    cached.stamp = rows.stamp_of(page[-1][0])


def _new_rows(
    state: VectorScope, tenant: str, places: Mapping[int, int], vectors: np.ndarray[Any, Any]
) -> Iterable[tuple[int, int, int, str, bytes]]:
    first = rows.first_key(state.key, state.stamp - len(places)) + 1
    for key, (number, place) in enumerate(places.items(), first):
        yield key, state.key, number, tenant, vectors[place].tobytes()


def by_scope(points: Sequence[VectorPoint]) -> dict[tuple[str, str], dict[int, int]]:
    """Return tenant and scope -> number -> the index of its last point, in the same order for all writers, which
    prevents deadlocks."""
    scopes: dict[tuple[str, str], dict[int, int]] = {}
    for place, point in enumerate(points):
        scopes.setdefault((point.tenant, point.scope), {})[int(point.number)] = place
    return dict(sorted(scopes.items()))


def matrix_of(points: Sequence[VectorPoint], dimensions: int) -> Vectors:
    """Return the points' vectors (n, dimensions), of length 1. Raises `InvalidInput` if one does not fit the
    collection."""
    strange = next((point for point in points if point.vector.shape != (dimensions,)), None)
    return of_length_one(
        np.stack([point.vector for point in points] if strange is None else [strange.vector]), dimensions
    )


async def held_collection(sql: Connection, collection: str, kind: str, generation: str) -> Collection:
    """Return the collection, locked during this transaction. Raises `VectorsUnavailable` if it is another one."""
    held = await rows.find_collection(sql, collection, hold=True)
    if held is None:
        raise VectorsUnavailable(_missing(collection, generation))
    held.check(kind, generation)
    return held


async def held_scope(
    sql: Connection, collection: str, kind: str, generation: str, *, tenant: str, scope: str
) -> tuple[Collection, VectorScope]:
    """Return the collection and one of its scopes. Raises `VectorsUnavailable` if the collection is another one."""
    held = await rows.find_scope(sql, collection, tenant=tenant, scope=scope)
    if held is None:
        raise VectorsUnavailable(_missing(collection, generation))
    held[0].check(kind, generation)
    return held


def _missing(collection: str, generation: str) -> str:
    return Phrase("collection_missing", name=repr(collection), generation=repr(generation))


async def sweep(storage: Storage, collection: str) -> None:
    """Delete rows of the collection's earlier epochs, a few in each transaction so that others can write."""
    left = True
    while left:
        async with writing(storage) as sql:
            left = await rows.sweep(sql, collection)


@asynccontextmanager
async def reading(storage: Storage) -> AsyncIterator[Connection]:
    with _translated():
        async with storage.reading() as work:
            yield work.connection


@asynccontextmanager
async def writing(storage: Storage) -> AsyncIterator[Connection]:
    with _translated():
        async with storage.writing() as work:
            yield work.connection


@contextmanager
def _translated() -> Iterator[None]:
    """Translate errors of the database to those of a vector index."""
    try:
        yield
    except StorageUnavailable as exc:
        raise VectorsUnavailable(str(exc)) from exc


_HAS_PGVECTOR = Statement(lambda: select(func.to_regtype("halfvec").is_not(None)))
_OFFERS_PGVECTOR = Statement(lambda: text("SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'"))


async def pgvector_error(storage: Storage) -> RoomloreError | None:
    """Return None if the database has pgvector or it was created now, else the error."""
    async with reading(storage) as sql:
        if sql.dialect.name != "postgresql":
            return InvalidInput("pgvector_needs_postgres")
        if (await sql.fetch(_HAS_PGVECTOR))[0][0]:
            return None
        if not (await sql.fetch(_OFFERS_PGVECTOR))[0][0]:
            return VectorsUnavailable("pgvector_missing")
    return await _make_extension(storage)


async def _make_extension(storage: Storage) -> RoomloreError | None:
    """Create the extension. If another process creates it at the same moment, this statement fails although it exists
    then."""
    refused: RoomloreError | None = None
    try:
        async with writing(storage) as sql:
            await sql.run("CREATE EXTENSION IF NOT EXISTS vector")
    except (Conflict, VectorsUnavailable) as exc:
        refused = exc
    async with reading(storage) as sql:
        if (await sql.fetch(_HAS_PGVECTOR))[0][0]:
            return None
    if refused is None:
        return VectorsUnavailable("pgvector_too_old")
    return VectorsUnavailable("pgvector_not_permitted", why=refused)
