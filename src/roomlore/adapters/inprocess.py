"""Adapters without a server, in this process: the clock and ids with its time (no other module reads the time),
background jobs on the event loop, and the port `DurableWork` without a database.

Durable work has the same rules for retries and partitions. It does not keep the progress of a killed process. Work that
is derived from stored data is found again and done from its first step; other work is lost with the process. Processes
do not see each other's work.
"""

import asyncio
import contextlib
import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime

from roomlore.core.errors import Conflict, StorageBusy, StorageUnavailable, describe
from roomlore.core.json_values import json_copy, texts_in
from roomlore.ports.backends import DURABLE, DurableBackend, Host, NoSettings
from roomlore.ports.coordination import Clock, Telemetry
from roomlore.ports.durable import RETRIABLE, Dropped, DurableWork, Json, Work, WorkState, WorkStatus, checked_arguments

_JOB = ContextVar[str]("structlog_job")
_WORK_ID = ContextVar[str]("structlog_work_id")
"""structlog adds variables with this prefix to each line of its log. It is not loaded for that."""


@contextlib.contextmanager
def _bound(variable: ContextVar[str], value: str) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the current time, aware, UTC."""
        return datetime.now(UTC)  # noqa: TID251  this is the clock

    def monotonic(self) -> float:
        """Return seconds that never decrease."""
        return time.monotonic()


_FRACTION_BITS = 12
_RANDOM_BITS = 62


class TimeOrderedIds:
    """UUID version 7 as 32 hex digits: milliseconds, a fraction of one, then 62 random bits.

    Within one process each id is greater than the one before, even if the clock stops or goes back. Thread-safe.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._last = 0
        self._guard = threading.Lock()

    def new(self) -> str:
        stamp = self._next_stamp()
        milliseconds, fraction = divmod(stamp, 1 << _FRACTION_BITS)
        tail = 0b10 << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS)
        return f"{milliseconds:012x}7{fraction:03x}{tail:016x}"

    def _next_stamp(self) -> int:
        micros = int(self._clock.now().timestamp() * 1_000_000)
        with self._guard:
            self._last = max(self._last + 1, (micros << _FRACTION_BITS) // 1000)
            return self._last


_FIRST_PAUSE_SECONDS = 0.25
_LONGEST_PAUSE_SECONDS = 30.0
_CANCEL_AGAIN_SECONDS = 0.2

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Job:
    name: str
    work: Callable[[], Awaitable[object]]
    every_seconds: float
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    failures: int = 0
    last_error: type[Exception] | None = None
    """The type of the last error since the last success."""

    def pause(self) -> float:
        """Return the seconds that a failed job waits, even if it is requested again. They double with each consecutive
        failure."""
        return min(_FIRST_PAUSE_SECONDS * 2.0 ** min(self.failures - 1, 20), _LONGEST_PAUSE_SECONDS)


class InProcessJobs:
    """The port `Jobs`, one task for each job. Belongs to the event loop on which jobs are declared."""

    def __init__(self, *, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._jobs: dict[str, _Job] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._closed = False

    def handle(self, name: str, work: Callable[[], Awaitable[object]], *, every_seconds: float) -> None:
        job = self._jobs[name] = _Job(name, work, every_seconds)
        self._tasks.append(asyncio.get_running_loop().create_task(self._run_on(job), name=f"roomlore-{name}"))

    def ask(self, name: str) -> None:
        """Run a job soon. An undeclared job is ignored: this process does not do it."""
        if name in self._jobs:
            self._jobs[name].asked.set()

    async def close(self) -> None:
        """Stop all jobs. A task that swallows a cancellation (as `asyncio.wait_for` may up to Python 3.11) is cancelled
        again."""
        self._closed = True
        running = set(self._tasks)
        while running:
            for task in running:
                task.cancel()
            _, running = await asyncio.wait(running, timeout=_CANCEL_AGAIN_SECONDS)
        self._tasks.clear()
        self._jobs.clear()

    async def _run_on(self, job: _Job) -> None:
        while not self._closed:
            job.asked.clear()
            await self._run_once(job)
            if job.failures:
                await asyncio.sleep(job.pause())
            else:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(job.asked.wait(), job.every_seconds)

    async def _run_once(self, job: _Job) -> None:
        try:
            with _bound(_JOB, job.name):
                await job.work()
        except StorageBusy as error:
            job.failures += 1
            log.info("a background job waits for a large write", extra={"job": job.name, "why": describe(error)})
            result = "delayed"
        except Exception as error:  # noqa: BLE001 - a worker loop: whatever went wrong, the job is tried again
            job.failures += 1
            if job.last_error is not type(error):
                self._telemetry.unforeseen(error, attributes={"job": job.name})
            job.last_error = type(error)
            log.warning("a background job failed", extra={"job": job.name, "why": describe(error)})
            result = "failed"
        else:
            job.failures, job.last_error = 0, None
            result = "done"
        self._telemetry.count("roomlore_jobs_total", labels={"job": job.name, "result": result})


_MAX_DONE = 10_000
"""The most finished pieces that are remembered, so that memory stays bounded."""


@dataclass(slots=True, eq=False, kw_only=True)
class _Piece:
    work_id: str
    name: str
    partition: str
    arguments: Json
    created_at: datetime
    updated_at: datetime
    status: WorkStatus = "waiting"
    attempts: int = 0
    failures: int = 0
    progress: str = ""
    error: str = ""
    finished: dict[str, Json] = field(default_factory=dict)
    result: Json | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    in_step: bool = False

    def running(self) -> asyncio.Task[None] | None:
        """Return the task until it ends. `task` may remain set afterwards: if a task is cancelled before it first runs,
        its `finally` does not run."""
        return self.task if self.task is not None and not self.task.done() else None

    def texts(self) -> Iterator[str]:
        kept = [self.arguments, self.progress, self.error, self.result, self.finished]
        return texts_in([self.work_id, self.partition, *kept])

    def state(self) -> WorkState:
        return WorkState(
            work_id=self.work_id,
            name=self.name,
            partition=self.partition,
            arguments=self.arguments,
            status=self.status,
            attempts=self.attempts,
            progress=self.progress,
            error=self.error if self.status == "failed" else "",
            created_at=self.created_at,
            updated_at=self.updated_at,
            result=self.result,
        )


@dataclass(slots=True)
class _Partition:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    pieces: int = 0


class InProcessWork:
    """The port `DurableWork`. Belongs to the event loop on which it is opened. After `close` it can be opened again and
    continues.

    `at_once`: pieces of work done at a time. `pauses_seconds`: the pauses between attempts, so there is one more
    attempt than pauses. `grace_seconds`: how long `close` waits for steps before it cancels them.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        at_once: int = 4,
        pauses_seconds: Sequence[float] = (1.0, 5.0),
        grace_seconds: float = 10.0,
    ) -> None:
        self._clock = clock
        self._pauses, self._grace = tuple(pauses_seconds), grace_seconds
        self._slots = asyncio.Semaphore(at_once)
        self._works: dict[str, Work] = {}
        self._pieces: dict[str, _Piece] = {}
        self._partitions: dict[str, _Partition] = {}
        self._done: deque[str] = deque()
        self._open = self._working = self._closing = False

    def define(self, name: str, work: Work) -> None:
        self._works[name] = work

    async def open(self, *, working: bool) -> None:
        self._open, self._working, self._closing = True, working, False
        for piece in self._pieces.values():
            self._begin(piece)

    def works(self) -> bool:
        return self._open and self._working and not self._closing

    async def start(self, name: str, *, work_id: str, partition: str, arguments: Json) -> bool:
        self._check_open()
        given = checked_arguments(arguments, work_id=work_id, partition=partition)
        if work_id in self._pieces:
            return False
        now = self._clock.now()
        piece = _Piece(work_id=work_id, name=name, partition=partition, arguments=given, created_at=now, updated_at=now)
        self._pieces[work_id] = piece
        self._begin(piece)
        return True

    async def find(self, work_id: str) -> WorkState | None:
        self._check_open()
        piece = self._pieces.get(work_id)
        return piece.state() if piece else None

    async def page(
        self,
        *,
        names: Sequence[str] = (),
        status: WorkStatus | None = None,
        prefix: str = "",
        limit: int = 100,
        offset: int = 0,
    ) -> list[WorkState]:
        self._check_open()
        chosen = [
            piece.state()
            for piece in reversed(self._pieces.values())
            if (not names or piece.name in names)
            and status in (None, piece.status)
            and piece.work_id.startswith(prefix)
        ]
        return chosen[offset : offset + max(limit, 0)]

    async def retry(self, work_id: str) -> bool:
        self._check_open()
        piece = self._pieces.get(work_id)
        if piece is None or piece.status not in RETRIABLE:
            return False
        piece.failures = 0
        piece.ended.clear()
        self._turn(piece, "waiting")
        self._begin(piece)
        return True

    async def wait(self, work_id: str, *, seconds: float) -> WorkState | None:
        self._check_open()
        if (piece := self._pieces.get(work_id)) is None:
            return None
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(piece.ended.wait(), seconds)
        return piece.state()

    async def close(self) -> None:
        self._closing = True
        loop = asyncio.get_running_loop()
        until = loop.time() + self._grace
        while tasks := {task: piece for piece in self._pieces.values() if (task := piece.running()) is not None}:
            for task, piece in tasks.items():
                if not piece.in_step or loop.time() > until:
                    task.cancel()
            await asyncio.wait(tasks, timeout=0.1, return_when=asyncio.FIRST_COMPLETED)
        self._open = False

    async def drop(self, *, prefix: str, tells: Callable[[str], bool]) -> Dropped:
        self._check_open()
        its = [(work, list(work.texts())) for work in self._pieces.values() if work.work_id.startswith(prefix)]
        matching = await asyncio.to_thread(lambda: [work for work, texts in its if any(map(tells, texts))])
        running = tuple(work.work_id for work in matching if work.status == "running")
        for piece in matching:
            if piece.status != "running":
                self._forget(piece)
        return Dropped(len(matching) - len(running), running)

    async def expire(self, *, before: datetime) -> int:
        self._check_open()
        old = [work for work in self._pieces.values() if work.status == "done" and work.updated_at < before]
        for piece in old:
            self._forget(piece)
        return len(old)

    async def compact(self) -> None:
        """Do nothing: there is no file."""

    def _forget(self, piece: _Piece) -> None:
        if piece.task:
            piece.task.cancel()
        self._pieces.pop(piece.work_id, None)

    def _check_open(self) -> None:
        if not self._open:
            raise StorageUnavailable("durable_work_not_open")

    def _begin(self, piece: _Piece) -> None:
        if self._working and piece.name in self._works and piece.status == "waiting" and piece.running() is None:
            piece.task = asyncio.get_running_loop().create_task(self._in_turn(piece), name=f"roomlore-{piece.name}")

    async def _in_turn(self, piece: _Piece) -> None:
        partition = self._partitions.setdefault(piece.partition, _Partition())
        partition.pieces += 1
        try:
            async with partition.lock, self._slots:
                with _bound(_WORK_ID, piece.work_id):
                    await self._run(piece)
        finally:
            piece.task = None
            if piece.status == "running":
                self._turn(piece, "waiting")
            partition.pieces -= 1
            if not partition.pieces:
                del self._partitions[piece.partition]

    async def _run(self, piece: _Piece) -> None:
        self._turn(piece, "running")
        while True:
            piece.attempts += 1
            try:
                gave = await self._works[piece.name](_Steps(self, piece), piece.arguments)
                piece.result = None if gave is None else json_copy(gave, what="What work gives")
            except Exception as error:  # noqa: BLE001 - a worker: whatever went wrong, the work is tried again
                piece.failures += 1
                piece.error = describe(error)
            else:
                return self._end(piece, "done")
            if piece.failures > len(self._pauses):
                return self._end(piece, "failed")
            await asyncio.sleep(self._pauses[piece.failures - 1])

    def _end(self, piece: _Piece, status: WorkStatus) -> None:
        self._turn(piece, status)
        piece.ended.set()
        if status == "done":
            piece.finished.clear()
            self._done.append(piece.work_id)
            if len(self._done) > _MAX_DONE:
                self._pieces.pop(self._done.popleft(), None)

    def _turn(self, piece: _Piece, status: WorkStatus) -> None:
        piece.status = status
        piece.updated_at = self._clock.now()

    def closing(self) -> bool:
        return self._closing


class _Steps:
    """The port `Steps`."""

    def __init__(self, owner: InProcessWork, piece: _Piece) -> None:
        self._owner, self._piece = owner, piece

    async def once(self, name: str, step: Callable[[], Awaitable[Json]]) -> Json:
        if name not in self._piece.finished:
            self._go_on_or_stop()
            self._piece.in_step = True
            try:
                self._piece.finished[name] = json_copy(await step(), what="What a step gives")
            finally:
                self._piece.in_step = False
        self._go_on_or_stop()
        return self._piece.finished[name]

    async def report(self, progress: str) -> None:
        self._piece.progress = progress

    def _go_on_or_stop(self) -> None:
        if self._owner.closing():
            raise asyncio.CancelledError


class LateWork:
    """The port `DurableWork` over the first of `choices` that this process can open. A choice that raises `Conflict` is
    skipped. `working`: True if this process works when the first use opens it. After `close` only `open` opens it."""

    def __init__(self, choices: Sequence[Callable[[], DurableWork]], *, working: bool) -> None:
        self._choices = tuple(choices)
        self._made: dict[int, DurableWork] = {}
        self._working = working
        self._works: dict[str, Work] = {}
        self._define_rest: Callable[[], None] = lambda: None
        self._opened: DurableWork | None = None
        self._opened_working = False
        self._closed = False
        self._one = asyncio.Lock()

    def define(self, name: str, work: Work) -> None:
        self._works[name] = work

    def before_opening(self, define_rest: Callable[[], None]) -> None:
        """Have the rest of the work defined when this is opened."""
        self._define_rest = define_rest

    async def open(self, *, working: bool) -> None:
        self._closed = False
        await self._open_once(working)

    def works(self) -> bool:
        return self._opened is not None and self._opened.works()

    async def start(self, name: str, *, work_id: str, partition: str, arguments: Json) -> bool:
        work = await self._ready()
        return await work.start(name, work_id=work_id, partition=partition, arguments=arguments)

    async def find(self, work_id: str) -> WorkState | None:
        return await (await self._ready()).find(work_id)

    async def page(
        self,
        *,
        names: Sequence[str] = (),
        status: WorkStatus | None = None,
        prefix: str = "",
        limit: int = 100,
        offset: int = 0,
    ) -> list[WorkState]:
        work = await self._ready()
        return await work.page(names=names, status=status, prefix=prefix, limit=limit, offset=offset)

    async def retry(self, work_id: str) -> bool:
        return await (await self._ready()).retry(work_id)

    async def wait(self, work_id: str, *, seconds: float) -> WorkState | None:
        return await (await self._ready()).wait(work_id, seconds=seconds)

    async def drop(self, *, prefix: str, tells: Callable[[str], bool]) -> Dropped:
        return await (await self._ready()).drop(prefix=prefix, tells=tells)

    async def expire(self, *, before: datetime) -> int:
        """Forget old finished work. If none is opened, return 0: unused work does not grow."""
        return 0 if self._opened is None else await self._opened.expire(before=before)

    async def compact(self) -> None:
        await (await self._ready()).compact()

    async def close(self) -> None:
        self._closed = True
        async with self._one:
            await self._close()

    async def _ready(self) -> DurableWork:
        if self._opened is None:
            await self._open_once(self._working)
        assert self._opened is not None
        return self._opened

    async def _open_once(self, working: bool) -> None:
        async with self._one:
            if self._closed:
                raise StorageUnavailable("durable_work_closed")
            if self._opened is not None and (self._opened_working or not working):
                return
            await self._close()
            self._opened, self._opened_working = await self._first(working), working

    async def _close(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.close()

    async def _first(self, working: bool) -> DurableWork:
        last = len(self._choices) - 1
        for place in range(last):
            try:
                return await self._open(place, working)
            except Conflict as error:
                log.warning("work is kept in this process alone", extra={"why": describe(error)})
        return await self._open(last, working)

    async def _open(self, place: int, working: bool) -> DurableWork:
        if place not in self._made:
            self._made[place] = await asyncio.to_thread(self._choices[place])  # it may load a library
        work = self._made[place]
        self._define_rest()
        for name, does in self._works.items():
            work.define(name, does)
        await work.open(working=working)
        return work


def _open(_: NoSettings, host: Host) -> DurableWork:
    return InProcessWork(clock=host.clock, at_once=host.at_once)


PROCESS = DurableBackend(kind=DURABLE, name="process", open=_open, settings=NoSettings)
