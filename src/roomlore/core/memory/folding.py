"""Short memories of one agent and room: the oldest are merged into longer ones, and retired, so that their number is
bounded."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from roomlore.core.audience import evidence_of
from roomlore.core.memory.memory import Action, Change, Memory, MemoryStatus

MAX_SHORT = 50
"""The most active short memories of an agent and room."""
AT_ONCE = 10
"""The number of memories merged into one."""
MAX_FOLDED = 10
"""The most merged ones. The oldest beyond them are retired."""
FOLDED_CHARACTERS = 400
FOLDED = "folded"
"""The tag of a merged memory. It is not merged again, so that what it rests on stays a readable number of messages."""
_MERGED = "One of the oldest short memories of a room, merged into a longer one."
_RETIRED = "Retired: the room has more short memories than are kept. It can be restored."


@dataclass(frozen=True, slots=True)
class Fold:
    """The memories to merge and retire. `id`: of the merged memory and of the record of the merge. `merged`: the
    memories to be merged, the oldest first. `retired`: those to retire beside that. `overdue`: those to retire if no
    model merges anything."""

    id: str = ""
    merged: tuple[Memory, ...] = ()
    retired: tuple[Memory, ...] = ()
    overdue: tuple[Memory, ...] = ()

    @property
    def memory_ids(self) -> frozenset[str]:
        """The ids of all of them."""
        return frozenset(memory.memory_id for memory in (*self.merged, *self.retired, *self.overdue))

    @property
    def lineage_id(self) -> str:
        """The lineage that the merged memory continues: that of the oldest one."""
        return self.merged[0].lineage_id if self.merged else ""

    def notes(self) -> str:
        """Return a line for each memory to be merged, with its day."""
        return "\n".join(f"[{memory.supported_at:%Y-%m-%d}] {memory.statement}" for memory in self.merged)


def fold_due(memories: Sequence[Memory], *, new_id: str) -> Fold:
    """Return what is due before the memory `new_id` is added to the active short memories of an agent and room."""
    left = len(memories) + 1 - MAX_SHORT
    if left <= 0:
        return Fold()
    oldest = sorted(memories, key=lambda memory: (memory.supported_at, memory.created_at, memory.memory_id))
    folded = [memory for memory in oldest if FOLDED in memory.tags]
    plain = [memory for memory in oldest if FOLDED not in memory.tags]
    return Fold(
        id="z" + hashlib.sha256(new_id.encode("utf-8", "surrogatepass")).hexdigest()[:31],
        merged=tuple(plain[:AT_ONCE]) if len(plain) >= AT_ONCE else (),
        retired=tuple(folded[: max(len(folded) + 1 - MAX_FOLDED, 0)]),
        overdue=tuple(oldest[:left]),
    )


def fold_changes(
    fold: Fold, statement: str | None, *, version: int, number: int, made_by: str, now: datetime
) -> list[Change]:
    """Return the changes, from `number` on. `statement`: the model's; None if there is none, and then the oldest are
    retired. `version`: the number of the merged memory in its lineage."""
    if not statement or not fold.merged:
        return [_retired(memory, fold, number + place, now) for place, memory in enumerate(fold.overdue)]
    merge = _merge(fold, statement, version=version, number=number, made_by=made_by, now=now)
    return [merge, *(_retired(memory, fold, number + 1 + place, now) for place, memory in enumerate(fold.retired))]


def _merge(fold: Fold, statement: str, *, version: int, number: int, made_by: str, now: datetime) -> Change:
    memory = replace(
        fold.merged[0],
        memory_id=fold.id,
        version=version,
        parents=tuple(memory.memory_id for memory in fold.merged),
        statement=statement,
        tags=(FOLDED,),
        sources=tuple(dict.fromkeys(source for memory in fold.merged for source in memory.sources)),
        evidence=evidence_of((), [room for memory in fold.merged for room in memory.evidence]),
        shared_with=(),
        change_summary=_MERGED,
        evolution_id=fold.id,
        made_by=made_by,
        fallback=False,
        doubtful="; ".join(dict.fromkeys(memory.doubtful for memory in fold.merged if memory.doubtful)),
        updated_at=now,
        supported_at=max(memory.supported_at for memory in fold.merged),
    )
    return Change(
        number=number,
        scope=memory.scope,
        action=Action.MERGE,
        memory=memory,
        closes=memory.parents,
        old_statement=fold.merged[0].statement,
        reason=_MERGED,
        evolution_id=fold.id,
        actor=made_by,
        at=now,
    )


def _retired(memory: Memory, fold: Fold, number: int, now: datetime) -> Change:
    return Change(
        number=number,
        scope=memory.scope,
        action=Action.DELETE,
        memory=replace(memory, status=MemoryStatus.DEPRECATED, change_summary=_RETIRED, updated_at=now),
        old_statement=memory.statement,
        reason=_RETIRED,
        evolution_id=fold.id,
        actor="roomlore",
        at=now,
    )
