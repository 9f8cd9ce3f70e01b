"""A server on a loopback socket that can be stopped and started again on its port; a subclass defines its answers."""

import asyncio
import contextlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Self, TypeVar

_STEPS_TO_A_TASK = 4
"""Rounds of the event loop from an accepted connection to the first step of its task."""


class LoopbackServer(ABC):
    """A loopback server. `async with` starts and stops it. It is an ordinary socket: other processes may use it too."""

    def __init__(self, *, port: int = 0) -> None:
        self.connections = 0
        self._port = port
        self._server: asyncio.Server | None = None
        self._talks: set[asyncio.Task[None]] = set()

    @property
    def open_connections(self) -> int:
        """The number of connections that clients hold now."""
        return len(self._talks)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen, on the earlier port if it was stopped."""
        self._server = await asyncio.start_server(self._talk, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Break all connections and refuse new ones. Its data is kept."""
        if self._server is None:
            return
        await self._stop_accepting(self._server)
        self._server.close()
        for talk in tuple(self._talks):
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)
        await self._server.wait_closed()
        self._server = None

    async def _stop_accepting(self, server: asyncio.Server) -> None:
        """Accept no more, and wait until the connections that are accepted have their task: asyncio loses one that it
        accepts in the moment in which the server closes, and leaves its socket open."""
        for listening in server.sockets:
            asyncio.get_running_loop().remove_reader(listening)
        for _ in range(_STEPS_TO_A_TASK):
            await asyncio.sleep(0)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._talks.add(task)
        self.connections += 1
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self._answer_one(reader, writer):
                    pass
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            self._talks.discard(task)
            writer.close()

    @abstractmethod
    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Handle one request. Return True if the connection stays open."""


Server = TypeVar("Server", bound=LoopbackServer)


@contextlib.contextmanager
def on_a_thread(server: Server) -> Iterator[Server]:
    """Run the server on a thread of its own, for programs and tests without a running event loop."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="loopback-server", daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(server.start(), loop).result()
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
