"""Versions of memories: those that are added, changed and deleted, and those in force."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from roomlore.core.audience import EvidenceRoom, Viewer, evidence_of
from roomlore.core.errors import Conflict
from roomlore.core.memory.memory import (
    Action,
    Change,
    Memory,
    MemoryKind,
    MemoryStatus,
    Source,
)
from roomlore.core.memory.writing import MAX_PEOPLE, Edit, Keep, NewMemory, check_span, instant, normal
from roomlore.core.models import Origin
from roomlore.core.safety import PINNED, is_declared


@dataclass(frozen=True, slots=True)
class Skipped:
    """An entry that was not imported. `place`: its position, such as 'facts[3]' or 'line 12'."""

    place: str
    reason: str
    excerpt: str


@dataclass(frozen=True, slots=True)
class ImportedMemories:
    """Another system's memories, each with its position, and the unreadable entries."""

    form: str
    memories: tuple[tuple[str, NewMemory], ...]
    skipped: tuple[Skipped, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FactImport:
    """The result of importing another system's memories.

    `updated`: they changed there since the last import. `unchanged`: they existed already. `scopes`: the scopes
    concerned. `dry_run`: nothing was written; this is the expected result.
    """

    form: str
    added: int
    updated: int
    unchanged: int
    skipped: tuple[Skipped, ...]
    scopes: tuple[str, ...]
    dry_run: bool = False


Outcome = Literal["added", "updated", "unchanged", "conflict"]


@dataclass(frozen=True, slots=True)
class Remembered:
    """The outcome of adding a memory, and the present memory.

    `unchanged`: it existed already, under this id or with this statement. `updated`: an importer brought a newer
    version. `conflict`: its id exists with other content, which stays.
    """

    outcome: Outcome
    memory: Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedFact(Memory):
    """The current version of a fact that was to be added. `outcome`: unchanged if it was there already, under this id
    or in these words. `notes`: that nothing is known of a person with the id in its scope, and who may be meant;
    `people_meant`: their ids, the likeliest first."""

    outcome: Literal["added", "unchanged"]
    notes: tuple[str, ...] = ()
    people_meant: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Lineage:
    """A stored version, the version in force for it (the head of its lineage, or of the one it was merged into), and
    the number of the newest version of that lineage."""

    named: Memory
    head: Memory
    newest: int

    def says(self, new: NewMemory) -> bool:
        """Return True if this is nothing new: the version in force says it, or the version with this id did."""
        return _same(new, self.head) or _same(new, self.named)


def said_there_now(new: NewMemory, viewer: Viewer, now: datetime) -> NewMemory:
    """Return a new memory as a viewer adds it: without a message to cite, what a room adds was said there and then."""
    if viewer.kind != "room" or new.sources or new.evidence:
        return new
    return replace(new, evidence=(EvidenceRoom(viewer.id, now, now),))


KnownTo = Callable[[Memory, Sequence[EvidenceRoom]], bool]
"""Tells if those who heard the evidence may know the memory."""


def said_there(memory: Memory, evidence: Sequence[EvidenceRoom]) -> bool:
    """Return True if the memory was said in no other rooms than this evidence."""
    return {room.room_id for room in memory.evidence} <= {room.room_id for room in evidence}


def heard_there(memory: Memory, evidence: Sequence[EvidenceRoom]) -> bool:
    """Return True if whoever was told all of this evidence was told the memory: it was said in no other rooms, nor
    before or after."""
    spans = {room.room_id: room for room in evidence}
    return all(
        room.room_id in spans and spans[room.room_id].first <= room.first and room.last <= spans[room.room_id].last
        for room in memory.evidence
    )


class InForce:
    """The active memories of one kind in a scope by statement, as of change `number`. `created_at`: when the scope was
    created, None if it was not there."""

    def __init__(
        self,
        kind: MemoryKind,
        number: int = 0,
        memories: Iterable[Memory] = (),
        *,
        created_at: datetime | None = None,
    ) -> None:
        self.kind = kind
        self.number = number
        self.created_at = created_at
        self._said: dict[str, tuple[Memory, ...]] = {}
        self._where: dict[str, str] = {}
        for memory in memories:
            self._put(memory)

    def __len__(self) -> int:
        return len(self._where)

    def copy(self) -> "InForce":
        other = InForce(self.kind, self.number, created_at=self.created_at)
        other._said, other._where = self._said.copy(), self._where.copy()
        return other

    def follow(self, changes: Iterable[Change]) -> None:
        """Apply the later changes of the scope, in order; earlier ones are skipped."""
        for change in changes:
            if change.number > self.number:
                self.number = change.number
                self._take_in(change)

    def saying(
        self, statement: str, evidence: Sequence[EvidenceRoom], *, known_to: KnownTo = said_there, beside: str = ""
    ) -> Memory | None:
        """Return a memory with the same statement, of another lineage than `beside`, that those who heard this evidence
        may know: what was said elsewhere may not keep a memory from those who may not know that."""
        same = self._said.get(normal(statement), ())
        return next((memory for memory in same if memory.lineage_id != beside and known_to(memory, evidence)), None)

    def all_saying(self, statement: str) -> tuple[Memory, ...]:
        """Return every memory with the same statement."""
        return self._said.get(normal(statement), ())

    def _take_in(self, change: Change) -> None:
        for memory_id in (*change.closes, change.memory.memory_id):
            self._drop(memory_id)
        if change.memory.status is MemoryStatus.ACTIVE and change.memory.kind is self.kind:
            self._put(change.memory)

    def _put(self, memory: Memory) -> None:
        statement = self._where[memory.memory_id] = normal(memory.statement)
        self._said[statement] = (*self._said.get(statement, ()), memory)

    def _drop(self, memory_id: str) -> None:
        statement = self._where.pop(memory_id, None)
        if statement is None:
            return
        rest = tuple(memory for memory in self._said.pop(statement) if memory.memory_id != memory_id)
        if rest:
            self._said[statement] = rest


class Additions:
    """Adds memories to one scope, one after another. `changes`: the changes so far.

    `in_force`: by kind, all as of change `number`, the last one of the scope; it is updated. `known`: the lineages of
    the given ids, by these ids. `refresh`: memories that the same maker brought before are updated if nobody else
    changed them since, instead of being a conflict.
    """

    def __init__(
        self,
        in_force: Mapping[MemoryKind, InForce],
        known: Mapping[str, Lineage],
        *,
        now: datetime,
        new_id: Callable[[], str],
        number: int,
        known_to: KnownTo = said_there,
        refresh: bool = False,
    ) -> None:
        self.changes: list[Change] = []
        self._known_to: KnownTo = lambda memory, evidence: memory.holds(now) and known_to(memory, evidence)
        self._number = number
        self._in_force = in_force
        self._known = dict(known)
        self._now = now
        self._new_id = new_id
        self._refresh = refresh

    def add(self, new: NewMemory) -> Remembered:
        lineage = self._known.get(new.memory_id) if new.memory_id is not None else None
        if lineage is not None:
            return self._add_existing(new, lineage)
        there = self._in_force[new.kind].saying(new.statement, new.evidence, known_to=self._known_to)
        return Remembered("unchanged", there) if there is not None else self._create(new)

    def _create(self, new: NewMemory) -> Remembered:
        """Make a memory. One for all takes the place of those that say the same to fewer, if nothing is lost by it. It
        has nothing of theirs, as that could tell others what was said where they were not."""
        same = () if new.evidence else self._in_force[new.kind].all_saying(new.statement)
        narrower = [memory for memory in same if memory.holds(self._now) and _covers(new, memory, self._now)]
        made = first_version(new, new.memory_id if new.memory_id is not None else self._new_id(), self._now)
        self._log(Action.CREATE, made, new, closes=narrower)
        self._known[made.memory_id] = Lineage(made, made, 1)
        return Remembered("added", made)

    def _add_existing(self, new: NewMemory, lineage: Lineage) -> Remembered:
        if lineage.says(new):
            return Remembered("unchanged", lineage.head)
        if not self._refresh or not _is_unchanged_by_others(new, lineage.head):
            return Remembered("conflict", lineage.head)
        elsewhere = self._in_force[new.kind].saying(
            new.statement, new.evidence, known_to=self._known_to, beside=lineage.head.lineage_id
        )
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
        self._log(Action.UPDATE, made, new, closes=[head])
        self._known[lineage.named.memory_id] = Lineage(lineage.named, made, made.version)
        return Remembered("updated", made)

    def _log(self, action: Action, memory: Memory, new: NewMemory, *, closes: Sequence[Memory]) -> None:
        change = Change(
            number=self._number + len(self.changes) + 1,
            scope=memory.scope,
            action=action,
            memory=memory,
            closes=tuple(old.memory_id for old in closes),
            old_statement=closes[0].statement if closes else None,
            reason=new.reason,
            actor=new.made_by,
            at=self._now,
        )
        self._in_force[new.kind].follow([change])
        self.changes.append(change)


def _covers(new: NewMemory, old: Memory, now: datetime) -> bool:
    """Return True if nothing is lost when the new memory takes the place of the old one: it holds now, for as long, and
    comes as early."""
    begins, ends = instant(new.valid_from), instant(new.valid_until)
    begun = begins is None or begins <= now
    lasts = ends is None or (old.valid_until is not None and ends >= old.valid_until)
    return begun and lasts and (not _comes_first(old.category, old.tags) or _comes_first(new.category, new.tags))


def _comes_first(category: str | None, tags: Sequence[str]) -> bool:
    return is_declared(category or "") or PINNED in (category, *tags)


def first_version(new: NewMemory, memory_id: str, now: datetime) -> Memory:
    """Return the first version of a memory. Times in the future become now."""
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
        owner=new.owner,
        said_by=tuple(new.said_by),
        valid_from=instant(new.valid_from),
        valid_until=instant(new.valid_until),
        sources=tuple(new.sources),
        evidence=tuple(new.evidence),
        made_by=new.made_by,
        created_at=created,
        updated_at=updated,
        supported_at=updated,
    )


