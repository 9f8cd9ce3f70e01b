"""The port `Tenants`: their limits, and what they used."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, bindparam, case, cast, delete, func, select
from sqlalchemy.dialects.postgresql import insert

from roomlore.adapters.sql import schema
from roomlore.adapters.sql.engine import Repository, Statement
from roomlore.adapters.sql.rows import from_micros, mapping_text, to_micros

_l, _c, _r, _k = schema.tenant_limits, schema.tenant_counts, schema.rooms, schema.api_keys


def _set() -> Any:
    given = insert(_l).values({column.name: bindparam(column.name) for column in _l.c})
    new = {"limits": given.excluded.limits, "changed_at": given.excluded.changed_at}
    return given.on_conflict_do_update(index_elements=[_l.c.tenant], set_=new)


def _lock() -> Any:
    """Lock the row of a tenant, which is made if there is none, and return its limits."""
    given = insert(_l).values({column.name: bindparam(column.name) for column in _l.c})
    same = given.on_conflict_do_update(index_elements=[_l.c.tenant], set_={"limits": _l.c.limits})
    return same.returning(_l.c.limits)


def _count() -> Any:
    """Add to the amount of the period, or begin it. What a process with a slow clock adds counts for the later one."""
    given = insert(_c).values({column.name: bindparam(column.name) for column in _c.c})
    new = given.excluded
    later = new.period > _c.c.period
    amount = case((later, new.amount), else_=_c.c.amount + new.amount)
    period = case((later, new.period), else_=_c.c.period)
    upsert = given.on_conflict_do_update(
        index_elements=[_c.c.tenant, _c.c.name], set_={"amount": amount, "period": period}
    )
    return upsert.returning(_c.c.amount)


_LIMITS = Statement(lambda: select(_l.c.tenant, _l.c.limits))
_LOCK = Statement(_lock)
_SET = Statement(_set)
_UNSET = Statement(lambda: delete(_l).where(_l.c.tenant == bindparam("tenant")))
_COUNT = Statement(_count, brief=True)
_COUNTED = Statement(lambda: select(_c.c.name, _c.c.period, _c.c.amount).where(_c.c.tenant == bindparam("tenant")))
_KEPT = Statement(
    lambda: select(cast(func.coalesce(func.sum(_r.c.messages), 0), BigInteger)).where(
        _r.c.tenant == bindparam("tenant")
    )
)


def _next(column: Any) -> Statement:
    return Statement(lambda: select(column).where(column > bindparam("after")).order_by(column).limit(1))


_NEXT = (_next(_r.c.tenant), _next(_l.c.tenant))
_OF_KEYS = Statement(lambda: select(_k.c.tenant).distinct())


class SqlTenants(Repository):
    """The port `Tenants`."""

    async def limits(self) -> dict[str, Mapping[str, int | None]]:
        return {tenant: json.loads(text) for tenant, text in await self._sql.fetch(_LIMITS)}

    async def limits_to_change(self, *, now: datetime) -> Mapping[str, int | None]:
        self._locks.check_writing()
        none = mapping_text({})
        rows = await self._sql.fetch(_LOCK, tenant=self._tenant, limits=none, changed_at=to_micros(now))
        limits: dict[str, int | None] = json.loads(rows[0][0])
        return limits

    async def set_limits(self, *, limits: Mapping[str, int | None], now: datetime) -> None:
        self._locks.check_writing()
        if limits:
            text = mapping_text(limits)
            await self._sql.fetch(_SET, tenant=self._tenant, limits=text, changed_at=to_micros(now))
        else:
            await self._sql.fetch(_UNSET, tenant=self._tenant)

    async def count(self, *, name: str, period: datetime, amount: int) -> int:
        self._locks.check_writing()
        named = {"tenant": self._tenant, "name": name, "period": to_micros(period)}
        rows = await self._sql.fetch(_COUNT, **named, amount=amount)
        return int(rows[0][0])

    async def counted(self) -> dict[str, tuple[datetime, int]]:
        rows = await self._sql.fetch(_COUNTED, tenant=self._tenant)
        return {name: (from_micros(period), amount) for name, period, amount in rows}

    async def messages_kept(self) -> int:
        return int((await self._sql.fetch(_KEPT, tenant=self._tenant))[0][0])

    async def all(self) -> list[str]:
        found = {row[0] for row in await self._sql.fetch(_OF_KEYS)}
        for statement in _NEXT:
            after = ""
            while rows := await self._sql.fetch(statement, after=after):
                after = rows[0][0]
                found.add(after)
        return sorted(found)
