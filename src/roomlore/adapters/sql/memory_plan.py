"""What changes do to the rows of a scope, reckoned before anything is written."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from roomlore.core.errors import Conflict, InvalidInput
from roomlore.core.memory.models import Action, Change, Memory, MemoryStatus, Source

_ACTIVE, _DEPRECATED = MemoryStatus.ACTIVE, MemoryStatus.DEPRECATED
_MADE_BY = {Action.CREATE, Action.UPDATE, Action.MERGE, Action.REVERT}
"""What makes a new version; REVERT may touch one that is there instead, as all others do."""
_AFTER = {
    Action.CREATE: _ACTIVE,
    Action.UPDATE: _ACTIVE,
    Action.MERGE: _ACTIVE,
    Action.DELETE: _DEPRECATED,
    Action.RESTORE: _ACTIVE,
}
_BEFORE = {Action.DELETE: _ACTIVE, Action.RESTORE: _DEPRECATED}
_STAYS = {Action.STRENGTH, Action.REDACT}


@dataclass(slots=True)
class VersionRow:
    """A row of `memories` as it is and as it will be.

    `key`: None where it is new. `elsewhere`: it is another scope's. `newest`: the highest version of its lineage.
    `sources`: those stored. `memory`: what its content becomes, None where that stays.
    """

    key: int | None
    memory_id: str
    lineage_id: str
    version: int
    status: MemoryStatus
    head: bool
    merged_into: str | None
    elsewhere: bool = False
    newest: int = 0
    sources: tuple[Source, ...] = ()
    memory: Memory | None = None
    changed: bool = False


class Plan:
    """Takes changes one after another. `rows`: by memory id, all that was read and made. `active`: how many more
    memories are active than before."""

    def __init__(self, stored: Iterable[VersionRow]) -> None:
        self.rows = {row.memory_id: row for row in stored}
        self.active = 0
        self._heads = {row.lineage_id: row for row in self.rows.values() if row.head}
        self._newest = {row.lineage_id: row.newest for row in self.rows.values()}

    def add(self, change: Change) -> None:
        """`Conflict` where the rows are not as the change takes them to be, `InvalidInput` where it contradicts
        itself."""
        _check_shape(change)
        self._check_parent(change)
        closed = [self._close(memory_id) for memory_id in change.closes]
        row = self.rows.get(change.memory.memory_id)
        row = self._make(change) if row is None else self._touch(change, row)
        self._keep_one_active(row)
        for other in closed:
            if other.lineage_id != row.lineage_id and other.memory_id in change.memory.parents:
                other.merged_into = row.lineage_id

    def changed(self) -> list[VersionRow]:
        """What has to be written. Versions that cease to be heads come first: a lineage never has two."""
        return sorted((row for row in self.rows.values() if row.changed), key=lambda row: row.head)

    def _check_parent(self, change: Change) -> None:
        """An update or a merge goes on from what its writer read."""
        head = self._heads.get(change.memory.lineage_id)
        if change.action in {Action.UPDATE, Action.MERGE} and (head is None or head.memory_id not in change.closes):
            _conflict(f"Memory {change.memory.memory_id!r} does not follow the version in force")

    def _close(self, memory_id: str) -> VersionRow:
        row = self.rows.get(memory_id)
        if row is None or row.elsewhere or row.status is not _ACTIVE:
            _conflict(f"Memory {memory_id!r} is not active here")
        self._turn(row, _DEPRECATED)
        return row

    def _make(self, change: Change) -> VersionRow:
        memory = change.memory
        if change.action not in _MADE_BY or memory.status is not _ACTIVE:
            _conflict(f"There is no memory {memory.memory_id!r} here")
        follows = memory.version == self._newest.get(memory.lineage_id, 0) + 1
        starts = memory.version == 1 and memory.lineage_id == memory.memory_id
        if not follows or starts != (change.action is Action.CREATE) or self._is_elsewhere(memory.lineage_id):
            _conflict(f"Memory {memory.memory_id!r} cannot be version {memory.version} of {memory.lineage_id!r}")
        row = VersionRow(None, memory.memory_id, memory.lineage_id, memory.version, _DEPRECATED, False, None)
        self.rows[memory.memory_id] = row
        self._newest[memory.lineage_id] = memory.version
        return self._write(row, memory)

    def _is_elsewhere(self, lineage_id: str) -> bool:
        head = self._heads.get(lineage_id)
        return head is not None and head.elsewhere

    def _touch(self, change: Change, row: VersionRow) -> VersionRow:
        memory = change.memory
        same = (row.lineage_id, row.version) == (memory.lineage_id, memory.version) and not row.elsewhere
        if not same or change.action in _MADE_BY - {Action.REVERT}:
            _conflict(f"The id {memory.memory_id!r} is taken")
        before = memory.status if change.action in _STAYS else _BEFORE.get(change.action, row.status)
        if row.status is not before:
            _conflict(f"Memory {memory.memory_id!r} is {row.status.value}")
        return self._write(row, memory)

    def _write(self, row: VersionRow, memory: Memory) -> VersionRow:
        row.memory = memory
        self._turn(row, memory.status)
        return row

    def _turn(self, row: VersionRow, status: MemoryStatus) -> None:
        self.active += (status is _ACTIVE) - (row.status is _ACTIVE)
        row.status, row.changed = status, True

    def _keep_one_active(self, row: VersionRow) -> None:
        """The active version is the head, and its lineage lives."""
        head = self._heads.get(row.lineage_id)
        if row.status is not _ACTIVE:
            return
        if head is not None and head is not row:
            if head.status is _ACTIVE:
                _conflict(f"Memory {head.memory_id!r} is active, beside {row.memory_id!r}")
            head.head, head.merged_into, head.changed = False, None, True
        row.head, row.merged_into = True, None
        self._heads[row.lineage_id] = row


def check_numbers(scope: str, last: int, changes: Sequence[Change]) -> None:
    """`Conflict` unless the numbers go on from the last one; `InvalidInput` where a change is another scope's."""
    for number, change in enumerate(changes, start=last + 1):
        if change.scope != scope or change.memory.scope != scope:
            raise InvalidInput(f"Change {change.number} is not of the scope {scope!r:.60}.")
        if change.number != number:
            _conflict(f"Change {change.number} of {scope!r:.60} does not follow number {number - 1}")


def _check_shape(change: Change) -> None:
    memory = change.memory
    if memory.status is not _AFTER.get(change.action, memory.status) or memory.memory_id in change.closes:
        raise InvalidInput(
            f"Change {change.number} ({change.action.value}) leaves memory {memory.memory_id!r} {memory.status.value} "
            "or closes it as well: that is not what it says it does."
        )


def _conflict(what: str) -> NoReturn:
    raise Conflict(f"{what}: read the scope again.")
