"""The DBOS runtime of this process: errors and logs translated, steps run, queues served.

The text of SQLAlchemy's errors shows the values of a statement, so only the first line of the driver's error is passed
on.
"""

import asyncio
import json
import logging
import sqlite3
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Protocol, TypeVar

import dbos._dbos as singleton
from dbos import DBOS, DBOSClient, DBOSConfig, Serializer, WorkflowStatus, error
from sqlalchemy import Engine
from sqlalchemy.exc import DataError, DBAPIError, SQLAlchemyError
from structlog.contextvars import bound_contextvars

from roomlore.adapters.dbos.locations import Location, retire
from roomlore.core.errors import Conflict, InvalidInput, StorageUnavailable, describe
from roomlore.core.json_values import json_copy
from roomlore.ports.coordination import OnceAMinute
from roomlore.ports.durable import Json, Work, WorkState, WorkStatus

T = TypeVar("T")

log = logging.getLogger("roomlore.adapters.dbos")
_TOLD = 200


class Failed(Exception):
    """The work failed for good. Its text is what `describe` returned for the last error."""


class Stopped(BaseException):
    """The work was interrupted. Not an `Exception`, so DBOS writes nothing and the work stays as it is."""


@contextmanager
def translated() -> Iterator[None]:
    try:
        yield
    except DataError as exc:
        raise InvalidInput("database_value_unfit", why=_line(exc)) from exc
    except (SQLAlchemyError, error.DBOSException, OSError, sqlite3.Error) as exc:
        raise StorageUnavailable("durable_database_failing", why=_line(exc)) from exc


def _line(exc: BaseException) -> str:
    cause = exc.orig if isinstance(exc, DBAPIError) and exc.orig else exc
    return _first(str(cause) or type(cause).__name__)


def _first(text: str) -> str:
    return text.split("[SQL", 1)[0].partition("\n")[0][:_TOLD].strip()


class _Forwarder(logging.Handler):
    """Log what DBOS says, the same at most once a minute: without its database it says it several times a second."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._limit = OnceAMinute(time.monotonic)

    def emit(self, record: logging.LogRecord) -> None:
        kind = record.exc_info[0] if record.exc_info else None
        line = _first(record.getMessage())
        if (kind is None or not issubclass(kind, Failed)) and self._limit.is_due(record.levelno, kind, line):
            log.log(record.levelno, "the engine of durable work says", extra={"said": line})


def forward_logs() -> None:
    """Handle DBOS's log records; without a handler DBOS prints to the console."""
    dbos_log = logging.getLogger("dbos")
    dbos_log.propagate = False
    if not any(isinstance(handler, _Forwarder) for handler in dbos_log.handlers):
        dbos_log.addHandler(_Forwarder())


PREFIX = "roomlore."
"""Put before each name: DBOS knows functions of the whole process by their names."""
_STATUSES: Mapping[str, WorkStatus] = {
    "ENQUEUED": "waiting",
    "DELAYED": "waiting",
    "PENDING": "running",
    "SUCCESS": "done",
    "ERROR": "failed",
    "MAX_RECOVERY_ATTEMPTS_EXCEEDED": "failed",
    "CANCELLED": "cancelled",
}
_NEVER_ENDED = "Its process died each time it was begun. See what the work does to it, then retry it."


class JsonSerializer(Serializer):
    def serialize(self, data: Any) -> str:
        """Serialize a value. Errors are written by their type, except the project's own, whose text is safe to show."""
        return json.dumps(data, default=lambda value: type(value).__name__)

    def deserialize(self, serialized_data: str) -> Any:
        return json.loads(serialized_data)

    def name(self) -> str:
        return "roomlore_json"


def statuses_of(status: WorkStatus | None) -> list[str] | None:
    """Return the DBOS statuses that one of the project's statuses stands for."""
    return [name for name, ours in _STATUSES.items() if ours == status] if status else None


