"""Who works on what, until a time."""

from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, delete
from sqlalchemy.dialects.postgresql import insert

from roomlore.adapters.sql import schema_memories as schema
from roomlore.adapters.sql.drivers import Connection
from roomlore.adapters.sql.rooms import Locks
from roomlore.adapters.sql.statements import Statement
from roomlore.adapters.sql.values import escape, to_micros

_l = schema.leases


def _take() -> Any:
    given = insert(_l).values({column.name: bindparam(column.name) for column in _l.c})
    free = (_l.c.holder == given.excluded.holder) | (_l.c.until <= bindparam("now"))
    taken = {"holder": given.excluded.holder, "until": given.excluded.until}
    upsert = given.on_conflict_do_update(index_elements=[_l.c.tenant, _l.c.name], set_=taken, where=free)
    return upsert.returning(_l.c.name)


_TAKE = Statement(_take)
_FREE = Statement(
    lambda: delete(_l).where(
        _l.c.tenant == bindparam("tenant"), _l.c.name == bindparam("name"), _l.c.holder == bindparam("holder")
    )
)


class SqlLeases:
    """The port `Leases`."""

    def __init__(self, connection: Connection, locks: Locks) -> None:
        self._sql = connection
        self._locks = locks

    async def take(self, *, tenant: str, name: str, holder: str, now: datetime, until: datetime) -> bool:
        self._locks.check_writing()
        times = {"now": to_micros(now), "until": to_micros(until)}
        return bool(await self._sql.fetch(_TAKE, **_held_by(tenant, name, holder), **times))

    async def free(self, *, tenant: str, name: str, holder: str) -> None:
        self._locks.check_writing()
        await self._sql.fetch(_FREE, **_held_by(tenant, name, holder))


def _held_by(tenant: str, name: str, holder: str) -> dict[str, str]:
    return {"tenant": escape(tenant), "name": escape(name), "holder": escape(holder)}
