"""The one DBOS of this process, and who shares it.

DBOS is a singleton. It is launched on a thread without an event loop, so that it keeps to loops and threads of its own:
launched on ours it would run work there and change the loop's default executor for good.

Four things of DBOS's that are not public are used: whether an instance exists, `reenqueue_for_recovery`, which gives
work back only while the one it is taken from still holds it, `run_migrations` for processes that do no work, and
`_retry_connection_errors`, to end while the database is down.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dbos._dbos as singleton
from dbos import DBOS, DBOSClient, DBOSConfig
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from roomlore.adapters.dbos.places import Place
from roomlore.adapters.dbos.rows import PREFIX, JsonSerializer
from roomlore.adapters.dbos.runs import Notes, Run
from roomlore.adapters.dbos.troubles import Stopped, log, quieten, translated
from roomlore.core.errors import Conflict, describe
from roomlore.ports.durable import Json, Work

APPLICATION = "roomlore"
QUEUE = "roomlore"
VERSION = "1"
"""Of the way work is written, not of roomlore: a newer release goes on with an older one's work."""
_MOST_BEGINNINGS = 50
"""A piece of work whose process dies every time is given up."""
_SPARE_CONNECTIONS = 4
_JOIN_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    at_once: int
    pauses_seconds: Sequence[float]
    poll_seconds: float
    sweep_seconds: float
    grace_seconds: float


@dataclass(slots=True, eq=False)
class Member:
    """One opened store, on its event loop, with what it knows to do."""

    works: Mapping[str, Work]
    loop: asyncio.AbstractEventLoop
    notes: Notes
    pauses: Sequence[float]
    leaving: bool = False
    runs: list[Run] = field(default_factory=list)

    def works_on(self) -> bool:
        """Not where it is leaving, nor where its program forgot to close it and its loop has ended."""
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
    """DBOS at work on one database. Everything but `serve` is called on threads that have no event loop."""

    def __init__(self, place: Place, rules: Rules) -> None:
        self.place = place
        self.members: list[Member] = []
        self._rules = rules
        self._engine = place.engine(connections=rules.at_once + _SPARE_CONNECTIONS)
        self._client = client(self._engine)
        self._seat = place.seat(self._engine)
        self._seated = False
        self._running: dict[str, Run] = {}
        self._idle_before: set[str] = set()
        self._ending = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="roomlore-durable", daemon=True)

    @property
    def seated(self) -> bool:
        """Whether it works; else it stands by for another process."""
        return self._seated

    def begin(self) -> None:
        try:
            with translated():
                self._sit_down()
        except BaseException:
            self._engine.dispose()
            raise
        self._keeper.start()

    def end(self) -> None:
        """What still runs stays as it is, for whoever works next."""
        self._ending.set()
        self._keeper.join()
        if self._seated:
            _stop_retrying()
            DBOS.destroy()
            _join_threads()
            self._give_back_all()
            self._seat.leave()
        self._engine.dispose()

    def serve(self, name: str, work_id: str, arguments: Json) -> None:
        """Runs work that DBOS took from the queue, on DBOS's thread."""
        member = next((one for one in self.members if name in one.works and one.works_on()), None)
        if member is None or work_id in self._running:
            raise Stopped
        run = Run(
            member.works[name], work_id=work_id, arguments=arguments, loop=member.loop, notes=member.notes,
            pauses=member.pauses,
        )  # fmt: skip
        self._running[work_id] = run
        member.runs.append(run)
        try:
            run.serve()
        finally:
            member.runs.remove(run)
            del self._running[work_id]

    def _sit_down(self) -> None:
        _refuse_beside_a_stranger()
        self._seated = self._seat.take()
        if not self._seated:
            return
        try:
            self._launch()
        except BaseException:
            self._seated = False
            DBOS.destroy()
            self._seat.leave()
            raise

    def _launch(self) -> None:
        quieten()
        config: DBOSConfig = {
            "name": APPLICATION,
            "system_database_engine": self._engine,
            "application_version": VERSION,
            "executor_id": self._seat.name,
            "serializer": JsonSerializer(),
            "log_level": "WARNING",
            "enable_otlp": False,
            "use_listen_notify": False,
            "notification_listener_polling_interval_sec": 0.25,
        }
        left = len(self._pending(self._seat.name))
        DBOS(config=config)
        DBOS.launch()
        _tell_taken_over(left)
        self._client.register_queue(
            QUEUE,
            worker_concurrency=self._rules.at_once,
            partition_concurrency=1,
            polling_interval_sec=self._rules.poll_seconds,
        )

    def _keep(self) -> None:
        while not self._ending.is_set():
            try:
                if self._seated:
                    self._sweep()
                else:
                    self._sit_down()
            except Exception as error:  # noqa: BLE001 - a worker loop: it is tried again at the next turn
                log.warning("the sweep of durable work failed", extra={"why": describe(error)})
            self._ending.wait(self._rules.sweep_seconds if self._seated else min(1.0, self._rules.sweep_seconds))

    def _sweep(self) -> None:
        """Gives back what dead processes left, and what is written to this one though it does not run it: DBOS itself
        forgets work where it stumbles between taking and beginning it."""
        self._seat.keep()
        held: dict[str, list[str]] = {}
        for row in self._pending():
            held.setdefault(row.executor_id or "", []).append(row.workflow_id)
        idle = {work_id for work_id in held.pop(self._seat.name, []) if work_id not in self._running}
        self._take_over(sorted(idle & self._idle_before), self._seat.name)
        self._idle_before = idle
        for name, works in held.items():
            with self._seat.if_dead(name) as dead:
                if dead:
                    self._take_over(works, name)

    def _take_over(self, works: Sequence[str], executor: str) -> None:
        self._give_back(works, executor)
        _tell_taken_over(len(works))

    def _give_back_all(self) -> None:
        """Where this fails, whoever works next finds it out by the seat."""
        try:
            works = [row.workflow_id for row in self._pending(self._seat.name)]
            self._give_back(works, self._seat.name)
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


