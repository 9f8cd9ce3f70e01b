"""What adding, changing and deleting memories comes to, as changes of their scope's log."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from roomlore.core.errors import Conflict
from roomlore.core.memory.intake import Edit, Keep, NewMemory, normal
from roomlore.core.memory.models import Action, Change, Memory, MemoryKind, MemoryStatus

Outcome = Literal["added", "updated", "unchanged", "conflict"]


@dataclass(frozen=True, slots=True)
class Remembered:
    """What became of something that was to be remembered, and the memory that is there now.

    `unchanged`: it was there already, under this id or in these words. `updated`: an importer brought in what had
    changed. `conflict`: its id is there with other content, which stays.
    """

    outcome: Outcome
    memory: Memory


@dataclass(frozen=True, slots=True)
class Lineage:
    """A version that is there, what is in force for it (the head of its lineage, or of the one that this was merged
    into), and the number of the newest version of that lineage."""

    named: Memory
    head: Memory
    newest: int

    def says(self, new: NewMemory) -> bool:
        """Whether this is nothing new: what is in force says it, or the version of this id did."""
        return _same(new, self.head) or _same(new, self.named)


class InForce:
    """The active memories of one kind in a scope by what they say, as they were after change `number`."""

    def __init__(self, kind: MemoryKind, number: int = 0, memories: Iterable[Memory] = ()) -> None:
        self.kind = kind
        self.number = number
        self._said: dict[str, tuple[Memory, ...]] = {}
        self._where: dict[str, str] = {}
        for memory in memories:
            self._put(memory)

    def __len__(self) -> int:
        return len(self._where)

    def copy(self) -> "InForce":
        other = InForce(self.kind, self.number)
        other._said, other._where = self._said.copy(), self._where.copy()
        return other

    def follow(self, changes: Iterable[Change]) -> None:
        """Takes in the changes of the scope that came after, in their order; those before are passed over."""
        for change in changes:
            if change.number > self.number:
                self.number = change.number
                self._take_in(change)

    def saying(self, statement: str, *, beside: str = "") -> Memory | None:
        """A memory that says the same, of another lineage than `beside`."""
        found = self._said.get(normal(statement), ())
        return next((memory for memory in found if memory.lineage_id != beside), None)

    def all_saying(self, statement: str) -> tuple[Memory, ...]:
        """Every memory that says the same."""
        return self._said.get(normal(statement), ())

    def _take_in(self, change: Change) -> None:
        for memory_id in (*change.closes, change.memory.memory_id):
            self._drop(memory_id)
        if change.memory.status is MemoryStatus.ACTIVE and change.memory.kind is self.kind:
            self._put(change.memory)

    def _put(self, memory: Memory) -> None:
        said = self._where[memory.memory_id] = normal(memory.statement)
        self._said[said] = (*self._said.get(said, ()), memory)

    def _drop(self, memory_id: str) -> None:
        said = self._where.pop(memory_id, None)
        if said is None:
            return
        rest = tuple(memory for memory in self._said.pop(said) if memory.memory_id != memory_id)
        if rest:
            self._said[said] = rest


class Additions:
    """Adds to one scope, one memory after another. `changes`: what that comes to so far.

    `in_force`: by kind, all as after change `number`, the last one of the scope; it is taken along. `known`: the
    lineages of the ids that are asked for, by these ids. `refresh`: what the same maker brought before is brought up to
    date where nobody else changed it since, and is no conflict.
    """

    def __init__(
        self,
        in_force: Mapping[MemoryKind, InForce],
        known: Mapping[str, Lineage],
        *,
        now: datetime,
        new_id: Callable[[], str],
        number: int,
        refresh: bool = False,
    ) -> None:
        self.changes: list[Change] = []
        self._number = number
        self._in_force = in_force
        self._known = dict(known)
        self._now = now
        self._new_id = new_id
        self._refresh = refresh

    def add(self, new: NewMemory) -> Remembered:
        lineage = self._known.get(new.memory_id) if new.memory_id is not None else None
        if lineage is not None:
            return self._again(new, lineage)
        there = self._in_force[new.kind].saying(new.statement)
        return Remembered("unchanged", there) if there is not None else self._create(new)

    def _create(self, new: NewMemory) -> Remembered:
        made = first_version(new, new.memory_id if new.memory_id is not None else self._new_id(), self._now)
        self._log(Action.CREATE, made, new)
        self._known[made.memory_id] = Lineage(made, made, 1)
        return Remembered("added", made)

    def _again(self, new: NewMemory, lineage: Lineage) -> Remembered:
        if lineage.says(new):
            return Remembered("unchanged", lineage.head)
        if not self._refresh or not _is_ours(new, lineage.head):
            return Remembered("conflict", lineage.head)
        elsewhere = self._in_force[new.kind].saying(new.statement, beside=lineage.head.lineage_id)
        return Remembered("conflict", elsewhere) if elsewhere is not None else self._update(new, lineage)

    def _update(self, new: NewMemory, lineage: Lineage) -> Remembered:
        head = lineage.head
        first = first_version(new, self._new_id(), self._now)
        made = replace(
            first,
            lineage_id=head.lineage_id,
            version=lineage.newest + 1,
            parents=(head.memory_id,),
            created_at=head.created_at,
        )
        self._log(Action.UPDATE, made, new, before=head)
        self._known[lineage.named.memory_id] = Lineage(lineage.named, made, made.version)
        return Remembered("updated", made)

    def _log(self, action: Action, memory: Memory, new: NewMemory, before: Memory | None = None) -> None:
        change = Change(
            number=self._number + len(self.changes) + 1,
            scope=memory.scope,
            action=action,
            memory=memory,
            closes=(before.memory_id,) if before else (),
            old_statement=before.statement if before else None,
            reason=new.reason,
            actor=new.made_by,
            at=self._now,
        )
        self._in_force[new.kind].follow([change])
        self.changes.append(change)


def first_version(new: NewMemory, memory_id: str, now: datetime) -> Memory:
    """A memory as it begins. What is said to be of the future is of now."""
    created = min(new.created_at or now, now)
    updated = max(created, min(new.updated_at or new.created_at or now, now))
    return Memory(
        memory_id=memory_id,
        lineage_id=memory_id,
        scope=new.scope,
        kind=new.kind,
        statement=new.statement,
        confidence=new.confidence,
        category=new.category,
        tags=tuple(new.tags),
        sources=tuple(new.sources),
        made_by=new.made_by,
        created_at=created,
        updated_at=updated,
        supported_at=updated,
    )


def edited(head: Memory, edit: Edit) -> Memory:
    """The head with what the edit changes; itself where that is nothing."""
    wanted = replace(
        head,
        statement=head.statement if edit.statement is None else edit.statement,
        category=head.category if edit.category is None else edit.category,
        tags=head.tags if edit.tags is None else tuple(edit.tags),
        sources=head.sources if edit.sources is None else tuple(edit.sources),
    )
    return wanted if isinstance(edit.confidence, Keep) else replace(wanted, confidence=edit.confidence)


def update(
    head: Memory, wanted: Memory, *, memory_id: str, version: int, number: int, reason: str, now: datetime
) -> Change:
    """A caller's change of what is in force."""
    made = replace(
        wanted,
        memory_id=memory_id,
        version=version,
        parents=(head.memory_id,),
        change_summary=reason,
        evolution_id=None,
        made_by="caller",
        fallback=False,
        updated_at=max(now, head.updated_at),
        supported_at=max(now, head.supported_at),
    )
    return Change(
        number=number,
        scope=head.scope,
        action=Action.UPDATE,
        memory=made,
        closes=made.parents,
        old_statement=head.statement,
        reason=reason,
        at=now,
    )


