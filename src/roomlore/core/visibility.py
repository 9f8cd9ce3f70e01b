"""Why a memory is shown to a viewer or not, for the people who look after a store."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from roomlore.core.audience import EVERYONE, NEVER, EvidenceRoom, View, Viewer, Window, covers, may_see, unreplaced
from roomlore.core.memory.memory import Memory

ReasonKind = Literal["added", "shared", "here", "public", "heard", "unheard", "replaced"]
"""`added`: by a caller, who did not say where it was heard, so it is for all. `shared`: with the viewer or everyone.
`here`: said in the viewer's room. `public`: said in a room while it was public. `heard`: the viewer's whole audience
was there. `unheard`: not all of them are known to have been there. `replaced`: the viewer is shown a later version."""


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason why a memory is shown or not. `evidence`: the room it is about, with the times; None for a share and for
    a memory without evidence. `target`: whom it was shared with."""

    kind: ReasonKind
    evidence: EvidenceRoom | None = None
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Visibility:
    """A memory, and if the viewer is shown it, with the reasons. All evidence must allow it."""

    memory: Memory
    shown: bool
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class SeenIn:
    """The viewers that may be shown a memory now. `everyone`: it is for all. `rooms`: the ids of the rooms it may be
    shown in; empty if it is for all. `hidden_in`: how many other rooms there are."""

    everyone: bool
    rooms: tuple[str, ...] = ()
    hidden_in: int = 0


Public = Mapping[str, tuple[Window, ...]]
"""When each of some rooms was public."""


def visibilities(memories: Sequence[Memory], viewer: Viewer, view: View, public: Public) -> list[Visibility]:
    """Return each of the memories with the reasons. `public`: of the rooms of their evidence."""
    _, replaced = unreplaced([memory for memory in memories if may_see(memory, view)])
    return [_visibility(memory, viewer, view, public, replaced) for memory in memories]


def _visibility(memory: Memory, viewer: Viewer, view: View, public: Public, replaced: frozenset[str]) -> Visibility:
    reasons = tuple(_reasons(memory, viewer, view, public))
    if memory.memory_id in replaced:
        return Visibility(memory, False, (*reasons, Reason("replaced")))
    return Visibility(memory, may_see(memory, view), reasons)


def _reasons(memory: Memory, viewer: Viewer, view: View, public: Public) -> Iterable[Reason]:
    shares = [target for target in memory.shared_with if target in view.shares]
    if shares:
        return [Reason("shared", target=target) for target in shares]
    if not memory.evidence:
        return [Reason("added")]
    return [Reason(_reason(room, viewer, view, public), room) for room in memory.evidence]


def _reason(evidence_room: EvidenceRoom, viewer: Viewer, view: View, public: Public) -> ReasonKind:
    if viewer.kind == "room" and viewer.id == evidence_room.room_id:
        return "here"
    if covers(public.get(evidence_room.room_id, NEVER), evidence_room.first, evidence_room.last):
        return "public"
    return "heard" if _heard(evidence_room, view) else "unheard"


def is_heard(memory: Memory, view: View) -> bool:
    """Return True if the viewer heard all evidence of the memory, so that it needs no share."""
    return all(_heard(room, view) for room in memory.evidence)


def _heard(evidence_room: EvidenceRoom, view: View) -> bool:
    return covers(view.windows.get(evidence_room.room_id, NEVER), evidence_room.first, evidence_room.last)


def as_shown_to(memory: Memory, view: View, seen: Collection[str] = ()) -> Memory:
    """Return a memory that may be shown as the viewer is told it. `seen`: the ids of other versions that it may be
    shown.

    It does not name the other rooms that it was shared with. If it is shown by a share alone, the share is of what the
    version says: where and by whom that was said, why, and the versions before stay untold.
    """
    shared = tuple(target for target in memory.shared_with if target in view.shares)
    if is_heard(memory, view):
        return memory if shared == memory.shared_with else replace(memory, shared_with=shared)
    evidence = tuple(room for room in memory.evidence if _heard(room, view))
    heard = {room.room_id for room in evidence}
    alone = memory.lineage_id not in seen
    return replace(
        memory,
        shared_with=shared,
        evidence=evidence,
        sources=tuple(source for source in memory.sources if source.room_id in heard),
        parents=tuple(name for name in memory.parents if name in seen),
        said_by=(),
        change_summary="",
        evolution_id=None,
        doubtful="",
        lineage_id=memory.memory_id if alone else memory.lineage_id,
        version=1 if alone else memory.version,
        created_at=memory.updated_at if alone else memory.created_at,
    )


def is_for_all(memory: Memory, public: Public) -> bool:
    """Return True if every viewer may be shown the memory."""
    if EVERYONE in memory.shared_with:
        return True
    return all(covers(public.get(room.room_id, NEVER), room.first, room.last) for room in memory.evidence)
