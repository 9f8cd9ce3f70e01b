"""Integrity checks: pure functions over what was read from the store."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Literal

from roomlore.core.json_values import in_json
from roomlore.core.memory.log import LogState, Snapshot, Touch, is_followed
from roomlore.core.memory.memory import Action, Change, Memory, MemoryStatus, Scope
from roomlore.core.privacy import has_mark

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
    "snapshots",
    "evolutions",
    "support",
    "watermarks",
    "message features",
    "message words",
    "word index",
    "room counters",
    "orphan rows",
    "archives",
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
    "snapshots": "Delete these rows of `memory_snapshots`: the log is read in their place; later changes add new ones.",
    "evolutions": "The record in `evolutions` is gone: bring it back from a backup. The memories themselves are whole.",
    "support": "Set the rows of `memory_sources` to what the column `sources` of `memories` says.",
    "watermarks": "Set the column `arrival` of this mark in `watermarks` to the room's last arrival.",
    "message features": "Bring the row back from a backup: without it the message is not shown.",
    "message words": "Run `roomlore reindex --words`; of a deleted message set `words` to '' and `length` to 0.",
    "word index": "Fill the table `message_index` anew from `message_words`, as the page on checking a store shows.",
    "room counters": "Set the columns `messages` and `words` of the room's row in `rooms` to what was found.",
    "orphan rows": "Delete the row: its message is gone, or was never there.",
    "archives": "Bring the file back from a backup, or set `archive_folder` to the folder that has it.",
    "memory vectors": "Run `roomlore reindex --vectors`.",
    "message vectors": f"{_FORGET} run `roomlore reindex --vectors`.",
}
"""The action to take for a fault of each check."""


@dataclass(frozen=True, slots=True)
class Fault:
    """An integrity error. `check`: the check that found it; `where`: the scope, room, memory, message or mark; `found`:
    a description, in a sentence."""

    check: Check
    where: str
    found: str

    @property
    @in_json
    def mend(self) -> str:
        """The action to take."""
        return MENDS[self.check]


@dataclass(frozen=True, slots=True)
class Note:
    """A remark that is not an error: evidence that was deleted since, an index that is behind, something that could not
    be checked."""

    where: str
    found: str


@dataclass(frozen=True, slots=True)
class VerifyProgress:
    """The progress of a check."""

    scopes: int
    memories: int
    messages: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """The result of checking one tenant.

    `checked`: the number of scopes, memories (versions), changes, sources, evolutions, rooms, messages (including
    deleted ones) and vectors that were checked. `faults`: at most 1,000. `counts`: how many faults there are, by
    check. `notes`: remarks that are not errors, at most 1,000.
    """

    checked: Mapping[str, int]
    faults: tuple[Fault, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    started_at: datetime
    finished_at: datetime

    @property
    @in_json
    def sound(self) -> bool:
        """True if no check found a fault."""
        return not self.counts


MAX_LISTED = 1000


class Findings:
    """Collects the findings of checks, up to the listed maximum."""

    def __init__(self) -> None:
        self.checked: dict[str, int] = {}
        self.faults: list[Fault] = []
        self.counts = Counter[str]()
        self.notes: list[Note] = []

    def saw(self, what: str, count: int) -> None:
        self.checked[what] = self.checked.get(what, 0) + count

    def add(self, faults: Iterable[Fault]) -> None:
        for fault in faults:
            self.counts[fault.check] += 1
            if len(self.faults) < MAX_LISTED:
                self.faults.append(fault)

    def keep_found_by(self, others: "Findings") -> None:
        """Drop the faults that earlier checks of the same did not find, if those have listed all that they found."""
        if len(others.faults) < MAX_LISTED:
            known = set(others.faults)
            self.counts.subtract(fault.check for fault in self.faults if fault not in known)
            self.counts = +self.counts
            self.faults = [fault for fault in self.faults if fault in known]

    def note(self, where: str, text: str) -> None:
        if len(self.notes) < MAX_LISTED:
            self.notes.append(Note(where, text))

    def take(self, others: "Findings") -> None:
        """Add the findings of other checks."""
        for what, count in others.checked.items():
            self.saw(what, count)
        self.add(others.faults)
        self.counts += others.counts - Counter(fault.check for fault in others.faults)
        for note in others.notes:
            self.note(note.where, note.found)

    def report(self, started_at: datetime, finished_at: datetime) -> VerifyReport:
        return VerifyReport(
            checked=self.checked,
            faults=tuple(self.faults),
            counts=dict(self.counts),
            notes=tuple(self.notes),
            started_at=started_at,
            finished_at=finished_at,
        )


_ACTIVE, _DEPRECATED = MemoryStatus.ACTIVE, MemoryStatus.DEPRECATED
_FOLLOWS = frozenset({Action.UPDATE, Action.MERGE})
_STAYS = frozenset({(_ACTIVE, _ACTIVE), (_DEPRECATED, _DEPRECATED)})
_TURNS = {
    Action.DELETE: frozenset({(_ACTIVE, _DEPRECATED)}),
    Action.RESTORE: frozenset({(_DEPRECATED, _ACTIVE)}),
    Action.STRENGTH: _STAYS,
    Action.REDACT: _STAYS,
    Action.SHARE: _STAYS,
    Action.REVERT: _STAYS | {(_ACTIVE, _DEPRECATED), (_DEPRECATED, _ACTIVE)},
}
"""The status changes that each action may make."""
_CALLER, _ROOMLORE = "caller", "roomlore"


def entry_faults(change: Change, versions: Mapping[str, Memory], head: str | None) -> Iterator[str]:
    """Yield the errors of the entry, as sentences. `versions`: of its scope, by id, before the entry; `head`: the
    version of its lineage that was last in force.

    Redacted text cannot be compared: a text with the mark matches every other. A reason is compared if the version
    keeps it too; for other entries it is stored once.
    """
    if not _fits(change, versions.get(change.memory.memory_id), head):
        yield f"Its action is {change.action.value}; what it did to {change.memory.memory_id} is something else."
    if (change.action is Action.REVERT) != (change.undoes is not None):
        yield f"Its action is {change.action.value}, and it takes back {change.undoes or 'no evolution'}."
    if not _alike(change.old_statement, _old_statement(change, versions)):
        yield "What it says was said before is not what was."
    why = _reason(change, versions.get(change.memory.memory_id))
    if not _alike(change.reason, why):
        yield "Its reason is not the one that the version keeps."


def _fits(change: Change, before: Memory | None, head: str | None) -> bool:
    memory, action = change.memory, change.action
    if before is None:
        return memory.status is _ACTIVE and _makes(change, head)
    if (before.status, memory.status) not in _TURNS.get(action, ()):
        return False
    same_shares = memory.shared_with == before.shared_with
    if action is Action.SHARE:
        return not same_shares
    if action is Action.STRENGTH:
        return same_shares and (change.evolution_id is not None or change.actor != _ROOMLORE)
    return action is not Action.REDACT or (change.evolution_id is None and change.actor != _CALLER)


def _makes(change: Change, head: str | None) -> bool:
    """Return True if the action makes such a version."""
    memory = change.memory
    if memory.version == 1 and memory.memory_id == memory.lineage_id:
        return change.action is Action.CREATE and all(is_followed(change, closed) for closed in change.closes)
    follows = change.closes == memory.parents[: len(change.closes)] and head in change.closes
    return follows and change.action is (Action.MERGE if len(change.closes) > 1 else Action.UPDATE)


def _old_statement(change: Change, versions: Mapping[str, Memory]) -> str | None:
    """Return the statement of the version that it replaced or touched; None if that was not in force."""
    old = versions.get(change.closes[0] if change.closes else change.memory.memory_id)
    return old.statement if old is not None and old.status is _ACTIVE else None


def _reason(change: Change, before: Memory | None) -> str:
    """Return the reason that the version keeps, or the entry's own if it keeps none."""
    memory, of_evolution = change.memory, change.evolution_id is not None
    if before is None:
        return memory.change_summary if of_evolution or memory.change_summary else change.reason
    deletes = change.action is Action.DELETE and (of_evolution or change.actor == _CALLER)
    unmakes = change.action is Action.REVERT and memory.status is _DEPRECATED and memory.evolution_id == change.undoes
    if not deletes and not unmakes:
        return change.reason
    return "" if memory.change_summary == before.change_summary and not change.reason else memory.change_summary


