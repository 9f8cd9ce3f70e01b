"""Parts of `Messages`: reading the messages of a room, their neighbours and threads."""

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import cache
from operator import itemgetter
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Integer,
    Select,
    Subquery,
    Table,
    and_,
    bindparam,
    case,
    exists,
    func,
    literal_column,
    not_,
    or_,
    select,
)

from roomlore.core.audience import END, Window
from roomlore.core.models import Entry, Origin, Role, StoredMessage, Target
from roomlore.storage import schema
from roomlore.storage.engine import (
    LockedRoom,
    Repository,
    Row,
    Statement,
    among,
    begins_or_ends,
    in_room,
    in_use,
    named_room,
    numbers_in,
    texts_in,
)
from roomlore.storage.rooms import LOCK, keeps_vectors
from roomlore.storage.rows import (
    containing,
    from_micros,
    from_micros_or_none,
    list_text,
    names_text,
    numbers_text,
    read_hash,
    read_texts,
    to_micros,
)
from roomlore.storage.shapes import ARRIVAL_AT, ENTRY, MESSAGE, ROOM
from roomlore.storage.values import Met

_m, _f, _w, _r = schema.messages, schema.features, schema.message_words, schema.rooms
NEWEST_OF_ALL = 2**62

_earlier_message = _m.alias("before")
_its_features = and_(_f.c.room_key == _m.c.room_key, _f.c.arrival == _m.c.arrival, _f.c.tenant == _m.c.tenant)
_these_rooms = (_r.c.tenant == bindparam("tenant"), among(_r.c.room_id, "room_ids"), in_use)

visible = and_(in_room(_m), _m.c.deleted_at.is_(None))
"""A condition: messages of the room that are not deleted."""

_HASHED_COLUMNS = (*MESSAGE.columns, _m.c.content_hash)
_before = _m.c.arrival < bindparam("before")
_after = _m.c.arrival > bindparam("after")
_of_sender = _m.c.sender_id == bindparam("sender_id")
_since = and_(
    _m.c.sent_at >= bindparam("since"), or_(_m.c.heard_until.is_(None), _m.c.heard_until >= bindparam("since"))
)
"""A condition: messages that were sent since a time. One of the future was said when it was heard."""
_origin = (_m.c.sent_at, _m.c.sender_id, _m.c.edited_at, _m.c.heard_from, _m.c.heard_until, _m.c.sent_at_estimated)


def dated_at(messages: Any) -> ColumnElement[Any]:
    """Return the time that other times follow from, as `StoredMessage.dated_at` is."""
    sent_at, until = messages.c.sent_at, messages.c.heard_until
    return case((until < sent_at, until), else_=sent_at)


def entries(*where: ColumnElement[bool]) -> Select[Any]:
    """Select visible entries of the room under these conditions."""
    return select(*ENTRY.columns).select_from(_m.join(_f, _its_features)).where(visible, *where)


def _met(*, several: bool) -> Select[Any]:
    """Select the room, a text of hash and id for each of the ids that is taken, and if messages reply to them. A list
    takes SQLite longer to read than the rest if it has one id."""

    def asked(column: ColumnElement[Any]) -> ColumnElement[bool]:
        return among(column, "ids") if several else column == bindparam("ids")

    its = and_(_m.c.room_key == _r.c.room_key, _m.c.tenant == _r.c.tenant)
    hashed = texts_in(_m.c.content_hash.concat(literal_column("' '")).concat(_m.c.message_id))
    taken = select(hashed).where(its, asked(_m.c.message_id)).scalar_subquery()
    awaited = exists().where(its, _m.c.deleted_at.is_(None), asked(_m.c.reply_to))
    return select(*ROOM.columns, _r.c.room_key, keeps_vectors, _r.c.pending_from, taken, awaited).where(named_room())


def newest_of(chosen: Select[Any]) -> Select[Any]:
    return chosen.order_by(_m.c.arrival.desc()).limit(bindparam("count"))


def _arrivals_since() -> Select[Any]:
    until = dated_at(_m) <= bindparam("until", type_=BigInteger)
    return newest_of(select(_m.c.arrival).where(visible, _before, _since, until))


def _recent(*columns: ColumnElement[Any]) -> Select[Any]:
    return newest_of(select(*columns).where(visible, _before))


def _page(columns: Sequence[ColumnElement[Any]], *where: ColumnElement[bool]) -> Select[Any]:
    return select(*columns).where(visible, _after, *where).order_by(_m.c.arrival).limit(bindparam("count"))


