"""The port `Usage`: used contexts and their feedback."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, bindparam, func, select, update
from sqlalchemy.dialects.postgresql import insert

from roomlore.adapters.sql import schema
from roomlore.adapters.sql.engine import Statement
from roomlore.adapters.sql.locks import Repository
from roomlore.adapters.sql.rows import (
    escape,
    escape_or_none,
    from_micros,
    list_text,
    mapping_text,
    read_list,
    read_mapping,
    to_micros,
    unescape,
    unescape_or_none,
)
from roomlore.core.models import ContextUsageRecord

_u = schema.usage_records
_named = (_u.c.tenant == bindparam("tenant")) & (_u.c.context_id == bindparam("own_id"))


def _page(*where: ColumnElement[bool]) -> Select[Any]:
    above = (_u.c.tenant == bindparam("tenant"), _u.c.context_id > bindparam("after"))
    return select(_u).where(*above, *where).order_by(_u.c.context_id).limit(bindparam("count"))


def _judged() -> ColumnElement[bool]:
    return _u.c.success_indicator.is_not(None)


_RECORD = Statement(lambda: insert(_u).on_conflict_do_nothing())
_FIND = Statement(lambda: select(_u).where(_named))
_RESPOND = Statement(
    lambda: update(_u).where(_named).values(llm_response=bindparam("answer")).returning(_u.c.context_id)
)
_JUDGE = Statement(
    lambda: (
        update(_u)
        .where(_named)
        .values(
            user_feedback=func.coalesce(bindparam("feedback", type_=_u.c.user_feedback.type), _u.c.user_feedback),
            success_indicator=func.coalesce(
                bindparam("score", type_=_u.c.success_indicator.type), _u.c.success_indicator
            ),
        )
        .returning(_u.c.context_id)
    )
)
_ALL = Statement(_page)
_ALL_JUDGED = Statement(lambda: _page(_judged()))
_ROOM = Statement(lambda: _page(_u.c.room_id == bindparam("room_id")))
_ROOM_JUDGED = Statement(lambda: _page(_u.c.room_id == bindparam("room_id"), _judged()))
_PAGES = {(False, False): _ALL, (False, True): _ALL_JUDGED, (True, False): _ROOM, (True, True): _ROOM_JUDGED}


class SqlUsage(Repository):
    """The port `Usage`."""

    async def record(self, *, tenant: str, records: Sequence[ContextUsageRecord]) -> None:
        self._locks.check_writing()
        if records:
            await self._sql.many(_RECORD, [_row(tenant, record) for record in records])

    async def find(self, *, tenant: str, context_id: str) -> ContextUsageRecord | None:
        rows = await self._sql.fetch(_FIND, tenant=escape(tenant), own_id=escape(context_id))
        return _to_record(rows[0]) if rows else None

    async def respond(self, *, tenant: str, context_id: str, llm_response: str) -> bool:
        self._locks.check_writing()
        rows = await self._sql.fetch(
            _RESPOND, tenant=escape(tenant), own_id=escape(context_id), answer=escape(llm_response)
        )
        return bool(rows)

    async def judge(self, *, tenant: str, context_id: str, feedback: str | None, score: float | None) -> bool:
        """Store feedback. None keeps a value."""
        self._locks.check_writing()
        rows = await self._sql.fetch(
            _JUDGE, tenant=escape(tenant), own_id=escape(context_id), feedback=escape_or_none(feedback), score=score
        )
        return bool(rows)

    async def page(
        self, *, tenant: str, room_id: str | None, judged: bool, after: str | None, limit: int
    ) -> list[ContextUsageRecord]:
        params = {"tenant": escape(tenant), "after": escape(after or ""), "count": limit}
        if room_id is not None:
            params["room_id"] = escape(room_id)
        rows = await self._sql.fetch(_PAGES[room_id is not None, judged], **params)
        return [_to_record(row) for row in rows]


def _row(tenant: str, record: ContextUsageRecord) -> tuple[Any, ...]:
    return (
        escape(tenant),
        escape(record.context_id),
        escape(record.room_id),
        escape(record.user_id),
        escape(record.trigger_message_id),
        record.strategy,
        list_text(record.context_message_ids),
        mapping_text(record.relevance_scores),
        record.tokens,
        record.window_tokens,
        record.build_ms,
        to_micros(record.created_at),
        escape_or_none(record.degraded),
        escape_or_none(record.arm),
        escape_or_none(record.llm_response),
        escape_or_none(record.user_feedback),
        record.success_indicator,
    )


def _to_record(row: Sequence[Any]) -> ContextUsageRecord:
    return ContextUsageRecord(
        context_id=unescape(row[1]),
        room_id=unescape(row[2]),
        user_id=unescape(row[3]),
        trigger_message_id=unescape(row[4]),
        strategy=row[5],
        context_message_ids=read_list(row[6]),
        relevance_scores=read_mapping(row[7]),
        tokens=row[8],
        window_tokens=row[9],
        build_ms=row[10],
        created_at=from_micros(row[11]),
        degraded=unescape_or_none(row[12]),
        arm=unescape_or_none(row[13]),
        llm_response=unescape_or_none(row[14]),
        user_feedback=unescape_or_none(row[15]),
        success_indicator=row[16],
    )
