"""Reading what is stored row by row, to check that it holds together.

Unlike everywhere else a row that cannot be read is no error: it is told. Calls name a tenant and see nothing of
another. Any call may raise `StorageUnavailable`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from roomlore.core.memory.models import Change
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

    async def supporting(
        self, *, tenant: str, scope: str, room_id: str, message_ids: Sequence[str]
    ) -> set[tuple[str, int]]:
        """Which of these messages support which of the scope's rows, by message id and number, as it is found from the
        messages."""

    async def marks_ahead(self, *, tenant: str) -> list[MarkAhead]:
        """The watermarks that are beyond the end of their room, by room and name."""
