"""Messages by how they hang together: chains of replies, and threads."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Integer,
    Select,
    and_,
    bindparam,
    case,
    exists,
    func,
    literal,
    or_,
    select,
    union_all,
)

from roomlore.core.linking.corrections import Threads
from roomlore.core.models import Entry, LinkKind, Room, Target, Thread
from roomlore.storage import schema
from roomlore.storage.engine import (
    Statement,
    among,
    in_room,
    named_room,
    numbers_in,
)
from roomlore.storage.messages import (
    NEWEST_OF_ALL,
    NEWEST_TARGET,
    TARGET,
    InRoom,
    dated_at,
    entries,
    newest_of,
    to_entries,
    to_target,
    visible,
)
from roomlore.storage.pending import counts_in, pending_keywords
from roomlore.storage.rows import (
    from_micros,
    names_text,
    numbers_text,
    to_micros,
)
from roomlore.storage.shapes import ENTRY
from roomlore.storage.values import MOST_BETWEEN

_m, _f, _words, _rooms = schema.messages, schema.features, schema.keyword_counts, schema.rooms
_before = _m.c.arrival < bindparam("before")
_after = _m.c.arrival > bindparam("after")
_WIDEST = 1000
"""The most replies below one message that are read: the first levels of a very popular one."""


def _ancestors() -> Any:
    """Select (reply_to, hops) of the message and of those above it."""
    start = select(
        bindparam("reply_to", type_=_m.c.reply_to.type).label("reply_to"), literal(0, BigInteger).label("hops")
    )
    up = start.cte("up", recursive=True)
    above = select(_m.c.reply_to, up.c.hops + 1).where(
        visible, _m.c.message_id == up.c.reply_to, up.c.hops + 1 < bindparam("hops")
    )
    return up.union(above)


def _descendants() -> Any:
    """Select (message_id, arrival, hops) of the message and of those below it."""
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
    """Select (arrival, hops) of the messages on its chain; a message with the same root and no path counts as one hop
    beyond."""
    up, down = _ancestors(), _descendants()
    chain = union_all(
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
    arrival, hops = chain.c[0], chain.c[1]
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


def _of_root() -> Select[Any]:
    """Select (0, arrival) of the root and (1, arrival) of the newest messages of its thread."""
    root = select(literal(0, Integer).label("part"), _m.c.arrival.label("arrival")).where(
        visible, _m.c.message_id == bindparam("root")
    )
    newest = (
        select(literal(1, Integer), _m.c.arrival)
        .where(visible, _m.c.root_id == bindparam("root"), _m.c.arrival < bindparam("before"))
        .order_by(_m.c.arrival.desc())
        .limit(bindparam("count"))
        .subquery()
    )
    newest_of_root = union_all(root, select(newest)).subquery()
    return select(newest_of_root.c.part, newest_of_root.c.arrival).order_by(
        newest_of_root.c.part, newest_of_root.c.arrival.desc()
    )


def _grouped() -> Select[Any]:
    beside = and_(_f.c.room_key == _m.c.room_key, _f.c.arrival == _m.c.arrival)
    return (
        select(
            _f.c.thread,
            func.count(),
            func.min(dated_at(_m)),
            func.max(dated_at(_m)),
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


def _newest_of_threads() -> Select[Any]:
    rank = func.row_number().over(partition_by=_f.c.thread, order_by=_f.c.arrival.desc())
    beside = and_(_f.c.room_key == _m.c.room_key, _f.c.arrival == _m.c.arrival)
    joined = select(_f.c.arrival, rank.label("rank")).select_from(_f.join(_m, beside))
    ranked = joined.where(in_room(_f), visible, among(_f.c.thread, "threads")).subquery("ranked")
    return select(ranked.c.arrival).where(ranked.c.rank <= bindparam("each"))


_RELATED = Statement(lambda: entries(_m.c.arrival.in_(_chain())))
_OF_ROOT = Statement(_of_root)
_OF_TOPIC = Statement(lambda: newest_of(entries(_m.c.topic_id == bindparam("topic"), _before)))
_IN_NO_TOPIC = Statement(lambda: newest_of(entries(_m.c.topic_id.is_(None), _before, _after)))
_UNCERTAIN = [_f.c.link_kind != kind.value for kind in (LinkKind.PLATFORM, LinkKind.CORRECTED)]
_WAITING = Statement(lambda: entries(among(_m.c.reply_to, "ids"), *_UNCERTAIN))
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
_PLATFORM_REPLIES = Statement(
    lambda: (
        select(_f.c.arrival)
        .select_from(_f.join(_m, and_(_f.c.room_key == _m.c.room_key, _f.c.arrival == _m.c.arrival)))
        .where(in_room(_f), visible, _f.c.link_kind == LinkKind.PLATFORM.value)
        .order_by(_f.c.arrival)
    )
)
_MEMBERS_OF = Statement(lambda: entries(_m.c.arrival.in_(_newest_of_threads())))


def _counts(counted: Sequence[ColumnElement[bool]], pending: Sequence[ColumnElement[bool]] = ()) -> Any:
    """Select keywords that are counted, and those of pending messages, each under its conditions."""
    counts = select(_words.c.keyword, _words.c.messages).where(in_room(_words), _words.c.messages > 0, *counted)
    return counts.union_all(pending_keywords().where(*pending))


def _at_revision() -> ColumnElement[bool]:
    return exists().where(named_room(), *(_rooms.c[name] == bindparam(name) for name in ("revision", "created_at")))


_COUNTS = Statement(lambda: _counts([among(_words.c.keyword, "keywords")]))
_EVERY_COUNT = Statement(lambda: _counts([_at_revision()], [_at_revision()]))


def _answered_through() -> Select[Any]:
    """Select what a message answers, what that answers, and so on. UNION ends a cycle of replies."""
    linked = (_f.c.link_kind != LinkKind.NEW.value) & _f.c.parent.is_not(None)
    start = select(_f.c.parent.label("arrival")).where(in_room(_f), _f.c.arrival == bindparam("own"), linked)
    above = start.cte("above", recursive=True)
    further = select(_f.c.parent).where(in_room(_f), _f.c.arrival == above.c.arrival, linked)
    through = above.union(further)
    return select(through.c.arrival).order_by(through.c.arrival)


def _threads_after() -> Select[Any]:
    """Select one row: a text with commas for each column."""
    answered = case((_f.c.link_kind == LinkKind.NEW.value, 0), else_=func.coalesce(_f.c.parent, 0)).label("answered")
    rows = select(_f.c.arrival, answered, _f.c.thread).where(in_room(_f), _f.c.arrival > bindparam("after"))
    page = rows.order_by(_f.c.arrival).limit(bindparam("count")).subquery().c
    columns: list[Any] = [numbers_in(page.arrival), numbers_in(page.answered), numbers_in(page.thread)]
    return select(*columns)


_ANSWERED_THROUGH = Statement(_answered_through)
_THREADS_AFTER = Statement(_threads_after)


class ThreadReading(InRoom):
    """A part of `Messages`: replies, threads and keywords."""

    async def target(self, *, room_id: str, message_id: str | None, window: int) -> Target | None:
        """Return the input for choosing a context, in one round trip; None if there is no such message.

        It holds the room, the entry (if `message_id` is None the newest one with role user), and the number of messages
        and tokens of the newest `window` messages before it.
        """
        if message_id is None:
            rows = await self._rows(NEWEST_TARGET, room_id, window=window)
        else:
            rows = await self._rows(TARGET, room_id, window=window, message_id=message_id)
        return to_target(room_id, rows[0]) if rows else None

    async def related(
        self, *, room_id: str, entry: Entry, hops: int, limit: int, before: int | None = None
    ) -> list[Entry]:
        """Return up to `limit` entries on the entry's platform reply chain, the nearest if there are more.

        These are ancestors and descendants by `reply_to` up to `hops` away, siblings along it, and messages with the
        same root; only those with arrival < `before`, and the message that the entry itself replies to.
        """
        message = entry.message
        rows = await self._rows(
            _RELATED,
            room_id,
            own=message.arrival,
            own_id=message.id,
            reply_to=None if message.reply_to is None else message.reply_to,
            root=message.root_id or message.id,
            hops=hops,
            before=NEWEST_OF_ALL if before is None else before,
            count=limit,
        )
        return to_entries(room_id, rows)

    async def of_root(self, *, room_id: str, root_id: str, limit: int, before: int) -> list[int]:
        """Return the arrival of the root of a platform thread, if it is there, and then those of its newest `limit`
        messages with arrival < `before`, the newest first."""
        own = {"root": root_id, "before": before, "count": limit}
        return [arrival for _, arrival in await self._rows(_OF_ROOT, room_id, **own)]

    async def of_topic(self, *, room_id: str, topic_id: str | None, limit: int, before: int) -> list[Entry]:
        """Return the newest `limit` entries of a topic with arrival < `before`, in order of arrival. None: those in no
        topic, among the last `MOST_BETWEEN` arrivals."""
        own = {"after": before - MOST_BETWEEN - 1} if topic_id is None else {"topic": topic_id}
        statement = _IN_NO_TOPIC if topic_id is None else _OF_TOPIC
        rows = await self._rows(statement, room_id, before=before, count=limit, **own)
        return [ENTRY.read(row, room_id) for row in reversed(rows)]

    async def waiting(self, *, room_id: str, message_ids: Sequence[str]) -> list[Entry]:
        """Return entries whose `reply_to` is one of these ids but whose link is not a platform link yet."""
        if not message_ids:
            return []
        rows = await self._rows(_WAITING, room_id, ids=names_text(message_ids))
        return to_entries(room_id, rows)

    async def threads(self, *, room_id: str, after: int, limit: int) -> list[tuple[int, Thread]]:
        """Return threads whose first message's arrival is > `after`, ascending, each with that arrival and without a
        title."""
        groups = await self._rows(_GROUPED, room_id, after=after, count=limit)
        if not groups:
            return []
        threads = [group[0] for group in groups]
        senders: dict[int, list[str]] = {thread: [] for thread in threads}
        for thread, sender in await self._rows(_SENDERS, room_id, threads=numbers_text(threads)):
            senders[thread].append(sender)
        firsts = await self._rows(_FIRST, room_id, arrivals=numbers_text(threads + [group[4] for group in groups]))
        texts = {arrival: (message_id, text) for arrival, message_id, text in firsts}
        there = [group for group in groups if group[0] in texts and group[4] in texts]
        return [(group[0], _to_thread(room_id, group, senders[group[0]], texts)) for group in there]

    async def thread_members(self, *, room_id: str, thread: int, limit: int) -> list[Entry]:
        """Return the newest `limit` entries whose link names this thread, in order of arrival."""
        rows = await self._rows(_MEMBERS, room_id, thread=thread, count=limit)
        return [ENTRY.read(row, room_id) for row in reversed(rows)]

    async def answered_through(self, *, room_id: str, arrival: int) -> list[int]:
        """Return the arrivals of what this message answers, of what that answers, and so on, ascending."""
        return [row[0] for row in await self._rows(_ANSWERED_THROUGH, room_id, own=arrival)]

    async def threads_after(self, *, room_id: str, after: int, limit: int) -> Threads:
        """Return the threads of the first `limit` messages with arrival > `after`, deleted ones too."""
        (row,) = await self._rows(_THREADS_AFTER, room_id, after=after, count=limit)
        return Threads(*(np.fromstring(numbers or "", np.int64, sep=",") for numbers in row))

    async def platform_replies(self, *, room_id: str) -> list[int]:
        """Return the arrivals of the messages whose link the platform states, ascending."""
        return [row[0] for row in await self._rows(_PLATFORM_REPLIES, room_id)]

    async def members_of(self, *, room_id: str, threads: Sequence[int], each: int) -> list[Entry]:
        """Return the newest `each` entries of each of these threads, all in order of arrival."""
        if not threads:
            return []
        rows = await self._rows(_MEMBERS_OF, room_id, threads=numbers_text(threads), each=each)
        return to_entries(room_id, rows)

    async def keyword_counts(self, *, room_id: str, keywords: Sequence[str]) -> dict[str, int]:
        """Return the number of messages of the room with each keyword; absent if none."""
        if not keywords:
            return {}
        counts = counts_in(await self._rows(_COUNTS, room_id, keywords=names_text(keywords)))
        return {keyword: counts[keyword] for keyword in keywords if keyword in counts}

    async def every_keyword_count(self, *, room: Room) -> dict[str, int] | None:
        """Return the counts of all keywords of the room at its revision; None if it is not at it, or has none."""
        stamp = {"revision": room.revision, "created_at": to_micros(room.created_at)}
        return counts_in(await self._rows(_EVERY_COUNT, room.room_id, **stamp)) or None


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
