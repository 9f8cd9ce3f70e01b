"""Parts of `Maintenance`: removing a person from rooms, sessions, memories and rows."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import (
    Integer,
    and_,
    bindparam,
    case,
    cast,
    delete,
    exists,
    func,
    literal,
    literal_column,
    or_,
    select,
    update,
)

from roomlore.core.memory.memory import Change, Evolution, Memory
from roomlore.core.models import Role
from roomlore.storage import schema
from roomlore.storage.engine import LockedRoom, Repository, Statement, among, among_many, in_locked_room
from roomlore.storage.rows import names_text, numbers_text
from roomlore.storage.shapes import CONTENT, EVOLUTION, MEMORY, change_values, content_values, read_sources
from roomlore.storage.values import OF_PEOPLE, RoomOfPerson
from roomlore.storage.words import WithWords

_r, _m, _w, _p = schema.rooms, schema.messages, schema.message_words, schema.participants
_s, _c = schema.sessions, schema.checkpoints
_vs, _v = schema.vector_scopes, schema.vectors
_LIKE = re.compile("[!%_]")
_MESSAGE_TABLES = (
    schema.message_words,
    schema.features,
    schema.index_outbox,
    schema.link_corrections,
    schema.messages,
)
"""The tables with rows of a message, in the order of their deletion."""
_BY_KEY = (
    schema.participants,
    schema.room_members,
    schema.keyword_counts,
    schema.checkpoints,
    schema.sessions,
    schema.thread_titles,
)
_BY_NAME = (schema.usage_records, schema.watermarks, schema.rooms_due)


def _others() -> Any:
    return exists().where(
        _m.c.room_key == _r.c.room_key,
        _m.c.sender_id != bindparam("user_id"),
        _m.c.role == Role.USER.value,
        _m.c.deleted_at.is_(None),
    )


def _others_in() -> Any:
    return select(_r.c.room_id).where(
        _r.c.tenant == bindparam("tenant"), _r.c.room_id == bindparam("room_id"), _others()
    )


def _rooms_of() -> Any:
    """Select the person's rooms. `others`: the room has a message of another person. Matches of LIKE are checked again,
    as SQLite ignores the case of letters."""
    spoke = exists().where(_p.c.room_key == _r.c.room_key, _p.c.sender_id == bindparam("user_id"))
    owns = exists().where(_s.c.room_key == _r.c.room_key, _s.c.user_id == bindparam("user_id"))
    others = _others()
    named = (":" + _r.c.room_id + ":").like(bindparam("pattern"), escape="!")
    return (
        select(_r.c.room_id, others, or_(spoke, owns))
        .where(_r.c.tenant == bindparam("tenant"), or_(spoke, owns, named))
        .order_by(_r.c.room_id)
    )


def _said_by_others() -> Any:
    return (
        select(_m.c.text)
        .where(
            _m.c.tenant == bindparam("tenant"),
            _m.c.sender_id != bindparam("user_id"),
            _m.c.role == Role.USER.value,
            among_many(_m.c.text, "texts"),
        )
        .distinct()
    )


def _forget_session() -> Any:
    taken = update(_s).where(in_locked_room(_s), _s.c.user_id == bindparam("its_user"))
    return taken.values(
        user_id="", enterprise_id=None, patient_id=None, agent_key="", state="{}", version=_s.c.version + 1
    ).returning(_s.c.room_key)


def _summaries() -> Any:
    covers = in_locked_room(_c), _c.c.covers_arrival >= bindparam("first")
    return delete(_c).where(*covers, _c.c.kind == literal("summary")).returning(_c.c.number)


def _first() -> Any:
    """Select messages with their part of the room's counters: 1 unless deleted, and the number of words."""
    its = and_(_w.c.room_key == _m.c.room_key, _w.c.arrival == _m.c.arrival, _w.c.tenant == _m.c.tenant)
    words = func.coalesce(cast(_w.c.length, Integer), literal_column("0"))
    counted = (case((_m.c.deleted_at.is_(None), 1), else_=0), words)
    rows = select(_m.c.arrival, *counted).select_from(_m.outerjoin(_w, its))
    return rows.where(in_locked_room(_m)).order_by(_m.c.arrival).limit(bindparam("count"))


def _step() -> Any:
    """Update the room's counters after each step, so that they are right even if no other step follows."""
    left = {name: _r.c[name] - bindparam(f"fewer_{name}", type_=_r.c[name].type) for name in ("messages", "words")}
    return update(_r).where(in_locked_room(_r)).values(revision=_r.c.revision + 1, **left)


