"""The ports of a store for background work: what is noted or due, and how far it has come."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from roomlore.core.models import (
    Room,
)
from roomlore.core.search.hits import IndexState, IndexTask


@dataclass(frozen=True, slots=True)
class RoomBehind:
    """A room that has grown since its last work. `mark`: the position of the work, 0 if it never began."""

    tenant: str
    room_id: str
    mark: int


@dataclass(frozen=True, slots=True)
class DueRoom:
    """A room with work that is due. `noted`: how often it had been noted by then; `noted_at`: when first."""

    tenant: str
    room_id: str
    noted: int
    noted_at: datetime | None = field(default=None, compare=False)


FORGETTING, FORGETTING_SAME_WORDS = OF_PEOPLE = ("forgetting", "forgetting_same_words")
"""Work that is noted for a person, whose id takes the place of the room's. It stays if a room of that id is removed."""
ERASED = "forgetting_erased"
"""Noted for a request that erased the person's messages and left something else; its own name takes the place of the
room's. What the person writes later stays."""
EMPTIED, VACANT = OF_EMPTIED = ("forgetting_room", "forgetting_vacant_room")
"""Work that is noted for a room that is being removed, until its rows are gone. Of a vacant room all messages are
erased, and its vectors are left."""


WORDS = "words"
VECTORS = "messages"
MEMORY_VECTORS = "memories"
LINKS = "links"
"""A name of index states. The state of links has no walk of its own, as each room has one; it only names the model in
force."""

INDEXING = "indexing"
"""The job that brings the indexes in step with SQL."""

RELINKING = "relinking"
"""The job that relinks rooms whose links another link model made."""

THREADS = "threads"
"""The work that moves messages to the thread of what they answer, and the job that enqueues it."""


class Outbox(Protocol):
    """Messages, or versions of memories, whose vectors are due, of all tenants. They are written with the data and
    removed once the vector is stored.

    Each waits once, however often it changes. Calls that write need a writing unit of work.
    """

    async def add(self, *, scope: str, numbers: Sequence[int], only_if_kept: bool = False) -> None:
        """Record that messages with these arrivals, or memories with these row numbers, were added, changed or deleted.
        `scope`: the room, or the memories' scope; it is locked by this unit of work. Unknown numbers are ignored.

        `only_if_kept`: do nothing if such a vector index was never begun: the first rebuild finds everything.
        """

    async def claim(self, *, limit: int, now: datetime, lease: timedelta) -> list[IndexTask]:
        """Claim the longest waiting free tasks for the duration of the lease; safe beside other claimers."""

    async def finish(self, *, tasks: Sequence[IndexTask]) -> list[IndexTask]:
        """Remove these tasks; one that changed meanwhile goes on waiting, free to be claimed.

        Return those that were no longer held: their lease ended and another claimer took or finished them meanwhile, or
        they were cleared. These are not changed.
        """

    async def release(self, *, tasks: Sequence[IndexTask]) -> None:
        """Return the tasks undone; those that are no longer held stay as they are."""

    async def clear(self) -> None:
        """Delete every task, including claimed ones, for a rebuild, which adds everything again."""

    async def waiting(self) -> int:
        """Return the number of tasks, including claimed ones."""

    async def held(self, *, scope: str, now: datetime) -> int:
        """Return the number of tasks of one room, or scope of memories, whose lease has not ended."""


class Progress(Protocol):
    """Work that is due, who holds it, and how far it is done."""

    @property
    def outbox(self) -> Outbox:
        """The outbox of messages."""

    @property
    def memory_outbox(self) -> Outbox:
        """The outbox of memories. The log adds the entries that its changes make due, if a vector index of memories was
        begun."""

    async def index_state(self, *, name: str) -> IndexState | None: ...

    async def save_index_state(self, *, state: IndexState, expected: str | None) -> bool:
        """Store the state if the stored one has the generation `expected` (None: none is stored yet). Return False,
        without a change, if another writer was faster. Only while writing."""

    async def rooms_after(self, *, tenant: str, room_id: str, limit: int) -> list[Room]:
        """Return the rooms of all tenants that come after this one by (tenant, room id), in that order, the order of a
        rebuild. ('', '') begins."""

    async def rooms_to_link(self, *, model: str, limit: int) -> list[Room]:
        """Return some of the rooms of all tenants that have messages whose links are not all of this model
        (`Linked.by`)."""

    async def left_to_link(self, *, model: str) -> tuple[int, int]:
        """Return the number of these rooms, and of messages in them that their walks have not reached."""

    async def note_room(self, *, room_id: str, work: str, now: datetime) -> None:
        """Record that the work is due for the room; if it is recorded already, count it again and make it free to be
        claimed."""

    async def claim_rooms(self, *, work: str, now: datetime, lease_until: datetime, limit: int) -> Sequence[DueRoom]:
        """Claim up to `limit` rooms of any tenant, the longest waiting first. They stay claimed until `lease_until`,
        unless they are noted again, and are then free again; so the rooms of a killed process are not lost."""

    async def noted(self, *, work: str, room_id: str | None = None) -> list[DueRoom]:
        """Return the rooms of a tenant for which the work is noted, claimed or not, those noted first before others; or
        the one room. While reading too."""

    async def put_off(self, *, room: DueRoom, work: str, until: datetime) -> None:
        """Postpone work in progress: the room is free again at `until`, or now if it was noted since."""

    async def done(self, *, room: DueRoom, work: str) -> bool:
        """Record the work as done as far as it was noted then. Return False, with the room free again, if it was noted
        since."""

    async def any_noted(self, *, work: str) -> bool:
        """Return True if a room is noted, claimed or not. While reading too."""

    async def marks(self, *, room_id: str, names: Sequence[str]) -> dict[str, int]:
        """Return the arrival up to which each named work is done; absent if it never began."""

    async def marks_of_room(self, *, room_id: str, prefix: str) -> dict[str, int]:
        """Return every mark of the room whose name has this prefix."""

    async def move_mark(self, *, room_id: str, name: str, arrival: int, was: int, now: datetime) -> bool:
        """Move the mark from `was` (0 if there is none) to `arrival`. Return False if it is not at `was`. Only while
        writing."""

    async def rooms_behind(self, *, name: str, least: int, after: tuple[str, str], limit: int) -> list[RoomBehind]:
        """Return rooms of all tenants with at least `least` arrivals above the named mark (deleted messages count too),
        those after this tenant and room id, in that order. ('', '') begins."""

    async def take_lease(self, *, name: str, holder: str, now: datetime, until: datetime) -> bool:
        """Take or extend the lease. Return False if another holder still has it."""

    async def free_lease(self, *, name: str, holder: str) -> None:
        """Release the lease; nothing happens if another holder has it."""

    async def import_position(self, *, source: str) -> str | None:
        """Return the last saved position of this source, or None."""

    async def save_import_position(self, *, source: str, position: str, now: datetime) -> None:
        """Store the position in place of an earlier one."""

    async def forget_import_position(self, *, source: str) -> None:
        """Remove the position; no error if there is none."""
