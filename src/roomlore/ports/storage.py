"""Where rooms, messages, features, usage records and keys live.

Every call names a tenant and sees nothing of another. An empty list of ids or arrivals returns nothing. Lists of
entries come in order of arrival. Deleted messages are never returned, but their ids stay taken. Any call may raise
`StorageUnavailable`.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Protocol

from roomlore.core.linked import Linked
from roomlore.core.models import (
    ApiKey,
    ContextUsageRecord,
    Entry,
    Exchange,
    Link,
    Room,
    StoredMessage,
    Target,
    Thread,
)
from roomlore.ports.audit import Audit
from roomlore.ports.indexing import IndexedMemories, IndexStates, LexicalIndex, Outbox
from roomlore.ports.memories import Evolutions, Leases, Memories, MemoryLog, Watermarks
from roomlore.ports.privacy import People, Rewriting, StoredRows
from roomlore.ports.rooms_due import RoomsDue
from roomlore.ports.sessions import Sessions


class Rooms(Protocol):
    """The rooms of a tenant, their counters, settings and people."""

    async def find(self, *, tenant: str, room_id: str) -> Room | None:
        """The room as stored, or None."""

    async def page(self, *, tenant: str, after: str | None, limit: int) -> list[Room]:
        """Rooms with an id above `after`, ascending by id."""

    async def lock(self, *, tenant: str, room_id: str, now: datetime) -> Room:
        """The room, made if new, with its row locked until the unit of work ends. Only while writing."""

    async def configure(self, *, tenant: str, room_id: str, settings: Mapping[str, Any]) -> Room:
        """Replaces the room's own settings and raises its revision; `NotFound` where there is no such room."""

    async def participants(self, *, tenant: str, room_id: str) -> dict[str, str]:
        """Sender id to last known name ('' if none) of everyone who has spoken, in order of first speaking."""

    async def participants_before(self, *, tenant: str, room_id: str, arrival: int) -> dict[str, str]:
        """The same as it was before the message with this arrival came, as the messages tell it that are left. It reads
        all of these."""

    async def of_sender(self, *, tenant: str, sender_id: str) -> list[str]:
        """The ids of the rooms in which this sender has spoken, ascending."""


class Messages(Protocol):
    """The messages of a room for reading."""

    async def fingerprints(self, *, tenant: str, room_id: str, message_ids: Sequence[str]) -> dict[str, str]:
        """Message id to content hash for those ids that are taken, deleted ones included ('' for them)."""

    async def by_id(self, *, tenant: str, room_id: str, message_ids: Sequence[str]) -> list[Entry]: ...

    async def by_arrival(self, *, tenant: str, room_id: str, arrivals: Sequence[int]) -> list[Entry]: ...

    async def plain(self, *, tenant: str, room_id: str, arrivals: Sequence[int]) -> list[StoredMessage]:
        """The messages at these arrivals without features and links, in order of arrival."""

    async def tail(
        self, *, tenant: str, room_id: str, limit: int, before: int | None = None, since: datetime | None = None
    ) -> list[Entry]:
        """The newest `limit` entries with arrival < `before` and `sent_at` >= `since`, in order of arrival."""

    async def recent(self, *, tenant: str, room_id: str, limit: int, before: int | None = None) -> list[StoredMessage]:
        """The newest `limit` messages with arrival < `before`, in order of arrival: the plain window."""

    async def page(
        self, *, tenant: str, room_id: str, after: int, limit: int, sender_id: str | None = None
    ) -> list[StoredMessage]:
        """Messages with arrival > `after`, ascending; `sender_id`: only those of this sender."""

    async def recent_with_hashes(
        self, *, tenant: str, room_id: str, limit: int, before: int | None = None
    ) -> list[tuple[StoredMessage, str]]:
        """As `recent`, each with the content hash that it had at that moment."""

    async def page_with_hashes(
        self, *, tenant: str, room_id: str, after: int, limit: int, sender_id: str | None = None
    ) -> list[tuple[StoredMessage, str]]:
        """As `page`, each with the content hash that it had at that moment."""

    async def count(self, *, tenant: str, room_id: str, after: int, sender_id: str | None = None) -> int:
        """How many messages `page` has in all."""

    async def first_since(self, *, tenant: str, room_id: str, since: datetime) -> int | None:
        """The lowest arrival of a message sent at `since` or later; None where there is none."""

    async def replies_of(self, *, tenant: str, room_id: str, agent_id: str, after: int, limit: int) -> list[int]:
        """Arrivals above `after` of the agent's replies, ascending: messages of the role assistant that call no
        tools."""

    async def arrival_of(self, *, tenant: str, room_id: str, message_id: str) -> int | None:
        """The arrival of the message with this id, deleted ones included; None where the id was never used."""

    async def changed(
        self, *, tenant: str, room_id: str, revision: int, after: int
    ) -> tuple[list[StoredMessage], list[int]]:
        """What became of the messages with arrival > `after` since the room's `revision`: those that were added,
        edited or linked anew, in order of arrival, and the arrivals of those that were deleted."""