def _without_checkpoint() -> Any:
    there = exists().where(_c.c.room_key == _s.c.room_key, _c.c.number == _s.c.checkpoint)
    lost = update(_s).where(in_locked_room(_s), _s.c.checkpoint.is_not(None), ~there)
    return lost.values(checkpoint=None, version=_s.c.version + 1)


_ROOMS_OF = Statement(_rooms_of)
_OTHERS_IN = Statement(_others_in)
_SAID_BY_OTHERS = Statement(_said_by_others)
_FORGET_SESSION = Statement(_forget_session)
_SUMMARIES = Statement(_summaries)
_WITHOUT_CHECKPOINT = Statement(_without_checkpoint)
_RESETS = Statement(
    lambda: update(_c).where(in_locked_room(_c), _c.c.covers_arrival >= bindparam("first")).values(covers_through=None)
)
_RENAME = Statement(
    lambda: (
        update(_m)
        .where(in_locked_room(_m), _m.c.arrival == bindparam("own"))
        .values(message_id=bindparam("new_id", type_=_m.c.message_id.type))
    )
)
_FIRST = Statement(_first)
_STEP = Statement(_step)
_VECTOR_SCOPES = Statement(
    lambda: (
        delete(_vs)
        .where(_vs.c.tenant == bindparam("tenant"), _vs.c.scope == bindparam("scope"))
        .returning(_vs.c.scope_key)
    )
)
_VECTORS = Statement(lambda: delete(_v).where(_v.c.scope_key == bindparam("scope_key")))


def _without(table: Any, *where: Any) -> Statement:
    return Statement(lambda: delete(table).where(*where))


_GO = [_without(table, in_locked_room(table), among(table.c.arrival, "arrivals")) for table in _MESSAGE_TABLES]
_GO_BY_KEY = [_without(table, in_locked_room(table)) for table in (*_BY_KEY, _r)]
_GO_BY_NAME = [
    _without(
        table,
        table.c.tenant == bindparam("tenant"),
        table.c.room_id == bindparam("room_id"),
        *([table.c.work != literal(kind) for kind in OF_PEOPLE] if table is schema.rooms_due else []),
    )
    for table in _BY_NAME
]


class PeopleInRooms(WithWords):
    """A part of `Maintenance`: the data of people in rooms."""

    async def rooms_of(self, *, user_id: str) -> list[RoomOfPerson]:
        """Return the rooms, ascending by id."""
        part = f":{user_id}:"
        values = {"user_id": user_id, "pattern": f"%{_spelled_out(part)}%"}
        rows = await self._sql.fetch(_ROOMS_OF, tenant=self._tenant, **values)
        return [RoomOfPerson(row[0], bool(row[1])) for row in rows if row[2] or part in f":{row[0]}:"]

    async def others_in(self, *, room_id: str, user_id: str) -> bool:
        """Return True if anybody else but assistants has spoken in the room; False if there is no such room."""
        values = {"tenant": self._tenant, "room_id": room_id, "user_id": user_id}
        return bool(await self._sql.fetch(_OTHERS_IN, **values))

    async def said_by_others(self, *, user_id: str, texts: Sequence[str]) -> set[str]:
        """Return those of these texts that are the whole of a message of another user."""
        if not texts:
            return set()
        values = {"tenant": self._tenant, "user_id": user_id, "texts": names_text(texts)}
        return {row[0] for row in await self._sql.fetch(_SAID_BY_OTHERS, **values)}

    async def rename_messages(self, *, room_id: str, ids: Mapping[int, str]) -> None:
        """Give the messages at these arrivals other ids. The room is locked."""
        its = _params(self._locks.held(self._tenant, room_id))
        ordered = _RENAME.on(self._sql.dialect).ordered
        rows = [ordered({**its, "own": arrival, "new_id": name}) for arrival, name in ids.items()]
        if rows:
            await self._sql.many(_RENAME, rows)

    async def forget_session(self, *, room_id: str, user_id: str, first: int) -> int:
        """Remove the person from the room's session, with everything that callers keep with it if it is theirs, and
        delete the summaries that cover arrival `first` (0: none). Return the number of entries. The room is locked."""
        its = _params(self._locks.held(self._tenant, room_id))
        taken = len(await self._sql.fetch(_FORGET_SESSION, **its, its_user=user_id))
        if first:
            taken += len(await self._sql.fetch(_SUMMARIES, **its, first=first))
            await self._sql.fetch(_RESETS, **its, first=first)
            await self._sql.fetch(_WITHOUT_CHECKPOINT, **its)
        return taken

    async def remove_room(self, *, room_id: str, limit: int) -> int:
        """Remove up to `limit` messages of a locked room with all dependent rows and, when none is left, the room with
        everything stored under its id. Return 0 or more while work is left, -1 once the room is gone."""
        if not await self.remove_messages(room_id=room_id, limit=limit):
            await self.remove_shell(room_id=room_id)
            return -1
        return len(await self._sql.fetch(_FIRST, **_params(self._locks.held(self._tenant, room_id)), count=1))

    async def remove_messages(self, *, room_id: str, limit: int) -> int:
        """Remove up to `limit` messages of a locked room with all dependent rows, and return how many.

        Words are removed from the index before their rows: the index has no text to identify them.
        """
        room = self._locks.held(self._tenant, room_id)
        its = _params(room)
        first = await self._sql.fetch(_FIRST, **its, count=limit)
        if not first:
            return 0
        arrivals, messages, words = zip(*first, strict=True)
        await self._index.clear(room, arrivals, revision=0)
        for statement in _GO:
            await self._sql.fetch(statement, **its, arrivals=numbers_text(arrivals))
        await self._sql.fetch(_STEP, **its, fewer_messages=sum(messages), fewer_words=sum(words))
        return len(first)

    async def drop_vector_scope(self, *, scope: str) -> None:
        """Delete the name of a scope of vectors in this database, with its remaining vectors."""
        self._locks.check_writing()
        for (scope_key,) in await self._sql.fetch(_VECTOR_SCOPES, tenant=self._tenant, scope=scope):
            await self._sql.fetch(_VECTORS, scope_key=scope_key)

    async def remove_shell(self, *, room_id: str) -> None:
        """Remove a locked room without messages, with everything stored under its id."""
        room = self._locks.held(self._tenant, room_id)
        named = {"tenant": room.tenant, "room_id": room.room_id}
        for statement in _GO_BY_NAME:
            await self._sql.fetch(statement, **named)
        await self.drop_vector_scope(scope=room.room_id)
        for statement in _GO_BY_KEY:
            await self._sql.fetch(statement, **_params(room))


