"""Messages whose vectors are due."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from secrets import randbits
from typing import Any

from sqlalchemy import BigInteger, bindparam, cast, delete, func, null, or_, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert

from roomlore.adapters.sql import schema
from roomlore.adapters.sql.drivers import Connection, Row
from roomlore.adapters.sql.rooms import Locks
from roomlore.adapters.sql.statements import Statement, among, in_locked_room, in_room
from roomlore.adapters.sql.values import escape, numbers_text, to_micros, unescape
from roomlore.core.search import IndexTask

_o, _m, _r = schema.index_outbox, schema.messages, schema.rooms
_Room = dict[str, str]


def _add() -> Any:
    """One statement for all messages, which then share a place in the queue, in order of arrival.

    Whoever takes several rows takes them by room and arrival, so that no two wait for each other.
    """
    last = select(func.coalesce(func.max(_o.c.queued), 0)).scalar_subquery()
    free = cast(null(), BigInteger)
    due = (
        select(_m.c.room_key, _m.c.arrival, _m.c.tenant, _r.c.index_version, last + 1, free, free)
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
        .values(leased_until=bindparam("until"), lease=bindparam("new_lease"))
        .returning(_o.c.queued, *key, _o.c.tenant, room_id, _o.c.version, _o.c.lease)
    )


def _free() -> Any:
    """Takes hold of the rows too, in order of arrival, until the transaction ends."""
    held = (in_room(_o), among(_o.c.arrival, "arrivals"), _o.c.lease == bindparam("its_lease"))
    freed = update(_o).where(*held).values(leased_until=null(), lease=null())
    return freed.returning(_o.c.arrival, _o.c.version)


_NEXT_VERSION = Statement(lambda: update(_r).where(in_locked_room(_r)).values(index_version=_r.c.index_version + 1))
_ADD = Statement(_add)
_CLAIM = Statement(_claim)
_FREE = Statement(_free)
_DROP = Statement(lambda: delete(_o).where(in_room(_o), among(_o.c.arrival, "arrivals")))
_CLEAR = Statement(lambda: delete(_o))
_WAITING = Statement(lambda: select(func.count()).select_from(_o))


class SqlOutbox:
    """The port `Outbox`."""

    def __init__(self, connection: Connection, locks: Locks) -> None:
        self._sql = connection
        self._locks = locks

    async def add(self, *, tenant: str, room_id: str, arrivals: Sequence[int], only_if_kept: bool = False) -> None:
        """Arrivals that are not there are passed over."""
        room = self._locks.held(tenant, room_id)
        if arrivals and (room.keeps_vectors or not only_if_kept):
            here = {"room_key": room.key, "tenant": escape(tenant)}
            await self._sql.fetch(_NEXT_VERSION, **here)
            await self._sql.fetch(_ADD, arrivals=numbers_text(arrivals), **here)

    async def claim(self, *, limit: int, now: datetime, lease: timedelta) -> list[IndexTask]:
        self._locks.check_writing()
        times = {"now": to_micros(now), "until": to_micros(now + lease)}
        rows = await self._sql.fetch(_CLAIM, count=limit, new_lease=randbits(63), **times)
        return [_to_task(row) for row in sorted(rows, key=tuple)]

    async def finish(self, *, tasks: Sequence[IndexTask]) -> list[IndexTask]:
        """Frees them first, since that tells which are still held, and as what version."""
        self._locks.check_writing()
        lost: list[IndexTask] = []
        for its, group in _by_claim(tasks):
            versions = await self._free(its, group)
            lost += [task for task in group if task.arrival not in versions]
            done = [task.arrival for task in group if versions.get(task.arrival) == task.version]
            if done:
                await self._sql.fetch(_DROP, arrivals=numbers_text(done), **its)
        return lost

    async def release(self, *, tasks: Sequence[IndexTask]) -> None:
        self._locks.check_writing()
        for its, group in _by_claim(tasks):
            await self._free(its, group)

    async def _free(self, its: _Room, group: Sequence[IndexTask]) -> dict[int, int]:
        """Arrival to version of those that were held until now."""
        arrivals = numbers_text([task.arrival for task in group])
        rows = await self._sql.fetch(_FREE, arrivals=arrivals, its_lease=group[0].lease, **its)
        return {row[0]: row[1] for row in rows}

    async def clear(self) -> None:
        self._locks.check_writing()
        await self._sql.fetch(_CLEAR)

    async def waiting(self) -> int:
        return int((await self._sql.fetch(_WAITING))[0][0])


def _claimed(task: IndexTask) -> tuple[str, str, int]:
    return (task.tenant, task.room_id, task.lease)


def _by_claim(tasks: Sequence[IndexTask]) -> Iterator[tuple[_Room, list[IndexTask]]]:
    """What one claim took of one room, with the parameters that name the room."""
    for (tenant, room_id, _), group in groupby(sorted(tasks, key=_claimed), key=_claimed):
        yield {"tenant": escape(tenant), "room_id": escape(room_id)}, list(group)


def _to_task(row: Row) -> IndexTask:
    _, _, arrival, tenant, room_id, version, lease = row
    return IndexTask(tenant=unescape(tenant), room_id=unescape(room_id), arrival=arrival, version=version, lease=lease)
