"""The facts of rooms as columns, updated with the changes since they were read, and several rooms searched as one.

Ranking looks at the messages right before and after each one, and at its room's statistics. Where several rooms are
searched they stand one after another, with empty rows between them so that messages of two rooms are never neighbours,
and the statistics are those of the messages that may be shown: nothing else changes a score.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roomlore.core.audience import ALWAYS, Window
from roomlore.core.mentions import NOBODY, Naming, Renaming, naming_of, renamed
from roomlore.core.models import Room
from roomlore.core.search.hits import (
    MAX_COUNT,
    NEIGHBOURHOOD,
    FactRows,
    Floats,
    Ints,
    MessageFacts,
    Nearest,
    Postings,
    RoomWords,
)
from roomlore.core.search.query import SPELLED
from roomlore.core.text import alike, fold

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PER_MESSAGE = ("arrivals", "sent_at", "senders", "roles", "lengths", "questions", "parents", "parent_odds", "threads")
_LIKELY_PARENT = 0.3
_NONE, _NO_ODDS, _NOT_ONE = np.zeros(0, np.int64), np.zeros(0, np.float64), np.zeros(0, np.bool_)
_NO_FACTS = MessageFacts(
    revision=0,
    sender_ids=(),
    sender_names=(),
    naming=NOBODY,
    arrivals=_NONE,
    sent_at=_NONE,
    senders=_NONE,
    roles=_NONE,
    lengths=_NONE,
    questions=_NOT_ONE,
    parents=_NONE,
    parent_odds=_NO_ODDS,
    threads=_NONE,
)


def facts_of(rows: FactRows, *, revision: int) -> MessageFacts:
    """Return the columns of all messages of a room, without deleted ones."""
    return renewed(_NO_FACTS, rows, revision=revision)


def renewed(facts: MessageFacts, rows: FactRows, *, revision: int) -> MessageFacts:
    """Return the facts with these rows in place of those at their arrivals."""
    visible = ~rows.deleted
    people = _people(facts, rows)
    spoke = _places_of(people, rows.sender_ids)
    added = _columns(rows, visible, spoke)
    kept = _untouched(facts, rows.arrivals)
    columns = {name: np.concatenate([getattr(facts, name)[kept], added[name]]) for name in _PER_MESSAGE}
    if kept.size and added["arrivals"].size and facts.arrivals[kept[-1]] > added["arrivals"][0]:
        order = np.argsort(columns["arrivals"], kind="stable")
        columns = {name: column[order] for name, column in columns.items()}
    return MessageFacts(
        revision=revision,
        sender_ids=tuple(people),
        sender_names=tuple(people.values()),
        naming=_naming(facts, people, spoke),
        words=_words(facts, rows) if kept.size == facts.arrivals.size and visible.all() else None,
        **columns,
    )


def _words(facts: MessageFacts, rows: FactRows) -> RoomWords | None:
    """Return the words with those of messages that follow all others; None if not all are known."""
    known = facts.words
    if rows.words is None or (known is None and facts.arrivals.size):
        return None
    numbers = {} if known is None else known.numbers
    pairs = [
        (numbers.setdefault(word, len(numbers)), row, min(count, MAX_COUNT))
        for row, text in enumerate(rows.words, facts.arrivals.size)
        if text
        for word, count in Counter(text.split(" ")).items()
    ]
    added = np.fromiter(chain.from_iterable(pairs), np.int32, 3 * len(pairs)).reshape(-1, 3).T.copy()
    return RoomWords(numbers, added if known is None else np.concatenate((known.table, added), 1))


def look_up(facts: MessageFacts, room: Room, words: Sequence[str]) -> Postings:
    """Return the postings of these distinct words in a room whose words are kept with its facts."""
    assert facts.words is not None
    known = facts.words
    numbers, message_rows, counts = known.table
    place = np.full(len(known.numbers) + 1, -1)
    place[[known.numbers.get(SPELLED[word], -1) for word in words]] = np.arange(len(words))
    place[-1] = -1
    places_found = place[numbers]
    found = np.flatnonzero(places_found >= 0)
    found = found[places_found[found].argsort(kind="stable")]
    rows = message_rows[found]
    return Postings(
        room=room,
        words=tuple(words),
        ends=np.bincount(places_found[found], minlength=len(words)).cumsum(),
        arrivals=facts.arrivals[rows],
        counts=counts[found].astype(np.int64),
    )


def before(facts: MessageFacts, arrival: int) -> MessageFacts:
    """Return the facts of the messages that arrived before this one; the columns are shared, not copied."""
    end = int(np.searchsorted(facts.arrivals, arrival))
    return replace(facts, **{name: getattr(facts, name)[:end] for name in _PER_MESSAGE})


def places(facts: MessageFacts, arrivals: Ints) -> Ints:
    """Return the index of each arrival in the columns; -1 for those that are absent (deleted, or not yet known)."""
    if not facts.arrivals.size:
        return np.full(len(arrivals), -1)
    row_places = np.searchsorted(facts.arrivals, arrivals)
    row_places[row_places == facts.arrivals.size] = 0
    return np.where(facts.arrivals[row_places] == arrivals, row_places, -1)


def conversation(facts: MessageFacts, arrival: int, *, limit: int, besides: int | None = None) -> Ints:
    """Return the arrivals of a message and the nearest of its thread, at most `limit`, ascending.

    The message it answers, and `besides` if given, are included even if they are of other threads.
    """
    place = int(places(facts, np.array([arrival]))[0])
    if place < 0 or limit < 1:
        return _NONE
    wanted = {arrival, besides if besides is not None else arrival}
    if facts.parent_odds[place] >= _LIKELY_PARENT:
        wanted.add(int(facts.parents[place]))
    first = np.array(sorted(wanted, key=lambda number: abs(number - arrival)), np.int64)
    first = first[places(facts, first) >= 0][:limit]
    thread = facts.arrivals[facts.threads == facts.threads[place]]
    here = int(np.searchsorted(thread, arrival))
    near = thread[max(0, here - limit - first.size) : here + limit + first.size + 1]
    others = near[~np.isin(near, first)]
    nearest = others[np.argsort(np.abs(others - arrival), kind="stable")][: limit - first.size]
    return np.sort(np.concatenate([first, nearest]))


def _people(facts: MessageFacts, rows: FactRows) -> dict[str, str]:
    people = dict(zip(facts.sender_ids, facts.sender_names, strict=True))
    for sender, name, deleted in zip(rows.sender_ids, rows.sender_names, rows.deleted.tolist(), strict=True):
        if not deleted and (name or sender not in people):
            people[sender] = name
    return people


def _naming(facts: MessageFacts, people: Mapping[str, str], spoke: Mapping[str, int]) -> Naming:
    """Return the naming after senders were added or changed their names."""
    changes = []
    for sender, place in spoke.items():
        name = people[sender] or sender
        before = (facts.sender_names[place] or sender) if place < len(facts.sender_ids) else None
        if name != before:
            changes.append(Renaming(place, before, name))
    return renamed(facts.naming, changes)


def _places_of(people: Iterable[str], wanted: Iterable[str]) -> dict[str, int]:
    """Return the indices of the wanted people that are present."""
    wanted_senders = set(wanted)
    return {sender: place for place, sender in enumerate(people) if sender in wanted_senders}


def _untouched(facts: MessageFacts, changed: Ints) -> Ints:
    """Return the indices of the messages that no row changes."""
    if not changed.size or not facts.arrivals.size or changed[0] > facts.arrivals[-1]:
        return np.arange(facts.arrivals.size)
    return np.flatnonzero(~np.isin(facts.arrivals, changed))


def _columns(rows: FactRows, visible: NDArray[np.bool_], places: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    senders = np.array([places.get(sender, -1) for sender in rows.sender_ids], np.int64)
    columns = {name: getattr(rows, name) for name in _PER_MESSAGE if name != "senders"}
    return {name: column[visible] for name, column in (columns | {"senders": senders}).items()}


def chosen(
    facts: MessageFacts, *, senders: Sequence[str] | None, since: datetime | None, until: datetime | None
) -> Ints | None:
    """Return the arrivals of messages by these senders sent in [since, until); None if no filter is given."""
    if senders is None and since is None and until is None:
        return None
    fits = np.ones(facts.arrivals.size, np.bool_)
    if senders is not None:
        wanted = set(senders)
        fits &= np.isin(facts.senders, [place for place, sender in enumerate(facts.sender_ids) if sender in wanted])
    if since is not None:
        fits &= facts.sent_at >= to_micros(since)
    if until is not None:
        fits &= facts.sent_at < to_micros(until)
    return facts.arrivals[fits]


_NAMED_SENDERS = 3
_MEANT_SENDERS = 5


def missing_senders(facts: MessageFacts, senders: Sequence[str] | None) -> str | None:
    """Return a sentence about those of these senders who wrote none of the messages, and who may be meant; None if all
    did."""
    if senders is None:
        return None
    wrote = np.unique(facts.senders)
    known = {facts.sender_ids[place]: facts.sender_names[place] for place in wrote.tolist()}
    missing = [sender for sender in dict.fromkeys(senders) if sender not in known]
    if not missing:
        return None
    return " ".join(nobody_has(given, known) for given in missing[:_NAMED_SENDERS])


def people_like(given: str, known: Mapping[str, str]) -> dict[str, str]:
    """Return the people who may be meant by an id that nobody has: those whose name it is, or else those whose id or
    name is nearly the same. `known`: names by id."""
    called: dict[str, list[str]] = {}
    for sender, name in known.items():
        for called_name in dict.fromkeys((sender, name)):
            called.setdefault(called_name, []).append(sender)
    wanted = given.removeprefix("@")
    named = [alike_name for alike_name in called if fold(alike_name) == fold(wanted)] or alike(wanted, called)
    near = list(dict.fromkeys(sender for alike_name in named for sender in called[alike_name]))[:_MEANT_SENDERS]
    return {sender: known[sender] for sender in near}


def nobody_has(given: str, known: Mapping[str, str]) -> str:
    """Return a sentence which says that nobody has this id, and who may be meant by it. `known`: names by id."""
    near = people_like(given, known).items()
    names = {sender_id: f" ({name!r:.80})" if name not in ("", sender_id) else "" for sender_id, name in near}
    meant = ", ".join(f"{sender_id!r:.80}{name}" for sender_id, name in names.items())
    problem = f"Nobody who wrote here has the id {given!r:.80}"
    return f"{problem}; did you mean {meant}?" if meant else f"{problem}."


def to_micros(time: datetime) -> int:
    """Return whole microseconds since 1970-01-01 UTC; a naive time is UTC."""
    aware = time if time.tzinfo else time.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def from_micros(micros: int) -> datetime:
    """Return the time this many microseconds after 1970-01-01 UTC."""
    return _EPOCH + timedelta(microseconds=micros)


_GAP = 8
"""Empty rows after each room, more than ranking looks ahead or back."""
_NEVER = -(1 << 62)
"""The time of an empty row, far from that of any message."""
_MAX_THREADS = 1 << 40
_ROWS = ("sent_at", "senders", "roles", "lengths", "questions", "parents", "parent_odds", "threads")


@dataclass(frozen=True, slots=True)
class RoomPart:
    """A room in a search of several, with the facts of what may be shown. `whole`: all of it may be."""

    room_id: str
    facts: MessageFacts
    whole: bool = True


def allowed(facts: MessageFacts, windows: Sequence[Window], windows_by_arrival: Mapping[int, Window]) -> Ints:
    """Return the arrivals of messages that were said within one of these windows. `windows_by_arrival`:
    from when until when, of those that were not said at their time alone."""
    first, last = facts.sent_at.copy(), facts.sent_at.copy()
    at = places(facts, np.array(sorted(windows_by_arrival), np.int64))
    spans = [windows_by_arrival[int(facts.arrivals[place])] for place in at[at >= 0].tolist()]
    first[at[at >= 0]] = [to_micros(span.start) for span in spans]
    last[at[at >= 0]] = [to_micros(span.end) for span in spans]
    shown_rows = np.zeros(first.size, np.bool_)
    for window in windows:
        shown_rows |= (to_micros(window.start) <= first) & (last <= to_micros(window.end))
    return facts.arrivals[shown_rows]


def last_of_senders(facts: MessageFacts, arrivals: Ints) -> list[int]:
    """Return the arrival of the last of these messages by each sender: it tells their name."""
    at = places(facts, arrivals)
    return list(dict(zip(facts.senders[at].tolist(), arrivals.tolist(), strict=True)).values())


def part_of(room_id: str, facts: MessageFacts, arrivals: Ints, names: Mapping[str, str]) -> RoomPart:
    """Return the part of a room that is not wholly shown: these messages, with names by sender. Links are left out,
    since hidden messages had a say in them."""
    at = places(facts, arrivals)
    ids = [facts.sender_ids[place] for place in facts.senders[at].tolist()]
    known = {sender: place for place, sender in enumerate(dict.fromkeys(ids))}
    kept = {name: getattr(facts, name)[at] for name in ("sent_at", "roles", "lengths", "questions")}
    shown = replace(
        facts,
        revision=0,
        sender_ids=tuple(known),
        sender_names=tuple(names.get(sender, "") for sender in known),
        naming=NOBODY,
        words=None,
        arrivals=arrivals,
        senders=np.array([known[sender] for sender in ids], np.int64),
        parents=np.zeros(at.size, np.int64),
        parent_odds=np.zeros(at.size),
        threads=arrivals,
        **kept,
    )
    return RoomPart(room_id, shown, whole=False)


class MultiRoom:
    """Rooms as one. `facts`: of all their messages, numbered anew; `numbers`: of the messages, without empty rows."""

    def __init__(self, parts: Sequence[RoomPart]) -> None:
        self.parts = parts
        sizes = [part.facts.arrivals.size for part in parts]
        self._starts = np.cumsum([0, *(size + _GAP for size in sizes)])[: len(sizes)] + 1
        self.numbers: Ints = _numbers(
            [start + np.arange(size) for start, size in zip(self._starts.tolist(), sizes, strict=True)]
        )
        self.facts = self._facts()

    def _facts(self) -> MessageFacts:
        names: dict[str, str] = {}
        for part in self.parts:
            for sender, name in zip(part.facts.sender_ids, part.facts.sender_names, strict=True):
                names[sender] = name or names.get(sender, "")
        senders = {sender: place for place, sender in enumerate(names)}
        rows = [self._rows(at, senders) for at in range(len(self.parts))]
        size = sum(part.facts.arrivals.size + _GAP for part in self.parts)
        columns = {name: np.concatenate([row[name] for row in rows]) if rows else _EMPTY[name] for name in _ROWS}
        return MessageFacts(
            revision=0,
            sender_ids=tuple(names),
            sender_names=tuple(names.values()),
            naming=naming_of([name or sender for sender, name in names.items()]),
            words=None,
            arrivals=np.arange(1, size + 1),
            **columns,
        )

    def _rows(self, at: int, senders: Mapping[str, int]) -> dict[str, NDArray[np.generic]]:
        """Return the columns of a room, with its empty rows."""
        facts = self.parts[at].facts
        people = np.array([senders[sender] for sender in facts.sender_ids], np.int64)
        parents = self.numbered(at, facts.parents)
        columns = {name: getattr(facts, name) for name in ("sent_at", "roles", "lengths", "questions")} | {
            "senders": people[facts.senders] if people.size else facts.senders,
            "parents": np.maximum(parents, 0),
            "parent_odds": np.where(parents > 0, facts.parent_odds, 0.0),
            "threads": facts.threads + at * _MAX_THREADS,
        }
        return {name: np.concatenate([columns[name], np.repeat(_EMPTY_ROW[name], _GAP)]) for name in _ROWS}

    def numbered(self, at: int, arrivals: Ints) -> Ints:
        """Return the numbers of these messages of a room; -1 for those that are not shown."""
        rows = places(self.parts[at].facts, arrivals)
        return np.where(rows >= 0, rows + self._starts[at], -1)

    def among(self, chosen: Ints | None) -> Ints:
        """Return the numbers of messages among these, None for all; empty rows are none."""
        return self.numbers if chosen is None else np.intersect1d(self.numbers, chosen)

    def within(self, at: int, numbers: Ints) -> Ints | None:
        """Return the arrivals of these messages in one room; None if they are all that the room has."""
        start, facts = self._starts[at], self.parts[at].facts
        its = numbers[(numbers >= start) & (numbers < start + facts.arrivals.size)]
        return None if self.parts[at].whole and its.size == facts.arrivals.size else facts.arrivals[its - start]

    def place(self, number: int) -> tuple[int, int]:
        """Return the index of a message's room, and its arrival there."""
        at = int(np.searchsorted(self._starts, number, side="right")) - 1
        return at, int(self.parts[at].facts.arrivals[number - self._starts[at]])

    def postings(self, words: Sequence[str], postings_of_parts: Sequence[Postings | None]) -> Postings:
        """Return the postings of all rooms as those of one. `postings_of_parts`: of each room, None if it is gone
        meanwhile."""
        columns = [self._posted(at, posting) for at, posting in enumerate(postings_of_parts) if posting is not None]
        which, numbers, counts = (_numbers([column[place] for column in columns]) for place in range(3))
        order = np.lexsort((numbers, which))
        facts = self.facts
        return Postings(
            room=Room(
                tenant="",
                room_id="",
                messages=self.numbers.size,
                words=int(facts.lengths.sum()),
                created_at=datetime.fromtimestamp(0, UTC),
            ),
            words=tuple(words),
            ends=np.cumsum(np.bincount(which, minlength=len(words))),
            arrivals=numbers[order],
            counts=counts[order],
        )

    def _posted(self, at: int, postings: Postings) -> tuple[Ints, Ints, Ints]:
        which = np.repeat(np.arange(postings.ends.size), np.diff(postings.ends, prepend=0))
        numbers = self.numbered(at, postings.arrivals)
        kept = numbers > 0
        return which[kept], numbers[kept], postings.counts[kept]

    def nearest(self, parts: Sequence[Sequence[Nearest]]) -> list[Nearest]:
        """Return for each text the nearest of all rooms. `parts`: of each room, for each text."""
        return [
            self._nearest([part[text] if text < len(part) else None for part in parts])
            for text in range(max(map(len, parts), default=0))
        ]

    def _nearest(self, parts: Sequence[Nearest | None]) -> Nearest:
        its = [
            (self.numbered(at, part.numbers), part.similarities) for at, part in enumerate(parts) if part is not None
        ]
        numbers = _numbers([column for column, _ in its])
        similar: Floats = np.concatenate([np.zeros(0), *(column for _, column in its)])
        order = np.lexsort((numbers, -similar))
        order = order[numbers[order] > 0][:NEIGHBOURHOOD]
        return Nearest(numbers=numbers[order], similarities=similar[order])


def is_whole(windows: Sequence[Window]) -> bool:
    """Return True if all of a room may be shown in these windows."""
    return tuple(windows) == ALWAYS


_EMPTY_ROW = {
    "sent_at": np.array([_NEVER]),
    "senders": np.array([-1]),
    "roles": np.array([-1]),
    "lengths": np.array([0]),
    "questions": np.array([False]),
    "parents": np.array([0]),
    "parent_odds": np.array([0.0]),
    "threads": np.array([-1]),
}
_EMPTY = {name: array[:0] for name, array in _EMPTY_ROW.items()}


def _numbers(columns: Sequence[Ints]) -> Ints:
    return np.concatenate([np.zeros(0, np.int64), *columns])
