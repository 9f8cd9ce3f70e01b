"""All that choosing a context begins with, in one statement: the room, the message, the plain window's size."""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, bindparam, func, select

from roomlore.adapters.sql import schema
from roomlore.adapters.sql.messages import visible
from roomlore.adapters.sql.rows import ENTRY_COLUMNS, ROOM_COLUMNS, to_entry, to_room
from roomlore.adapters.sql.statements import Statement
from roomlore.adapters.sql.values import from_micros
from roomlore.core.models import Role, Target

_m, _f, _r = schema.messages, schema.features, schema.rooms
_before = schema.messages.alias("before")


def _newest_before(column: ColumnElement[Any]) -> Select[Any]:
    """Of the messages before the target, newest first."""
    earlier = and_(
        _before.c.room_key == _m.c.room_key,
        _before.c.tenant == _m.c.tenant,
        _before.c.deleted_at.is_(None),
        _before.c.arrival < _m.c.arrival,
    )
    return select(column).where(earlier).order_by(_before.c.arrival.desc()).correlate(_m)


def _window(what: Callable[[Any], ColumnElement[Any]]) -> ColumnElement[Any]:
    """An aggregate over the tokens of the newest messages before the target."""
    newest = _newest_before(_before.c.tokens).limit(bindparam("window")).subquery()
    return select(what(newest.c.tokens)).select_from(newest).correlate(_m).scalar_subquery()


def _found(*where: ColumnElement[bool]) -> Select[Any]:
    beside = and_(_f.c.room_key == _m.c.room_key, _f.c.arrival == _m.c.arrival, _f.c.tenant == _m.c.tenant)
    previous = _newest_before(_before.c.sent_at).limit(1).scalar_subquery()
    columns = (_window(func.count), _window(func.sum), previous, *ROOM_COLUMNS, *ENTRY_COLUMNS)
    joined = _r.join(_m, _r.c.room_key == _m.c.room_key).join(_f, beside)
    return select(*columns).select_from(joined).where(visible, *where)


TARGET = Statement(lambda: _found(_m.c.message_id == bindparam("message_id")))
NEWEST_TARGET = Statement(lambda: _found(_m.c.role == Role.USER.value).order_by(_m.c.arrival.desc()).limit(1))


def to_target(room_id: str, row: Sequence[Any]) -> Target:
    entry_at = 3 + len(ROOM_COLUMNS)
    return Target(
        room=to_room(row[3:entry_at]),
        entry=to_entry(room_id, row[entry_at:]),
        window_messages=row[0],
        window_tokens=int(row[1] or 0),
        previous_at=None if row[2] is None else from_micros(row[2]),
    )
