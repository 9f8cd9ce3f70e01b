"""Serving a host that started this program: requests on standard input, answers on standard output."""

import asyncio
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mcp import stdio_server

from roomlore.core.memory.models import check_scope
from roomlore.core.models import DEFAULT_TENANT
from roomlore.settings import Settings
from roomlore.surfaces.mcp.server import make_server
from roomlore.surfaces.mcp.tool import Visitor
from roomlore.wiring import open_lore

_STANDARD_INPUT = 0
_WAITING_LINES = 16


async def serve_stdio(
    settings: Settings, *, tenant: str = DEFAULT_TENANT, scope: str | None = None, read_only: bool = False
) -> None:
    """Serves until standard input ends or the process is told to stop. While it does, whatever else writes to standard
    output goes to standard error.

    `scope`: whose memories are meant where a call does not say. `read_only`: without the tools that change memories.
    Raises `InvalidInput`, `StorageUnavailable`.
    """
    whose = None if scope is None else check_scope(scope)
    with _ending_when_told():
        async with open_lore(settings=settings, tenant=tenant, background=settings.work_in_server) as lore:
            server = make_server(Visitor(lore=lore, may_write=not read_only, scope=whose))
            lines: Any = _Lines()
            async with stdio_server(stdin=lines) as (incoming, outgoing):
                await server.run(incoming, outgoing, server.create_initialization_options())


@contextmanager
def _ending_when_told() -> Iterator[None]:
    """The first SIGINT or SIGTERM ends what is inside in good order; the second one the process, at once."""
    loop, task, told = asyncio.get_running_loop(), asyncio.current_task(), threading.Event()
    assert task is not None

    def hear(*_: object) -> None:
        told.set()
        for number, handler in before.items():
            signal.signal(number, handler)
        loop.call_soon_threadsafe(task.cancel)

    before = {number: signal.signal(number, hear) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except asyncio.CancelledError:
        if not told.is_set():
            raise
        task.uncancel()


class _Lines:
    """The lines of standard input, read by a thread that nobody waits for: a read cannot be broken off."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._read: asyncio.Queue[str] = asyncio.Queue(_WAITING_LINES)
        threading.Thread(target=self._follow, name="standard input", daemon=True).start()

    def __aiter__(self) -> "_Lines":
        return self

    async def __anext__(self) -> str:
        line = await self._read.get()
        if not line:
            raise StopAsyncIteration
        return line

    def _follow(self) -> None:
        with open(_STANDARD_INPUT, encoding="utf-8", errors="replace", closefd=False) as lines:
            while self._hand_over(line := lines.readline()) and line:
                pass

    def _hand_over(self, line: str) -> bool:
        """Whether somebody still reads."""
        put = self._read.put(line)
        try:
            asyncio.run_coroutine_threadsafe(put, self._loop).result()
        except RuntimeError:
            put.close()
            return False
        return True
