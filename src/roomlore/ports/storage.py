"""Storage of rooms and messages with all that belongs to them, and the unit of work that holds its repositories."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from roomlore.core.audience import PastKind, RoomKind, RoomPeople, RoomStamp, Stay, Window
from roomlore.core.linking.calibration import Linked
from roomlore.core.linking.corrections import Standing, Threads
from roomlore.core.models import (
    Correction,
    CorrectionKind,
    Entry,
    Exchange,
    Link,
    Origin,
    Room,
    Speaker,
    StoredMessage,
    Target,
    Thread,
    Voice,
)
from roomlore.core.search.hits import FactRows, Postings
from roomlore.core.sessions.session import Checkpoint, Due, Session
from roomlore.ports.administration import Archives, Keys, Tenants, Usage
from roomlore.ports.maintenance import Maintenance
from roomlore.ports.memories import Memories
from roomlore.ports.progress import Progress

SESSIONS = "session-checkpoints"
"""The background job that makes the checkpoints that are due."""


class Sessions(Protocol):
    """The sessions of a tenant. Every call may raise `StorageUnavailable`."""

    async def find(self, *, conversation_id: str) -> Session | None:
        """Return the session with its checkpoint and the position of its room, in one round trip.

        A room without a session of its own gives one of version 0, with the times of the room; None if there is no such
        room.
        """

    async def page(self, *, after: str | None, limit: int) -> list[Session]:
        """Return sessions of version 1 and more with a conversation id above `after`, ascending by it."""

    async def save(self, *, session: Session) -> None:
        """Store the session in place of the stored one; its room must be locked by this unit of work.

        `revision`, `next_arrival`, `due` and all but the number of `checkpoint` are not written, as other calls do
        that. A session that is saved for the first time is not due.
        """

    async def mark(self, *, checkpoint: Checkpoint) -> None:
        """Add a checkpoint or a reset to the history of its conversation, whose room is locked. Raises `Conflict` if
        its number is taken."""

    async def history(self, *, conversation_id: str, before: int | None, limit: int) -> list[Checkpoint]:
        """Return the newest `limit` checkpoints and resets with a number below `before`, newest first."""

    async def due(self, *, now: datetime, lease_until: datetime, limit: int) -> Sequence[tuple[str, str, Due]]:
        """Claim up to `limit` sessions of any tenant that are due by `now`, the longest waiting first: tenant,
        conversation id, and the due checkpoint. They are due again at `lease_until`, so that those of a killed process
        are not lost; concurrent claims never return the same one. Only while writing."""

    async def schedule(self, *, conversation_id: str, due: Due | None, was: datetime | None) -> bool:
        """Set or clear when the session is due, if `was` is the present due time (None: it was not due). Return True if
        it was changed. Only while writing. Takes no lock on the room and leaves the version as it is."""


MOST_BETWEEN = 10_000
"""What is said in no topic is looked for among so many messages of a room with topics."""


class Rooms(Protocol):
    """The rooms of a tenant, their counters, settings and people."""

    async def find(self, *, room_id: str) -> Room | None:
        """Return the room as stored, or None."""

    async def page(self, *, after: str | None, limit: int) -> list[Room]:
        """Return rooms with an id above `after`, ascending by id."""

    async def lock(self, *, room_id: str, now: datetime) -> Room:
        """Return the room, created if new, with its row locked until the unit of work ends. Only while writing."""

    async def lock_known(self, *, room_id: str) -> Room | None:
        """Return the room with its row locked until the unit of work ends, None if there is no such room. Only while
        writing."""

    async def configure(self, *, room_id: str, settings: Mapping[str, Any]) -> Room:
        """Replace the room's own settings and raise its revision. Raises `NotFound` if there is no such room."""

    async def participants(self, *, room_id: str) -> dict[str, str]:
        """Return sender id to last known name ('' if none) of everyone who has spoken, in order of first speaking."""

    async def names_of(self, *, room_ids: Collection[str], sender_ids: Collection[str]) -> dict[str, dict[str, str]]:
        """Return by room and sender id the last known names of these senders in these rooms, without empty ones."""

    async def participants_before(self, *, room_id: str, arrival: int) -> dict[str, str]:
        """Return the participants before the message with this arrival, by the messages that still exist. It reads all
        of these."""

    async def last_spoken(self, *, room_id: str, sender_id: str) -> int:
        """Return the arrival of the newest message that this sender wrote in the room, 0 if there is none."""

    async def set_kind(self, *, room_id: str, kind: RoomKind | None, past: Sequence[PastKind] = ()) -> Room:
        """Set the kind of a locked room, None for unknown, and those it had before, and raise its revision."""

    async def rename(self, *, room_id: str, name: str) -> Room:
        """Name a locked room, '' for no name, and raise its revision."""

    async def set_members(self, *, room_id: str, stays: Mapping[str, Sequence[Stay]], complete: bool) -> None:
        """Replace the members of a locked room and raise its revision: by person, their stays in order. `complete`:
        they are all there are."""

    async def people(
        self, *, room_ids: Collection[str], persons: Collection[str] | None = None
    ) -> dict[str, RoomPeople]:
        """Return the people of these rooms, by room, without unknown rooms: members and those who spoke, without agents
        (who spoke, and never with the role user). `persons`: only these; None is all."""

    async def stamps(self, *, room_ids: Collection[str]) -> dict[str, RoomStamp]:
        """Return the stamps of these rooms, without unknown rooms. While a room has the same stamp, `people` returns
        the same of it."""

    async def used_last(self, *, limit: int, public: bool = False, offset: int = 0) -> list[Room]:
        """Return rooms, or only those that were public at all times, those with the latest message first, then by id,
        after the first `offset`."""

    async def partly_public(self) -> list[Room]:
        """Return the rooms that were public at some times and not at others, by id."""

    async def named_like(self, *, part: str, limit: int, whole: bool = False) -> list[Room]:
        """Return rooms whose id or name contains `part`, whatever its case in ASCII, those with the latest message
        first. `whole`: only those whose id or name is the part."""

    async def speakers(
        self, *, part: str, room_ids: Collection[str] | None, limit: int, offset: int = 0
    ) -> list[Speaker]:
        """Return those who spoke and whose id or name contains `part` ('' for everybody), whatever its case in ASCII:
        who spoke last comes first, then by id. `room_ids`: in these rooms only; None is all."""

    async def voices(self, *, sender_id: str) -> list[Voice]:
        """Return where this sender spoke, the room with the sender's latest message first, then by id."""

    async def of_person(self, *, person_id: str) -> list[Room]:
        """Return all rooms in which this person spoke or was told to be, ascending by id."""

    async def of_sender(self, *, sender_id: str) -> list[str]:
        """Return the ids of the rooms in which this sender has spoken, ascending."""


