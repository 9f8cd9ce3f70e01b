"""Rebuild of words and links that an earlier version of roomlore made."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta

from roomlore.core.linking.calibration import Linked
from roomlore.core.linking.model import LinkModel, version_of
from roomlore.core.linking.room import WINDOW, Arrivals, RoomState
from roomlore.core.models import Entry, Room, StoredMessage
from roomlore.core.search.hits import EmbeddingModel, IndexState
from roomlore.core.search.query import WORDS_MODEL
from roomlore.ports.shared import Backends, Service
from roomlore.services.indexing import index_state
from roomlore.services.indexing.index_state import START, page_after
from roomlore.storage import UnitOfWork
from roomlore.storage.values import LINKS, WORDS

_PAGE = 500
_PIECE = 250
_TRIES = 4
_OFFERED = 20


class WordIndexing(Service):
    """The word index of all rooms of all tenants."""

    def __init__(self, backends: Backends) -> None:
        super().__init__(backends)

    async def begin(self) -> None:
        """Start a rebuild from the first message, whatever state the index is in."""
        async with self._storage.writing() as work:
            stored = await work.progress.index_state(name=WORDS)
            expected = stored.generation if stored else None
            await work.progress.save_index_state(state=self._state(START), expected=expected)

    async def step(self) -> int:
        """Index the next page of a rebuild. Return its number of messages, -1 if nothing is left to do."""
        state = await self._current()
        if state.cursor is None:
            return -1
        async with self._storage.reading() as work:
            page = await page_after(work, state.cursor, limit=_PAGE)
        async with self._storage.writing(page.tenant) as work:
            if page.messages and await work.rooms.lock_known(room_id=page.room_id) is not None:
                arrivals = [message.arrival for message in page.messages]
                fresh = await work.messages.messages_by_arrival(room_id=page.room_id, arrivals=arrivals)
                await work.messages.reword(room_id=page.room_id, messages=fresh)
            moved = replace(state, cursor=page.cursor, updated_at=self._clock.now())
            await work.progress.save_index_state(state=moved, expected=state.generation)
        return len(page.messages)

    async def _current(self) -> IndexState:
        """Return the state; create it if there is none, and reset it if it is of another word analysis."""
        async with self._storage.reading() as work:
            stored = await work.progress.index_state(name=WORDS)
        if stored is not None and stored.model == WORDS_MODEL:
            return stored
        made = self._state(None if stored is None else START)
        async with self._storage.writing() as work:
            expected = stored.generation if stored else None
            kept = await work.progress.save_index_state(state=made, expected=expected)
        return made if kept else await self._current()

    def _state(self, cursor: tuple[str, str, int] | None) -> IndexState:
        return IndexState(
            name=WORDS, model=WORDS_MODEL, generation=self._ids.new(), cursor=cursor, updated_at=self._clock.now()
        )


@dataclass(frozen=True, slots=True)
class _Walked:
    """A room that this process has claimed, as the last piece left it; `state`: None if it must be read."""

    room: Room
    state: RoomState | None = None

    def stands_at(self, room: Room) -> bool:
        """Return True if nothing was written to the room since, and it is not another one of the same id."""
        return (self.room.created_at, self.room.revision) == (room.created_at, room.revision)


@dataclass(frozen=True, slots=True)
class _Piece:
    """The next messages of a walk; `linked`: the position of the walk before them; `corrected`: the arrivals of those
    whose links a person corrected."""

    room: Room
    linked: Linked
    state: RoomState
    messages: list[StoredMessage]
    arrivals: Arrivals
    corrected: tuple[int, ...]


class _RoomMovedError(Exception):
    """Another writer was faster."""


class LinkIndexing(Service):
    """The links of all rooms of all tenants."""

    def __init__(self, backends: Backends, *, model: LinkModel) -> None:
        super().__init__(backends)
        self._model = model
        self._version = version_of(model)
        self._holder = backends.ids.new()
        self._lease = timedelta(seconds=index_state.LEASE_SECONDS)
        self._claimed = False
        self._walked: _Walked | None = None
        self._stepping = asyncio.Lock()

    async def left(self) -> tuple[int, int]:
        """Return the number of rooms that wait, and of their messages that are still to be linked."""
        async with self._storage.reading() as work:
            return await work.progress.left_to_link(model=self._version)

    async def step(self) -> int:
        """Process one piece of one room. Return its number of messages; -1 if nothing is left that no other process has
        claimed, or if another link model is in use."""
        async with self._stepping:
            if not await self._in_force():
                return -1
            walked, self._walked = self._walked or await self._next(), None
            return -1 if walked is None else await self._piece(walked)

    async def rest(self) -> None:
        """Release the claimed room to other processes."""
        walked, self._walked = self._walked, None
        if walked is not None:
            await self._leave(walked.room)

    async def _leave(self, room: Room) -> None:
        async with self._storage.writing(room.tenant) as work:
            await self._free(work, room)

    async def _in_force(self) -> bool:
        """Return True if the link model in use is the one of this process.

        Each process claims the links once, when it first looks; the last claim counts. So if two versions run side by
        side for a while, only one of them makes new links.
        """
        async with self._storage.reading() as work:
            stored = await work.progress.index_state(name=LINKS)
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
            self._claimed = await work.progress.save_index_state(
                state=state, expected=stored.generation if stored else None
            )
        return self._claimed

    async def _next(self) -> _Walked | None:
        """Return a waiting room that no other process has claimed."""
        async with self._storage.reading() as work:
            rooms = await work.progress.rooms_to_link(model=self._version, limit=_OFFERED)
        for room in rooms:
            async with self._storage.writing(room.tenant) as work:
                if await self._hold(work, room):
                    return _Walked(room)
        return None

    async def _hold(self, work: UnitOfWork, room: Room) -> bool:
        now = self._clock.now()
        return await work.progress.take_lease(
            name=_lease_of(room), holder=self._holder, now=now, until=now + self._lease
        )

    async def _free(self, work: UnitOfWork, room: Room) -> None:
        await work.progress.free_lease(name=_lease_of(room), holder=self._holder)

    async def _piece(self, walked: _Walked) -> int:
        for _ in range(_TRIES):
            try:
                return await self._try(walked)
            except _RoomMovedError:
                walked = _Walked(walked.room)
        return await self._try_locked(walked)

    async def _try(self, walked: _Walked) -> int:
        async with self._storage.reading(walked.room.tenant) as work:
            piece = await self._read(work, walked)
        if piece is None:
            await self._leave(walked.room)
            return 0
        await asyncio.to_thread(_link, piece)
        async with self._storage.writing(walked.room.tenant) as work:
            locked = await work.rooms.lock_known(room_id=walked.room.room_id)
            if locked is None or not _Walked(piece.room).stands_at(locked):
                raise _RoomMovedError
            left = await self._write(work, piece)
        self._walked = left
        return len(piece.messages)

    async def _try_locked(self, walked: _Walked) -> int:
        """Link while holding the room's lock: the last resort in a room that is written to all the time."""
        async with self._storage.writing(walked.room.tenant) as work:
            known = await work.rooms.lock_known(room_id=walked.room.room_id)
            piece = None if known is None else await self._read(work, walked)
            if piece is None:
                await self._free(work, walked.room)
                return 0
            await asyncio.to_thread(_link, piece)
            left = await self._write(work, piece)
        self._walked = left
        return len(piece.messages)

    async def _read(self, work: UnitOfWork, walked: _Walked) -> _Piece | None:
        """Return the next piece, None if the room is gone or has the links of this model."""
        room_id = walked.room.room_id
        room = await work.rooms.find(room_id=room_id)
        if room is None or room.linked.whole(self._version, newest=room.next_arrival - 1):
            return None
        linked = room.linked.begun(self._version)
        state = walked.state
        if state is None or not walked.stands_at(room):
            state = await self._state(work, room, linked)
        messages = await work.messages.page(room_id=room_id, after=linked.walked, limit=_PIECE)
        wanted = state.answered_elsewhere(messages)
        targets = await work.messages.by_id(room_id=room_id, message_ids=wanted)
        waiting = await work.messages.waiting(room_id=room_id, message_ids=[message.id for message in messages])
        corrected = await work.corrections.standing(room_id=room_id, arrivals=[message.arrival for message in messages])
        answered = [link.answers for link in corrected.values() if link.answers is not None]
        targets += await work.messages.by_arrival(room_id=room_id, arrivals=answered)
        arrivals = state.begin(
            _earlier(targets, linked.walked),
            _earlier(waiting, linked.walked),
            {arrival: link.answers for arrival, link in corrected.items()},
        )
        return _Piece(room, linked, state, messages, arrivals, tuple(corrected))

    async def _state(self, work: UnitOfWork, room: Room, linked: Linked) -> RoomState:
        """Return the room's state as it was when the walk's position was its end."""
        after = linked.walked + 1
        return RoomState(
            model=self._model,
            room=room,
            participants=await work.rooms.participants_before(room_id=room.room_id, arrival=after),
            entries=await work.messages.tail(room_id=room.room_id, before=after, limit=WINDOW),
            calibration=linked.calibration,
        )

    async def _write(self, work: UnitOfWork, piece: _Piece) -> _Walked | None:
        """Return the room after this piece; None if that was the last."""
        room_id = piece.room.room_id
        last = piece.messages[-1].arrival if piece.messages else piece.linked.walked
        linked = piece.linked.moved(last, piece.state.calibration)
        over = len(piece.messages) < _PIECE
        room = await work.messages.analyse_anew(
            room_id=room_id, entries=piece.arrivals.entries, linked=linked.done() if over else linked
        )
        if piece.arrivals.relinked:
            relinked = await work.messages.relink(room_id=room.room_id, links=piece.arrivals.relinked)
            room = relinked.room
        if piece.corrected:
            await work.corrections.hear(
                room_id=room_id, model=self._version, errors=piece.arrivals.heard, arrivals=piece.corrected
            )
        if over:
            await self._free(work, room)
            return None
        await self._hold(work, room)
        return _Walked(room, piece.state)


def _link(piece: _Piece) -> None:
    for message in piece.messages:
        piece.arrivals.take(message)


def _earlier(entries: Iterable[Entry], arrival: int) -> list[Entry]:
    """Return the entries that existed when the message at `arrival` was the newest one."""
    return [entry for entry in entries if entry.message.arrival <= arrival]


def _lease_of(room: Room) -> str:
    return f"links {room.room_id}"
