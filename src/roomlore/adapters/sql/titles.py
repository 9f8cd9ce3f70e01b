"""The port `ThreadTitles`: the titles of threads that a model wrote."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import and_, bindparam, case, delete, func, literal_column, select, update
from sqlalchemy.dialects.postgresql import insert

from roomlore.adapters.sql import schema
from roomlore.adapters.sql.engine import LockedRoom, Repository, Statement, among, in_locked_room, in_room
from roomlore.adapters.sql.rows import escape, numbers_text, to_micros, unescape
from roomlore.ports.storage import GrownThread

_t, _f, _r = schema.thread_titles, schema.features, schema.rooms
_NONE: Any = literal_column("0")


def _grown() -> Any:
    """Select threads with a message in the span, or with a title to be made again, and how many messages they have.
    Deleted messages count too, since this reads the index of threads alone."""
    spoken = select(_f.c.thread).where(
        in_room(_f), _f.c.arrival > bindparam("after"), _f.c.arrival <= bindparam("through")
    )
    stale = select(_t.c.thread).where(in_room(_t), _t.c.messages == _NONE)
    its = and_(_t.c.room_key == _f.c.room_key, _t.c.thread == _f.c.thread)
    return (
        select(_f.c.thread, func.count(), func.coalesce(func.max(_t.c.messages), _NONE))
        .select_from(_f.outerjoin(_t, its))
        .where(in_room(_f), _f.c.thread.in_(spoken.union(stale)))
        .group_by(_f.c.thread)
        .order_by(_f.c.thread)
    )


def _put() -> Any:
    """Insert titles. An empty one leaves the title that is there as it is."""
    given = insert(_t)
    new = given.excluded
    kept = case((new.title == literal_column("''"), _t.c.title), else_=new.title)
    by = case((new.title == literal_column("''"), _t.c.made_by), else_=new.made_by)
    return given.on_conflict_do_update(
        index_elements=[_t.c.room_key, _t.c.thread],
        set_={"title": kept, "made_by": by, "messages": new.messages, "at": new.at},
    )


_FIND = Statement(
    lambda: select(_t.c.thread, _t.c.title).where(
        in_room(_t), among(_t.c.thread, "threads"), _t.c.title != literal_column("''")
    )
)
_GROWN = Statement(_grown)
_PUT = Statement(_put)
_STALE = Statement(
    lambda: (
        select(_r.c.tenant, _r.c.room_id)
        .where(_r.c.room_key.in_(select(_t.c.room_key).where(_t.c.messages == _NONE)))
        .order_by(_r.c.tenant, _r.c.room_id)
        .limit(bindparam("count"))
    )
)
_SPOIL = Statement(
    lambda: (
        update(_t)
        .where(in_locked_room(_t), among(_t.c.thread, "threads"))
        .values(title=literal_column("''"), made_by=literal_column("''"), messages=_NONE)
    ),
    brief=True,
)
_DROP = Statement(lambda: delete(_t).where(in_locked_room(_t), among(_t.c.thread, "threads"), _t.c.messages == _NONE))


class SqlTitles(Repository):
    """The port `ThreadTitles`."""

    async def find(self, *, tenant: str, room_id: str, threads: Sequence[int]) -> dict[int, str]:
        if not threads:
            return {}
        here = {"tenant": escape(tenant), "room_id": escape(room_id)}
        rows = await self._sql.fetch(_FIND, threads=numbers_text(threads), **here)
        return {thread: unescape(title) for thread, title in rows}

    async def grown(self, *, tenant: str, room_id: str, after: int, through: int) -> list[GrownThread]:
        here = {"tenant": escape(tenant), "room_id": escape(room_id)}
        rows = await self._sql.fetch(_GROWN, after=after, through=through, **here)
        return [GrownThread(*row) for row in rows]

    async def stale_rooms(self, *, limit: int) -> list[tuple[str, str]]:
        rows = await self._sql.fetch(_STALE, count=limit)
        return [(unescape(tenant), unescape(room_id)) for tenant, room_id in rows]

    async def put(
        self, *, tenant: str, room_id: str, titles: Mapping[int, tuple[str, int]], made_by: str, now: datetime
    ) -> None:
        room = self._locks.held(tenant, room_id)
        own = (escape(room.tenant),)
        rows = [
            (room.key, thread, *own, escape(title), messages, escape(made_by) if title else "", to_micros(now))
            for thread, (title, messages) in titles.items()
        ]
        if rows:
            await self._sql.many(_PUT, rows)

    async def drop_stale(self, *, tenant: str, room_id: str, threads: Sequence[int]) -> None:
        if threads:
            room = self._locks.held(tenant, room_id)
            await self._sql.fetch(_DROP, threads=numbers_text(threads), **_params(room))

    async def spoil(self, room: LockedRoom, threads: Iterable[int]) -> None:
        """Remove the titles of these threads, so that they are made again: what they rest on was changed."""
        if given := sorted(set(threads)):
            await self._sql.fetch(_SPOIL, threads=numbers_text(given), **_params(room))


def _params(room: LockedRoom) -> dict[str, Any]:
    return {"room_key": room.key, "tenant": escape(room.tenant)}
