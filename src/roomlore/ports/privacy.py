"""Taking a person out of what is stored.

Every call names a tenant and sees nothing of another. All but `Upkeep` are parts of a unit of work; what writes needs a
writing one. Any call may raise `StorageUnavailable`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from roomlore.core.memory.models import Change, Evolution, Memory


@dataclass(frozen=True, slots=True)
class RoomOfPerson:
    """A room that a person has spoken in, or has a session in, or that bears their id, alone or as a part between
    colons. `others`: whether anybody else has spoken there but assistants."""

    room_id: str
    others: bool


class People(Protocol):
    """What is kept of people in rooms."""

    async def rooms_of(self, *, tenant: str, user_id: str) -> list[RoomOfPerson]:
        """Ascending by id."""

    async def others_in(self, *, tenant: str, room_id: str, user_id: str) -> bool:
        """Whether anybody else has spoken in the room but assistants; False where there is no such room."""

    async def said_by_others(self, *, tenant: str, user_id: str, texts: Sequence[str]) -> set[str]:
        """Those of these texts that are the whole of a message of another user."""

    async def rename_messages(self, *, tenant: str, room_id: str, ids: Mapping[int, str]) -> None:
        """Gives the messages at these arrivals other ids. The room is locked."""

    async def forget_session(self, *, tenant: str, room_id: str, user_id: str, first: int) -> int:
        """Takes the person out of the room's session, where it is theirs with all that callers keep with it, and drops
        the summaries that cover arrival `first` (0: none); how many entries that were. The room is locked."""

    async def remove_room(self, *, tenant: str, room_id: str, limit: int) -> int:
        """Removes up to `limit` messages of a locked room with all that hangs on them, and where none is left the room
        with all that is kept under its id; 0 or more while there is something left to do, -1 once the room is gone."""

    async def drop_vector_scope(self, *, tenant: str, scope: str) -> None:
        """Forgets the name of a scope of vectors that this database keeps, with the vectors that are left in it."""


class Rewriting(Protocol):
    """What is remembered, rewritten in place: the one way to change what was."""

    async def versions(self, *, tenant: str, after: int, limit: int) -> list[tuple[int, Memory]]:
        """Every version of any scope with a row number above `after`, with that number, ascending."""

    async def rewrite_versions(self, *, tenant: str, scope: str, memories: Sequence[Memory]) -> None:
        """Replaces what these versions say, and the messages they rest on; ids, order and status stay. The scope is
        locked."""

    async def rewrite_changes(self, *, tenant: str, scope: str, changes: Sequence[Change]) -> None:
        """Replaces what these entries of the log say; ids, order and action stay. The scope is locked."""

    async def rename_scope(self, *, tenant: str, scope: str, name: str) -> None:
        """Gives a locked scope, with its memories, log and records, another name."""

    async def evolutions(self, *, tenant: str, after: str, limit: int) -> list[Evolution]:
        """The tenant's records with an id above `after`, ascending."""

    async def rewrite_evolution(self, *, tenant: str, evolution: Evolution) -> None:
        """Replaces what the record holds of texts, and its room."""


@dataclass(frozen=True, slots=True)
class StoredRow:
    """A row of any table. `key`: its primary key. `texts`: of each column with text all texts in it, several where it
    holds JSON."""

    key: tuple[Any, ...]
    texts: Mapping[str, Sequence[str]]


class StoredRows(Protocol):
    """Everything stored of a tenant, row by row, whatever it is."""

    async def tables(self) -> Sequence[str]:
        """Every table that holds rows of tenants."""

    async def page(self, *, tenant: str, table: str, after: tuple[Any, ...] | None, limit: int) -> list[StoredRow]:
        """Rows with a key above `after`, ascending."""

    async def redact(
        self, *, tenant: str, table: str, key: tuple[Any, ...], columns: Sequence[str], change: Callable[[str], str]
    ) -> None:
        """Changes every text in these columns of the row, and raises the revision of the room that it belongs to."""

    async def drop(self, *, tenant: str, table: str, key: tuple[Any, ...]) -> None:
        """Removes the row, which no other row may rest on."""


class Upkeep(Protocol):
    """What a database keeps of rows that are gone."""

    async def compact(self) -> None:
        """Gives free pages and the write-ahead log back, so that nothing of removed rows can be read in the database's
        files. Waits for other writers; they wait meanwhile."""
