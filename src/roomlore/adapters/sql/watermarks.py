"""How far work on rooms has come."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, func, literal_column, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert

from roomlore.adapters.sql import schema, schema_memories
from roomlore.adapters.sql.drivers import Connection
from roomlore.adapters.sql.rooms import Locks
from roomlore.adapters.sql.statements import Statement, among
from roomlore.adapters.sql.values import escape, names_text, to_micros, unescape
from roomlore.ports.memories import RoomBehind

_r, _w = schema.rooms, schema_memories.watermarks
_here = (_w.c.tenant == bindparam("tenant")) & (_w.c.room_id == bindparam("room_id"))


def _begin() -> Any:
    """A mark at 0 is as good as none."""
    given = insert(_w).values({column.name: bindparam(column.name) for column in _w.c})
    moved = {"arrival": given.excluded.arrival, "updated_at": given.excluded.updated_at}
    upsert = given.on_conflict_do_update(
        index_elements=[_w.c.tenant, _w.c.room_id, _w.c.name], set_=moved, where=_w.c.arrival == 0
    )
    return upsert.returning(_w.c.arrival)


def _move() -> Any:
    at_was = (_w.c.name == bindparam("its_name")) & (_w.c.arrival == bindparam("was"))
    moved = update(_w).where(_here, at_was).values(arrival=bindparam("new_arrival"), updated_at=bindparam("now"))
    return moved.returning(_w.c.arrival)


def _behind() -> Any:
    """Rooms in the order of their names, each with its mark beside it."""
    place = tuple_(_r.c.tenant, _r.c.room_id)
    after = tuple_(bindparam("after_tenant", type_=_r.c.tenant.type), bindparam("after_room", type_=_r.c.room_id.type))
    its = (_w.c.tenant == _r.c.tenant) & (_w.c.room_id == _r.c.room_id) & (_w.c.name == bindparam("its_name"))
    mark = func.coalesce(_w.c.arrival, literal_column("0"))
    late = _r.c.next_arrival - literal_column("1") - mark >= bindparam("least")
    rooms = select(_r.c.tenant, _r.c.room_id, mark).select_from(_r.outerjoin(_w, its)).where(place > after, late)
    return rooms.order_by(_r.c.tenant, _r.c.room_id).limit(bindparam("count"))


_FIND = Statement(lambda: select(_w.c.name, _w.c.arrival).where(_here, among(_w.c.name, "names")))
_OF_ROOM = Statement(lambda: select(_w.c.name, _w.c.arrival).where(_here).order_by(_w.c.name))
_BEGIN = Statement(_begin)
_MOVE = Statement(_move)
_BEHIND = Statement(_behind)


class SqlWatermarks:
    """The port `Watermarks`."""

    def __init__(self, connection: Connection, locks: Locks) -> None:
        self._sql = connection
        self._locks = locks

    async def find(self, *, tenant: str, room_id: str, names: Sequence[str]) -> dict[str, int]:
        here = {"tenant": escape(tenant), "room_id": escape(room_id)}
        rows = await self._sql.fetch(_FIND, names=names_text(names), **here)
        return {unescape(name): arrival for name, arrival in rows}

    async def of_room(self, *, tenant: str, room_id: str, prefix: str) -> dict[str, int]:
        rows = await self._sql.fetch(_OF_ROOM, tenant=escape(tenant), room_id=escape(room_id))
        marks = {unescape(name): arrival for name, arrival in rows}
        return {name: arrival for name, arrival in marks.items() if name.startswith(prefix)}

    async def move(self, *, tenant: str, room_id: str, name: str, arrival: int, was: int, now: datetime) -> bool:
        self._locks.check_writing()
        here = {"tenant": escape(tenant), "room_id": escape(room_id)}
        at = to_micros(now)
        if was == 0:
            rows = await self._sql.fetch(_BEGIN, name=escape(name), arrival=arrival, updated_at=at, **here)
        else:
            rows = await self._sql.fetch(_MOVE, its_name=escape(name), new_arrival=arrival, was=was, now=at, **here)
        return bool(rows)

    async def behind(self, *, name: str, least: int, after: tuple[str, str], limit: int) -> list[RoomBehind]:
        tenant, room_id = after
        rows = await self._sql.fetch(
            _BEHIND,
            its_name=escape(name),
            least=least,
            after_tenant=escape(tenant),
            after_room=escape(room_id),
            count=limit,
        )
        return [RoomBehind(unescape(row[0]), unescape(row[1]), row[2]) for row in rows]