def deletion(head: Memory, *, number: int, reason: str, now: datetime) -> Change:
    gone = replace(head, status=MemoryStatus.DEPRECATED, change_summary=reason or head.change_summary)
    return Change(
        number=number,
        scope=head.scope,
        action=Action.DELETE,
        memory=gone,
        old_statement=head.statement,
        reason=reason,
        at=now,
    )


def expect(head: Memory, expected: str | None) -> None:
    """`Conflict` unless the caller saw what is in force."""
    if expected is not None and expected != head.memory_id:
        raise Conflict(f"Memory {expected!r:.80} is not in force any more: {head.memory_id!r:.80} is. Read it again.")


def _same(new: NewMemory, memory: Memory) -> bool:
    """Sources may have been added since."""
    said = (new.scope, new.kind, new.statement, new.confidence, new.category, tuple(new.tags))
    stored = (memory.scope, memory.kind, memory.statement, memory.confidence, memory.category, memory.tags)
    return said == stored and set(new.sources) <= set(memory.sources)


def _is_ours(new: NewMemory, head: Memory) -> bool:
    """What its maker said last is in force, and this is no older."""
    last_said = new.updated_at or new.created_at
    in_force = head.status is MemoryStatus.ACTIVE and (head.scope, head.kind) == (new.scope, new.kind)
    return in_force and head.made_by == new.made_by and (last_said is None or last_said >= head.updated_at)
