"""The port `VectorIndex` on pgvector, with vectors of 16-bit numbers. Needs the extra `postgres`."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from sqlalchemy import BigInteger, TableClause, bindparam, cast, column, delete, func, select, table, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.types import UserDefinedType

from roomlore.adapters.vectors import rows
from roomlore.adapters.vectors.sql import (
    NOTHING,
    by_scope,
    held_collection,
    held_scope,
    matrix_of,
    of_length_one,
    reading,
    sweep,
    writing,
)
from roomlore.core.errors import InvalidInput
from roomlore.core.search.hits import EmbeddingModel, Ints, Nearest, VectorPoint, Vectors
from roomlore.storage.engine import Connection, Statement, among
from roomlore.storage.halves import Half
from roomlore.storage.rows import numbers_text
from roomlore.storage.store import Storage


def halves(vectors: Vectors) -> list[Half]:
    head = struct.pack(">HH", vectors.shape[1], 0)
    return [Half(head + vector.tobytes()) for vector in vectors.astype(">f2")]


KIND = "pgvector"
_MAX_DIMENSIONS = 16_000
_INLINE_DIMENSIONS = 3_900
"""This many dimensions fit on a page; vectors in the page are read without a detour."""


class _HalfVector(UserDefinedType[Any]):
    cache_ok = True

    def get_col_spec(self, **_options: Any) -> str:
        return "HALFVEC"


@dataclass(frozen=True, slots=True)
class _Statements:
    """The statements for one collection's table."""

    put: Statement
    remove: Statement
    count: Statement
    nearest: Statement
    nearest_among: Statement


@lru_cache
def _statements(collection: str) -> _Statements:
    held = table(
        rows.own_table(collection), column("scope_key", BigInteger), column("number", BigInteger), column("embedding")
    )
    return _Statements(
        put=Statement(lambda: _put(held)),
        remove=Statement(
            lambda: delete(held).where(held.c.scope_key == bindparam("scope_key"), among(held.c.number, "numbers"))
        ),
        count=Statement(
            lambda: select(func.count()).select_from(held).where(held.c.scope_key == bindparam("scope_key"))
        ),
        nearest=Statement(lambda: _nearest(held)),
        nearest_among=Statement(lambda: _nearest(held).where(among(held.c.number, "numbers"))),
    )


def _put(held: TableClause) -> Any:
    new = insert(held).values(
        scope_key=bindparam("scope_key"),
        number=bindparam("number"),
        embedding=cast(bindparam("embedding"), _HalfVector),
    )
    return new.on_conflict_do_update(
        index_elements=[held.c.scope_key, held.c.number], set_={"embedding": new.excluded.embedding}
    )


def _nearest(held: TableClause) -> Any:
    distance = held.c.embedding.op("<=>")(cast(bindparam("vector"), _HalfVector)).label("distance")
    return (
        select(held.c.number, distance)
        .where(held.c.scope_key == bindparam("scope_key"))
        .order_by(distance, held.c.number)
        .limit(bindparam("count"))
    )


_PARTS = Statement(
    lambda: text(
        "SELECT count(*) FROM pg_inherits JOIN pg_partitioned_table ON partrelid = inhparent"
        " WHERE inhparent = to_regclass('messages')"
    )
)
"""The number of partitions of the tables of messages; 0 if they are whole."""
_IS_THERE = Statement(lambda: select(func.to_regclass(bindparam("table_name")).is_not(None)))


