"""The rows that a unit of work has locked, and the base of everything that reads and writes in it."""

from dataclasses import dataclass

from roomlore.adapters.sql.engine import Connection
from roomlore.core.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class LockedRoom:
    """A room whose row this unit of work has locked. `keeps_vectors`: a vector index of messages existed at that time;
    the lock reads it too, as a statement of its own would cost a round trip."""

    key: int
    tenant: str
    room_id: str
    keeps_vectors: bool


@dataclass(frozen=True, slots=True)
class LockedScope:
    """The same for a scope of memories."""

    key: int
    tenant: str
    scope: str
    keeps_vectors: bool


class Locks:
    """The rooms and scopes that a unit of work has locked. `writing`: False in a unit of work that only reads."""

    def __init__(self, *, writing: bool) -> None:
        self._writing = writing
        self._rooms: dict[tuple[str, str], LockedRoom] = {}
        self._scopes: dict[tuple[str, str], LockedScope] = {}

    def check_writing(self) -> None:
        if not self._writing:
            raise InvalidInput("This unit of work only reads: open `writing()` to change anything.")

    def take(self, locked: LockedRoom) -> None:
        self._rooms[locked.tenant, locked.room_id] = locked

    def held(self, tenant: str, room_id: str) -> LockedRoom:
        """Return the lock on this room. Raises `InvalidInput` if it was not taken."""
        locked = self._rooms.get((tenant, room_id))
        if locked is None:
            raise InvalidInput("Lock the room in this unit of work before writing to it.")
        return locked

    def take_scope(self, locked: LockedScope) -> None:
        self._scopes[locked.tenant, locked.scope] = locked

    def held_scope(self, tenant: str, scope: str) -> LockedScope:
        """Return the lock on this scope. Raises `InvalidInput` if it was not taken."""
        locked = self._scopes.get((tenant, scope))
        if locked is None:
            raise InvalidInput("Lock the scope in this unit of work before writing to it.")
        return locked


class Repository:
    """Statements on the connection of a unit of work, under its locks."""

    def __init__(self, connection: Connection, locks: Locks) -> None:
        self._sql = connection
        self._locks = locks
