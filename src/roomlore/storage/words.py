"""A part of `Messages`: words as both engines index them, their index, and its matches.

An indexed word has lower-case letters, digits and characters beyond ASCII; any other character is an underscore and its
number. The key of its room is its prefix, so that rooms have separate words.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Dialect,
    LargeBinary,
    Select,
    Subquery,
    Table,
    Text,
    and_,
    bindparam,
    case,
    cast,
    column,
    func,
    insert,
    literal_column,
    select,
    table,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import insert as upsert

from roomlore.core.errors import InvalidInput
from roomlore.core.models import Message, MessageType, StoredMessage
from roomlore.core.search.hits import MAX_COUNT, ROLES, FactRows, Ints, Postings, no_postings
from roomlore.core.search.query import SPELLED, indexed_words, spell
from roomlore.storage import schema
from roomlore.storage.engine import (
    Change,
    Connection,
    LockedRoom,
    Locks,
    Repository,
    Row,
    Statement,
    among,
    in_locked_room,
    in_room,
    named_room,
    numbers_in,
    texts_in,
)
from roomlore.storage.messages import NEWEST_OF_ALL, at_place, changes, dated_at
from roomlore.storage.rows import names_text, numbers_text, read_texts
from roomlore.storage.shapes import ROOM

_r, _m, _f, _w = schema.rooms, schema.messages, schema.features, schema.message_words

MAX_LENGTH = 1023
"""A longer message counts as one with this many words: an index may have the length in `_LENGTH_BITS`."""

_MAX_BYTES = 900_000
_BYTES_BESIDE = 24
_SURELY_FITS = 30_000
"""PostgreSQL stores less than 2**20 bytes of one message: its distinct words with a few bytes each, and two bytes for
each occurrence. This many characters always fit."""


class Spelled(NamedTuple):
    """A message's words in the form that its engine stores. `length`: the number of words, at most `MAX_LENGTH`."""

    arrival: int
    length: int
    words: str


def before(room_key: int) -> str:
    """Return the prefix of every word of the room."""
    return f"{room_key:x}x"


def spell_message(message: Message, room_key: int, dialect: Dialect, arrival: int) -> Spelled:
    words = _fitting(list(filter(None, map(SPELLED.__getitem__, indexed_words(message)))))
    text = " ".join(words) if dialect.name == "sqlite" else vector_text(words, before(room_key))
    return Spelled(arrival, min(len(words), MAX_LENGTH), text)


def _fitting(words: Sequence[str]) -> Sequence[str]:
    """Return the words without those at the end that do not fit in PostgreSQL."""
    if sum(map(len, words)) <= _SURELY_FITS:
        return words
    left, kept = _MAX_BYTES, set()
    for word, count in Counter(words).items():
        left -= len(word.encode()) + _BYTES_BESIDE + 2 * min(count, MAX_COUNT)
        if left >= 0:
            kept.add(word)
    return [word for word in words if word in kept]


def vector_text(words: Iterable[str], prefix: str) -> str:
    """Return the words as a tsvector's text: each with as many positions as it has occurrences."""
    return " ".join([f"'{prefix}{word}':{_PLACES[min(count, MAX_COUNT)]}" for word, count in Counter(words).items()])


_PLACES = ["", *(",".join(map(str, range(1, count + 1))) for count in range(1, MAX_COUNT + 1))]


_LENGTH_BITS, _ARRIVAL_BITS = 10, 28
_BITS, _ARRIVALS = _LENGTH_BITS + _ARRIVAL_BITS, (1 << _ARRIVAL_BITS) - 1
_KEY_BITS = 63 - _BITS
"""Of the number of a message in the index of a SQLite database that `migrations.smaller_rows` left as it was. There are
the key of the room, the arrival and the length in it, elsewhere only the arrival."""


def _added() -> Any:
    """Insert a row of the next revision of its room."""
    given = _given("room_key", "arrival", "tenant", "length", "words", "pending")
    next_revision = select(_r.c.revision + literal_column("1")).where(_r.c.room_key == given["room_key"])
    return insert(_w).values({**given, "changed": next_revision.scalar_subquery()})


def _given(*names: str) -> dict[str, Any]:
    return {name: bindparam(name, type_=_w.c[name].type) for name in names}


def _put() -> Any:
    given = upsert(_w).values(_given("room_key", "arrival", "tenant", "length", "changed", "words"))
    changing = {name: given.excluded[name] for name in ("length", "changed", "words")}
    return given.on_conflict_do_update(index_elements=[_w.c.room_key, _w.c.arrival], set_=changing)


