"""Reading marks: the messages that people marked as read, and those they wrote."""

from roomlore.core.errors import Conflict, InvalidInput, NotFound, unknown_room
from roomlore.core.intake import MAX_ID_CHARS
from roomlore.ports.coordination import Clock
from roomlore.ports.storage import Storage, UnitOfWork

_TRIES = 5


def check_reader(user_id: object) -> str:
    """Return the id of a person. Raise `InvalidInput`."""
    if not isinstance(user_id, str) or not 0 < len(user_id) <= MAX_ID_CHARS:
        raise InvalidInput(f"The reader is {user_id!r:.60}; give a sender id of 1 to {MAX_ID_CHARS} characters.")
    return user_id


async def read_up_to(work: UnitOfWork, *, tenant: str, room_id: str, user_id: str) -> int:
    """Return the arrival of the last message that a person wrote or marked as read, 0 if there is none."""
    name = _mark(user_id)
    marked = await work.progress.marks(tenant=tenant, room_id=room_id, names=[name])
    spoken = await work.rooms.last_spoken(tenant=tenant, room_id=room_id, sender_id=user_id)
    return max(marked.get(name, 0), spoken)


class ReadingMarks:
    """The reading marks of one tenant."""

    def __init__(self, *, tenant: str, storage: Storage, clock: Clock) -> None:
        self._tenant = tenant
        self._storage = storage
        self._clock = clock

    async def move(self, room_id: str, user_id: str, message_id: str | None) -> int:
        """Mark what was said up to this message as read, the newest if None; return the arrival that the person has
        read up to. A mark never moves back."""
        name, tenant = _mark(check_reader(user_id)), self._tenant
        for _ in range(_TRIES):
            async with self._storage.writing() as work:
                arrival = await self._arrival(work, room_id, message_id)
                was = (await work.progress.marks(tenant=tenant, room_id=room_id, names=[name])).get(name, 0)
                if arrival <= was:
                    return was
                if await work.progress.move_mark(
                    tenant=tenant, room_id=room_id, name=name, arrival=arrival, was=was, now=self._clock.now()
                ):
                    return arrival
        raise Conflict(f"The reading mark of {user_id!r} is being moved by other calls; try again.")

    async def _arrival(self, work: UnitOfWork, room_id: str, message_id: str | None) -> int:
        room = await work.rooms.find(tenant=self._tenant, room_id=room_id)
        if room is None:
            raise unknown_room(room_id)
        if message_id is None:
            return room.next_arrival - 1
        found = await work.messages.arrival_of(tenant=self._tenant, room_id=room_id, message_id=message_id)
        if found is None:
            raise NotFound(f"Room {room_id!r} has no message {message_id!r}.")
        return found


def _mark(user_id: str) -> str:
    return f"read:{user_id}"