@dataclass(frozen=True, slots=True)
class Met:
    """The room of a batch, and what it has of the batch. `fingerprints`: as `Messages.fingerprints` returns them;
    `awaited`: True if stored messages reply to messages of the batch."""

    room: Room
    fingerprints: Mapping[str, str]
    awaited: bool


@dataclass(frozen=True, slots=True)
class Relinked:
    """The room after links were replaced. `changed`: how many messages have another link or thread; `left`: True if
    more may have to follow."""

    room: Room
    changed: int
    left: bool


class Messages(Protocol):
    """The messages of a room, their threads and words.

    Appending, replacing and erasing messages update their words, the participants, the keyword counts and the room's
    counters in the same transaction. A call that changes messages needs the room's lock, and raises its revision by
    one.
    """

    async def fingerprints(self, *, room_id: str, message_ids: Sequence[str]) -> dict[str, str]:
        """Return message id to content hash for those ids that are taken, including deleted ones ('' for them)."""

    async def met(self, *, room_id: str, message_ids: Sequence[str]) -> Met | None:
        """Return what a batch with these ids meets in the room, in one round trip; None if there is no such room."""

    async def origins(self, *, room_id: str, message_ids: Sequence[str]) -> dict[str, Origin]:
        """Return message id to times and sender for those ids that are taken, including deleted ones."""

    async def by_id(self, *, room_id: str, message_ids: Sequence[str]) -> list[Entry]: ...

    async def by_arrival(self, *, room_id: str, arrivals: Sequence[int]) -> list[Entry]: ...

    async def messages_by_arrival(self, *, room_id: str, arrivals: Sequence[int]) -> list[StoredMessage]:
        """Return the messages at these arrivals without features and links, in order of arrival."""

    async def said(self, *, room_id: str) -> dict[int, Window]:
        """Return arrival to the time from when until when it was said (`Origin.first`, `last`), of the messages of the
        room that were not said at `sent_at` alone: edited and estimated ones."""

    async def tail(
        self, *, room_id: str, limit: int, before: int | None = None, since: datetime | None = None
    ) -> list[Entry]:
        """Return the newest `limit` entries with arrival < `before` and `sent_at` >= `since`, in order of arrival."""

    async def recent(self, *, room_id: str, limit: int, before: int | None = None) -> list[StoredMessage]:
        """Return the newest `limit` messages with arrival < `before`, in order of arrival: the plain window."""

    async def newest_of(self, *, room_ids: Collection[str], characters: int) -> dict[str, StoredMessage]:
        """Return the newest message of each of these rooms, with the first `characters` of its text, without rooms
        that have none."""

    async def sent_between(
        self, *, room_ids: Collection[str], times: Sequence[datetime], most: int
    ) -> dict[str, tuple[int, ...]]:
        """Return how many messages of each of these rooms were sent from each time until the next one, at most `most`,
        however many there are; without unknown rooms."""

    async def page(self, *, room_id: str, after: int, limit: int, sender_id: str | None = None) -> list[StoredMessage]:
        """Return messages with arrival > `after`, ascending; `sender_id`: only those of this sender."""

    async def recent_with_hashes(
        self, *, room_id: str, limit: int, before: int | None = None
    ) -> list[tuple[StoredMessage, str]]:
        """Return the messages of `recent`, each with its content hash at that moment."""

    async def page_with_hashes(
        self, *, room_id: str, after: int, limit: int, sender_id: str | None = None
    ) -> list[tuple[StoredMessage, str]]:
        """Return the messages of `page`, each with its content hash at that moment."""

    async def count(self, *, room_id: str, after: int, sender_id: str | None = None) -> int:
        """Return the total number of results of `page`."""

    async def first_since(self, *, room_id: str, since: datetime) -> int | None:
        """Return the lowest arrival of a message sent at `since` or later; None if there is none."""

    async def replies_of(self, *, room_id: str, agent_id: str, after: int, limit: int) -> list[int]:
        """Return arrivals above `after` of the agent's replies, ascending: messages of the role assistant that call no
        tools."""

    async def ids_like(self, *, room_id: str, part: str, limit: int) -> list[str]:
        """Return the ids of at most `limit` messages that begin or end with `part`, in order of arrival, without
        deleted messages."""

    async def arrival_of(self, *, room_id: str, message_id: str) -> int | None:
        """Return the arrival of the message with this id, including deleted ones; None if the id was never used."""

    async def changed(self, *, room_id: str, revision: int, after: int) -> tuple[list[StoredMessage], list[int]]:
        """Return the changes of the messages with arrival > `after` since the room's `revision`: those that were added,
        edited or relinked, in order of arrival, and the arrivals of those that were deleted."""

    async def appended(self, *, room_id: str, since: int, through: int, after: int, limit: int) -> list[Entry] | None:
        """Return the entries with arrival > `after` as they are now, in order of arrival, if nothing but messages with
        these arrivals changed in the room from its revision `since` to its revision `through`. Return None otherwise,
        and if there are more than `limit`."""

    async def target(self, *, room_id: str, message_id: str | None, window: int) -> Target | None:
        """Return the input for choosing a context, in one round trip; None if there is no such message.

        It holds the room, the entry (if `message_id` is None the newest one with role user), and the number of messages
        and tokens of the newest `window` messages before it.
        """

    async def related(
        self, *, room_id: str, entry: Entry, hops: int, limit: int, before: int | None = None
    ) -> list[Entry]:
        """Return up to `limit` entries on the entry's platform reply chain, the nearest if there are more.

        These are ancestors and descendants by `reply_to` up to `hops` away, siblings along it, and messages with the
        same root; only those with arrival < `before`, and the message that the entry itself replies to.
        """

    async def of_root(self, *, room_id: str, root_id: str, limit: int, before: int) -> list[int]:
        """Return the arrival of the root of a platform thread, if it is there, and then those of its newest `limit`
        messages with arrival < `before`, the newest first."""

    async def of_topic(self, *, room_id: str, topic_id: str | None, limit: int, before: int) -> list[Entry]:
        """Return the newest `limit` entries of a topic with arrival < `before`, in order of arrival. None: those in no
        topic, among the last `MOST_BETWEEN` arrivals."""

    async def waiting(self, *, room_id: str, message_ids: Sequence[str]) -> list[Entry]:
        """Return entries whose `reply_to` is one of these ids but whose link is not a platform link yet."""

    async def threads(self, *, room_id: str, after: int, limit: int) -> list[tuple[int, Thread]]:
        """Return threads whose first message's arrival is > `after`, ascending, each with that arrival and without a
        title."""

    async def thread_members(self, *, room_id: str, thread: int, limit: int) -> list[Entry]:
        """Return the newest `limit` entries whose link names this thread, in order of arrival."""

    async def answered_through(self, *, room_id: str, arrival: int) -> list[int]:
        """Return the arrivals of what this message answers, of what that answers, and so on, ascending."""

    async def threads_after(self, *, room_id: str, after: int, limit: int) -> Threads:
        """Return the threads of the first `limit` messages with arrival > `after`, deleted ones too."""

    async def platform_replies(self, *, room_id: str) -> list[int]:
        """Return the arrivals of the messages whose link the platform states, ascending."""

    async def members_of(self, *, room_id: str, threads: Sequence[int], each: int) -> list[Entry]:
        """Return the newest `each` entries of each of these threads, all in order of arrival."""

    async def exchanges(
        self, *, room_id: str, arrivals: Sequence[int], least: float, limit: int
    ) -> dict[int, Exchange]:
        """Return, for each of these arrivals, the message it answers and the likeliest `limit` that answer it.

        Only links of at least this probability count. Among equally likely answers the earlier comes first. An arrival
        without such a link is absent.
        """

    async def keyword_counts(self, *, room_id: str, keywords: Sequence[str]) -> dict[str, int]:
        """Return the number of messages of the room with each keyword; absent if none."""

    async def look_up(self, *, room_id: str, words: Sequence[str]) -> Postings | None:
        """Return the positions of each of these distinct words in the room; None if there is no such room. One round
        trip, whose cost does not grow with other rooms."""

    async def facts(self, *, room_id: str, since: int) -> FactRows:
        """Return the messages written after the room's revision `since` (0: all), deleted ones only if `since` is above
        0; empty if there is no such room."""

    async def reword(self, *, room_id: str, messages: Sequence[StoredMessage]) -> None:
        """Index these messages anew, in place of their earlier entries. Requires the room's lock."""

    async def append(self, *, room_id: str, entries: Sequence[Entry], linked: Linked | None = None) -> Room:
        """Add entries whose arrivals continue `next_arrival` without a gap. Return the room after it. `linked`: the
        room's from now on; None keeps it."""

    async def analyse_anew(self, *, room_id: str, entries: Sequence[Entry], linked: Linked | None = None) -> Room:
        """Replace the features and links of the messages of these entries; nothing else moves, and texts, people and
        times stay. `linked` as in `append`. Raises `NotFound` if no visible message has an entry's arrival and id."""

    async def replace(self, *, room_id: str, entries: Sequence[Entry]) -> Room:
        """Replace the entries at their arrivals (edits); threads move as in `relink`. Raises `NotFound` if no visible
        message has an entry's arrival and id."""

    async def erase(self, *, room_id: str, arrivals: Sequence[int], now: datetime) -> Room:
        """Empty these messages and hide them; id and arrival stay taken."""

    async def restore(self, *, room_id: str, entries: Sequence[Entry]) -> Room:
        """Put erased messages of a locked room back in their places, with these features and links."""

    async def relink(
        self, *, room_id: str, links: Mapping[int, Link], linked: Linked | None = None, most: int | None = None
    ) -> Relinked:
        """Give the entries at these arrivals new links. If a link's thread changed, all descendants (by parent, linked,
        in the old thread) move to the new thread with it. `linked` as in `append`. `most`: so many descendants move at
        most, each after what it answers; None is all. The others are to `follow`."""

    async def follow(self, *, room_id: str, arrivals: Sequence[int]) -> int:
        """Move each of these messages, in this order, to the thread of what it answers now, deleted ones too. Return
        how many were in another one; if none was, the room stays as it is."""