_ADD = Statement(_added)
_PUT = Statement(_put)
_CLEAR = Statement(
    lambda: (
        update(_w)
        .where(in_locked_room(_w), among(_w.c.arrival, "arrivals"))
        .values(length=0, changed=bindparam("revision"), words="")
    )
)
_TOUCH = Statement(
    lambda: update(_w).where(in_locked_room(_w), among(_w.c.arrival, "arrivals")).values(changed=bindparam("revision"))
)


class WordIndex:
    """The words of messages in a unit of work that has locked their rooms."""

    def __init__(self, connection: Connection) -> None:
        self._sql = connection

    def spell(self, room: LockedRoom, messages: Sequence[StoredMessage]) -> list[Spelled]:
        """Return the argument of `add` and `put`. Uses only the processor."""
        return [spell_message(message, room.key, self._sql.dialect, message.arrival) for message in messages]

    def added(self, room: LockedRoom, spelled: Sequence[Spelled], *, pending: bool) -> Change:
        """Return the change that stores the words of messages that follow all others of the room, before its revision
        is raised. `pending`: they are indexed later."""
        if self._sql.dialect.name == "sqlite":
            _check_number(room, spelled[-1].arrival)
        key, tenant = room.key, room.tenant
        return _ADD, [(key, row.arrival, tenant, row.length, key, row.words, pending) for row in spelled]

    async def put(self, room: LockedRoom, spelled: Sequence[Spelled], *, revision: int) -> None:
        """Replace the words of indexed messages."""
        await self._sql.many(_PUT, _rows(room, spelled, revision))

    async def clear(self, room: LockedRoom, arrivals: Sequence[int], *, revision: int) -> None:
        """Remove the words of these messages from the index."""
        await self._sql.fetch(_CLEAR, arrivals=numbers_text(arrivals), revision=revision, **_params(room))

    async def touch(self, room: LockedRoom, arrivals: Sequence[int], *, revision: int) -> None:
        """Record that other data of these messages changed."""
        if arrivals:
            await self._sql.fetch(_TOUCH, arrivals=numbers_text(arrivals), revision=revision, **_params(room))


class WithWords(Repository):
    """A repository that keeps the word index in step with the messages."""

    def __init__(self, connection: Connection, locks: Locks, tenant: str | None) -> None:
        super().__init__(connection, locks, tenant)
        self._index = WordIndex(connection)


def _check_number(room: LockedRoom, arrival: int) -> None:
    if room.key >> _KEY_BITS or arrival >> _ARRIVAL_BITS:
        raise InvalidInput("sqlite_index_full", rooms=f"{2**_KEY_BITS:,}", messages=f"{2**_ARRIVAL_BITS:,}")


def _rows(room: LockedRoom, spelled: Sequence[Spelled], revision: int) -> list[tuple[Any, ...]]:
    """Return rows of `_PUT`."""
    tenant = room.tenant
    return [(room.key, row.arrival, tenant, row.length, revision, row.words) for row in spelled]


def _params(room: LockedRoom) -> dict[str, Any]:
    return {"room_key": room.key, "tenant": room.tenant}


_ROLE_CODES = {role.value: code for code, role in enumerate(ROLES)}
_PROBABILITY_UNIT = 10**9
"""Probabilities are read as whole numbers, multiplied by this: each engine formats fractions in its own way."""


_IN_THIS_THREAD_FROM = 2_000
"""Columns with this many characters are parsed on another thread, so that the event loop is not blocked."""

_ABOUT_CHARACTERS = 20
"""Reading a changed message takes as long as so many characters of columns."""
_FACT_COLUMNS = 12
"""Of a changed message."""

_words = bindparam("words", type_=Text)


def _in_fts5() -> Select[Any]:
    """Select each word's index in the list and the messages with it, repeated for each occurrence; last in the first
    row, what `_pending` does.

    The terms are computed first: SQLite evaluates a condition on a virtual table for each row.
    """
    listed = func.json_each(_words).table_valued("key", "value", name="listed")
    term = func.printf("%xx%s", _r.c.room_key, listed.c.value).label("term")
    columns = (listed.c.key, term, _r.c.room_key, _r.c.pending_from, *ROOM.columns)
    made = select(*columns).select_from(_r.outerjoin(listed, true())).where(named_room())
    queried_words = made.cte("asked").prefix_with("MATERIALIZED")
    index = table("message_index_terms", column("term"), column("doc"))
    postings = select(func.group_concat(index.c.doc)).where(index.c.term == queried_words.c.term).scalar_subquery()
    first = func.coalesce(queried_words.c.key, literal_column("0")) == literal_column("0")
    its = [queried_words.c[column.name] for column in ROOM.columns]
    return select(queried_words.c.key, postings, *its, case((first, _pending(queried_words.c))))


