"""The rooms of a tenant."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, case, exists, func, literal_column, select, update
from sqlalchemy.dialects.postgresql import insert

from roomlore.adapters.sql import schema
from roomlore.adapters.sql.drivers import Connection
from roomlore.adapters.sql.rows import ROOM_COLUMNS, to_room
from roomlore.adapters.sql.statements import Statement, in_room
from roomlore.adapters.sql.values import escape, mapping_text, to_micros, unescape
from roomlore.core.errors import InvalidInput, NotFound
from roomlore.core.models import Room
from roomlore.ports.indexing import VECTORS

_rooms, _people, _m = schema.rooms, schema.participants, schema.messages
_named = (_rooms.c.tenant == bindparam("tenant")) & (_rooms.c.room_id == bindparam("room_id"))


def _people_before() -> Any:
    there = (in_room(_m), _m.c.deleted_at.is_(None), _m.c.arrival < bindparam("before"))
    named_at = func.max(case((_m.c.sender_name != literal_column("''"), _m.c.arrival)))
    first = func.min(_m.c.arrival)
    spoken = select(_m.c.room_key, _m.c.sender_id, first.label("first"), named_at.label("named_at")).where(*there)
    people = spoken.group_by(_m.c.room_key, _m.c.sender_id).subquery("people")
    latest = _m.alias("latest")
    its = (latest.c.room_key == people.c.room_key) & (latest.c.arrival == people.c.named_at)
    name = func.coalesce(latest.c.sender_name, literal_column("''"))
    return select(people.c.sender_id, name).select_from(people.outerjoin(latest, its)).order_by(people.c.first)


_FIND = Statement(lambda: select(*ROOM_COLUMNS).where(_named))
_PAGE_FROM_START = Statement(
    lambda: (
        select(*ROOM_COLUMNS)
        .where(_rooms.c.tenant == bindparam("tenant"))
        .order_by(_rooms.c.room_id)
        .limit(bindparam("count"))
    )
)
_PAGE_AFTER = Statement(
    lambda: (
        select(*ROOM_COLUMNS)
        .where(_rooms.c.tenant == bindparam("tenant"), _rooms.c.room_id > bindparam("after"))
        .order_by(_rooms.c.room_id)
        .limit(bindparam("count"))
    )
)
_CONFIGURE = Statement(
    lambda: (
        update(_rooms)
        .where(_named)
        .values(settings=bindparam("new_settings"), revision=_rooms.c.revision + 1)
        .returning(*ROOM_COLUMNS)
    )
)
_PEOPLE = Statement(
    lambda: select(_people.c.sender_id, _people.c.name).where(in_room(_people)).order_by(_people.c.first_arrival)
)
_PEOPLE_BEFORE = Statement(_people_before)
_ROOMS_OF = Statement(
    lambda: (
        select(_rooms.c.room_id)
        .select_from(_people.join(_rooms, _rooms.c.room_key == _people.c.room_key))
        .where(_people.c.tenant == bindparam("tenant"), _people.c.sender_id == bindparam("sender_id"))
        .order_by(_rooms.c.room_id)
    )
)
_keeps_vectors = exists().where(schema.index_states.c.name == VECTORS)
_LOCK = Statement(lambda: select(_rooms.c.room_key, _keeps_vectors, *ROOM_COLUMNS).where(_named).with_for_update())
_MAKE = Statement(
    lambda: (
        insert(_rooms)
        .values(
            tenant=bindparam("tenant"),
            room_id=bindparam("room_id"),
            next_arrival=1,
            revision=0,
            messages=0,
            created_at=bindparam("now"),
            settings="{}",
        )
        .on_conflict_do_nothing()
    )
)


@dataclass(frozen=True, slots=True)
class LockedRoom:
    """A room whose row this unit of work holds. `keeps_vectors`: whether a vector index of messages had been begun by
    then; the lock reads it along, as a statement of its own would cost a turn."""

    key: int
    tenant: str
    room_id: str
    keeps_vectors: bool


@dataclass(frozen=True, slots=True)
class LockedScope:
    """As `LockedRoom`, of a scope of memories."""

    key: int
    tenant: str
    scope: str
    keeps_vectors: bool


class Locks:
    """The rooms and scopes that one unit of work has locked. `writing` is False in a unit of work that only reads."""

    def __init__(self, *, writing: bool) -> None:
        self._writing = writing
        self._rooms: dict[tuple[str, str], LockedRoom] = {}
        self._scopes: dict[tuple[str, str], LockedScope] = {}

    def check_writing(self) -> None:
        if not self._writing:
            raise InvalidInput("This unit of work only reads: open `writing()` to change anything.")

    def take(self, locked: LockedRoom) -> None:
        self._rooms[locked.tenant, locked.room_id] = locked

    def held(self, tenant: str, room_id: str) -> LockedRoom:
        """The lock on this room; `InvalidInput` where it was not taken."""
        locked = self._rooms.get((tenant, room_id))
        if locked is None:
            raise InvalidInput("Lock the room in this unit of work before writing to it.")
        return locked

    def take_scope(self, locked: LockedScope) -> None:
        self._scopes[locked.tenant, locked.scope] = locked

    def held_scope(self, tenant: str, scope: str) -> LockedScope:
        """The lock on this scope; `InvalidInput` where it was not taken."""
        locked = self._scopes.get((tenant, scope))
        if locked is None:
            raise InvalidInput("Lock the scope in this unit of work before writing to it.")
        return locked


class SqlRooms:
    """The port `Rooms`."""

    def __init__(self, connection: Connection, locks: Locks) -> None:
        self._sql = connection
        self._locks = locks

    async def find(self, *, tenant: str, room_id: str) -> Room | None:
        rows = await self._sql.fetch(_FIND, tenant=escape(tenant), room_id=escape(room_id))
        return to_room(rows[0]) if rows else None

    async def page(self, *, tenant: str, after: str | None, limit: int) -> list[Room]:
        if after is None:
            rows = await self._sql.fetch(_PAGE_FROM_START, tenant=escape(tenant), count=limit)
        else:
            rows = await self._sql.fetch(_PAGE_AFTER, tenant=escape(tenant), after=escape(after), count=limit)
        return [to_room(row) for row in rows]

    async def lock(self, *, tenant: str, room_id: str, now: datetime) -> Room:
        self._locks.check_writing()
        named = {"tenant": escape(tenant), "room_id": escape(room_id)}
        rows = await self._sql.fetch(_LOCK, **named)
        if not rows:
            await self._sql.fetch(_MAKE, now=to_micros(now), **named)
            rows = await self._sql.fetch(_LOCK, **named)
        self._locks.take(LockedRoom(rows[0][0], tenant, room_id, bool(rows[0][1])))
        return to_room(rows[0][2:])

    async def configure(self, *, tenant: str, room_id: str, settings: Mapping[str, Any]) -> Room:
        self._locks.check_writing()
        rows = await self._sql.fetch(
            _CONFIGURE, tenant=escape(tenant), room_id=escape(room_id), new_settings=_settings_text(settings)
        )
        if not rows:
            raise NotFound(f"There is no room {room_id!r}.")
        return to_room(rows[0])

    async def participants(self, *, tenant: str, room_id: str) -> dict[str, str]:
        rows = await self._sql.fetch(_PEOPLE, tenant=escape(tenant), room_id=escape(room_id))
        return {unescape(sender): unescape(name) for sender, name in rows}

    async def participants_before(self, *, tenant: str, room_id: str, arrival: int) -> dict[str, str]:
        rows = await self._sql.fetch(_PEOPLE_BEFORE, tenant=escape(tenant), room_id=escape(room_id), before=arrival)
        return {unescape(sender): unescape(name) for sender, name in rows}

    async def of_sender(self, *, tenant: str, sender_id: str) -> list[str]:
        rows = await self._sql.fetch(_ROOMS_OF, tenant=escape(tenant), sender_id=escape(sender_id))
        return [unescape(room_id) for (room_id,) in rows]


def _settings_text(settings: Mapping[str, Any]) -> str:
    try:
        return mapping_text(settings)
    except (TypeError, ValueError, RecursionError) as exc:
        raise InvalidInput(f"The settings of a room must be JSON: {exc}") from exc