class Corrections(Protocol):
    """The log of the links that people corrected. It ends for a message when that is erased."""

    async def add(
        self, *, room_id: str, arrival: int, kind: CorrectionKind, standing: Standing | None, by: str, at: datetime
    ) -> int:
        """Append an entry for the message with this arrival to the log of a locked room, in place of the one in force
        for that message. `standing`: None if that one is taken back. Return the number of the entry."""

    async def standing(self, *, room_id: str, arrivals: Sequence[int]) -> dict[int, Standing]:
        """Return the corrections in force of these messages, by arrival."""

    async def hear(
        self, *, room_id: str, model: str, errors: Mapping[int, Sequence[int]], arrivals: Sequence[int]
    ) -> None:
        """Record for the corrections in force of these messages of a locked room what they added to the calibration of
        this link model; nothing for those without `errors`."""

    async def page(self, *, room_id: str, before: int | None, limit: int) -> list[Correction]:
        """Return the newest `limit` entries of the log with a number below `before`, newest first; empty for an unknown
        room. `answers` is None where the message that was answered is erased."""

    async def in_force(self, *, after: tuple[str, int], limit: int) -> list[Correction]:
        """Return corrections in force of all rooms, ascending by room and number, those after this room id and number.
        ('', 0) begins."""


@dataclass(frozen=True, slots=True)
class GrownThread:
    """A thread for which a title may be due. `thread`: the arrival of its first message. `messages`: how many it has,
    `titled`: how many it had when its title was made, 0 if it has none or that is to be made again."""

    thread: int
    messages: int
    titled: int


