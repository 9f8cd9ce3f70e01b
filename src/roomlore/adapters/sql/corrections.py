"""The port `Corrections`: the log of the links that people corrected."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import and_, bindparam, func, insert, literal_column, select, tuple_, update

from roomlore.adapters.sql import schema
from roomlore.adapters.sql.engine import LockedRoom, Repository, Row, Statement, among, in_locked_room, in_room
from roomlore.adapters.sql.rows import escape, from_micros, numbers_text, to_micros, unescape, unescape_or_none
from roomlore.core.linking.calibration import TEMPERATURES
from roomlore.core.linking.corrections import Standing
from roomlore.core.models import Correction, CorrectionKind

_c, _m, _r = schema.link_corrections, schema.messages, schema.rooms
_NEWEST_OF_ALL = 2**62
_answered = _m.alias("answered")
_in_force = and_(in_locked_room(_c), _c.c.standing)


def _listed() -> Any:
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


_NEXT = Statement(
    lambda: select(func.coalesce(func.max(_c.c.number), literal_column("0")) + literal_column("1")).where(
        in_locked_room(_c)
    )
)
_NOT_IN_FORCE = Statement(
    lambda: update(_c).where(_in_force, _c.c.arrival == bindparam("own")).values(standing=literal_column("false"))
)
_ADD = Statement(lambda: insert(_c))
_STANDING = Statement(
    lambda: select(_c.c.arrival, _c.c.answers, _c.c.model, _c.c.errors).where(
        in_room(_c), _c.c.standing, among(_c.c.arrival, "arrivals")
    )
)
_HEAR = Statement(
    lambda: (
        update(_c)
        .where(_in_force, _c.c.arrival == bindparam("own"))
        .values(
            model=bindparam("new_model", type_=_c.c.model.type), errors=bindparam("new_errors", type_=_c.c.errors.type)
        )
    )
)
_PAGE = Statement(
    lambda: (
        _listed()
        .where(in_room(_c), _c.c.number < bindparam("before"))
        .order_by(_c.c.number.desc())
        .limit(bindparam("count"))
    )
)
_IN_FORCE = Statement(
    lambda: (
        _listed()
        .where(
            _r.c.tenant == bindparam("tenant"),
            _c.c.tenant == bindparam("tenant"),
            _c.c.standing,
            tuple_(_r.c.room_id, _c.c.number)
            > tuple_(bindparam("after_room", type_=_r.c.room_id.type), bindparam("after", type_=_c.c.number.type)),
        )
        .order_by(_r.c.room_id, _c.c.number)
        .limit(bindparam("count"))
    )
)


class SqlCorrections(Repository):
    """The port `Corrections`."""

    async def add(
        self,
        *,
        tenant: str,
        room_id: str,
        arrival: int,
        kind: CorrectionKind,
        standing: Standing | None,
        by: str,
        at: datetime,
    ) -> int:
        room = self._locks.held(tenant, room_id)
        its = _params(room)
        number = int((await self._sql.fetch(_NEXT, **its))[0][0])
        await self._sql.fetch(_NOT_IN_FORCE, own=arrival, **its)
        said = standing or Standing(None)
        row = (
            room.key,
            arrival,
            number,
            escape(tenant),
            kind.value,
            said.answers,
            standing is not None,
            escape(by),
            to_micros(at),
            said.model,
            _errors_text(said.errors),
        )
        await self._sql.many(_ADD, [row])
        return number

    async def standing(self, *, tenant: str, room_id: str, arrivals: Sequence[int]) -> dict[int, Standing]:
        if not arrivals:
            return {}
        rows = await self._sql.fetch(
            _STANDING, tenant=escape(tenant), room_id=escape(room_id), arrivals=numbers_text(arrivals)
        )
        return {arrival: Standing(answers, model, _read_errors(errors)) for arrival, answers, model, errors in rows}

    async def hear(
        self, *, tenant: str, room_id: str, model: str, errors: Mapping[int, Sequence[int]], arrivals: Sequence[int]
    ) -> None:
        its = _params(self._locks.held(tenant, room_id))
        for arrival in arrivals:
            added = _errors_text(errors.get(arrival, ()))
            await self._sql.fetch(_HEAR, own=arrival, new_model=model if added else "", new_errors=added, **its)

    async def page(self, *, tenant: str, room_id: str, before: int | None, limit: int) -> list[Correction]:
        rows = await self._sql.fetch(
            _PAGE,
            tenant=escape(tenant),
            room_id=escape(room_id),
            before=_NEWEST_OF_ALL if before is None else before,
            count=limit,
        )
        return [_to_correction(row) for row in rows]

    async def in_force(self, *, tenant: str, after: tuple[str, int], limit: int) -> list[Correction]:
        rows = await self._sql.fetch(
            _IN_FORCE, tenant=escape(tenant), after_room=escape(after[0]), after=after[1], count=limit
        )
        return [_to_correction(row) for row in rows]


def _params(room: LockedRoom) -> dict[str, Any]:
    return {"room_key": room.key, "tenant": escape(room.tenant)}


def _errors_text(errors: Sequence[int]) -> str:
    return json.dumps(list(errors)) if errors else ""


def _read_errors(text: str) -> tuple[int, ...]:
    """Return the errors; none if they were counted at other temperatures than today's."""
    errors = tuple(json.loads(text)) if text else ()
    return errors if len(errors) == len(TEMPERATURES) else ()


def _to_correction(row: Row) -> Correction:
    room_id, number, message_id, kind, answers, standing, actor, at = row
    return Correction(
        room_id=unescape(room_id),
        number=number,
        message_id=unescape(message_id),
        kind=CorrectionKind(kind),
        answers=unescape_or_none(answers),
        standing=bool(standing),
        by=unescape(actor),
        at=from_micros(at),
    )
