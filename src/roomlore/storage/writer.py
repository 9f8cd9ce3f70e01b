"""Changes to the messages of a locked room, with its counters, people and keyword counts."""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from sqlalchemy import Table, bindparam, case, delete, exists, func, insert, literal_column, null, or_, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from roomlore.core.errors import Conflict, NotFound
from roomlore.core.linking.calibration import Linked
from roomlore.core.linking.candidates import NO_THREAD_CANDIDATES
from roomlore.core.models import Entry, Link, LinkKind, Role, Room
from roomlore.storage import schema
from roomlore.storage.engine import FEW_CHARACTERS, FEW_ROWS, LockedRoom, Row, Statement, among, in_locked_room
from roomlore.storage.pending import first_pending, settled
from roomlore.storage.rows import names_text, numbers_text, read_list, to_micros
from roomlore.storage.shapes import LINK, LINKED, ROOM, features_row, message_row
from roomlore.storage.threads import ThreadTitles
from roomlore.storage.values import Relinked
from roomlore.storage.words import Spelled, WithWords

_rooms, _m, _f = schema.rooms, schema.messages, schema.features
_people, _words, _w = schema.participants, schema.keyword_counts, schema.message_words
_c, _a = schema.link_corrections, schema.archives
_IN_THIS_THREAD_FROM = 64
"""Batches from this size on are converted to rows on another thread, so that the event loop is not blocked."""

_ALL = 2**62
_LINK_COLUMNS = tuple(column.name for column in LINK.columns)
_LINKED_COLUMNS = tuple(column.name for column in LINKED.columns)
_NEVER: Any = literal_column(str(2**63 - 1))
_KEPT = {"room_key", "arrival", "tenant"}
_EMPTIED: dict[str, Any] = {
    "sender_id": "",
    "sender_name": "",
    "text": "",
    "reply_to": None,
    "root_id": None,
    "topic_id": None,
    "turn_id": None,
    "mentions": "[]",
    "has_tool_calls": False,
    "metadata": "{}",
    "tokens": 0,
    "content_hash": "",
    "edited_at": None,
}


def _set(table: Table, names: Iterable[str]) -> Any:
    """Return an update of one row of the locked room; column x takes the parameter `new_x`."""
    values = {name: bindparam(f"new_{name}", type_=table.c[name].type) for name in names}
    return update(table).where(in_locked_room(table), table.c.arrival == bindparam("own")).values(values)


def _columns_but(table: Table, *left_out: str) -> list[str]:
    return [column.name for column in table.c if column.name not in _KEPT and column.name not in left_out]


def _beside(table: Any) -> Any:
    return (table.c.room_key == _m.c.room_key) & (table.c.arrival == _m.c.arrival)


def _people_upsert() -> Any:
    given = upsert(_people)
    new, old = given.excluded, _people.c
    named = func.coalesce(func.nullif(new.name, literal_column("''")), old.name)
    return given.on_conflict_do_update(
        index_elements=[old.room_key, old.sender_id],
        set_={
            "name": case((new.last_arrival >= old.last_arrival, named), else_=old.name),
            "first_arrival": case((new.first_arrival < old.first_arrival, new.first_arrival), else_=old.first_arrival),
            "last_arrival": case((new.last_arrival > old.last_arrival, new.last_arrival), else_=old.last_arrival),
            "messages": old.messages + new.messages,
            "first_spoke_at": case(
                (new.first_spoke_at < func.coalesce(old.first_spoke_at, _NEVER), new.first_spoke_at),
                else_=old.first_spoke_at,
            ),
            "last_spoke_at": case(
                (new.last_spoke_at > func.coalesce(old.last_spoke_at, -_NEVER), new.last_spoke_at),
                else_=old.last_spoke_at,
            ),
            "answers": or_(old.answers, new.answers),
        },
    )


def _words_upsert() -> Any:
    given = upsert(_words)
    return given.on_conflict_do_update(
        index_elements=[_words.c.room_key, _words.c.keyword],
        set_={"messages": _words.c.messages + given.excluded.messages},
    )