def _count(*where: ColumnElement[bool]) -> Select[Any]:
    return select(func.count()).select_from(_m).where(visible, *where)


def _first_since() -> Select[Any]:
    """Select the first arrival since a time. The minimum of a sum cannot be read off an index's end: the query scans
    the index of times, not the room from its beginning."""
    arrival = _m.c.arrival + literal_column("0")
    return select(func.min(arrival)).where(visible, _since)


def changes(*where: ColumnElement[bool]) -> Subquery:
    """Select the places of changed messages. Both engines would prefer to scan the whole room. A limit of unknown size
    makes PostgreSQL use the order of the index."""
    changed = select(_w.c.room_key, _w.c.arrival, _w.c.changed).where(
        in_room(_w), _w.c.changed > bindparam("revision"), *where
    )
    return changed.order_by(_w.c.changed).limit(bindparam("count")).subquery("changes")


def at_place(table: Table, its: Subquery) -> ColumnElement[bool]:
    """Return the condition that a row of the table has one of these places."""
    here = and_(table.c.room_key == its.c.room_key, table.c.arrival == its.c.arrival)
    return and_(here, table.c.tenant == bindparam("tenant"))


def _changed() -> Select[Any]:
    """Select changed messages. Adding zero to the arrival leaves SQLite no choice but the index of changes."""
    its = changes(_w.c.arrival + literal_column("0") > bindparam("after"))
    return select(_m.c.deleted_at, *MESSAGE.columns).select_from(its.join(_m, at_place(_m, its)))


def _appended() -> Select[Any]:
    """Select changed entries, each with its revision and the time of its deletion."""
    its = changes()
    joined = its.join(_m, at_place(_m, its)).join(_f, at_place(_f, its))
    return select(its.c.changed, _m.c.deleted_at, *ENTRY.columns).select_from(joined)


def _newest_of_rooms() -> Select[Any]:
    """Select the newest message of each of these rooms, with the beginning of its text."""
    last = _earlier_message
    its = and_(last.c.room_key == _r.c.room_key, last.c.deleted_at.is_(None))
    newest = select(last.c.arrival).where(its).order_by(last.c.arrival.desc()).limit(literal_column("1"))
    here = and_(_m.c.room_key == _r.c.room_key, _m.c.arrival == newest.correlate(_r).scalar_subquery())
    begun = func.substr(_m.c.text, 1, bindparam("size", type_=Integer))
    columns = [begun if column is _m.c.text else column for column in MESSAGE.columns]
    return select(_r.c.room_id, *columns).select_from(_r.join(_m, here)).where(*_these_rooms)


def _latest_in_rooms(*where: ColumnElement[bool]) -> Select[Any]:
    """Select the entries of these rooms since a time, the newest first; of each room those that were sent last, along
    the index of times."""
    last = _earlier_message
    newest = select(last.c.sent_at).where(last.c.room_key == _r.c.room_key).order_by(last.c.sent_at.desc())
    oldest = newest.limit(literal_column("1")).offset(bindparam("each", type_=Integer)).correlate(_r).scalar_subquery()
    its = and_(_m.c.room_key == _r.c.room_key, _m.c.tenant == _r.c.tenant)
    chosen = select(_r.c.room_id, *ENTRY.columns).select_from(_r.join(_m, its).join(_f, _its_features))
    few = _m.c.sent_at >= func.coalesce(oldest, bindparam("since"))
    chosen = chosen.where(*_these_rooms, few, _m.c.deleted_at.is_(None), _since, *where)
    return chosen.order_by(dated_at(_m).desc(), _r.c.room_id, _m.c.arrival.desc()).limit(bindparam("count"))


def _names_somebody() -> ColumnElement[bool]:
    """Return the condition that a message may name or answer a person, or speaks to everybody."""
    columns = (_f.c.mentions, _f.c.addressed, _f.c.reply)
    return or_(_f.c.mentions_all, *(column.like(bindparam("pattern"), escape="!") for column in columns))


@cache
def _sent_in_rooms(spans: int) -> Statement:
    """Return the statement that counts the messages of these rooms in each span between `spans` + 1 times."""

    def counted(number: int) -> Any:
        since, until = (bindparam(f"at{place}", type_=BigInteger) for place in (number, number + 1))
        sent = and_(_m.c.room_key == _r.c.room_key, _m.c.sent_at >= since, _m.c.sent_at < until)
        few = select(_m.c.arrival).where(sent, _m.c.deleted_at.is_(None)).limit(bindparam("most")).correlate(_r)
        return select(func.count()).select_from(few.subquery(f"span{number}")).scalar_subquery()

    return Statement(lambda: select(_r.c.room_id, *map(counted, range(spans))).where(*_these_rooms))


