"""Rooms that some work is due for."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, delete, null, or_, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert

from roomlore.adapters.sql import schema_memories as schema
from roomlore.adapters.sql.drivers import Connection
from roomlore.adapters.sql.rooms import Locks
from roomlore.adapters.sql.statements import Statement
from roomlore.adapters.sql.values import escape, to_micros, unescape
from roomlore.ports.rooms_due import DueRoom

_d = schema.rooms_due
_key = (_d.c.work, _d.c.tenant, _d.c.room_id)


def _note() -> Any:
    given = insert(_d).values(
        work=bindparam("its_work"),
        tenant=bindparam("tenant"),
        room_id=bindparam("room_id"),
        noted=1,
        noted_at=bindparam("now"),
        leased_until=None,
    )
    return given.on_conflict_do_update(index_elements=_key, set_={"noted": _d.c.noted + 1, "leased_until": null()})


def _claim() -> Any:
    free = or_(_d.c.leased_until.is_(None), _d.c.leased_until <= bindparam("now"))
    first = select(*_key).where(_d.c.work == bindparam("its_work"), free).order_by(_d.c.noted_at)
    taken = first.limit(bindparam("count")).with_for_update(skip_locked=True).cte("taken")
    claimed = update(_d).where(tuple_(*_key).in_(select(*taken.c))).values(leased_until=bindparam("until"))
    return claimed.returning(_d.c.noted_at, _d.c.tenant, _d.c.room_id, _d.c.noted)


def _own() -> Any:
    named = (_d.c.tenant == bindparam("its_tenant")) & (_d.c.room_id == bindparam("its_room"))
    return (_d.c.work == bindparam("its_work")) & named


_NOTE = Statement(_note)
_CLAIM = Statement(_claim)
_DONE = Statement(lambda: delete(_d).where(_own(), _d.c.noted == bindparam("seen")).returning(_d.c.noted))
_FREE = Statement(lambda: update(_d).where(_own()).values(leased_until=null()))
_PUT_OFF = Statement(
    lambda: update(_d).where(_own(), _d.c.noted == bindparam("seen")).values(leased_until=bindparam("until"))
)
_ANY = Statement(lambda: select(_d.c.room_id).where(_d.c.work == bindparam("its_work")).limit(1))


class SqlRoomsDue:
    """The port `RoomsDue`."""

    def __init__(self, connection: Connection, locks: Locks) -> None:
        self._sql = connection
        self._locks = locks

    async def note(self, *, tenant: str, room_id: str, work: str, now: datetime) -> None:
        self._locks.check_writing()
        named = {"its_work": escape(work), "tenant": escape(tenant), "room_id": escape(room_id)}
        await self._sql.fetch(_NOTE, now=to_micros(now), **named)

    async def claim(self, *, work: str, now: datetime, lease_until: datetime, limit: int) -> Sequence[DueRoom]:
        self._locks.check_writing()
        times = {"now": to_micros(now), "until": to_micros(lease_until)}
        rows = await self._sql.fetch(_CLAIM, its_work=escape(work), count=limit, **times)
        return [DueRoom(unescape(row[1]), unescape(row[2]), row[3]) for row in sorted(rows, key=tuple)]

    async def put_off(self, *, room: DueRoom, work: str, until: datetime) -> None:
        self._locks.check_writing()
        await self._sql.fetch(_PUT_OFF, seen=room.noted, until=to_micros(until), **_named(room, work))

    async def done(self, *, room: DueRoom, work: str) -> bool:
        self._locks.check_writing()
        named = _named(room, work)
        if await self._sql.fetch(_DONE, seen=room.noted, **named):
            return True
        await self._sql.fetch(_FREE, **named)
        return False

    async def any(self, *, work: str) -> bool:
        return bool(await self._sql.fetch(_ANY, its_work=escape(work)))


def _named(room: DueRoom, work: str) -> dict[str, str]:
    return {"its_work": escape(work), "its_tenant": escape(room.tenant), "its_room": escape(room.room_id)}
