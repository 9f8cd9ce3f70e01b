"""The memories of a tenant, for reading."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, and_, bindparam, func, select, tuple_

from roomlore.adapters.sql import schema_memories as schema
from roomlore.adapters.sql.drivers import Connection
from roomlore.adapters.sql.memory_rows import MEMORY_COLUMNS, to_memory
from roomlore.adapters.sql.statements import Statement, among
from roomlore.adapters.sql.values import escape, names_text, unescape
from roomlore.core.memory.models import Memory, MemoryKind, MemoryStatus

_s, _m, _src = schema.scopes, schema.memories, schema.sources
_in_scope = (_s.c.scope_key == _m.c.scope_key) & (_s.c.tenant == _m.c.tenant)
_ours = _m.c.tenant == bindparam("tenant")


def _memories(*where: Any) -> Any:
    return select(*MEMORY_COLUMNS).select_from(_m.join(_s, _in_scope)).where(_ours, *where)


def _heads() -> Any:
    """From each version to its lineage, and on along `merged_into`; a lineage never comes back to itself."""
    asked = select(_m.c.memory_id.label("asked"), _m.c.lineage_id.label("lineage"))
    way = asked.where(_ours, among(_m.c.memory_id, "memory_ids")).cte("way", recursive=True)
    further = select(way.c.asked, _m.c.merged_into).where(
        _ours, _m.c.lineage_id == way.c.lineage, _m.c.head, _m.c.merged_into.is_not(None)
    )
    way = way.union_all(further)
    end = and_(_m.c.lineage_id == way.c.lineage, _m.c.head, _m.c.merged_into.is_(None))
    joined = way.join(_m, end).join(_s, _in_scope)
    return select(*MEMORY_COLUMNS, way.c.asked).select_from(joined).where(_ours)


def _chosen() -> ColumnElement[bool]:
    """Heads of the scopes, kinds and states that are asked for."""
    scopes = select(_s.c.scope_key).where(_s.c.tenant == bindparam("tenant"), among(_s.c.scope, "scopes"))
    kinds = and_(_m.c.head, among(_m.c.kind, "kinds"), among(_m.c.status, "states"))
    return and_(_ours, _m.c.scope_key.in_(scopes), kinds)


def _page() -> Any:
    """The keys are sorted alone: what memories say is only read of those that are on the page."""
    latest = (_m.c.updated_at.desc(), _m.c.memory_id.desc())
    keys = select(_m.c.memory_key).where(_chosen()).order_by(*latest)
    page = keys.limit(bindparam("count")).offset(bindparam("start")).subquery("page")
    joined = page.join(_m, _m.c.memory_key == page.c.memory_key).join(_s, _in_scope)
    return select(*MEMORY_COLUMNS).select_from(joined).where(_ours).order_by(*latest)


def _citing() -> Any:
    mine = (_src.c.tenant == bindparam("tenant")) & (_src.c.room_id == bindparam("room_id"))
    keys = select(_src.c.memory_key).where(mine, among(_src.c.message_id, "message_ids"))
    return _memories(_m.c.memory_key.in_(keys), schema.ACTIVE).order_by(_m.c.memory_id)


def _fallbacks(*where: Any) -> Any:
    chosen = select(*MEMORY_COLUMNS, _m.c.tenant).select_from(_m.join(_s, _in_scope))
    waiting = chosen.where(schema.WAITS_FOR_A_MODEL, *where)
    return waiting.order_by(_m.c.tenant, _m.c.memory_id).limit(bindparam("count"))


def _above() -> ColumnElement[bool]:
    return tuple_(_m.c.tenant, _m.c.memory_id) > tuple_(bindparam("after_tenant"), bindparam("after_id"))


_BY_ID = Statement(lambda: _memories(among(_m.c.memory_id, "memory_ids")))
_HEADS = Statement(_heads)
_PAGE = Statement(_page)
_COUNT = Statement(lambda: select(func.count()).select_from(_m).where(_chosen()))
_LINEAGE = Statement(lambda: _memories(_m.c.lineage_id == bindparam("lineage_id")).order_by(_m.c.version))
_CITING = Statement(_citing)
_FALLBACKS = Statement(_fallbacks)
_FALLBACKS_AFTER = Statement(lambda: _fallbacks(_above()))


class SqlMemories:
    """The port `Memories`."""

    def __init__(self, connection: Connection) -> None:
        self._sql = connection

    async def by_id(self, *, tenant: str, memory_ids: Sequence[str]) -> list[Memory]:
        rows = await self._sql.fetch(_BY_ID, tenant=escape(tenant), memory_ids=names_text(memory_ids))
        return [to_memory(row) for row in rows]

    async def heads(self, *, tenant: str, memory_ids: Sequence[str]) -> dict[str, Memory]:
        rows = await self._sql.fetch(_HEADS, tenant=escape(tenant), memory_ids=names_text(memory_ids))
        return {unescape(row[-1]): to_memory(row) for row in rows}

    async def page(
        self,
        *,
        tenant: str,
        scopes: Sequence[str],
        kinds: Sequence[MemoryKind],
        status: MemoryStatus | None,
        limit: int,
        offset: int = 0,
    ) -> list[Memory]:
        chosen = _filter(tenant, scopes, kinds, status)
        rows = await self._sql.fetch(_PAGE, count=limit, start=offset, **chosen)
        return [to_memory(row) for row in rows]

    async def count(
        self, *, tenant: str, scopes: Sequence[str], kinds: Sequence[MemoryKind], status: MemoryStatus | None
    ) -> int:
        rows = await self._sql.fetch(_COUNT, **_filter(tenant, scopes, kinds, status))
        return int(rows[0][0])

    async def lineage(self, *, tenant: str, lineage_id: str) -> list[Memory]:
        rows = await self._sql.fetch(_LINEAGE, tenant=escape(tenant), lineage_id=escape(lineage_id))
        return [to_memory(row) for row in rows]

    async def citing(self, *, tenant: str, room_id: str, message_ids: Sequence[str]) -> list[Memory]:
        """By id."""
        here = {"tenant": escape(tenant), "room_id": escape(room_id)}
        rows = await self._sql.fetch(_CITING, message_ids=names_text(message_ids), **here)
        return [to_memory(row) for row in rows]

    async def fallbacks(self, *, after: str | None, limit: int) -> list[tuple[str, Memory]]:
        """An id has no NUL, so the last one is where the tenant ends."""
        if after is None:
            rows = await self._sql.fetch(_FALLBACKS, count=limit)
        else:
            tenant, _, memory_id = after.rpartition("\0")
            above = {"after_tenant": escape(tenant), "after_id": escape(memory_id)}
            rows = await self._sql.fetch(_FALLBACKS_AFTER, count=limit, **above)
        return [(unescape(row[-1]), to_memory(row)) for row in rows]


def _filter(
    tenant: str, scopes: Sequence[str], kinds: Sequence[MemoryKind], status: MemoryStatus | None
) -> dict[str, str]:
    states = list(MemoryStatus) if status is None else [status]
    return {
        "tenant": escape(tenant),
        "scopes": names_text(scopes),
        "kinds": names_text([kind.value for kind in kinds]),
        "states": names_text([state.value for state in states]),
    }
