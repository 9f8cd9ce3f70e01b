"""Reading what is stored row by row, to check that it holds together.

Unlike everywhere else a row that cannot be read is no error: it is told. Calls name a tenant and see nothing of
another. Any call may raise `StorageUnavailable`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from roomlore.core.memory.models import Change
from roomlore.core.models import StoredMessage
from roomlore.core.soundness.scope import StoredVersion


@dataclass(frozen=True, slots=True)
class ReadVersion:
    """A row of the table of memories. `stored`: None where it cannot be read; `why` says why."""

    number: int
    memory_id: str
    stored: StoredVersion | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class ReadChange:
    """An entry of a log. `change`: None where it cannot be read; `why` says why."""

    number: int
    change: Change | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class ReadSupport:
    """A row by which a memory is found from a message. `number`: of the memory's row; `scope`, `memory_id`: None where
    the tenant has no such row. `rests`: whether the memory names the message among its sources; None where these cannot
    be read."""

    room_id: str
    message_id: str
    number: int
    scope: str | None = None
    memory_id: str | None = None
    rests: bool | None = None


@dataclass(frozen=True, slots=True)
class ReadMessage:
    """A message with what is kept of it besides. `number`: its arrival; `message`: None where it was deleted or cannot
    be read, then `why` says why. `features`: whether there is a row of them; `words`: what the row of its words is,
    'unknown' beside a message that cannot be read; `length`: how many words that row counts."""

    number: int
    message_id: str
    message: StoredMessage | None
    features: bool
    words: Literal["right", "other", "missing", "unknown"]
    length: int
    why: str = ""


@dataclass(frozen=True, slots=True)
class WordsAstray:
    """Where the word index itself has other words of a room than the rows of its messages. `indexed`, `kept`: how many
    words each of them has; `missing`, `surplus`: arrivals of messages that only the rows, and only the index has."""

    indexed: int
    kept: int
    missing: tuple[int, ...] = ()
    surplus: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Stray:
    """A row of a table, of a message that is not there."""

    table: str
    room_key: int
    arrival: int


@dataclass(frozen=True, slots=True)
class MarkAhead:
    """A watermark beyond the end of its room. `last`: the room's last arrival, 0 where there is no such room."""

    room_id: str
    name: str
    arrival: int
    last: int


class Audit(Protocol):
    """What a check of a tenant reads."""

    async def versions(self, *, tenant: str, scope: str, after: int, limit: int) -> list[ReadVersion]:
        """Rows of the scope with a number above `after`, ascending."""

    async def log(self, *, tenant: str, scope: str, after: int, limit: int) -> list[ReadChange]:
        """Entries of the scope's log with a number above `after`, ascending."""

    async def found_from(
        self, *, tenant: str, scope: str, room_id: str, message_ids: Sequence[str]
    ) -> set[tuple[str, int]]:
        """Which of the scope's rows are found from which of these messages, by message id and number."""

    async def support_rows(
        self, *, tenant: str, scope: str | None, after: tuple[str, str, int], limit: int
    ) -> list[ReadSupport]:
        """The rows by which memories are found from messages, of one scope or all, ascending by room, message and
        number, and above these; ('', '', 0) begins. Rows of no memory only where `scope` is None."""

    async def messages(
        self, *, tenant: str, room_id: str, after: int, limit: int
    ) -> Callable[[], Sequence[ReadMessage]]:
        """The room's messages with an arrival above `after`, ascending, deleted ones too: up to `limit`, fewer where
        they are long, none at the room's end. What is given reads them, which is processor work alone: no unit of work
        need be open for it."""

    async def words_astray(self, *, tenant: str, room_id: str) -> WordsAstray | None:
        """None where the index is made of the rows, by their counts at least, or no index stands beside the rows."""

    async def strays(self, *, tenant: str, after: Stray | None, limit: int) -> list[Stray]:
        """Rows of features and of words without a message, ascending by table, room and arrival, and above `after`."""

    async def marks_ahead(self, *, tenant: str) -> list[MarkAhead]:
        """The watermarks that are beyond the end of their room, by room and name."""
