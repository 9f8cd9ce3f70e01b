"""Where memories, their log and what made them live.

Every call names a tenant and sees nothing of another. An empty list of ids returns nothing. Any call may raise
`StorageUnavailable`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from roomlore.core.memory.history import Touch
from roomlore.core.memory.models import Change, Evolution, Memory, MemoryKind, MemoryStatus, Scope


class MemoryLog(Protocol):
    """The logs of a tenant's scopes: the only way to change a memory."""

    async def lock(self, *, tenant: str, scope: str, now: datetime) -> Scope:
        """The scope, made if new, with its row locked until the unit of work ends. Only while writing."""

    async def scope(self, *, tenant: str, scope: str) -> Scope | None:
        """The scope as stored, None where nothing was ever remembered in it."""

    async def scopes(self, *, tenant: str, after: str | None, limit: int) -> list[Scope]:
        """Scopes above `after`, ascending."""

    async def apply(self, *, tenant: str, scope: str, changes: Sequence[Change]) -> None:
        """Adds changes to the log of a locked scope and does what they say: all of them or none.

        CREATE begins a lineage; UPDATE and MERGE add a version to one, and close its active version; REVERT adds a
        version or touches one that is there; the others touch one that is there. A version that is closed and named
        among the new one's parents has its lineage merged into the new one's.

        Raises `Conflict` where a number does not follow the last one, a new version's id or number is taken, a version
        that is to be closed is not active, one that is touched is not there or not in the status that the change
        starts from, or a lineage would have two active versions; `InvalidInput` where the scope is not locked or is
        another one, or where a change contradicts itself.
        """

    async def changes(
        self, *, tenant: str, scope: str, after: int, limit: int, since: datetime | None = None
    ) -> list[Change]:
        """Changes of the scope with a number above `after`, ascending, those made at `since` or later."""

    async def touches(self, *, tenant: str, scope: str, after: int, limit: int) -> list[Touch]:
        """The changes that `changes` gives, without what they say. A change that leaves a version as active as it was
        may say so (`Touch.active`)."""

    async def latest(
        self, *, tenant: str, scope: str, limit: int, before: int | None = None, since: datetime | None = None
    ) -> list[Change]:
        """Changes of the scope with a number below `before` (None: up to the last one), descending, those made at
        `since` or later."""

    async def of_evolution(self, *, tenant: str, evolution_id: str) -> list[Change]:
        """The changes that this evolution made, ascending; none where there is no such evolution."""

    async def of_memories(self, *, tenant: str, memory_ids: Sequence[str]) -> list[Change]:
        """The changes that made or touched these versions, by scope and ascending. What closed one is an entry of the
        version that took its place."""


class Memories(Protocol):
    """The memories of a tenant, for reading.

    The head of a lineage is its active version or, where none is, the one that last was: the newest one, unless an
    earlier one was restored.
    """

    async def by_id(self, *, tenant: str, memory_ids: Sequence[str]) -> list[Memory]:
        """The versions with these ids, in any scope, in no order."""

    async def heads(self, *, tenant: str, memory_ids: Sequence[str]) -> dict[str, Memory]:
        """For each id of any version the head of its lineage; of a lineage that was merged into another one, the head
        of that one, and so on."""

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
        """Heads of lineages of these scopes and kinds, the latest `updated_at` first, then the highest id; `status`
        None is any."""

    async def count(
        self, *, tenant: str, scopes: Sequence[str], kinds: Sequence[MemoryKind], status: MemoryStatus | None
    ) -> int:
        """How many `page` has in all."""

    async def lineage(self, *, tenant: str, lineage_id: str) -> list[Memory]:
        """Every version of the lineage, the first one first."""

    async def latest_versions(self, *, tenant: str, lineage_ids: Sequence[str]) -> dict[str, int]:
        """The highest version number of each of these lineages, active or not; those that are not there are left
        out."""

    async def ids_like(self, *, tenant: str, part: str, limit: int) -> list[str]:
        """The ids of versions that begin or end with `part`, ascending."""

    async def citing(self, *, tenant: str, room_id: str, message_ids: Sequence[str]) -> list[Memory]:
        """The active memories that any of these messages supports."""

    async def fallbacks(self, *, after: str | None, limit: int) -> list[tuple[str, Memory]]:
        """Active memories of all tenants that were made without the model they wanted, with their tenant, by tenant and
        id; those above `after`, which is a tenant and an id joined by a NUL."""


class Evolutions(Protocol):
    """What made memories: a record for each extraction and each evolution."""

    async def add(self, *, tenant: str, evolution: Evolution) -> bool:
        """Keeps the record; False, and nothing happens, where its id is there already."""

    async def by_id(self, *, tenant: str, evolution_ids: Sequence[str]) -> list[Evolution]: ...

    async def ids_like(self, *, tenant: str, part: str, limit: int) -> list[str]:
        """The ids that begin or end with `part`, ascending."""

    async def page(self, *, tenant: str, scope: str, before: str | None, limit: int) -> list[Evolution]:
        """The scope's records with an id below `before`, newest first."""


@dataclass(frozen=True, slots=True)
class RoomBehind:
    """A room that has grown since some work was last done in it. `mark`: how far the work came, 0 where it never
    began."""

    tenant: str
    room_id: str
    mark: int


class Watermarks(Protocol):
    """How far work on a room has come."""

    async def find(self, *, tenant: str, room_id: str, names: Sequence[str]) -> dict[str, int]:
        """Arrival up to which each named work is done; absent where it never began."""

    async def of_room(self, *, tenant: str, room_id: str, prefix: str) -> dict[str, int]:
        """Every mark of the room whose name begins like this."""

    async def move(self, *, tenant: str, room_id: str, name: str, arrival: int, was: int, now: datetime) -> bool:
        """Moves the mark from `was` (0 where there is none) to `arrival`; False where it is not at `was`. Only while
        writing."""

    async def behind(self, *, name: str, least: int, after: tuple[str, str], limit: int) -> list[RoomBehind]:
        """Rooms of all tenants with at least `least` arrivals above the named mark (deleted messages count too), those
        that come after this tenant and room id, in that order. ('', '') begins."""


class Leases(Protocol):
    """Who works on what, of all processes, until a time. A lease is a courtesy, not a guard: what is written under one
    is still compared with what was read. Only while writing."""

    async def take(self, *, tenant: str, name: str, holder: str, now: datetime, until: datetime) -> bool:
        """Takes the lease, or holds it for longer; False where another holder has it still."""

    async def free(self, *, tenant: str, name: str, holder: str) -> None:
        """Gives it back; nothing happens where somebody else has it."""
