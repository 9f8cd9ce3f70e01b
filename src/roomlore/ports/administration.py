"""The ports of a store for operators: usage, keys, tenants and archives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from roomlore.core.experiments import ArmSums, UsageSelection
from roomlore.core.models import (
    ApiKey,
    ContextUsageRecord,
    StoredMessage,
)


class Usage(Protocol):
    """The usage records of contexts, with responses and feedback."""

    async def record(self, *, records: Sequence[ContextUsageRecord]) -> None:
        """Store the records; one whose `context_id` exists already is not changed."""

    async def find(self, *, context_id: str) -> ContextUsageRecord | None: ...

    async def respond(self, *, context_id: str, llm_response: str) -> bool:
        """Record the model's response. Return False if there is no such record."""

    async def judge(self, *, context_id: str, feedback: str | None, score: float | None) -> bool:
        """Record feedback. Return False if there is no such record."""

    async def page(self, *, selection: UsageSelection, after: str | None, limit: int) -> list[ContextUsageRecord]:
        """Return the selected records with `context_id` above `after`, ascending."""

    async def sums(self, *, since: datetime) -> list[ArmSums]:
        """Return the sums of each arm that has records made at or after this time, by name; None comes first."""

    async def tenants(self) -> list[str]:
        """Return the tenants that have records, by name."""

    async def expire(self, *, before: datetime, limit: int) -> int:
        """Delete those of the first `limit` records by id that were made before this time; return how many. Ids grow
        with time, so there are no more if fewer than `limit` were deleted."""


class Keys(Protocol):
    """API keys, by the SHA-256 of their secret."""

    async def add(self, *, key: ApiKey, secret_hash: str) -> None: ...

    async def match(self, *, secret_hash: str) -> ApiKey | None:
        """Return the key with this hash, unless revoked. The only call that finds the tenant instead of taking it."""

    async def page(self) -> list[ApiKey]:
        """Return all keys of the tenant (of all tenants if None, for the operator's own command line), oldest first."""

    async def revoke(self, *, key_id: str, now: datetime) -> bool:
        """Revoke the key. Return False if there is no such key."""

    async def any(self) -> bool:
        """Return True if a key was ever made, for any tenant, including revoked ones."""

    async def signing_key(self, *, name: str) -> str | None:
        """Return the secret with this name, None if there is none. All processes of this database sign data that is
        stored elsewhere with it."""

    async def keep_signing_key(self, *, name: str, secret: str) -> str:
        """Store the secret unless one with this name exists, and return the stored one. Only while writing."""


class Tenants(Protocol):
    """The limits of tenants, and what they used of them."""

    async def limits(self) -> dict[str, Mapping[str, int | None]]:
        """Return the limits that differ from the settings, by tenant; None is no limit."""

    async def limits_to_change(self, *, now: datetime) -> Mapping[str, int | None]:
        """Return the limits of the tenant that differ from the settings, and keep others from changing them until the
        transaction ends; call `set_limits` after it. Only while writing."""

    async def set_limits(self, *, limits: Mapping[str, int | None], now: datetime) -> None:
        """Store all limits of the tenant that differ from the settings. Only while writing."""

    async def count(self, *, name: str, period: datetime, amount: int) -> int:
        """Add to what the tenant used in the period that began then, and return how much that is now. A period that
        begins later takes the place of the stored one. Only while writing."""

    async def counted(self) -> dict[str, tuple[datetime, int]]:
        """Return, by name, the last period in which something was counted, and how much."""

    async def messages_kept(self) -> int:
        """Return the number of messages in all rooms of the tenant, deleted ones left out."""

    async def all(self) -> list[str]:
        """Return every tenant with rooms, API keys or limits, by name."""


ArchivePhase = Literal["writing", "kept", "gone"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """A file of messages of a room. `phase`: 'writing' until its messages are erased here, 'kept' then, 'gone' once
    they were brought back, until the file is deleted. `bytes`, `checksum`: of the file, SHA-256. `archived_at`: when
    its messages were erased."""

    archive_id: str
    room_id: str
    phase: ArchivePhase
    file: str
    first_arrival: int
    last_arrival: int
    messages: int
    bytes: int
    checksum: str
    archived_at: datetime


class Archives(Protocol):
    """The archives of messages that are kept in files."""

    async def add(self, *, archive: Archive) -> None:
        """Store a new archive. Only while writing."""

    async def turn(self, *, archive_id: str, phase: ArchivePhase, was: ArchivePhase) -> bool:
        """Move the archive from one phase to another. Return False, without a change, if it is not in phase `was`: what
        another process did meanwhile. Only while writing."""

    async def drop(self, *, archive_id: str) -> None:
        """Remove the archive, not its file. Only while writing."""

    async def page(self, *, room_id: str | None, after: str, limit: int) -> list[Archive]:
        """Return archives with an id above `after`, ascending: those of the room, or all."""

    async def rooms_due(self, *, before: datetime, after: str, limit: int) -> list[str]:
        """Return rooms, ascending by id and above `after`, that have a message said before this time for certain."""

    async def due(self, *, room_id: str, before: datetime, limit: int) -> list[StoredMessage]:
        """Return the first `limit` messages by time that were said before this time for certain, in order of
        arrival."""

    async def erased(self, *, room_id: str, archive: Archive) -> dict[str, int]:
        """Return the arrivals of the archive's messages that are still erased, by message id."""

    async def of_messages(self, *, room_id: str, message_ids: Sequence[str]) -> dict[str, str]:
        """Return the ids of the archives that hold these messages, by message id; absent if none does."""

    async def holds(self, *, room_id: str, after: int) -> bool:
        """Return True if an archive holds a message of the room with arrival > `after`."""