def said_in(sources: Iterable[Source], origins: Mapping[Source, Origin]) -> list[tuple[str, datetime]]:
    """Return the room and the times of each of these messages, of sending and of the last edit, without unknown
    ones."""
    return [
        (source.room_id, at)
        for source in sources
        if source in origins
        for at in (origins[source].first, origins[source].last)
    ]


def senders(
    sources: Iterable[Source], origins: Mapping[Source, Origin], *, known: Iterable[str] = ()
) -> tuple[str, ...]:
    """Return who is known to have said it, and the senders of these messages: each once, at most 100."""
    sender_ids = (origins[source].sender_id for source in sources if source in origins)
    return tuple(dict.fromkeys((*known, *filter(None, sender_ids))))[:MAX_PEOPLE]


def edited(head: Memory, edit: Edit, origins: Mapping[Source, Origin]) -> Memory:
    """Return the head with the edit applied; the head itself if the edit changes nothing. `origins`: the sources.

    The evidence grows and never shrinks; what a caller added for all stays for all while it says the same. A share is
    of one statement with its evidence, and ends with either.
    """
    wanted = _edited(head, edit)
    for_all = not head.evidence and wanted.statement == head.statement
    evidence = () if for_all else evidence_of(said_in(wanted.sources, origins), head.evidence)
    said_by = senders(edit.sources or (), origins, known=wanted.said_by)
    shared = head.shared_with if (wanted.statement, evidence) == (head.statement, head.evidence) else ()
    return replace(wanted, evidence=evidence, shared_with=shared, said_by=said_by)