def _times_statement() -> Select[Any]:
    """Select the messages that were edited, or whose time is an estimate."""
    exact = and_(_m.c.heard_from == _m.c.sent_at, _m.c.heard_until == _m.c.sent_at)
    estimated = and_(_m.c.sent_at_estimated, or_(_m.c.heard_until.is_(None), not_(exact)))
    return select(_m.c.arrival, *_origin).where(visible, or_(_m.c.edited_at.is_not(None), estimated))


_FINGERPRINTS = Statement(
    lambda: select(_m.c.message_id, _m.c.content_hash).where(in_room(_m), among(_m.c.message_id, "ids"))
)
_LATEST_IN = Statement(_latest_in_rooms)
_LATEST_NAMING = Statement(lambda: _latest_in_rooms(_names_somebody()))
_MET = Statement(lambda: _met(several=True))
_MET_ONE = Statement(lambda: _met(several=False))
_ORIGINS = Statement(lambda: select(_m.c.message_id, *_origin).where(in_room(_m), among(_m.c.message_id, "ids")))
_SAID = Statement(_times_statement)
_ARRIVAL_OF = Statement(lambda: select(_m.c.arrival).where(in_room(_m), _m.c.message_id == bindparam("message_id")))
_IDS_LIKE = Statement(
    lambda: (
        select(_m.c.message_id)
        .where(visible, begins_or_ends(_m.c.message_id))
        .order_by(_m.c.arrival)
        .limit(bindparam("count"))
    )
)
_BY_ID = Statement(lambda: entries(among(_m.c.message_id, "ids")))
_BY_ARRIVAL = Statement(lambda: entries(among(_m.c.arrival, "arrivals")))
_PLAIN = Statement(lambda: select(*MESSAGE.columns).where(visible, among(_m.c.arrival, "arrivals")))
_TAIL = Statement(lambda: newest_of(entries(_before)))
_TAIL_SINCE = Statement(lambda: newest_of(entries(_m.c.arrival.in_(_arrivals_since()))))
_NEWEST_OF_ROOMS = Statement(_newest_of_rooms)
_RECENT = Statement(lambda: _recent(*MESSAGE.columns))
_RECENT_HASHED = Statement(lambda: _recent(*_HASHED_COLUMNS))
_PAGE = Statement(lambda: _page(MESSAGE.columns))
_PAGE_HASHED = Statement(lambda: _page(_HASHED_COLUMNS))
_PAGE_OF = Statement(lambda: _page(MESSAGE.columns, _of_sender))
_PAGE_OF_HASHED = Statement(lambda: _page(_HASHED_COLUMNS, _of_sender))
_COUNT = Statement(lambda: _count(_after))
_COUNT_OF = Statement(lambda: _count(_after, _of_sender))
_FIRST_SINCE = Statement(_first_since)
_CHANGED = Statement(_changed)
_APPENDED = Statement(_appended)

_spoken = and_(_m.c.role == Role.ASSISTANT.value, _m.c.has_tool_calls.is_(False))
_REPLIES_OF = Statement(lambda: _page([_m.c.arrival], _of_sender, _spoken))


def to_entries(room_id: str, rows: Sequence[Sequence[Any]]) -> list[Entry]:
    """Return rows in any order as entries in order of arrival. Sorting in SQL would make SQLite scan the whole room."""
    return [ENTRY.read(row, room_id) for row in sorted(rows, key=itemgetter(ARRIVAL_AT))]


def _to_origin(row: Sequence[Any]) -> Origin:
    at, sender, edited_at, heard_from, heard_until, estimated = row
    return Origin.of(
        from_micros(at),
        sender,
        from_micros_or_none(edited_at),
        from_micros_or_none(heard_from),
        from_micros_or_none(heard_until),
        estimated=bool(estimated),
    )


class InRoom(Repository):
    async def _rows(self, statement: Statement, room_id: str, **params: Any) -> Sequence[Row]:
        return await self._sql.fetch(statement, tenant=self._tenant, room_id=room_id, **params)