def _none_left(table: Table, *also: Any) -> Any:
    return delete(table).where(in_locked_room(table), table.c.messages <= 0, *also)


def _archived() -> Any:
    """Return True for the locked room if it has archives: what was said there was heard by the people of the room."""
    room = (
        _rooms.c.room_key == bindparam("room_key"),
        _a.c.tenant == _rooms.c.tenant,
        _a.c.room_id == _rooms.c.room_id,
    )
    return exists().where(*room, _a.c.phase != literal_column("'gone'"))


def _theirs() -> tuple[Any, ...]:
    """Return the conditions of the messages of a participant that are there."""
    p = _people.c
    between = _m.c.arrival.between(p.first_arrival, p.last_arrival)
    return (in_locked_room(_m), between, _m.c.sender_id == p.sender_id, _m.c.deleted_at.is_(None))


def _names_again() -> Any:
    """Set the names of these senders to the last ones that their messages give. In a room with archives a name stays
    if no message gives another: what is archived is not read."""
    named = select(_m.c.sender_name).where(*_theirs(), _m.c.sender_name != literal_column("''"))
    newest = named.order_by(_m.c.arrival.desc()).limit(1).correlate(_people).scalar_subquery()
    known = case((_archived(), _people.c.name), else_=literal_column("''"))
    its = (in_locked_room(_people), among(_people.c.sender_id, "senders"))
    return update(_people).where(*its).values(name=func.coalesce(newest, known))


def _first_again() -> Any:
    """Set the first arrival of the people whose first message was one of these. In a room with archives it stays."""
    first = _people.c.first_arrival
    first_again = (
        select(_m.c.arrival).where(*_theirs()).order_by(_m.c.arrival).limit(1).correlate(_people).scalar_subquery()
    )
    its = (in_locked_room(_people), among(first, "arrivals"), ~_archived())
    return update(_people).where(*its).values(first_arrival=func.coalesce(first_again, first))


def _move() -> Any:
    """Move messages below these messages to another thread, each after what it answers, and return them. UNION ends a
    cycle of replies. The sum hides the index of threads: with it each step reads the whole thread."""
    linked = (_f.c.link_kind != LinkKind.NEW.value) & (_f.c.thread + literal_column("0") == bindparam("old"))
    start = select(_f.c.arrival).where(in_locked_room(_f), among(_f.c.parent, "owns"), linked)
    below = start.cte("below", recursive=True)
    further = select(_f.c.arrival).where(in_locked_room(_f), _f.c.parent == below.c.arrival, linked)
    moved = select(below.union(further).c.arrival).limit(bindparam("most"))
    return (
        update(_f)
        .where(in_locked_room(_f), _f.c.arrival.in_(moved))
        .values(thread=bindparam("new"))
        .returning(_f.c.arrival)
    )


def _step_statement(linked: Iterable[str] = ()) -> Any:
    """Raise the revision and the counters of the locked room. `linked`: columns that are set too; SQLite writes the
    index of a column that is set, even to what it was."""
    last_arrival = _rooms.c.next_arrival + bindparam("added")
    values = {
        "revision": _rooms.c.revision + 1,
        "next_arrival": last_arrival,
        "messages": _rooms.c.messages + bindparam("more"),
        "words": _rooms.c.words + bindparam("more_words"),
        "pending_from": bindparam("new_pending_from", type_=_rooms.c.pending_from.type),
        "last_sent_at": case(
            (last_arrival == bindparam("last") + 1, bindparam("last_sent_at")), else_=_rooms.c.last_sent_at
        ),
        **{name: bindparam(f"new_{name}", type_=_rooms.c[name].type) for name in linked},
    }
    return update(_rooms).where(in_locked_room(_rooms)).values(values).returning(*ROOM.columns)


