"""The states of rooms that are kept in memory between batches, and the turns of the writers to a room."""

from asyncio import CancelledError, Future, get_running_loop
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from roomlore.core.linking.room import MOST_COUNTED, RoomState
from roomlore.core.models import Room
from roomlore.ports.coordination import Telemetry

if TYPE_CHECKING:
    from roomlore.storage import UnitOfWork
    from roomlore.storage.stamps import Stamp

_Key = tuple[str, str]
_STAMPED = 10_000
"""The most rooms of which it is known when they were current."""
_WITH_WINDOWS = 128
"""The most small rooms that keep the window of the linker, nearly a megabyte each."""
_OF_BATCH = 32
"""The most of them that a batch keeps: of its many rooms, few have another message soon."""
_SMALL, _SMALL_OF_BATCH = 16, 100
"""The entries up to which a room is small."""


class RoomTurn:
    """A place in the queue of each of these rooms. Its block begins when it is the first one everywhere.

    All places are taken at once, so that two who want the same rooms never wait for each other. Since there may be very
    many rooms, one without contention costs one entry.
    """

    def __init__(self, turns: dict[_Key, deque[Future[None]] | None], keys: Iterable[_Key]) -> None:
        self._turns = turns
        self._places = {key: self._place(key) for key in keys}

    def _place(self, key: _Key) -> Future[None] | None:
        if key not in self._turns:
            self._turns[key] = None
            return None
        place: Future[None] = get_running_loop().create_future()
        waiting = self._turns[key] or deque()
        waiting.append(place)
        self._turns[key] = waiting
        return place

    async def __aenter__(self) -> None:
        try:
            for place in self._places.values():
                if place is not None:
                    await place
        except CancelledError:
            self.leave()
            raise

    async def __aexit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> None:
        """Pass the turns on, and give up those that have not come. Leaving again does nothing."""
        places, self._places = self._places, {}
        for key, place in places.items():
            if place is None or not (place.cancelled() or place.cancel()):
                self._pass_on(key)

    def _pass_on(self, key: _Key) -> None:
        waiting = self._turns[key]
        while waiting:
            place = waiting.popleft()
            if not place.done():
                place.set_result(None)
                return
        del self._turns[key]


class Turns:
    """The turns of this process's writers to rooms: they queue instead of colliding."""

    def __init__(self) -> None:
        self._waiting: dict[_Key, deque[Future[None]] | None] = {}
        """The places that wait for each room that is written to; None while nobody waits."""

    def take(self, tenant: str, room_ids: Iterable[str]) -> RoomTurn:
        """Take the next place among the writers to these rooms, at once: nobody who comes later writes first to one of
        them."""
        return RoomTurn(self._waiting, [(tenant, room_id) for room_id in room_ids])

    def is_taken(self, tenant: str, room_id: str) -> bool:
        """Return True if one of the writers has the turn in the room."""
        return (tenant, room_id) in self._waiting


class BatchStates:
    """The states of one batch's rooms, those used last: at most `size_bytes` of them together."""

    def __init__(self, size_bytes: int) -> None:
        self._most = size_bytes
        self._bytes = 0
        self._states: deque[tuple[Room, RoomState, int]] = deque()

    def add(self, room: Room, state: RoomState) -> None:
        if len(self._states) >= _OF_BATCH or self._bytes > self._most // 2:
            state.rest(most=_SMALL_OF_BATCH)
        size = state.size_bytes()
        self._states.append((room, state, size))
        self._bytes += size
        while self._bytes > self._most:
            self._bytes -= self._states.popleft()[2]

    def __iter__(self) -> Iterator[tuple[Room, RoomState]]:
        return ((room, state) for room, state, _ in self._states)


