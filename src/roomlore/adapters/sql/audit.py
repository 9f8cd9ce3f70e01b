"""Rows as they stand, for checking."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import and_, bindparam, func, literal_column, select, tuple_

from roomlore.adapters.sql import schema
from roomlore.adapters.sql import schema_memories as tables
from roomlore.adapters.sql.audit_messages import DAMAGE, MessageAudit
from roomlore.adapters.sql.drivers import Row
from roomlore.adapters.sql.memory_rows import CHANGE_COLUMNS, MEMORY_COLUMNS, read_sources, to_change, to_memory
from roomlore.adapters.sql.statements import Statement, among
from roomlore.adapters.sql.values import escape, names_text, unescape, unescape_or_none
from roomlore.core.memory.models import Source
from roomlore.core.soundness.scope import StoredVersion
from roomlore.ports.audit import MarkAhead, ReadChange, ReadSupport, ReadVersion

_s, _m, _c, _src = tables.scopes, tables.memories, tables.changes, tables.sources
_r, _w = schema.rooms, tables.watermarks
_key = (
    select(_s.c.scope_key).where(_s.c.tenant == bindparam("tenant"), _s.c.scope == bindparam("scope")).scalar_subquery()
)
_PLACE = ("after_room", "after_message", "after_number")


def _versions() -> Any:
    """By key, so that a page begins where the last one ended. Not along the keys: between two rows of a scope lie those
    of all others."""
    place = _m.c.memory_key + literal_column("0")
    columns = (*MEMORY_COLUMNS, _m.c.memory_key, _m.c.head, _m.c.merged_into)
    rows = select(*columns).select_from(_m.join(_s, _s.c.scope_key == _m.c.scope_key))
    chosen = rows.where(_m.c.scope_key == _key, place > bindparam("after"))
    return chosen.order_by(place).limit(bindparam("count"))


def _log() -> Any:
    chosen = select(*CHANGE_COLUMNS).where(_c.c.scope_key == _key, _c.c.number > bindparam("after"))
    return chosen.order_by(_c.c.number).limit(bindparam("count"))


def _found_from() -> Any:
    here = (_src.c.tenant == bindparam("tenant")) & (_src.c.room_id == bindparam("room_id"))
    rows = select(_src.c.message_id, _src.c.memory_key).join(_m, _m.c.memory_key == _src.c.memory_key)
    return rows.where(here, among(_src.c.message_id, "message_ids"), _m.c.scope_key == _key)


def _support_rows(*where: Any) -> Any:
    """In the order of the table's key. The sources are read beside each row: both are of one moment."""
    place = (_src.c.room_id, _src.c.message_id, _src.c.memory_key)
    given = [bindparam(name, type_=column.type) for name, column in zip(_PLACE, place, strict=True)]
    its = and_(_m.c.memory_key == _src.c.memory_key, _m.c.tenant == _src.c.tenant)
    rows = _src.outerjoin(_m, its).outerjoin(_s, _s.c.scope_key == _m.c.scope_key)
    chosen = select(*place, _s.c.scope, _m.c.memory_id, _m.c.sources).select_from(rows)
    chosen = chosen.where(_src.c.tenant == bindparam("tenant"), tuple_(*place) > tuple_(*given), *where)
    return chosen.order_by(*place).limit(bindparam("count"))


def _ahead() -> Any:
    """No room has an empty name: what stands there is no arrival."""
    its = (_r.c.tenant == _w.c.tenant) & (_r.c.room_id == _w.c.room_id)
    last = func.coalesce(_r.c.next_arrival - literal_column("1"), literal_column("0"))
    rows = select(_w.c.room_id, _w.c.name, _w.c.arrival, last).select_from(_w.outerjoin(_r, its))
    chosen = rows.where(_w.c.tenant == bindparam("tenant"), _w.c.room_id != literal_column("''"), _w.c.arrival > last)
    return chosen.order_by(_w.c.room_id, _w.c.name)


_VERSIONS = Statement(_versions)
_LOG = Statement(_log)
_FOUND_FROM = Statement(_found_from)
_SUPPORT_ROWS = Statement(_support_rows)
_SUPPORT_ROWS_OF_SCOPE = Statement(lambda: _support_rows(_m.c.scope_key == _key))
_AHEAD = Statement(_ahead)


class SqlAudit(MessageAudit):
    """The port `Audit`."""

    async def versions(self, *, tenant: str, scope: str, after: int, limit: int) -> list[ReadVersion]:
        here = {"tenant": escape(tenant), "scope": escape(scope)}
        return [_version(row) for row in await self._sql.fetch(_VERSIONS, after=after, count=limit, **here)]

    async def log(self, *, tenant: str, scope: str, after: int, limit: int) -> list[ReadChange]:
        here = {"tenant": escape(tenant), "scope": escape(scope)}
        return [_change(scope, row) for row in await self._sql.fetch(_LOG, after=after, count=limit, **here)]

    async def found_from(
        self, *, tenant: str, scope: str, room_id: str, message_ids: Sequence[str]
    ) -> set[tuple[str, int]]:
        rows = await self._sql.fetch(
            _FOUND_FROM,
            tenant=escape(tenant),
            scope=escape(scope),
            room_id=escape(room_id),
            message_ids=names_text(message_ids),
        )
        return {(unescape(message_id), number) for message_id, number in rows}

    async def support_rows(
        self, *, tenant: str, scope: str | None, after: tuple[str, str, int], limit: int
    ) -> list[ReadSupport]:
        here: dict[str, Any] = {"tenant": escape(tenant), "count": limit}
        here |= dict(zip(_PLACE, (escape(after[0]), escape(after[1]), after[2]), strict=True))
        if scope is None:
            rows = await self._sql.fetch(_SUPPORT_ROWS, **here)
        else:
            rows = await self._sql.fetch(_SUPPORT_ROWS_OF_SCOPE, scope=escape(scope), **here)
        return [_supported(row) for row in rows]

    async def marks_ahead(self, *, tenant: str) -> list[MarkAhead]:
        rows = await self._sql.fetch(_AHEAD, tenant=escape(tenant))
        return [MarkAhead(unescape(room_id), unescape(name), arrival, last) for room_id, name, arrival, last in rows]


def _version(row: Row) -> ReadVersion:
    number, head, merged_into = row[-3:]
    memory_id = unescape(row[0])
    try:
        stored = StoredVersion(number, to_memory(row), bool(head), unescape_or_none(merged_into))
    except DAMAGE as error:
        return ReadVersion(number, memory_id, None, f"{type(error).__name__}: {error}"[:200])
    return ReadVersion(number, memory_id, stored)


def _supported(row: Row) -> ReadSupport:
    number, scope, memory_id, sources = row[2:]
    place = Source(unescape(row[0]), unescape(row[1]))
    try:
        rests = None if sources is None else place in read_sources(sources)
    except DAMAGE:
        rests = None
    return ReadSupport(
        place.room_id, place.message_id, number, unescape_or_none(scope), unescape_or_none(memory_id), rests
    )


def _change(scope: str, row: Row) -> ReadChange:
    try:
        return ReadChange(row[0], to_change(scope, row))
    except DAMAGE as error:
        return ReadChange(row[0], None, f"{type(error).__name__}: {error}"[:200])