_above = _f.alias("above")
_ABOVE = Statement(
    lambda: (
        select(_f.c.arrival, _f.c.parent, _f.c.thread, _above.c.thread)
        .join_from(_f, _above, (_above.c.room_key == _f.c.room_key) & (_above.c.arrival == _f.c.parent))
        .where(in_locked_room(_f), _f.c.link_kind != LinkKind.NEW.value, among(_f.c.arrival, "arrivals"))
    )
)
_TO_THREAD = Statement(
    lambda: update(_f).where(in_locked_room(_f), among(_f.c.arrival, "arrivals")).values(thread=bindparam("new"))
)
_ADD_MESSAGES = Statement(lambda: insert(_m))
_ADD_FEATURES = Statement(lambda: insert(_f))
_COUNT_PEOPLE = Statement(_people_upsert)
_COUNT_WORDS = Statement(_words_upsert)
_NO_PEOPLE_LEFT = Statement(lambda: _none_left(_people, ~_archived()))
_NAMES_AGAIN = Statement(_names_again)
_FIRST_AGAIN = Statement(_first_again)
_NO_WORDS_LEFT = Statement(lambda: _none_left(_words))
_STEP = Statement(_step_statement, brief=True)
_STEP_LINKED = Statement(lambda: _step_statement(_LINKED_COLUMNS), brief=True)
_STORED = Statement(
    lambda: (
        select(_m.c.arrival, _m.c.message_id, _m.c.sender_id, _f.c.keywords, _f.c.thread, _w.c.length, _m.c.sender_name)
        .select_from(_m.join(_f, _beside(_f)).join(_w, _beside(_w)))
        .where(in_locked_room(_m), _m.c.deleted_at.is_(None), among(_m.c.arrival, "arrivals"))
        .order_by(_m.c.arrival)
    )
)
_REPLACE_MESSAGE = Statement(lambda: _set(_m, _columns_but(_m, "message_id", "deleted_at")))
_REPLACE_FEATURES = Statement(lambda: _set(_f, _columns_but(_f)))
_RELINK = Statement(lambda: _set(_f, _LINK_COLUMNS))
_MOVE = Statement(_move)
_EMPTY_MESSAGES = Statement(
    lambda: (
        update(_m)
        .where(in_locked_room(_m), among(_m.c.arrival, "arrivals"))
        .values(deleted_at=bindparam("now"), **_EMPTIED)
    )
)
_RESTORE_MESSAGE = Statement(lambda: _set(_m, _columns_but(_m, "message_id")))
_NO_CORRECTIONS = Statement(lambda: delete(_c).where(in_locked_room(_c), among(_c.c.arrival, "arrivals")))
_EMPTY_FEATURES = Statement(
    lambda: (
        update(_f)
        .where(in_locked_room(_f), among(_f.c.arrival, "arrivals"))
        .values(
            mentions="[]",
            addressed="[]",
            mentions_all=False,
            keywords="[]",
            reply=null(),
            partners="[]",
            thread_candidates=NO_THREAD_CANDIDATES.pack(),
        )
    )
)


