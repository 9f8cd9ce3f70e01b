"""The same library without async: one background event loop runs every coroutine method."""

import asyncio
import functools
import inspect
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from os import PathLike
from typing import Any, Concatenate, ParamSpec, TypeVar, Unpack

from roomlore.core import DEFAULT_TENANT
from roomlore.core.errors import Unavailable
from roomlore.settings import Settings
from roomlore.wiring.lore import Lore, connect_with
from roomlore.wiring.resources import Own, OwnBackends, opening_in

P = ParamSpec("P")
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


def _passed_on(method: Callable[Concatenate[Lore, P], T]) -> Callable[Concatenate["SyncLore", P], T]:
    """Return a method of `Lore` that waits for nothing as one of `SyncLore`."""

    @functools.wraps(method)
    def call(sync: "SyncLore", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return method(sync._lore, *args, **kwargs)  # noqa: SLF001 - of this class

    return call


def _waited(method: Callable[Concatenate[Lore, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate["SyncLore", P], T]:
    """Return a coroutine method of `Lore` as one of `SyncLore` that waits."""

    @functools.wraps(method)
    def call(sync: "SyncLore", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return sync.wait(lambda lore: method(lore, *args, **kwargs))

    return call


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

    now = _passed_on(Lore.now)
    metrics = _passed_on(Lore.metrics)
    prometheus = _passed_on(Lore.prometheus)
    series = _passed_on(Lore.series)
    bounds = _passed_on(Lore.bounds)
    remember = _waited(Lore.remember)
    ask = _waited(Lore.ask)
    digest = _waited(Lore.digest)
    overview = _waited(Lore.overview)
    examine = _waited(Lore.examine)
    ping = _waited(Lore.ping)
    ready = _waited(Lore.ready)

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
