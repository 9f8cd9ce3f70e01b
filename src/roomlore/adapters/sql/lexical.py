"""Looking words up, and the facts that ranking asks of a room's messages."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import (
    BigInteger,
    ColumnElement,
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
    select,
    table,
    true,
    update,
)

from roomlore.adapters.sql import schema
from roomlore.adapters.sql.drivers import Connection, Row
from roomlore.adapters.sql.rooms import Locks
from roomlore.adapters.sql.rows import ROOM_COLUMNS, to_room
from roomlore.adapters.sql.spelling import MAX_COUNT, MAX_LENGTH, spell
from roomlore.adapters.sql.statements import Statement, among, in_locked_room, in_room, numbers_in, texts_in
from roomlore.adapters.sql.values import escape, names_text, numbers_text, unescape
from roomlore.adapters.sql.word_index import ARRIVAL_BITS, LENGTH_BITS, WordIndex
from roomlore.core.models import MessageType, StoredMessage
from roomlore.core.search import ROLES, FactRows, Ints, Postings, no_postings

_r, _m, _f, _w = schema.rooms, schema.messages, schema.features, schema.message_words
_ROLE_CODES = {role.value: code for code, role in enumerate(ROLES)}
_ODDS = 10**9
"""Probabilities travel as whole numbers, of so many in one: each engine writes fractions in its own way."""


_IN_THIS_THREAD_FROM = 2_000
"""Columns of so many characters are read on another thread, so that the loop breathes."""

_named = and_(_r.c.tenant == bindparam("tenant"), _r.c.room_id == bindparam("room_id"))
_words = bindparam("words", type_=Text)


def _in_fts5() -> Select[Any]:
    """Each word's place in the list and the numbers of the messages it stands in, as often as it does.

    The terms are made first: SQLite reckons a condition on a virtual table anew for each row it gives.
    """
    listed = func.json_each(_words).table_valued("key", "value", name="listed")
    term = func.printf("%xx%s", _r.c.room_key, listed.c.value).label("term")
    made = select(listed.c.key, term, *ROOM_COLUMNS).select_from(_r.outerjoin(listed, true())).where(_named)
    asked = made.cte("asked").prefix_with("MATERIALIZED")
    index = table("message_index_terms", column("term"), column("doc"))
    found = select(func.group_concat(index.c.doc)).where(index.c.term == asked.c.term).scalar_subquery()
    return select(asked.c.key, found, *[asked.c[column.name] for column in ROOM_COLUMNS])


def _in_tsvectors() -> Select[Any]:
    """Each word's place in the list and 12 bytes for each message it stands in: its number and the word's rank."""
    call = func.roomlore_postings(_r.c.room_key, _r.c.tenant, _words)
    found = call.table_valued(column("place"), column("found", LargeBinary)).lateral("found")
    return select(found.c.place, found.c.found, *ROOM_COLUMNS).select_from(_r.outerjoin(found, true())).where(_named)


def _facts(*, since: bool) -> Select[Any]:
    """One row: a text for each column of each table. Every message has a row in all three, and walking each of them
    once is quicker than joining them."""
    role = case(_ROLE_CODES, value=_m.c.role)
    deleted = case((_m.c.deleted_at.is_(None), 0), else_=1)
    question = case((_f.c.message_type == MessageType.QUESTION.value, 1), else_=0)
    odds = cast(func.round(_f.c.parent_probability * _ODDS), BigInteger)
    people = [texts_in(_m.c.sender_id), texts_in(_m.c.sender_name)]
    words = _gathered(_w, since, [_w.c.length])
    messages = _gathered(_m, since, [_m.c.sent_at, role, deleted], people)
    features = _gathered(_f, since, [question, func.coalesce(_f.c.parent, 0), odds, _f.c.thread])
    return select(words, messages, features).select_from(words.join(messages, true()).join(features, true()))


def _gathered(of: Table, since: bool, numbers: Sequence[ColumnElement[Any]], texts: Sequence[Any] = ()) -> Subquery:
    """Arrivals, then these columns, of the room's rows in this table."""
    columns = [*(numbers_in(one) for one in (of.c.arrival, *numbers)), *texts]
    labelled = [one.label(f"column_{place}") for place, one in enumerate(columns)]
    changed = select(_w.c.arrival).where(in_room(_w), _w.c.changed > bindparam("since")).correlate(None)
    chosen = [of.c.arrival.in_(changed)] if since else []
    return select(*labelled).where(in_room(of), *chosen).subquery(f"in_{of.name}")


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
_FACTS = Statement(lambda: _facts(since=False))
_FACTS_SINCE = Statement(lambda: _facts(since=True))