class MessageWriting(WithWords):
    """A part of `Messages`: changing messages in a locked room."""

    async def append(self, *, room_id: str, entries: Sequence[Entry], linked: Linked | None = None) -> Room:
        """Add entries whose arrivals continue `next_arrival` without a gap. Return the room after it. `linked`: the
        room's from now on; None keeps it. Raises `Conflict` if an id exists or the arrivals do not continue the room's;
        nothing is stored then."""
        room = self._locks.held(self._tenant, room_id)
        _check_arrivals(entries)
        if not entries:
            return await self._step(room, None, linked=linked)
        are_short = sum(len(entry.message.text) for entry in entries) < FEW_CHARACTERS
        if are_short and len(entries) < _IN_THIS_THREAD_FROM:
            message_rows, feature_rows, spelled = self._rows_of(room, entries)
        else:
            message_rows, feature_rows, spelled = await asyncio.to_thread(self._rows_of, room, entries)
        words, count = sum([row.length for row in spelled]), len(entries)
        pending_from = first_pending(room, entries)
        changes = [
            (_ADD_MESSAGES, message_rows),
            (_ADD_FEATURES, feature_rows),
            (_COUNT_PEOPLE, _speakers(room, entries)),
            self._index.added(room, spelled, pending=pending_from is not None),
        ]
        if pending_from is None:
            keywords, settling = await settled(self._sql, room)
            keywords.update([word for entry in entries for word in entry.features.keywords])
            changes += [(_COUNT_WORDS, _counted(room, keywords)), *settling]
        room = self._locks.pending(room, pending_from)
        step = _step(room, entries[-1], added=count, more=count, words=words, linked=linked)
        brief = are_short and len(entries) <= FEW_ROWS
        stored = ROOM.read((await self._sql.write(changes, *step, brief=brief))[0])
        if stored.next_arrival != entries[-1].message.arrival + 1:
            raise Conflict("room_arrival_stale", arrival=entries[0].message.arrival)
        return stored

    async def replace(self, *, room_id: str, entries: Sequence[Entry]) -> Room:
        """Replace the entries at their arrivals (edits); threads move as in `relink`. Raises `NotFound` if no visible
        message has an entry's arrival and id."""
        room = await self._settle(room_id)
        entries = sorted(entries, key=lambda entry: entry.message.arrival)
        old = {row[0]: row for row in await self._stored(room, [entry.message.arrival for entry in entries])}
        _check_there(entries, old)
        if not entries:
            return await self._step(room, None)
        await self._put_all(
            _REPLACE_MESSAGE, room, [_named(_m, message_row(*_at(room), entry.message)) for entry in entries]
        )
        await self._put_all(_REPLACE_FEATURES, room, [_named(_f, features_row(*_at(room), entry)) for entry in entries])
        moved = await self._move_all(
            room, {entry.message.arrival: (old[entry.message.arrival][4], entry.link.thread) for entry in entries}
        )
        await self._spoil_titles(room, {row[4] for row in old.values()} | {entry.link.thread for entry in entries})
        silent = [_silent(room, row[2], arrival) for arrival, row in old.items()]
        await self._sql.many(_COUNT_PEOPLE, [*_speakers(room, entries), *silent])
        new = {entry.message.arrival: (entry.message.sender_id, entry.message.sender_name) for entry in entries}
        was = {arrival: (row[2], row[6]) for arrival, row in old.items()}
        changed = {
            sender
            for arrival in was
            if was[arrival] != new[arrival]
            for sender, name in (was[arrival], new[arrival])
            if name
        }
        await self._people_again(room, changed, list(old))
        change = Counter(word for entry in entries for word in entry.features.keywords)
        for row in old.values():
            change.subtract(read_list(row[3]))
        await self._count_words(room, change)
        spelled = await asyncio.to_thread(self._index.spell, room, [entry.message for entry in entries])
        words = sum(spelled_row.length for spelled_row in spelled) - sum(row[5] for row in old.values())
        stored = await self._step(room, entries[-1], words=words)
        await self._index.put(room, spelled, revision=stored.revision)
        await self._index.touch(room, moved, revision=stored.revision)
        return stored

    async def erase(self, *, room_id: str, arrivals: Sequence[int], now: datetime) -> Room:
        """Empty these messages and hide them; id and arrival stay taken. Unknown and already erased arrivals are
        ignored."""
        room = await self._settle(room_id)
        rows = await self._stored(room, arrivals) if arrivals else []
        if not rows:
            return await self._step(room, None)
        gone = [row[0] for row in rows]
        await self._sql.fetch(_EMPTY_MESSAGES, arrivals=numbers_text(gone), now=to_micros(now), **_params(room))
        await self._sql.fetch(_EMPTY_FEATURES, arrivals=numbers_text(gone), **_params(room))
        await self._sql.fetch(_NO_CORRECTIONS, arrivals=numbers_text(gone), **_params(room))
        await self._spoil_titles(room, {row[4] for row in rows})
        await self._sql.many(_COUNT_PEOPLE, [_silent(room, row[2], row[0]) for row in rows])
        await self._people_again(room, {row[2] for row in rows if row[6]}, gone)
        fewer: Counter[str] = Counter()
        for row in rows:
            fewer.subtract(read_list(row[3]))
        await self._count_words(room, fewer)
        stored = await self._step(room, None, more=-len(rows), words=-sum(row[5] for row in rows))
        await self._index.clear(room, gone, revision=stored.revision)
        return stored

    async def restore(self, *, room_id: str, entries: Sequence[Entry]) -> Room:
        """Put erased messages of a locked room back in their places, with these features and links."""
        room = await self._settle(room_id)
        if not entries:
            return await self._step(room, None)
        entries = sorted(entries, key=lambda entry: entry.message.arrival)
        message_rows, feature_rows, spelled = await asyncio.to_thread(self._rows_of, room, entries)
        await self._put_all(_RESTORE_MESSAGE, room, [_named(_m, row) for row in message_rows])
        await self._put_all(_REPLACE_FEATURES, room, [_named(_f, row) for row in feature_rows])
        await self._spoil_titles(room, {entry.link.thread for entry in entries})
        await self._sql.many(_COUNT_PEOPLE, _speakers(room, entries))
        await self._sql.fetch(_NO_PEOPLE_LEFT, **_params(room))
        await self._count_words(room, Counter(word for entry in entries for word in entry.features.keywords))
        stored = await self._step(room, None, more=len(entries), words=sum(row.length for row in spelled))
        await self._index.put(room, spelled, revision=stored.revision)
        return stored

    async def relink(
        self, *, room_id: str, links: Mapping[int, Link], linked: Linked | None = None, most: int | None = None
    ) -> Relinked:
        """Give the entries at these arrivals new links. If a link's thread changed, all descendants (by parent, linked,
        in the old thread) move to the new thread with it. `linked` as in `append`. `most`: so many descendants move at
        most, each after what it answers; None is all. The others are to `follow`. Raises `NotFound` if a visible
        message is missing."""
        room = self._locks.held(self._tenant, room_id)
        old = {row[0]: row[4] for row in await self._stored(room, list(links))}
        if missing := sorted(links.keys() - old.keys()):
            raise NotFound("link_message_missing", arrival=missing[0])
        rows = [{"arrival": arrival, **LINK.values(link)} for arrival, link in sorted(links.items())]
        await self._put_all(_RELINK, room, rows)
        moved = await self._move_all(room, {at: (was, links[at].thread) for at, was in old.items()}, most)
        changed = {*links, *moved}
        await self._spoil_titles(
            room, {thread for at, was in old.items() if was != links[at].thread for thread in (was, links[at].thread)}
        )
        stored = await self._step(room, None, linked=linked)
        await self._index.touch(room, sorted(changed), revision=stored.revision)
        return Relinked(stored, len(changed), left=most is not None and len(moved) >= most)

    async def follow(self, *, room_id: str, arrivals: Sequence[int]) -> int:
        """Move each of these messages, in this order, to the thread of what it answers now, deleted ones too. Return
        how many were in another one; if none was, the room stays as it is."""
        room = self._locks.held(self._tenant, room_id)
        rows = await self._sql.fetch(_ABOVE, arrivals=numbers_text(arrivals), **_params(room))
        known = {row[0]: row for row in rows}
        moved: dict[int, int] = {}
        threads: dict[int, list[int]] = {}
        for arrival, parent, thread, its in (known[arrival] for arrival in arrivals if arrival in known):
            above: Any = moved.get(parent, its)
            if above != thread:
                moved[arrival] = above
                threads.setdefault(above, []).append(arrival)
        if moved:
            for thread, members in threads.items():
                await self._sql.fetch(_TO_THREAD, arrivals=numbers_text(members), new=thread, **_params(room))
            await self._spoil_titles(room, {*threads, *(known[arrival][2] for arrival in moved)})
            stored = await self._step(room, None)
            await self._index.touch(room, sorted(moved), revision=stored.revision)
        return len(moved)

    async def analyse_anew(self, *, room_id: str, entries: Sequence[Entry], linked: Linked | None = None) -> Room:
        """Replace the features and links of the messages of these entries; nothing else moves, and texts, people and
        times stay. `linked` as in `append`. Raises `NotFound` if no visible message has an entry's arrival and id."""
        room = await self._settle(room_id)
        arrivals = [entry.message.arrival for entry in entries]
        old = {row[0]: row for row in await self._stored(room, arrivals)} if entries else {}
        _check_there(entries, old)
        await self._put_all(_REPLACE_FEATURES, room, [_named(_f, features_row(*_at(room), entry)) for entry in entries])
        change = Counter(word for entry in entries for word in entry.features.keywords)
        for row in old.values():
            change.subtract(read_list(row[3]))
        await self._count_words(room, change)
        pairs = ((old[entry.message.arrival][4], entry.link.thread) for entry in entries)
        await self._spoil_titles(room, {thread for was, new in pairs if was != new for thread in (was, new)})
        stored = await self._step(room, None, linked=linked)
        await self._index.touch(room, arrivals, revision=stored.revision)
        return stored

    async def _settle(self, room_id: str) -> LockedRoom:
        """Return the locked room without pending messages; its next step says so."""
        room = self._locks.held(self._tenant, room_id)
        keywords, settling = await settled(self._sql, room)
        await self._count_words(room, keywords)
        for statement, rows in settling:
            await self._sql.many(statement, rows)
        return self._locks.pending(room, None)

    def _rows_of(self, room: LockedRoom, entries: Sequence[Entry]) -> tuple[list[Row], list[Row], list[Spelled]]:
        key, tenant = _at(room)
        return (
            [message_row(key, tenant, entry.message) for entry in entries],
            [features_row(key, tenant, entry) for entry in entries],
            self._index.spell(room, [entry.message for entry in entries]),
        )

    async def _stored(self, room: LockedRoom, arrivals: Sequence[int]) -> Sequence[Sequence[Any]]:
        return await self._sql.fetch(_STORED, arrivals=numbers_text(arrivals), **_params(room))

    async def _people_again(self, room: LockedRoom, named: Collection[str], arrivals: Sequence[int]) -> None:
        """Update the people after changes to messages. `named`: senders whose messages gave or give a name;
        `arrivals`: of the changed messages."""
        its = _params(room)
        await self._sql.fetch(_NO_PEOPLE_LEFT, **its)
        await self._sql.fetch(_FIRST_AGAIN, arrivals=numbers_text(arrivals), **its)
        if named:
            await self._sql.fetch(_NAMES_AGAIN, senders=names_text(sorted(named)), **its)

    async def _put_all(self, statement: Statement, room: LockedRoom, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write rows. `rows`: values by column name, including the arrival."""
        ordered, its = statement.on(self._sql.dialect).ordered, _params(room)
        given = [{f"new_{name}": value for name, value in row.items()} for row in rows]
        await self._sql.many(statement, [ordered({**its, "own": values["new_arrival"], **values}) for values in given])

    async def _move_all(
        self, room: LockedRoom, threads: Mapping[int, tuple[int, int]], most: int | None = None
    ) -> list[int]:
        """Move what is below these messages, at most so many, and return their arrivals. `threads`: the old and the new
        thread of each."""
        owns: dict[tuple[int, int], list[int]] = {}
        for arrival, (old, new) in threads.items():
            if old != new:
                owns.setdefault((old, new), []).append(arrival)
        moved: list[int] = []
        for (old, new), its in owns.items():
            left = _ALL if most is None else most - len(moved)
            given = {"owns": numbers_text(its), "old": old, "new": new, "most": left}
            moved += [row[0] for row in await self._sql.fetch(_MOVE, **given, **_params(room))]
        return moved

    async def _spoil_titles(self, room: LockedRoom, threads: Collection[int]) -> None:
        """Have the titles of these threads made again: a message that they rest on was changed, or moved."""
        await ThreadTitles(self._sql, self._locks, self._of).spoil(room, threads)

    async def _count_words(self, room: LockedRoom, change: Mapping[str, int]) -> None:
        if rows := _counted(room, change):
            await self._sql.many(_COUNT_WORDS, rows)
        if any(count < 0 for count in change.values()):
            await self._sql.fetch(_NO_WORDS_LEFT, **_params(room))

    async def _step(self, room: LockedRoom, newest: Entry | None, **more: Any) -> Room:
        """Raise the room's revision. `more`: as in the function of this name."""
        statement, params = _step(room, newest, **more)
        return ROOM.read((await self._sql.fetch(statement, **params))[0])


def _at(room: LockedRoom) -> tuple[int, str]:
    return room.key, room.tenant


def _params(room: LockedRoom) -> dict[str, Any]:
    return {"room_key": room.key, "tenant": room.tenant}


def _step(
    room: LockedRoom,
    newest: Entry | None,
    *,
    added: int = 0,
    more: int = 0,
    words: int = 0,
    linked: Linked | None = None,
) -> tuple[Statement, dict[str, Any]]:
    """Return the statement that raises the room's revision, and its parameters."""
    params = {
        "added": added,
        "more": more,
        "more_words": words,
        "new_pending_from": room.pending_from,
        "last": newest.message.arrival if newest else 0,
        "last_sent_at": to_micros(newest.message.dated_at) if newest else None,
        **_params(room),
    }
    if linked is None:
        return _STEP, params
    return _STEP_LINKED, params | {f"new_{name}": value for name, value in LINKED.values(linked).items()}


def _counted(room: LockedRoom, change: Mapping[str, int]) -> list[Row]:
    """Return the rows of `_COUNT_WORDS`."""
    key, tenant = _at(room)
    return [(key, word, tenant, count) for word, count in change.items() if count]


def _named(table: Table, row: Sequence[Any]) -> dict[str, Any]:
    return {column.name: value for column, value in zip(table.c, row, strict=True)}


def _check_arrivals(entries: Sequence[Entry]) -> None:
    for before, after in pairwise(entries):
        if after.message.arrival != before.message.arrival + 1:
            raise Conflict("arrival_not_next", arrival=after.message.arrival, before=before.message.arrival)


def _check_there(entries: Sequence[Entry], stored: Mapping[int, Sequence[Any]]) -> None:
    for entry in entries:
        row = stored.get(entry.message.arrival)
        if row is None or row[1] != entry.message.id:
            raise NotFound("replaced_message_missing", message=repr(entry.message.id), arrival=entry.message.arrival)


def _speakers(room: LockedRoom, entries: Sequence[Entry]) -> list[tuple[Any, ...]]:
    """Return one row for each sender: key, sender, tenant, last name, first and last arrival, messages, the times
    between which messages of the role user were said for certain, and if there is one of an agent."""
    key, tenant = _at(room)
    speakers: dict[str, tuple[str, int, int, int]] = {}
    spoke: dict[str, tuple[datetime, datetime]] = {}
    for entry in entries:
        message = entry.message
        name, first, _, count = speakers.get(message.sender_id, ("", message.arrival, 0, 0))
        speakers[message.sender_id] = (message.sender_name or name, first, message.arrival, count + 1)
        if message.role is Role.USER:
            since, until = message.heard_from or message.at, message.heard_until or message.at
            began, ended = spoke.get(message.sender_id, (until, since))
            spoke[message.sender_id] = min(began, until), max(ended, since)
    agents = {entry.message.sender_id for entry in entries if entry.message.role in (Role.ASSISTANT, Role.TOOL)}
    times = {sender: (to_micros(began), to_micros(ended)) for sender, (began, ended) in spoke.items()}
    return [
        (key, sender, tenant, name, *rest, *times.get(sender, (None, None)), sender in agents)
        for sender, (name, *rest) in speakers.items()
    ]


def _silent(room: LockedRoom, stored_sender: str, arrival: int) -> tuple[Any, ...]:
    """Return the row that subtracts one message from a sender."""
    key, tenant = _at(room)
    return (key, stored_sender, tenant, "", arrival, arrival, -1, None, None, False)
