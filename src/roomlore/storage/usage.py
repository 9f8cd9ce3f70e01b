"""Used contexts and their feedback."""

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Double, Select, bindparam, cast, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert

from roomlore.core.experiments import ArmSums, UsageSelection
from roomlore.core.models import ContextUsageRecord
from roomlore.storage import schema
from roomlore.storage.engine import Repository, Row, Statement
from roomlore.storage.rows import to_micros
from roomlore.storage.shapes import USAGE

_EARLIEST = -(2**62)

_u = schema.usage_records
_row = USAGE.whole_row("tenant", "mean_score")
_named = (_u.c.tenant == bindparam("tenant")) & (_u.c.context_id == bindparam("own_id"))


@cache
def _page(*, of_room: bool, of_arm: bool, judged: bool) -> Statement:
    conditions = [_u.c.tenant == bindparam("tenant"), _u.c.context_id > bindparam("after")]
    conditions.append(_u.c.created_at >= bindparam("since"))
    if of_room:
        conditions.append(_u.c.room_id == bindparam("room_id"))
    if of_arm:
        conditions.append(_u.c.arm == bindparam("arm"))
    if judged:
        conditions.append(_u.c.success_indicator.is_not(None))
    return Statement(
        lambda: select(*USAGE.columns).where(*conditions).order_by(_u.c.context_id).limit(bindparam("count"))
    )


def _sums() -> Select[Any]:
    score, success = _u.c.mean_score, _u.c.success_indicator

    def total(column: ColumnElement[Any]) -> ColumnElement[Any]:
        return cast(func.coalesce(func.sum(column), 0), Double)

    return (
        select(
            _u.c.arm,
            func.count(),
            func.count(_u.c.room_id.distinct()),
            total(_u.c.tokens),
            total(_u.c.window_tokens),
            total(_u.c.build_ms),
            func.count(score),
            total(score),
            func.count(_u.c.degraded),
            func.count(_u.c.llm_response),
            func.count(success),
            total(success),
            total(success * success),
        )
        .where(_u.c.tenant == bindparam("tenant"), _u.c.created_at >= bindparam("since"))
        .group_by(_u.c.arm)
    )


def _expired() -> Select[Any]:
    oldest = (
        select(_u.c.context_id, _u.c.created_at)
        .where(_u.c.tenant == bindparam("tenant"))
        .order_by(_u.c.context_id)
        .limit(bindparam("count"))
        .subquery()
    )
    return select(oldest.c.context_id).where(oldest.c.created_at < bindparam("before"))


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
_SUMS = Statement(_sums)
_NEXT_TENANT = Statement(
    lambda: select(_u.c.tenant).where(_u.c.tenant > bindparam("after")).order_by(_u.c.tenant).limit(1)
)
_EXPIRE = Statement(
    lambda: (
        delete(_u)
        .where(_u.c.tenant == bindparam("own_tenant"), _u.c.context_id.in_(_expired()))
        .returning(_u.c.context_id)
    )
)


class Usage(Repository):
    """The usage records of contexts, with responses and feedback."""

    async def record(self, *, records: Sequence[ContextUsageRecord]) -> None:
        """Store the records; one whose `context_id` exists already is not changed."""
        self._locks.check_writing()
        if records:
            await self._sql.many(_RECORD, [_row(record, self._tenant, record.mean_score) for record in records])

    async def find(self, *, context_id: str) -> ContextUsageRecord | None:
        rows = await self._sql.fetch(_FIND, tenant=self._tenant, own_id=context_id)
        return USAGE.read(rows[0]) if rows else None

    async def respond(self, *, context_id: str, llm_response: str) -> bool:
        """Record the model's response. Return False if there is no such record."""
        self._locks.check_writing()
        rows = await self._sql.fetch(_RESPOND, tenant=self._tenant, own_id=context_id, answer=llm_response)
        return bool(rows)

    async def judge(self, *, context_id: str, feedback: str | None, score: float | None) -> bool:
        """Record feedback; None keeps a value. Return False if there is no such record."""
        self._locks.check_writing()
        rows = await self._sql.fetch(
            _JUDGE,
            tenant=self._tenant,
            own_id=context_id,
            feedback=feedback,
            score=score,
        )
        return bool(rows)

    async def page(self, *, selection: UsageSelection, after: str | None, limit: int) -> list[ContextUsageRecord]:
        """Return the selected records with `context_id` above `after`, ascending."""
        params = {"tenant": self._tenant, "after": after or "", "count": limit}
        params["since"] = _EARLIEST if selection.since is None else to_micros(selection.since)
        if selection.room_id is not None:
            params["room_id"] = selection.room_id
        if selection.arm is not None:
            params["arm"] = selection.arm
        statement = _page(of_room="room_id" in params, of_arm="arm" in params, judged=selection.judged)
        return [USAGE.read(row) for row in await self._sql.fetch(statement, **params)]

    async def sums(self, *, since: datetime) -> list[ArmSums]:
        """Return the sums of each arm that has records made at or after this time, by name; None comes first."""
        rows = await self._sql.fetch(_SUMS, tenant=self._tenant, since=to_micros(since))
        sums_of_arms = [_arm_sums(row) for row in rows]
        return sorted(sums_of_arms, key=lambda sums: (sums.arm is not None, sums.arm or ""))

    async def tenants(self) -> list[str]:
        """Return the tenants that have records, by name."""
        tenants: list[str] = []
        while rows := await self._sql.fetch(_NEXT_TENANT, after=tenants[-1] if tenants else ""):
            tenants.append(rows[0][0])
        return tenants

    async def expire(self, *, before: datetime, limit: int) -> int:
        """Delete those of the first `limit` records by id that were made before this time; return how many. Ids grow
        with time, so there are no more if fewer than `limit` were deleted."""
        self._locks.check_writing()
        own = self._tenant
        rows = await self._sql.fetch(_EXPIRE, own_tenant=own, tenant=own, before=to_micros(before), count=limit)
        return len(rows)


def _arm_sums(row: Row) -> ArmSums:
    arm, contexts, rooms, tokens, window_tokens, *others = row
    build_ms, scored, scores, degraded, answered, judged, success, success_squares = others
    return ArmSums(
        arm=arm,
        contexts=contexts,
        rooms=rooms,
        tokens=int(tokens),
        window_tokens=int(window_tokens),
        build_ms=build_ms,
        scored=scored,
        scores=scores,
        degraded=degraded,
        answered=answered,
        judged=judged,
        success=success,
        success_squares=success_squares,
    )
