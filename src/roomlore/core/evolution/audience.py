"""The evidence of what an evolution makes, and what it may change.

An evolution reads one room. A memory that is known to people who may not know this room stays as it is for them: the
change becomes a memory of its own, whose parent is the old one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from roomlore.core.audience import EvidenceRoom, RoomKind, RoomPeople, covers, evidence_of, public_windows, windows_of
from roomlore.core.evolution.requests import Plan, Rejected
from roomlore.core.memory.memory import Action, Change, Memory, Source
from roomlore.core.memory.versions import said_in, senders
from roomlore.core.models import Origin

_KNOWN_ELSEWHERE = "It is known in rooms where nobody may know why it ended; it stays."


@dataclass(frozen=True, slots=True)
class Heard:
    """The input of an evolution, by who heard it. `room`: its people. `said`: when and by whom its messages were sent.
    `replaced`: the ids of active memories that another one replaces for those who may see it. `others`: the people of
    the memories' other rooms."""

    room: RoomPeople
    said: Mapping[Source, Origin]
    replaced: frozenset[str] = frozenset()
    others: Mapping[str, RoomPeople] = field(default_factory=dict)


def with_evidence(plan: Plan, offered: Iterable[Memory], heard: Heard) -> Plan:
    """Return the plan with the evidence of each memory, and without changes to what others may see."""
    known = {memory.memory_id: memory for memory in offered}
    rejected: list[Rejected] = []
    changes: list[Change] = []
    for change in plan.changes:
        made = _change(change, known, heard)
        if made is None and change.action is Action.DELETE:
            rejected.append(Rejected(0, change.memory.statement[:80], _KNOWN_ELSEWHERE))
        elif made is not None:
            changes.append(replace(made, number=plan.changes[0].number + len(changes)))
    return replace(plan, changes=tuple(changes), rejected=(*rejected, *plan.rejected))


def _change(change: Change, known: Mapping[str, Memory], heard: Heard) -> Change | None:
    """Return the change with its evidence; None if it would touch what others may see."""
    names = change.closes or (change.memory.memory_id,)
    old = [known[name] for name in names if name in known]
    evidence = _evidence(change.memory, old, heard)
    new = EvidenceRoom(heard.room.room_id, *_span(change.memory, old, heard))
    ours = [replaced for replaced in old if may_replace(replaced, new, heard.room, heard.others)]
    if change.action is Action.DELETE:
        return change if ours == old else None
    memory = replace(
        change.memory,
        evidence=evidence,
        shared_with=_shares(change.memory, old, evidence),
        said_by=senders(change.memory.sources, heard.said, known=(replaced for was in old for replaced in was.said_by)),
    )
    if ours == old:
        return replace(change, memory=replace(memory, parents=(*memory.parents, *_carried(old, heard))))
    if not change.closes:
        return None
    own = replace(memory, lineage_id=memory.memory_id, version=1, created_at=change.at)
    return replace(
        change,
        action=Action.CREATE,
        memory=own,
        closes=tuple(replaced.memory_id for replaced in ours),
        old_statement=ours[0].statement if ours else None,
    )


def _evidence(memory: Memory, old: Sequence[Memory], heard: Heard) -> tuple[EvidenceRoom, ...]:
    kept = [room for replaced in old for room in replaced.evidence]
    return evidence_of(((heard.room.room_id, at) for at in _span(memory, old, heard)), kept)


def _span(memory: Memory, old: Sequence[Memory], heard: Heard) -> tuple[datetime, datetime]:
    """Return when the new messages that it cites were said; of all that were read if it cites none."""
    before = {source for replaced in old for source in replaced.sources}
    cited = said_in((source for source in memory.sources if source not in before), heard.said)
    times = [at for _, at in cited or said_in(heard.said, heard.said)]
    return min(times), max(times)


def may_replace(memory: Memory, new: EvidenceRoom, room: RoomPeople, others: Mapping[str, RoomPeople]) -> bool:
    """Return True if everybody who may see the memory may see the new evidence. `room`: the people of its room.
    `others`: those of the memory's other rooms.

    A memory of the room's own group that a caller added is the room's, and what was said there while it was public is
    everybody's. What somebody said to agents alone may change by
    what is said while they are there. Of people whose stays were not told nobody knows if they left.
    """
    public = public_windows(room)
    if covers(public, new.first, new.last):
        return True
    if not set(memory.shared_with) <= {f"room:{room.room_id}"}:
        return False
    if not memory.evidence:
        return memory.scope == f"group:{room.room_id}"
    if any(_heard_by_its_person(others.get(room_heard.room_id), new, room) for room_heard in memory.evidence):
        return True
    here = next((room_heard for room_heard in memory.evidence if room_heard.room_id == room.room_id), None)
    if here is None or covers(public, here.first, here.last):
        return False
    return not any(_left_between(here, new, room))


def _heard_by_its_person(direct: RoomPeople | None, new: EvidenceRoom, room: RoomPeople) -> bool:
    """Return True if that room only ever had one person, who heard the new evidence."""
    if direct is None or direct.kind is not RoomKind.DIRECT or len(direct.people) != 1 or public_windows(direct):
        return False
    return covers(windows_of(room, direct.people), new.first, new.last)


def _left_between(old: EvidenceRoom, new: EvidenceRoom, room: RoomPeople) -> Iterator[bool]:
    for person, presence in room.people.items():
        if presence.stays:
            windows = windows_of(room, [person])
            yield covers(windows, old.first, old.last) and not covers(windows, new.first, new.last)


def _shares(memory: Memory, old: Sequence[Memory], evidence: tuple[EvidenceRoom, ...]) -> tuple[str, ...]:
    """Return the shares that stay: those of the same statement with the same evidence."""
    same = any((replaced.statement, replaced.evidence) == (memory.statement, evidence) for replaced in old)
    return memory.shared_with if same else ()


def _carried(old: Sequence[Memory], heard: Heard) -> tuple[str, ...]:
    """Return the memories that the next version replaces for those who see it, as the version before did."""
    own = {memory.memory_id for memory in old}
    carried = (name for memory in old for name in memory.parents if name in heard.replaced and name not in own)
    return tuple(dict.fromkeys(carried))
