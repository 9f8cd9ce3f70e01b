"""Processes that link and store the messages of an import. Each has rooms of its own, so that a room keeps its order.

A process is an interpreter of its own that reads pickled batches from its standard input and answers on its standard
output. It ends when its input does, also if this process was killed.
"""

from __future__ import annotations

import asyncio
import gc
import os
import pickle
import signal
import struct
import sys
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import IO, Any

from roomlore import services
from roomlore.adapters.inprocess import InProcessJobs, SystemClock, TimeOrderedIds
from roomlore.adapters.telemetry import PrometheusTelemetry
from roomlore.adapters.tokens import EncodingTokens
from roomlore.adapters.weights import load_link_model
from roomlore.core.errors import RoomloreError, Unavailable
from roomlore.core.intake import IntakeResult
from roomlore.core.models import Message
from roomlore.core.quotas import Quotas
from roomlore.ports.coordination import Telemetry
from roomlore.ports.shared import Backends
from roomlore.ports.verbs import DueWork
from roomlore.services.messages import AllDue, Ingest, RoomCache, VectorsDue, by_room, results_of
from roomlore.services.quotas import QuotaKeeper
from roomlore.storage import connect

_SIZE = struct.Struct(">Q")
_COLLECT_FROM = 100_000
"""Objects: messages make no cycles, and looking for them takes 3 % of the time."""
_Results = Mapping[str, IntakeResult]
_PROGRAM = "from roomlore.wiring.import_processes import main; main()"


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The settings that a process is started with. `embedding`: True if vectors are made of the messages.
    `quotas`: of a tenant that has none of its own. `link_kernel`: True if the compiled link model may be used."""

    url: str
    tenant: str
    encoding: str
    room_cache_bytes: int
    embedding: bool
    quotas: Quotas
    link_kernel: bool


class _Process:
    """One of the processes. It works on one batch after another."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._asked: deque[asyncio.Future[_Results]] = deque()
        self._ended: Unavailable | None = None
        self._listening = asyncio.create_task(self._listen())
        self.waiting = 0
        """The messages that it was given and has not stored yet."""

    @classmethod
    async def start(cls, given: Given) -> _Process:
        arguments = (sys.executable, "-c", _PROGRAM)
        pipe = asyncio.subprocess.PIPE
        self = cls(await asyncio.create_subprocess_exec(*arguments, stdin=pipe, stdout=pipe))
        await self._send(given)
        return self

    async def add(self, messages: Sequence[Message]) -> _Results:
        if self._ended is not None:
            raise self._ended
        pending: asyncio.Future[_Results] = asyncio.get_running_loop().create_future()
        self._asked.append(pending)
        self.waiting += len(messages)
        try:
            await self._send(messages)
            return await pending
        finally:
            self.waiting -= len(messages)
            if not pending.cancel() and not pending.cancelled():
                pending.exception()  # asyncio logs an error that nobody asked for, as after a cancellation

    async def end(self) -> None:
        """Let it end by itself."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()
        await self._listening

    async def kill(self) -> None:
        """End it at once; the database undoes the batch that it was storing."""
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        await self._listening

    async def _send(self, value: Any) -> None:
        """Send a value. If the process has ended, `_listen` says so."""
        assert self._process.stdin is not None
        with suppress(ConnectionError):
            self._process.stdin.write(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
            await self._process.stdin.drain()

    async def _listen(self) -> None:
        assert self._process.stdout is not None
        with suppress(asyncio.IncompleteReadError):
            while True:
                (size,) = _SIZE.unpack(await self._process.stdout.readexactly(_SIZE.size))
                answer = pickle.loads(await self._process.stdout.readexactly(size))  # noqa: S301  # of our own process
                pending = self._asked.popleft()
                if pending.done():
                    continue
                if isinstance(answer, RoomloreError):
                    pending.set_exception(answer)
                else:
                    pending.set_result(answer)
        code = await self._process.wait()
        self._ended = Unavailable("import_process_ended", code=code)
        for pending in self._asked:
            if not pending.done():
                pending.set_exception(self._ended)


class ThisProcess:
    """Adds the messages in this process."""

    def __init__(self, ingest: Ingest, telemetry: Telemetry) -> None:
        self._ingest = ingest
        self._telemetry = telemetry

    async def add(self, messages: Sequence[Message]) -> _Results:
        return _counted(results_of(await self._ingest.add(by_room(messages), strict=False)), self._telemetry)


def _counted(results: _Results, telemetry: Telemetry) -> _Results:
    telemetry.count("roomlore_messages_added_total", sum(len(result.added) for result in results.values()))
    return results


class _Processes:
    """Divides batches among processes. A room goes to the process that has the least to do when it first appears."""

    def __init__(self, processes: Sequence[_Process], due: DueWork, telemetry: Telemetry) -> None:
        self._processes = processes
        self._due = due
        self._telemetry = telemetry
        self._homes: dict[str, _Process] = {}

    async def add(self, messages: Sequence[Message]) -> _Results:
        shares: dict[_Process, list[Message]] = {}
        for room_id, its in by_room(messages).items():
            share = shares.setdefault(self._home(room_id, shares), [])
            share += its
        results = await asyncio.gather(*(process.add(share) for process, share in shares.items()))
        self._due.announce()
        return _counted({room_id: result for share in results for room_id, result in share.items()}, self._telemetry)

    def _home(self, room_id: str, shares: dict[_Process, list[Message]]) -> _Process:
        home = self._homes.get(room_id)
        if home is None:
            home = min(self._processes, key=lambda process: process.waiting + len(shares.get(process, ())))
            self._homes[room_id] = home
        return home


@asynccontextmanager
async def import_processes(
    count: int, *, given: Given, due: DueWork, telemetry: Telemetry
) -> AsyncIterator[services.imports.Adding]:
    """Open processes that add messages. `due`: the work that is requested once they are stored."""
    processes: list[_Process] = []
    try:
        for _ in range(count):
            processes.append(await _Process.start(given))  # noqa: PERF401  # those that started are ended
        yield _Processes(processes, due, telemetry).add
    except BaseException:
        await asyncio.gather(*(process.kill() for process in processes))
        raise
    await asyncio.gather(*(process.end() for process in processes))


def main() -> None:
    """Add the batches that arrive on standard input."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one ends it
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not come between the answers
    gc.freeze()
    gc.set_threshold(_COLLECT_FROM)
    asyncio.run(_serve(sys.stdin.buffer, answers))


