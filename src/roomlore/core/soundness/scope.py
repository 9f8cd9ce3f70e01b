"""One scope: its log, replayed, against its versions as the tables have them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace

from roomlore.core.memory.models import Change, Memory, MemoryStatus, Scope
from roomlore.core.soundness.entries import entry_faults
from roomlore.core.soundness.report import Check, Fault

_ACTIVE, _DEPRECATED = MemoryStatus.ACTIVE, MemoryStatus.DEPRECATED
_FIELDS = tuple(field.name for field in fields(Memory))


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A row of the table of memories. `number`: the row's. `head`: it is its lineage's; `merged_into`: the lineage that
    its own was merged into."""

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
    """Is told the scope's log in order, then its rows in any, and then what is wrong."""

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
        self.evolutions: dict[str, str] = {}
        """What made changes and versions, by id, each with one place that names it."""

    def add_change(self, change: Change) -> None:
        """The next entry of the log."""
        self._follow(change.number)
        self._check_entry(change)
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
            if other and other.lineage_id != memory.lineage_id and memory_id in memory.parents:
                self._merged[other.lineage_id] = memory.lineage_id

    def skip_change(self, number: int, why: str) -> None:
        """An entry of the log that cannot be read."""
        self._follow(number)
        self._whole = False
        self._find("unreadable", f"change {number}", why)

    def add_version(self, stored: StoredVersion) -> None:
        """A row of the table."""
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
        """A row that cannot be read."""
        self._rows.add(memory_id)
        self._replayed.pop(memory_id, None)
        self._find("unreadable", f"memory {memory_id}", why)

    def strangers(self) -> list[str]:
        """The parents that are not in this scope; to be looked for elsewhere."""
        return sorted(self._parents.keys() - self._rows)

    def finish(self, scope: Scope, *, elsewhere: frozenset[str] = frozenset()) -> list[Fault]:
        """All that is wrong. `scope`: its row. `elsewhere`: those of the `strangers` that another scope has."""
        for memory_id in self._replayed:
            self._find("log and tables", f"memory {memory_id}", "The log has it, the table does not.")
        for lineage_id, lineage in self._lineages.items():
            self._check_lineage(lineage_id, lineage)
        for parent in self.strangers():
            if parent not in elsewhere:
                self._find("parents", f"memory {self._parents[parent]}", f"Its parent {parent} is not there.")
        self._count("changes", scope.changes, self._last)
        self._count("active", scope.active, sum(one.active for one in self._lineages.values()))
        return self._faults

    def _follow(self, number: int) -> None:
        if number != self._last + 1:
            self._find("log gap", f"change {number}", f"It follows number {self._last}.")
            self._whole = False
        self._last = number

    def _check_entry(self, change: Change) -> None:
        """Not where something before it is missing: nobody knows what it found."""
        if self._whole:
            where, head = f"change {change.number}", self._heads.get(change.memory.lineage_id)
            for found in entry_faults(change, self._replayed, head):
                self._find("log entries", where, found)

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

    def _count(self, name: str, stored: int, found: int) -> None:
        if stored != found:
            self._find("counters", f"its {name}", f"The scope's row says {stored}; there are {found}.")

    def _note_evolution(self, evolution_id: str | None, where: str) -> None:
        if evolution_id is not None:
            self.evolutions.setdefault(evolution_id, where)

    def _find(self, check: Check, where: str, found: str) -> None:
        self._faults.append(Fault(check, f"scope {self._scope}, {where}", found))


def _shown(versions: set[int]) -> str:
    shown = sorted(versions)
    return ", ".join(map(str, shown[:20])) + (" ..." if len(shown) > 20 else "")


def supported(versions: Sequence[StoredVersion]) -> Iterator[tuple[str, str, int]]:
    """Room, message and row of every source."""
    return ((s.room_id, s.message_id, stored.number) for stored in versions for s in stored.memory.sources)
