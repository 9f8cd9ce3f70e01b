"""How far work on rooms has come."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, select, update
from sqlalchemy.dialects.postgresql import insert

from roomlore.adapters.sql import schema_memories as schema
from roomlore.adapters.sql.drivers import Connection
from roomlore.adapters.sql.rooms import Locks
from roomlore.adapters.sql.statements import Statement, among
from roomlore.adapters.sql.values import escape, names_text, to_micros, unescape

_w = schema.watermarks
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


_FIND = Statement(lambda: select(_w.c.name, _w.c.arrival).where(_here, among(_w.c.name, "names")))
_OF_ROOM = Statement(lambda: select(_w.c.name, _w.c.arrival).where(_here).order_by(_w.c.name))
_BEGIN = Statement(_begin)
_MOVE = Statement(_move)


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
