"""What checking a store found."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

Check = Literal[
    "unreadable",
    "log gap",
    "log entries",
    "log and tables",
    "versions",
    "head",
    "active",
    "merged into",
    "parents",
    "counters",
    "evolutions",
    "support",
    "watermarks",
    "message features",
    "message words",
    "word index",
    "room counters",
    "strays",
    "memory vectors",
    "message vectors",
]
_FORGET = "Where a forgetting was broken off, forget again first and verify then; else"
_BACKUP = (
    f"The log and the table of memories cannot both be right. {_FORGET} bring this scope back from a backup, and "
    "report it."
)
MENDS: Mapping[Check, str] = {
    "unreadable": "The row was written by somebody else, or damaged: bring it back from a backup.",
    "log gap": "Entries of the log are gone or came from elsewhere: bring the database back from a backup.",
    "log entries": "The entry was changed since it was written: bring this scope back from a backup.",
    "log and tables": _BACKUP,
    "versions": _BACKUP,
    "head": _BACKUP,
    "active": _BACKUP,
    "merged into": _BACKUP,
    "parents": "A version that this one followed is gone: bring this scope back from a backup.",
    "counters": "Set the columns `changes` and `active` of the scope's row in `memory_scopes` to what was found.",
    "evolutions": "The record in `evolutions` is gone: bring it back from a backup. The memories themselves are whole.",
    "support": "Set the rows of `memory_sources` to what the column `sources` of `memories` says.",
    "watermarks": "Set the column `arrival` of this mark in `watermarks` to the room's last arrival.",
    "message features": "Bring the row back from a backup: without it the message is not shown.",
    "message words": "Run `roomlore reindex --words`; of a deleted message set `words` to '' and `length` to 0.",
    "word index": "Fill the table `message_index` anew from `message_words`, as the page on checking a store shows.",
    "room counters": "Set the columns `messages` and `words` of the room's row in `rooms` to what was found.",
    "strays": "Delete the row: its message is gone, or was never there.",
    "memory vectors": "Run `roomlore reindex --vectors`.",
    "message vectors": f"{_FORGET} run `roomlore reindex --vectors`.",
}
"""What to do about a fault of each check."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is not as it must be. `check`: which check found it; `where`: the scope, room, memory, message or
    mark; `found`: what is wrong there, in a sentence."""

    check: Check
    where: str
    found: str

    @property
    def mend(self) -> str:
        """What to do about it."""
        return MENDS[self.check]


@dataclass(frozen=True, slots=True)
class Note:
    """Something to know that is no fault: evidence that was deleted since, an index that is behind, what could not be
    checked."""

    where: str
    found: str


@dataclass(frozen=True, slots=True)
class VerifyProgress:
    """How far a check has come."""

    scopes: int
    memories: int
    messages: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """What a check of one tenant found.

    `checked`: how many scopes, memories (versions), changes, sources, evolutions, rooms, messages (deleted ones too)
    and vectors were looked at. `faults`: at most `MOST_LISTED`; `counts`: how many there are in all, by check. `notes`:
    at most as many.
    """

    checked: Mapping[str, int]
    faults: tuple[Fault, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    started_at: datetime
    finished_at: datetime

    @property
    def sound(self) -> bool:
        """Whether no check found a fault."""
        return not self.counts


MOST_LISTED = 1000


class Findings:
    """Gathers what checks find; a broken store has more faults than anybody reads."""

    def __init__(self) -> None:
        self.checked: dict[str, int] = {}
        self.faults: list[Fault] = []
        self.counts: dict[str, int] = {}
        self.notes: list[Note] = []

    def saw(self, what: str, count: int) -> None:
        self.checked[what] = self.checked.get(what, 0) + count

    def add(self, faults: Iterable[Fault]) -> None:
        for fault in faults:
            self.counts[fault.check] = self.counts.get(fault.check, 0) + 1
            if len(self.faults) < MOST_LISTED:
                self.faults.append(fault)

    def note(self, where: str, found: str) -> None:
        if len(self.notes) < MOST_LISTED:
            self.notes.append(Note(where, found))

    def take(self, others: "Findings") -> None:
        """What other checks found, too."""
        for what, count in others.checked.items():
            self.saw(what, count)
        self.add(others.faults)
        for check, count in others.counts.items():
            self.counts[check] += count - sum(fault.check == check for fault in others.faults)
        for note in others.notes:
            self.note(note.where, note.found)

    def report(self, started_at: datetime, finished_at: datetime) -> VerifyReport:
        return VerifyReport(
            checked=self.checked,
            faults=tuple(self.faults),
            counts=self.counts,
            notes=tuple(self.notes),
            started_at=started_at,
            finished_at=finished_at,
        )
