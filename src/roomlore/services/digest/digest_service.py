"""Readers: who a name means, the messages that people marked as read, and those they wrote."""

from collections.abc import Mapping

from roomlore.core.errors import Conflict, InvalidInput, NotFound, unknown_room
from roomlore.core.intake import MAX_ID_CHARS
from roomlore.core.text import fold
from roomlore.ports.coordination import Clock
from roomlore.ports.storage import Storage, UnitOfWork

_TRIES = 5
_NAMED = 8


def check_reader(user_id: object) -> str:
    """Return the id of a person. Raise `InvalidInput`."""
    if not isinstance(user_id, str) or not 0 < len(user_id) <= MAX_ID_CHARS:
        raise InvalidInput(f"The reader is {user_id!r:.60}; give a sender id of 1 to {MAX_ID_CHARS} characters.")
    return user_id


async def reader_named(work: UnitOfWork, *, tenant: str, room_id: str, given: str) -> str:
    """Return the sender id of a person of the room, told by id, or by a name that one person has. Raise `NotFound`
    if nobody, `InvalidInput` if several people are meant."""
    spoke = await work.rooms.participants(tenant=tenant, room_id=room_id)
    if given in spoke or await _only_reads(work, tenant, room_id, given):
        return given
    wanted = fold(given.removeprefix("@"))
    meant = [person for person, name in spoke.items() if wanted in (fold(person), fold(name))]
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise InvalidInput(
            f"{len(meant)} people of room {room_id!r} are called {given!r}; give the id of one: {_few(meant, {})}."
        )
    raise NotFound(
        f"Nobody in room {room_id!r} has the id or the name {given!r:.80}. These wrote there: "
        f"{_few(list(spoke), spoke)}. For a person who only reads, first mark what they have read, or make them a "
        "member of the room."
    )


async def _only_reads(work: UnitOfWork, tenant: str, room_id: str, person: str) -> bool:
    """Return True if this is the id of a member, or of somebody who marked messages of the room as read."""
    known = await work.rooms.people(tenant=tenant, room_ids=[room_id], persons=[person])
    if room_id in known and person in known[room_id].people:
        return True
    return bool(await work.progress.marks(tenant=tenant, room_id=room_id, names=[_mark(person)]))


def _few(ids: list[str], names: Mapping[str, str]) -> str:
    """Return the first ids, each with a name that differs from it."""
    also = {one: f" ({name:.80})" for one in ids[:_NAMED] if (name := names.get(one)) and name != one}
    named = ", ".join(f"{one:.80}{also.get(one, '')}" for one in ids[:_NAMED])
    return f"{named} and {len(ids) - _NAMED} more" if len(ids) > _NAMED else named or "nobody"


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
