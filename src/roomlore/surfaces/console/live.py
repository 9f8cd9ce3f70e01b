"""Messages that arrive while a room is open: one look at the store a moment for all pages of a room, and one rendering
of what is new for all pages that show it alike."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from dataclasses import dataclass

from starlette.responses import Response, StreamingResponse

from roomlore.wiring import Lore

EVERY_SECONDS = 0.2
_PING_SECONDS = 15.0
STREAM_SECONDS = 300.0
"""Then the browser asks again, with its key: a revoked one ends the stream."""
_MAX_HELD = 500
_MAX_PIECES = 64
_PING = ": still here\n\n"
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", "X-Content-Type-Options": "nosniff"}


@dataclass(slots=True)
class _Look:
    at: float
    found: "asyncio.Task[int]"


class Live:
    """Tells when messages are added to rooms, whichever process adds them."""

    def __init__(self, every_seconds: float = EVERY_SECONDS) -> None:
        self._every = every_seconds
        self._looks: dict[tuple[str, str], _Look] = {}
        self._pieces: OrderedDict[Hashable, asyncio.Task[str]] = OrderedDict()

    async def arrivals(self, lore: Lore, room_id: str, *, after: int) -> AsyncIterator[int | None]:
        """Yield the arrival of the room's newest message whenever it is above the last one, and None at times."""
        clock = asyncio.get_running_loop().time
        begun = quiet = clock()
        while clock() - begun < STREAM_SECONDS:
            newest = await self._newest(lore, room_id)
            if newest > after:
                after, quiet = newest, clock()
                yield newest
            elif clock() - quiet > _PING_SECONDS:
                quiet = clock()
                yield None
            await asyncio.sleep(self._every)

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

    async def _newest(self, lore: Lore, room_id: str) -> int:
        """Return the arrival of the newest message, from a look that may be as old as the pause between two."""
        key, now = (lore.tenant, room_id), asyncio.get_running_loop().time()
        look = self._looks.get(key)
        if look is None or (look.found.done() and now - look.at >= self._every / 2):
            self._drop_old(now)
            look = self._looks[key] = _Look(now, asyncio.ensure_future(_newest(lore, room_id)))
        return await asyncio.shield(look.found)

    def _drop_old(self, now: float) -> None:
        if len(self._looks) >= _MAX_HELD:
            self._looks = {key: one for key, one in self._looks.items() if now - one.at < 2 * self._every}


async def _made(make: Callable[[], Awaitable[str]]) -> str:
    return await make()


async def _newest(lore: Lore, room_id: str) -> int:
    async with lore.storage.reading() as work:
        known = await work.rooms.find(tenant=lore.tenant, room_id=room_id)
    return known.next_arrival - 1 if known else 0


def told(arrivals: AsyncIterator[int | None]) -> Response:
    """Return a stream of server-sent events."""
    return StreamingResponse(_written(arrivals), media_type="text/event-stream", headers=_HEADERS)


async def _written(arrivals: AsyncIterator[int | None]) -> AsyncIterator[str]:
    yield _PING
    async for newest in arrivals:
        yield _PING if newest is None else f"event: news\ndata: {newest}\n\n"
