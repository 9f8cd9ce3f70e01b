"""Reading along replies and threads."""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Integer,
    Select,
    and_,
    bindparam,
    func,
    literal,
    or_,
    select,
    union_all,
)

from roomlore.adapters.sql import schema
from roomlore.adapters.sql.drivers import Connection
from roomlore.adapters.sql.messages import NEWEST_OF_ALL, entries, to_entries, visible
from roomlore.adapters.sql.rows import MESSAGE_COLUMNS, to_entry, to_message
from roomlore.adapters.sql.statements import Statement, among, in_room
from roomlore.adapters.sql.targets import NEWEST_TARGET, TARGET, to_target
from roomlore.adapters.sql.values import escape, from_micros, names_text, numbers_text, unescape
from roomlore.core.models import Entry, Exchange, LinkKind, Target, Thread

_m, _f = schema.messages, schema.features
_words = schema.keyword_counts
_WIDEST = 1000
"""Replies below one message that are looked at, at most: the first levels of a very popular one."""


def _ancestors() -> Any:
    """(reply_to, hops) of the message itself and of those above it."""
    start = select(
        bindparam("reply_to", type_=_m.c.reply_to.type).label("reply_to"), literal(0, BigInteger).label("hops")
    )
    up = start.cte("up", recursive=True)
    above = select(_m.c.reply_to, up.c.hops + 1).where(
        visible, _m.c.message_id == up.c.reply_to, up.c.hops + 1 < bindparam("hops")
    )
    return up.union(above)


def _descendants() -> Any:
    """(message_id, arrival, hops) of the message itself and of those below it."""
    start = select(
        bindparam("own_id", type_=_m.c.message_id.type).label("message_id"),
        bindparam("own", type_=BigInteger).label("arrival"),
        literal(0, BigInteger).label("hops"),
    )
    down = start.cte("down", recursive=True)
    below = select(_m.c.message_id, _m.c.arrival, down.c.hops + 1).where(
        visible, _m.c.reply_to == down.c.message_id, down.c.hops < bindparam("hops")
    )
    return down.union(below)


def _chain() -> Select[Any]:
    """(arrival, hops): how far from the message each one on its chain is; the same root counts as just beyond."""
    up, down = _ancestors(), _descendants()
    found = union_all(
        select(_m.c.arrival, up.c.hops + 1).where(visible, _m.c.message_id == up.c.reply_to),
        select(_m.c.arrival, up.c.hops + 2).where(
            visible, _m.c.reply_to == up.c.reply_to, up.c.hops + 2 <= bindparam("hops")
        ),
        select(select(down.c.arrival, down.c.hops).limit(_WIDEST).subquery()),
        _same_root(_m.c.arrival < bindparam("own"), _m.c.arrival.desc()),
        _same_root(_m.c.arrival > bindparam("own"), _m.c.arrival),
        select(_m.c.arrival, bindparam("hops", type_=BigInteger) + 1).where(
            visible, _m.c.message_id == bindparam("root")
        ),
    ).subquery("found")
    arrival, hops = found.c[0], found.c[1]
    nearest = func.min(hops)
    answered = select(_m.c.arrival).where(visible, _m.c.message_id == bindparam("reply_to"))
    return (
        select(arrival.label("arrival"))
        .where(arrival != bindparam("own"), or_(arrival < bindparam("before"), arrival.in_(answered)))
        .group_by(arrival)
        .order_by(nearest, func.abs(arrival - bindparam("own")))
        .limit(bindparam("count"))
    )


def _same_root(side: ColumnElement[bool], nearest: ColumnElement[Any]) -> Select[Any]:
    chosen = select(_m.c.arrival, (bindparam("hops", type_=BigInteger) + 1).label("hops"))
    nearby = chosen.where(visible, _m.c.root_id == bindparam("root"), side).order_by(nearest).limit(bindparam("count"))
    return select(nearby.subquery())


