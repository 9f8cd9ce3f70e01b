"""The same library without async: one background event loop runs every coroutine method."""

import asyncio
import functools
import inspect
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from datetime import datetime
from os import PathLike
from typing import Any, TypeVar, Unpack

from roomlore.core import DEFAULT_TENANT
from roomlore.core.digest.digest import DIGEST_TOKENS, Digest
from roomlore.core.digest.overview import Overview
from roomlore.core.errors import Unavailable
from roomlore.core.evolution.requests import Mode
from roomlore.core.health import Finding
from roomlore.core.memory.versions import AddedFact
from roomlore.core.memory.writing import MemoryFields
from roomlore.core.models import Room
from roomlore.core.search.hits import SearchAnswer
from roomlore.services.messages import SearchFilters
from roomlore.settings import Settings
from roomlore.wiring.lore import Lore, connect_with
from roomlore.wiring.resources import Own, OwnBackends, opening_in

T = TypeVar("T")


class _Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._calls: set[asyncio.Task[Any] | None] = set()
        self._closing = threading.RLock()
        self._handing_in = threading.RLock()
        self._takes_calls = True
        self._thread = threading.Thread(target=self._loop.run_forever, name="roomlore", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for the work. Raise `Unavailable` if this loop ends before it does, or ended before."""
        return self._run(work, last=False)

    def _run(self, work: Coroutine[Any, Any, T], *, last: bool) -> T:
        call: Future[T] | None = None
        try:
            # The loop does not begin to end meanwhile: it would stop before the call is answered.
            with self._handing_in:
                if not (self._takes_calls or last):
                    work.close()
                    raise Unavailable("lore_closed_for_call")
                call = asyncio.run_coroutine_threadsafe(self._counted(work), self._loop)
            return call.result()
        except CancelledError as error:
            raise Unavailable("lore_closed_meanwhile") from error
        except KeyboardInterrupt:
            if call is not None:
                call.cancel()
            asyncio.run_coroutine_threadsafe(self._wait_for_cancelled(), self._loop).result()
            raise

    async def _counted(self, work: Coroutine[Any, Any, T]) -> T:
        call = asyncio.current_task()
        self._calls.add(call)
        try:
            return await work
        finally:
            self._calls.discard(call)

    async def _wait_for_cancelled(self) -> None:
        """Return once the cancelled calls have cleaned up."""
        cancelled = [call for call in self._calls if call and call.cancelling()]
        await asyncio.gather(*cancelled, return_exceptions=True)

    async def _end_calls(self) -> None:
        """Cancel the calls of other threads, so that none waits for a loop that has stopped."""
        others = [call for call in self._calls if call and call is not asyncio.current_task()]
        for call in others:
            call.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def iterate(self, items: AsyncGenerator[T, Any]) -> Iterator[T]:
        """Yield the items one by one; if the caller stops, the generator is closed at once."""
        asking: set[asyncio.Task[Any]] = set()
        try:
            while True:
                yield self.run(_next(items, asking))
        except StopAsyncIteration:
            return
        finally:
            if self._takes_calls:
                self.run(_close(items, asking))

    def close(self, last: Callable[[], Coroutine[Any, Any, None]] | None = None) -> None:
        """End the calls of other threads, do the last work, and stop. Closing again does nothing."""
        with self._closing:
            if self._loop.is_closed():
                return
            with self._handing_in:
                self._takes_calls = False
            try:
                self._run(self._end_calls(), last=True)
                if last:
                    self._run(last(), last=True)
            finally:
                self._run(self._loop.shutdown_default_executor(), last=True)
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


async def _close(items: AsyncGenerator[T, Any], asking: set[asyncio.Task[Any]]) -> None:
    """Close the generator, once nothing asks for the next item: Ctrl-C may come during that request, or twice."""
    for task in asking:
        if not task.cancelling():
            task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    await items.aclose()


class SyncService:
    """A service with plain methods for its coroutine methods, and plain iterators for its async ones."""

    def __init__(self, service: object, loop: _Loop) -> None:
        for name, method in inspect.getmembers(service, inspect.ismethod):
            if not name.startswith("_"):
                setattr(self, name, _blocking(method, loop))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        raise AttributeError(f"{name!r} is no method of this service; there are {', '.join(sorted(vars(self)))}.")


def _blocking(method: Callable[..., Any], loop: _Loop) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        if callable(tool := kwargs.get("call_tool")) and not inspect.iscoroutinefunction(tool):
            kwargs["call_tool"] = _in_a_thread(tool)
        result = method(*args, **kwargs)
        return loop.iterate(result) if inspect.isasyncgen(result) else loop.run(result)

    return call


def _in_a_thread(tool: Callable[[Any], Any]) -> Callable[[Any], Coroutine[Any, Any, Any]]:
    """Return a plain tool as an async one, in a thread of its own, so that the others of its round do not wait for
    it."""

    async def called(call: Any) -> Any:
        given = await asyncio.to_thread(tool, call)
        return await given if inspect.isawaitable(given) else given

    return called


class SyncLore:
    """One tenant's view of roomlore, as `Lore`, with blocking calls."""

    def __init__(self, lore: Lore, loop: _Loop) -> None:
        self._lore = lore
        self._loop = loop
        self.tenant = lore.tenant

    def __getattr__(self, name: str) -> SyncService:
        if not isinstance(vars(Lore).get(name), functools.cached_property) or name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        service = SyncService(getattr(self._lore, name), self._loop)
        setattr(self, name, service)
        return service

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

    def remember(
        self, about: Room | str, statement: str, *, viewer: str | None = None, **fields: Unpack[MemoryFields]
    ) -> AddedFact:
        return self._loop.run(self._lore.remember(about, statement, viewer=viewer, **fields))

    def ask(
        self, room: Room | str | None, question: str, *, viewer: str | None = None, **filters: Unpack[SearchFilters]
    ) -> SearchAnswer:
        return self._loop.run(self._lore.ask(room, question, viewer=viewer, **filters))

    def digest(
        self,
        room_id: str,
        *,
        since: datetime | None = None,
        for_user: str | None = None,
        max_tokens: int = DIGEST_TOKENS,
        viewer: str | None = None,
        mode: Mode = "auto",
    ) -> Digest:
        return self._loop.run(
            self._lore.digest(room_id, since=since, for_user=for_user, max_tokens=max_tokens, viewer=viewer, mode=mode)
        )

    def overview(
        self, *, since: datetime, person: str | None = None, viewer: str | None = None, part: int = 1
    ) -> Overview:
        return self._loop.run(self._lore.overview(since=since, person=person, viewer=viewer, part=part))

    def examine(self, *, timeout_seconds: float = 10.0) -> list[Finding]:
        return self._loop.run(self._lore.examine(timeout_seconds=timeout_seconds))

    def ping(self) -> None:
        self._loop.run(self._lore.ping())

    def ready(self) -> None:
        self._loop.run(self._lore.ready())

    def close(self) -> None:
        """Close what was opened, for the views of other tenants too. Calls under way in other threads, and later ones,
        raise `Unavailable`. Closing again does nothing."""
        self._loop.close(self._lore.close)

    def wait(self, work: Callable[[Lore], Coroutine[Any, Any, T]]) -> T:
        """Wait for work on the async `Lore` behind this one."""
        return self._loop.run(work(self._lore))


def connect_sync(
    url: str | PathLike[str] | None = None,
    *,
    tenant: str = DEFAULT_TENANT,
    settings: Settings | None = None,
    background: bool = True,
    **own: Unpack[OwnBackends],
) -> SyncLore:
    """Open roomlore as `roomlore.connect` does, for code that is not async. End with `lore.close()`. Calls may come
    from any thread."""
    return connect_sync_with(Own(**own), url, tenant=tenant, settings=settings, background=background)


def connect_sync_with(
    own: Own, url: str | PathLike[str] | None, *, tenant: str, settings: Settings | None, background: bool
) -> SyncLore:
    """Open roomlore with the caller's own backends, as `connect_sync`."""
    loop = _Loop()
    try:
        connecting = connect_with(own, url, tenant=tenant, settings=settings, background=background)
        with opening_in("with roomlore.open_sync(...)"):
            return SyncLore(loop.run(connecting), loop)
    except BaseException:
        loop.close()
        raise


@contextmanager
def open_sync(
    url: str | PathLike[str] | None = None,
    *,
    tenant: str = DEFAULT_TENANT,
    settings: Settings | None = None,
    background: bool = True,
    **own: Unpack[OwnBackends],
) -> Iterator[SyncLore]:
    """Open roomlore as `roomlore.open` does, for code that is not async. Calls may come from any thread; those still
    running when the block ends, and those after it, raise `Unavailable`."""
    lore = connect_sync_with(Own(**own), url, tenant=tenant, settings=settings, background=background)
    try:
        yield lore
    finally:
        lore.close()
