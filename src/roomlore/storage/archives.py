"""The files that messages were archived to."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, bindparam, delete, exists, func, insert, or_, select, update

from roomlore.core.models import StoredMessage
from roomlore.storage import schema
from roomlore.storage.engine import Repository, Row, Statement, among, in_room, in_use
from roomlore.storage.rows import from_micros, names_text, to_micros
from roomlore.storage.shapes import ARRIVAL_AT, MESSAGE
from roomlore.storage.values import Archive, ArchivePhase

_a, _m, _r = schema.archives, schema.messages, schema.rooms
_of_tenant = _a.c.tenant == bindparam("tenant")


def _turn() -> Any:
    its = (_of_tenant, _a.c.archive_id == bindparam("own_id"), _a.c.phase == bindparam("was"))
    return update(_a).where(*its).values(phase=bindparam("new_phase")).returning(_a.c.archive_id)


def _page(*more: Any) -> Any:
    chosen = select(*_a.c).where(_of_tenant, _a.c.archive_id > bindparam("after"), *more)
    return chosen.order_by(_a.c.archive_id).limit(bindparam("count"))


_before: ColumnElement[Any] = bindparam("before")
_old = and_(func.coalesce(_m.c.heard_until, _m.c.sent_at) < _before, _m.c.deleted_at.is_(None))
"""A condition: messages that were said before a time for certain. One of the future was said when it was heard."""


def _rooms_due() -> Any:
    """Select rooms with old messages. The index of times finds most of them; only without one are newer times read."""
    here = exists().where(_m.c.room_key == _r.c.room_key, _old)
    its = or_(here.where(_m.c.sent_at < _before), here.where(_m.c.sent_at >= _before, _m.c.heard_until < _before))
    rooms = select(_r.c.room_id).where(
        _r.c.tenant == bindparam("tenant"), _r.c.room_id > bindparam("after"), its, in_use
    )
    return rooms.order_by(_r.c.room_id).limit(bindparam("count"))


def _due() -> Any:
    chosen = select(*MESSAGE.columns).where(in_room(_m), _old)
    return chosen.order_by(_m.c.sent_at, _m.c.arrival).limit(bindparam("count"))


def _of_messages() -> Any:
    """Select messages that were erased when an archive took them over; one that was deleted before is in none."""
    taken = and_(
        _a.c.tenant == bindparam("tenant"),
        _a.c.room_id == bindparam("room_id"),
        _a.c.first_arrival <= _m.c.arrival,
        _a.c.last_arrival >= _m.c.arrival,
        _a.c.archived_at == _m.c.deleted_at,
    )
    return select(_m.c.message_id, _a.c.archive_id).select_from(_m.join(_a, taken)).where(in_room(_m))


_ADD = Statement(lambda: insert(_a).values({column.name: bindparam(column.name) for column in _a.c}))
_TURN = Statement(_turn)
_DROP = Statement(lambda: delete(_a).where(_of_tenant, _a.c.archive_id == bindparam("own_id")))
_ALL = Statement(_page)
_OF_ROOM = Statement(lambda: _page(_a.c.room_id == bindparam("room_id")))
_ROOMS_DUE = Statement(_rooms_due)
_DUE = Statement(_due)
_ERASED = Statement(
    lambda: select(_m.c.message_id, _m.c.arrival).where(
        in_room(_m),
        _m.c.arrival >= bindparam("first"),
        _m.c.arrival <= bindparam("last"),
        _m.c.deleted_at == bindparam("archived_at"),
    )
)
_HOLDS = Statement(lambda: _of_messages().where(_m.c.arrival > bindparam("above")).limit(1))
_OF_MESSAGES = Statement(lambda: _of_messages().where(among(_m.c.message_id, "message_ids")))


class Archives(Repository):
    """The archives of messages that are kept in files."""

    async def add(self, *, archive: Archive) -> None:
        """Store a new archive. Only while writing."""
        self._locks.check_writing()
        await self._sql.fetch(
            _ADD,
            tenant=self._tenant,
            archive_id=archive.archive_id,
            room_id=archive.room_id,
            phase=archive.phase,
            file=archive.file,
            first_arrival=archive.first_arrival,
            last_arrival=archive.last_arrival,
            messages=archive.messages,
            bytes=archive.bytes,
            checksum=archive.checksum,
            archived_at=to_micros(archive.archived_at),
        )

    async def turn(self, *, archive_id: str, phase: ArchivePhase, was: ArchivePhase) -> bool:
        """Move the archive from one phase to another. Return False, without a change, if it is not in phase `was`: what
        another process did meanwhile. Only while writing."""
        self._locks.check_writing()
        named = {"tenant": self._tenant, "own_id": archive_id}
        return bool(await self._sql.fetch(_TURN, **named, new_phase=phase, was=was))

    async def drop(self, *, archive_id: str) -> None:
        """Remove the archive, not its file. Only while writing."""
        self._locks.check_writing()
        await self._sql.fetch(_DROP, tenant=self._tenant, own_id=archive_id)

    async def page(self, *, room_id: str | None, after: str, limit: int) -> list[Archive]:
        """Return archives with an id above `after`, ascending: those of the room, or all."""
        values = {"tenant": self._tenant, "after": after, "count": limit}
        if room_id is None:
            rows = await self._sql.fetch(_ALL, **values)
        else:
            rows = await self._sql.fetch(_OF_ROOM, **values, room_id=room_id)
        return [_read(row) for row in rows]

    async def rooms_due(self, *, before: datetime, after: str, limit: int) -> list[str]:
        """Return rooms, ascending by id and above `after`, that have a message said before this time for certain."""
        values = {"tenant": self._tenant, "after": after, "before": to_micros(before), "count": limit}
        return [row[0] for row in await self._sql.fetch(_ROOMS_DUE, **values)]

    async def due(self, *, room_id: str, before: datetime, limit: int) -> list[StoredMessage]:
        """Return the first `limit` messages by time that were said before this time for certain, in order of
        arrival."""
        values = {**_room(self._tenant, room_id), "before": to_micros(before), "count": limit}
        rows = await self._sql.fetch(_DUE, **values)
        return [MESSAGE.read(row, room_id) for row in sorted(rows, key=lambda row: row[ARRIVAL_AT])]

    async def erased(self, *, room_id: str, archive: Archive) -> dict[str, int]:
        """Return the arrivals of the archive's messages that are still erased, by message id."""
        span = {"first": archive.first_arrival, "last": archive.last_arrival}
        at = to_micros(archive.archived_at)
        rows = await self._sql.fetch(_ERASED, **_room(self._tenant, room_id), **span, archived_at=at)
        return dict(rows)

    async def of_messages(self, *, room_id: str, message_ids: Sequence[str]) -> dict[str, str]:
        """Return the ids of the archives that hold these messages, by message id; absent if none does."""
        if not message_ids:
            return {}
        rows = await self._sql.fetch(_OF_MESSAGES, **_room(self._tenant, room_id), message_ids=names_text(message_ids))
        return dict(rows)

    async def holds(self, *, room_id: str, after: int) -> bool:
        """Return True if an archive holds a message of the room with arrival > `after`."""
        return bool(await self._sql.fetch(_HOLDS, **_room(self._tenant, room_id), above=after))


def _room(tenant: str, room_id: str) -> dict[str, Any]:
    return {"tenant": tenant, "room_id": room_id}


def _read(row: Row) -> Archive:
    _, archive_id, room_id, phase, file, first, last, messages, size, checksum, archived_at = row
    return Archive(
        archive_id=archive_id,
        room_id=room_id,
        phase=phase,
        file=file,
        first_arrival=first,
        last_arrival=last,
        messages=messages,
        bytes=size,
        checksum=checksum,
        archived_at=from_micros(archived_at),
    )