def _pending(room: Any) -> Any:
    """Select a list of the pending messages of the room, each with its words."""
    its = (_w.c.room_key == room.room_key, _w.c.tenant == room.tenant, _w.c.arrival >= room.pending_from, _w.c.pending)
    return select(texts_in(func.printf("%d %s", _w.c.arrival, _w.c.words))).where(*its).scalar_subquery()


def _in_tsvectors() -> Select[Any]:
    """Select each word's index in the list and 12 bytes for each message with it: its number and the word's rank."""
    call = func.roomlore_postings(_r.c.room_key, _r.c.tenant, _words)
    words_by_place = call.table_valued(column("place"), column("found", LargeBinary)).lateral("found")
    return (
        select(words_by_place.c.place, words_by_place.c.found, *ROOM.columns)
        .select_from(_r.outerjoin(words_by_place, true()))
        .where(named_room())
    )


_KIND_OF_ROW = (
    dated_at(_m),
    case(_ROLE_CODES, value=_m.c.role),
    case((_m.c.deleted_at.is_(None), 0), else_=1),
)
_ABOUT_IT = (
    case((_f.c.message_type == MessageType.QUESTION.value, 1), else_=0),
    func.coalesce(_f.c.parent, 0),
    cast(func.round(_f.c.parent_probability * _PROBABILITY_UNIT), BigInteger),
    _f.c.thread,
)


def _facts(*, words: bool) -> Select[Any]:
    """Select one row: a text for each column of each table. Every message has a row in all three tables, and scanning
    each once is faster than a join."""
    lengths = _gathered(_w, [_w.c.length], [_w.c.words] if words else [])
    messages = _gathered(_m, _KIND_OF_ROW, [_m.c.sender_id, _m.c.sender_name])
    features = _gathered(_f, _ABOUT_IT)
    return select(messages, features, lengths).select_from(messages.join(features, true()).join(lengths, true()))


def _gathered(of: Table, numbers: Sequence[ColumnElement[Any]], texts: Sequence[Any] = ()) -> Subquery:
    """Select arrivals, then these columns, of the room's rows in this table."""
    columns = [
        *(numbers_in(there) for there in (of.c.arrival, *numbers)),
        *(texts_in(cast(there, Text)) for there in texts),
    ]
    labelled = [column_there.label(f"column_{place}") for place, column_there in enumerate(columns)]
    return select(*labelled).where(in_room(of)).subquery(f"in_{of.name}")


def _facts_since() -> Select[Any]:
    """Select a row for each message that was written or changed after a revision, most often a few new ones."""
    its = changes()
    joined = its.join(_m, at_place(_m, its)).join(_f, at_place(_f, its)).join(_w, at_place(_w, its))
    names = (_m.c.sender_id, _m.c.sender_name, cast(_w.c.words, Text))
    return select(_m.c.arrival, *_KIND_OF_ROW, *_ABOUT_IT, _w.c.length, *names).select_from(joined)


_IN_FTS5 = Statement(_in_fts5)
_IN_TSVECTORS = Statement(_in_tsvectors)
_LENGTHS = Statement(
    lambda: (
        select(_m.c.arrival, func.coalesce(_w.c.length, 0))
        .select_from(_m.outerjoin(_w, and_(_m.c.room_key == _w.c.room_key, _m.c.arrival == _w.c.arrival)))
        .where(in_locked_room(_m), _m.c.deleted_at.is_(None), among(_m.c.arrival, "arrivals"))
    )
)
_COUNT = Statement(
    lambda: (
        update(_r)
        .where(in_locked_room(_r))
        .values(revision=_r.c.revision + 1, words=_r.c.words + bindparam("more"))
        .returning(_r.c.revision)
    )
)
_FACTS = Statement(lambda: _facts(words=False))
_FACTS_WITH_WORDS = Statement(lambda: _facts(words=True))
_FACTS_SINCE = Statement(_facts_since)