class PgVectors:
    """The port `VectorIndex` on a `Storage` whose PostgreSQL has pgvector. The caller closes the storage.

    A collection's name has lower-case letters, digits and _; a model has at most 16,000 dimensions.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    async def generation(self, *, collection: str) -> str | None:
        async with reading(self._storage) as sql:
            held = await rows.find_collection(sql, collection)
            there = await sql.fetch(_IS_THERE, table_name=rows.own_table(collection))
        return held.generation if held is not None and held.kind == KIND and there[0][0] else None

    async def prepare(self, *, collection: str, model: EmbeddingModel, generation: str) -> None:
        if not 0 < model.dimensions <= _MAX_DIMENSIONS:
            raise InvalidInput("pgvector_dimensions_invalid", most=_MAX_DIMENSIONS, dimensions=model.dimensions)
        async with writing(self._storage) as sql:
            await rows.make_collection(sql, collection, kind=KIND, model=model, generation=generation)
            await _make_table(sql, rows.own_table(collection), model.dimensions)
        await sweep(self._storage, collection)

    async def put(self, *, collection: str, generation: str, points: Sequence[VectorPoint]) -> None:
        if not points:
            return
        async with writing(self._storage) as sql:
            held = await held_collection(sql, collection, KIND, generation)
            made = halves(matrix_of(points, held.dimensions))
            for (tenant, scope), places in by_scope(points).items():
                state = await rows.take_stamps(sql, held, tenant=tenant, scope=scope, rows=len(places))
                new = [(state.key, number, made[place]) for number, place in places.items()]
                await sql.many(_statements(collection).put, new)

    async def remove(self, *, collection: str, tenant: str, scope: str, numbers: Sequence[int]) -> None:
        if not numbers:
            return
        async with writing(self._storage) as sql:
            held = await rows.find_scope(sql, collection, tenant=tenant, scope=scope)
            if held is not None and held[0].kind == KIND and held[1].key:
                remove = _statements(collection).remove
                await sql.fetch(remove, scope_key=held[1].key, numbers=numbers_text(numbers))

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
        async with reading(self._storage) as sql:
            held, state = await held_scope(sql, collection, KIND, generation, tenant=tenant, scope=scope)
            queries = halves(of_length_one(vectors, held.dimensions))
            if not state.key or limit <= 0:
                return [NOTHING] * len(queries)
            params: dict[str, Any] = {"scope_key": state.key, "count": limit}
            statement = _statements(collection).nearest
            if only is not None:
                statement, params["numbers"] = _statements(collection).nearest_among, numbers_text(only.tolist())
            return [_to_nearest(await sql.fetch(statement, vector=query, **params)) for query in queries]

    async def count(self, *, collection: str, tenant: str, scope: str) -> int:
        async with reading(self._storage) as sql:
            held = await rows.find_scope(sql, collection, tenant=tenant, scope=scope)
            if held is None or held[0].kind != KIND or not held[1].key:
                return 0
            counted = await sql.fetch(_statements(collection).count, scope_key=held[1].key)
        return int(counted[0][0])

    async def close(self) -> None:
        """Do nothing."""


def _to_nearest(pairs: Sequence[Sequence[Any]]) -> Nearest:
    numbers = np.array([row[0] for row in pairs], np.int64)
    distances = np.array([row[1] for row in pairs], np.float64)
    return Nearest(numbers=numbers, similarities=np.clip(1 - distances / 2, 0, 1))


async def _make_table(sql: Connection, name: str, dimensions: int) -> None:
    parts = int((await sql.fetch(_PARTS))[0][0])
    await sql.run(f"DROP TABLE IF EXISTS {name}")
    await sql.run(
        f"CREATE TABLE {name} (scope_key BIGINT, number BIGINT, embedding HALFVEC({dimensions}) NOT NULL,"
        f" PRIMARY KEY (scope_key, number)){' PARTITION BY HASH (scope_key)' if parts else ''}"
    )
    for part in range(parts):
        its = f"FOR VALUES WITH (MODULUS {parts}, REMAINDER {part})"
        await sql.run(f"CREATE TABLE {name}_{part} PARTITION OF {name} {its}")
    if dimensions <= _INLINE_DIMENSIONS:
        await sql.run(f"ALTER TABLE {name} ALTER COLUMN embedding SET STORAGE PLAIN")
