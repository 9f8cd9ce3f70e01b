"""Messages and what is derived of them as they stand, for checking."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

from sqlalchemy import Dialect, Text, and_, bindparam, cast, exists, func, literal_column, select, text, tuple_

from roomlore.adapters.sql import schema
from roomlore.adapters.sql.drivers import Connection, Row
from roomlore.adapters.sql.rows import ENTRY_COLUMNS, to_entry, to_message
from roomlore.adapters.sql.spelling import spell_message
from roomlore.adapters.sql.statements import Statement, in_room
from roomlore.adapters.sql.values import escape, unescape
from roomlore.core.models import StoredMessage
from roomlore.ports.audit import ReadMessage, Stray, WordsAstray

_m, _f, _w = schema.messages, schema.features, schema.message_words
DAMAGE = (ValueError, TypeError, KeyError, AttributeError, OverflowError)
"""What reading a row raises that roomlore did not write."""
_NAMED = 1000
_CHARACTERS = 2_000_000
"""As long may the texts of one page be, before the last of them."""
_BESIDE = 6


def _its(table: Any, other: Any) -> Any:
    return and_(
        table.c.room_key == other.c.room_key, table.c.arrival == other.c.arrival, table.c.tenant == other.c.tenant
    )


def _sizes() -> Any:
    """What is not there counts as empty: it is told of when the message is read."""
    size = func.coalesce(func.length(_m.c.text) + func.length(_m.c.metadata), literal_column("0"))
    chosen = select(_m.c.arrival, size).where(in_room(_m), _m.c.arrival > bindparam("after"))
    return chosen.order_by(_m.c.arrival).limit(bindparam("count"))


def _messages() -> Any:
    kept = (_m.c.room_key, _m.c.deleted_at, _f.c.arrival, _w.c.arrival, _w.c.length, cast(_w.c.words, Text))
    rows = _m.outerjoin(_f, _its(_f, _m)).outerjoin(_w, _its(_w, _m))
    within = _m.c.arrival > bindparam("after"), _m.c.arrival <= bindparam("last")
    return select(*ENTRY_COLUMNS, *kept).select_from(rows).where(in_room(_m), *within).order_by(_m.c.arrival)


def _strays(table: Any) -> Any:
    place = (table.c.room_key, table.c.arrival)
    above = tuple_(*place) > tuple_(*[bindparam(f"after_{column.name}", type_=column.type) for column in place])
    chosen = select(*place).where(table.c.tenant == bindparam("tenant"), above, ~exists().where(_its(_m, table)))
    return chosen.order_by(*place).limit(bindparam("count"))


# Every word of the index is a row of `message_index_terms`, those of one room side by side. The cross join keeps SQLite
# from walking those of all rooms.
_TERMS = """
FROM rooms r CROSS JOIN message_index_terms WHERE r.tenant = :tenant AND r.room_id = :room_id
AND term >= printf('%xx', r.room_key) AND term < printf('%xy', r.room_key)
"""
_ROWS = """
FROM message_words w JOIN rooms r ON r.room_key = w.room_key
WHERE r.tenant = :tenant AND r.room_id = :room_id AND w.tenant = r.tenant AND w.words <> ''
"""
_PLACE = "doc >> 10 & 268435455"
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
_STRAYS = {table.name: Statement(partial(_strays, table)) for table in (_f, _w)}


class MessageAudit:
    """What the port `Audit` says of messages."""

    def __init__(self, connection: Connection) -> None:
        self._sql = connection

    async def messages(
        self, *, tenant: str, room_id: str, after: int, limit: int
    ) -> Callable[[], Sequence[ReadMessage]]:
        here = {"tenant": escape(tenant), "room_id": escape(room_id), "after": after}
        last = _last(await self._sql.fetch(_SIZES, count=limit, **here), after)
        return partial(_read_all, room_id, await self._sql.fetch(_MESSAGES, last=last, **here), self._sql.dialect)

    async def words_astray(self, *, tenant: str, room_id: str) -> WordsAstray | None:
        """On PostgreSQL the rows are what is indexed, and it keeps the index itself."""
        if self._sql.dialect.name != "sqlite":
            return None
        here = {"tenant": escape(tenant), "room_id": escape(room_id)}
        indexed, places, kept, arrivals = (await self._sql.fetch(_SUMS, **here))[0]
        if (indexed, places) == (kept, arrivals):
            return None
        missing = await self._sql.fetch(_MISSING, count=_NAMED, **here)
        surplus = await self._sql.fetch(_SURPLUS, count=_NAMED, **here)
        return WordsAstray(indexed, kept, tuple(row[0] for row in missing), tuple(row[0] for row in surplus))

    async def strays(self, *, tenant: str, after: Stray | None, limit: int) -> list[Stray]:
        found: list[Stray] = []
        for table, statement in _STRAYS.items():
            if after is None or table >= after.table:
                place = (after.room_key, after.arrival) if after and table == after.table else (0, 0)
                its = {"tenant": escape(tenant), "after_room_key": place[0], "after_arrival": place[1]}
                rows = await self._sql.fetch(statement, count=limit - len(found), **its)
                found += [Stray(table, *row) for row in rows]
        return found


def _last(sizes: Sequence[Row], after: int) -> int:
    """The arrival with which a page is full: one message at least is in it."""
    last, room = after, _CHARACTERS
    for arrival, size in sizes:
        if room <= 0:
            break
        last, room = arrival, room - size
    return last


def _read_all(room_id: str, rows: Sequence[Row], dialect: Dialect) -> list[ReadMessage]:
    return [_read(room_id, row, dialect) for row in rows]


def _read(room_id: str, row: Row, dialect: Dialect) -> ReadMessage:
    entry, (room_key, deleted_at, features, words, length, told) = row[:-_BESIDE], row[-_BESIDE:]
    message, why = None, ""
    if deleted_at is None:
        try:
            message = to_message(room_id, entry) if features is None else to_entry(room_id, entry).message
        except DAMAGE as error:
            why = f"{type(error).__name__}: {error}"[:200]
    kept = "missing" if words is None else "unknown" if why else _words_kept(message, room_key, length, told, dialect)
    counted = length if isinstance(length, int) else 0
    return ReadMessage(row[0], _name(row[1]), message, features is not None, kept, counted, why)


def _name(message_id: object) -> str:
    return unescape(message_id) if isinstance(message_id, str) else repr(message_id)[:80]


def _words_kept(
    message: StoredMessage | None, room_key: int, length: int, told: str, dialect: Dialect
) -> Literal["right", "other"]:
    """PostgreSQL tells the words in an order of its own. Nothing is left of a deleted message."""
    spelled = spell_message(message, room_key, dialect, message.arrival) if message else None
    words, count = (spelled.words, spelled.length) if spelled else ("", 0)
    same = words == told or sorted(words.split(" ")) == sorted(told.split(" "))
    return "right" if same and count == length else "other"