def _exchanged() -> Select[Any]:
    """Rows of (asked arrival, 1 where the message answers it, the link's probability, the message)."""
    likely = _f.c.parent_probability >= bindparam("least", type_=_f.c.parent_probability.type)
    links = select(_f.c.room_key, _f.c.tenant).where(in_room(_f), likely)
    up = links.add_columns(
        _f.c.arrival.label("asked"),
        literal(0, Integer).label("below"),
        _f.c.parent_probability,
        _f.c.parent.label("at"),
    ).where(among(_f.c.arrival, "arrivals"))
    down = links.add_columns(_f.c.parent, literal(1, Integer), _f.c.parent_probability, _f.c.arrival).where(
        among(_f.c.parent, "arrivals")
    )
    found = union_all(up, down).subquery("found")
    beside = and_(_m.c.room_key == found.c.room_key, _m.c.arrival == found.c.at, _m.c.tenant == found.c.tenant)
    rank = func.row_number().over(
        partition_by=(found.c.asked, found.c.below), order_by=(found.c.parent_probability.desc(), found.c.at)
    )
    messages = [column.label(f"column_{place}") for place, column in enumerate(MESSAGE_COLUMNS)]
    ranked = (
        select(found.c.asked, found.c.below, found.c.parent_probability, *messages, rank.label("rank"))
        .select_from(found.join(_m, beside))
        .where(_m.c.deleted_at.is_(None))
        .subquery("ranked")
    )
    return (
        select(*list(ranked.c)[:-1])
        .where(ranked.c.rank <= bindparam("count"))
        .order_by(ranked.c.asked, ranked.c.below, ranked.c.rank)
    )


def _grouped() -> Select[Any]:
    beside = and_(_f.c.room_key == _m.c.room_key, _f.c.arrival == _m.c.arrival)
    return (
        select(
            _f.c.thread,
            func.count(),
            func.min(_m.c.sent_at),
            func.max(_m.c.sent_at),
            func.min(_m.c.arrival),
        )
        .select_from(_f.join(_m, beside))
        .where(in_room(_f), visible, _f.c.thread > bindparam("after"))
        .group_by(_f.c.thread)
        .order_by(_f.c.thread)
        .limit(bindparam("count"))
    )


def _senders() -> Select[Any]:
    beside = and_(_f.c.room_key == _m.c.room_key, _f.c.arrival == _m.c.arrival)
    return (
        select(_f.c.thread, _m.c.sender_id)
        .select_from(_f.join(_m, beside))
        .where(in_room(_f), visible, among(_f.c.thread, "threads"))
        .group_by(_f.c.thread, _m.c.sender_id)
        .order_by(_f.c.thread, func.min(_m.c.arrival))
    )


_RELATED = Statement(lambda: entries(_m.c.arrival.in_(_chain())))
_EXCHANGED = Statement(_exchanged)
_WAITING = Statement(lambda: entries(among(_m.c.reply_to, "ids"), _f.c.link_kind != LinkKind.PLATFORM.value))
_GROUPED = Statement(_grouped)
_SENDERS = Statement(_senders)
_FIRST = Statement(
    lambda: select(_m.c.arrival, _m.c.message_id, _m.c.text).where(in_room(_m), among(_m.c.arrival, "arrivals"))
)
_MEMBERS = Statement(
    lambda: (
        entries(_f.c.room_key == _m.c.room_key, _f.c.thread == bindparam("thread"))
        .order_by(_f.c.arrival.desc())
        .limit(bindparam("count"))
    )
)
_COUNTS = Statement(
    lambda: select(_words.c.keyword, _words.c.messages).where(
        in_room(_words), among(_words.c.keyword, "keywords"), _words.c.messages > 0
    )
)