class Threads(Protocol):
    """Reading along replies and threads."""

    async def target(self, *, tenant: str, room_id: str, message_id: str | None, window: int) -> Target | None:
        """All that choosing a context begins with, in one round trip: None where there is no such message.

        The room, the entry (where `message_id` is None the newest one with role user), and how many messages and tokens
        the newest `window` messages before it are.
        """

    async def related(
        self, *, tenant: str, room_id: str, entry: Entry, hops: int, limit: int, before: int | None = None
    ) -> list[Entry]:
        """Up to `limit` entries on the entry's platform reply chain, the nearest where cut.

        These are ancestors and descendants by `reply_to` up to `hops` away, siblings along it, and messages with the
        same root; only those with arrival < `before`, and what the entry itself replies to.
        """

    async def waiting(self, *, tenant: str, room_id: str, message_ids: Sequence[str]) -> list[Entry]:
        """Entries whose `reply_to` is one of these ids but whose link is not a platform link yet."""

    async def page(self, *, tenant: str, room_id: str, after: int, limit: int) -> list[tuple[int, Thread]]:
        """Threads whose first message's arrival is > `after`, ascending, each with that arrival."""

    async def members(self, *, tenant: str, room_id: str, thread: int, limit: int) -> list[Entry]:
        """The newest `limit` entries whose link names this thread, in order of arrival."""

    async def exchanges(
        self, *, tenant: str, room_id: str, arrivals: Sequence[int], least: float, limit: int
    ) -> dict[int, Exchange]:
        """Return, for each of these arrivals, the message it answers and the likeliest `limit` that answer it.

        Only links of at least this probability count. Among equally likely answers the earlier comes first. An arrival
        without such a link is absent.
        """

    async def keyword_counts(self, *, tenant: str, room_id: str, keywords: Sequence[str]) -> dict[str, int]:
        """In how many messages of the room each keyword occurs; absent where none."""


class MessageWriter(Protocol):
    """Changing the messages of a room whose row this unit of work has locked.

    Each call raises the room's revision by one. Participants, keyword counts, the lexical index and the room's counters
    follow by themselves.
    """

    async def append(
        self, *, tenant: str, room_id: str, entries: Sequence[Entry], linked: Linked | None = None
    ) -> Room:
        """Adds entries whose arrivals continue `next_arrival` without a gap; returns the room after it. `linked`: the
        room's from now on; None leaves it."""

    async def analyse_anew(
        self, *, tenant: str, room_id: str, entries: Sequence[Entry], linked: Linked | None = None
    ) -> Room:
        """Give the messages of these entries their features and links, as they are: nothing else moves, and texts,
        people and times stay. `linked` as in `append`. `NotFound` where no visible message has an entry's arrival and
        id."""

    async def replace(self, *, tenant: str, room_id: str, entries: Sequence[Entry]) -> Room:
        """Puts the entries in the place of those with their arrivals (edits); threads move as `relink` moves them.
        `NotFound` where no visible message has an entry's arrival and id."""

    async def erase(self, *, tenant: str, room_id: str, arrivals: Sequence[int], now: datetime) -> Room:
        """Empties these messages and hides them; id and arrival stay taken."""

    async def relink(self, *, tenant: str, room_id: str, links: Mapping[int, Link]) -> Room:
        """Gives the entries at these arrivals new links. Where a link's thread changed, everything that hangs below
        (by parent, linked, in the old thread) moves to the new thread with it."""