def state_of(row: WorkflowStatus) -> WorkState:
    notes = row.attributes or {}
    status = _STATUSES[row.status]
    return WorkState(
        work_id=row.workflow_id,
        name=row.name.removeprefix(PREFIX),
        partition=row.queue_partition_key or "",
        arguments=row.input["args"][0] if row.input else {},
        status=status,
        attempts=notes.get("before", 0) + (row.recovery_attempts or 0) + notes.get("again", 0),
        progress=notes.get("progress", ""),
        error=_error(row, notes) if status == "failed" else "",
        created_at=_moment(row.created_at),
        updated_at=_moment(row.updated_at or row.created_at),
        result=row.output if status == "done" else None,
    )


def _error(row: WorkflowStatus, notes: Mapping[str, Any]) -> str:
    return str(notes.get("error", "")) or (_NEVER_ENDED if row.status.startswith("MAX") else "It could not be begun.")


def _moment(milliseconds: int | None) -> datetime:
    return datetime.fromtimestamp((milliseconds or 0) / 1000, UTC)


def fit(text: str) -> str:
    """Return the text as every engine can store it in JSON: without NUL and lone surrogates."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()[:1000]


_STEP = "step"
_LOOK_SECONDS = 1.0
"""Seconds between the checks of a waiting thread that its event loop still runs."""


class Notes(Protocol):
    """Data stored beside the work. Called on threads."""

    def report(self, work_id: str, progress: str) -> None: ...

    def fail(self, work_id: str, error: str, *, most: int) -> int:
        """Store that an attempt failed, and return the number of failures. `most`: the number that ends the work."""


class Run:
    """The port `Steps`."""

    def __init__(
        self, work: Work, *, work_id: str, arguments: Json, loop: asyncio.AbstractEventLoop, notes: Notes,
        pauses: Sequence[float],
    ) -> None:  # fmt: skip
        self._work, self._work_id, self._arguments = work, work_id, arguments
        self._loop, self._notes, self._pauses = loop, notes, pauses
        self._requests: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._finished: dict[str, Json] = {}
        self._gave: Json | None = None
        self._task: asyncio.Task[Any] | None = None
        self._step: Future[Json] | None = None
        self._in_step = False
        self._stopping = False
        self._lost = False

    def serve(self) -> Json | None:
        """Run the work, on a thread of DBOS's, and return its result. Raises `Failed` if the work failed, and
        `Stopped` if it was interrupted."""
        ended = self._submit(self._go())
        while (request := self._request()) is not None:
            request()
        try:
            failure = self._result(ended)
        except Exception as exc:
            raise Stopped from exc
        if self._lost:
            raise Stopped
        if failure:
            raise Failed(failure)
        return self._gave

    def stop(self, *, at_once: bool = False) -> None:
        """End at the next pause between steps, or with `at_once` now, which loses the running step. Called on the event
        loop."""
        self._stopping = True
        if self._task and (at_once or not self._in_step):
            self._task.cancel()

    async def once(self, name: str, step: Callable[[], Awaitable[Json]]) -> Json:
        while name not in self._finished:
            self._go_on_or_stop()
            await self._ask(name, step)
        self._go_on_or_stop()
        return self._finished[name]

    async def report(self, progress: str) -> None:
        await asyncio.to_thread(self._notes.report, self._work_id, progress)

    async def _go(self) -> str:
        self._task = asyncio.current_task()
        try:
            return await self._attempts()
        finally:
            self._requests.put(None)

    async def _attempts(self) -> str:
        """Try the work until it succeeds or no attempt is left. Return its last error, '' on success."""
        while True:
            self._go_on_or_stop()
            try:
                self._gave = await self._work(self, self._arguments)
            except Exception as error:  # noqa: BLE001 - a worker: whatever went wrong, the work is tried again
                why = describe(error)
            else:
                return ""
            failures = await asyncio.to_thread(self._notes.fail, self._work_id, why, most=len(self._pauses) + 1)
            if failures > len(self._pauses):
                return why
            await asyncio.sleep(self._pauses[failures - 1])

    def _go_on_or_stop(self) -> None:
        if self._stopping or self._lost:
            raise asyncio.CancelledError

    async def _ask(self, name: str, step: Callable[[], Awaitable[Json]]) -> None:
        """Run and store the next step, or read it if it was stored before. The step's own error is raised."""
        answer: asyncio.Future[None] = self._loop.create_future()
        self._requests.put(partial(self._write, name, step, answer))
        self._in_step = True
        try:
            await answer
        except asyncio.CancelledError:
            if self._step:
                self._step.cancel()
            raise
        finally:
            self._in_step = False

    def _write(self, name: str, step: Callable[[], Awaitable[Json]], answer: asyncio.Future[None]) -> None:
        """Store a step's result, on the thread. If DBOS cannot write, or another process owns the work by now, this run
        ends: a step number without a result would shift all later ones."""
        errors: list[Exception] = []
        try:
            written = DBOS.run_step({"name": _STEP}, partial(self._do, name, step, answer, errors))
        except BaseException:  # noqa: BLE001 - whatever it is, nothing was written; the work is begun again later
            self._lost = True
            self._tell(self._cancel)
        else:
            self._tell(partial(self._settle, answer, written, errors))

    def _do(
        self, name: str, step: Callable[[], Awaitable[Json]], answer: asyncio.Future[None], errors: list[Exception]
    ) -> Json:
        if self._lost:
            raise Stopped
        try:
            self._step = self._submit(_plain(step))
            if answer.cancelled():  # the work gave up on this step before there was one that `_ask` could cancel
                self._step.cancel()
            return {"name": name, "gave": self._result(self._step)}
        except CancelledError:
            if self._stopping:
                raise Stopped from None
        except Exception as error:  # noqa: BLE001 - the step's own; raised where the work waits for it
            errors.append(error)
        return {"name": name, "failed": True}

    def _settle(self, answer: asyncio.Future[None], written: Json, errors: Sequence[Exception]) -> None:
        if "gave" in written:
            self._finished[written["name"]] = written["gave"]
        if answer.done():
            return
        if errors:
            answer.set_exception(errors[0])
        else:
            answer.set_result(None)

    def _cancel(self) -> None:
        if self._task:
            self._task.cancel()

    def _tell(self, what: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed; `_request` sees that too
            self._loop.call_soon_threadsafe(what)

    def _submit(self, coroutine: Coroutine[Any, Any, Any]) -> Future[Any]:
        try:
            return asyncio.run_coroutine_threadsafe(self._named(coroutine), self._loop)
        except RuntimeError:
            coroutine.close()
            raise Stopped from None

    async def _named(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine with the work's id in every log line."""
        with bound_contextvars(work_id=self._work_id):
            return await coroutine

    def _request(self) -> Callable[[], None] | None:
        while True:
            try:
                return self._requests.get(timeout=_LOOK_SECONDS)
            except Empty:
                self._look()

    def _result(self, future: Future[Any]) -> Any:
        while True:
            try:
                return future.result(_LOOK_SECONDS)
            except TimeoutError:
                if future.done():
                    return future.result()
                self._look()

    def _look(self) -> None:
        if self._loop.is_closed():
            raise Stopped


async def _plain(step: Callable[[], Awaitable[Json]]) -> Json:
    return json_copy(await step(), what="What a step gives")


APPLICATION = "roomlore"
QUEUE = "roomlore"
VERSION = "1"
"""The version of the stored format, not of roomlore: a newer release continues the work of an older one."""
_MAX_BEGINNINGS = 50
"""The most starts of one piece of work. Work whose process dies every time is given up."""
_SPARE_CONNECTIONS = 4
_JOIN_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRules:
    at_once: int
    pauses_seconds: Sequence[float]
    poll_seconds: float
    sweep_seconds: float
    grace_seconds: float


@dataclass(slots=True, eq=False)
class OpenStore:
    """An open store with its event loop and the functions of its work."""

    works: Mapping[str, Work]
    loop: asyncio.AbstractEventLoop
    notes: Notes
    pauses: Sequence[float]
    leaving: bool = False
    runs: list[Run] = field(default_factory=list)

    def works_on(self) -> bool:
        """Return True unless it is closing, or its event loop ended without a `close`."""
        return not (self.leaving or self.loop.is_closed())


def client(engine: Engine) -> DBOSClient:
    return DBOSClient(
        system_database_engine=engine,
        serializer=JsonSerializer(),
        application_name=APPLICATION,
        lazy=True,
        retry_connection_errors=False,
    )


class Runtime:
    """DBOS running on one database. Everything except `serve` is called on threads without an event loop."""

    def __init__(self, location: Location, rules: EngineRules) -> None:
        self.location = location
        self.members: list[OpenStore] = []
        self._rules = rules
        self._engine = location.engine(connections=rules.at_once + _SPARE_CONNECTIONS)
        self._client = client(self._engine)
        self._lock = location.lock(self._engine)
        self._has_lock = False
        self._running: dict[str, Run] = {}
        self._idle_before: set[str] = set()
        self._ending = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="roomlore-durable", daemon=True)

    @property
    def has_lock(self) -> bool:
        """True if this process works; otherwise it stands by for another process."""
        return self._has_lock

    def begin(self) -> None:
        try:
            with translated():
                self._sit_down()
        except BaseException:
            retire(self._engine)
            raise
        self._keeper.start()

    def end(self) -> None:
        """Stop. Unfinished work stays as it is for the next process."""
        self._ending.set()
        self._keeper.join()
        try:
            if self._has_lock:
                self._stop_working()
        finally:
            self._lock.leave()
            retire(self._engine)

    def serve(self, name: str, work_id: str, arguments: Json) -> Json | None:
        """Run work that DBOS took from the queue, on DBOS's thread, and return its result."""
        member = next(
            (candidate for candidate in self.members if name in candidate.works and candidate.works_on()), None
        )
        if member is None or work_id in self._running:
            raise Stopped
        run = Run(
            member.works[name], work_id=work_id, arguments=arguments, loop=member.loop, notes=member.notes,
            pauses=member.pauses,
        )  # fmt: skip
        self._running[work_id] = run
        member.runs.append(run)
        try:
            return run.serve()
        finally:
            member.runs.remove(run)
            del self._running[work_id]

    def _stop_working(self) -> None:
        _stop_retrying()
        DBOS.destroy()
        _join_threads()
        self._give_back_all()

    def _sit_down(self) -> None:
        _refuse_beside_other_dbos()
        self._has_lock = self._lock.take()
        if not self._has_lock:
            return
        try:
            self._launch()
        except BaseException:
            self._has_lock = False
            try:
                DBOS.destroy()
            finally:
                self._lock.leave()
            raise

    def _launch(self) -> None:
        forward_logs()
        config: DBOSConfig = {
            "name": APPLICATION,
            "system_database_engine": self._engine,
            "application_version": VERSION,
            "executor_id": self._lock.name,
            "serializer": JsonSerializer(),
            "log_level": "WARNING",
            "enable_otlp": False,
            "use_listen_notify": False,
            "notification_listener_polling_interval_sec": 0.25,
        }
        left = len(self._pending(self._lock.name))
        DBOS(config=config)
        DBOS.launch()
        _log_taken_over(left)
        self._client.register_queue(
            QUEUE,
            worker_concurrency=self._rules.at_once,
            partition_concurrency=1,
            polling_interval_sec=self._rules.poll_seconds,
        )

    def _keep(self) -> None:
        while not self._ending.is_set():
            try:
                if self._has_lock:
                    self._sweep()
                else:
                    self._sit_down()
            except Exception as error:  # noqa: BLE001 - a worker loop: it is tried again at the next turn
                log.warning("the sweep of durable work failed", extra={"why": describe(error)})
            self._ending.wait(self._rules.sweep_seconds if self._has_lock else min(1.0, self._rules.sweep_seconds))

    def _sweep(self) -> None:
        """Release work of dead processes, and work assigned to this process that it does not run: DBOS loses work if it
        fails between dequeuing and starting it."""
        self._lock.keep()
        held: dict[str, list[str]] = {}
        for row in self._pending():
            held.setdefault(row.executor_id or "", []).append(row.workflow_id)
        idle = {work_id for work_id in held.pop(self._lock.name, []) if work_id not in self._running}
        self._take_over(sorted(idle & self._idle_before), self._lock.name)
        self._idle_before = idle
        for name, works in held.items():
            with self._lock.if_dead(name) as dead:
                if dead:
                    self._take_over(works, name)

    def _take_over(self, works: Sequence[str], executor: str) -> None:
        self._give_back(works, executor)
        _log_taken_over(len(works))

    def _give_back_all(self) -> None:
        """Release all running work. If this fails, the next process finds it by the process lock."""
        try:
            works = [row.workflow_id for row in self._pending(self._lock.name)]
            self._give_back(works, self._lock.name)
        except SQLAlchemyError as exc:
            log.warning("what was left undone could not be given back", extra={"why": describe(exc)})

    def _pending(self, executor: str | None = None) -> list[Any]:
        return list(
            self._client.list_workflows(
                status="PENDING", queue_name=QUEUE, executor_id=executor, load_input=False, load_output=False
            )
        )

    def _give_back(self, works: Sequence[str], executor: str) -> None:
        for work_id in works:
            self._client._sys_db.reenqueue_for_recovery(work_id, [executor], QUEUE)  # noqa: SLF001


def _log_taken_over(works: int) -> None:
    if works:
        log.warning("work that was broken off is taken over", extra={"works": works})


_LOCK = threading.Lock()
_runtime: Runtime | None = None
_registered: set[str] = set()


def join(location: Location, rules: EngineRules, member: OpenStore) -> Runtime:
    """Join the runtime of this process, or start it. Raises `Conflict` if this process works for another database."""
    global _runtime
    with _LOCK:
        _end_if_left()
        if _runtime is None:
            runtime = Runtime(location, rules)
            _register(member.works)
            runtime.members.append(member)
            _runtime = runtime
            try:
                runtime.begin()
            except BaseException:
                _runtime = None
                raise
        elif _runtime.location != location:
            raise Conflict("durable_work_elsewhere")
        else:
            _register(member.works)
            _runtime.members.append(member)
        return _runtime


def leave(member: OpenStore) -> None:
    """Leave the runtime. The last member ends DBOS."""
    with _LOCK:
        if _runtime is not None and member in _runtime.members:
            _runtime.members.remove(member)
            _end_if_left()


def _end_if_left() -> None:
    global _runtime
    if _runtime is None:
        return
    _runtime.members[:] = [member for member in _runtime.members if not member.loop.is_closed()]
    if not _runtime.members:
        ending, _runtime = _runtime, None
        ending.end()


def _refuse_beside_other_dbos() -> None:
    if getattr(singleton, "_dbos_global_instance", None) is not None:
        raise Conflict("dbos_taken")


def _register(names: Mapping[str, Work]) -> None:
    """Register functions. DBOS keeps them for the life of the process; each one looks up the current runtime."""
    for name in names:
        if name not in _registered:
            DBOS.workflow(name=PREFIX + name, max_recovery_attempts=_MAX_BEGINNINGS)(_served(name))
            _registered.add(name)


def _served(name: str) -> Callable[[Json], Json | None]:
    def run(arguments: Json) -> Json | None:
        runtime, work_id = _runtime, DBOS.workflow_id
        if runtime is None or work_id is None:
            raise Stopped
        return runtime.serve(name, work_id, arguments)

    return run


def _stop_retrying() -> None:
    """Stop DBOS's retries. Otherwise a thread would wait as long as the database is down, and `close` would wait for
    it."""
    database = getattr(getattr(singleton, "_dbos_global_instance", None), "_sys_db_field", None)
    if database:
        database._retry_connection_errors = False  # noqa: SLF001


def _join_threads() -> None:
    """Wait for DBOS's threads, which DBOS itself leaves running."""
    until = time.monotonic() + _JOIN_SECONDS
    for thread in threading.enumerate():
        if thread.name.startswith("dbos-executor-"):
            thread.join(max(until - time.monotonic(), 0))
