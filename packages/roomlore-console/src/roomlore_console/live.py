"""Messages that arrive while a room is open: one look at the store a moment for all pages of a room, and one rendering
of what is new for all pages that show it alike, which is sent to them."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

from starlette.responses import Response, StreamingResponse

from roomlore.core.errors import RoomloreError
from roomlore.core.models import Room
from roomlore.wiring import Lore

EVERY_SECONDS = 0.1
_PING_SECONDS = 15.0
STREAM_SECONDS = 300.0
"""Then the browser asks again, with its key."""
_MAX_PIECES = 64
_PING = b": still here\n\n"
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", "X-Content-Type-Options": "nosniff"}


@dataclass(frozen=True, slots=True)
class News:
    """The news of a room, as a piece of a page. `last`: arrival of its newest message."""

    last: int
    piece: str


@dataclass(slots=True)
class _Open:
    """A room that is open on some page. `changed` is set, and another one made, whenever messages came or the room
    cannot be read."""

    pages: int = 0
    room: Room | None = None
    looked: bool = False
    failed: bool = False
    looking: "asyncio.Task[None] | None" = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()


class Live:
    """Tells the pages of open rooms what is new, whichever process adds it."""

    def __init__(self, every_seconds: float = EVERY_SECONDS) -> None:
        self._every = every_seconds
        self._rooms: dict[tuple[str, str], _Open] = {}
        self._pieces: OrderedDict[Hashable, asyncio.Task[str]] = OrderedDict()

    async def news(
        self,
        lore: Lore,
        room_id: str,
        *,
        after: int,
        look: Hashable,
        write: Callable[[Room, int], Awaitable[str]],
        may_see: Callable[[], Awaitable[bool]],
    ) -> AsyncIterator[News | None]:
        """Yield what is new after an arrival whenever something is, and None at times.

        It ends after `STREAM_SECONDS`, if `may_see` returns False, and while the store cannot be read. `write` makes
        the piece from the room and an arrival, once for all with the same `look`.
        """
        clock = asyncio.get_running_loop().time
        end = clock() + STREAM_SECONDS
        async with self._watched(lore, room_id) as its:
            while not its.failed:
                changed, room = its.changed, its.room
                if not its.looked:
                    await changed.wait()
                    continue
                if room is not None and room.next_arrival - 1 > after:
                    if not await may_see():
                        return
                    key = (lore.tenant, room_id, room.created_at, room.revision, after, look)
                    begin, after = after, room.next_arrival - 1
                    yield News(after, await self.piece(key, partial(write, room, begin)))
                left = end - clock()
                if left <= 0:
                    return
                if not await _happens(changed, min(left, _PING_SECONDS)) and left > _PING_SECONDS:
                    yield None

    async def piece(self, key: Hashable, make: Callable[[], Awaitable[str]]) -> str:
        """Return a piece of a page, made once for all who ask for it while it is among the last ones. `key`: everything
        that it depends on."""
        made = self._pieces.get(key)
        if made is None:
            made = self._pieces[key] = asyncio.ensure_future(_made(make))
            while len(self._pieces) > _MAX_PIECES:
                self._pieces.popitem(last=False)
        try:
            return await asyncio.shield(made)
        except Exception:
            self._pieces.pop(key, None)
            raise

    @asynccontextmanager
    async def _watched(self, lore: Lore, room_id: str) -> AsyncIterator[_Open]:
        """Look at a room regularly inside the block; one look serves all of its pages."""
        key = (lore.tenant, room_id)
        its = self._rooms.get(key)
        if its is None or its.failed:
            its = self._rooms[key] = _Open()
            its.looking = asyncio.create_task(self._look(lore, room_id, its))
        its.pages += 1
        try:
            yield its
        finally:
            its.pages -= 1
            if not its.pages and its.looking is not None:
                its.looking.cancel()
                if self._rooms.get(key) is its:
                    del self._rooms[key]
                await asyncio.wait([its.looking])

    async def _look(self, lore: Lore, room_id: str, its: _Open) -> None:
        try:
            while True:
                async with lore.storage.reading(lore.tenant) as work:
                    room = await work.rooms.find(room_id=room_id)
                before, its.room = its.room, room
                if not its.looked or (room and (before is None or room.next_arrival > before.next_arrival)):
                    its.looked = True
                    its.tell()
                await asyncio.sleep(self._every)
        except RoomloreError:
            its.looked = its.failed = True
            its.tell()


async def _happens(event: asyncio.Event, seconds: float) -> bool:
    """Wait until an event is set; return False if it is not within these seconds."""
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
        return True
    return False


async def _made(make: Callable[[], Awaitable[str]]) -> str:
    return await make()


def stream(news: AsyncIterator[News | None]) -> Response:
    """Return a stream of server-sent events."""
    return StreamingResponse(_written(news), media_type="text/event-stream", headers=_HEADERS)


async def _written(news: AsyncIterator[News | None]) -> AsyncIterator[bytes]:
    yield _PING
    async for piece in news:
        yield _PING if piece is None else _event(piece).encode("utf-8", "replace")


def _event(news: News) -> str:
    """Return an event. Its id is what a browser sends when it asks again after the connection broke."""
    return f"id: {news.last}\nevent: news\n" + "".join(f"data: {line}\n" for line in news.piece.split("\n")) + "\n"