class MessageReading(InRoom):
    """A part of `Messages`: the messages of a room, for reading."""

    async def fingerprints(self, *, room_id: str, message_ids: Sequence[str]) -> dict[str, str]:
        """Return message id to content hash for those ids that are taken, including deleted ones ('' for them)."""
        if not message_ids:
            return {}
        rows = await self._rows(_FINGERPRINTS, room_id, ids=names_text(message_ids))
        return {message_id: read_hash(text) for message_id, text in rows}

    async def met(self, *, room_id: str, message_ids: Sequence[str], lock: bool = False) -> Met | None:
        """Return what a batch with these ids meets in the room, in one round trip; None if there is no such room.
        `lock`: the room is locked first, as `Rooms.lock_known` does."""
        statement, ids = (_MET, names_text(message_ids)) if len(message_ids) != 1 else (_MET_ONE, message_ids[0])
        given = {"tenant": self._tenant, "room_id": room_id, "ids": ids}
        if lock:
            self._locks.check_writing()
            rows = await self._sql.fetch_locked(LOCK, statement, **given)
        else:
            rows = await self._sql.fetch(statement, **given)
        if not rows:
            return None
        *_, key, keeps, pending_from, taken, awaited = rows[0]
        if lock:
            self._locks.take(LockedRoom(key, self._tenant, room_id, bool(keeps), pending_from))
        hashes = (text.partition(" ") for text in read_texts(taken))
        return Met(ROOM.read(rows[0]), {message_id: read_hash(text) for text, _, message_id in hashes}, bool(awaited))

    async def origins(self, *, room_id: str, message_ids: Sequence[str]) -> dict[str, Origin]:
        """Return message id to times and sender for those ids that are taken, including deleted ones."""
        if not message_ids:
            return {}
        rows = await self._rows(_ORIGINS, room_id, ids=names_text(message_ids))
        return {row[0]: _to_origin(row[1:]) for row in rows}

    async def by_id(self, *, room_id: str, message_ids: Sequence[str]) -> list[Entry]:
        if not message_ids:
            return []
        rows = await self._rows(_BY_ID, room_id, ids=names_text(message_ids))
        return to_entries(room_id, rows)

    async def by_arrival(self, *, room_id: str, arrivals: Sequence[int]) -> list[Entry]:
        if not arrivals:
            return []
        rows = await self._rows(_BY_ARRIVAL, room_id, arrivals=numbers_text(arrivals))
        return to_entries(room_id, rows)

    async def messages_by_arrival(self, *, room_id: str, arrivals: Sequence[int]) -> list[StoredMessage]:
        """Return the messages at these arrivals without features and links, in order of arrival."""
        if not arrivals:
            return []
        rows = await self._rows(_PLAIN, room_id, arrivals=numbers_text(arrivals))
        return [MESSAGE.read(row, room_id) for row in sorted(rows, key=itemgetter(ARRIVAL_AT))]

    async def said(self, *, room_id: str) -> dict[int, Window]:
        """Return arrival to the time from when until when it was said (`Origin.first`, `last`), of the messages of the
        room that were not said at `sent_at` alone: edited and estimated ones."""
        rows = await self._rows(_SAID, room_id)
        return {row[0]: Window((origin := _to_origin(row[1:])).first, origin.last) for row in rows}

    async def tail(
        self,
        *,
        room_id: str,
        limit: int,
        before: int | None = None,
        since: datetime | None = None,
        until: datetime = END,
    ) -> list[Entry]:
        """Return the newest `limit` entries with arrival < `before`, dated from `since` to `until` (both included), in
        order of arrival.

        If the times of a room never decrease, the plain tail answers `since` too; only otherwise the index of times is
        used.
        """
        bounds = {"before": NEWEST_OF_ALL if before is None else before, "count": limit}
        rows = await self._rows(_TAIL, room_id, **bounds)
        tail_entries = [ENTRY.read(row, room_id) for row in reversed(rows)]
        if since is None or all(since <= entry.message.dated_at <= until for entry in tail_entries):
            return tail_entries
        times = {"since": to_micros(since), "until": to_micros(until)}
        rows = await self._rows(_TAIL_SINCE, room_id, **times, **bounds)
        return [ENTRY.read(row, room_id) for row in reversed(rows)]

    async def recent(self, *, room_id: str, limit: int, before: int | None = None) -> list[StoredMessage]:
        """Return the newest `limit` messages with arrival < `before`, in order of arrival: the plain window."""
        before = NEWEST_OF_ALL if before is None else before
        rows = await self._rows(_RECENT, room_id, before=before, count=limit)
        return [MESSAGE.read(row, room_id) for row in reversed(rows)]

    async def recent_with_hashes(
        self, *, room_id: str, limit: int, before: int | None = None
    ) -> list[tuple[StoredMessage, str]]:
        """Return the messages of `recent`, each with its content hash at that moment."""
        before = NEWEST_OF_ALL if before is None else before
        rows = await self._rows(_RECENT_HASHED, room_id, before=before, count=limit)
        return [(MESSAGE.read(row, room_id), read_hash(row[-1])) for row in reversed(rows)]

    async def newest_of(self, *, room_ids: Collection[str], characters: int) -> dict[str, StoredMessage]:
        """Return the newest message of each of these rooms, with the first `characters` of its text, without rooms
        that have none."""
        if not room_ids:
            return {}
        named = {"tenant": self._tenant, "room_ids": names_text(sorted(room_ids))}
        rows = await self._sql.fetch(_NEWEST_OF_ROOMS, size=characters, **named)
        return {(room_id := row[0]): MESSAGE.read(row[1:], room_id) for row in rows}

    async def latest_in(
        self, *, room_ids: Collection[str], since: datetime, limit: int, each: int, naming: str | None = None
    ) -> list[Entry]:
        """Return the newest `limit` entries of all these rooms since a time, the newest first, of each room among the
        newest `each`. `naming`: only those that may name or answer this person, or speak to everybody."""
        if not room_ids:
            return []
        named: dict[str, Any] = {"tenant": self._tenant, "room_ids": names_text(sorted(room_ids)), "count": limit}
        named["each"] = each - 1
        if naming is None:
            rows = await self._sql.fetch(_LATEST_IN, since=to_micros(since), **named)
        else:
            pattern = containing(list_text([naming])[1:-1])
            rows = await self._sql.fetch(_LATEST_NAMING, since=to_micros(since), pattern=pattern, **named)
        return [ENTRY.read(row[1:], row[0]) for row in rows]

    async def sent_between(
        self, *, room_ids: Collection[str], times: Sequence[datetime], most: int
    ) -> dict[str, tuple[int, ...]]:
        """Return how many messages of each of these rooms were sent from each time until the next one, at most `most`,
        however many there are; without unknown rooms."""
        if not room_ids or len(times) < 2:
            return {}
        named: dict[str, Any] = {"tenant": self._tenant, "room_ids": names_text(sorted(room_ids)), "most": most}
        bounds = {f"at{place}": to_micros(at) for place, at in enumerate(times)}
        rows = await self._sql.fetch(_sent_in_rooms(len(times) - 1), **named, **bounds)
        return {row[0]: tuple(row[1:]) for row in rows}

    async def page(self, *, room_id: str, after: int, limit: int, sender_id: str | None = None) -> list[StoredMessage]:
        """Return messages with arrival > `after`, ascending; `sender_id`: only those of this sender."""
        rows = await self._window_rows(_PAGE, _PAGE_OF, room_id, sender_id, after=after, count=limit)
        return [MESSAGE.read(row, room_id) for row in rows]

    async def page_with_hashes(
        self, *, room_id: str, after: int, limit: int, sender_id: str | None = None
    ) -> list[tuple[StoredMessage, str]]:
        """Return the messages of `page`, each with its content hash at that moment."""
        rows = await self._window_rows(_PAGE_HASHED, _PAGE_OF_HASHED, room_id, sender_id, after=after, count=limit)
        return [(MESSAGE.read(row, room_id), read_hash(row[-1])) for row in rows]

    async def count(self, *, room_id: str, after: int, sender_id: str | None = None) -> int:
        """Return the total number of results of `page`."""
        rows = await self._window_rows(_COUNT, _COUNT_OF, room_id, sender_id, after=after)
        return int(rows[0][0])

    async def _window_rows(
        self, by_anybody: Statement, by_one: Statement, room_id: str, sender_id: str | None, **bounds: int
    ) -> Sequence[Sequence[Any]]:
        if sender_id is None:
            return await self._rows(by_anybody, room_id, **bounds)
        return await self._rows(by_one, room_id, sender_id=sender_id, **bounds)

    async def first_since(self, *, room_id: str, since: datetime) -> int | None:
        """Return the lowest arrival of a message sent at `since` or later; None if there is none."""
        rows = await self._rows(_FIRST_SINCE, room_id, since=to_micros(since))
        first: int | None = rows[0][0]
        return first

    async def replies_of(self, *, room_id: str, agent_id: str, after: int, limit: int) -> list[int]:
        """Return arrivals above `after` of the agent's replies, ascending: messages of the role assistant that call no
        tools."""
        rows = await self._rows(_REPLIES_OF, room_id, after=after, count=limit, sender_id=agent_id)
        return [row[0] for row in rows]

    async def ids_like(self, *, room_id: str, part: str, limit: int) -> list[str]:
        """Return the ids of at most `limit` messages that begin or end with `part`, in order of arrival, without
        deleted messages."""
        rows = await self._rows(_IDS_LIKE, room_id, part=part, count=limit)
        return [row[0] for row in rows]

    async def arrival_of(self, *, room_id: str, message_id: str) -> int | None:
        """Return the arrival of the message with this id, including deleted ones; None if the id was never used."""
        rows = await self._rows(_ARRIVAL_OF, room_id, message_id=message_id)
        return rows[0][0] if rows else None

    async def changed(self, *, room_id: str, revision: int, after: int) -> tuple[list[StoredMessage], list[int]]:
        """Return the changes of the messages with arrival > `after` since the room's `revision`: those that were added,
        edited or relinked, in order of arrival, and the arrivals of those that were deleted."""
        rows = await self._rows(_CHANGED, room_id, revision=revision, after=after, count=NEWEST_OF_ALL)
        rows = sorted(rows, key=itemgetter(1 + ARRIVAL_AT))
        there = [MESSAGE.read(row[1:], room_id) for row in rows if row[0] is None]
        return there, [row[1 + ARRIVAL_AT] for row in rows if row[0] is not None]

    async def appended(self, *, room_id: str, since: int, through: int, after: int, limit: int) -> list[Entry] | None:
        """Return the entries with arrival > `after` as they are now, in order of arrival, if nothing but messages with
        these arrivals changed in the room from its revision `since` to its revision `through`. Return None otherwise,
        and if there are more than `limit`.

        A revision in which something else changed is missing from the rows, or is that of a row at or before `after`,
        or of a deleted one.
        """
        rows = await self._rows(_APPENDED, room_id, revision=since, count=limit + 1)
        of_revisions = [row for row in rows if row[0] <= through]
        if len(rows) > limit or {row[0] for row in of_revisions} != set(range(since + 1, through + 1)):
            return None
        if any(deleted_at is not None or row[ARRIVAL_AT] <= after for _, deleted_at, *row in of_revisions):
            return None
        return to_entries(room_id, [row[2:] for row in of_revisions])


