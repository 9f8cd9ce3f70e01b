"""The facts of a room as columns, kept in step with what changed since they were read."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np

from roomlore.core.search import ROLES, FactRow, Ints, RoomFacts

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ROLE_CODES = {role: code for code, role in enumerate(ROLES)}
_PER_MESSAGE = ("arrivals", "sent_at", "senders", "roles", "lengths", "questions", "parents", "parent_odds", "threads")


def facts_of(rows: Sequence[FactRow], *, revision: int) -> RoomFacts:
    """The columns of all rows of a room, which come in order of arrival; deleted ones are left out."""
    empty = RoomFacts(revision=revision, sender_ids=(), sender_names=(), **_columns((), {}))
    return renewed(empty, rows, revision=revision)


def renewed(facts: RoomFacts, rows: Sequence[FactRow], *, revision: int) -> RoomFacts:
    """The facts after these rows, in order of arrival, took the place of what stood at their arrivals."""
    people = _people(facts, rows)
    codes = {sender: code for code, sender in enumerate(people)}
    added = _columns([row for row in rows if not row.deleted], codes)
    kept = _untouched(facts, rows)
    columns = {name: np.concatenate([getattr(facts, name)[kept], added[name]]) for name in _PER_MESSAGE}
    if kept.size and added["arrivals"].size and facts.arrivals[kept[-1]] > added["arrivals"][0]:
        order = np.argsort(columns["arrivals"], kind="stable")
        columns = {name: column[order] for name, column in columns.items()}
    return RoomFacts(revision=revision, sender_ids=tuple(people), sender_names=tuple(people.values()), **columns)


def places(facts: RoomFacts, arrivals: Ints) -> Ints:
    """Where these arrivals stand in the columns; -1 for those that are not there (deleted, or not yet known)."""
    if not facts.arrivals.size:
        return np.full(len(arrivals), -1)
    found = np.searchsorted(facts.arrivals, arrivals)
    found[found == facts.arrivals.size] = 0
    return np.where(facts.arrivals[found] == arrivals, found, -1)


def _people(facts: RoomFacts, rows: Iterable[FactRow]) -> dict[str, str]:
    people = dict(zip(facts.sender_ids, facts.sender_names, strict=True))
    for row in rows:
        if not row.deleted:
            people[row.sender_id] = row.sender_name or people.get(row.sender_id, "")
    return people


def _untouched(facts: RoomFacts, rows: Sequence[FactRow]) -> Ints:
    """The places of the messages that no row speaks of."""
    if not rows or not facts.arrivals.size or rows[0].arrival > facts.arrivals[-1]:
        return np.arange(facts.arrivals.size)
    changed = np.array([row.arrival for row in rows], np.int64)
    return np.flatnonzero(~np.isin(facts.arrivals, changed))


def _columns(rows: Sequence[FactRow], codes: dict[str, int]) -> dict[str, np.ndarray]:
    return {
        "arrivals": np.array([row.arrival for row in rows], np.int64),
        "sent_at": np.array([row.sent_at for row in rows], np.int64),
        "senders": np.array([codes[row.sender_id] for row in rows], np.int64),
        "roles": np.array([_ROLE_CODES[row.role] for row in rows], np.int64),
        "lengths": np.array([row.length for row in rows], np.int64),
        "questions": np.array([row.question for row in rows], np.bool_),
        "parents": np.array([row.parent for row in rows], np.int64),
        "parent_odds": np.array([row.parent_odds for row in rows], np.float64),
        "threads": np.array([row.thread for row in rows], np.int64),
    }


def chosen(
    facts: RoomFacts, *, senders: Sequence[str] | None, since: datetime | None, until: datetime | None
) -> Ints | None:
    """Arrivals of the messages by these senders sent in [since, until); None where nothing was asked."""
    if senders is None and since is None and until is None:
        return None
    fits = np.ones(facts.arrivals.size, np.bool_)
    if senders is not None:
        wanted = [place for place, sender in enumerate(facts.sender_ids) if sender in set(senders)]
        fits &= np.isin(facts.senders, wanted)
    if since is not None:
        fits &= facts.sent_at >= to_micros(since)
    if until is not None:
        fits &= facts.sent_at < to_micros(until)
    return facts.arrivals[fits]


def to_micros(time: datetime) -> int:
    """Whole microseconds since 1970-01-01 UTC; a naive time is UTC."""
    aware = time if time.tzinfo else time.replace(tzinfo=UTC)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def from_micros(micros: int) -> datetime:
    """The time so many microseconds after 1970-01-01 UTC."""
    return _EPOCH + timedelta(microseconds=micros)