class ThreadTitles(Protocol):
    """The titles of threads that a model wrote. The title of a thread is removed, to be made again, in the transaction
    that changes, deletes or relinks one of its messages."""

    async def find(self, *, room_id: str, threads: Sequence[int]) -> dict[int, str]:
        """Return the titles of these threads; absent if there is none."""

    async def grown(self, *, room_id: str, after: int, through: int) -> list[GrownThread]:
        """Return the threads with a message with an arrival above `after` and up to `through`, and those whose title is
        to be made again, ascending."""

    async def stale_rooms(self, *, limit: int) -> list[tuple[str, str]]:
        """Return (tenant, room id) of rooms with titles to be made again, ascending."""

    async def put(self, *, room_id: str, titles: Mapping[int, tuple[str, int]], made_by: str, now: datetime) -> None:
        """Store the titles of threads of a locked room, each with the number of messages that the thread has, 0 to have
        it made again. An empty one keeps the title that is there."""

    async def drop_stale(self, *, room_id: str, threads: Sequence[int]) -> None:
        """No longer make the titles of these threads of a locked room again."""


class UnitOfWork(Protocol):
    """One transaction's view of everything stored: of one tenant, or over all of them.

    Calls that need a tenant raise `RuntimeError` in a unit over all tenants.
    """

    @property
    def tenant(self) -> str:
        """Return the tenant; raise `RuntimeError` if the unit is over all tenants."""

    def of(self, tenant: str) -> "UnitOfWork":
        """Return a unit of the same transaction, under the same locks, for this tenant."""

    @property
    def rooms(self) -> Rooms: ...
    @property
    def messages(self) -> Messages: ...
    @property
    def corrections(self) -> Corrections: ...
    @property
    def titles(self) -> ThreadTitles: ...
    @property
    def sessions(self) -> Sessions: ...
    @property
    def memories(self) -> Memories: ...
    @property
    def progress(self) -> Progress: ...
    @property
    def usage(self) -> Usage: ...
    @property
    def keys(self) -> Keys: ...
    @property
    def archives(self) -> Archives: ...
    @property
    def tenants(self) -> Tenants: ...
    @property
    def maintenance(self) -> Maintenance: ...


