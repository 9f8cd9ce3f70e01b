"""The titles that a model gave the threads of a room, and the log of the links that people corrected."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import and_, bindparam, case, delete, func, insert, literal_column, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert as upsert

from roomlore.core.linking.calibration import COUNTED
from roomlore.core.linking.corrections import StandingCorrection
from roomlore.core.models import Correction, CorrectionKind
from roomlore.storage import schema
from roomlore.storage.engine import LockedRoom, Repository, Row, Statement, among, in_locked_room, in_room, in_use
from roomlore.storage.rows import from_micros, numbers_text, to_micros
from roomlore.storage.values import GrownThread

_t, _f, _r = schema.thread_titles, schema.features, schema.rooms
_c, _m = schema.link_corrections, schema.messages
_NO_MESSAGES: Any = literal_column("0")
_ABOVE_ALL_NUMBERS = 2**62


def _room_params(room: LockedRoom) -> dict[str, Any]:
    return {"room_key": room.key, "tenant": room.tenant}


def _grown_threads() -> Any:
    """Select threads with a message in the span, or with a title to be made again, and how many messages they have.
    Deleted messages count too, since this reads the index of threads alone."""
    spoken = select(_f.c.thread).where(
        in_room(_f), _f.c.arrival > bindparam("after"), _f.c.arrival <= bindparam("through")
    )
    stale = select(_t.c.thread).where(in_room(_t), _t.c.messages == _NO_MESSAGES)
    due = spoken.union(stale).subquery("due")
    members = and_(in_room(_f), _f.c.thread == due.c.thread)
    titled = and_(in_room(_t), _t.c.thread == due.c.thread)
    return (
        select(due.c.thread, func.count(_f.c.arrival), func.coalesce(func.max(_t.c.messages), _NO_MESSAGES))
        .select_from(due.outerjoin(_f, members).outerjoin(_t, titled))
        .group_by(due.c.thread)
        .order_by(due.c.thread)
    )


def _put_titles() -> Any:
    """Insert titles. An empty one leaves the title that is there as it is."""
    given = upsert(_t)
    new = given.excluded
    kept = case((new.title == literal_column("''"), _t.c.title), else_=new.title)
    by = case((new.title == literal_column("''"), _t.c.made_by), else_=new.made_by)
    return given.on_conflict_do_update(
        index_elements=[_t.c.room_key, _t.c.thread],
        set_={"title": kept, "made_by": by, "messages": new.messages, "at": new.at},
    )


_FIND_TITLES = Statement(
    lambda: select(_t.c.thread, _t.c.title).where(
        in_room(_t), among(_t.c.thread, "threads"), _t.c.title != literal_column("''")
    )
)
_GROWN_THREADS = Statement(_grown_threads)
_PUT_TITLES = Statement(_put_titles)
_ROOMS_WITH_STALE_TITLES = Statement(
    lambda: (
        select(_r.c.tenant, _r.c.room_id)
        .where(_r.c.room_key.in_(select(_t.c.room_key).where(_t.c.messages == _NO_MESSAGES)), in_use)
        .order_by(_r.c.tenant, _r.c.room_id)
        .limit(bindparam("count"))
    )
)
_SPOIL_TITLES = Statement(
    lambda: (
        update(_t)
        .where(in_locked_room(_t), among(_t.c.thread, "threads"))
        .values(title=literal_column("''"), made_by=literal_column("''"), messages=_NO_MESSAGES)
    ),
    brief=True,
)
_DROP_STALE_TITLES = Statement(
    lambda: delete(_t).where(in_locked_room(_t), among(_t.c.thread, "threads"), _t.c.messages == _NO_MESSAGES)
)


class ThreadTitles(Repository):
    """The titles of threads that a model wrote. The title of a thread is removed, to be made again, in the transaction
    that changes, deletes or relinks one of its messages."""

    async def find(self, *, room_id: str, threads: Sequence[int]) -> dict[int, str]:
        """Return the titles of these threads; absent if there is none."""
        if not threads:
            return {}
        here = {"tenant": self._tenant, "room_id": room_id}
        rows = await self._sql.fetch(_FIND_TITLES, threads=numbers_text(threads), **here)
        return dict(rows)

    async def grown(self, *, room_id: str, after: int, through: int) -> list[GrownThread]:
        """Return the threads with a message with an arrival above `after` and up to `through`, and those whose title is
        to be made again, ascending."""
        here = {"tenant": self._tenant, "room_id": room_id}
        rows = await self._sql.fetch(_GROWN_THREADS, after=after, through=through, **here)
        return [GrownThread(*row) for row in rows]

    async def stale_rooms(self, *, limit: int) -> list[tuple[str, str]]:
        """Return (tenant, room id) of rooms with titles to be made again, ascending."""
        rows = await self._sql.fetch(_ROOMS_WITH_STALE_TITLES, count=limit)
        return [(tenant, room_id) for tenant, room_id in rows]

    async def put(self, *, room_id: str, titles: Mapping[int, tuple[str, int]], made_by: str, now: datetime) -> None:
        """Store the titles of threads of a locked room, each with the number of messages that the thread has, 0 to have
        it made again. An empty one keeps the title that is there."""
        room = self._locks.held(self._tenant, room_id)
        own = (room.tenant,)
        rows = [
            (room.key, thread, *own, title, messages, made_by if title else "", to_micros(now))
            for thread, (title, messages) in titles.items()
        ]
        if rows:
            await self._sql.many(_PUT_TITLES, rows)

    async def drop_stale(self, *, room_id: str, threads: Sequence[int]) -> None:
        """No longer make the titles of these threads of a locked room again."""
        if threads:
            room = self._locks.held(self._tenant, room_id)
            await self._sql.fetch(_DROP_STALE_TITLES, threads=numbers_text(threads), **_room_params(room))

    async def spoil(self, room: LockedRoom, threads: Iterable[int]) -> None:
        """Remove the titles of these threads, so that they are made again: what they rest on was changed."""
        if given := sorted(set(threads)):
            await self._sql.fetch(_SPOIL_TITLES, threads=numbers_text(given), **_room_params(room))


_answered = _m.alias("answered")
_standing_in_locked_room = and_(in_locked_room(_c), _c.c.standing)


def _listed_corrections() -> Any:
    """Select entries with the ids of both messages."""
    its = and_(_m.c.room_key == _c.c.room_key, _m.c.arrival == _c.c.arrival, _m.c.tenant == _c.c.tenant)
    other = and_(
        _answered.c.room_key == _c.c.room_key,
        _answered.c.arrival == _c.c.answers,
        _answered.c.tenant == _c.c.tenant,
        _answered.c.deleted_at.is_(None),
    )
    columns = (_r.c.room_id, _c.c.number, _m.c.message_id, _c.c.kind, _answered.c.message_id, _c.c.standing)
    rows = _c.join(_r, _r.c.room_key == _c.c.room_key).join(_m, its).outerjoin(_answered, other)
    return select(*columns, _c.c.corrected_by, _c.c.at).select_from(rows)


_NEXT_CORRECTION_NUMBER = Statement(
    lambda: select(func.coalesce(func.max(_c.c.number), literal_column("0")) + literal_column("1")).where(
        in_locked_room(_c)
    )
)
_END_CORRECTION = Statement(
    lambda: (
        update(_c)
        .where(_standing_in_locked_room, _c.c.arrival == bindparam("own"))
        .values(standing=literal_column("false"))
    )
)
_ADD_CORRECTION = Statement(lambda: insert(_c))
_STANDING_OF_CORRECTIONS = Statement(
    lambda: select(_c.c.arrival, _c.c.answers, _c.c.model, _c.c.errors).where(
        in_room(_c), _c.c.standing, among(_c.c.arrival, "arrivals")
    )
)
_HEAR_CORRECTION = Statement(
    lambda: (
        update(_c)
        .where(_standing_in_locked_room, _c.c.arrival == bindparam("own"))
        .values(
            model=bindparam("new_model", type_=_c.c.model.type), errors=bindparam("new_errors", type_=_c.c.errors.type)
        )
    )
)
_PAGE_OF_CORRECTIONS = Statement(
    lambda: (
        _listed_corrections()
        .where(in_room(_c), _c.c.number < bindparam("before"))
        .order_by(_c.c.number.desc())
        .limit(bindparam("count"))
    )
)
_CORRECTIONS_IN_FORCE = Statement(
    lambda: (
        _listed_corrections()
        .where(
            _r.c.tenant == bindparam("tenant"),
            _c.c.tenant == bindparam("tenant"),
            _c.c.standing,
            in_use,
            tuple_(_r.c.room_id, _c.c.number)
            > tuple_(bindparam("after_room", type_=_r.c.room_id.type), bindparam("after", type_=_c.c.number.type)),
        )
        .order_by(_r.c.room_id, _c.c.number)
        .limit(bindparam("count"))
    )
)


class Corrections(Repository):
    """The log of the links that people corrected. It ends for a message when that is erased."""

    async def add(
        self,
        *,
        room_id: str,
        arrival: int,
        kind: CorrectionKind,
        standing: StandingCorrection | None,
        by: str,
        at: datetime,
    ) -> int:
        """Append an entry for the message with this arrival to the log of a locked room, in place of the one in force
        for that message. `standing`: None if that one is taken back. Return the number of the entry."""
        room = self._locks.held(self._tenant, room_id)
        its = _room_params(room)
        number = int((await self._sql.fetch(_NEXT_CORRECTION_NUMBER, **its))[0][0])
        await self._sql.fetch(_END_CORRECTION, own=arrival, **its)
        link = standing or StandingCorrection(None)
        row = (
            room.key,
            arrival,
            number,
            self._tenant,
            kind.value,
            link.answers,
            standing is not None,
            by,
            to_micros(at),
            link.model,
            _errors_text(link.errors),
        )
        await self._sql.many(_ADD_CORRECTION, [row])
        return number

    async def standing(self, *, room_id: str, arrivals: Sequence[int]) -> dict[int, StandingCorrection]:
        """Return the corrections in force of these messages, by arrival."""
        if not arrivals:
            return {}
        rows = await self._sql.fetch(
            _STANDING_OF_CORRECTIONS,
            tenant=self._tenant,
            room_id=room_id,
            arrivals=numbers_text(arrivals),
        )
        return {
            arrival: StandingCorrection(answers, model, _read_errors(errors))
            for arrival, answers, model, errors in rows
        }

    async def hear(
        self, *, room_id: str, model: str, errors: Mapping[int, Sequence[int]], arrivals: Sequence[int]
    ) -> None:
        """Record for the corrections in force of these messages of a locked room what they added to the calibration of
        this link model; nothing for those without `errors`."""
        its = _room_params(self._locks.held(self._tenant, room_id))
        for arrival in arrivals:
            added = _errors_text(errors.get(arrival, ()))
            await self._sql.fetch(
                _HEAR_CORRECTION, own=arrival, new_model=model if added else "", new_errors=added, **its
            )

    async def page(self, *, room_id: str, before: int | None, limit: int) -> list[Correction]:
        """Return the newest `limit` entries of the log with a number below `before`, newest first; empty for an unknown
        room. `answers` is None where the message that was answered is erased."""
        rows = await self._sql.fetch(
            _PAGE_OF_CORRECTIONS,
            tenant=self._tenant,
            room_id=room_id,
            before=_ABOVE_ALL_NUMBERS if before is None else before,
            count=limit,
        )
        return [_to_correction(row) for row in rows]

    async def in_force(self, *, after: tuple[str, int], limit: int) -> list[Correction]:
        """Return corrections in force of all rooms, ascending by room and number, those after this room id and number.
        ('', 0) begins."""
        rows = await self._sql.fetch(
            _CORRECTIONS_IN_FORCE, tenant=self._tenant, after_room=after[0], after=after[1], count=limit
        )
        return [_to_correction(row) for row in rows]


def _errors_text(errors: Sequence[int]) -> str:
    return json.dumps(list(errors)) if errors else ""


def _read_errors(text: str) -> tuple[int, ...]:
    """Return the errors; none if they are others than are counted today."""
    errors = tuple(json.loads(text)) if text else ()
    return errors if len(errors) == COUNTED else ()


def _to_correction(row: Row) -> Correction:
    room_id, number, message_id, kind, answers, standing, actor, at = row
    return Correction(
        room_id=room_id,
        number=number,
        message_id=message_id,
        kind=CorrectionKind(kind),
        answers=answers,
        standing=bool(standing),
        by=actor,
        at=from_micros(at),
    )
