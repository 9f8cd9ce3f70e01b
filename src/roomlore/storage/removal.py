"""A part of `Maintenance`: deleting a room that nobody sees any more, and a scope of memories as a whole."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import bindparam, delete, func, literal, literal_column, or_, select, update

from roomlore.storage import schema
from roomlore.storage.engine import LockedRoom, Repository, Statement, in_locked_room, in_room, in_use, key_of_scope
from roomlore.storage.rooms import keeps_vectors
from roomlore.storage.rows import containing, list_text

_r, _e, _src = schema.rooms, schema.evolutions, schema.sources
_COUNTED = (
    *("messages", "link_corrections", "thread_titles", "checkpoints", "sessions", "room_members"),
    *("archives", "context_usage_records", "watermarks"),
)
_SEEN_ELSEWHERE = ("link_corrections", "participants", "room_members", "checkpoints", "sessions")
"""The tables of a room that are also read over all rooms: they are emptied when it is hidden."""


def _named(table: Any) -> Any:
    return (table.c.tenant == bindparam("tenant"), table.c.room_id == bindparam("room_id"))


def _count(table: Any) -> Statement:
    there = (in_room(table),) if "room_key" in table.c else _named(table)
    undeleted = [table.c.deleted_at.is_(None)] if table is schema.messages else []
    return Statement(lambda: select(func.count()).select_from(table).where(*there, *undeleted))


def _without(table: Any, *where: Any) -> Statement:
    return Statement(lambda: delete(table).where(*where))


def _spoke_elsewhere() -> Any:
    """Select how many people of the room have spoken in another room too."""
    here = schema.participants
    there = here.alias("there")
    beside = there.join(_r, _r.c.room_key == there.c.room_key)
    others = (
        there.c.tenant == here.c.tenant,
        there.c.sender_id == here.c.sender_id,
        there.c.room_key != here.c.room_key,
    )
    elsewhere = select(there.c.sender_id).select_from(beside).where(*others, in_use).exists()
    return select(func.count()).select_from(here).where(in_room(here), elsewhere)


def _lock() -> Any:
    columns = (_r.c.room_key, keeps_vectors, _r.c.pending_from, _r.c.next_arrival, _r.c.settings)
    return select(*columns).where(*_named(_r), ~in_use).with_for_update()


def _hide() -> Any:
    new = {"kind": literal(schema.BEING_DELETED), "settings": bindparam("report"), "past_kinds": "", "room_name": ""}
    return update(_r).where(in_locked_room(_r)).values(**new, revision=_r.c.revision + literal_column("1"))


def _named_in_memories() -> Any:
    """Select the scopes in which a message of the room supports a memory, or an entry of the log names the room. An
    entry has the whole version: its sources, its evidence and whom it was shared with."""
    _m, _c, _s = schema.memories, schema.changes, schema.scopes
    supported = select(_m.c.scope_key).join(_src, _src.c.memory_key == _m.c.memory_key).where(*_named(_src))
    named = or_(*(_c.c.memory.like(bindparam(name), escape="!") for name in ("its_id", "as_reader")))
    logged = select(_c.c.scope_key).where(_c.c.tenant == bindparam("tenant"), named)
    there = or_(_s.c.scope_key.in_(supported), _s.c.scope_key.in_(logged))
    return select(_s.c.scope).where(_s.c.tenant == bindparam("tenant"), there).order_by(_s.c.scope)


_its_memories = select(schema.memories.c.memory_key).where(schema.memories.c.scope_key == key_of_scope())
_lease = literal_column("'evolution:'").concat(bindparam("scope", type_=schema.Name))
_COUNTS = {name: _count(schema.metadata.tables[name]) for name in _COUNTED}
_SPOKE_ELSEWHERE = Statement(_spoke_elsewhere)
_LOCK = Statement(_lock)
_HIDE = Statement(_hide)
_EMPTY = [_without(table, in_locked_room(table)) for table in map(schema.metadata.tables.__getitem__, _SEEN_ELSEWHERE)]
_NO_USAGE = _without(schema.usage_records, *_named(schema.usage_records))
_NUMBERS = Statement(lambda: _its_memories.order_by(schema.memories.c.memory_key))
_DROP_SCOPE = [
    _without(_src, _src.c.memory_key.in_(_its_memories)),
    *(
        _without(table, table.c.scope_key == key_of_scope())
        for table in (schema.outbox, schema.changes, schema.snapshots, schema.memories)
    ),
    *(
        _without(table, table.c.tenant == bindparam("tenant"), name == of)
        for table, name, of in (
            (_e, _e.c.scope, bindparam("scope")),
            (schema.scopes, schema.scopes.c.scope, bindparam("scope")),
            (schema.leases, schema.leases.c.name, _lease),
        )
    ),
]
_NAMED_IN = Statement(_named_in_memories)
_SUPPORTS = Statement(lambda: select(_src.c.memory_key).where(*_named(_src)).limit(1))
_POSITIONS = _without(schema.import_positions, schema.import_positions.c.tenant == bindparam("tenant"))


class RoomRemoval(Repository):
    """Rooms from the time they are hidden until they are gone (`remove_room`)."""

    async def count_of_room(self, *, room_id: str) -> tuple[Mapping[str, int], int]:
        """Return how many rows of the room some tables have, and how many of its people spoke in other rooms too."""
        its = {"tenant": self._tenant, "room_id": room_id}
        counts = {name: int((await self._sql.fetch(count, **its))[0][0]) for name, count in _COUNTS.items()}
        return counts, int((await self._sql.fetch(_SPOKE_ELSEWHERE, **its))[0][0])

    async def hide_room(self, *, room_id: str, report: str) -> None:
        """Hide a locked room from every reader and writer, without who was in it and the records of its contexts.
        `report`: is kept in it."""
        room = self._locks.held(self._tenant, room_id)
        its = {"tenant": self._tenant, "room_key": room.key}
        await self._sql.fetch(_HIDE, report=report, **its)
        for statement in _EMPTY:
            await self._sql.fetch(statement, **its)
        await self._sql.fetch(_NO_USAGE, tenant=self._tenant, room_id=room_id)

    async def lock_hidden(self, *, room_id: str) -> tuple[int, str] | None:
        """Lock a hidden room, and return its last arrival and what is kept in it; None if there is none."""
        self._locks.check_writing()
        rows = await self._sql.fetch(_LOCK, tenant=self._tenant, room_id=room_id)
        if not rows:
            return None
        key, keeps, pending_from, following, report = rows[0]
        self._locks.take(LockedRoom(key, self._tenant, room_id, bool(keeps), pending_from))
        return following - 1, report

    async def numbers_in(self, *, scope: str) -> Sequence[int]:
        """Return the row numbers of all versions in a scope, ascending."""
        return [row[0] for row in await self._sql.fetch(_NUMBERS, tenant=self._tenant, scope=scope)]

    async def drop_scope(self, *, scope: str) -> Sequence[int]:
        """Delete a locked scope with its memories, their log and the records of what made them. Return the row numbers
        of its versions."""
        self._locks.held_scope(self._tenant, scope)
        numbers = await self.numbers_in(scope=scope)
        for statement in _DROP_SCOPE:
            await self._sql.fetch(statement, tenant=self._tenant, scope=scope)
        return numbers

    async def scopes_naming(self, *, room_id: str) -> list[str]:
        """Return the scopes with memories that rest on the room or were shared with it, and perhaps some others."""
        patterns = (containing(list_text([name])[1:-1]) for name in (room_id, f"room:{room_id}"))
        its = dict(zip(("its_id", "as_reader"), patterns, strict=True))
        return [row[0] for row in await self._sql.fetch(_NAMED_IN, tenant=self._tenant, room_id=room_id, **its)]

    async def supports(self, *, room_id: str) -> bool:
        """Return True if a message of the room supports any memory."""
        return bool(await self._sql.fetch(_SUPPORTS, tenant=self._tenant, room_id=room_id))

    async def drop_import_positions(self) -> None:
        """Delete the positions of imports that broke off: what they had brought into a room may be gone."""
        self._locks.check_writing()
        await self._sql.fetch(_POSITIONS, tenant=self._tenant)
