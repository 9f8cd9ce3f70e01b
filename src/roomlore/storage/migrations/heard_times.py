"""When messages of unknown time were said: two columns that the first version lacks, and what they hold for its rows.
Loads no Alembic, so a new database is made quickly.

The first version gave a message without a time that of the message before it, and believed times in the future. Such a
message was said between the certain ones around it, or until now. What rests on it, rests on all of that time.

Servers of the first version go on meanwhile: the columns are added in a transaction of their own (0023), each room is
filled in another one, and the last one widens what rests on them and says that all is done (0024). A message that is
not filled has no `heard_until`, so what a killed process left is found. No server of this version serves before 0024.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, text

from roomlore.storage.rows import escape, mapping_text, pairs_text, read_mapping, unescape

ADDED, MADE = "0023", "0024"
"""The revisions: the columns are there, and they are filled."""
_DAY = 86_400_000_000
_AT_ONCE = 1000
_NOW = {
    "sqlite": "SELECT CAST(strftime('%s', 'now') AS INTEGER) * 1000000",
    "postgresql": "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)",
}
_ROOMS = text("""
SELECT room_key FROM rooms r WHERE EXISTS (
    SELECT 1 FROM messages m
    WHERE m.room_key = r.room_key AND m.heard_until IS NULL AND (m.sent_at_estimated OR m.sent_at > :ahead)
) ORDER BY room_key""")
_FILLED = text("""
SELECT r.tenant, r.room_id, m.sent_at, coalesce(m.heard_from, m.sent_at), m.heard_until
FROM messages m JOIN rooms r ON r.room_key = m.room_key WHERE m.heard_until IS NOT NULL
""")
_MESSAGES = text("""
SELECT arrival, sent_at, sent_at_estimated, heard_from, heard_until,
       CASE WHEN role = 'user' AND deleted_at IS NULL THEN sender_id END AS person
