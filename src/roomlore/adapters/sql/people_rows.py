"""Every row of a tenant, whatever table it is in, by its key."""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Column, Table, Text, bindparam, cast, delete, select, tuple_, update

from roomlore.adapters.sql import schema_memories
from roomlore.adapters.sql.drivers import Connection
from roomlore.adapters.sql.rooms import Locks
from roomlore.adapters.sql.schema import message_words, metadata, rooms
from roomlore.adapters.sql.statements import Statement
from roomlore.adapters.sql.values import escape, unescape
from roomlore.core.plain import texts_in
from roomlore.core.privacy.messages import each_text
from roomlore.ports.privacy import StoredRow

_JSON = frozenset(
    {
        "addressed", "closes", "context_message_ids", "facts", "keywords", "memory", "mentions", "metadata", "parents",
        "partners", "quarantined", "relevance_scores", "reply", "scopes", "settings", "sources", "state", "tags",
    }
)  # fmt: skip
_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_OF_TENANTS = {table.name: table for table in metadata.sorted_tables if "tenant" in table.c}
assert schema_memories.scopes.name in _OF_TENANTS


def _text_columns(table: Table) -> list[Column[Any]]:
    return [column for column in table.c if isinstance(column.type, Text) and column.name != "tenant"]


def _keys(table: Table) -> list[Column[Any]]:
    """Without the tenant, which every query names."""
    return [column for column in table.primary_key.columns if column.name != "tenant"]


@lru_cache
def _page(name: str, *, after: bool) -> Statement:
    table = _OF_TENANTS[name]
    keys = _keys(table)
    shown = [cast(column, Text) if table is message_words else column for column in _text_columns(table)]

    def build() -> Any:
        chosen = select(*keys, *shown).where(table.c.tenant == bindparam("its_tenant"))
        if after:
            given = [bindparam(f"key_{place}", type_=column.type) for place, column in enumerate(keys)]
            chosen = chosen.where(tuple_(*keys) > tuple_(*given))
        return chosen.order_by(*keys).limit(bindparam("count"))

    return Statement(build)


def _is_row(table: Table) -> Any:
    found = table.c.tenant == bindparam("its_tenant")
    for place, column in enumerate(_keys(table)):
        found &= column == bindparam(f"key_{place}", type_=column.type)
    return found


@lru_cache
def _drop(name: str) -> Statement:
    return Statement(lambda: delete(_OF_TENANTS[name]).where(_is_row(_OF_TENANTS[name])))


@lru_cache
def _find(name: str, columns: tuple[str, ...]) -> Statement:
    table = _OF_TENANTS[name]
    return Statement(lambda: select(*[table.c[column] for column in columns]).where(_is_row(table)))


@lru_cache
def _step(name: str) -> Statement:
    table = _OF_TENANTS[name]
    its_room = select(table.c.room_key).where(_is_row(table)).scalar_subquery()
    return Statement(lambda: update(rooms).where(rooms.c.room_key == its_room).values(revision=rooms.c.revision + 1))


@lru_cache
def _set(name: str, columns: tuple[str, ...]) -> Statement:
    table = _OF_TENANTS[name]
    values = {column: bindparam(f"new_{column}", type_=table.c[column].type) for column in columns}
    return Statement(lambda: update(table).where(_is_row(table)).values(values))


class SqlStoredRows:
    """The port `StoredRows`."""

    def __init__(self, connection: Connection, locks: Locks) -> None:
        self._sql = connection
        self._locks = locks

    async def tables(self) -> Sequence[str]:
        return list(_OF_TENANTS)

    async def page(self, *, tenant: str, table: str, after: tuple[Any, ...] | None, limit: int) -> list[StoredRow]:
        asked = {} if after is None else _named(after)
        statement = _page(table, after=after is not None)
        rows = await self._sql.fetch(statement, its_tenant=escape(tenant), count=limit, **asked)
        keys, columns = len(_keys(_OF_TENANTS[table])), _text_columns(_OF_TENANTS[table])
        return [_to_row(row, keys, columns) for row in rows]

    async def redact(
        self, *, tenant: str, table: str, key: tuple[Any, ...], columns: Sequence[str], change: Callable[[str], str]
    ) -> None:
        self._locks.check_writing()
        own = {"its_tenant": escape(tenant), **_named(key)}
        for row in await self._sql.fetch(_find(table, tuple(columns)), **own):
            stored = dict(zip(columns, row, strict=True))
            new = {name: _changed(name, text, change) for name, text in stored.items()}
            different = tuple(name for name in columns if new[name] != stored[name])
            if different:
                given = {f"new_{name}": new[name] for name in different}
                await self._sql.fetch(_set(table, different), **own, **given)
                if "room_key" in _OF_TENANTS[table].c:
                    await self._sql.fetch(_step(table), **own)

    async def drop(self, *, tenant: str, table: str, key: tuple[Any, ...]) -> None:
        self._locks.check_writing()
        await self._sql.fetch(_drop(table), its_tenant=escape(tenant), **_named(key))


def _named(key: tuple[Any, ...]) -> dict[str, Any]:
    return {f"key_{place}": value for place, value in enumerate(key)}


def _to_row(row: Sequence[Any], keys: int, columns: Sequence[Column[Any]]) -> StoredRow:
    """A key stays as it is stored: it is only ever handed back."""
    texts = {
        column.name: tuple(_texts(column.name, text))
        for column, text in zip(columns, row[keys:], strict=True)
        if text is not None
    }
    return StoredRow(tuple(row[:keys]), texts)


def _texts(column: str, stored: str) -> Iterator[str]:
    return texts_in(_read(column, unescape(stored)))


def _changed(column: str, stored: str | None, change: Callable[[str], str]) -> str | None:
    if stored is None:
        return None
    value = _read(column, unescape(stored))
    changed = each_text(value, change)
    if changed == value:
        return stored
    return escape(changed if isinstance(changed, str) else _ENCODE(changed))


def _read(column: str, text: str) -> Any:
    if column not in _JSON:
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
