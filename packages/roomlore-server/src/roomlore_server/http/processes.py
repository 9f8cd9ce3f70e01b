"""Several processes that serve one port: `roomlore serve --workers N`.

The processes share the listening socket and the database, and nothing else. The first process of all serves nothing: it
starts the others, starts one anew if it ends, and stops them.
"""

import asyncio
import contextlib
import os
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import FrameType

import structlog

from roomlore.core.errors import Unavailable, describe
from roomlore.settings import Settings
from roomlore.surfaces import logs
from roomlore.wiring import open_lore
from roomlore_server.http.process_metrics import ProcessMetrics
from roomlore_server.http.server import address_of, bind, check_reachable, serve

_SPAWN = get_context("spawn")
_PAUSE_SECONDS = 1.0
_END_SECONDS = 30.0

log = structlog.get_logger(__name__)


def serve_in_processes(settings: Settings, workers: int, *, listening: Callable[[str], None], tenant: str) -> None:
    """Serve until the process is told to stop. `workers`: the number of processes. `listening` is called with the URL
    once all of them accept requests. Raise as `serve` does, and `Unavailable` if a process does not start.
    """
    asyncio.run(_prepared(settings, tenant))
    with (
        bind(settings.server.host, settings.server.port) as door,
        tempfile.TemporaryDirectory(prefix="roomlore-serve-") as folder,
    ):
        team = _Team(settings, door, tenant, Path(folder))
        with team.until_stopped():
            for number in range(workers):
                team.start(number)
            team.wait_until_ready()
            listening(address_of(door))
            team.keep()


async def _prepared(settings: Settings, tenant: str) -> None:
    """Bring the schema up to date once, and check the address, before the processes begin."""
    async with open_lore(settings=settings, tenant=tenant, background=False) as lore:
        await check_reachable(settings, lore)


@dataclass(slots=True)
class _Member:
    """A process. `ready`: gives a message once the process accepts requests. `lifeline`: closes with this process, so
    that none is left behind if it is killed."""

    process: SpawnProcess
    ready: Connection
    lifeline: Connection
    is_ready: bool = False


class _Team:
    def __init__(self, settings: Settings, door: socket.socket, tenant: str, folder: Path) -> None:
        self._settings, self._door, self._tenant, self._folder = settings, door, tenant, folder
        self._members: dict[int, _Member] = {}
        self._stopping = False
        self._wake, self._woken = _SPAWN.Pipe(duplex=False)

    def start(self, number: int) -> None:
        ready, tells = _SPAWN.Pipe(duplex=False)
        watched, lifeline = _SPAWN.Pipe(duplex=False)
        given = (self._settings, self._door, self._tenant, self._folder, number, tells, watched)
        process = _SPAWN.Process(target=_serve_one, args=given, name=f"roomlore-{number}")
        process.start()
        tells.close()
        watched.close()
        self._members[number] = _Member(process, ready, lifeline)

    def wait_until_ready(self) -> None:
        """Raise `Unavailable` if one of them ends before it is ready."""
        for member in self._members.values():
            while not (member.is_ready or self._stopping):
                if member.ready in wait([member.ready, self._wake]):
                    member.is_ready = _was_told(member.ready)
                    if not member.is_ready:
                        raise Unavailable("server_process_failed")

    def keep(self) -> None:
        """Start processes that end anew, until told to stop."""
        while not self._stopping:
            wait([self._wake, *(member.process.sentinel for member in self._members.values())])
            for number, member in list(self._members.items()):
                if not self._stopping and not member.process.is_alive():
                    log.error("a process of the server ended and is started anew", code=member.process.exitcode)
                    member.ready.close()
                    member.lifeline.close()
                    time.sleep(_PAUSE_SECONDS)
                    self.start(number)

    @contextlib.contextmanager
    def until_stopped(self) -> Iterator[None]:
        """Hear SIGINT and SIGTERM, and stop all processes at the end."""
        before = {number: signal.signal(number, self._hear) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            self._stop()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _hear(self, _number: int, _frame: FrameType | None) -> None:
        if not self._stopping:
            self._stopping = True
            self._woken.send(None)

    def _stop(self) -> None:
        self._stopping = True
        for member in self._members.values():
            if member.process.is_alive():
                member.process.terminate()
        ends = time.monotonic() + _END_SECONDS
        for member in self._members.values():
            member.process.join(max(ends - time.monotonic(), 0))
            if member.process.is_alive():
                member.process.kill()
                member.process.join()


def _was_told(ready: Connection) -> bool:
    try:
        ready.recv()
    except EOFError:
        return False
    return True


def _serve_one(
    settings: Settings,
    door: socket.socket,
    tenant: str,
    folder: Path,
    number: int,
    tells: Connection,
    watched: Connection,
) -> None:
    """Serve in this process until told to stop, or until the first process is gone."""
    logs.configure(form=settings.server.log_format, level=settings.server.log_level)
    threading.Thread(target=_end_with, args=(watched,), name="lifeline", daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal; the first one stops them
    metrics = ProcessMetrics(folder, number)
    try:
        asyncio.run(serve(settings, listening=tells.send, tenant=tenant, door=door, metrics=metrics))
    except Exception as error:  # noqa: BLE001 - a traceback may quote a message
        log.error("a process of the server failed", error=describe(error), where=logs.where(error))
        raise SystemExit(1) from None


def _end_with(watched: Connection) -> None:
    with contextlib.suppress(EOFError, OSError):
        watched.recv()
    os.kill(os.getpid(), signal.SIGTERM)
