"""What became of a memory, as mem0 tells it."""

from collections.abc import Mapping
from typing import Any

from roomlore import Change, Lore, Memory
from roomlore.core.memory.models import Action, MemoryStatus
from roomlore.surfaces.mem0.kept import Kept, read

_PAGE = 500


async def history_of(lore: Lore, memory: Memory) -> list[dict[str, Any]]:
    """A row for each change of what the memory says, or of what is kept beside it, the first one first."""
    versions = {version.memory_id: version for version in await lore.memories.history(memory.memory_id)}
    changes = [change for change in await _log(lore, memory) if _concerns(change, versions)]
    kept = await read(lore, [change.memory for change in changes])
    return [_row(versions, change, its) for change, its in zip(changes, kept, strict=True)]


async def _log(lore: Lore, memory: Memory) -> list[Change]:
    """What happened in the scope since there is the memory."""
    found: list[Change] = []
    after = 0
    while page := await lore.memories.changes(memory.scope, after=after, limit=_PAGE, since=memory.created_at):
        found += page
        after = page[-1].number
    return found


def _concerns(change: Change, versions: Mapping[str, Memory]) -> bool:
    touched = {change.memory.memory_id, *change.closes}
    return change.action is not Action.STRENGTH and not touched.isdisjoint(versions)


def _row(versions: Mapping[str, Memory], change: Change, kept: Kept) -> dict[str, Any]:
    """One that was merged into another memory is gone."""
    made, note, first = change.memory, kept.note, next(iter(versions.values()))
    gone = made.status is not MemoryStatus.ACTIVE or made.lineage_id != first.lineage_id
    closed = next((versions[name].statement for name in change.closes if name in versions), change.old_statement)
    return {
        "id": f"{change.scope}#{change.number}",
        "memory_id": first.lineage_id,
        "old_memory": closed,
        "new_memory": None if gone else made.statement,
        "event": "DELETE" if gone else "ADD" if closed is None else "UPDATE",
        "created_at": first.created_at.isoformat(),
        "updated_at": change.at.isoformat(),
        "is_deleted": gone,
        "actor_id": note.actor_id if note else None,
        "role": note.role if note else None,
    }
