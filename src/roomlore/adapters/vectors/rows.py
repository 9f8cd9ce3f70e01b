"""The tables of vectors: collections, their scopes, and the vectors stored as BLOBs.

Every write to a scope takes new stamps from the scope's row, one for each vector, under that row's lock. So stamps
become visible in order, and a reader never reads a stamp twice.
"""

import asyncio
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, and_, bindparam, delete, func, null, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import NullType

from roomlore.core.errors import InvalidInput, VectorsUnavailable
from roomlore.core.search.hits import EmbeddingModel
from roomlore.storage import schema
from roomlore.storage.engine import Connection, Row, Statement

_STAMPS = 1 << 36
"""The most writes of a scope: one each millisecond for two years. It leaves room for 2**27 scopes."""
_SWEPT_AT_ONCE = 20_000
_PLAIN = re.compile("[a-z][a-z0-9_]{0,39}")

_collections, _scopes, _vectors = schema.vector_collections, schema.vector_scopes, schema.vectors


def first_key(scope_key: int, stamp: int) -> int:
    """Return the key of the scope's vector with this stamp."""
    return scope_key * _STAMPS + stamp


def own_table(collection: str) -> str:
    """Return the name of the pgvector table of the collection. Raises `InvalidInput` if the collection's name is not
    plain."""
    if not _PLAIN.fullmatch(collection):
        raise InvalidInput("collection_name_invalid", name=repr(collection))
    return f"vectors_of_{collection}"


def stamp_of(vector_key: int) -> int:
    return vector_key % _STAMPS


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection as stored."""

    name: str
    kind: str
    dimensions: int
    generation: str
    epoch: int

    def check(self, kind: str, generation: str) -> None:
        """Raise `VectorsUnavailable` if this is not the collection that the caller expects."""
        if self.kind != kind:
            raise VectorsUnavailable(
                "vectors_kept_elsewhere", name=repr(self.name), kind=repr(self.kind), configured=repr(kind)
            )
        if self.generation != generation:
            raise VectorsUnavailable(
                "vectors_of_other_generation",
                name=repr(self.name),
                generation=repr(self.generation),
                expected=repr(generation),
            )


@dataclass(frozen=True, slots=True)
class VectorScope:
    """A scope's key and the stamp of its last vector. `key` is 0 for a scope without any."""

    key: int
    stamp: int


_in_collection = _collections.c.collection == bindparam("collection")
_COLUMNS = (_collections.c.kind, _collections.c.dimensions, _collections.c.generation, _collections.c.epoch)
_scope_of_collection = and_(
    _scopes.c.collection == _collections.c.collection,
    _scopes.c.epoch == _collections.c.epoch,
    _scopes.c.tenant == bindparam("tenant"),
    _scopes.c.scope == bindparam("scope"),
)

_FIND = Statement(lambda: select(*_COLUMNS).where(_in_collection))
_HOLD = Statement(lambda: select(*_COLUMNS).where(_in_collection).with_for_update(read=True))
_FIND_SCOPE = Statement(
    lambda: (
        select(*_COLUMNS, func.coalesce(_scopes.c.scope_key, 0), func.coalesce(_scopes.c.stamp, 0))
        .select_from(_collections.outerjoin(_scopes, _scope_of_collection))
        .where(_in_collection)
    )
)


def _prepare() -> Any:
    new = insert(_collections).values(
        collection=bindparam("collection"),
        kind=bindparam("kind"),
        model=bindparam("model"),
        dimensions=bindparam("dimensions"),
        generation=bindparam("generation"),
        epoch=1,
    )
    changed = {name: new.excluded[name] for name in ("kind", "model", "dimensions", "generation")}
    return new.on_conflict_do_update(
        index_elements=[_collections.c.collection], set_={**changed, "epoch": _collections.c.epoch + 1}
    )


def _stamp() -> Any:
    new = insert(_scopes).values(
        collection=bindparam("collection"),
        epoch=bindparam("epoch"),
        tenant=bindparam("tenant"),
        scope=bindparam("scope"),
        stamp=bindparam("rows"),
    )
    keys = [_scopes.c.collection, _scopes.c.epoch, _scopes.c.tenant, _scopes.c.scope]
    moved = new.on_conflict_do_update(index_elements=keys, set_={"stamp": _scopes.c.stamp + new.excluded.stamp})
    return moved.returning(_scopes.c.scope_key, _scopes.c.stamp)