class SqlThreads:
    """The port `Threads`."""

    def __init__(self, connection: Connection) -> None:
        self._sql = connection

    async def _rows(self, statement: Statement, tenant: str, room_id: str, **params: Any) -> Sequence[Sequence[Any]]:
        return await self._sql.fetch(statement, tenant=escape(tenant), room_id=escape(room_id), **params)

    async def target(self, *, tenant: str, room_id: str, message_id: str | None, window: int) -> Target | None:
        if message_id is None:
            rows = await self._rows(NEWEST_TARGET, tenant, room_id, window=window)
        else:
            rows = await self._rows(TARGET, tenant, room_id, window=window, message_id=escape(message_id))
        return to_target(room_id, rows[0]) if rows else None

    async def related(
        self, *, tenant: str, room_id: str, entry: Entry, hops: int, limit: int, before: int | None = None
    ) -> list[Entry]:
        message = entry.message
        rows = await self._rows(
            _RELATED,
            tenant,
            room_id,
            own=message.arrival,
            own_id=escape(message.id),
            reply_to=None if message.reply_to is None else escape(message.reply_to),
            root=escape(message.root_id or message.id),
            hops=hops,
            before=NEWEST_OF_ALL if before is None else before,
            count=limit,
        )
        return to_entries(room_id, rows)

    async def waiting(self, *, tenant: str, room_id: str, message_ids: Sequence[str]) -> list[Entry]:
        if not message_ids:
            return []
        rows = await self._rows(_WAITING, tenant, room_id, ids=names_text(message_ids))
        return to_entries(room_id, rows)

    async def page(self, *, tenant: str, room_id: str, after: int, limit: int) -> list[tuple[int, Thread]]:
        groups = await self._rows(_GROUPED, tenant, room_id, after=after, count=limit)
        if not groups:
            return []
        threads = [group[0] for group in groups]
        senders: dict[int, list[str]] = {thread: [] for thread in threads}
        for thread, sender in await self._rows(_SENDERS, tenant, room_id, threads=numbers_text(threads)):
            senders[thread].append(unescape(sender))
        firsts = await self._rows(
            _FIRST, tenant, room_id, arrivals=numbers_text(threads + [group[4] for group in groups])
        )
        texts = {arrival: (unescape(message_id), unescape(text)) for arrival, message_id, text in firsts}
        return [(group[0], _to_thread(room_id, group, senders[group[0]], texts)) for group in groups]

    async def members(self, *, tenant: str, room_id: str, thread: int, limit: int) -> list[Entry]:
        rows = await self._rows(_MEMBERS, tenant, room_id, thread=thread, count=limit)
        return [to_entry(room_id, row) for row in reversed(rows)]

    async def exchanges(
        self, *, tenant: str, room_id: str, arrivals: Sequence[int], least: float, limit: int
    ) -> dict[int, Exchange]:
        if not arrivals:
            return {}
        rows = await self._rows(_EXCHANGED, tenant, room_id, arrivals=numbers_text(arrivals), least=least, count=limit)
        return {asked: _to_exchange(room_id, list(its)) for asked, its in groupby(rows, key=itemgetter(0))}

    async def keyword_counts(self, *, tenant: str, room_id: str, keywords: Sequence[str]) -> dict[str, int]:
        if not keywords:
            return {}
        rows = await self._rows(_COUNTS, tenant, room_id, keywords=names_text(keywords))
        return {unescape(keyword): count for keyword, count in rows}


def _to_exchange(room_id: str, rows: Sequence[Sequence[Any]]) -> Exchange:
    linked = [(bool(row[1]), (to_message(room_id, row[3:]), row[2])) for row in rows]
    above = [pair for below, pair in linked if not below]
    answered, odds = above[0] if above else (None, 0.0)
    return Exchange(
        answered=answered,
        answered_probability=odds,
        answers=tuple(pair for below, pair in linked if below),
    )


def _to_thread(room_id: str, group: Sequence[Any], senders: Sequence[str], texts: dict[int, tuple[str, str]]) -> Thread:
    thread, count, first_sent, last_sent, first_visible = group
    return Thread(
        thread_id=texts[thread][0],
        room_id=room_id,
        messages=count,
        senders=tuple(senders),
        first_text=texts[first_visible][1],
        first_sent_at=from_micros(first_sent),
        last_sent_at=from_micros(last_sent),
    )
