"""Count what becomes of an export while it is read, and make the report of it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any

from roomlore.core.attachments import count_of
from roomlore.core.audience import NOTHING_TOLD, Move, RoomFacts, RoomKind, RoomPeople, audience_of
from roomlore.core.intake import IntakeResult, said_within
from roomlore.core.models import Message
from roomlore.core.records import UNKNOWN_SENDER, Bad, ExportRead, ImportConflict, ImportReport, Item, Parsed

_KEPT_BAD = 1_000
KEPT_FILES = 1_000
_KEPT_CONFLICTS = 1_000


@dataclass(slots=True)
class _RoomTally:
    """The kind and the moves in a room, as far as the export is read. `newest`: when the last of its messages was
    sent."""

    facts: RoomFacts = NOTHING_TOLD
    moves: list[tuple[Move, datetime]] = field(default_factory=list)
    newest: datetime | None = None

    def take(self, item: Parsed) -> None:
        """Take in a message. Of one whose time was estimated, who went was gone from the beginning of that time, and
        who came was there from its end on."""
        self.facts = item.room or self.facts
        since, until = said_within(item.message)
        if since is not None:
            self.newest = max(self.newest or since, since)
        if until is not None:
            self.moves += ((move, until if move.came else since or until) for move in item.moves)


@dataclass(slots=True)
class ImportTally:
    seen: int = 0
    added: int = 0
    duplicates: int = 0
    edited: int = 0
    older: int = 0
    deleted: int = 0
    archived: int = 0
    redacted: int = 0
    undated: int = 0
    unsigned: int = 0
    attachments: int = 0
    described: int = 0
    undescribed: int = 0
    bad_count: int = 0
    conflict_count: int = 0
    conflicts: list[tuple[str, str]] = field(default_factory=list)
    bad: list[Bad] = field(default_factory=list)
    rooms: dict[str, _RoomTally] = field(default_factory=dict)
    found: dict[str, RoomPeople] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)

    @property
    def read(self) -> int:
        there = self.duplicates + self.edited + self.older + self.deleted + self.archived + self.redacted
        return self.added + there + self.conflict_count

    def skip(self, bad: Bad) -> None:
        self.seen += 1
        self.bad_count += 1
        if len(self.bad) < _KEPT_BAD:
            self.bad.append(bad)

    def listen(self, batch: Sequence[Item], rooms: Collection[str]) -> list[str]:
        """Take in what the batch tells of these rooms; return those of which something was told for the first time."""
        parsed = [item for item in batch if isinstance(item, Parsed) and item.message.room_id in rooms]
        before = {room_id for room_id, tallied in self.rooms.items() if tallied.facts != NOTHING_TOLD}
        for item in parsed:
            self.rooms.setdefault(item.message.room_id, _RoomTally()).take(item)
        return [name for name, tallied in self.rooms.items() if tallied.facts != NOTHING_TOLD and name not in before]

    def moves(self) -> list[list[Any]]:
        """Return the moves as JSON."""
        return [
            [room_id, move.person, move.came, move.by_name, at.isoformat()]
            for room_id, tallied in self.rooms.items()
            for move, at in tallied.moves
        ]

    def remember(self, moves: Iterable[Sequence[Any]]) -> None:
        """Take in what `moves` returned before an import broke off."""
        for room_id, person, came, by_name, at in moves:
            tallied = self.rooms.setdefault(room_id, _RoomTally())
            tallied.moves.append((Move(person, came, by_name), datetime.fromisoformat(at)))

    def take(self, messages: Sequence[Message], results: Mapping[str, IntakeResult]) -> None:
        """Take in what became of a batch, except of messages that are gone or in conflict."""
        self.added += sum(len(result.added) for result in results.values())
        self.duplicates += sum(len(result.duplicates) for result in results.values())
        self.unsigned += sum(message.sender_id == UNKNOWN_SENDER for message in messages)
        added = {(room_id, message_id) for room_id, result in results.items() for message_id in result.added}
        self.attachments += sum(count_of(message) for message in messages if (message.room_id, message.id) in added)

    def conflict(self, message: Message) -> None:
        self.conflict_count += 1
        if len(self.conflicts) < _KEPT_CONFLICTS:
            self.conflicts.append((message.room_id, message.id))

    def report(
        self,
        name: str,
        *,
        format: str,  # noqa: A002 - the word users know
        time_zone: str | None,
        repaired: int,
        total_bytes: int,
        resumed: bool,
        now: datetime,
    ) -> ImportReport:
        """Return the report on the export at this path."""
        rooms = tuple(self.rooms)
        return ImportReport(
            **{count: getattr(self, count) for count in _COUNTS},
            format=format,
            conflicts=tuple(
                ImportConflict(room_id=room_id, title=self.titles.get(room_id, room_id), id=message_id)
                for room_id, message_id in self.conflicts
            ),
            bad=tuple(self.bad),
            repaired=repaired,
            total_bytes=total_bytes,
            rooms=rooms,
            titles=self.titles,
            resumed=resumed,
            time_zone=time_zone,
            files=(ExportRead(name=name, format=format, read=self.read, added=self.added, rooms=rooms),),
            kinds={room_id: people.kind for room_id, people in self.found.items()},
            members={
                room_id: len(audience_of(replace(people, kind=RoomKind.PRIVATE), now) or ())
                for room_id, people in self.found.items()
                if people.complete
            },
        )


_COUNTS = sorted(
    {field_.name for field_ in fields(ImportTally)}
    & {field_.name for field_ in fields(ImportReport) if field_.type is int}
)
"""What both the tally and the report count."""


def added_up(reports: Sequence[ImportReport]) -> ImportReport:
    """Return the report on several exports as one."""
    if len(reports) == 1:
        return reports[0]
    return ImportReport(
        **{count: sum(getattr(report, count) for report in reports) for count in (*_COUNTS, "repaired", "total_bytes")},
        format=", ".join(dict.fromkeys(report.format for report in reports)),
        conflicts=tuple(conflict for report in reports for conflict in report.conflicts)[:_KEPT_CONFLICTS],
        bad=tuple(bad for report in reports for bad in report.bad)[:_KEPT_BAD],
        rooms=tuple(dict.fromkeys(room_id for report in reports for room_id in report.rooms)),
        titles={room_id: title for report in reports for room_id, title in report.titles.items()},
        resumed=any(report.resumed for report in reports),
        time_zone=next((report.time_zone for report in reports if report.time_zone), None),
        kinds={room_id: kind for report in reports for room_id, kind in report.kinds.items()},
        members={room_id: count for report in reports for room_id, count in report.members.items()},
        exports=len(reports),
        files=tuple(file for report in reports for file in report.files)[:KEPT_FILES],
    )