class SqlLexicalIndex:
    """The port `LexicalIndex`."""

    def __init__(self, connection: Connection, locks: Locks) -> None:
        self._sql = connection
        self._locks = locks
        self._index = WordIndex(connection)

    async def look_up(self, *, tenant: str, room_id: str, words: Sequence[str]) -> Postings | None:
        fts5 = self._sql.dialect.name == "sqlite"
        rows = await self._sql.fetch(
            _IN_FTS5 if fts5 else _IN_TSVECTORS,
            tenant=escape(tenant),
            room_id=escape(room_id),
            words=names_text([spell(word) for word in words]),
        )
        if not rows:
            return None
        room, found = to_room(rows[0][2:]), {row[0]: row[1] for row in rows if row[1]}
        if not found:
            return no_postings(room, words)
        per_word = [found.get(place) for place in range(len(words))]
        numbers, counts, ends = _counted(per_word) if fts5 else _ranked(per_word)
        return Postings(
            room=room,
            words=tuple(words),
            ends=ends,
            arrivals=numbers >> LENGTH_BITS & (1 << ARRIVAL_BITS) - 1,
            counts=counts,
            lengths=numbers & MAX_LENGTH,
        )

    async def facts(self, *, tenant: str, room_id: str, since: int) -> FactRows:
        here = {"tenant": escape(tenant), "room_id": escape(room_id)}
        if since > 0:
            rows = await self._sql.fetch(_FACTS_SINCE, since=since, **here)
        else:
            rows = await self._sql.fetch(_FACTS, **here)
        if len(rows[0][0] or "") < _IN_THIS_THREAD_FROM:
            return _to_facts(rows[0], with_deleted=since > 0)
        return await asyncio.to_thread(_to_facts, rows[0], with_deleted=since > 0)

    async def reword(self, *, tenant: str, room_id: str, messages: Sequence[StoredMessage]) -> None:
        """Raises the room's revision by one. Deleted messages are passed over."""
        room = self._locks.held(tenant, room_id)
        here = {"room_key": room.key, "tenant": escape(tenant)}
        named = numbers_text([message.arrival for message in messages])
        lengths = {row[0]: row[1] for row in await self._sql.fetch(_LENGTHS, arrivals=named, **here)}
        there = [message for message in messages if message.arrival in lengths]
        if there:
            spelled = await asyncio.to_thread(self._index.spell, room, there)
            more = sum(one.length for one in spelled) - sum(lengths.values())
            rows = await self._sql.fetch(_COUNT, more=more, **here)
            await self._index.put(room, spelled, revision=rows[0][0])


def _counted(per_word: Sequence[str | None]) -> tuple[Ints, Ints, Ints]:
    """Numbers, counts and ends from lists in which a message stands as often as the word does in it."""
    every = np.fromstring(",".join(filter(None, per_word)), np.int64, sep=",")
    ends = np.cumsum([numbers.count(",") + 1 if numbers else 0 for numbers in per_word])
    begins = np.ones(len(every), np.bool_)
    np.not_equal(every[1:], every[:-1], out=begins[1:])
    begins[ends[ends < len(every)]] = True
    firsts = np.flatnonzero(begins)
    counts = np.diff(firsts, append=len(every))
    return every[firsts], np.minimum(counts, MAX_COUNT), np.searchsorted(firsts, ends)


def _ranked(per_word: Sequence[bytes | None]) -> tuple[Ints, Ints, Ints]:
    """Numbers, counts and ends from records of a number and a rank, in no order."""
    records = np.frombuffer(b"".join(filter(None, per_word)), _RECORD)
    sizes = [len(found or b"") // _RECORD.itemsize for found in per_word]
    order = np.lexsort((records["number"], np.repeat(np.arange(len(sizes)), sizes)))
    counts = 1 + np.searchsorted(_BETWEEN_RANKS, records["rank"][order])
    return records["number"][order].astype(np.int64), counts, np.cumsum(sizes)


_RECORD = np.dtype([("number", ">i8"), ("rank", ">f4")])
_RANKS = np.cumsum(1 / np.arange(1, MAX_COUNT + 1) ** 2) / 1.64493406685
"""What `ts_rank` gives for a single word that stands once, twice, ... in a message, all weights being 1. Less is
once."""

_BETWEEN_RANKS = (_RANKS[1:] + _RANKS[:-1]) / 2


def _to_facts(row: Row, *, with_deleted: bool) -> FactRows:
    """In order of arrival, whatever order each table gave its rows in."""
    _, (arrivals, lengths) = _in_order(row[:2])
    order, (_, sent_at, roles, deleted) = _in_order(row[2:6])
    _, (_, questions, parents, odds, threads) = _in_order(row[8:])
    kept = np.flatnonzero(with_deleted | (deleted == 0))
    sender_ids, names = _texts(row[6]), _texts(row[7])
    places = order[kept].tolist()
    return FactRows(
        arrivals=arrivals[kept],
        sent_at=sent_at[kept],
        sender_ids=[sender_ids[place] for place in places],
        sender_names=[names[place] for place in places],
        roles=roles[kept],
        lengths=lengths[kept],
        questions=questions[kept] == 1,
        parents=parents[kept],
        parent_odds=odds[kept] / _ODDS,
        threads=threads[kept],
        deleted=deleted[kept] == 1,
    )


def _in_order(texts: Sequence[str | None]) -> tuple[Ints, list[Ints]]:
    """Columns of numbers by the first of them, and where their rows stood before."""
    columns = [np.fromstring(text or "", np.int64, sep=",") for text in texts]
    order = np.argsort(columns[0], kind="stable")
    return order, [column[order] for column in columns]


def _texts(text: str | None) -> list[str]:
    return [unescape(one) for one in json.loads(text)] if text else []