def _spelled_out(part: str) -> str:
    return _LIKE.sub(lambda sign: f"!{sign[0]}", part)


def _params(room: LockedRoom) -> dict[str, Any]:
    return {"room_key": room.key, "tenant": room.tenant}


_scopes, _memories, _src, _changes, _e = (
    schema.scopes,
    schema.memories,
    schema.sources,
    schema.changes,
    schema.evolutions,
)
_ENTRY = ("memory", "old_statement", "reason", "actor")
_RECORD = ("room_id", "raw_answer", "quarantined", "facts", "error")

_its_key = (
    select(_scopes.c.scope_key)
    .where(_scopes.c.tenant == bindparam("its_tenant"), _scopes.c.scope == bindparam("its_scope"))
    .scalar_subquery()
)
_of_tenant = _memories.c.tenant == bindparam("its_tenant")


def _set(table: Any, names: Sequence[str], *where: Any) -> Any:
    """Return an update. Its parameters must not have the names of columns."""
    values = {name: bindparam(f"new_{name}", type_=table.c[name].type) for name in names}
    return update(table).where(*where).values(values)


_VERSIONS = Statement(
    lambda: (
        select(_memories.c.memory_key, *MEMORY.columns)
        .select_from(_memories.join(_scopes, _scopes.c.scope_key == _memories.c.scope_key))
        .where(_of_tenant, _memories.c.memory_key > bindparam("after"))
        .order_by(_memories.c.memory_key)
        .limit(bindparam("count"))
    )
)
_STORED = Statement(
    lambda: select(_memories.c.memory_id, _memories.c.memory_key, _memories.c.sources).where(
        _of_tenant, _memories.c.scope_key == _its_key, among(_memories.c.memory_id, "memory_ids")
    )
)
_REWRITE = Statement(lambda: _set(_memories, CONTENT, _memories.c.memory_key == bindparam("key"), _of_tenant))
_NO_SUPPORT = Statement(
    lambda: delete(_src).where(
        _src.c.tenant == bindparam("its_tenant"),
        _src.c.room_id == bindparam("its_room"),
        _src.c.message_id == bindparam("its_message"),
        _src.c.memory_key == bindparam("key"),
    )
)
_ENTRIES = Statement(
    lambda: _set(
        _changes,
        _ENTRY,
        _changes.c.tenant == bindparam("its_tenant"),
        _changes.c.scope_key == _its_key,
        _changes.c.number == bindparam("its_number"),
    )
)
_RENAME_SCOPE = Statement(
    lambda: _set(_scopes, ("scope",), _scopes.c.tenant == bindparam("its_tenant"), _scopes.c.scope_key == _its_key)
)
_RENAME_RECORDS = Statement(
    lambda: _set(_e, ("scope",), _e.c.tenant == bindparam("its_tenant"), _e.c.scope == bindparam("its_scope"))
)
_RECORDS = Statement(
    lambda: (
        select(*EVOLUTION.columns)
        .where(_e.c.tenant == bindparam("its_tenant"), _e.c.evolution_id > bindparam("after"))
        .order_by(_e.c.evolution_id)
        .limit(bindparam("count"))
    )
)
_LOCK_RECORDS = Statement(
    lambda: (
        select(*EVOLUTION.columns)
        .where(_e.c.tenant == bindparam("its_tenant"), among(_e.c.evolution_id, "evolution_ids"))
        .order_by(_e.c.evolution_id)
        .with_for_update()
    )
)
_REWRITE_RECORD = Statement(
    lambda: _set(_e, _RECORD, _e.c.tenant == bindparam("its_tenant"), _e.c.evolution_id == bindparam("its_id"))
)