def _newest_before(column: ColumnElement[Any]) -> Select[Any]:
    """Select messages before the target, the newest first."""
    earlier = and_(
        _earlier_message.c.room_key == _m.c.room_key,
        _earlier_message.c.tenant == _m.c.tenant,
        _earlier_message.c.deleted_at.is_(None),
        _earlier_message.c.arrival < _m.c.arrival,
    )
    return select(column).where(earlier).order_by(_earlier_message.c.arrival.desc()).correlate(_m)


def _window() -> ColumnElement[Any]:
    """Select the tokens of the newest messages before the target, as one text with commas."""
    newest = _newest_before(_earlier_message.c.tokens).limit(bindparam("window")).subquery()
    return select(numbers_in(newest.c.tokens)).select_from(newest).correlate(_m).scalar_subquery()


def _target_statement(*where: ColumnElement[bool]) -> Select[Any]:
    previous = _newest_before(dated_at(_earlier_message)).limit(1).scalar_subquery()
    columns = (_window(), previous, *ROOM.columns, *ENTRY.columns)
    joined = _r.join(_m, _r.c.room_key == _m.c.room_key).join(_f, _its_features)
    return select(*columns).select_from(joined).where(visible, *where)


TARGET = Statement(lambda: _target_statement(_m.c.message_id == bindparam("message_id")))
NEWEST_TARGET = Statement(
    lambda: _target_statement(_m.c.role == Role.USER.value).order_by(_m.c.arrival.desc()).limit(1)
)


def to_target(room_id: str, row: Sequence[Any]) -> Target:
    entry_at = 2 + len(ROOM.columns)
    tokens = [int(number) for number in row[0].split(",")] if row[0] else []
    return Target(
        room=ROOM.read(row[2:entry_at]),
        entry=ENTRY.read(row[entry_at:], room_id),
        window_messages=len(tokens),
        window_tokens=sum(tokens),
        previous_at=None if row[1] is None else from_micros(row[1]),
    )