FROM messages WHERE room_key = :room ORDER BY arrival
""")
_SET_MESSAGE = text("""
UPDATE messages SET sent_at = :sent_at, sent_at_estimated = :estimated, heard_from = :since, heard_until = :until
WHERE room_key = :room AND arrival = :arrival AND heard_until IS NULL
""")
_SET_FIRST = text("""
UPDATE participants SET first_spoke_at = :at WHERE room_key = :room AND sender_id = :person AND first_spoke_at = :was
""")
_SET_LAST = text("""
UPDATE participants SET last_spoke_at = :at WHERE room_key = :room AND sender_id = :person AND last_spoke_at = :was
""")
_SET_ROOM = text("UPDATE rooms SET last_sent_at = :at WHERE room_key = :room AND last_sent_at > :ahead")
_MEMORIES = text("""
SELECT memory_key, tenant, evidence FROM memories WHERE memory_key > :after AND evidence <> '[]'
ORDER BY memory_key LIMIT :most
""")
_SET_MEMORY = text("UPDATE memories SET evidence = :evidence WHERE memory_key = :key")
_SCOPES = text("SELECT scope_key FROM memory_scopes ORDER BY scope_key")
_CHANGES = text("""
SELECT number, tenant, memory FROM memory_changes WHERE scope_key = :scope AND number > :after
ORDER BY number LIMIT :most
""")
_SET_CHANGE = text("UPDATE memory_changes SET memory = :memory WHERE scope_key = :scope AND number = :number")
Ints = NDArray[np.int64]


def add_columns(connection: Connection) -> None:
    for column in ("heard_from", "heard_until"):
        connection.exec_driver_sql(f"ALTER TABLE messages ADD COLUMN {column} BIGINT")


def fill_rooms(connection: Connection, run: Callable[[Callable[[], None]], None]) -> None:
    """Fill the columns for what the first version stored, room by room. `run`: runs the step of a room."""
    now = int(connection.exec_driver_sql(_NOW[connection.dialect.name]).scalar_one())
    for (room,) in connection.execute(_ROOMS, {"ahead": now + _DAY}).all():
        run(partial(_fill_room, connection, room, now))


def widen_evidence(connection: Connection) -> None:
    """Widen the evidence of memories, and of the versions in their log, that rests on messages of uncertain time."""
    times_by_room: dict[tuple[str, str], list[tuple[int, int, int]]] = defaultdict(list)
    for tenant, room_id, *times in connection.execute(_FILLED):
        times_by_room[tenant, room_id].append((times[0], times[1], times[2]))
    if times_by_room:
        _widen(connection, {room: _Said(*np.array(sorted(its), np.int64).T) for room, its in times_by_room.items()})


@dataclass(frozen=True, slots=True)
class _Said:
    """The messages of a room whose time was not certain, by the time they had: the time from when until when each was
    said."""

    had: Ints
    since: Ints
    until: Ints

    def widened(self, first: int, last: int) -> tuple[int, int]:
        """Return the time of evidence with that of the messages that it may rest on."""
        begin, end = np.searchsorted(self.had, first), np.searchsorted(self.had, last, side="right")
        if begin == end:
            return first, last
        return min(first, int(self.since[begin:end].min())), max(last, int(self.until[begin:end].max()))


def _fill_room(connection: Connection, room: int, now: int) -> None:
    rows = connection.execute(_MESSAGES, {"room": room}).all()
    ahead = now + _DAY
    certain = [
        since == until if until is not None else not estimated and sent_at <= ahead
        for _, sent_at, estimated, since, until, _ in rows
    ]
    after: list[int | None] = []
    following: int | None = None
    for (_, sent_at, _, _, heard, _), sure in zip(reversed(rows), reversed(certain), strict=True):
        after.append(following)
        following = (heard or sent_at) if sure else following
    after.reverse()
    changes: list[dict[str, Any]] = []
    times: list[tuple[int, int]] = []
    last: int | None = None
    for (arrival, sent_at, estimated, *heard, _), sure, until in zip(rows, certain, after, strict=True):
        if sure or heard[1] is not None:
            times.append((sent_at, sent_at) if heard[1] is None else (heard[0], heard[1]))
            last = times[-1][1] if sure else last
            continue
        since = last if last is not None else min(sent_at, until or now)
        end = now if until is None or until < since else until
        since = min(since, until or since)
        kept = since if estimated and sent_at > ahead else sent_at
        if estimated:
            since, end = min(since, kept), max(end, kept)
        times.append((since, end))
        changes.append(
            {"room": room, "arrival": arrival, "sent_at": kept, "estimated": True, "since": since, "until": end}
        )
    _in_parts(connection, _SET_MESSAGE, changes)
    _set_people(connection, room, rows, times)
    newest = next((at for at in reversed([row[1] for row in rows]) if at <= ahead), now)
    connection.execute(_SET_ROOM, {"room": room, "at": newest, "ahead": ahead})


def _set_people(
    connection: Connection, room: int, rows: Sequence[Sequence[Any]], times: Sequence[tuple[int, int]]
) -> None:
    """Set when people first and last spoke for certain, where that followed from a message whose time is not."""
    times_by_person: dict[str, list[tuple[int, tuple[int, int]]]] = defaultdict(list)
    for (_, sent_at, *_, person), its in zip(rows, times, strict=True):
        if person is not None:
            times_by_person[person].append((sent_at, its))
    firsts, lasts = [], []
    for person, message_times in times_by_person.items():
        named = {"room": room, "person": person}
        had = [sent_at for sent_at, _ in message_times]
        firsts.append(named | {"was": min(had), "at": min(until for _, (_, until) in message_times)})
        lasts.append(named | {"was": max(had), "at": max(since for _, (since, _) in message_times)})
    _in_parts(connection, _SET_FIRST, firsts)
    _in_parts(connection, _SET_LAST, lasts)


def _widen(connection: Connection, times: dict[tuple[str, str], _Said]) -> None:

    def widened(tenant: str, evidence: Iterable[Sequence[Any]]) -> list[tuple[Any, ...]]:
        return [
            (room_id, *its.widened(first, last)) if (its := times.get((tenant, room_id))) else (room_id, first, last)
            for room_id, first, last in evidence
        ]

    def memories(after: int) -> tuple[list[Any], list[dict[str, Any]]]:
        rows = connection.execute(_MEMORIES, {"after": after, "most": _AT_ONCE}).all()
        read = [(key, tenant, json.loads(unescape(memory_text))) for key, tenant, memory_text in rows]
        made = [(key, old, widened(tenant, old)) for key, tenant, old in read]
        return [row[0] for row in rows], [
            {"key": key, "evidence": escape(pairs_text(new))} for key, old, new in made if list(map(tuple, old)) != new
        ]

    _pages(connection, _SET_MEMORY, memories)
    for (scope,) in connection.execute(_SCOPES).all():

        def changes(after: int, scope: int = scope) -> tuple[list[Any], list[dict[str, Any]]]:
            rows = connection.execute(_CHANGES, {"scope": scope, "after": after, "most": _AT_ONCE}).all()
            read = [(number, tenant, read_mapping(unescape(logged))) for number, tenant, logged in rows]
            made = [(number, logged, widened(tenant, logged.get("evidence", ()))) for number, tenant, logged in read]
            return [row[0] for row in rows], [
                {"scope": scope, "number": number, "memory": escape(mapping_text({**logged, "evidence": new}))}
                for number, logged, new in made
                if list(map(tuple, logged.get("evidence", ()))) != new
            ]

        _pages(connection, _SET_CHANGE, changes)


def _pages(
    connection: Connection, statement: Any, page: Callable[[int], tuple[list[Any], list[dict[str, Any]]]]
) -> None:
    after = 0
    while True:
        read, changes = page(after)
        _in_parts(connection, statement, changes)
        if len(read) < _AT_ONCE:
            return
        after = read[-1]


def _in_parts(connection: Connection, statement: Any, rows: Sequence[dict[str, Any]]) -> None:
    for start in range(0, len(rows), _AT_ONCE):
        connection.execute(statement, rows[start : start + _AT_ONCE])