_PREPARE = Statement(_prepare)
_STAMP = Statement(_stamp)


def _left_over() -> ColumnElement[bool]:
    current = select(_collections.c.epoch).where(_in_collection).scalar_subquery()
    return and_(_scopes.c.collection == bindparam("collection"), _scopes.c.epoch < current)


_LEFT_OVER = Statement(lambda: select(_scopes.c.scope_key, _scopes.c.stamp).where(_left_over()).limit(1))
_LOWER_SCOPE = Statement(
    lambda: update(_scopes).where(_scopes.c.scope_key == bindparam("lowered")).values(stamp=bindparam("new_stamp"))
)
_DROP_SCOPE = Statement(lambda: delete(_scopes).where(_scopes.c.scope_key == bindparam("scope_key")))


class _OfScope(FunctionElement[Any]):
    """A condition on the scope, which a range of keys implies. PostgreSQL finds the partition by it."""

    inherit_cache = True
    type = NullType()


@compiles(_OfScope)
def _of_scope(element: _OfScope, compiler: SQLCompiler, **options: Any) -> str:
    """Compile it. The sign keeps SQLite from reading the index of scopes instead of the range."""
    column, scope = (compiler.process(clause, **options) for clause in element.clauses)
    return f"{'+' if compiler.dialect.name == 'sqlite' else ''}{column} = {scope}"


def _range() -> ColumnElement[bool]:
    within = and_(_vectors.c.vector_key > bindparam("after"), _vectors.c.vector_key <= bindparam("until"))
    return and_(_OfScope(_vectors.c.scope_key, bindparam("scope_key", type_=BigInteger)), within)


_DROP_RANGE = Statement(lambda: delete(_vectors).where(_range()))
_PAGE = Statement(
    lambda: (
        select(_vectors.c.vector_key, _vectors.c.number, _vectors.c.vector)
        .where(_range(), _vectors.c.tenant == bindparam("tenant"))
        .order_by(_vectors.c.vector_key)
        .limit(bindparam("count"))
    )
)
_COUNT_ROWS = Statement(lambda: select(func.count()).where(_vectors.c.scope_key == bindparam("scope_key")))
_COUNT = Statement(
    lambda: select(func.count()).where(_vectors.c.scope_key == bindparam("scope_key"), _vectors.c.vector.is_not(None))
)


def _put() -> Any:
    new = insert(_vectors).values(
        vector_key=bindparam("vector_key"),
        scope_key=bindparam("scope_key"),
        number=bindparam("number"),
        tenant=bindparam("tenant"),
        vector=bindparam("vector"),
    )
    return new.on_conflict_do_update(
        index_elements=[_vectors.c.scope_key, _vectors.c.number],
        set_={"vector_key": new.excluded.vector_key, "vector": new.excluded.vector},
    )


_PUT = Statement(_put)
_REMOVE = Statement(
    lambda: (
        update(_vectors)
        .where(
            _vectors.c.scope_key == bindparam("in_scope"),
            _vectors.c.number == bindparam("removed"),
            _vectors.c.vector.is_not(None),
        )
        .values(vector_key=bindparam("new_key"), vector=null())
    )
)


async def find_collection(sql: Connection, collection: str, *, hold: bool = False) -> Collection | None:
    """Return the collection. `hold`: lock it, so that it is not created again during this transaction."""
    rows = await sql.fetch(_HOLD if hold else _FIND, collection=collection)
    return _to_collection(collection, rows[0]) if rows else None


def _to_collection(name: str, row: Row) -> Collection:
    kind, dimensions, generation, epoch = row
    return Collection(name, kind, dimensions, generation, epoch)


async def find_scope(
    sql: Connection, collection: str, *, tenant: str, scope: str
) -> tuple[Collection, VectorScope] | None:
    """Return the collection and the scope in it; None if there is no such collection."""
    rows = await sql.fetch(_FIND_SCOPE, collection=collection, tenant=tenant, scope=scope)
    if not rows:
        return None
    return _to_collection(collection, rows[0][:4]), VectorScope(*rows[0][4:])


