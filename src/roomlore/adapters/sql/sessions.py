"""The port `Sessions`, and rows of sessions and checkpoints to values and back."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Select, and_, bindparam, select, update
from sqlalchemy.dialects.postgresql import insert

from roomlore.adapters.sql import schema
from roomlore.adapters.sql.engine import Row, Statement, among, in_locked_room, in_room
from roomlore.adapters.sql.locks import LockedRoom, Repository
from roomlore.adapters.sql.rows import (
    escape,
    escape_or_none,
    from_micros,
    mapping_text,
    numbers_text,
    read_mapping,
    to_micros,
    to_micros_or_none,
    unescape,
    unescape_or_none,
)
from roomlore.core.errors import Conflict, InvalidInput
from roomlore.core.sessions.session import Checkpoint, Due, Session

_r, _s, _c = schema.rooms, schema.sessions, schema.checkpoints

_ROOM_COLUMNS = (_r.c.room_id, _r.c.revision, _r.c.next_arrival, _r.c.created_at)
_OWN_COLUMNS = (
    _s.c.version,
    _s.c.user_id,
    _s.c.enterprise_id,
    _s.c.patient_id,
    _s.c.agent_key,
    _s.c.boundary,
    _s.c.state,
    _s.c.marks,
    _s.c.due_at,
    _s.c.due_tries,
    _s.c.due_window,
    _s.c.created_at,
    _s.c.updated_at,
)
CHECKPOINT_COLUMNS = (
    _c.c.number,
    _c.c.checkpoint_id,
    _c.c.kind,
    _c.c.summary,
    _c.c.covers_arrival,
    _c.c.covers_through,
    _c.c.turns,
    _c.c.tokens,
    _c.c.recent_turns,
    _c.c.language,
    _c.c.made_by,
    _c.c.created_at,
)
SESSION_COLUMNS = (*_ROOM_COLUMNS, *_OWN_COLUMNS, *CHECKPOINT_COLUMNS)
_OWN_AT = len(_ROOM_COLUMNS)
_CHECKPOINT_AT = _OWN_AT + len(_OWN_COLUMNS)


def session_values(session: Session) -> dict[str, Any]:
    """Return the values that `save` writes, by column."""
    return {
        "user_id": escape(session.user_id),
        "enterprise_id": escape_or_none(session.enterprise_id),
        "patient_id": escape_or_none(session.patient_id),
        "agent_key": escape(session.agent_key),
        "boundary": session.boundary,
        "state": _state_text(session),
        "checkpoint": session.checkpoint.number if session.checkpoint else None,
        "version": session.version,
        "marks": session.marks,
        "created_at": to_micros(session.created_at),
        "updated_at": to_micros(session.updated_at),
    }


def _state_text(session: Session) -> str:
    try:
        return mapping_text(session.state)
    except (TypeError, ValueError, RecursionError) as exc:
        raise InvalidInput(f"The state of session {session.conversation_id!r} must be JSON: {exc}") from exc


def checkpoint_values(checkpoint: Checkpoint) -> dict[str, Any]:
    return {
        "number": checkpoint.number,
        "checkpoint_id": escape(checkpoint.checkpoint_id),
        "kind": checkpoint.kind,
        "summary": escape(checkpoint.summary),
        "covers_arrival": checkpoint.covers_arrival,
        "covers_through": escape_or_none(checkpoint.covers_through),
        "turns": checkpoint.turns,
        "tokens": checkpoint.tokens,
        "recent_turns": checkpoint.recent_turns,
        "language": checkpoint.language,
        "made_by": escape(checkpoint.made_by),
        "created_at": to_micros(checkpoint.created_at),
    }


def to_session(tenant: str, row: Row) -> Session:
    own, checkpoint = row[_OWN_AT:_CHECKPOINT_AT], row[_CHECKPOINT_AT:]
    conversation_id, made = unescape(row[0]), from_micros(row[3])
    none = Session(
        tenant=tenant,
        conversation_id=conversation_id,
        revision=row[1],
        next_arrival=row[2],
        created_at=made,
        updated_at=made,
    )
    if own[0] is None:
        return none
    return replace(
        none,
        version=own[0],
        user_id=unescape(own[1]),
        enterprise_id=unescape_or_none(own[2]),
        patient_id=unescape_or_none(own[3]),
        agent_key=unescape(own[4]),
        boundary=own[5],
        state=read_mapping(own[6]),
        checkpoint=None if checkpoint[0] is None else to_checkpoint(conversation_id, checkpoint),
        marks=own[7],
        due=None if own[8] is None else Due(at=from_micros(own[8]), tries=own[9], window=own[10]),
        created_at=from_micros(own[11]),
        updated_at=from_micros(own[12]),
    )


def to_checkpoint(conversation_id: str, row: Row) -> Checkpoint:
    return Checkpoint(
        conversation_id=conversation_id,
        number=row[0],
        checkpoint_id=unescape(row[1]),
        kind=row[2],
        summary=unescape(row[3]),
        covers_arrival=row[4],
        covers_through=unescape_or_none(row[5]),
        turns=row[6],
        tokens=row[7],
        recent_turns=row[8],
        language=row[9],
        made_by=unescape(row[10]),
        created_at=from_micros(row[11]),
    )


_NEWEST_OF_ALL = 2**62

_OTHERS_WRITE = {"room_key", "tenant", "due_at", "due_tries", "due_window"}
_SAVED = [column.name for column in _s.c if column.name not in _OTHERS_WRITE]


def _beside(table: Any) -> ColumnElement[bool]:
    return and_(table.c.room_key == _r.c.room_key, table.c.tenant == _r.c.tenant)


def _sessions(*, own: bool) -> Select[Any]:
    """Select sessions with the data of their rooms. `own`: only if the room has a session of its own."""
    places = _r.join(_s, _beside(_s), isouter=not own)
    in_force = and_(_beside(_c), _c.c.number == _s.c.checkpoint)
    joined = places.join(_c, in_force, isouter=True)
    return select(*SESSION_COLUMNS).select_from(joined).where(_r.c.tenant == bindparam("tenant"))


def _page(*where: ColumnElement[bool]) -> Select[Any]:
    return _sessions(own=True).where(*where).order_by(_r.c.room_id).limit(bindparam("count"))


def _make() -> Any:
    """Insert a first session; nothing if the room has one."""
    given: dict[str, Any] = {name: bindparam(name) for name in ("room_key", "tenant", *_SAVED)}
    return insert(_s).values(**given, due_tries=0, due_window=0).on_conflict_do_nothing().returning(_s.c.room_key)


def _replace() -> Any:
    """Replace a session. The parameters of an update must not have the names of columns."""
    values = {name: bindparam(f"new_{name}", type_=_s.c[name].type) for name in _SAVED}
    follows = _s.c.version + 1 == bindparam("new_version")
    return update(_s).where(in_locked_room(_s), follows).values(values).returning(_s.c.room_key)


def _due() -> Select[Any]:
    """Select what is due, locked until the transaction ends; rows locked by others are skipped."""
    waiting = and_(_s.c.due_at.is_not(None), _s.c.due_at <= bindparam("now"))
    joined = _s.join(_r, _beside(_s))
    chosen = select(_s.c.room_key, _s.c.tenant, _r.c.room_id, _s.c.due_at, _s.c.due_tries, _s.c.due_window).select_from(
        joined
    )
    first = chosen.where(waiting).order_by(_s.c.due_at, _s.c.room_key).limit(bindparam("count"))
    return first.with_for_update(skip_locked=True, of=_s)


def _schedule() -> Any:
    so_far = _s.c.due_at.is_not_distinct_from(bindparam("was", type_=BigInteger))
    at, tries = bindparam("new_due_at", type_=BigInteger), bindparam("new_due_tries", type_=BigInteger)
    window = bindparam("new_due_window", type_=BigInteger)
    changed = update(_s).where(in_room(_s), so_far).values(due_at=at, due_tries=tries, due_window=window)
    return changed.returning(_s.c.room_key)


_FIND = Statement(lambda: _sessions(own=False).where(_r.c.room_id == bindparam("room_id")))
_PAGE_FROM_START = Statement(_page)
_PAGE_AFTER = Statement(lambda: _page(_r.c.room_id > bindparam("after")))
_MAKE = Statement(_make)
_REPLACE = Statement(_replace)
_MARK = Statement(
    lambda: (
        insert(_c)
        .values({column.name: bindparam(column.name) for column in _c.c})
        .on_conflict_do_nothing()
        .returning(_c.c.number)
    )
)
_HISTORY = Statement(
    lambda: (
        select(*CHECKPOINT_COLUMNS)
        .where(in_room(_c), _c.c.number < bindparam("before"))
        .order_by(_c.c.number.desc())
        .limit(bindparam("count"))
    )
)
_DUE = Statement(_due)
_LEASE = Statement(
    lambda: update(_s).where(among(_s.c.room_key, "room_keys")).values(due_at=bindparam("until", type_=BigInteger))
)
_SCHEDULE = Statement(_schedule)


class SqlSessions(Repository):
    """The port `Sessions`."""

    async def find(self, *, tenant: str, conversation_id: str) -> Session | None:
        rows = await self._sql.fetch(_FIND, tenant=escape(tenant), room_id=escape(conversation_id))
        return to_session(tenant, rows[0]) if rows else None

    async def page(self, *, tenant: str, after: str | None, limit: int) -> list[Session]:
        if after is None:
            rows = await self._sql.fetch(_PAGE_FROM_START, tenant=escape(tenant), count=limit)
        else:
            rows = await self._sql.fetch(_PAGE_AFTER, tenant=escape(tenant), after=escape(after), count=limit)
        return [to_session(tenant, row) for row in rows]

    async def save(self, *, session: Session) -> None:
        """Save a session. Raises `Conflict` if its version does not follow the stored one, or is not 1 if none is
        stored."""
        room = self._locks.held(session.tenant, session.conversation_id)
        values = session_values(session)
        if session.version == 1:
            rows = await self._sql.fetch(_MAKE, **_params(room), **values)
        else:
            new = {f"new_{name}": value for name, value in values.items()}
            rows = await self._sql.fetch(_REPLACE, **_params(room), **new)
        if not rows:
            raise Conflict(
                f"Version {session.version} of the session of {session.conversation_id!r} does not follow the one "
                "stored: read the session again."
            )

    async def mark(self, *, tenant: str, checkpoint: Checkpoint) -> None:
        """Add a checkpoint. Raises `Conflict` also if its id exists in the conversation."""
        room = self._locks.held(tenant, checkpoint.conversation_id)
        if not await self._sql.fetch(_MARK, **_params(room), **checkpoint_values(checkpoint)):
            raise Conflict(
                f"Conversation {checkpoint.conversation_id!r} has a checkpoint {checkpoint.number}, or one with the "
                f"id {checkpoint.checkpoint_id!r}: read the session again."
            )

    async def history(self, *, tenant: str, conversation_id: str, before: int | None, limit: int) -> list[Checkpoint]:
        rows = await self._sql.fetch(
            _HISTORY,
            tenant=escape(tenant),
            room_id=escape(conversation_id),
            before=_NEWEST_OF_ALL if before is None else before,
            count=limit,
        )
        return [to_checkpoint(conversation_id, row) for row in rows]

    async def due(self, *, now: datetime, lease_until: datetime, limit: int) -> Sequence[tuple[str, str, Due]]:
        """Return and lease what is due. Uses two statements, as an update cannot return the old values on both
        engines."""
        self._locks.check_writing()
        rows = await self._sql.fetch(_DUE, now=to_micros(now), count=limit)
        if rows:
            keys = numbers_text([row[0] for row in rows])
            await self._sql.fetch(_LEASE, room_keys=keys, until=to_micros(lease_until))
        taken = [(unescape(row[1]), unescape(row[2]), _to_due(row[3:])) for row in rows]
        return sorted(taken, key=lambda one: one[2].at)

    async def schedule(self, *, tenant: str, conversation_id: str, due: Due | None, was: datetime | None) -> bool:
        self._locks.check_writing()
        rows = await self._sql.fetch(
            _SCHEDULE,
            tenant=escape(tenant),
            room_id=escape(conversation_id),
            was=to_micros_or_none(was),
            new_due_at=to_micros(due.at) if due else None,
            new_due_tries=due.tries if due else 0,
            new_due_window=due.window if due else 0,
        )
        return bool(rows)


def _to_due(row: Sequence[Any]) -> Due:
    return Due(at=from_micros(row[0]), tries=row[1], window=row[2])


def _params(room: LockedRoom) -> dict[str, Any]:
    return {"room_key": room.key, "tenant": escape(room.tenant)}
