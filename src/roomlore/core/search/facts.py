"""The facts of a room as columns, updated with the changes since they were read."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roomlore.core.mentions import NOBODY, Naming, Renaming, renamed
from roomlore.core.search.hits import FactRows, Ints, RoomFacts

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PER_MESSAGE = ("arrivals", "sent_at", "senders", "roles", "lengths", "questions", "parents", "parent_odds", "threads")
_LIKELY_PARENT = 0.3
_NONE, _NO_ODDS, _NOT_ONE = np.zeros(0, np.int64), np.zeros(0, np.float64), np.zeros(0, np.bool_)
_NO_FACTS = RoomFacts(
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


def facts_of(rows: FactRows, *, revision: int) -> RoomFacts:
    """Return the columns of all messages of a room, without deleted ones."""
    return renewed(_NO_FACTS, rows, revision=revision)


def renewed(facts: RoomFacts, rows: FactRows, *, revision: int) -> RoomFacts:
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
    return RoomFacts(
        revision=revision,
        sender_ids=tuple(people),
        sender_names=tuple(people.values()),
        naming=_naming(facts, people, spoke),
        **columns,
    )


def before(facts: RoomFacts, arrival: int) -> RoomFacts:
    """Return the facts of the messages that arrived before this one; the columns are shared, not copied."""
    end = int(np.searchsorted(facts.arrivals, arrival))
    return replace(facts, **{name: getattr(facts, name)[:end] for name in _PER_MESSAGE})


def places(facts: RoomFacts, arrivals: Ints) -> Ints:
    """Return the index of each arrival in the columns; -1 for those that are absent (deleted, or not yet known)."""
    if not facts.arrivals.size:
        return np.full(len(arrivals), -1)
    found = np.searchsorted(facts.arrivals, arrivals)
    found[found == facts.arrivals.size] = 0
    return np.where(facts.arrivals[found] == arrivals, found, -1)


def conversation(facts: RoomFacts, arrival: int, *, limit: int, besides: int | None = None) -> Ints:
    """Return the arrivals of a message and the nearest of its thread, at most `limit`, ascending.

    The message it answers, and `besides` if given, are included even if they are of other threads.
    """
    place = int(places(facts, np.array([arrival]))[0])
    if place < 0 or limit < 1:
        return _NONE
    wanted = {arrival, besides if besides is not None else arrival}
    if facts.parent_odds[place] >= _LIKELY_PARENT:
        wanted.add(int(facts.parents[place]))
    first = np.array(sorted(wanted, key=lambda one: abs(one - arrival)), np.int64)
    first = first[places(facts, first) >= 0][:limit]
    thread = facts.arrivals[facts.threads == facts.threads[place]]
    here = int(np.searchsorted(thread, arrival))
    near = thread[max(0, here - limit - first.size) : here + limit + first.size + 1]
    others = near[~np.isin(near, first)]
    nearest = others[np.argsort(np.abs(others - arrival), kind="stable")][: limit - first.size]
    return np.sort(np.concatenate([first, nearest]))


def _people(facts: RoomFacts, rows: FactRows) -> dict[str, str]:
    people = dict(zip(facts.sender_ids, facts.sender_names, strict=True))
    for sender, name, deleted in zip(rows.sender_ids, rows.sender_names, rows.deleted.tolist(), strict=True):
        if not deleted and (name or sender not in people):
            people[sender] = name
    return people


def _naming(facts: RoomFacts, people: Mapping[str, str], spoke: Mapping[str, int]) -> Naming:
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
    asked = set(wanted)
    return {sender: place for place, sender in enumerate(people) if sender in asked}


def _untouched(facts: RoomFacts, changed: Ints) -> Ints:
    """Return the indices of the messages that no row changes."""
    if not changed.size or not facts.arrivals.size or changed[0] > facts.arrivals[-1]:
        return np.arange(facts.arrivals.size)
    return np.flatnonzero(~np.isin(facts.arrivals, changed))


def _columns(rows: FactRows, visible: NDArray[np.bool_], places: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    senders = np.array([places.get(sender, -1) for sender in rows.sender_ids], np.int64)
    columns = {name: getattr(rows, name) for name in _PER_MESSAGE if name != "senders"}
    return {name: column[visible] for name, column in (columns | {"senders": senders}).items()}


def chosen(
    facts: RoomFacts, *, senders: Sequence[str] | None, since: datetime | None, until: datetime | None
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


def to_micros(time: datetime) -> int:
    """Return whole microseconds since 1970-01-01 UTC; a naive time is UTC."""
    aware = time if time.tzinfo else time.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def from_micros(micros: int) -> datetime:
    """Return the time this many microseconds after 1970-01-01 UTC."""
    return _EPOCH + timedelta(microseconds=micros)