def _tell_taken_over(works: int) -> None:
    if works:
        log.warning("work that was broken off is taken over", extra={"works": works})


_LOCK = threading.Lock()
_runtime: Runtime | None = None
_registered: set[str] = set()


def join(place: Place, rules: Rules, member: Member) -> Runtime:
    """Raises `Conflict` where this process works for another database already."""
    global _runtime
    with _LOCK:
        _end_if_left()
        if _runtime is None:
            runtime = Runtime(place, rules)
            _register(member.works)
            runtime.members.append(member)
            _runtime = runtime
            try:
                runtime.begin()
            except BaseException:
                _runtime = None
                raise
        elif _runtime.place != place:
            raise Conflict(
                "This process does durable work for another database already, and can for one only. Close that one"
                " first, open this one without doing its work, or do it in a process of its own."
            )
        else:
            _register(member.works)
            _runtime.members.append(member)
        return _runtime


def leave(member: Member) -> None:
    """The last one out ends DBOS."""
    with _LOCK:
        if _runtime is not None and member in _runtime.members:
            _runtime.members.remove(member)
            _end_if_left()


def _end_if_left() -> None:
    global _runtime
    if _runtime is None:
        return
    _runtime.members[:] = [one for one in _runtime.members if not one.loop.is_closed()]
    if not _runtime.members:
        ending, _runtime = _runtime, None
        ending.end()


def _refuse_beside_a_stranger() -> None:
    if getattr(singleton, "_dbos_global_instance", None) is not None:
        raise Conflict(
            "This program runs DBOS for itself, and a process has one DBOS only. Open roomlore without doing durable"
            " work here, and do it in a process of its own."
        )


def _register(names: Mapping[str, Work]) -> None:
    """DBOS keeps its functions for the life of the process; each finds the runtime of the day."""
    for name in names:
        if name not in _registered:
            DBOS.workflow(name=PREFIX + name, max_recovery_attempts=_MOST_BEGINNINGS)(_served(name))
            _registered.add(name)


def _served(name: str) -> Callable[[Json], None]:
    def run(arguments: Json) -> None:
        runtime, work_id = _runtime, DBOS.workflow_id
        if runtime is None or work_id is None:
            raise Stopped
        runtime.serve(name, work_id, arguments)

    return run


def _stop_retrying() -> None:
    """A thread that waits for a database that is down would wait, and be waited for, as long as that lasts."""
    database = getattr(getattr(singleton, "_dbos_global_instance", None), "_sys_db_field", None)
    if database:
        database._retry_connection_errors = False  # noqa: SLF001


def _join_threads() -> None:
    """DBOS lets its threads run out by themselves."""
    until = time.monotonic() + _JOIN_SECONDS
    for thread in threading.enumerate():
        if thread.name.startswith("dbos-executor-"):
            thread.join(max(until - time.monotonic(), 0))
