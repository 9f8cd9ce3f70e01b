"""Parts of `Progress`: pending work on rooms, its holders and how far it is done."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, delete, func, literal_column, null, or_, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert

from roomlore.storage import schema
from roomlore.storage.engine import Repository, Statement, among, in_use, insert_row
from roomlore.storage.rows import from_micros, names_text, to_micros
from roomlore.storage.values import DueRoom, RoomBehind

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


def _noted(*where: Any) -> Statement:
    its = (_d.c.work == bindparam("its_work")) & (_d.c.tenant == bindparam("its_tenant"))
    return Statement(lambda: select(_d.c.room_id, _d.c.noted, _d.c.noted_at).where(its, *where).order_by(_d.c.noted_at))


_NOTED, _NOTED_ONE = _noted(), _noted(_d.c.room_id == bindparam("its_room"))
_NOTE = Statement(_note, brief=True)
_CLAIM = Statement(_claim)
_DONE = Statement(lambda: delete(_d).where(_own(), _d.c.noted == bindparam("seen")).returning(_d.c.noted))
_FREE = Statement(lambda: update(_d).where(_own()).values(leased_until=null()))
_PUT_OFF = Statement(
    lambda: update(_d).where(_own(), _d.c.noted == bindparam("seen")).values(leased_until=bindparam("until"))
)
_ANY = Statement(lambda: select(_d.c.room_id).where(_d.c.work == bindparam("its_work")).limit(1))


class DueRooms(Repository):
    """A part of `Progress`: rooms with pending work."""

    async def note_room(self, *, room_id: str, work: str, now: datetime) -> None:
        """Record that the work is due for the room; if it is recorded already, count it again and make it free to be
        claimed."""
        self._locks.check_writing()
        named = {"its_work": work, "tenant": self._tenant, "room_id": room_id}
        await self._sql.fetch(_NOTE, now=to_micros(now), **named)

    async def claim_rooms(self, *, work: str, now: datetime, lease_until: datetime, limit: int) -> Sequence[DueRoom]:
        """Claim up to `limit` rooms of any tenant, the longest waiting first. They stay claimed until `lease_until`,
        unless they are noted again, and are then free again; so the rooms of a killed process are not lost."""
        self._locks.check_writing()
        times = {"now": to_micros(now), "until": to_micros(lease_until)}
        rows = await self._sql.fetch(_CLAIM, its_work=work, count=limit, **times)
        return [
            DueRoom(tenant, room_id, noted, from_micros(at)) for at, tenant, room_id, noted in sorted(rows, key=tuple)
        ]

    async def noted(self, *, work: str, room_id: str | None = None) -> list[DueRoom]:
        """Return the rooms of a tenant for which the work is noted, claimed or not, those noted first before others; or
        the one room. While reading too."""
        values = {"its_work": work, "its_tenant": self._tenant}
        if room_id is None:
            rows = await self._sql.fetch(_NOTED, **values)
        else:
            rows = await self._sql.fetch(_NOTED_ONE, **values, its_room=room_id)
        return [DueRoom(self._tenant, row[0], row[1], from_micros(row[2])) for row in rows]

    async def put_off(self, *, room: DueRoom, work: str, until: datetime) -> None:
        """Postpone work in progress: the room is free again at `until`, or now if it was noted since."""
        self._locks.check_writing()
        await self._sql.fetch(_PUT_OFF, seen=room.noted, until=to_micros(until), **_named(room, work))

    async def done(self, *, room: DueRoom, work: str) -> bool:
        """Record the work as done as far as it was noted then. Return False, with the room free again, if it was noted
        since."""
        self._locks.check_writing()
        named = _named(room, work)
        if await self._sql.fetch(_DONE, seen=room.noted, **named):
            return True
        await self._sql.fetch(_FREE, **named)
        return False

    async def any_noted(self, *, work: str) -> bool:
        """Return True if a room is noted, claimed or not. While reading too."""
        return bool(await self._sql.fetch(_ANY, its_work=work))


def _named(room: DueRoom, work: str) -> dict[str, str]:
    return {"its_work": work, "its_tenant": room.tenant, "its_room": room.room_id}


_l = schema.leases


def _take() -> Any:
    given = insert_row(_l)
    free = (_l.c.holder == given.excluded.holder) | (_l.c.until <= bindparam("now"))
    taken = {"holder": given.excluded.holder, "until": given.excluded.until}
    upsert = given.on_conflict_do_update(index_elements=[_l.c.tenant, _l.c.name], set_=taken, where=free)
    return upsert.returning(_l.c.name)


_TAKE = Statement(_take)
_FREE_LEASE = Statement(
    lambda: delete(_l).where(
        _l.c.tenant == bindparam("tenant"), _l.c.name == bindparam("name"), _l.c.holder == bindparam("holder")
    )
)


class Leases(Repository):
    """A part of `Progress`: leases."""

    async def take_lease(self, *, name: str, holder: str, now: datetime, until: datetime) -> bool:
        """Take or extend the lease. Return False if another holder still has it."""
        self._locks.check_writing()
        times = {"now": to_micros(now), "until": to_micros(until)}
        return bool(await self._sql.fetch(_TAKE, **_held_by(self._tenant, name, holder), **times))

    async def free_lease(self, *, name: str, holder: str) -> None:
        """Release the lease; nothing happens if another holder has it."""
        self._locks.check_writing()
        await self._sql.fetch(_FREE_LEASE, **_held_by(self._tenant, name, holder))


def _held_by(tenant: str, name: str, holder: str) -> dict[str, str]:
    return {"tenant": tenant, "name": name, "holder": holder}


_r, _w = schema.rooms, schema.watermarks
_here = (_w.c.tenant == bindparam("tenant")) & (_w.c.room_id == bindparam("room_id"))


def _begin() -> Any:
    """Insert a mark at 0, which equals no mark."""
    given = insert_row(_w)
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
    """Select rooms in order of their names, each with its mark."""
    place = tuple_(_r.c.tenant, _r.c.room_id)
    after = tuple_(bindparam("after_tenant", type_=_r.c.tenant.type), bindparam("after_room", type_=_r.c.room_id.type))
    its = (_w.c.tenant == _r.c.tenant) & (_w.c.room_id == _r.c.room_id) & (_w.c.name == bindparam("its_name"))
    mark = func.coalesce(_w.c.arrival, literal_column("0"))
    late = _r.c.next_arrival - literal_column("1") - mark >= bindparam("least")
    rooms = (
        select(_r.c.tenant, _r.c.room_id, mark).select_from(_r.outerjoin(_w, its)).where(place > after, late, in_use)
    )
    return rooms.order_by(_r.c.tenant, _r.c.room_id).limit(bindparam("count"))


_FIND = Statement(lambda: select(_w.c.name, _w.c.arrival).where(_here, among(_w.c.name, "names")))
_OF_ROOM = Statement(lambda: select(_w.c.name, _w.c.arrival, _w.c.updated_at).where(_here).order_by(_w.c.name))
_BEGIN = Statement(_begin)
_MOVE = Statement(_move)
_BEHIND = Statement(_behind)
_DROP = Statement(lambda: delete(_w).where(_here, _w.c.name == bindparam("its_name")))


class Watermarks(Repository):
    """A part of `Progress`: watermarks."""

    async def marks(self, *, room_id: str, names: Sequence[str]) -> dict[str, int]:
        """Return the arrival up to which each named work is done; absent if it never began."""
        here = {"tenant": self._tenant, "room_id": room_id}
        rows = await self._sql.fetch(_FIND, names=names_text(names), **here)
        return dict(rows)

    async def marks_of_room(self, *, room_id: str, prefix: str) -> dict[str, int]:
        """Return every mark of the room whose name has this prefix."""
        rows = await self._sql.fetch(_OF_ROOM, tenant=self._tenant, room_id=room_id)
        return {name: arrival for name, arrival, _ in rows if name.startswith(prefix)}

    async def times_of_marks(self, *, room_id: str, prefix: str) -> dict[int, datetime]:
        """Return the arrivals of these marks of the room, each with the time at which its mark was moved there."""
        rows = await self._sql.fetch(_OF_ROOM, tenant=self._tenant, room_id=room_id)
        return {arrival: from_micros(at) for name, arrival, at in rows if name.startswith(prefix)}

    async def move_mark(self, *, room_id: str, name: str, arrival: int, was: int, now: datetime) -> bool:
        """Move the mark from `was` (0 if there is none) to `arrival`. Return False if it is not at `was`. Only while
        writing."""
        self._locks.check_writing()
        here = {"tenant": self._tenant, "room_id": room_id}
        at = to_micros(now)
        if was == 0:
            rows = await self._sql.fetch(_BEGIN, name=name, arrival=arrival, updated_at=at, **here)
        else:
            rows = await self._sql.fetch(_MOVE, its_name=name, new_arrival=arrival, was=was, now=at, **here)
        return bool(rows)

    async def drop_mark(self, *, room_id: str, name: str) -> None:
        """Remove the mark, if there is one. Only while writing."""
        self._locks.check_writing()
        await self._sql.fetch(_DROP, tenant=self._tenant, room_id=room_id, its_name=name)

    async def rooms_behind(self, *, name: str, least: int, after: tuple[str, str], limit: int) -> list[RoomBehind]:
        """Return rooms of all tenants with at least `least` arrivals above the named mark (deleted messages count too),
        those after this tenant and room id, in that order. ('', '') begins."""
        tenant, room_id = after
        rows = await self._sql.fetch(
            _BEHIND,
            its_name=name,
            least=least,
            after_tenant=tenant,
            after_room=room_id,
            count=limit,
        )
        return [RoomBehind(row[0], row[1], row[2]) for row in rows]