def _alike(text: str | None, other: str | None) -> bool:
    return text == other or any(text is not None and has_mark(text) for text in (text, other))


_FIELDS = tuple(field.name for field in fields(Memory))


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A row of the table of memories. `number`: the row's. `head`: it is its lineage's head; `merged_into`: the lineage
    that its own was merged into."""

    number: int
    memory: Memory
    head: bool
    merged_into: str | None


@dataclass(slots=True)
class _Lineage:
    versions: set[int]
    heads: list[StoredVersion]
    active: int = 0


class ScopeCheck:
    """Checks a scope. Takes the log in order, then the rows in any order, and returns the faults."""

    def __init__(self, scope: str) -> None:
        self._scope = scope
        self._faults: list[Fault] = []
        self._last = 0
        self._whole = True
        self._replayed: dict[str, Memory] = {}
        self._heads: dict[str, str] = {}
        self._merged: dict[str, str] = {}
        self._lineages: dict[str, _Lineage] = {}
        self._parents: dict[str, str] = {}
        self._rows: set[str] = set()
        self._state = LogState()
        self.evolutions: dict[str, str] = {}
        """The evolutions of changes and versions, by id, each with one place that names it."""

    def add_change(self, change: Change) -> None:
        """Add the next entry of the log."""
        self._follow(change.number)
        self._check_entry(change)
        self._state.add(Touch.of(change))
        for memory_id in change.closes:
            self._close(memory_id, change)
        memory = change.memory
        self._replayed[memory.memory_id] = memory
        self._note_evolution(change.evolution_id, f"change {change.number}")
        self._note_evolution(change.undoes, f"change {change.number}")
        if memory.status is _ACTIVE:
            self._heads[memory.lineage_id] = memory.memory_id
            self._merged.pop(memory.lineage_id, None)
        for memory_id in change.closes:
            other = self._replayed.get(memory_id)
            if other and other.lineage_id != memory.lineage_id and is_followed(change, memory_id):
                self._merged[other.lineage_id] = memory.lineage_id

    def skip_change(self, number: int, why: str) -> None:
        """Record an unreadable entry of the log."""
        self._follow(number)
        self._whole = False
        self._find("unreadable", f"change {number}", why)

    def check_snapshot(self, number: int, stored: Snapshot | None, why: str = "") -> None:
        """Check a snapshot after the entry that was added last, or after no entry at all. `stored`: None if it cannot
        be read."""
        where = f"snapshot {number}"
        if stored is None:
            self._find("snapshots", where, why)
        elif number != self._last:
            self._find("snapshots", where, f"The log has no such entry after {self._last}.")
        elif self._whole and stored != self._state.snapshot():
            self._find("snapshots", where, "It is not the state of the log after this entry.")

    def add_version(self, stored: StoredVersion) -> None:
        """Add a row of the table."""
        memory = stored.memory
        self._rows.add(memory.memory_id)
        self._parents.update(dict.fromkeys(memory.parents, memory.memory_id))
        self._note_evolution(memory.evolution_id, f"memory {memory.memory_id}")
        lineage = self._lineages.setdefault(memory.lineage_id, _Lineage(set(), []))
        lineage.versions.add(memory.version)
        lineage.active += memory.status is _ACTIVE
        if stored.head:
            lineage.heads.append(stored)
        self._compare(memory)

    def skip_version(self, memory_id: str, why: str) -> None:
        """Record an unreadable row."""
        self._rows.add(memory_id)
        self._replayed.pop(memory_id, None)
        self._find("unreadable", f"memory {memory_id}", why)

    def unknown_parents(self) -> list[str]:
        """Return the parents that are not in this scope, to be looked up elsewhere."""
        return sorted(self._parents.keys() - self._rows)

    def finish(self, scope: Scope, *, elsewhere: frozenset[str] = frozenset()) -> list[Fault]:
        """Return all faults. `scope`: its row. `elsewhere`: those of the `unknown_parents` that another scope has."""
        for memory_id in self._replayed:
            self._find("log and tables", f"memory {memory_id}", "The log has it, the table does not.")
        for lineage_id, lineage in self._lineages.items():
            self._check_lineage(lineage_id, lineage)
        for parent in self.unknown_parents():
            if parent not in elsewhere:
                self._find("parents", f"memory {self._parents[parent]}", f"Its parent {parent} is not there.")
        self._count("changes", scope.changes, self._last)
        self._count("active", scope.active, sum(lineage_.active for lineage_ in self._lineages.values()))
        return self._faults

    def _follow(self, number: int) -> None:
        if number != self._last + 1:
            self._find("log gap", f"change {number}", f"It follows number {self._last}.")
            self._whole = False
        self._last = number

    def _check_entry(self, change: Change) -> None:
        """Check an entry, unless one before it is missing, since its initial state is then unknown."""
        if self._whole:
            where, head = f"change {change.number}", self._heads.get(change.memory.lineage_id)
            for fault in entry_faults(change, self._replayed, head):
                self._find("log entries", where, fault)

    def _close(self, memory_id: str, change: Change) -> None:
        known = self._replayed.get(memory_id)
        if known is None:
            self._find("log and tables", f"change {change.number}", f"It closes {memory_id}, which no entry made.")
        else:
            self._replayed[memory_id] = replace(known, status=_DEPRECATED)

    def _compare(self, memory: Memory) -> None:
        expected = self._replayed.pop(memory.memory_id, None)
        where = f"memory {memory.memory_id}"
        if expected is None:
            self._find("log and tables", where, "The table has it, the log does not.")
        elif expected != memory:
            others = [name for name in _FIELDS if getattr(expected, name) != getattr(memory, name)]
            self._find("log and tables", where, f"The table and the log differ in {', '.join(others)}.")

    def _check_lineage(self, lineage_id: str, lineage: _Lineage) -> None:
        where = f"lineage {lineage_id}"
        if lineage.versions != set(range(1, len(lineage.versions) + 1)):
            self._find("versions", where, f"Its versions are {_shown(lineage.versions)}, not 1 to the last one.")
        if lineage.active > 1:
            self._find("active", where, f"{lineage.active} of its versions are active.")
        if len(lineage.heads) != 1:
            self._find("head", where, f"It has {len(lineage.heads)} heads.")
        for head in lineage.heads:
            self._check_head(lineage_id, lineage, head)

    def _check_head(self, lineage_id: str, lineage: _Lineage, head: StoredVersion) -> None:
        where, memory = f"lineage {lineage_id}", head.memory
        if self._heads.get(lineage_id) != memory.memory_id or (lineage.active and memory.status is not _ACTIVE):
            self._find("head", where, f"Its head is {memory.memory_id}, and by the log {self._heads.get(lineage_id)}.")
        expected = self._merged.get(lineage_id)
        if head.merged_into != expected:
            self._find("merged into", where, f"It was merged into {head.merged_into}, and by the log into {expected}.")
        elif expected is not None and expected not in self._lineages:
            self._find("merged into", where, f"It was merged into {expected}, which is not there.")

    def _count(self, name: str, stored: int, counted: int) -> None:
        if stored != counted:
            self._find("counters", f"its {name}", f"The scope's row says {stored}; there are {counted}.")

    def _note_evolution(self, evolution_id: str | None, where: str) -> None:
        if evolution_id is not None:
            self.evolutions.setdefault(evolution_id, where)

    def _find(self, check: Check, where: str, text: str) -> None:
        self._faults.append(Fault(check, f"scope {self._scope}, {where}", text))


def _shown(versions: set[int]) -> str:
    shown = sorted(versions)
    return ", ".join(map(str, shown[:20])) + (" ..." if len(shown) > 20 else "")


def supported(versions: Sequence[StoredVersion]) -> Iterator[tuple[str, str, int]]:
    """Yield room, message and row of every source."""
    return ((s.room_id, s.message_id, stored.number) for stored in versions for s in stored.memory.sources)
