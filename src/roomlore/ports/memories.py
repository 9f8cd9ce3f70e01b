"""Storage of memories, their log and evolutions, and the port through which replies find memories.

Every call sees the tenant of the unit of work and nothing of another. An empty list of ids returns nothing. Any call
may raise `StorageUnavailable`.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from roomlore.core.memory.log import Snapshot, Touch
from roomlore.core.memory.memory import Change, Evolution, Memory, MemoryKind, MemoryStatus, NumberedMemory, Scope
from roomlore.core.models import StoredMessage


class Memories(Protocol):
    """The memories of a tenant, the logs of its scopes, and the records of what made them.

    The head of a lineage is its active version or, if there is none, the last active one: the newest, unless an earlier
    one was restored. A log is the only way to change a memory.
    """

    async def by_id(self, *, memory_ids: Sequence[str]) -> list[Memory]:
        """Return the versions with these ids, in any scope, in no order."""

    async def heads(self, *, memory_ids: Sequence[str]) -> dict[str, Memory]:
        """Return the head of the lineage for each id of any version; for a lineage merged into another one, the head of
        that one, and so on."""

    async def page(
        self,
        *,
        scopes: Sequence[str],
        kinds: Sequence[MemoryKind],
        status: MemoryStatus | None,
        limit: int,
        offset: int = 0,
        held_at: datetime | None = None,
        ended_by: datetime | None = None,
    ) -> list[Memory]:
        """Return heads of lineages of these scopes and kinds, the latest `updated_at` first, then the highest id.

        `status`: None is any. `held_at`: those that had not ended then. `ended_by`: those that had ended then; one of
        the two at most."""

    async def count(
        self,
        *,
        scopes: Sequence[str],
        kinds: Sequence[MemoryKind],
        status: MemoryStatus | None,
        held_at: datetime | None = None,
        ended_by: datetime | None = None,
    ) -> int:
        """Return the total number of results of `page`."""

    async def lineage(self, *, lineage_id: str) -> list[Memory]:
        """Return every version of the lineage, the first one first."""

    async def latest_versions(self, *, lineage_ids: Sequence[str]) -> dict[str, int]:
        """Return the highest version number of each of these lineages, active or not, without unknown ones."""

    async def ids_like(self, *, part: str, limit: int) -> list[str]:
        """Return the ids of versions that begin or end with `part`, ascending."""

    async def saying(self, *, words: Sequence[str], limit: int) -> list[Memory]:
        """Return active memories of any scope whose statement contains each of at most four words, whatever their case
        in ASCII, the latest `updated_at` first."""

    async def citing(self, *, room_id: str, message_ids: Sequence[str]) -> list[Memory]:
        """Return the active memories that any of these messages supports."""

    async def short_of_room(self, *, scope: str, room_id: str, limit: int) -> list[Memory]:
        """Return the active short memories of the scope that a message of this room supports, the latest `updated_at`
        first, then the highest id."""

    async def fallbacks(self, *, after: str | None, limit: int) -> list[tuple[str, Memory]]:
        """Return active memories of all tenants that were made as a fallback without their model, with their tenant, by
        tenant and id; those above `after`, which is a tenant and an id joined by a NUL."""

    async def active(self, *, scope: str, limit: int) -> list[NumberedMemory]:
        """Return the active memories of the scope, the latest `updated_at` first, then the highest id."""

    async def by_number(self, *, scope: str, numbers: Sequence[int]) -> list[NumberedMemory]:
        """Return the active ones of these versions, by number."""

    async def active_after(self, *, number: int, limit: int) -> list[NumberedMemory]:
        """Return the active memories of all tenants with a number above this one, ascending, the order of a rebuild."""

    async def count_active(self) -> int:
        """Return the number of active memories of all tenants."""

    async def lock(self, *, scope: str, now: datetime) -> Scope:
        """Return the scope, created if new, with its row locked until the unit of work ends. Only while writing."""

    async def scope(self, *, scope: str) -> Scope | None:
        """Return the scope as stored, None if nothing was ever remembered in it."""

    async def scopes(self, *, after: str | None, limit: int) -> list[Scope]:
        """Return scopes above `after`, ascending."""

    async def apply(self, *, scope: str, changes: Sequence[Change]) -> None:
        """Add changes to the log of a locked scope and apply them: all of them or none.

        CREATE begins a lineage; UPDATE and MERGE add a version to one, and close its active version; REVERT adds a
        version or touches an existing one; the others touch an existing one. A version that is closed and named among
        the new one's parents has its lineage merged into the new one's.

        Raises `Conflict` if a number does not follow the last one, a new version's id or number is taken, a version to
        be closed is not active, a touched one does not exist or has another status than the change starts from, or a
        lineage would have two active versions; `InvalidInput` if the scope is not locked or is another one, or if a
        change contradicts itself.
        """

    async def changes(self, *, scope: str, after: int, limit: int, since: datetime | None = None) -> list[Change]:
        """Return changes of the scope with a number above `after`, ascending, those made at `since` or later."""

    async def touches(self, *, scope: str, after: int, limit: int) -> list[Touch]:
        """Return the changes that `changes` gives, without statements. A change that leaves a version as active as it
        was may say so (`Touch.active`)."""

    async def snapshot(self, *, scope: str, at: datetime) -> Snapshot | None:
        """Return the last stored snapshot that serves this moment, None if there is none. `apply` stores those that
        are due. An unreadable one is not returned."""

    async def changes_by_number(self, *, scope: str, numbers: Sequence[int]) -> list[Change]:
        """Return the changes of the scope with these numbers, ascending."""

    async def changes_of_lineages(
        self, *, scope: str, lineage_ids: Sequence[str], after: int, until: int
    ) -> list[Change]:
        """Return the changes of the scope that made or touched a version of these lineages, ascending; those with a
        number above `after` up to `until`."""

    async def latest_changes(
        self, *, scope: str, limit: int, before: int | None = None, since: datetime | None = None
    ) -> list[Change]:
        """Return changes of the scope with a number below `before` (None: up to the last one), descending, those made
        at `since` or later."""

    async def changes_of_evolution(self, *, evolution_id: str) -> list[Change]:
        """Return the changes that this evolution made, ascending; empty if there is no such evolution."""

    async def changes_of_memories(self, *, memory_ids: Sequence[str]) -> list[Change]:
        """Return the changes that made or touched these versions, by scope and ascending. A version is closed by an
        entry of the version that replaced it."""

    async def add_evolution(self, *, evolution: Evolution) -> bool:
        """Store the record. Return False, without a change, if its id exists already."""

    async def evolutions_by_id(self, *, evolution_ids: Sequence[str]) -> list[Evolution]: ...

    async def evolution_ids_like(self, *, part: str, limit: int) -> list[str]:
        """Return the ids that begin or end with `part`, ascending."""

    async def evolutions(self, *, scope: str, before: str | None, limit: int) -> list[Evolution]:
        """Return the scope's records with an id below `before`, newest first."""


class Recall(Protocol):
    """Finds memories for a reply. One that raises, or takes too long, is left out of the prompt."""

    @property
    def name(self) -> str:
        """The name for logs and metrics, short and of low cardinality."""

    async def recall(
        self, *, tenant: str, room_id: str, agent_id: str, messages: Sequence[StoredMessage], max_tokens: int
    ) -> str:
        """Return a text of at most `max_tokens`, '' for nothing. `messages`: the messages of the room that the reply
        may see, in people's order; the last one is replied to."""
