"""The log of changes, replayed."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from roomlore.core.memory.models import Change, Memory, MemoryStatus

Versions = Mapping[str, Memory]
"""Every version of a scope by its id."""


def replay(changes: Iterable[Change], start: Versions | None = None) -> dict[str, Memory]:
    """What the tables hold after these changes, in order of their numbers."""
    versions = dict(start or {})
    for change in changes:
        for memory_id in change.closes:
            versions[memory_id] = replace(versions[memory_id], status=MemoryStatus.DEPRECATED)
        versions[change.memory.memory_id] = change.memory
    return versions


def active(versions: Versions) -> list[Memory]:
    """The memories in force, oldest lineage first."""
    found = [memory for memory in versions.values() if memory.status is MemoryStatus.ACTIVE]
    return sorted(found, key=lambda memory: (memory.created_at, memory.memory_id))
