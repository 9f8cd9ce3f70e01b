"""Removing a person from the store, and reading stored rows to check their integrity."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from roomlore.core.integrity import StoredVersion
from roomlore.core.memory.log import Snapshot
from roomlore.core.memory.memory import Change, Evolution, Memory
from roomlore.core.models import StoredMessage


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
class Linked:
    """Ids of messages in a room, and of its turns, to which other messages may refer."""

    message_ids: frozenset[str]
    turn_ids: frozenset[str]


CompactDatabase = Callable[[], Awaitable[None]]
"""Free unused pages and truncate the write-ahead log, so that no removed row can be read in the database's files. Waits
for other writers, and blocks them meanwhile."""


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


class Maintenance(Protocol):
    """Removing a person, rewriting memories in place, and reading rows as they are stored."""

    async def rooms_of(self, *, user_id: str) -> list[RoomOfPerson]:
        """Return the rooms, ascending by id."""

    async def others_in(self, *, room_id: str, user_id: str) -> bool:
        """Return True if anybody else but assistants has spoken in the room; False if there is no such room."""

    async def said_by_others(self, *, user_id: str, texts: Sequence[str]) -> set[str]:
        """Return those of these texts that are the whole of a message of another user."""

    async def rename_messages(self, *, room_id: str, ids: Mapping[int, str]) -> None:
        """Give the messages at these arrivals other ids. The room is locked."""

    async def forget_session(self, *, room_id: str, user_id: str, first: int) -> int:
        """Remove the person from the room's session, with everything that callers keep with it if it is theirs, and
        delete the summaries that cover arrival `first` (0: none). Return the number of entries. The room is locked."""

    async def remove_room(self, *, room_id: str, limit: int) -> int:
        """Remove up to `limit` messages of a locked room with all dependent rows and, when none is left, the room with
        everything stored under its id. Return 0 or more while work is left, -1 once the room is gone."""

    async def drop_vector_scope(self, *, scope: str) -> None:
        """Delete the name of a scope of vectors in this database, with its remaining vectors."""

    async def versions(self, *, after: int, limit: int) -> list[tuple[int, Memory]]:
        """Return every version of any scope with a row number above `after`, with that number, ascending."""

    async def rewrite_versions(self, *, scope: str, memories: Sequence[Memory]) -> None:
        """Replace the statements of these versions, and their sources; ids, order and status stay. The scope is
        locked."""

    async def rewrite_changes(self, *, scope: str, changes: Sequence[Change]) -> None:
        """Replace the content of these log entries; ids, order and action stay. The scope is locked."""

    async def rename_scope(self, *, scope: str, name: str) -> None:
        """Rename a locked scope, with its memories, log and records."""

    async def evolutions(self, *, after: str, limit: int) -> list[Evolution]:
        """Return the tenant's records with an id above `after`, ascending."""

    async def lock_evolutions(self, *, evolution_ids: Sequence[str]) -> list[Evolution]:
        """Return these records as they are now, ascending by id, and let no one else change them until the end of the
        unit of work."""

    async def rewrite_evolution(self, *, evolution: Evolution) -> None:
        """Replace the texts of the record, and its room."""

    async def rooms_telling(self, *, user_id: str, sought: Sought) -> list[str]:
        """Return the ids of the rooms, ascending, with a message of another sender whose text or metadata has what is
        sought, or that refers to a name that is. May return others too: the engine compares what it stores."""

    async def messages_telling(
        self, *, room_id: str, user_id: str, sought: Sought, linked: Linked | None, after: int, limit: int
    ) -> list[int]:
        """Return the arrivals of these messages above `after`, ascending; with `linked` also of messages that refer to
        those, or whose features name a name that is sought. May return others too."""

    async def tables(self) -> Mapping[str, Sequence[str]]:
        """Return every table that holds rows of tenants, with its columns of text."""

    async def count_rows(self, *, table: str) -> int:
        """Return the number of rows."""

    async def rooms_with(self, *, table: str, columns: Sequence[str], sought: Sought) -> list[int] | None:
        """Return the keys of the rooms with rows in which one of the columns has what is sought; None if the table has
        no keys of rooms, or if so much is sought that all rows are to be read. May return others too."""

    async def rows(
        self,
        *,
        table: str,
        after: tuple[Any, ...] | None,
        limit: int,
        columns: Sequence[str] = (),
        sought: Sought | None = None,
        room_key: int | None = None,
    ) -> list[StoredRow]:
        """Return rows with a key above `after`, ascending: of all rooms or one, and with `sought` only those in which
        one of the columns has it, and maybe others."""

    async def redact_row(
        self, *, table: str, key: tuple[Any, ...], columns: Sequence[str], change: Callable[[str], str]
    ) -> None:
        """Change every text in these columns of the row, and raise the revision of its room."""

    async def drop_row(self, *, table: str, key: tuple[Any, ...]) -> None:
        """Delete the row, to which no other row may refer."""

    async def read_versions(self, *, scope: str, after: int, limit: int) -> list[ReadVersion]:
        """Return rows of the scope with a number above `after`, ascending."""

    async def read_log(self, *, scope: str, after: int, limit: int) -> list[ReadChange]:
        """Return entries of the scope's log with a number above `after`, ascending."""

    async def read_snapshots(self, *, scope: str, after: int, until: int, limit: int) -> list[ReadSnapshot]:
        """Return snapshots of the scope's log with a number above `after` up to `until`, ascending."""

    async def found_from(self, *, scope: str, room_id: str, message_ids: Sequence[str]) -> set[tuple[str, int]]:
        """Return the scope's rows found from these messages, by message id and number."""

    async def support_rows(self, *, scope: str | None, after: tuple[str, str, int], limit: int) -> list[ReadSupport]:
        """Return the rows by which memories are found from messages, of one scope or all, ascending by room, message
        and number, and above `after`; ('', '', 0) begins. Rows of no memory only if `scope` is None."""

    async def read_messages(self, *, room_id: str, after: int, limit: int) -> Callable[[], Sequence[ReadMessage]]:
        """Return a function that reads the room's messages with an arrival above `after`, ascending, including deleted
        ones: up to `limit`, fewer if they are long, none at the room's end. The function uses the processor only; it
        needs no open unit of work."""

    async def word_index_mismatch(self, *, room_id: str) -> WordIndexMismatch | None:
        """Return the difference, or None if the index is derived from the rows, by their counts at least, or there is
        no separate index."""

    async def orphan_rows(self, *, after: OrphanRow | None, limit: int) -> list[OrphanRow]:
        """Return rows of features, corrected links and words without a message, ascending by table, room and arrival,
        above `after`."""

    async def marks_ahead(self) -> list[MarkAhead]:
        """Return the watermarks beyond the end of their room, by room and name."""
