"""The limits of tenants, and what they used."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, bindparam, case, cast, delete, func, select

from roomlore.storage import schema
from roomlore.storage.engine import Repository, Statement, insert_row
from roomlore.storage.rows import from_micros, mapping_text, to_micros

_l, _c, _r, _k = schema.tenant_limits, schema.tenant_counts, schema.rooms, schema.api_keys


def _set() -> Any:
    given = insert_row(_l)
    new = {"limits": given.excluded.limits, "changed_at": given.excluded.changed_at}
    return given.on_conflict_do_update(index_elements=[_l.c.tenant], set_=new)


def _lock() -> Any:
    """Lock the row of a tenant, which is made if there is none, and return its limits."""
    given = insert_row(_l)
    same = given.on_conflict_do_update(index_elements=[_l.c.tenant], set_={"limits": _l.c.limits})
    return same.returning(_l.c.limits)


def _count() -> Any:
    """Add to the amount of the period, or begin it. What a process with a slow clock adds counts for the later one."""
    given = insert_row(_c)
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


class Tenants(Repository):
    """The limits of tenants, and what they used of them."""

    async def limits(self) -> dict[str, Mapping[str, int | None]]:
        """Return the limits that differ from the settings, by tenant; None is no limit."""
        return {tenant: json.loads(text) for tenant, text in await self._sql.fetch(_LIMITS)}

    async def limits_to_change(self, *, now: datetime) -> Mapping[str, int | None]:
        """Return the limits of the tenant that differ from the settings, and keep others from changing them until the
        transaction ends; call `set_limits` after it. Only while writing."""
        self._locks.check_writing()
        none = mapping_text({})
        rows = await self._sql.fetch(_LOCK, tenant=self._tenant, limits=none, changed_at=to_micros(now))
        limits: dict[str, int | None] = json.loads(rows[0][0])
        return limits

    async def set_limits(self, *, limits: Mapping[str, int | None], now: datetime) -> None:
        """Store all limits of the tenant that differ from the settings. Only while writing."""
        self._locks.check_writing()
        if limits:
            text = mapping_text(limits)
            await self._sql.fetch(_SET, tenant=self._tenant, limits=text, changed_at=to_micros(now))
        else:
            await self._sql.fetch(_UNSET, tenant=self._tenant)

    async def count(self, *, name: str, period: datetime, amount: int) -> int:
        """Add to what the tenant used in the period that began then, and return how much that is now. A period that
        begins later takes the place of the stored one. Only while writing."""
        self._locks.check_writing()
        named = {"tenant": self._tenant, "name": name, "period": to_micros(period)}
        rows = await self._sql.fetch(_COUNT, **named, amount=amount)
        return int(rows[0][0])

    async def counted(self) -> dict[str, tuple[datetime, int]]:
        """Return, by name, the last period in which something was counted, and how much."""
        rows = await self._sql.fetch(_COUNTED, tenant=self._tenant)
        return {name: (from_micros(period), amount) for name, period, amount in rows}

    async def messages_kept(self) -> int:
        """Return the number of messages in all rooms of the tenant, deleted ones left out."""
        return int((await self._sql.fetch(_KEPT, tenant=self._tenant))[0][0])

    async def all(self) -> list[str]:
        """Return every tenant with rooms, API keys or limits, by name."""
        tenants = {row[0] for row in await self._sql.fetch(_OF_KEYS)}
        for statement in _NEXT:
            after = ""
            while rows := await self._sql.fetch(statement, after=after):
                after = rows[0][0]
                tenants.add(after)
        return sorted(tenants)
