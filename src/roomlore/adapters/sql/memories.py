"""The memories of a tenant, for reading."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, and_, bindparam, func, literal_column, select, tuple_

from roomlore.adapters.sql import schema_memories as schema
from roomlore.adapters.sql.drivers import Connection
from roomlore.adapters.sql.memory_rows import MEMORY_COLUMNS, to_memory
from roomlore.adapters.sql.statements import Statement, among, begins_or_ends
from roomlore.adapters.sql.values import escape, names_text, unescape, unescape_or_none
from roomlore.core.memory.models import Memory, MemoryKind, MemoryStatus

_s, _m, _src = schema.scopes, schema.memories, schema.sources
_in_scope = _s.c.scope_key == _m.c.scope_key
_ours = _m.c.tenant == bindparam("tenant")
_said_to_be_ours = _m.c.tenant.concat(literal_column("''")) == bindparam("tenant")
"""Of a memory whose key is known. No index is walked for it: SQLite would take all of a tenant's memories for few."""


def _memories(*where: Any) -> Any:
    return select(*MEMORY_COLUMNS).select_from(_m.join(_s, _in_scope)).where(_ours, *where)


def _chosen() -> ColumnElement[bool]:
    """Heads of the scopes, kinds and states that are asked for. A scope has one tenant; asked of each memory as well,
    it would take the walk off the index of scopes, which holds all that is needed here."""
    scopes = select(_s.c.scope_key).where(_s.c.tenant == bindparam("tenant"), among(_s.c.scope, "scopes"))
    kinds = and_(_m.c.head, among(_m.c.kind, "kinds"), among(_m.c.status, "states"))
    return and_(_m.c.scope_key.in_(scopes), kinds)


def _page() -> Any:
    """The keys are sorted alone: what memories say is only read of those that are on the page. They are the tenant's:
    asked of each memory again, PostgreSQL would expect few to be, and walk them all for each key."""
    latest = (_m.c.updated_at.desc(), _m.c.memory_id.desc())
    keys = select(_m.c.memory_key).where(_chosen()).order_by(*latest)
    page = keys.limit(bindparam("count")).offset(bindparam("start")).subquery("page")
    joined = page.join(_m, _m.c.memory_key == page.c.memory_key).join(_s, _in_scope)
    return select(*MEMORY_COLUMNS).select_from(joined).order_by(*latest)


def _citing() -> Any:
    mine = (_src.c.tenant == bindparam("tenant")) & (_src.c.room_id == bindparam("room_id"))
    keys = select(_src.c.memory_key).where(mine, among(_src.c.message_id, "message_ids"))
    chosen = select(*MEMORY_COLUMNS).select_from(_m.join(_s, _in_scope))
    return chosen.where(_m.c.memory_key.in_(keys), schema.ACTIVE, _said_to_be_ours).order_by(_m.c.memory_id)


def _fallbacks(*where: Any) -> Any:
    chosen = select(*MEMORY_COLUMNS, _m.c.tenant).select_from(_m.join(_s, _in_scope))
    waiting = chosen.where(schema.WAITS_FOR_A_MODEL, *where)
    return waiting.order_by(_m.c.tenant, _m.c.memory_id).limit(bindparam("count"))


def _above() -> ColumnElement[bool]:
    return tuple_(_m.c.tenant, _m.c.memory_id) > tuple_(bindparam("after_tenant"), bindparam("after_id"))


_LINEAGES = Statement(lambda: select(_m.c.memory_id, _m.c.lineage_id).where(_ours, among(_m.c.memory_id, "memory_ids")))
_HEADS = Statement(
    lambda: (
        select(*MEMORY_COLUMNS, _m.c.merged_into)
        .select_from(_m.join(_s, _in_scope))
        .where(_ours, among(_m.c.lineage_id, "lineage_ids"), _m.c.head)
    )
)
_BY_ID = Statement(lambda: _memories(among(_m.c.memory_id, "memory_ids")))
_PAGE = Statement(_page)
_COUNT = Statement(lambda: select(func.count()).select_from(_m).where(_chosen()))
_LATEST = Statement(
    lambda: (
        select(_m.c.lineage_id, func.max(_m.c.version))
        .where(_ours, among(_m.c.lineage_id, "lineage_ids"))
        .group_by(_m.c.lineage_id)
    )
)
_LINEAGE = Statement(lambda: _memories(_m.c.lineage_id == bindparam("lineage_id")).order_by(_m.c.version))
_IDS_LIKE = Statement(
    lambda: (
        select(_m.c.memory_id)
        .where(_ours, begins_or_ends(_m.c.memory_id))
        .order_by(_m.c.memory_id)
        .limit(bindparam("count"))
    )
)
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
        """Step by step along the merges: SQLite, once it has statistics, walks whole tables for a recursive query."""
        rows = await self._sql.fetch(_LINEAGES, tenant=escape(tenant), memory_ids=names_text(memory_ids))
        on_the_way = {unescape(asked): unescape(lineage) for asked, lineage in rows}
        found: dict[str, Memory] = {}
        while on_the_way:
            heads = await self._heads_of(tenant, set(on_the_way.values()))
            reached = {asked: heads[lineage] for asked, lineage in on_the_way.items() if lineage in heads}
            found |= {asked: head for asked, (head, merged_into) in reached.items() if merged_into is None}
            on_the_way = {asked: into for asked, (_, into) in reached.items() if into is not None}
        return found

    async def _heads_of(self, tenant: str, lineages: Iterable[str]) -> dict[str, tuple[Memory, str | None]]:
        """Of each lineage its head, and the lineage that it was merged into."""
        rows = await self._sql.fetch(_HEADS, tenant=escape(tenant), lineage_ids=names_text(sorted(lineages)))
        read = [(to_memory(row), unescape_or_none(row[-1])) for row in rows]
        return {head.lineage_id: (head, merged_into) for head, merged_into in read}

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

    async def latest_versions(self, *, tenant: str, lineage_ids: Sequence[str]) -> dict[str, int]:
        rows = await self._sql.fetch(_LATEST, tenant=escape(tenant), lineage_ids=names_text(lineage_ids))
        return {unescape(row[0]): row[1] for row in rows}

    async def ids_like(self, *, tenant: str, part: str, limit: int) -> list[str]:
        piece = escape(part)
        rows = await self._sql.fetch(_IDS_LIKE, tenant=escape(tenant), part=piece, size=len(piece), count=limit)
        return [unescape(row[0]) for row in rows]

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