def _edited(head: Memory, edit: Edit) -> Memory:
    wanted = replace(
        head,
        statement=head.statement if edit.statement is None else edit.statement,
        category=head.category if edit.category is None else edit.category,
        tags=head.tags if edit.tags is None else tuple(edit.tags),
        owner=head.owner if edit.owner is None else edit.owner,
        said_by=head.said_by if edit.said_by is None else tuple(edit.said_by),
        confidence=head.confidence if isinstance(edit.confidence, Keep) else edit.confidence,
        valid_from=head.valid_from if isinstance(edit.valid_from, Keep) else instant(edit.valid_from),
        valid_until=head.valid_until if isinstance(edit.valid_until, Keep) else instant(edit.valid_until),
        sources=head.sources if edit.sources is None else tuple(edit.sources),
    )
    check_span(wanted.valid_from, wanted.valid_until)
    return wanted


def said_anew(head: Memory, wanted: Memory, viewer: Viewer | None, now: datetime) -> Memory:
    """Return a changed memory as a viewer says it: without a new message to cite, what a room says otherwise was said
    there and then."""
    if viewer is None or viewer.kind != "room" or wanted.statement == head.statement:
        return wanted
    if set(wanted.sources) - set(head.sources):
        return wanted
    return replace(wanted, evidence=evidence_of([(viewer.id, now)], wanted.evidence), shared_with=())


def update(
    head: Memory, wanted: Memory, *, memory_id: str, version: int, number: int, reason: str, now: datetime
) -> Change:
    """Return a caller's change of the version in force."""
    made = replace(
        wanted,
        memory_id=memory_id,
        version=version,
        parents=(head.memory_id,),
        change_summary=reason,
        evolution_id=None,
        made_by="caller",
        fallback=False,
        doubtful="",
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


def beside(head: Memory, wanted: Memory, *, memory_id: str, number: int, reason: str, now: datetime) -> Change:
    """Return a caller's change that rests on what not everybody who may see the version in force may know: a memory of
    its own, which those who may see it are shown in place of that version."""
    change = update(head, wanted, memory_id=memory_id, version=1, number=number, reason=reason, now=now)
    own = replace(change.memory, lineage_id=memory_id, created_at=change.memory.updated_at, shared_with=())
    return replace(change, action=Action.CREATE, memory=own, closes=(), old_statement=None)


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
    """Raise `Conflict` unless the caller saw the version in force."""
    if expected is not None and expected != head.memory_id:
        raise Conflict("memory_not_in_force", memory=f"{expected!r:.80}", other=f"{head.memory_id!r:.80}")


def _same(new: NewMemory, memory: Memory) -> bool:
    """Return True if both are equal; sources may have been added since."""
    stored_fields = (new.scope, new.kind, new.statement, new.confidence, new.category, tuple(new.tags))
    stored = (memory.scope, memory.kind, memory.statement, memory.confidence, memory.category, memory.tags)
    span = (new.valid_from, new.valid_until) == (memory.valid_from, memory.valid_until)
    return span and stored_fields == stored and set(new.sources) <= set(memory.sources)


def _is_unchanged_by_others(new: NewMemory, head: Memory) -> bool:
    """Return True if the version in force is its maker's last one, and the new one is no older."""
    last_said = new.updated_at or new.created_at
    in_force = head.status is MemoryStatus.ACTIVE and (head.scope, head.kind) == (new.scope, new.kind)
    return in_force and head.made_by == new.made_by and (last_said is None or last_said >= head.updated_at)
