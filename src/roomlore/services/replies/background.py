"""Work that must come to its end, whatever becomes of whoever asked for it."""

import asyncio
import logging
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from roomlore.core.errors import Conflict, describe

T = TypeVar("T")
Key = tuple[str, ...]
_CLOSE_SECONDS = 5.0

log = logging.getLogger(__name__)


class Background:
    """Tasks that nobody else holds."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._under_way: set[Key] = set()

    def start(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Does the work behind the caller's back."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def finish(self, work: Coroutine[Any, Any, T]) -> T:
        """Waits for the work. Where whoever waits is cancelled, it is told so after the work is done."""
        task = self.start(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait({task})
            raise

    @contextmanager
    def alone(self, key: Key) -> Iterator[None]:
        """Raises `Conflict` where the same is under way in this process, since it would be paid for twice."""
        if key in self._under_way:
            raise Conflict("A reply to this message is being written already; wait for it, then ask again.")
        self._under_way.add(key)
        try:
            yield
        finally:
            self._under_way.discard(key)

    async def close(self) -> None:
        """Lets what runs come to its end, for a while."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=_CLOSE_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.warning("work of a reply failed", extra={"why": describe(task.exception())})  # type: ignore[arg-type]
