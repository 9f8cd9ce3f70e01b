"""The sessions of a tenant, with their checkpoints."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Select, and_, bindparam, select, update
from sqlalchemy.dialects.postgresql import insert

from roomlore.core.errors import Conflict
from roomlore.core.sessions.session import Checkpoint, DueCheckpoint, Session
from roomlore.storage import schema
from roomlore.storage.engine import (
    LockedRoom,
    Repository,
    Statement,
    among,
    in_locked_room,
    in_room,
    in_use,
    insert_row,
)
from roomlore.storage.rows import (
    from_micros,
    numbers_text,
    to_micros,
    to_micros_or_none,
)
from roomlore.storage.shapes import CHECKPOINT, SESSION_COLUMNS, checkpoint_values, session_values, to_session

_r, _s, _c = schema.rooms, schema.sessions, schema.checkpoints

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
    return select(*SESSION_COLUMNS).select_from(joined).where(_r.c.tenant == bindparam("tenant"), in_use)


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
_PAGE = Statement(
    lambda: (
        _sessions(own=True).where(_r.c.room_id > bindparam("after")).order_by(_r.c.room_id).limit(bindparam("count"))
    )
)
_MAKE = Statement(_make)
_REPLACE = Statement(_replace)
_MARK = Statement(lambda: insert_row(_c).on_conflict_do_nothing().returning(_c.c.number))
_HISTORY = Statement(
    lambda: (
        select(*CHECKPOINT.columns)
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


class Sessions(Repository):
    """The sessions of a tenant. Every call may raise `StorageUnavailable`."""

    async def find(self, *, conversation_id: str) -> Session | None:
        """Return the session with its checkpoint and the position of its room, in one round trip.

        A room without a session of its own gives one of version 0, with the times of the room; None if there is no such
        room.
        """
        rows = await self._sql.fetch(_FIND, tenant=self._tenant, room_id=conversation_id)
        return to_session(self._tenant, rows[0]) if rows else None

    async def page(self, *, after: str | None, limit: int) -> list[Session]:
        """Return sessions of version 1 and more with a conversation id above `after`, ascending by it."""
        rows = await self._sql.fetch(_PAGE, tenant=self._tenant, after=after or "", count=limit)
        return [to_session(self._tenant, row) for row in rows]

    async def save(self, *, session: Session) -> None:
        """Store the session in place of the stored one; its room must be locked by this unit of work. Raises `Conflict`
        if its version does not follow the stored one, or is not 1 if none is stored.

        `revision`, `next_arrival`, `due` and all but the number of `checkpoint` are not written, as other calls do
        that. A session that is saved for the first time is not due.
        """
        room = self._locks.held(session.tenant, session.conversation_id)
        values = session_values(session)
        if session.version == 1:
            rows = await self._sql.fetch(_MAKE, **_params(room), **values)
        else:
            new = {f"new_{name}": value for name, value in values.items()}
            rows = await self._sql.fetch(_REPLACE, **_params(room), **new)
        if not rows:
            raise Conflict("session_version_stale", version=session.version, conversation=repr(session.conversation_id))

    async def mark(self, *, checkpoint: Checkpoint) -> None:
        """Add a checkpoint or a reset to the history of its conversation, whose room is locked. Raises `Conflict` if
        its number is taken, or its id exists in the conversation."""
        room = self._locks.held(self._tenant, checkpoint.conversation_id)
        if not await self._sql.fetch(_MARK, **_params(room), **checkpoint_values(checkpoint)):
            raise Conflict(
                "checkpoint_exists",
                conversation=repr(checkpoint.conversation_id),
                number=checkpoint.number,
                checkpoint=repr(checkpoint.checkpoint_id),
            )

    async def history(self, *, conversation_id: str, before: int | None, limit: int) -> list[Checkpoint]:
        """Return the newest `limit` checkpoints and resets with a number below `before`, newest first."""
        rows = await self._sql.fetch(
            _HISTORY,
            tenant=self._tenant,
            room_id=conversation_id,
            before=_NEWEST_OF_ALL if before is None else before,
            count=limit,
        )
        return [CHECKPOINT.read(row, conversation_id) for row in rows]

    async def due(
        self, *, now: datetime, lease_until: datetime, limit: int
    ) -> Sequence[tuple[str, str, DueCheckpoint]]:
        """Claim up to `limit` sessions of any tenant that are due by `now`, the longest waiting first: tenant,
        conversation id, and the due checkpoint. They are due again at `lease_until`, so that those of a killed process
        are not lost; concurrent claims never return the same one. Only while writing.

        It takes two statements, as an update cannot return the old values on both engines.
        """
        self._locks.check_writing()
        rows = await self._sql.fetch(_DUE, now=to_micros(now), count=limit)
        if rows:
            keys = numbers_text([row[0] for row in rows])
            await self._sql.fetch(_LEASE, room_keys=keys, until=to_micros(lease_until))
        taken = [(row[1], row[2], DueCheckpoint(at=from_micros(row[3]), tries=row[4], window=row[5])) for row in rows]
        return sorted(taken, key=lambda taken_session: taken_session[2].at)

    async def schedule(self, *, conversation_id: str, due: DueCheckpoint | None, was: datetime | None) -> bool:
        """Set or clear when the session is due, if `was` is the present due time (None: it was not due). Return True if
        it was changed. Only while writing. Takes no lock on the room and leaves the version as it is."""
        self._locks.check_writing()
        rows = await self._sql.fetch(
            _SCHEDULE,
            tenant=self._tenant,
            room_id=conversation_id,
            was=to_micros_or_none(was),
            new_due_at=to_micros(due.at) if due else None,
            new_due_tries=due.tries if due else 0,
            new_due_window=due.window if due else 0,
        )
        return bool(rows)


def _params(room: LockedRoom) -> dict[str, Any]:
    return {"room_key": room.key, "tenant": room.tenant}