async def _serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    read = partial(pickle.load, requests)
    given: Given = await asyncio.to_thread(read)
    storage = await connect(given.url)
    try:
        ingest = _ingest(given, storage)
        while True:
            try:
                batch: Sequence[Message] = await asyncio.to_thread(read)
            except EOFError:
                return
            answer = pickle.dumps(await _added(ingest, batch), pickle.HIGHEST_PROTOCOL)
            answers.write(_SIZE.pack(len(answer)) + answer)
            answers.flush()
    finally:
        await storage.close()


async def _added(ingest: Ingest, batch: Sequence[Message]) -> _Results | RoomloreError:
    try:
        return results_of(await ingest.add(by_room(batch), strict=False))
    except RoomloreError as error:
        return error


def _ingest(given: Given, storage: Any) -> Ingest:
    clock = SystemClock()
    telemetry = PrometheusTelemetry(clock)
    backends = Backends(
        storage=storage,
        tokens=EncodingTokens(given.encoding),
        clock=clock,
        ids=TimeOrderedIds(),
        telemetry=telemetry,
        jobs=InProcessJobs(telemetry=telemetry),
    )
    vectors = VectorsDue(embedding=given.embedding, jobs=backends.jobs)
    return Ingest(
        backends,
        tenant=given.tenant,
        model=load_link_model(compiled=given.link_kernel),
        rooms=RoomCache(size_bytes=given.room_cache_bytes, telemetry=telemetry),
        due=AllDue(vectors, services.extraction.RepliesImported(clock=clock)),
        quotas=QuotaKeeper(backends, usual=given.quotas),
    )