class Storage(Protocol):
    """Opens units of work. All writes of one are committed together when its block ends, or none of them if it
    raises."""

    def reading(self, tenant: str | None = None) -> AbstractAsyncContextManager[UnitOfWork]:
        """Open a view for reading, of a tenant or over all of them; several may be open at once. Each call sees what
        was committed when it began, so a write may happen between two calls: compare revisions if that matters."""

    def writing(self, tenant: str | None = None, *, brief: bool = False) -> AbstractAsyncContextManager[UnitOfWork]:
        """Open a view for writing; committed when the block ends, rolled back when it raises.

        `brief`: the block takes a few milliseconds and waits for nothing but storage. It may share a transaction with
        other brief ones, but not its success or failure, and it still returns only when it is committed.
        """

    async def ping(self) -> None:
        """Return when the database answers."""

    async def try_writing(self) -> None:
        """Commit a write that changes nothing. Raises `StorageUnavailable` if nothing can be written."""

    async def close(self) -> None: ...


class DueWork(Protocol):
    """A part of roomlore that has work to do after messages are written."""

    async def note(self, work: UnitOfWork, room_id: str, entries: Sequence[Entry]) -> bool:
        """Note the work that these messages of a locked room make due, in the transaction that writes them. Return
        True if `announce` has to follow."""

    def announce(self) -> None:
        """Request the work, once the transaction is committed."""
