"""Parts of `Maintenance`: messages, memories and derived data as stored, for checking."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

from sqlalchemy import Dialect, Text, and_, bindparam, cast, exists, func, literal_column, select, text, tuple_

from roomlore.core.integrity import StoredVersion
from roomlore.core.memory.memory import Source
from roomlore.core.models import StoredMessage
from roomlore.storage import schema
from roomlore.storage import schema as tables
from roomlore.storage.engine import Connection, Locks, Repository, Row, Statement, among, in_room, key_of_scope
from roomlore.storage.rows import DAMAGE, names_text
from roomlore.storage.shapes import (
    ARRIVAL_AT,
    CHANGE_COLUMNS,
    ENTRY,
    ID_AT,
    MEMORY,
    MESSAGE,
    read_sources,
    to_change,
)
from roomlore.storage.snapshots import Snapshots
from roomlore.storage.values import (
    MarkAhead,
    OrphanRow,
    ReadChange,
    ReadMessage,
    ReadSnapshot,
    ReadSupport,
    ReadVersion,
    WordIndexMismatch,
)
from roomlore.storage.words import spell_message

_m, _f, _w = schema.messages, schema.features, schema.message_words
_NAMED = 1000
_CHARACTERS = 2_000_000
"""The texts of one page may have this many characters before its last message."""
_BESIDE = 6


def _its(table: Any, other: Any) -> Any:
    return and_(
        table.c.room_key == other.c.room_key, table.c.arrival == other.c.arrival, table.c.tenant == other.c.tenant
    )


def _sizes() -> Any:
    """Select the sizes of messages. A missing message counts as empty; reading it reports the fault."""
    size = func.coalesce(func.length(_m.c.text) + func.length(_m.c.metadata), literal_column("0"))
    chosen = select(_m.c.arrival, size).where(in_room(_m), _m.c.arrival > bindparam("after"))
    return chosen.order_by(_m.c.arrival).limit(bindparam("count"))


def _messages() -> Any:
    kept = (_m.c.room_key, _m.c.deleted_at, _f.c.arrival, _w.c.arrival, _w.c.length, cast(_w.c.words, Text))
    rows = _m.outerjoin(_f, _its(_f, _m)).outerjoin(_w, _its(_w, _m))
    within = _m.c.arrival > bindparam("after"), _m.c.arrival <= bindparam("last")
    return select(*ENTRY.columns, *kept).select_from(rows).where(in_room(_m), *within).order_by(_m.c.arrival)


def _orphan_rows(table: Any) -> Any:
    place = (table.c.room_key, table.c.arrival)
    above = tuple_(*place) > tuple_(*[bindparam(f"after_{column.name}", type_=column.type) for column in place])
    chosen = select(*place).where(table.c.tenant == bindparam("tenant"), above, ~exists().where(_its(_m, table)))
    return chosen.order_by(*place).limit(bindparam("count"))


# Every word of the index is a row of `message_index_terms`, and those of one room are neighbours. The cross join keeps
# SQLite from scanning those of all rooms.
_TERMS = """
FROM rooms r CROSS JOIN message_index_terms WHERE r.tenant = :tenant AND r.room_id = :room_id
AND term >= printf('%xx', r.room_key) AND term < printf('%xy', r.room_key)
"""
_ROWS = """
FROM message_words w JOIN rooms r ON r.room_key = w.room_key
WHERE r.tenant = :tenant AND r.room_id = :room_id AND w.tenant = r.tenant AND w.words <> '' AND NOT w.pending
"""
_PLACE = "iif(doc >> 38, doc >> 10 & 268435455, doc)"
_WORDS = "length(w.words) - length(replace(w.words, ' ', '')) + 1"
_SUMS = Statement(
    lambda: text(
        f"SELECT * FROM (SELECT count(*), coalesce(sum({_PLACE}), 0) {_TERMS}), "  # noqa: S608 - constants alone
        f"(SELECT coalesce(sum({_WORDS}), 0), coalesce(sum(w.arrival * ({_WORDS})), 0) {_ROWS})"
    )
)
_MISSING = Statement(lambda: text(f"SELECT w.arrival {_ROWS} EXCEPT SELECT {_PLACE} {_TERMS} LIMIT :count"))
_SURPLUS = Statement(lambda: text(f"SELECT {_PLACE} {_TERMS} EXCEPT SELECT w.arrival {_ROWS} LIMIT :count"))
_SIZES = Statement(_sizes)
_MESSAGES = Statement(_messages)
_ORPHAN_ROWS = {table.name: Statement(partial(_orphan_rows, table)) for table in (schema.link_corrections, _f, _w)}


class MessageAudit(Repository):
    """A part of `Maintenance`: reading messages for an integrity check."""

    async def read_messages(self, *, room_id: str, after: int, limit: int) -> Callable[[], Sequence[ReadMessage]]:
        """Return a function that reads the room's messages with an arrival above `after`, ascending, including deleted
        ones: up to `limit`, fewer if they are long, none at the room's end. The function uses the processor only; it
        needs no open unit of work."""
        here = {"tenant": self._tenant, "room_id": room_id, "after": after}
        last = _last(await self._sql.fetch(_SIZES, count=limit, **here), after)
        return partial(_read_all, room_id, await self._sql.fetch(_MESSAGES, last=last, **here), self._sql.dialect)

    async def word_index_mismatch(self, *, room_id: str) -> WordIndexMismatch | None:
        """Return the difference, or None if the index is derived from the rows, by their counts at least, or there is
        no separate index, as on PostgreSQL, which indexes the rows itself."""
        if self._sql.dialect.name != "sqlite":
            return None
        here = {"tenant": self._tenant, "room_id": room_id}
        indexed, places, kept, arrivals = (await self._sql.fetch(_SUMS, **here))[0]
        if (indexed, places) == (kept, arrivals):
            return None
        missing = await self._sql.fetch(_MISSING, count=_NAMED, **here)
        surplus = await self._sql.fetch(_SURPLUS, count=_NAMED, **here)
        return WordIndexMismatch(indexed, kept, tuple(row[0] for row in missing), tuple(row[0] for row in surplus))

    async def orphan_rows(self, *, after: OrphanRow | None, limit: int) -> list[OrphanRow]:
        """Return rows of features, corrected links and words without a message, ascending by table, room and arrival,
        above `after`."""
        orphans: list[OrphanRow] = []
        for table, statement in _ORPHAN_ROWS.items():
            if after is None or table >= after.table:
                place = (after.room_key, after.arrival) if after and table == after.table else (0, 0)
                its = {"tenant": self._tenant, "after_room_key": place[0], "after_arrival": place[1]}
                rows = await self._sql.fetch(statement, count=limit - len(orphans), **its)
                orphans += [OrphanRow(table, *row) for row in rows]
        return orphans


def _last(sizes: Sequence[Row], after: int) -> int:
    """Return the arrival at which a page is full. A page has at least one message."""
    last, room = after, _CHARACTERS
    for arrival, size in sizes:
        if room <= 0:
            break
        last, room = arrival, room - size
    return last


def _read_all(room_id: str, rows: Sequence[Row], dialect: Dialect) -> list[ReadMessage]:
    return [_read(room_id, row, dialect) for row in rows]


def _read(room_id: str, row: Row, dialect: Dialect) -> ReadMessage:
    entry, (room_key, deleted_at, features, words, length, indexed) = row[:-_BESIDE], row[-_BESIDE:]
    message, why = None, ""
    if deleted_at is None:
        try:
            message = (
                MESSAGE.read_checked(entry, room_id) if features is None else ENTRY.read_checked(entry, room_id).message
            )
        except DAMAGE as error:
            why = f"{type(error).__name__}: {error}"[:200]
    kept = (
        "missing" if words is None else "unknown" if why else _words_kept(message, room_key, length, indexed, dialect)
    )
    counted = length if isinstance(length, int) else 0
    return ReadMessage(row[ARRIVAL_AT], _name(row[ID_AT]), message, features is not None, kept, counted, why)


def _name(message_id: object) -> str:
    return message_id if isinstance(message_id, str) else repr(message_id)[:80]


def _words_kept(
    message: StoredMessage | None, room_key: int, length: int, indexed: str, dialect: Dialect
) -> Literal["right", "other"]:
    """Return 'right' if the stored words are those of the message. PostgreSQL returns words in its own order. A deleted
    message has none."""
    spelled = spell_message(message, room_key, dialect, message.arrival) if message else None
    words, count = (spelled.words, spelled.length) if spelled else ("", 0)
    same = words == indexed or sorted(words.split(" ")) == sorted(indexed.split(" "))
    return "right" if same and count == length else "other"


_s, _memories, _c, _src = tables.scopes, tables.memories, tables.changes, tables.sources
_r, _marks = schema.rooms, tables.watermarks
_key = key_of_scope()
_CURSOR = ("after_room", "after_message", "after_number")


def _versions() -> Any:
    """Select versions by key, so that a page begins where the last one ended. Not by scope: the rows of a scope are
    spread between those of all others."""
    place = _memories.c.memory_key + literal_column("0")
    columns = (*MEMORY.columns, _memories.c.memory_key, _memories.c.head, _memories.c.merged_into)
    rows = select(*columns).select_from(_memories.join(_s, _s.c.scope_key == _memories.c.scope_key))
    chosen = rows.where(_memories.c.scope_key == _key, place > bindparam("after"))
    return chosen.order_by(place).limit(bindparam("count"))


def _log() -> Any:
    chosen = select(*CHANGE_COLUMNS).where(_c.c.scope_key == _key, _c.c.number > bindparam("after"))
    return chosen.order_by(_c.c.number).limit(bindparam("count"))


def _found_from() -> Any:
    here = (_src.c.tenant == bindparam("tenant")) & (_src.c.room_id == bindparam("room_id"))
    rows = select(_src.c.message_id, _src.c.memory_key).join(_memories, _memories.c.memory_key == _src.c.memory_key)
    return rows.where(here, among(_src.c.message_id, "message_ids"), _memories.c.scope_key == _key)


def _support_rows(*where: Any) -> Any:
    """Select support rows in the order of the table's key, with the sources in the same row, so that both are from one
    moment."""
    place = (_src.c.room_id, _src.c.message_id, _src.c.memory_key)
    given = [bindparam(name, type_=column.type) for name, column in zip(_CURSOR, place, strict=True)]
    its = and_(_memories.c.memory_key == _src.c.memory_key, _memories.c.tenant == _src.c.tenant)
    rows = _src.outerjoin(_memories, its).outerjoin(_s, _s.c.scope_key == _memories.c.scope_key)
    chosen = select(*place, _s.c.scope, _memories.c.memory_id, _memories.c.sources).select_from(rows)
    chosen = chosen.where(_src.c.tenant == bindparam("tenant"), tuple_(*place) > tuple_(*given), *where)
    return chosen.order_by(*place).limit(bindparam("count"))


def _ahead() -> Any:
    """Select marks above the last arrival of their room. A mark with an empty room name holds no arrival."""
    its = (_r.c.tenant == _marks.c.tenant) & (_r.c.room_id == _marks.c.room_id)
    last = func.coalesce(_r.c.next_arrival - literal_column("1"), literal_column("0"))
    rows = select(_marks.c.room_id, _marks.c.name, _marks.c.arrival, last).select_from(_marks.outerjoin(_r, its))
    chosen = rows.where(
        _marks.c.tenant == bindparam("tenant"), _marks.c.room_id != literal_column("''"), _marks.c.arrival > last
    )
    return chosen.order_by(_marks.c.room_id, _marks.c.name)


_VERSIONS = Statement(_versions)
_LOG = Statement(_log)
_FOUND_FROM = Statement(_found_from)
_SUPPORT_ROWS = Statement(_support_rows)
_SUPPORT_ROWS_OF_SCOPE = Statement(lambda: _support_rows(_memories.c.scope_key == _key))
_AHEAD = Statement(_ahead)


class MemoryAudit(Repository):
    """A part of `Maintenance`: reading memories for an integrity check."""

    def __init__(self, connection: Connection, locks: Locks, tenant: str | None) -> None:
        super().__init__(connection, locks, tenant)
        self._snapshots = Snapshots(connection, locks, tenant)

    async def read_versions(self, *, scope: str, after: int, limit: int) -> list[ReadVersion]:
        """Return rows of the scope with a number above `after`, ascending."""
        here = {"tenant": self._tenant, "scope": scope}
        return [_version(row) for row in await self._sql.fetch(_VERSIONS, after=after, count=limit, **here)]

    async def read_log(self, *, scope: str, after: int, limit: int) -> list[ReadChange]:
        """Return entries of the scope's log with a number above `after`, ascending."""
        here = {"tenant": self._tenant, "scope": scope}
        return [_change(scope, row) for row in await self._sql.fetch(_LOG, after=after, count=limit, **here)]

    async def read_snapshots(self, *, scope: str, after: int, until: int, limit: int) -> list[ReadSnapshot]:
        """Return snapshots of the scope's log with a number above `after` up to `until`, ascending."""
        return await self._snapshots.between(scope=scope, after=after, until=until, limit=limit)

    async def found_from(self, *, scope: str, room_id: str, message_ids: Sequence[str]) -> set[tuple[str, int]]:
        """Return the scope's rows found from these messages, by message id and number."""
        rows = await self._sql.fetch(
            _FOUND_FROM,
            tenant=self._tenant,
            scope=scope,
            room_id=room_id,
            message_ids=names_text(message_ids),
        )
        return {(message_id, number) for message_id, number in rows}

    async def support_rows(self, *, scope: str | None, after: tuple[str, str, int], limit: int) -> list[ReadSupport]:
        """Return the rows by which memories are found from messages, of one scope or all, ascending by room, message
        and number, and above `after`; ('', '', 0) begins. Rows of no memory only if `scope` is None."""
        here: dict[str, Any] = {"tenant": self._tenant, "count": limit}
        here |= dict(zip(_CURSOR, (after[0], after[1], after[2]), strict=True))
        if scope is None:
            rows = await self._sql.fetch(_SUPPORT_ROWS, **here)
        else:
            rows = await self._sql.fetch(_SUPPORT_ROWS_OF_SCOPE, scope=scope, **here)
        return [_supported(row) for row in rows]

    async def marks_ahead(self) -> list[MarkAhead]:
        """Return the watermarks beyond the end of their room, by room and name."""
        rows = await self._sql.fetch(_AHEAD, tenant=self._tenant)
        return [MarkAhead(room_id, name, arrival, last) for room_id, name, arrival, last in rows]


def _version(row: Row) -> ReadVersion:
    number, head, merged_into = row[-3:]
    memory_id = row[0]
    try:
        stored = StoredVersion(number, MEMORY.read_checked(row), bool(head), merged_into)
    except DAMAGE as error:
        return ReadVersion(number, memory_id, None, f"{type(error).__name__}: {error}"[:200])
    return ReadVersion(number, memory_id, stored)


def _supported(row: Row) -> ReadSupport:
    number, scope, memory_id, sources = row[2:]
    place = Source(row[0], row[1])
    try:
        rests = None if sources is None else place in read_sources(sources)
    except DAMAGE:
        rests = None
    return ReadSupport(place.room_id, place.message_id, number, scope, memory_id, rests)


def _change(scope: str, row: Row) -> ReadChange:
    try:
        return ReadChange(row[0], to_change(scope, row))
    except DAMAGE as error:
        return ReadChange(row[0], None, f"{type(error).__name__}: {error}"[:200])
