"""Work that a request waits for and does not carry: it goes on when the request has ended."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from roomlore.core.errors import describe

T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Work:
    """`told`: somebody was given what came of it. `until`: lets go of that."""

    task: asyncio.Task[Any]
    told: bool = False
    until: asyncio.TimerHandle | None = None


class LongWork:
    """Work by name; the same is never done twice at a time. What it does must bear being broken off and begun anew: it
    ends with the server. What came of it while nobody waited is kept for `kept_seconds`, for who asks next."""

    def __init__(self, *, kept_seconds: float = 120.0) -> None:
        self._kept_seconds = kept_seconds
        self._going: dict[Hashable, _Work] = {}
        self._kept: dict[Hashable, _Work] = {}

    async def wait(
        self, name: Hashable, begin: Callable[[], Awaitable[T]], *, seconds: float, anew: bool = False
    ) -> T | None:
        """What came of it; None where it still goes on after so many seconds. Who asks again waits for the same work,
        or is given what came of it meanwhile; with `anew` what has ended is done again. Raises what the work raises."""
        if anew:
            self._let_go(name)
        work = self._going.get(name) or self._kept.get(name) or self._begin(name, begin)
        await asyncio.wait([work.task], timeout=seconds)
        if not work.task.done():
            return None
        work.told = True
        if self._kept.get(name) is work:
            self._let_go(name)
        found: T = await work.task
        return found

    def goes_on(self, name: Hashable) -> bool:
        """Whether this work is under way."""
        return name in self._going

    def knows(self, name: Hashable) -> bool:
        """Whether this work is under way, or has ended and nobody was told what came of it."""
        return name in self._going or name in self._kept

    def under_way(self, *beginning: Hashable) -> int:
        """How much work there is under way whose name, a tuple, begins like this."""
        return len(_beginning(self._going, beginning))

    def drop(self, *beginning: Hashable) -> None:
        """Keeps nothing of what came of work whose name, a tuple, begins like this; of such work under way only who
        waits when it ends is told."""
        for name in _beginning(self._kept, beginning):
            self._let_go(name)
        for name in _beginning(self._going, beginning):
            self._going[name].told = True

    @asynccontextmanager
    async def ending(self) -> AsyncIterator[None]:
        """Breaks off what still goes on when the block ends, and lets go of what is kept."""
        try:
            yield
        finally:
            tasks = [work.task for work in self._going.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for name in tuple(self._kept):
                self._let_go(name)

    def _begin(self, name: Hashable, begin: Callable[[], Awaitable[Any]]) -> _Work:
        work = self._going[name] = _Work(asyncio.ensure_future(begin()))
        work.task.add_done_callback(lambda _: self._ended(name, work))
        return work

    def _ended(self, name: Hashable, work: _Work) -> None:
        self._going.pop(name, None)
        if work.task.cancelled():
            return
        if (error := work.task.exception()) is not None:
            log.warning("long work failed", extra={"why": describe(error)})
        if not work.told:
            self._keep(name, work)

    def _keep(self, name: Hashable, work: _Work) -> None:
        """Who waits is told right after this, and lets go of it."""
        self._kept[name] = work
        work.until = asyncio.get_running_loop().call_later(self._kept_seconds, self._let_go, name)

    def _let_go(self, name: Hashable) -> None:
        work = self._kept.pop(name, None)
        if work is not None and work.until is not None:
            work.until.cancel()


def _beginning(names: Iterable[Hashable], beginning: tuple[Hashable, ...]) -> list[Hashable]:
    return [name for name in names if isinstance(name, tuple) and name[: len(beginning)] == beginning]
