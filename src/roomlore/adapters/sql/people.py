"""People in rooms: where they spoke, and rooms and sessions without them."""

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

from roomlore.adapters.sql import schema, schema_memories
from roomlore.adapters.sql.drivers import Connection
from roomlore.adapters.sql.rooms import LockedRoom, Locks
from roomlore.adapters.sql.statements import Statement, among, among_many, in_locked_room
from roomlore.adapters.sql.values import escape, names_text, numbers_text, unescape
from roomlore.adapters.sql.word_index import WordIndex
from roomlore.core.models import Role
from roomlore.ports.privacy import RoomOfPerson

_r, _m, _w, _p = schema.rooms, schema.messages, schema.message_words, schema.participants
_s, _c = schema.sessions, schema.checkpoints
_vs, _v = schema.vector_scopes, schema.vectors
_LIKE = re.compile("[!%_]")
_HANGING = (schema.message_words, schema.features, schema.index_outbox, schema.messages)
"""What there is of a message, in the order in which it can go."""
_BY_KEY = (schema.participants, schema.keyword_counts, schema.checkpoints, schema.sessions)
_BY_NAME = (schema.usage_records, schema_memories.watermarks, schema_memories.rooms_due)


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
    """`others`: a message that a person wrote who is not this one. What LIKE finds is looked at once more, as SQLite
    takes capital letters for small ones."""
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
    """With what the room counts of each: itself where it is not deleted, and its words."""
    its = and_(_w.c.room_key == _m.c.room_key, _w.c.arrival == _m.c.arrival, _w.c.tenant == _m.c.tenant)
    words = func.coalesce(cast(_w.c.length, Integer), literal_column("0"))
    counted = (case((_m.c.deleted_at.is_(None), 1), else_=0), words)
    rows = select(_m.c.arrival, *counted).select_from(_m.outerjoin(_w, its))
    return rows.where(in_locked_room(_m)).order_by(_m.c.arrival).limit(bindparam("count"))


def _step() -> Any:
    """The room counts what is left, even where nobody comes back for the rest."""
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
_VECTORS = Statement(lambda: delete(_v).where(among(_v.c.scope_key, "keys")))


def _without(table: Any, *where: Any) -> Statement:
    return Statement(lambda: delete(table).where(*where))


_GO = [_without(table, in_locked_room(table), among(table.c.arrival, "arrivals")) for table in _HANGING]
_GO_BY_KEY = [_without(table, in_locked_room(table)) for table in (*_BY_KEY, _r)]
_GO_BY_NAME = [
    _without(table, table.c.tenant == bindparam("tenant"), table.c.room_id == bindparam("room_id"))
    for table in _BY_NAME
]


class SqlPeople:
    """The port `People`."""

    def __init__(self, connection: Connection, locks: Locks) -> None:
        self._sql = connection
        self._locks = locks
        self._index = WordIndex(connection)

    async def rooms_of(self, *, tenant: str, user_id: str) -> list[RoomOfPerson]:
        part = f":{escape(user_id)}:"
        asked = {"user_id": escape(user_id), "pattern": f"%{_spelled_out(part)}%"}
        rows = await self._sql.fetch(_ROOMS_OF, tenant=escape(tenant), **asked)
        return [RoomOfPerson(unescape(row[0]), bool(row[1])) for row in rows if row[2] or part in f":{row[0]}:"]

    async def others_in(self, *, tenant: str, room_id: str, user_id: str) -> bool:
        asked = {"tenant": escape(tenant), "room_id": escape(room_id), "user_id": escape(user_id)}
        return bool(await self._sql.fetch(_OTHERS_IN, **asked))

    async def said_by_others(self, *, tenant: str, user_id: str, texts: Sequence[str]) -> set[str]:
        if not texts:
            return set()
        asked = {"tenant": escape(tenant), "user_id": escape(user_id), "texts": names_text(texts)}
        return {unescape(row[0]) for row in await self._sql.fetch(_SAID_BY_OTHERS, **asked)}

    async def rename_messages(self, *, tenant: str, room_id: str, ids: Mapping[int, str]) -> None:
        its = _params(self._locks.held(tenant, room_id))
        bind = _RENAME.on(self._sql.dialect).bind
        rows = [bind({**its, "own": arrival, "new_id": escape(name)}) for arrival, name in ids.items()]
        if rows:
            await self._sql.many(_RENAME, rows)

    async def forget_session(self, *, tenant: str, room_id: str, user_id: str, first: int) -> int:
        its = _params(self._locks.held(tenant, room_id))
        taken = len(await self._sql.fetch(_FORGET_SESSION, **its, its_user=escape(user_id)))
        if first:
            taken += len(await self._sql.fetch(_SUMMARIES, **its, first=first))
            await self._sql.fetch(_RESETS, **its, first=first)
            await self._sql.fetch(_WITHOUT_CHECKPOINT, **its)
        return taken

    async def remove_room(self, *, tenant: str, room_id: str, limit: int) -> int:
        """Words are taken out of the index before their rows go: it keeps no text to know them by."""
        room = self._locks.held(tenant, room_id)
        its = _params(room)
        first = await self._sql.fetch(_FIRST, **its, count=limit)
        if not first:
            await self._remove_shell(room)
            return -1
        arrivals, messages, words = zip(*first, strict=True)
        await self._index.clear(room, arrivals, revision=0)
        for statement in _GO:
            await self._sql.fetch(statement, **its, arrivals=numbers_text(arrivals))
        await self._sql.fetch(_STEP, **its, fewer_messages=sum(messages), fewer_words=sum(words))
        return len(await self._sql.fetch(_FIRST, **its, count=1))

    async def drop_vector_scope(self, *, tenant: str, scope: str) -> None:
        self._locks.check_writing()
        rows = await self._sql.fetch(_VECTOR_SCOPES, tenant=escape(tenant), scope=escape(scope))
        if rows:
            await self._sql.fetch(_VECTORS, keys=numbers_text([row[0] for row in rows]))

    async def _remove_shell(self, room: LockedRoom) -> None:
        named = {"tenant": escape(room.tenant), "room_id": escape(room.room_id)}
        for statement in _GO_BY_NAME:
            await self._sql.fetch(statement, **named)
        await self.drop_vector_scope(tenant=room.tenant, scope=room.room_id)
        for statement in _GO_BY_KEY:
            await self._sql.fetch(statement, **_params(room))


def _spelled_out(part: str) -> str:
    return _LIKE.sub(lambda sign: f"!{sign[0]}", part)


def _params(room: LockedRoom) -> dict[str, Any]:
    return {"room_key": room.key, "tenant": escape(room.tenant)}
