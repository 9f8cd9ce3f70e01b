"""Work that a request waits for and does not carry: it goes on when the request has ended."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from roomlore.core.errors import describe

T = TypeVar("T")

log = logging.getLogger(__name__)


class LongWork:
    """Work by name; the same is never done twice at a time. What it does must bear being broken off and begun anew: it
    ends with the server."""

    def __init__(self) -> None:
        self._going: dict[Hashable, asyncio.Task[Any]] = {}

    async def wait(self, name: Hashable, begin: Callable[[], Awaitable[T]], *, seconds: float) -> T | None:
        """What came of it; None where it still goes on after so many seconds. Who asks again waits for the same work.
        Raises what the work raises."""
        task = self._going.get(name)
        if task is None:
            task = self._going[name] = asyncio.ensure_future(begin())
            task.add_done_callback(lambda done: self._ended(name, done))
        await asyncio.wait([task], timeout=seconds)
        return await task if task.done() else None

    def goes_on(self, name: Hashable) -> bool:
        """Whether this work is under way."""
        return name in self._going

    def under_way(self, *beginning: Hashable) -> int:
        """How much work there is under way whose name, a tuple, begins like this."""
        names = [name for name in self._going if isinstance(name, tuple)]
        return sum(name[: len(beginning)] == beginning for name in names)

    @asynccontextmanager
    async def ending(self) -> AsyncIterator[None]:
        """Breaks off what still goes on when the block ends."""
        try:
            yield
        finally:
            for task in tuple(self._going.values()):
                task.cancel()
            await asyncio.gather(*self._going.values(), return_exceptions=True)

    def _ended(self, name: Hashable, done: asyncio.Task[Any]) -> None:
        self._going.pop(name, None)
        if not done.cancelled() and (error := done.exception()) is not None:
            log.warning("long work failed", extra={"why": describe(error)})
