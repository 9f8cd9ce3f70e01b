"""Values that the storage returns, beside those of `core`, and the names under which it keeps background work."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from roomlore.core.integrity import StoredVersion
from roomlore.core.memory.log import Snapshot
from roomlore.core.memory.memory import Change
from roomlore.core.models import Room, StoredMessage

MOST_BETWEEN = 10_000
"""What is said in no topic is looked for among so many messages of a room with topics."""
FORGETTING, FORGETTING_SAME_WORDS = OF_PEOPLE = ("forgetting", "forgetting_same_words")
"""Work that is noted for a person, whose id takes the place of the room's. It stays if a room of that id is removed."""
ERASED = "forgetting_erased"
"""Noted for a request that erased the person's messages and left something else; its own name takes the place of the
room's. What the person writes later stays."""
EMPTIED, VACANT = OF_EMPTIED = ("forgetting_room", "forgetting_vacant_room")
"""Work that is noted for a room that is being removed, until its rows are gone. Of a vacant room all messages are
erased, and its vectors are left."""
DELETING = "room_deletion"
"""Work that is noted for a room that is being deleted, until it is gone."""
THREADS = "threads"
"""The work that moves messages to the thread of what they answer, and the job that enqueues it."""
ATTACHMENTS = "attachments"
"""The work that puts the attachments of messages into words, and the job that enqueues it."""
WORDS = "words"
VECTORS = "messages"
MEMORY_VECTORS = "memories"
LINKS = "links"
"""A name of index states. The state of links has no walk of its own, as each room has one; it only names the model in
force."""
ArchivePhase = Literal["writing", "kept", "gone"]


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


@dataclass(frozen=True, slots=True)
class GrownThread:
    """A thread for which a title may be due. `thread`: the arrival of its first message. `messages`: how many it has,
    `titled`: how many it had when its title was made, 0 if it has none or that is to be made again."""

    thread: int
    messages: int
    titled: int


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


@dataclass(frozen=True, slots=True)
class RoomOfPerson:
    """A room in which a person has spoken or has a session, or whose id contains theirs, alone or as a part between
    colons. `others`: True if anybody else but assistants has spoken there."""

    room_id: str
    others: bool


@dataclass(frozen=True, slots=True)
class StoredRow:
    """A row of any table. `key`: its primary key. `texts`: all texts of each column with text, several if it holds
    JSON."""

    key: tuple[Any, ...]
    texts: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Sought:
    """A search in texts: for `names` as in `name.lower() in text.lower()`, for `texts` letter by letter."""

    names: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ReferencedIds:
    """Ids of messages in a room, and of its turns, to which other messages may refer."""

    message_ids: frozenset[str]
    turn_ids: frozenset[str]


@dataclass(frozen=True, slots=True)
class ReadVersion:
    """A row of the table of memories. `stored`: None if it cannot be read; `why`: the reason."""

    number: int
    memory_id: str
    stored: StoredVersion | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class ReadChange:
    """An entry of a log. `change`: None if it cannot be read; `why`: the reason."""

    number: int
    change: Change | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class ReadSnapshot:
    """A stored snapshot of a log. `snapshot`: None if it cannot be read; `why`: the reason."""

    number: int
    snapshot: Snapshot | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class ReadSupport:
    """A row by which a memory is found from a message. `number`: of the memory's row; `scope`, `memory_id`: None if the
    tenant has no such row. `rests`: True if the memory names the message among its sources; None if these cannot be
    read."""

    room_id: str
    message_id: str
    number: int
    scope: str | None = None
    memory_id: str | None = None
    rests: bool | None = None


@dataclass(frozen=True, slots=True)
class ReadMessage:
    """A message with its derived rows. `number`: its arrival; `message`: None if it was deleted or cannot be read,
    `why`: the reason in the latter case. `features`: True if they have a row; `words`: the state of its row of words,
    'unknown' for an unreadable message; `length`: the number of words in that row."""

    number: int
    message_id: str
    message: StoredMessage | None
    features: bool
    words: Literal["right", "other", "missing", "unknown"]
    length: int
    why: str = ""


@dataclass(frozen=True, slots=True)
class WordIndexMismatch:
    """A room whose word index differs from the rows of its messages. `indexed`, `kept`: the number of words in each;
    `missing`, `surplus`: arrivals of messages that only the rows, and only the index has."""

    indexed: int
    kept: int
    missing: tuple[int, ...] = ()
    surplus: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class OrphanRow:
    """A row of a table whose message does not exist."""

    table: str
    room_key: int
    arrival: int


@dataclass(frozen=True, slots=True)
class MarkAhead:
    """A watermark beyond the end of its room. `last`: the room's last arrival, 0 if there is no such room."""

    room_id: str
    name: str
    arrival: int
    last: int


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
