"""What is remembered, rewritten in place."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import bindparam, delete, select, update

from roomlore.adapters.sql import schema_memories as schema
from roomlore.adapters.sql.drivers import Connection
from roomlore.adapters.sql.evolutions import EVOLUTION_COLUMNS, evolution_values, to_evolution
from roomlore.adapters.sql.memory_rows import MEMORY_COLUMNS, change_values, content_values, read_sources, to_memory
from roomlore.adapters.sql.rooms import Locks
from roomlore.adapters.sql.statements import Statement, among
from roomlore.adapters.sql.values import escape, names_text, unescape
from roomlore.core.memory.models import Change, Evolution, Memory

_s, _m, _src, _c, _e = schema.scopes, schema.memories, schema.sources, schema.changes, schema.evolutions
_CONTENT = (
    "kind", "statement", "tags", "category", "strength", "confidence", "parents", "sources", "change_summary",
    "evolution_id", "made_by", "fallback", "created_at", "updated_at", "supported_at",
)  # fmt: skip
_ENTRY = ("memory", "old_statement", "reason", "actor")
_RECORD = ("room_id", "raw_answer", "quarantined", "facts", "error")

_its_key = (
    select(_s.c.scope_key)
    .where(_s.c.tenant == bindparam("its_tenant"), _s.c.scope == bindparam("its_scope"))
    .scalar_subquery()
)
_of_tenant = _m.c.tenant == bindparam("its_tenant")


def _set(table: Any, names: Sequence[str], *where: Any) -> Any:
    """The parameters of an update must not be named as columns are."""
    values = {name: bindparam(f"new_{name}", type_=table.c[name].type) for name in names}
    return update(table).where(*where).values(values)


_VERSIONS = Statement(
    lambda: (
        select(_m.c.memory_key, *MEMORY_COLUMNS)
        .select_from(_m.join(_s, _s.c.scope_key == _m.c.scope_key))
        .where(_of_tenant, _m.c.memory_key > bindparam("after"))
        .order_by(_m.c.memory_key)
        .limit(bindparam("count"))
    )
)
_STORED = Statement(
    lambda: select(_m.c.memory_id, _m.c.memory_key, _m.c.sources).where(
        _of_tenant, _m.c.scope_key == _its_key, among(_m.c.memory_id, "memory_ids")
    )
)
_REWRITE = Statement(lambda: _set(_m, _CONTENT, _m.c.memory_key == bindparam("key"), _of_tenant))
_NO_SUPPORT = Statement(
    lambda: delete(_src).where(
        _src.c.tenant == bindparam("its_tenant"),
        _src.c.room_id == bindparam("its_room"),
        _src.c.message_id == bindparam("its_message"),
        _src.c.memory_key == bindparam("key"),
    )
)
_ENTRIES = Statement(
    lambda: _set(
        _c,
        _ENTRY,
        _c.c.tenant == bindparam("its_tenant"),
        _c.c.scope_key == _its_key,
        _c.c.number == bindparam("its_number"),
    )
)
_RENAME = Statement(lambda: _set(_s, ("scope",), _s.c.tenant == bindparam("its_tenant"), _s.c.scope_key == _its_key))
_RENAME_RECORDS = Statement(
    lambda: _set(_e, ("scope",), _e.c.tenant == bindparam("its_tenant"), _e.c.scope == bindparam("its_scope"))
)
_RECORDS = Statement(
    lambda: (
        select(*EVOLUTION_COLUMNS)
        .where(_e.c.tenant == bindparam("its_tenant"), _e.c.evolution_id > bindparam("after"))
        .order_by(_e.c.evolution_id)
        .limit(bindparam("count"))
    )
)
_REWRITE_RECORD = Statement(
    lambda: _set(_e, _RECORD, _e.c.tenant == bindparam("its_tenant"), _e.c.evolution_id == bindparam("its_id"))
)


class SqlRewriting:
    """The port `Rewriting`."""

    def __init__(self, connection: Connection, locks: Locks) -> None:
        self._sql = connection
        self._locks = locks

    async def versions(self, *, tenant: str, after: int, limit: int) -> list[tuple[int, Memory]]:
        rows = await self._sql.fetch(_VERSIONS, its_tenant=escape(tenant), after=after, count=limit)
        return [(row[0], to_memory(row[1:])) for row in rows]

    async def rewrite_versions(self, *, tenant: str, scope: str, memories: Sequence[Memory]) -> None:
        self._locks.held_scope(tenant, scope)
        asked = names_text([memory.memory_id for memory in memories])
        rows = await self._sql.fetch(_STORED, **_its(tenant, scope), memory_ids=asked)
        stored = {unescape(memory_id): (key, read_sources(sources)) for memory_id, key, sources in rows}
        for memory in memories:
            key, sources = stored[memory.memory_id]
            own = {"its_tenant": escape(tenant), "key": key}
            await self._sql.fetch(_REWRITE, **own, **_new(content_values(memory)))
            for source in set(sources).difference(memory.sources):
                named = {"its_room": escape(source.room_id), "its_message": escape(source.message_id)}
                await self._sql.fetch(_NO_SUPPORT, **own, **named)

    async def rewrite_changes(self, *, tenant: str, scope: str, changes: Sequence[Change]) -> None:
        self._locks.held_scope(tenant, scope)
        for change in changes:
            values = change_values(change)
            new = _new({name: values[name] for name in _ENTRY})
            await self._sql.fetch(_ENTRIES, **_its(tenant, scope), its_number=change.number, **new)

    async def rename_scope(self, *, tenant: str, scope: str, name: str) -> None:
        self._locks.held_scope(tenant, scope)
        await self._sql.fetch(_RENAME_RECORDS, **_its(tenant, scope), new_scope=escape(name))
        await self._sql.fetch(_RENAME, **_its(tenant, scope), new_scope=escape(name))

    async def evolutions(self, *, tenant: str, after: str, limit: int) -> list[Evolution]:
        rows = await self._sql.fetch(_RECORDS, its_tenant=escape(tenant), after=escape(after), count=limit)
        return [to_evolution(row) for row in rows]

    async def rewrite_evolution(self, *, tenant: str, evolution: Evolution) -> None:
        self._locks.check_writing()
        values = evolution_values(evolution)
        new = _new({name: values[name] for name in _RECORD})
        await self._sql.fetch(_REWRITE_RECORD, its_tenant=escape(tenant), its_id=escape(evolution.evolution_id), **new)


def _its(tenant: str, scope: str) -> dict[str, str]:
    return {"its_tenant": escape(tenant), "its_scope": escape(scope)}


def _new(values: Mapping[str, Any]) -> dict[str, Any]:
    return {f"new_{name}": value for name, value in values.items()}
