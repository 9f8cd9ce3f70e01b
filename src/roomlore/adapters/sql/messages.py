"""The messages of a room, for reading."""

from collections.abc import Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, bindparam, func, literal_column, select

from roomlore.adapters.sql import schema
from roomlore.adapters.sql.drivers import Connection
from roomlore.adapters.sql.rows import ENTRY_COLUMNS, MESSAGE_COLUMNS, to_entry, to_message
from roomlore.adapters.sql.statements import Statement, among, in_room
from roomlore.adapters.sql.values import escape, names_text, numbers_text, to_micros, unescape
from roomlore.core.models import Entry, Role, StoredMessage

_m, _f, _w = schema.messages, schema.features, schema.message_words
NEWEST_OF_ALL = 2**62

visible = and_(in_room(_m), _m.c.deleted_at.is_(None))
"""Messages of the room that are not deleted."""

_HASHED_COLUMNS = (*MESSAGE_COLUMNS, _m.c.content_hash)
_before = _m.c.arrival < bindparam("before")
_after = _m.c.arrival > bindparam("after")
_of_sender = _m.c.sender_id == bindparam("sender_id")


def entries(*where: ColumnElement[bool]) -> Select[Any]:
    """Visible entries of the room under these conditions."""
    beside = and_(_f.c.room_key == _m.c.room_key, _f.c.arrival == _m.c.arrival, _f.c.tenant == _m.c.tenant)
    return select(*ENTRY_COLUMNS).select_from(_m.join(_f, beside)).where(visible, *where)


def _newest(chosen: Select[Any]) -> Select[Any]:
    return chosen.order_by(_m.c.arrival.desc()).limit(bindparam("count"))


def _arrivals_since() -> Select[Any]:
    chosen = select(_m.c.arrival).where(visible, _before, _m.c.sent_at >= bindparam("since"))
    return _newest(chosen)


def _recent(*columns: ColumnElement[Any]) -> Select[Any]:
    return _newest(select(*columns).where(visible, _before))


def _page(columns: Sequence[ColumnElement[Any]], *where: ColumnElement[bool]) -> Select[Any]:
    return select(*columns).where(visible, _after, *where).order_by(_m.c.arrival).limit(bindparam("count"))


def _count(*where: ColumnElement[bool]) -> Select[Any]:
    return select(func.count()).select_from(_m).where(visible, *where)


def _first_since() -> Select[Any]:
    """The lowest of a sum is no end of an index: the index of times is walked, not the room from its beginning."""
    arrival = _m.c.arrival + literal_column("0")
    return select(func.min(arrival)).where(visible, _m.c.sent_at >= bindparam("since"))


def _changed() -> Select[Any]:
    """Both engines would rather walk the whole room than its changes. A limit of unknown size makes PostgreSQL take
    them in the order of their index; adding nothing to the arrival leaves SQLite no other."""
    since = and_(_w.c.changed > bindparam("revision"), _w.c.arrival + literal_column("0") > bindparam("after"))
    changes = select(_w.c.room_key, _w.c.arrival).where(in_room(_w), since).order_by(_w.c.changed)
    its = changes.limit(bindparam("count")).subquery("changes")
    beside = and_(_m.c.room_key == its.c.room_key, _m.c.arrival == its.c.arrival, _m.c.tenant == bindparam("tenant"))
    return select(_m.c.deleted_at, *MESSAGE_COLUMNS).select_from(its.join(_m, beside))


_FINGERPRINTS = Statement(
    lambda: select(_m.c.message_id, _m.c.content_hash).where(in_room(_m), among(_m.c.message_id, "ids"))
)
_ARRIVAL_OF = Statement(lambda: select(_m.c.arrival).where(in_room(_m), _m.c.message_id == bindparam("message_id")))
_BY_ID = Statement(lambda: entries(among(_m.c.message_id, "ids")))
_BY_ARRIVAL = Statement(lambda: entries(among(_m.c.arrival, "arrivals")))
_PLAIN = Statement(lambda: select(*MESSAGE_COLUMNS).where(visible, among(_m.c.arrival, "arrivals")))
_TAIL = Statement(lambda: _newest(entries(_before)))
_TAIL_SINCE = Statement(lambda: _newest(entries(_m.c.arrival.in_(_arrivals_since()))))
_RECENT = Statement(lambda: _recent(*MESSAGE_COLUMNS))
_RECENT_HASHED = Statement(lambda: _recent(*_HASHED_COLUMNS))
_PAGE = Statement(lambda: _page(MESSAGE_COLUMNS))
_PAGE_HASHED = Statement(lambda: _page(_HASHED_COLUMNS))
_PAGE_OF = Statement(lambda: _page(MESSAGE_COLUMNS, _of_sender))
_PAGE_OF_HASHED = Statement(lambda: _page(_HASHED_COLUMNS, _of_sender))
_COUNT = Statement(lambda: _count(_after))
_COUNT_OF = Statement(lambda: _count(_after, _of_sender))
_FIRST_SINCE = Statement(_first_since)
_CHANGED = Statement(_changed)

_REPLIES_OF = Statement(
    lambda: (
        select(_m.c.arrival)
        .where(
            visible,
            _m.c.arrival > bindparam("after"),
            _m.c.sender_id == bindparam("agent"),
            _m.c.role == Role.ASSISTANT.value,
            _m.c.has_tool_calls.is_(False),
        )
        .order_by(_m.c.arrival)
        .limit(bindparam("count"))
    )
)


def to_entries(room_id: str, rows: Sequence[Sequence[Any]]) -> list[Entry]:
    """Rows in any order as entries in order of arrival. Sorted here: asked to sort, SQLite walks the whole room."""
    return [to_entry(room_id, row) for row in sorted(rows, key=itemgetter(0))]