class WordReading(WithWords):
    """A part of `Messages`: the words of a room."""

    async def look_up(self, *, room_id: str, words: Sequence[str]) -> Postings | None:
        """Return the positions of each of these distinct words in the room; None if there is no such room. One round
        trip, whose cost does not grow with other rooms."""
        fts5 = self._sql.dialect.name == "sqlite"
        rows = await self._sql.fetch(
            _IN_FTS5 if fts5 else _IN_TSVECTORS,
            tenant=self._tenant,
            room_id=room_id,
            words=names_text([spell(word) for word in words]),
        )
        if not rows:
            return None
        room, records_by_place = ROOM.read(rows[0][2:]), {row[0]: row[1] for row in rows if row[1]}
        if fts5:
            _add_pending(records_by_place, [spell(word) for word in words], read_texts(rows[0][-1]))
        if not records_by_place:
            return no_postings(room, words)
        per_word = [records_by_place.get(place) for place in range(len(words))]
        arrivals, counts, ends = _counted(per_word) if fts5 else _ranked(per_word)
        return Postings(room=room, words=tuple(words), ends=ends, arrivals=arrivals, counts=counts)

    async def facts(self, *, room_id: str, since: int) -> FactRows:
        """Return the messages written after the room's revision `since` (0: all), deleted ones only if `since` is above
        0; empty if there is no such room. Their words are only told if `since` is above 0."""
        return await self._facts(room_id, since, _FACTS)

    async def facts_with_words(self, *, room_id: str, since: int) -> FactRows:
        """Return what `facts` does, with the words of all messages."""
        return await self._facts(room_id, since, _FACTS_WITH_WORDS)

    async def _facts(self, room_id: str, since: int, of_all: Statement) -> FactRows:
        here = {"tenant": self._tenant, "room_id": room_id}
        if since > 0:
            rows = await self._sql.fetch(_FACTS_SINCE, revision=since, count=NEWEST_OF_ALL, **here)
            size, read = _ABOUT_CHARACTERS * len(rows), partial(_changed_facts, rows)
        else:
            (row,) = await self._sql.fetch(of_all, **here)
            size, read = len(row[0] or ""), partial(_all_facts, row)
        return read() if size < _IN_THIS_THREAD_FROM else await asyncio.to_thread(read)

    async def reword(self, *, room_id: str, messages: Sequence[StoredMessage]) -> None:
        """Index these messages anew, in place of their earlier entries, and raise the room's revision. Requires the
        room's lock. Deleted messages are ignored."""
        room = self._locks.held(self._tenant, room_id)
        here = {"room_key": room.key, "tenant": self._tenant}
        named = numbers_text([message.arrival for message in messages])
        lengths = {row[0]: row[1] for row in await self._sql.fetch(_LENGTHS, arrivals=named, **here)}
        there = [message for message in messages if message.arrival in lengths]
        if there:
            spelled = await asyncio.to_thread(self._index.spell, room, there)
            more = sum(row.length for row in spelled) - sum(lengths.values())
            rows = await self._sql.fetch(_COUNT, more=more, **here)
            await self._index.put(room, spelled, revision=rows[0][0])


def _add_pending(by_place: dict[int, str], words: Sequence[str], pending: Sequence[str]) -> None:
    """Add pending messages to the lists by the places of the words."""
    places = {word: place for place, word in enumerate(words)}
    found: dict[int, list[int]] = {}
    for arrival, *its in (text.split(" ") for text in pending):
        for word in filter(None, its):
            if (place := places.get(word)) is not None:
                found.setdefault(place, []).append(int(arrival))
    for place, arrivals in found.items():
        indexed = by_place.get(place)
        # The version before may have indexed later ones.
        if indexed and _arrival(indexed.rpartition(",")[2]) > min(arrivals):
            arrivals += map(_arrival, indexed.split(","))
            indexed = None
        listed = ",".join(map(str, sorted(arrivals)))
        by_place[place] = f"{indexed},{listed}" if indexed else listed


def _arrival(number: str) -> int:
    """Return the arrival of the message with this number in the index."""
    return int(number) >> _LENGTH_BITS & _ARRIVALS if int(number) >> _BITS else int(number)


