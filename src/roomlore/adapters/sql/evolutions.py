"""What made memories."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import bindparam, select
from sqlalchemy.dialects.postgresql import insert

from roomlore.adapters.sql import schema_memories as schema
from roomlore.adapters.sql.drivers import Connection, Row
from roomlore.adapters.sql.rooms import Locks
from roomlore.adapters.sql.statements import Statement, among, begins_or_ends
from roomlore.adapters.sql.values import (
    escape,
    from_micros,
    mapping_text,
    names_text,
    pairs_text,
    read_mapping,
    read_pairs,
    to_micros,
    unescape,
)
from roomlore.core.chat.models import Usage
from roomlore.core.errors import InvalidInput
from roomlore.core.memory.models import Evolution

_e = schema.evolutions
EVOLUTION_COLUMNS = tuple(column for column in _e.c if column.name != "tenant")
_ours = _e.c.tenant == bindparam("tenant")


def _page(*where: Any) -> Any:
    chosen = select(*EVOLUTION_COLUMNS).where(_ours, _e.c.scope == bindparam("scope"), *where)
    return chosen.order_by(_e.c.evolution_id.desc()).limit(bindparam("count"))


_ADD = Statement(
    lambda: (
        insert(_e)
        .values({column.name: bindparam(column.name) for column in _e.c})
        .on_conflict_do_nothing()
        .returning(_e.c.evolution_id)
    )
)
_BY_ID = Statement(lambda: select(*EVOLUTION_COLUMNS).where(_ours, among(_e.c.evolution_id, "evolution_ids")))
_IDS_LIKE = Statement(
    lambda: (
        select(_e.c.evolution_id)
        .where(_ours, begins_or_ends(_e.c.evolution_id))
        .order_by(_e.c.evolution_id)
        .limit(bindparam("count"))
    )
)
_PAGE_FROM_END = Statement(_page)
_PAGE_BEFORE = Statement(lambda: _page(_e.c.evolution_id < bindparam("before")))


class SqlEvolutions:
    """The port `Evolutions`."""

    def __init__(self, connection: Connection, locks: Locks) -> None:
        self._sql = connection
        self._locks = locks

    async def add(self, *, tenant: str, evolution: Evolution) -> bool:
        """`InvalidInput` where its facts are no JSON."""
        self._locks.check_writing()
        return bool(await self._sql.fetch(_ADD, tenant=escape(tenant), **evolution_values(evolution)))

    async def by_id(self, *, tenant: str, evolution_ids: Sequence[str]) -> list[Evolution]:
        rows = await self._sql.fetch(_BY_ID, tenant=escape(tenant), evolution_ids=names_text(evolution_ids))
        return [to_evolution(row) for row in rows]

    async def ids_like(self, *, tenant: str, part: str, limit: int) -> list[str]:
        piece = escape(part)
        rows = await self._sql.fetch(_IDS_LIKE, tenant=escape(tenant), part=piece, size=len(piece), count=limit)
        return [unescape(row[0]) for row in rows]

    async def page(self, *, tenant: str, scope: str, before: str | None, limit: int) -> list[Evolution]:
        here = {"tenant": escape(tenant), "scope": escape(scope), "count": limit}
        if before is None:
            rows = await self._sql.fetch(_PAGE_FROM_END, **here)
        else:
            rows = await self._sql.fetch(_PAGE_BEFORE, before=escape(before), **here)
        return [to_evolution(row) for row in rows]


def evolution_values(evolution: Evolution) -> dict[str, Any]:
    return {
        "evolution_id": escape(evolution.evolution_id),
        "scope": escape(evolution.scope),
        "kind": evolution.kind,
        "status": evolution.status,
        "room_id": escape(evolution.room_id),
        "first_arrival": evolution.first_arrival,
        "last_arrival": evolution.last_arrival,
        "messages": evolution.messages,
        "prompt_name": escape(evolution.prompt_name),
        "prompt_hash": escape(evolution.prompt_hash),
        "model": escape(evolution.model),
        "input_tokens": evolution.usage.input_tokens,
        "output_tokens": evolution.usage.output_tokens,
        "raw_answer": escape(evolution.raw_answer),
        "quarantined": pairs_text(evolution.quarantined),
        "facts": _facts_text(evolution),
        "error": escape(evolution.error),
        "started_at": to_micros(evolution.started_at),
        "finished_at": to_micros(evolution.finished_at),
    }


def _facts_text(evolution: Evolution) -> str:
    try:
        return mapping_text(evolution.facts)
    except (TypeError, ValueError, RecursionError) as exc:
        raise InvalidInput(f"The facts of evolution {evolution.evolution_id!r} must be JSON: {exc}") from exc


def to_evolution(row: Row) -> Evolution:
    return Evolution(
        evolution_id=unescape(row[0]),
        scope=unescape(row[1]),
        kind=row[2],
        status=row[3],
        room_id=unescape(row[4]),
        first_arrival=row[5],
        last_arrival=row[6],
        messages=row[7],
        prompt_name=unescape(row[8]),
        prompt_hash=unescape(row[9]),
        model=unescape(row[10]),
        usage=Usage(row[11], row[12]),
        raw_answer=unescape(row[13]),
        quarantined=read_pairs(row[14]),
        facts=read_mapping(row[15]),
        error=unescape(row[16]),
        started_at=from_micros(row[17]),
        finished_at=from_micros(row[18]),
    )
