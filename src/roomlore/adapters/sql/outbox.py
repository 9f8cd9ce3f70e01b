"""Messages whose vectors are due."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, and_, bindparam, cast, delete, func, null, or_, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert

from roomlore.adapters.sql import schema
from roomlore.adapters.sql.drivers import Connection, Row
from roomlore.adapters.sql.rooms import Locks
from roomlore.adapters.sql.statements import Statement, among, in_locked_room, in_room
from roomlore.adapters.sql.values import escape, numbers_text, to_micros, unescape
from roomlore.core.search import IndexTask

_o, _m, _r = schema.index_outbox, schema.messages, schema.rooms


def _add() -> Any:
    """One statement for all messages, which then share a place in the queue, in order of arrival.

    Whoever takes several rows takes them by room and arrival, so that no two wait for each other.
    """
    last = select(func.coalesce(func.max(_o.c.queued), 0)).scalar_subquery()
    due = (
        select(_m.c.room_key, _m.c.arrival, _m.c.tenant, _r.c.index_version, last + 1, cast(null(), BigInteger))
        .select_from(_m.join(_r, _r.c.room_key == _m.c.room_key))
        .where(in_locked_room(_m), among(_m.c.arrival, "arrivals"))
        .order_by(_m.c.arrival)
    )
    given = insert(_o).from_select(_o.c.keys(), due)
    return given.on_conflict_do_update(
        index_elements=[_o.c.room_key, _o.c.arrival], set_={"version": given.excluded.version}
    )


def _claim() -> Any:
    """A common table expression that locks rows is reckoned once, so no more than `count` are taken. SQLite
    leaves the table's name out behind RETURNING, so the room's key goes by another name there."""
    free = or_(_o.c.leased_until.is_(None), _o.c.leased_until <= bindparam("now"))
    key = (_o.c.room_key, _o.c.arrival)
    first = select(*key).where(free).order_by(_o.c.queued, *key).limit(bindparam("count"))
    taken = first.with_for_update(skip_locked=True).cte("taken")
    rooms = select(_r.c.room_key.label("its_key"), _r.c.room_id).subquery("its_room")
    room_id = select(rooms.c.room_id).where(rooms.c.its_key == _o.c.room_key).scalar_subquery()
    return (
        update(_o)
        .where(tuple_(*key).in_(select(taken.c.room_key, taken.c.arrival)))
        .values(leased_until=bindparam("until"))
        .returning(_o.c.queued, *key, _o.c.tenant, room_id, _o.c.version)
    )


def _task(*version: Any) -> Any:
    return and_(in_room(_o), _o.c.arrival == bindparam("arrival"), *version)


_NEXT_VERSION = Statement(lambda: update(_r).where(in_locked_room(_r)).values(index_version=_r.c.index_version + 1))
_ADD = Statement(_add)
_CLAIM = Statement(_claim)
_DROP = Statement(lambda: delete(_o).where(_task(_o.c.version == bindparam("version"))))
_FREE = Statement(lambda: update(_o).where(_task()).values(leased_until=null()))
_CLEAR = Statement(lambda: delete(_o))
_WAITING = Statement(lambda: select(func.count()).select_from(_o))


class SqlOutbox:
    """The port `Outbox`."""

    def __init__(self, connection: Connection, locks: Locks) -> None:
        self._sql = connection
        self._locks = locks

    async def add(self, *, tenant: str, room_id: str, arrivals: Sequence[int]) -> None:
        """Arrivals that are not there are passed over."""
        room = self._locks.held(tenant, room_id)
        if arrivals:
            here = {"room_key": room.key, "tenant": escape(tenant)}
            await self._sql.fetch(_NEXT_VERSION, **here)
            await self._sql.fetch(_ADD, arrivals=numbers_text(arrivals), **here)

    async def claim(self, *, limit: int, now: datetime, lease: timedelta) -> list[IndexTask]:
        self._locks.check_writing()
        rows = await self._sql.fetch(_CLAIM, count=limit, now=to_micros(now), until=to_micros(now + lease))
        return [_to_task(row) for row in sorted(rows, key=tuple)]

    async def finish(self, *, tasks: Sequence[IndexTask]) -> None:
        """Frees them first, since that takes hold of all of them in order."""
        await self.release(tasks=tasks)
        if tasks:
            await self._sql.many(_DROP, [(*_place(task), task.version) for task in sorted(tasks, key=_place)])

    async def release(self, *, tasks: Sequence[IndexTask]) -> None:
        self._locks.check_writing()
        if tasks:
            await self._sql.many(_FREE, sorted(map(_place, tasks)))

    async def clear(self) -> None:
        self._locks.check_writing()
        await self._sql.fetch(_CLEAR)

    async def waiting(self) -> int:
        return int((await self._sql.fetch(_WAITING))[0][0])


def _place(task: IndexTask) -> tuple[Any, ...]:
    """The parameters of `_task` in the order they stand in its SQL."""
    tenant = escape(task.tenant)
    return (tenant, escape(task.room_id), tenant, task.arrival)


def _to_task(row: Row) -> IndexTask:
    return IndexTask(tenant=unescape(row[3]), room_id=unescape(row[4]), arrival=row[2], version=row[5])
