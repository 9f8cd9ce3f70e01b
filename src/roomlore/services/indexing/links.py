"""Making the links of rooms anew where another link model made them.

A room is walked from its first message in the order of arrival, piece by piece. Each piece is written in one
transaction with the place that the walk has reached, so a walk that is broken off goes on there. A message is linked by
what arrived before it and nothing else, as when it came; the links come out as if all messages were added to a new
store.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from roomlore.core.linked import Linked
from roomlore.core.linking import LinkModel, version_of
from roomlore.core.models import Entry, Room, StoredMessage
from roomlore.core.room_state import WINDOW, Arrivals, RoomState
from roomlore.core.search import EmbeddingModel, IndexState
from roomlore.ports.coordination import Clock, Ids
from roomlore.ports.indexing import LINKS
from roomlore.ports.storage import Storage, UnitOfWork

_PIECE = 250
_TRIES = 4
_OFFERED = 20


@dataclass(frozen=True, slots=True)
class _Walked:
    """A room that this process has in hand, as the last piece left it; `state`: None where it has to be read."""

    room: Room
    state: RoomState | None = None

    def stands_at(self, room: Room) -> bool:
        """Tell whether nothing was written to the room since, and it is not another one of the same id."""
        return (self.room.created_at, self.room.revision) == (room.created_at, room.revision)


@dataclass(frozen=True, slots=True)
class _Piece:
    """The next messages of a walk; `linked`: the place of the walk before them."""

    room: Room
    linked: Linked
    state: RoomState
    messages: list[StoredMessage]
    arrivals: Arrivals


class _RoomMovedError(Exception):
    """Another writer was faster."""


class LinkIndexing:
    """The links of all rooms of all tenants."""

    def __init__(self, *, storage: Storage, model: LinkModel, clock: Clock, ids: Ids, lease_seconds: float) -> None:
        self._storage = storage
        self._model = model
        self._version = version_of(model)
        self._clock = clock
        self._ids = ids
        self._holder = ids.new()
        self._lease = timedelta(seconds=lease_seconds)
        self._claimed = False
        self._walked: _Walked | None = None
        self._stepping = asyncio.Lock()

    async def left(self) -> tuple[int, int]:
        """How many rooms wait, and how many messages they have that are still to be linked."""
        async with self._storage.reading() as work:
            return await work.index_states.left_to_link(model=self._version)

    async def step(self) -> int:
        """One piece of one room; how many messages it had. -1 where nothing is left that another process does not have
        in hand, or where the links are another model's business."""
        async with self._stepping:
            if not await self._in_force():
                return -1
            walked, self._walked = self._walked or await self._next(), None
            return -1 if walked is None else await self._piece(walked)

    async def rest(self) -> None:
        """Leaves the room in hand to other processes."""
        walked, self._walked = self._walked, None
        if walked is not None:
            await self._leave(walked.room)

    async def _leave(self, room: Room) -> None:
        async with self._storage.writing() as work:
            await self._free(work, room)

    async def _in_force(self) -> bool:
        """Whether this process has the model in force: that of the process that first looked last. So of two versions
        that run side by side for a while, only one makes links anew."""
        async with self._storage.reading() as work:
            stored = await work.index_states.find(name=LINKS)
        ours = stored is not None and stored.model.name == self._version
        if ours or self._claimed:
            self._claimed = True
            return ours
        state = IndexState(
            name=LINKS,
            model=EmbeddingModel(name=self._version, dimensions=0),
            generation=self._ids.new(),
            cursor=None,
            updated_at=self._clock.now(),
        )
        async with self._storage.writing() as work:
            self._claimed = await work.index_states.save(state=state, expected=stored.generation if stored else None)
        return self._claimed

    async def _next(self) -> _Walked | None:
        """A room that waits and that no other process has in hand."""
        async with self._storage.reading() as work:
            rooms = await work.index_states.rooms_to_link(model=self._version, limit=_OFFERED)
        for room in rooms:
            async with self._storage.writing() as work:
                if await self._hold(work, room):
                    return _Walked(room)
        return None

    async def _hold(self, work: UnitOfWork, room: Room) -> bool:
        now = self._clock.now()
        return await work.leases.take(
            tenant=room.tenant, name=_lease_of(room), holder=self._holder, now=now, until=now + self._lease
        )

    async def _free(self, work: UnitOfWork, room: Room) -> None:
        await work.leases.free(tenant=room.tenant, name=_lease_of(room), holder=self._holder)

    async def _piece(self, walked: _Walked) -> int:
        for _ in range(_TRIES):
            try:
                return await self._try(walked)
            except _RoomMovedError:
                walked = _Walked(walked.room)
        return await self._insist(walked)

    async def _try(self, walked: _Walked) -> int:
        async with self._storage.reading() as work:
            piece = await self._read(work, walked)
        if piece is None:
            await self._leave(walked.room)
            return 0
        await asyncio.to_thread(_link, piece)
        async with self._storage.writing() as work:
            locked = await work.rooms.lock(**_named(walked.room), now=self._clock.now())
            if not _Walked(piece.room).stands_at(locked):
                raise _RoomMovedError
            left = await self._write(work, piece)
        self._walked = left
        return len(piece.messages)

    async def _insist(self, walked: _Walked) -> int:
        """The last resort in a room that is written to all the time: links while holding its lock."""
        async with self._storage.writing() as work:
            if await work.rooms.find(**_named(walked.room)) is not None:
                await work.rooms.lock(**_named(walked.room), now=self._clock.now())
            piece = await self._read(work, walked)
            if piece is None:
                await self._free(work, walked.room)
                return 0
            await asyncio.to_thread(_link, piece)
            left = await self._write(work, piece)
        self._walked = left
        return len(piece.messages)

    async def _read(self, work: UnitOfWork, walked: _Walked) -> _Piece | None:
        """None where the room is gone, or has the links of this model."""
        here = _named(walked.room)
        room = await work.rooms.find(**here)
        if room is None or room.linked.whole(self._version, newest=room.next_arrival - 1):
            return None
        linked = room.linked.begun(self._version)
        state = walked.state
        if state is None or not walked.stands_at(room):
            state = await self._state(work, room, linked)
        messages = await work.messages.page(**here, after=linked.walked, limit=_PIECE)
        held = state.ids()
        wanted = [said.reply_to for said in messages if said.reply_to and said.reply_to not in held]
        targets = await work.messages.by_id(**here, message_ids=wanted)
        waiting = await work.threads.waiting(**here, message_ids=[said.id for said in messages])
        arrivals = state.begin(_earlier(targets, linked.walked), _earlier(waiting, linked.walked))
        return _Piece(room, linked, state, messages, arrivals)

    async def _state(self, work: UnitOfWork, room: Room, linked: Linked) -> RoomState:
        """The room as it was when the walk's place was its end."""
        here, after = _named(room), linked.walked + 1
        return RoomState(
            model=self._model,
            room=room,
            participants=await work.rooms.participants_before(**here, arrival=after),
            entries=await work.messages.tail(tenant=room.tenant, room_id=room.room_id, before=after, limit=WINDOW),
            calibration=linked.calibration,
        )

    async def _write(self, work: UnitOfWork, piece: _Piece) -> _Walked | None:
        """The room in hand after it; None where that was all."""
        here = _named(piece.room)
        last = piece.messages[-1].arrival if piece.messages else piece.linked.walked
        linked = piece.linked.moved(last, piece.state.calibration)
        over = len(piece.messages) < _PIECE
        room = await work.writer.analyse_anew(
            **here, entries=piece.arrivals.entries, linked=linked.done() if over else linked
        )
        if piece.arrivals.relinked:
            room = await work.writer.relink(**here, links=piece.arrivals.relinked)
        if over:
            await self._free(work, room)
            return None
        await self._hold(work, room)
        return _Walked(room, piece.state)


def _link(piece: _Piece) -> None:
    for message in piece.messages:
        piece.arrivals.take(message)


def _earlier(entries: Iterable[Entry], arrival: int) -> list[Entry]:
    """Those that were there when the message at `arrival` was the newest one."""
    return [entry for entry in entries if entry.message.arrival <= arrival]


def _named(room: Room) -> dict[str, str]:
    return {"tenant": room.tenant, "room_id": room.room_id}


def _lease_of(room: Room) -> str:
    return f"links {room.room_id}"
