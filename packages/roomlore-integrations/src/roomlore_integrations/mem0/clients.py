"""mem0's `Memory` and `AsyncMemory`: each opens roomlore when it is created, or takes an open one."""

import asyncio
import functools
import threading
import weakref
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, nullcontext
from typing import Any, Concatenate, ParamSpec, TypeVar

import roomlore
from roomlore import InvalidInput, Lore, Settings, SyncLore
from roomlore.core.audience import check_viewer
from roomlore.ports.language import Embedder
from roomlore_integrations.mem0.config import read_config
from roomlore_integrations.mem0.verbs import Verbs

P = ParamSpec("P")
T = TypeVar("T")
Verb = Callable[Concatenate[Verbs, P], Coroutine[Any, Any, T]]


def _waited(verb: Verb[P, T]) -> Callable[Concatenate["Memory", P], T]:
    def call(memory: "Memory", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return memory.wait(lambda verbs: verb(verbs, *args, **kwargs))

    functools.update_wrapper(call, verb)
    return call


def _awaited(verb: Verb[P, T]) -> Callable[Concatenate["AsyncMemory", P], Coroutine[Any, Any, T]]:
    async def call(memory: "AsyncMemory", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await verb(await memory.verbs(), *args, **kwargs)

    functools.update_wrapper(call, verb)
    return call


class Memory:
    """mem0's `Memory` over roomlore.

    `config`: mem0's; an `IgnoredSetting` warns of options without a counterpart, and its collection is the tenant.
    `url`: the database, by default that of the config or of the settings. `settings`, `embedder`: as for
    `roomlore.open`, instead of `config`. `lore`: from `roomlore.open_sync`, instead of all of them. `viewer`: who sees
    what this client answers, 'room:team' or 'user:anna'; without one it reads everything of the owners that a call
    names (with an agent or a run alone, of all its users), and the caller decides who sees it. Close it, or use it
    as `with Memory() as memory:`; otherwise it is closed when it is garbage-collected. Raises `InvalidInput` and
    `StorageUnavailable`.
    """

    def __init__(
        self,
        config: Mapping[str, Any] | None = None,
        *,
        url: str | None = None,
        settings: Settings | None = None,
        embedder: Embedder | None = None,
        lore: SyncLore | None = None,
        viewer: str | None = None,
    ) -> None:
        self._viewer = None if viewer is None else str(check_viewer(viewer))
        self._closing = ExitStack()
        if lore is None:
            read = read_config(config, settings)
            opening = roomlore.open_sync(url or read.url, tenant=read.tenant, settings=read.settings, embedder=embedder)
            self._lore = self._closing.enter_context(opening)
        else:
            self._lore = _open_one(lore, SyncLore, config, url, settings, embedder)
        self._unclosed = weakref.finalize(self, _close_collected, self._closing)

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any], **more: Any) -> "Memory":
        """Return `Memory(config_dict, ...)`."""
        return cls(config_dict, **more)

    add = _waited(Verbs.add)
    get = _waited(Verbs.get)
    get_all = _waited(Verbs.get_all)
    search = _waited(Verbs.search)
    update = _waited(Verbs.update)
    delete = _waited(Verbs.delete)
    delete_all = _waited(Verbs.delete_all)
    history = _waited(Verbs.history)
    reset = _waited(Verbs.reset)

    def wait(self, work: Callable[[Verbs], Coroutine[Any, Any, T]]) -> T:
        """Run work with the verbs and wait for it."""
        return self._lore.wait(lambda lore: work(Verbs(lore, self._viewer)))

    def close(self) -> None:
        """Close what this client opened. Repeated calls do nothing."""
        self._unclosed.detach()
        self._closing.close()

    def __enter__(self) -> "Memory":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncMemory:
    """mem0's `AsyncMemory` over roomlore. The arguments are those of `Memory`; `lore` is from `roomlore.open`. The
    first call opens the database. Use `await memory.close()` or `async with AsyncMemory()`."""

    def __init__(
        self,
        config: Mapping[str, Any] | None = None,
        *,
        url: str | None = None,
        settings: Settings | None = None,
        embedder: Embedder | None = None,
        lore: Lore | None = None,
        viewer: str | None = None,
    ) -> None:
        self._viewer = None if viewer is None else str(check_viewer(viewer))
        self._closing = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._lore: Lore | None = None
        self._open: Callable[[], AbstractAsyncContextManager[Lore]]
        if lore is None:
            read = read_config(config, settings)
            self._open = lambda: roomlore.open(
                url or read.url, tenant=read.tenant, settings=read.settings, embedder=embedder
            )
        else:
            given = _open_one(lore, Lore, config, url, settings, embedder)
            self._open = lambda: nullcontext(given)

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any], **more: Any) -> "AsyncMemory":
        """Return `AsyncMemory(config_dict, ...)`."""
        return cls(config_dict, **more)

    add = _awaited(Verbs.add)
    get = _awaited(Verbs.get)
    get_all = _awaited(Verbs.get_all)
    search = _awaited(Verbs.search)
    update = _awaited(Verbs.update)
    delete = _awaited(Verbs.delete)
    delete_all = _awaited(Verbs.delete_all)
    history = _awaited(Verbs.history)
    reset = _awaited(Verbs.reset)

    async def verbs(self) -> Verbs:
        """Return the verbs, with the database open."""
        async with self._opening:
            if self._lore is None:
                self._lore = await self._closing.enter_async_context(self._open())
            return Verbs(self._lore, self._viewer)

    async def close(self) -> None:
        """Close what this client opened. A later call opens it again."""
        async with self._opening:
            closing, self._closing = self._closing, AsyncExitStack()
            self._lore = None
            await closing.aclose()

    async def __aenter__(self) -> "AsyncMemory":
        await self.verbs()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _close_collected(closing: ExitStack) -> None:
    """Close a client that nobody closed. It may be collected on a thread that its closing waits for, but never on the
    main thread, where the program's end closes it too."""
    if threading.current_thread() is threading.main_thread():
        closing.close()
    else:
        threading.Thread(target=closing.close, name="roomlore-closing").start()


def _open_one(lore: T, wanted: type[T], *others: object) -> T:
    if not isinstance(lore, wanted):
        opens = "roomlore.open_sync" if wanted is SyncLore else "roomlore.open"
        raise InvalidInput("lore_invalid_for_mem0", kind=type(lore).__name__, opener=opens)
    if any(other is not None for other in others):
        raise InvalidInput("lore_open_already")
    return lore
