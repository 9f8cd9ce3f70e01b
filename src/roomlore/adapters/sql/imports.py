"""How far imports have come."""

from datetime import datetime

from sqlalchemy import bindparam, delete, select
from sqlalchemy.dialects.postgresql import insert

from roomlore.adapters.sql import schema
from roomlore.adapters.sql.drivers import Connection
from roomlore.adapters.sql.rooms import Locks
from roomlore.adapters.sql.statements import Statement
from roomlore.adapters.sql.values import escape, to_micros, unescape

_p = schema.import_positions
_own = (_p.c.tenant == bindparam("tenant")) & (_p.c.source == bindparam("source"))

_FIND = Statement(lambda: select(_p.c.position).where(_own))
_SAVE = Statement(
    lambda: (
        insert(_p)
        .values(
            tenant=bindparam("tenant"),
            source=bindparam("source"),
            position=bindparam("position"),
            saved_at=bindparam("now"),
        )
        .on_conflict_do_update(
            index_elements=[_p.c.tenant, _p.c.source],
            set_={"position": bindparam("position"), "saved_at": bindparam("now")},
        )
    )
)
_FORGET = Statement(lambda: delete(_p).where(_own).returning(_p.c.source))


class SqlImports:
    """The port `Imports`."""

    def __init__(self, connection: Connection, locks: Locks) -> None:
        self._sql = connection
        self._locks = locks

    async def position(self, *, tenant: str, source: str) -> str | None:
        rows = await self._sql.fetch(_FIND, tenant=escape(tenant), source=escape(source))
        return unescape(rows[0][0]) if rows else None

    async def save(self, *, tenant: str, source: str, position: str, now: datetime) -> None:
        self._locks.check_writing()
        await self._sql.fetch(
            _SAVE, tenant=escape(tenant), source=escape(source), position=escape(position), now=to_micros(now)
        )

    async def forget(self, *, tenant: str, source: str) -> None:
        self._locks.check_writing()
        await self._sql.fetch(_FORGET, tenant=escape(tenant), source=escape(source))
