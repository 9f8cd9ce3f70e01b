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
)
from roomlore.adapters.sql.shapes import USAGE
from roomlore.core.models import ContextUsageRecord

_u = schema.usage_records
_row = USAGE.whole_row("tenant", "mean_score")
_named = (_u.c.tenant == bindparam("tenant")) & (_u.c.context_id == bindparam("own_id"))


def _page(*where: ColumnElement[bool]) -> Select[Any]:
    above = (_u.c.tenant == bindparam("tenant"), _u.c.context_id > bindparam("after"))
    return select(*USAGE.columns).where(*above, *where).order_by(_u.c.context_id).limit(bindparam("count"))


def _judged() -> ColumnElement[bool]:
    return _u.c.success_indicator.is_not(None)


_RECORD = Statement(lambda: insert(_u).on_conflict_do_nothing())
_FIND = Statement(lambda: select(*USAGE.columns).where(_named))
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
            await self._sql.many(_RECORD, [_row(record, escape(tenant), record.mean_score) for record in records])

    async def find(self, *, tenant: str, context_id: str) -> ContextUsageRecord | None:
        rows = await self._sql.fetch(_FIND, tenant=escape(tenant), own_id=escape(context_id))
        return USAGE.read(rows[0]) if rows else None

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
        return [USAGE.read(row) for row in rows]