class Rewriting(Repository):
    """A part of `Maintenance`: rewriting memories in place."""

    async def versions(self, *, after: int, limit: int) -> list[tuple[int, Memory]]:
        """Return every version of any scope with a row number above `after`, with that number, ascending."""
        rows = await self._sql.fetch(_VERSIONS, its_tenant=self._tenant, after=after, count=limit)
        return [(row[0], MEMORY.read(row[1:])) for row in rows]

    async def rewrite_versions(self, *, scope: str, memories: Sequence[Memory]) -> None:
        """Replace the statements of these versions, and their sources; ids, order and status stay. The scope is
        locked."""
        self._locks.held_scope(self._tenant, scope)
        ids = names_text([memory.memory_id for memory in memories])
        rows = await self._sql.fetch(_STORED, **_its(self._tenant, scope), memory_ids=ids)
        stored = {memory_id: (key, read_sources(sources)) for memory_id, key, sources in rows}
        for memory in memories:
            key, sources = stored[memory.memory_id]
            own = {"its_tenant": self._tenant, "key": key}
            await self._sql.fetch(_REWRITE, **own, **_new(content_values(memory)))
            for source in set(sources).difference(memory.sources):
                named = {"its_room": source.room_id, "its_message": source.message_id}
                await self._sql.fetch(_NO_SUPPORT, **own, **named)

    async def rewrite_changes(self, *, scope: str, changes: Sequence[Change]) -> None:
        """Replace the content of these log entries; ids, order and action stay. The scope is locked."""
        self._locks.held_scope(self._tenant, scope)
        for change in changes:
            values = change_values(change)
            new = _new({name: values[name] for name in _ENTRY})
            await self._sql.fetch(_ENTRIES, **_its(self._tenant, scope), its_number=change.number, **new)

    async def rename_scope(self, *, scope: str, name: str) -> None:
        """Rename a locked scope, with its memories, log and records."""
        self._locks.held_scope(self._tenant, scope)
        await self._sql.fetch(_RENAME_RECORDS, **_its(self._tenant, scope), new_scope=name)
        await self._sql.fetch(_RENAME_SCOPE, **_its(self._tenant, scope), new_scope=name)

    async def evolutions(self, *, after: str, limit: int) -> list[Evolution]:
        """Return the tenant's records with an id above `after`, ascending."""
        rows = await self._sql.fetch(_RECORDS, its_tenant=self._tenant, after=after, count=limit)
        return [EVOLUTION.read(row) for row in rows]

    async def lock_evolutions(self, *, evolution_ids: Sequence[str]) -> list[Evolution]:
        """Return these records as they are now, ascending by id, and let no one else change them until the end of the
        unit of work."""
        self._locks.check_writing()
        ids = names_text(evolution_ids)
        rows = await self._sql.fetch(_LOCK_RECORDS, its_tenant=self._tenant, evolution_ids=ids)
        return [EVOLUTION.read(row) for row in rows]

    async def rewrite_evolution(self, *, evolution: Evolution) -> None:
        """Replace the texts of the record, and its room."""
        self._locks.check_writing()
        values = EVOLUTION.values(evolution)
        new = _new({name: values[name] for name in _RECORD})
        await self._sql.fetch(_REWRITE_RECORD, its_tenant=self._tenant, its_id=evolution.evolution_id, **new)


def _its(tenant: str, scope: str) -> dict[str, str]:
    return {"its_tenant": tenant, "its_scope": scope}


def _new(values: Mapping[str, Any]) -> dict[str, Any]:
    return {f"new_{name}": value for name, value in values.items()}