class RoomCache:
    """A cache of the rooms written to last, by tenant and room id, of `size_bytes`; shared by all tenants of one
    process.

    A state is only used at the stored revision. If another process has added messages, they are taken in; a room that
    was changed in another way, or removed and created again, is read again. `stamp_of`: return the stamp of a
    room, None if there is none.
    """

    def __init__(
        self,
        *,
        size_bytes: int,
        telemetry: Telemetry,
        stamp_of: Callable[[str, str], "Stamp | None"] = lambda *_: None,
    ) -> None:
        self.size_bytes = size_bytes
        self._stamp_of = stamp_of
        self._current: OrderedDict[_Key, tuple[datetime, int, Stamp]] = OrderedDict()
        """Of each room the revision that is the present one as long as the room has this stamp."""
        self._bytes = 0
        self._telemetry = telemetry
        self._states: OrderedDict[_Key, tuple[Room, RoomState, int]] = OrderedDict()
        self._with_windows: OrderedDict[_Key, None] = OrderedDict()
        """The rooms that were kept last."""
        self.turns = Turns()
        """Of the writers to these rooms."""

    def hold(self) -> BatchStates:
        """Return a place for the states of a batch that is not written yet: half as many bytes as the cache."""
        return BatchStates(self.size_bytes // 2)

    def take(self, room: Room) -> RoomState | None:
        """Return the room's state, which may be of an earlier revision. It leaves the cache: a batch that fails must
        not spoil it."""
        known, state, size = self._states.pop((room.tenant, room.room_id), (None, None, 0))
        self._bytes -= size
        return state if known is not None and known.created_at == room.created_at else None

    def newest(self, tenant: str, room_id: str) -> Room | None:
        """Return the room as it was when this process last wrote to it; None if it is not in memory."""
        known = self._states.get((tenant, room_id))
        return None if known is None else known[0]

    def state(self, room: Room) -> RoomState | None:
        """Return the state of the room, to read from at once; None unless it is in memory at this revision."""
        known, state, _ = self._states.get((room.tenant, room.room_id), (None, None, 0))
        if known is None or state is None or known.created_at != room.created_at or state.revision != room.revision:
            return None
        return state

    def count_keywords(self, room: Room, counts: Mapping[str, int] | None = None) -> None:
        """Keep the keyword counts of a room at this revision with its state, by default those of its entries."""
        if (state := self.state(room)) is not None:
            state.count_keywords(counts)
            self.keep(room, state)

    def tell(self, result: Literal["hit", "followed", "miss"]) -> None:
        """Note what became of the state of a room: used as it was, with what others had added, or not at all."""
        self._telemetry.count("roomlore_room_cache_total", labels={"result": result})

    def have(self, tenant: str, room_ids: Iterable[str]) -> bool:
        """Return True if the cache has all of these rooms, perhaps as they were earlier."""
        return all((tenant, room_id) in self._states for room_id in room_ids)

    async def is_current(self, work: "UnitOfWork", room: Room) -> bool:
        """Return True if nothing of the room changed since it was read. That takes no statement if nobody else wrote
        since this was last known."""
        stamp = self._stamp_of(room.tenant, room.room_id)
        known = (room.created_at, room.revision, stamp)
        if stamp is not None and self._current.get((room.tenant, room.room_id)) == known:
            return True
        if not await work.rooms.is_current(room=room):
            return False
        self.stamp(room, stamp)
        return True

    def stamp(self, room: Room, stamp: "Stamp | None") -> None:
        """Note that the room is at this revision as long as it has this stamp."""
        if stamp is not None:
            self._current[room.tenant, room.room_id] = room.created_at, room.revision, stamp
            if len(self._current) > _STAMPED:
                self._current.popitem(last=False)

    def keep(self, room: Room, state: RoomState) -> None:
        """Put back a state that is now of the room's revision."""
        state.revision = room.revision
        if room.messages > MOST_COUNTED:
            state.drop_counts()
        key = room.tenant, room.room_id
        self._bytes -= self._states.pop(key, (None, None, 0))[2]
        self._states[key] = self._counted(room, state)
        self._with_windows[key] = None
        self._with_windows.move_to_end(key)
        if len(self._with_windows) > _WITH_WINDOWS:
            self._rest(self._with_windows.popitem(last=False)[0])
        while self._bytes > self.size_bytes:
            _, (_, _, freed) = self._states.popitem(last=False)
            self._bytes -= freed

    def _rest(self, key: _Key) -> None:
        """Drop the window of a small room that was not used lately."""
        if key in self._states:
            room, state, size = self._states[key]
            self._bytes -= size
            state.rest(most=_SMALL)
            self._states[key] = self._counted(room, state)

    def _counted(self, room: Room, state: RoomState) -> tuple[Room, RoomState, int]:
        size = state.size_bytes()
        self._bytes += size
        return room, state, size