def _counted(per_word: Sequence[str | None]) -> tuple[Ints, Ints, Ints]:
    """Return arrivals, counts and ends from lists in which a message is repeated for each occurrence of the word."""
    every = np.fromstring(",".join(filter(None, per_word)), np.int64, sep=",")
    if every.max() >> _BITS:
        every = np.where(every >> _BITS, every >> _LENGTH_BITS & _ARRIVALS, every)
    ends = np.cumsum([numbers.count(",") + 1 if numbers else 0 for numbers in per_word])
    begins = np.ones(len(every) + 1, np.bool_)
    np.not_equal(every[1:], every[:-1], out=begins[1:-1])
    begins[ends] = True
    firsts = np.flatnonzero(begins)
    counts = np.minimum(firsts[1:] - firsts[:-1], MAX_COUNT)
    return every[firsts[:-1]], counts, np.searchsorted(firsts, ends)


def _ranked(per_word: Sequence[bytes | None]) -> tuple[Ints, Ints, Ints]:
    """Return arrivals, counts and ends from unordered records of an arrival, the length beside it, and a rank."""
    records = np.frombuffer(b"".join(filter(None, per_word)), _RECORD)
    sizes = [len(packed or b"") // _RECORD.itemsize for packed in per_word]
    order = np.lexsort((records["number"], np.repeat(np.arange(len(sizes)), sizes)))
    counts = 1 + np.searchsorted(_BETWEEN_RANKS, records["rank"][order])
    return records["number"][order].astype(np.int64) >> _LENGTH_BITS, counts, np.cumsum(sizes)


_RECORD = np.dtype([("number", ">i8"), ("rank", ">f4")])
_RANKS = np.cumsum(1 / np.arange(1, MAX_COUNT + 1) ** 2) / 1.64493406685
"""The `ts_rank` of a single word that occurs once, twice, ... in a message, with all weights 1. A lower rank counts as
once."""

_BETWEEN_RANKS = (_RANKS[1:] + _RANKS[:-1]) / 2


def _changed_facts(rows: Sequence[Row]) -> FactRows:
    """Return facts in order of arrival, with the deleted ones."""
    columns: list[Sequence[Any]] = list(zip(*sorted(rows, key=itemgetter(0)), strict=True)) or [()] * _FACT_COLUMNS
    *numbers, senders, names, words = columns
    return _fact_rows([np.array(column, np.int64) for column in numbers], senders, names, list(map(words_in, words)))


def _all_facts(row: Row) -> FactRows:
    """Return facts in order of arrival, independent of the order of each table's rows, without the deleted ones."""
    order, (arrivals, sent_at, roles, deleted) = _in_order(row[:4])
    _, (_, *about) = _in_order(row[6:11])
    words_order, (_, lengths) = _in_order(row[11:13])
    kept = np.flatnonzero(deleted == 0)
    numbers = [column[kept] for column in (arrivals, sent_at, roles, deleted, *about, lengths)]
    senders, names = (_at(order[kept], read_texts(text)) for text in row[4:6])
    words = [list(map(words_in, _at(words_order[kept], read_texts(text)))) for text in row[13:]]
    return _fact_rows(numbers, senders, names, words[0] if words else None)


def _at(places: Ints, texts: Sequence[str]) -> list[str]:
    return [texts[place] for place in places.tolist()]


def _fact_rows(
    numbers: Sequence[Ints], senders: Sequence[str], names: Sequence[str], words: Sequence[str] | None
) -> FactRows:
    arrivals, sent_at, roles, deleted, questions, parents, odds, threads, lengths = numbers
    return FactRows(
        arrivals=arrivals,
        sent_at=sent_at,
        sender_ids=senders,
        sender_names=names,
        roles=roles,
        lengths=lengths,
        questions=questions == 1,
        parents=parents,
        parent_odds=odds / _PROBABILITY_UNIT,
        threads=threads,
        deleted=deleted == 1,
        words=words,
    )


def words_in(words: str) -> str:
    """Return a message's words without the form of a tsvector, in which each has as many places as it occurs."""
    if not words.startswith("'"):
        return words
    terms = (term[1:].rpartition("':") for term in words.split(" "))
    return " ".join(" ".join([word.partition("x")[2]] * (1 + places.count(","))) for word, _, places in terms)


def _in_order(texts: Sequence[str | None]) -> tuple[Ints, list[Ints]]:
    """Return the order of the first column, and all columns of numbers in that order."""
    columns = [np.fromstring(text or "", np.int64, sep=",") for text in texts]
    order = np.argsort(columns[0], kind="stable")
    return order, [column[order] for column in columns]
