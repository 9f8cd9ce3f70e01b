"""The same library without async: one background loop, and every coroutine method waited for from outside it."""

import asyncio
import functools
import inspect
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import AsyncExitStack, contextmanager
from datetime import datetime
from typing import Any, TypeVar

from roomlore.core.errors import Unavailable
from roomlore.core.health import Finding
from roomlore.core.models import DEFAULT_TENANT
from roomlore.ports.language import Embedder, Summarizer
from roomlore.settings import Settings
from roomlore.wiring import Lore, open_lore

T = TypeVar("T")


class _Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._calls: set[asyncio.Task[Any] | None] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="roomlore", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Waits for the work; `Unavailable` where this loop ends before it does, or ended before."""
        if self._loop.is_closed():
            work.close()
            raise Unavailable("This roomlore is closed; make every call inside the `with` block that opened it.")
        call: Future[T] | None = None
        try:
            call = asyncio.run_coroutine_threadsafe(self._counted(work), self._loop)
            return call.result()
        except CancelledError as error:
            raise Unavailable("This roomlore was closed during the call; call again on an open one.") from error
        except KeyboardInterrupt:
            if call is not None:
                call.cancel()
            asyncio.run_coroutine_threadsafe(self._until_broken_off(), self._loop).result()
            raise

    async def _counted(self, work: Coroutine[Any, Any, T]) -> T:
        call = asyncio.current_task()
        self._calls.add(call)
        try:
            return await work
        finally:
            self._calls.discard(call)

    async def _until_broken_off(self) -> None:
        """Returns once the calls that were cancelled have put their things in order."""
        cancelled = [call for call in self._calls if call and call.cancelling()]
        await asyncio.gather(*cancelled, return_exceptions=True)

    async def end_calls(self) -> None:
        """Breaks off what other threads still wait for, so that none waits for a loop that has stopped."""
        others = [call for call in self._calls if call and call is not asyncio.current_task()]
        for call in others:
            call.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def iterate(self, items: AsyncGenerator[T, Any]) -> Iterator[T]:
        """What the items are, one by one; broken off, they are told so at once."""
        asking: set[asyncio.Task[Any]] = set()
        try:
            while True:
                yield self.run(_next(items, asking))
        except StopAsyncIteration:
            return
        finally:
            if not self._loop.is_closed():
                self.run(_ended(items, asking))

    def close(self) -> None:
        self.run(self._loop.shutdown_default_executor())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _next(items: AsyncIterator[T], asking: set[asyncio.Task[Any]]) -> T:
    task = asyncio.current_task()
    assert task is not None
    asking.add(task)
    try:
        return await anext(items)
    finally:
        asking.discard(task)


async def _ended(items: AsyncGenerator[T, Any], asking: set[asyncio.Task[Any]]) -> None:
    """Ends them, once nothing asks for the next one: Ctrl-C may come while that is handed in, or come twice."""
    for task in asking:
        if not task.cancelling():
            task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    await items.aclose()


class SyncService:
    """A service whose coroutine methods have become plain ones, and whose async iterators plain iterators."""

    def __init__(self, service: object, loop: _Loop) -> None:
        for name, method in inspect.getmembers(service, inspect.ismethod):
            if not name.startswith("_"):
                setattr(self, name, _waiting(method, loop))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        raise AttributeError(f"{name!r} is no method of this service; there are {', '.join(sorted(vars(self)))}.")


def _waiting(method: Callable[..., Any], loop: _Loop) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        if callable(tool := kwargs.get("call_tool")) and not inspect.iscoroutinefunction(tool):
            kwargs["call_tool"] = _beside_the_loop(tool)
        result = method(*args, **kwargs)
        return loop.iterate(result) if inspect.isasyncgen(result) else loop.run(result)

    return call


def _beside_the_loop(tool: Callable[[Any], Any]) -> Callable[[Any], Coroutine[Any, Any, Any]]:
    """A plain tool as an async one, in a thread of its own, so that the others of its round do not wait for it."""

    async def called(call: Any) -> Any:
        given = await asyncio.to_thread(tool, call)
        return await given if inspect.isawaitable(given) else given

    return called


class SyncLore:
    """One tenant's view of roomlore, as `Lore`, with every call waited for."""

    def __init__(self, lore: Lore, loop: _Loop) -> None:
        self._lore = lore
        self._loop = loop
        self.tenant = lore.tenant
        self.messages = SyncService(lore.messages, loop)
        self.context = SyncService(lore.context, loop)
        self.rooms = SyncService(lore.rooms, loop)
        self.keys = SyncService(lore.keys, loop)
        self.imports = SyncService(lore.imports, loop)
        self.tuning = SyncService(lore.tuning, loop)
        self.index = SyncService(lore.index, loop)
        self.sessions = SyncService(lore.sessions, loop)
        self.memories = SyncService(lore.memories, loop)
        self.recall = SyncService(lore.recall, loop)
        self.replies = SyncService(lore.replies, loop)
        self.models = SyncService(lore.models, loop)
        self.jobs = SyncService(lore.jobs, loop)
        self.privacy = SyncService(lore.privacy, loop)

    @property
    def settings(self) -> Settings:
        return self._lore.settings

    def for_tenant(self, tenant: str) -> "SyncLore":
        return SyncLore(self._lore.for_tenant(tenant), self._loop)

    def now(self) -> datetime:
        return self._lore.now()

    def metrics(self) -> Mapping[str, float | None]:
        return self._lore.metrics()

    def prometheus(self) -> bytes:
        return self._lore.prometheus()

    def series(self, name: str) -> Sequence[tuple[Mapping[str, str], float]]:
        return self._lore.series(name)

    def bounds(self, name: str) -> tuple[float, ...]:
        return self._lore.bounds(name)

    def examine(self, *, timeout_seconds: float = 10.0) -> list[Finding]:
        return self._loop.run(self._lore.examine(timeout_seconds=timeout_seconds))

    def ping(self) -> None:
        self._loop.run(self._lore.ping())

    def ready(self) -> None:
        self._loop.run(self._lore.ready())

    def wait(self, work: Callable[[Lore], Coroutine[Any, Any, T]]) -> T:
        """Waits for what is done with the async roomlore behind this one."""
        return self._loop.run(work(self._lore))


@contextmanager
def open_sync(
    url: str | None = None,
    *,
    tenant: str = DEFAULT_TENANT,
    settings: Settings | None = None,
    embedder: Embedder | None = None,
    summarizer: Summarizer | None = None,
    background: bool = True,
) -> Iterator[SyncLore]:
    """As `roomlore.open`, for code that is not async. Calls may come from any thread; those still under way when the
    block ends, and those that come after it, raise `Unavailable`."""
    loop, stack = _Loop(), AsyncExitStack()
    opening = open_lore(
        url, tenant=tenant, settings=settings, embedder=embedder, summarizer=summarizer, background=background
    )
    try:
        lore = loop.run(stack.enter_async_context(opening))
        try:
            yield SyncLore(lore, loop)
        finally:
            loop.run(loop.end_calls())
            loop.run(stack.aclose())
    finally:
        loop.close()
