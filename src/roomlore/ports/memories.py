"""Storage of memories, their log and evolutions.

Every call names a tenant and sees nothing of another. An empty list of ids returns nothing. Any call may raise
`StorageUnavailable`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from roomlore.core.memory.log import Touch
from roomlore.core.memory.memory import Change, Evolution, Memory, MemoryKind, MemoryStatus, Scope


class MemoryLog(Protocol):
    """The logs of a tenant's scopes: the only way to change a memory."""

    async def lock(self, *, tenant: str, scope: str, now: datetime) -> Scope:
        """Return the scope, created if new, with its row locked until the unit of work ends. Only while writing."""

    async def scope(self, *, tenant: str, scope: str) -> Scope | None:
        """Return the scope as stored, None if nothing was ever remembered in it."""

    async def scopes(self, *, tenant: str, after: str | None, limit: int) -> list[Scope]:
        """Return scopes above `after`, ascending."""

    async def apply(self, *, tenant: str, scope: str, changes: Sequence[Change]) -> None:
        """Add changes to the log of a locked scope and apply them: all of them or none.

        CREATE begins a lineage; UPDATE and MERGE add a version to one, and close its active version; REVERT adds a
        version or touches an existing one; the others touch an existing one. A version that is closed and named among
        the new one's parents has its lineage merged into the new one's.

        Raises `Conflict` if a number does not follow the last one, a new version's id or number is taken, a version to
        be closed is not active, a touched one does not exist or has another status than the change starts from, or a
        lineage would have two active versions; `InvalidInput` if the scope is not locked or is another one, or if a
        change contradicts itself.
        """

    async def changes(
        self, *, tenant: str, scope: str, after: int, limit: int, since: datetime | None = None
    ) -> list[Change]:
        """Return changes of the scope with a number above `after`, ascending, those made at `since` or later."""

    async def touches(self, *, tenant: str, scope: str, after: int, limit: int) -> list[Touch]:
        """Return the changes that `changes` gives, without statements. A change that leaves a version as active as it
        was may say so (`Touch.active`)."""

    async def latest(
        self, *, tenant: str, scope: str, limit: int, before: int | None = None, since: datetime | None = None
    ) -> list[Change]:
        """Return changes of the scope with a number below `before` (None: up to the last one), descending, those made
        at `since` or later."""

    async def of_evolution(self, *, tenant: str, evolution_id: str) -> list[Change]:
        """Return the changes that this evolution made, ascending; empty if there is no such evolution."""

    async def of_memories(self, *, tenant: str, memory_ids: Sequence[str]) -> list[Change]:
        """Return the changes that made or touched these versions, by scope and ascending. A version is closed by an
        entry of the version that replaced it."""


class Memories(Protocol):
    """The memories of a tenant, for reading.

    The head of a lineage is its active version or, if there is none, the last active one: the newest, unless an earlier
    one was restored.
    """

    async def by_id(self, *, tenant: str, memory_ids: Sequence[str]) -> list[Memory]:
        """Return the versions with these ids, in any scope, in no order."""

    async def heads(self, *, tenant: str, memory_ids: Sequence[str]) -> dict[str, Memory]:
        """Return the head of the lineage for each id of any version; for a lineage merged into another one, the head of
        that one, and so on."""

    async def page(
        self,
        *,
        tenant: str,
        scopes: Sequence[str],
        kinds: Sequence[MemoryKind],
        status: MemoryStatus | None,
        limit: int,
        offset: int = 0,
    ) -> list[Memory]:
        """Return heads of lineages of these scopes and kinds, the latest `updated_at` first, then the highest id;
        `status` None is any."""

    async def count(
        self, *, tenant: str, scopes: Sequence[str], kinds: Sequence[MemoryKind], status: MemoryStatus | None
    ) -> int:
        """Return the total number of results of `page`."""

    async def lineage(self, *, tenant: str, lineage_id: str) -> list[Memory]:
        """Return every version of the lineage, the first one first."""

    async def latest_versions(self, *, tenant: str, lineage_ids: Sequence[str]) -> dict[str, int]:
        """Return the highest version number of each of these lineages, active or not, without unknown ones."""

    async def ids_like(self, *, tenant: str, part: str, limit: int) -> list[str]:
        """Return the ids of versions that begin or end with `part`, ascending."""

    async def citing(self, *, tenant: str, room_id: str, message_ids: Sequence[str]) -> list[Memory]:
        """Return the active memories that any of these messages supports."""

    async def fallbacks(self, *, after: str | None, limit: int) -> list[tuple[str, Memory]]:
        """Return active memories of all tenants that were made as a fallback without their model, with their tenant, by
        tenant and id; those above `after`, which is a tenant and an id joined by a NUL."""


class Evolutions(Protocol):
    """The makers of memories: a record for each extraction and each evolution."""

    async def add(self, *, tenant: str, evolution: Evolution) -> bool:
        """Store the record. Return False, without a change, if its id exists already."""

    async def by_id(self, *, tenant: str, evolution_ids: Sequence[str]) -> list[Evolution]: ...

    async def ids_like(self, *, tenant: str, part: str, limit: int) -> list[str]:
        """Return the ids that begin or end with `part`, ascending."""

    async def page(self, *, tenant: str, scope: str, before: str | None, limit: int) -> list[Evolution]:
        """Return the scope's records with an id below `before`, newest first."""


@dataclass(frozen=True, slots=True)
class RoomBehind:
    """A room that has grown since its last work. `mark`: the position of the work, 0 if it never began."""

    tenant: str
    room_id: str
    mark: int


class Watermarks(Protocol):
    """The progress of work on rooms."""

    async def find(self, *, tenant: str, room_id: str, names: Sequence[str]) -> dict[str, int]:
        """Return the arrival up to which each named work is done; absent if it never began."""

    async def of_room(self, *, tenant: str, room_id: str, prefix: str) -> dict[str, int]:
        """Return every mark of the room whose name has this prefix."""

    async def move(self, *, tenant: str, room_id: str, name: str, arrival: int, was: int, now: datetime) -> bool:
        """Move the mark from `was` (0 if there is none) to `arrival`. Return False if it is not at `was`. Only while
        writing."""

    async def behind(self, *, name: str, least: int, after: tuple[str, str], limit: int) -> list[RoomBehind]:
        """Return rooms of all tenants with at least `least` arrivals above the named mark (deleted messages count too),
        those after this tenant and room id, in that order. ('', '') begins."""


class Leases(Protocol):
    """Leases of work for a time, over all processes. A lease is advisory: data written under one is still compared with
    what was read. Only while writing."""

    async def take(self, *, tenant: str, name: str, holder: str, now: datetime, until: datetime) -> bool:
        """Take or extend the lease. Return False if another holder still has it."""

    async def free(self, *, tenant: str, name: str, holder: str) -> None:
        """Release the lease; nothing happens if another holder has it."""