class Usage(Protocol):
    """What contexts were used and what people thought of them."""

    async def record(self, *, tenant: str, records: Sequence[ContextUsageRecord]) -> None:
        """Keeps the records; one whose `context_id` is there already is left as it is."""

    async def find(self, *, tenant: str, context_id: str) -> ContextUsageRecord | None: ...

    async def respond(self, *, tenant: str, context_id: str, llm_response: str) -> bool:
        """Notes what the model answered; False where there is no such record."""

    async def judge(self, *, tenant: str, context_id: str, feedback: str | None, score: float | None) -> bool:
        """Notes feedback; False where there is no such record."""

    async def page(
        self, *, tenant: str, room_id: str | None, judged: bool, after: str | None, limit: int
    ) -> list[ContextUsageRecord]:
        """Records with `context_id` above `after`, ascending; `judged`: only those with a success indicator."""


class Keys(Protocol):
    """API keys, by the SHA-256 of their secret."""

    async def add(self, *, key: ApiKey, secret_hash: str) -> None: ...

    async def match(self, *, secret_hash: str) -> ApiKey | None:
        """The key with this hash, unless revoked. The one call that finds the tenant instead of being told it."""

    async def page(self, *, tenant: str | None) -> list[ApiKey]:
        """All keys of the tenant (of all tenants where None: for the operator's own command line), oldest first."""

    async def revoke(self, *, tenant: str | None, key_id: str, now: datetime) -> bool:
        """False where there is no such key."""

    async def any(self) -> bool:
        """Whether a key was ever made, for any tenant; revoked ones count too."""


class Imports(Protocol):
    """How far imports have come, so that one that was broken off goes on from there."""

    async def position(self, *, tenant: str, source: str) -> str | None:
        """The last saved position of this source, or None."""

    async def save(self, *, tenant: str, source: str, position: str, now: datetime) -> None:
        """Keeps the position in the place of an earlier one."""

    async def forget(self, *, tenant: str, source: str) -> None:
        """Drops the position; nothing happens where there is none."""


class UnitOfWork(Protocol):
    """One transaction's view of everything stored."""

    @property
    def rooms(self) -> Rooms: ...
    @property
    def messages(self) -> Messages: ...
    @property
    def threads(self) -> Threads: ...
    @property
    def writer(self) -> MessageWriter: ...
    @property
    def usage(self) -> Usage: ...
    @property
    def keys(self) -> Keys: ...
    @property
    def imports(self) -> Imports: ...
    @property
    def lexical(self) -> LexicalIndex: ...
    @property
    def outbox(self) -> Outbox:
        """Of messages."""

    @property
    def memory_outbox(self) -> Outbox:
        """Of memories; the log notes there what its changes make due, if a vector index of memories was begun."""

    @property
    def indexed_memories(self) -> IndexedMemories: ...
    @property
    def index_states(self) -> IndexStates: ...
    @property
    def sessions(self) -> Sessions: ...
    @property
    def rooms_due(self) -> RoomsDue: ...
    @property
    def memory_log(self) -> MemoryLog: ...
    @property
    def memories(self) -> Memories: ...
    @property
    def evolutions(self) -> Evolutions: ...
    @property
    def watermarks(self) -> Watermarks: ...
    @property
    def leases(self) -> Leases: ...
    @property
    def audit(self) -> Audit: ...
    @property
    def people(self) -> People: ...
    @property
    def rewriting(self) -> Rewriting: ...
    @property
    def rows(self) -> StoredRows: ...


class Storage(Protocol):
    """Opens units of work. All that one writes is kept together when its block ends, or none of it if it raises."""

    def reading(self) -> AbstractAsyncContextManager[UnitOfWork]:
        """A view for reading; several may be open at once. Each call sees what was committed when it began, so two
        calls may see a write between them: compare revisions where that matters."""

    def writing(self) -> AbstractAsyncContextManager[UnitOfWork]:
        """A view for writing; committed when the block ends, rolled back when it raises."""

    async def ping(self) -> None:
        """Returns when the database answers."""

    async def try_writing(self) -> None:
        """Commit a write that changes nothing. Raise `StorageUnavailable` if nothing can be written."""

    async def close(self) -> None: ...
