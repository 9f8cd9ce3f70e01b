"""One entry of a log against the versions that it found: whether what it says of itself is what it did."""

from collections.abc import Iterator, Mapping

from roomlore.core.memory.models import Action, Change, Memory, MemoryStatus
from roomlore.core.privacy.traces import has_mark

_ACTIVE, _DEPRECATED = MemoryStatus.ACTIVE, MemoryStatus.DEPRECATED
_FOLLOWS = frozenset({Action.UPDATE, Action.MERGE})
_STAYS = frozenset({(_ACTIVE, _ACTIVE), (_DEPRECATED, _DEPRECATED)})
_TURNS = {
    Action.DELETE: frozenset({(_ACTIVE, _DEPRECATED)}),
    Action.RESTORE: frozenset({(_DEPRECATED, _ACTIVE)}),
    Action.STRENGTH: _STAYS,
    Action.REDACT: _STAYS,
    Action.REVERT: _STAYS | {(_ACTIVE, _DEPRECATED), (_DEPRECATED, _ACTIVE)},
}
"""What each action may do to the status of a version that is there."""
_CALLER, _ROOMLORE = "caller", "roomlore"


def entry_faults(change: Change, versions: Mapping[str, Memory], head: str | None) -> Iterator[str]:
    """What is wrong with the entry, in sentences. `versions`: of its scope, by id, as they were before it; `head`: the
    version of its lineage that was the last one in force.

    What forgetting a person took out of a text cannot be compared: a text with its mark fits every other. A reason is
    compared where the version keeps it too; of other entries it is kept once.
    """
    if not _fits(change, versions.get(change.memory.memory_id), head):
        yield f"Its action is {change.action.value}; what it did to {change.memory.memory_id} is something else."
    if (change.action is Action.REVERT) != (change.undoes is not None):
        yield f"Its action is {change.action.value}, and it takes back {change.undoes or 'no evolution'}."
    if not _alike(change.old_statement, _said_before(change, versions)):
        yield "What it says was said before is not what was."
    why = _why(change, versions.get(change.memory.memory_id))
    if not _alike(change.reason, why):
        yield "Its reason is not the one that the version keeps."


def _fits(change: Change, before: Memory | None, head: str | None) -> bool:
    memory, action = change.memory, change.action
    if before is None:
        return memory.status is _ACTIVE and _makes(change, head)
    if (before.status, memory.status) not in _TURNS.get(action, ()):
        return False
    if action is Action.STRENGTH:
        return change.evolution_id is not None or change.actor != _ROOMLORE
    return action is not Action.REDACT or (change.evolution_id is None and change.actor != _CALLER)


def _makes(change: Change, head: str | None) -> bool:
    """Whether the action is one that makes such a version."""
    memory = change.memory
    if memory.version == 1 and memory.memory_id == memory.lineage_id:
        return change.action is Action.CREATE and not memory.parents
    follows = change.closes == memory.parents and head in change.closes
    return follows and change.action is (Action.MERGE if len(change.closes) > 1 else Action.UPDATE)


def _said_before(change: Change, versions: Mapping[str, Memory]) -> str | None:
    """What the version in whose place it came said, or the one that it touched; None where that was not in force."""
    old = versions.get(change.closes[0] if change.closes else change.memory.memory_id)
    return old.statement if old is not None and old.status is _ACTIVE else None


def _why(change: Change, before: Memory | None) -> str:
    """The reason as the version keeps it; the entry's own where that keeps none."""
    memory, of_evolution = change.memory, change.evolution_id is not None
    if before is None:
        return memory.change_summary if of_evolution or memory.change_summary else change.reason
    deletes = change.action is Action.DELETE and (of_evolution or change.actor == _CALLER)
    unmakes = change.action is Action.REVERT and memory.status is _DEPRECATED and memory.evolution_id == change.undoes
    if not deletes and not unmakes:
        return change.reason
    return "" if memory.change_summary == before.change_summary and not change.reason else memory.change_summary


def _alike(one: str | None, other: str | None) -> bool:
    return one == other or any(text is not None and has_mark(text) for text in (one, other))
