"""The log of a scope as its past: what was in force at a time, what changed between two, and what a memory goes back
to."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from roomlore.core.memory.log import Versions
from roomlore.core.memory.models import Change, Memory, MemoryStatus
from roomlore.core.memory.past import MemoryDiff, Revised


@dataclass(frozen=True, slots=True)
class Touch:
    """What a change did to what is in force, without what it says. `active`: whether the version that it made or
    touched is active after it; None: as it was before."""

    number: int
    at: datetime
    memory_id: str
    closes: Sequence[str]
    active: bool | None

    @classmethod
    def of(cls, change: Change) -> "Touch":
        active = change.memory.status is MemoryStatus.ACTIVE
        return cls(change.number, change.at, change.memory.memory_id, change.closes, active)


class Walk:
    """Goes along a log, a page at a time, up to a moment.

    `in_force`: the active versions so far, each with the number of the change that it is as it is since. `number`: of
    the last change that counts. `read`: of the last one that was looked at. `done`: nothing more has to be read.

    Entries stand in the order in which they were made. Where clocks disagreed, an entry before one of that moment
    counts as made by then too; a whole page of later ones ends the walk.
    """

    def __init__(self, at: datetime, *, after: "Walk | None" = None) -> None:
        """`after`: begins where that walk ended."""
        self.at = at
        self.in_force: dict[str, int] = dict(after.in_force) if after else {}
        self.number: int = after.number if after else 0
        self.read = self.number
        self.done = False
        self._later: list[Touch] = []

    def take(self, page: Sequence[Touch]) -> None:
        """Takes in what follows what was read so far."""
        by_then = [place for place, one in enumerate(page, start=1) if one.at <= self.at]
        self.done = not by_then
        self.read = page[-1].number if page else self.read
        if not by_then:
            return
        for one in (*self._later, *page[: by_then[-1]]):
            self._apply(one)
        self._later = list(page[by_then[-1] :])

    def chosen(self, changes: Iterable[Change]) -> list[Memory]:
        """What is in force, the oldest lineage first; `changes`: of one scope, at least those that made it so."""
        found = (one.memory for one in changes if self.in_force.get(one.memory.memory_id) == one.number)
        return sorted(found, key=_oldest_first)

    def _apply(self, touch: Touch) -> None:
        self.number = touch.number
        stays = touch.memory_id in self.in_force if touch.active is None else touch.active
        for memory_id in (*touch.closes, touch.memory_id):
            self.in_force.pop(memory_id, None)
        if stays:
            self.in_force[touch.memory_id] = touch.number


def at_time(changes: Sequence[Change], at: datetime) -> list[Memory]:
    """What was in force at a time, the oldest lineage first; `changes`: the whole log."""
    walk = Walk(at)
    walk.take([Touch.of(change) for change in changes])
    return walk.chosen(changes)


def diff(
    scope: str,
    start: datetime,
    end: datetime,
    *,
    before: Iterable[Memory],
    after: Iterable[Memory],
    changes: Iterable[Change],
) -> MemoryDiff:
    """`before`, `after`: what is in force at `start` and at `end`; `changes`: those in between, in order."""
    was = {memory.lineage_id: memory for memory in sorted(before, key=_oldest_first)}
    now = {memory.lineage_id: memory for memory in sorted(after, key=_oldest_first)}
    stayed = [(old, now[name]) for name, old in was.items() if name in now]
    revised = [(old, new) for old, new in stayed if _says(old) != _says(new)]
    made_so: dict[str, list[Change]] = {old.lineage_id: [] for old, _ in revised}
    for change in changes:
        if change.memory.lineage_id in made_so:
            made_so[change.memory.lineage_id].append(change)
    return MemoryDiff(
        scope=scope,
        start=start,
        end=end,
        added=tuple(new for name, new in now.items() if name not in was),
        removed=tuple(old for name, old in was.items() if name not in now),
        changed=tuple(Revised(old, new, tuple(made_so[old.lineage_id])) for old, new in revised),
        unchanged=len(stayed) - len(revised),
    )


def origins(start: str, versions: Versions) -> tuple[dict[str, Memory], set[str]]:
    """What a version goes back to over its parents, itself included, by id; and the ids of parents that are not among
    these versions."""
    found: dict[str, Memory] = {}
    missing: set[str] = set()
    ahead = [start]
    while ahead:
        name = ahead.pop()
        if name not in versions:
            missing.add(name)
        elif name not in found:
            found[name] = versions[name]
            ahead += versions[name].parents
    return found, missing


def makers(logged: Iterable[Change]) -> dict[str, Change]:
    """The change that made each version, by its id; `logged`: what became of the versions, ascending."""
    found: dict[str, Change] = {}
    for change in logged:
        found.setdefault(change.memory.memory_id, change)
    return found


def _oldest_first(memory: Memory) -> tuple[datetime, str]:
    return memory.created_at, memory.lineage_id


def _says(memory: Memory) -> tuple[str, str]:
    """A version that was strengthened says what it said; one that was redacted does not."""
    return memory.memory_id, memory.statement
