"""Where the words of messages are indexed, and what keeps the vector index in step with SQL."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

from roomlore.core.memory.found import NumberedMemory
from roomlore.core.models import Room, StoredMessage
from roomlore.core.search import FactRows, IndexState, IndexTask, Postings

WORDS = "words"
VECTORS = "messages"
MEMORY_VECTORS = "memories"
LINKS = "links"
"""Names of index states. That of links has no walk of its own, each room has; it only names the model in force."""

INDEXING = "indexing"
"""The job that brings the indexes in step with SQL."""

RELINKING = "relinking"
"""The job that makes the links anew that another link model made."""


class LexicalIndex(Protocol):
    """The words of every visible message of a room. Appending, replacing and erasing keep it in step by themselves, in
    the same transaction."""

    async def look_up(self, *, tenant: str, room_id: str, words: Sequence[str]) -> Postings | None:
        """Where each of these distinct words stands in the room; None where there is no such room. One round trip,
        whose cost does not grow with other rooms."""

    async def facts(self, *, tenant: str, room_id: str, since: int) -> FactRows:
        """The messages written after the room's revision `since` (0: all), deleted ones only where `since` is above 0;
        none where there is no such room."""

    async def reword(self, *, tenant: str, room_id: str, messages: Sequence[StoredMessage]) -> None:
        """Indexes these messages anew, in place of what is indexed of them. Only with the room locked."""


class Outbox(Protocol):
    """Messages, or versions of memories, whose vectors are due, of all tenants: written with them, taken away when the
    vector is kept.

    Each waits once however often it changes. Calls that write need a writing unit of work.
    """

    async def add(self, *, tenant: str, scope: str, numbers: Sequence[int], only_if_kept: bool = False) -> None:
        """Notes that messages with these arrivals, or memories with these row numbers, were added, changed or deleted.
        `scope`: the room, or the memories' scope; it is locked by this unit of work. Unknown numbers are passed over.

        `only_if_kept`: not where no such vector index was begun yet: the first rebuild finds all of them.
        """

    async def claim(self, *, limit: int, now: datetime, lease: timedelta) -> list[IndexTask]:
        """Takes the longest waiting tasks that nobody holds, for as long as the lease; safe beside other claimers."""

    async def finish(self, *, tasks: Sequence[IndexTask]) -> list[IndexTask]:
        """Drops these tasks; one that changed meanwhile goes on waiting, free to be claimed.

        Returns those that were no longer held: their lease ended and somebody else took or finished them meanwhile, or
        they were cleared. Nothing is changed about these.
        """

    async def release(self, *, tasks: Sequence[IndexTask]) -> None:
        """Gives the tasks back undone; those that are no longer held stay as they are."""

    async def clear(self) -> None:
        """Drops every task, claimed ones too: for a rebuild, which puts everything in again."""

    async def waiting(self) -> int:
        """How many tasks there are, claimed ones included."""


class IndexedMemories(Protocol):
    """The active memories as the vector index knows them: by the row numbers of their versions, which no other version
    ever has."""

    async def active(self, *, tenant: str, scope: str, limit: int) -> list[NumberedMemory]:
        """The active memories of the scope, the latest `updated_at` first, then the highest id."""

    async def by_number(self, *, tenant: str, scope: str, numbers: Sequence[int]) -> list[NumberedMemory]:
        """Those of these versions that are active, by number."""

    async def after(self, *, number: int, limit: int) -> list[NumberedMemory]:
        """The active memories of all tenants with a number above this one, ascending: the way a rebuild walks."""

    async def count(self) -> int:
        """How many memories of all tenants are active."""


class IndexStates(Protocol):
    """How each derived index stands: one row an index, for all tenants."""

    async def find(self, *, name: str) -> IndexState | None: ...

    async def save(self, *, state: IndexState, expected: str | None) -> bool:
        """Keeps the state where the stored one is of the generation `expected` (None: where none is stored yet); False,
        and nothing is changed, where another writer was faster. Only while writing."""

    async def rooms_after(self, *, tenant: str, room_id: str, limit: int) -> list[Room]:
        """The rooms of all tenants that come after this one by (tenant, room id), in that order: the way a rebuild
        walks. ('', '') begins."""

    async def rooms_to_link(self, *, model: str, limit: int) -> list[Room]:
        """Some of the rooms of all tenants that have messages and not all links of this model (`Linked.by`)."""

    async def left_to_link(self, *, model: str) -> tuple[int, int]:
        """How many these are, and how many messages in them its walks have not reached."""
