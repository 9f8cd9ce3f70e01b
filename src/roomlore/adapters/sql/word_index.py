"""Writing the words of messages: a row for each message, over which the engine keeps its index by itself.

PostgreSQL has a GIN index on the rows. On SQLite triggers feed an FTS5 table, which keeps no text of its own: what
leaves it is handed to it from the row before the row changes. There the number of an indexed message is made of its
room's key, its arrival and its length, so that the index alone answers a look-up.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import bindparam, insert, update
from sqlalchemy.dialects.postgresql import insert as upsert

from roomlore.adapters.sql import schema
from roomlore.adapters.sql.drivers import Connection
from roomlore.adapters.sql.rooms import LockedRoom
from roomlore.adapters.sql.spelling import Spelled, spell_message
from roomlore.adapters.sql.statements import Statement, among, in_locked_room
from roomlore.adapters.sql.values import escape, numbers_text
from roomlore.core.errors import InvalidInput
from roomlore.core.models import StoredMessage

ARRIVAL_BITS, LENGTH_BITS = 28, 10
_KEY_BITS = 63 - ARRIVAL_BITS - LENGTH_BITS

_w = schema.message_words


def _put() -> Any:
    given = upsert(_w)
    changing = {name: given.excluded[name] for name in ("length", "changed", "words")}
    return given.on_conflict_do_update(index_elements=[_w.c.room_key, _w.c.arrival], set_=changing)


_ADD = Statement(lambda: insert(_w))
_PUT = Statement(_put)
_CLEAR = Statement(
    lambda: (
        update(_w)
        .where(in_locked_room(_w), among(_w.c.arrival, "arrivals"))
        .values(length=0, changed=bindparam("revision"), words="")
    )
)
_TOUCH = Statement(
    lambda: update(_w).where(in_locked_room(_w), among(_w.c.arrival, "arrivals")).values(changed=bindparam("revision"))
)


class WordIndex:
    """The words of messages in one unit of work that holds their rooms."""

    def __init__(self, connection: Connection) -> None:
        self._sql = connection

    def spell(self, room: LockedRoom, messages: Sequence[StoredMessage]) -> list[Spelled]:
        """What `add` and `put` take. Processor work only."""
        return [spell_message(message, room.key, self._sql.dialect, message.arrival) for message in messages]

    async def add(self, room: LockedRoom, spelled: Sequence[Spelled], *, revision: int) -> None:
        """Indexes messages that follow all others of the room."""
        if self._sql.dialect.name == "sqlite":
            _check_number(room, spelled[-1].arrival)
        await self._sql.many(_ADD, _rows(room, spelled, revision))

    async def put(self, room: LockedRoom, spelled: Sequence[Spelled], *, revision: int) -> None:
        """Indexes messages in the place of what is indexed of them."""
        await self._sql.many(_PUT, _rows(room, spelled, revision))

    async def clear(self, room: LockedRoom, arrivals: Sequence[int], *, revision: int) -> None:
        """Takes the words of these messages out of the index."""
        await self._sql.fetch(_CLEAR, arrivals=numbers_text(arrivals), revision=revision, **_params(room))

    async def touch(self, room: LockedRoom, arrivals: Sequence[int], *, revision: int) -> None:
        """Notes that something else of these messages changed."""
        if arrivals:
            await self._sql.fetch(_TOUCH, arrivals=numbers_text(arrivals), revision=revision, **_params(room))


def _check_number(room: LockedRoom, arrival: int) -> None:
    if room.key >> _KEY_BITS or arrival >> ARRIVAL_BITS:
        raise InvalidInput(
            f"A SQLite database indexes {2**_KEY_BITS:,} rooms of {2**ARRIVAL_BITS:,} messages at most: "
            "move this one to PostgreSQL."
        )


def _rows(room: LockedRoom, spelled: Sequence[Spelled], revision: int) -> list[tuple[Any, ...]]:
    """In the order of the table's columns."""
    tenant = escape(room.tenant)
    return [(room.key, one.arrival, tenant, one.length, revision, one.words) for one in spelled]


def _params(room: LockedRoom) -> dict[str, Any]:
    return {"room_key": room.key, "tenant": escape(room.tenant)}