class SqlMessages:
    """The port `Messages`."""

    def __init__(self, connection: Connection) -> None:
        self._sql = connection

    async def _rows(self, statement: Statement, tenant: str, room_id: str, **params: Any) -> Sequence[Sequence[Any]]:
        return await self._sql.fetch(statement, tenant=escape(tenant), room_id=escape(room_id), **params)

    async def fingerprints(self, *, tenant: str, room_id: str, message_ids: Sequence[str]) -> dict[str, str]:
        if not message_ids:
            return {}
        rows = await self._rows(_FINGERPRINTS, tenant, room_id, ids=names_text(message_ids))
        return {unescape(message_id): fingerprint for message_id, fingerprint in rows}

    async def by_id(self, *, tenant: str, room_id: str, message_ids: Sequence[str]) -> list[Entry]:
        if not message_ids:
            return []
        rows = await self._rows(_BY_ID, tenant, room_id, ids=names_text(message_ids))
        return to_entries(room_id, rows)

    async def by_arrival(self, *, tenant: str, room_id: str, arrivals: Sequence[int]) -> list[Entry]:
        if not arrivals:
            return []
        rows = await self._rows(_BY_ARRIVAL, tenant, room_id, arrivals=numbers_text(arrivals))
        return to_entries(room_id, rows)

    async def plain(self, *, tenant: str, room_id: str, arrivals: Sequence[int]) -> list[StoredMessage]:
        if not arrivals:
            return []
        rows = await self._rows(_PLAIN, tenant, room_id, arrivals=numbers_text(arrivals))
        return [to_message(room_id, row) for row in sorted(rows, key=itemgetter(0))]

    async def tail(
        self, *, tenant: str, room_id: str, limit: int, before: int | None = None, since: datetime | None = None
    ) -> list[Entry]:
        """In a room whose clock runs forward the plain tail answers `since` too; only where it does not is the
        index of times asked."""
        bounds = {"before": NEWEST_OF_ALL if before is None else before, "count": limit}
        rows = await self._rows(_TAIL, tenant, room_id, **bounds)
        found = [to_entry(room_id, row) for row in reversed(rows)]
        if since is None or all(entry.message.at >= since for entry in found):
            return found
        rows = await self._rows(_TAIL_SINCE, tenant, room_id, since=to_micros(since), **bounds)
        return [to_entry(room_id, row) for row in reversed(rows)]

    async def recent(self, *, tenant: str, room_id: str, limit: int, before: int | None = None) -> list[StoredMessage]:
        before = NEWEST_OF_ALL if before is None else before
        rows = await self._rows(_RECENT, tenant, room_id, before=before, count=limit)
        return [to_message(room_id, row) for row in reversed(rows)]

    async def recent_with_hashes(
        self, *, tenant: str, room_id: str, limit: int, before: int | None = None
    ) -> list[tuple[StoredMessage, str]]:
        before = NEWEST_OF_ALL if before is None else before
        rows = await self._rows(_RECENT_HASHED, tenant, room_id, before=before, count=limit)
        return [(to_message(room_id, row), row[-1]) for row in reversed(rows)]

    async def page(
        self, *, tenant: str, room_id: str, after: int, limit: int, sender_id: str | None = None
    ) -> list[StoredMessage]:
        rows = await self._said(_PAGE, _PAGE_OF, tenant, room_id, sender_id, after=after, count=limit)
        return [to_message(room_id, row) for row in rows]

    async def page_with_hashes(
        self, *, tenant: str, room_id: str, after: int, limit: int, sender_id: str | None = None
    ) -> list[tuple[StoredMessage, str]]:
        rows = await self._said(_PAGE_HASHED, _PAGE_OF_HASHED, tenant, room_id, sender_id, after=after, count=limit)
        return [(to_message(room_id, row), row[-1]) for row in rows]

    async def count(self, *, tenant: str, room_id: str, after: int, sender_id: str | None = None) -> int:
        rows = await self._said(_COUNT, _COUNT_OF, tenant, room_id, sender_id, after=after)
        return int(rows[0][0])

    async def _said(
        self, by_anybody: Statement, by_one: Statement, tenant: str, room_id: str, sender_id: str | None, **bounds: int
    ) -> Sequence[Sequence[Any]]:
        if sender_id is None:
            return await self._rows(by_anybody, tenant, room_id, **bounds)
        return await self._rows(by_one, tenant, room_id, sender_id=escape(sender_id), **bounds)

    async def first_since(self, *, tenant: str, room_id: str, since: datetime) -> int | None:
        rows = await self._rows(_FIRST_SINCE, tenant, room_id, since=to_micros(since))
        first: int | None = rows[0][0]
        return first

    async def replies_of(self, *, tenant: str, room_id: str, agent_id: str, after: int, limit: int) -> list[int]:
        rows = await self._rows(_REPLIES_OF, tenant, room_id, after=after, count=limit, agent=escape(agent_id))
        return [row[0] for row in rows]

    async def arrival_of(self, *, tenant: str, room_id: str, message_id: str) -> int | None:
        rows = await self._rows(_ARRIVAL_OF, tenant, room_id, message_id=escape(message_id))
        return rows[0][0] if rows else None

    async def changed(
        self, *, tenant: str, room_id: str, revision: int, after: int
    ) -> tuple[list[StoredMessage], list[int]]:
        rows = await self._rows(_CHANGED, tenant, room_id, revision=revision, after=after, count=NEWEST_OF_ALL)
        rows = sorted(rows, key=itemgetter(1))
        there = [to_message(room_id, row[1:]) for row in rows if row[0] is None]
        return there, [row[1] for row in rows if row[0] is not None]