async def make_collection(
    sql: Connection, collection: str, *, kind: str, model: EmbeddingModel, generation: str
) -> None:
    """Create the collection, again if it exists; its scopes are obsolete from then on."""
    await sql.fetch(
        _PREPARE,
        collection=collection,
        kind=kind,
        model=model.name,
        dimensions=model.dimensions,
        generation=generation,
    )


async def take_stamps(sql: Connection, collection: Collection, *, tenant: str, scope: str, rows: int) -> VectorScope:
    """Create the scope if it is new, lock it and advance its stamp by `rows`. Return its new state."""
    stamps = await sql.fetch(
        _STAMP,
        collection=collection.name,
        epoch=collection.epoch,
        tenant=tenant,
        scope=scope,
        rows=rows,
    )
    return VectorScope(*stamps[0])


async def put_rows(sql: Connection, rows: Iterable[tuple[int, int, int, str, bytes]]) -> None:
    """Store rows of (vector key, scope key, number, tenant as stored, vector)."""
    await sql.many(_PUT, rows)


async def remove_rows(sql: Connection, state: VectorScope, numbers: Sequence[int]) -> None:
    """Empty these rows of a scope whose stamp was advanced by their count."""
    keys = range(first_key(state.key, state.stamp - len(numbers)) + 1, first_key(state.key, state.stamp) + 1)
    await sql.many(_REMOVE, [(key, state.key, number) for key, number in zip(keys, numbers, strict=True)])


async def page_after(sql: Connection, scope_key: int, stamp: int, *, tenant: str, count: int) -> Sequence[Row]:
    """Return the scope's next rows after a stamp, in order of stamps: vector key, number, vector or None."""
    return await sql.fetch(
        _PAGE,
        scope_key=scope_key,
        after=first_key(scope_key, stamp),
        until=first_key(scope_key + 1, 0),
        tenant=tenant,
        count=count,
    )


async def count_rows(sql: Connection, scope_key: int) -> int:
    """Return the number of rows of the scope, removed ones included. Reads an index only."""
    rows = await sql.fetch(_COUNT_ROWS, scope_key=scope_key)
    return int(rows[0][0])


async def count_vectors(sql: Connection, scope_key: int) -> int:
    rows = await sql.fetch(_COUNT, scope_key=scope_key)
    return int(rows[0][0])


async def sweep(sql: Connection, collection: str) -> bool:
    """Delete some rows of the collection's earlier epochs. Return False if none is left."""
    left_over = await sql.fetch(_LEFT_OVER, collection=collection)
    if not left_over:
        return False
    scope_key, stamp = left_over[0]
    kept = max(0, stamp - _SWEPT_AT_ONCE)
    its = {"after": first_key(scope_key, kept), "until": first_key(scope_key, stamp)}
    await sql.fetch(_DROP_RANGE, scope_key=scope_key, **its)
    if kept:
        await sql.fetch(_LOWER_SCOPE, lowered=scope_key, new_stamp=kept)
    else:
        await sql.fetch(_DROP_SCOPE, scope_key=scope_key)
    return True


_MAX = 10_000

Name = tuple[str, str, str]
"""Collection, tenant, scope."""


@dataclass(frozen=True, slots=True)
class _Seen:
    at: float
    collection: Collection
    state: VectorScope


class LateStates:
    """A cache of states that are at most `seconds` old. Writes of this index invalidate it at once."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._seen: dict[Name, _Seen] = {}

    def find(self, name: Name) -> tuple[Collection, VectorScope] | None:
        seen = self._seen.get(name)
        if seen is None or asyncio.get_running_loop().time() - seen.at >= self._seconds:
            return None
        return seen.collection, seen.state

    def keep(self, name: Name, collection: Collection, state: VectorScope) -> None:
        if self._seconds > 0:
            if len(self._seen) >= _MAX:
                self._seen.clear()
            self._seen[name] = _Seen(asyncio.get_running_loop().time(), collection, state)

    def forget(self, name: Name) -> None:
        self._seen.pop(name, None)

    def clear(self) -> None:
        self._seen.clear()
