"""Messages whose keywords are not counted yet and, on SQLite, whose words are not in the index: both are written for
many messages of a room at once, since a page that is written for one word costs as much as for all of its words.

`rooms.pending_from` and `message_words.pending` say which ones these are. They are stored with the message, so nothing
is lost, and readers add them to what is counted and indexed. Servers of the version before count and index each message
at once, and theirs are not pending.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Select, bindparam, false, literal_column, select, update

from roomlore.core.models import Entry
from roomlore.storage import schema
from roomlore.storage.engine import Change, Connection, LockedRoom, Row, Statement, in_locked_room, in_room, named_room
from roomlore.storage.rows import read_list

_f, _r, _w = schema.features, schema.rooms, schema.message_words
MOST_PENDING = 64
"""The messages of a room from the first pending one on: with this many, all of them are counted and indexed."""


def _beside() -> ColumnElement[bool]:
    return (_f.c.room_key == _w.c.room_key) & (_f.c.arrival == _w.c.arrival) & (_f.c.tenant == _w.c.tenant)


def _locked() -> tuple[ColumnElement[bool], ...]:
    """Return the conditions of the pending rows of a locked room."""
    return in_locked_room(_w), _w.c.arrival >= bindparam("pending_from"), _w.c.pending


def pending_keywords() -> Select[Any]:
    """Select the keywords of each pending message of the room given by the parameters `tenant` and `room_id`, and 0."""
    since = select(_r.c.pending_from).where(named_room()).scalar_subquery()
    lists = select(_f.c.keywords, literal_column("0", BigInteger)).select_from(_w.join(_f, _beside()))
    return lists.where(in_room(_w), _w.c.arrival >= since, _w.c.pending)


def counts_in(rows: Sequence[Row]) -> Counter[str]:
    """Return the counts of keywords from rows of a keyword and its count, and rows of `pending_keywords`."""
    counts = Counter({keyword: count for keyword, count in rows if count})
    for keywords, count in rows:
        if not count:
            counts.update(read_list(keywords))
    return counts


_KEYWORDS = Statement(lambda: select(_f.c.keywords).select_from(_w.join(_f, _beside())).where(*_locked()))
_SETTLE = Statement(lambda: update(_w).where(*_locked()).values(pending=false()))


def first_pending(room: LockedRoom, entries: Sequence[Entry]) -> int | None:
    """Return the first pending arrival of the room once these entries follow, None if all are to be settled."""
    first = entries[0].message.arrival
    since = first if room.pending_from is None else min(room.pending_from, first)
    return since if entries[-1].message.arrival - since + 1 < MOST_PENDING else None


async def settled(sql: Connection, room: LockedRoom) -> tuple[Counter[str], list[Change]]:
    """Return how often each keyword is to be counted for the pending messages of a locked room, and the changes after
    which they are not pending."""
    if room.pending_from is None:
        return Counter(), []
    its = {"room_key": room.key, "tenant": room.tenant, "pending_from": room.pending_from}
    rows = await sql.fetch(_KEYWORDS, **its)
    counts = Counter([word for (keywords,) in rows for word in read_list(keywords)])
    return counts, [(_SETTLE, [_SETTLE.on(sql.dialect).ordered(its)])]
