"""The port `DurableWork` on DBOS: enqueue and inspect work through DBOS's client, which is no singleton."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from dbos import DBOSClient, WorkflowStatus, error

from roomlore.adapters.dbos.engine import (
    APPLICATION,
    PREFIX,
    QUEUE,
    VERSION,
    EngineRules,
    OpenStore,
    Runtime,
    client,
    fit,
    forward_logs,
    join,
    leave,
    state_of,
    statuses_of,
    translated,
)
from roomlore.adapters.dbos.locations import Location, retire
from roomlore.core.errors import StorageUnavailable
from roomlore.core.json_values import texts_in
from roomlore.ports.durable import ENDED, RETRIABLE, Dropped, Json, Work, WorkState, WorkStatus, checked_arguments

_CONNECTIONS = 4
_PAGE = 200
_COMPACTING = ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)")
_PAST_EVERY_STEP = 1_000_000_000


class WorkStore:
    """Queries through DBOS's client, called on threads. Raises only the project's errors. Also the `Notes` of the work
    that this process runs."""

    def __init__(self, location: Location) -> None:
        self._engine = location.engine(connections=_CONNECTIONS)
        self._client: DBOSClient = client(self._engine)

    def prepare(self) -> None:
        """Create DBOS's tables, or bring them up to date."""
        with translated():
            self._client._sys_db.run_migrations()  # noqa: SLF001

    def enqueue(self, name: str, work_id: str, partition: str, arguments: Json) -> bool:
        """Return False if work with this id exists."""
        with translated():
            try:
                self._client.enqueue(
                    {
                        "workflow_name": PREFIX + name,
                        "queue_name": QUEUE,
                        "workflow_id": work_id,
                        "queue_partition_key": partition,
                        "app_version": VERSION,
                        "workflow_id_reuse_policy": "reject",
                    },
                    arguments,
                )
            except error.DBOSWorkflowIDInUseError:
                return False
        return True

    def find(self, work_id: str) -> WorkState | None:
        row = self._row(work_id)
        return state_of(row) if row else None

    def page(
        self, names: Sequence[str], status: WorkStatus | None, prefix: str, limit: int, offset: int
    ) -> list[WorkState]:
        with translated():
            rows = self._client.list_workflows(
                name=[PREFIX + name for name in names] or None,
                status=statuses_of(status),
                workflow_id_prefix=prefix or None,
                application_name=APPLICATION,
                limit=limit,
                offset=offset,
                sort_desc=True,
                load_output=False,
            )
        return [state_of(row) for row in rows]

    def begin_again(self, work_id: str) -> bool:
        """Restart the work with DBOS's rewind to a point after every step, so that it keeps them all."""
        state = self.find(work_id)
        if state is None or state.status not in RETRIABLE:
            return False
        self._note(work_id, before=state.attempts, failures=0, again=0)
        with translated():
            try:
                self._client.rewind_workflow(
                    work_id,
                    start_step=_PAST_EVERY_STEP,
                    application_version=VERSION,
                    queue_name=QUEUE,
                    queue_partition_key=state.partition,
                )
            except error.DBOSException:
                now = self.find(work_id)
                if now and now.status in RETRIABLE:
                    raise
                return False  # another process was quicker
        return True

    def report(self, work_id: str, progress: str) -> None:
        self._note(work_id, progress=fit(progress))

    def fail(self, work_id: str, error: str, *, most: int) -> int:
        """Count a failure. The count is stored beside the work, so a kill between attempts does not reset it."""
        row = self._row(work_id)
        failures = int((row.attributes or {}).get("failures", 0) if row else 0) + 1
        self._note(work_id, failures=failures, again=min(failures, most - 1), error=fit(error))
        return failures

    def drop(self, prefix: str, tells: Callable[[str], bool]) -> Dropped:
        """Delete work. Waiting work is cancelled first, so that no process begins it meanwhile."""
        matching = [row for row in self._rows(prefix) if self._tells(row, tells)]
        running = tuple(row.workflow_id for row in matching if row.status in (statuses_of("running") or ()))
        going = [row.workflow_id for row in matching if row.workflow_id not in running]
        waiting = [row.workflow_id for row in matching if row.status in (statuses_of("waiting") or ())]
        with translated():
            for work_id in waiting:
                self._client.cancel_workflow(work_id)
            self._delete(going)
        return Dropped(len(going), running)

    def expire(self, before: datetime) -> int:
        done = 0
        while old := self._done_before(before):
            with translated():
                self._delete(old)
            done += len(old)
        return done

    def compact(self) -> None:
        """Compact the file. On PostgreSQL the tables are in the same database and its operator maintains them."""
        if self._engine.dialect.name != "sqlite":
            return
        with translated():
            connection = self._engine.raw_connection()
            try:
                connection.driver_connection.isolation_level = None  # type: ignore[union-attr]
                for line in _COMPACTING:
                    connection.cursor().execute(line)
            finally:
                connection.invalidate()

    def close(self) -> None:
        retire(self._engine)

    def _rows(self, prefix: str) -> Iterator[WorkflowStatus]:
        offset = 0
        while True:
            with translated():
                page = self._client.list_workflows(
                    workflow_id_prefix=prefix, application_name=APPLICATION, limit=_PAGE, offset=offset
                )
            yield from page
            if len(page) < _PAGE:
                return
            offset += _PAGE

    def _tells(self, row: WorkflowStatus, tells: Callable[[str], bool]) -> bool:
        with translated():
            steps = self._client.list_workflow_steps(row.workflow_id)
        given = [step["output"] for step in steps]
        kept = [row.workflow_id, row.queue_partition_key or "", row.input, row.output, row.attributes or {}, given]
        return any(map(tells, texts_in(kept)))

    def _done_before(self, before: datetime) -> list[str]:
        with translated():
            rows = self._client.list_workflows(
                status=statuses_of("done"),
                completed_before=before.isoformat(),
                application_name=APPLICATION,
                limit=_PAGE,
                load_input=False,
                load_output=False,
            )
        return [row.workflow_id for row in rows]

    def _delete(self, work_ids: Sequence[str]) -> None:
        for start in range(0, len(work_ids), _PAGE):
            self._client.delete_workflows(list(work_ids[start : start + _PAGE]))

    def _row(self, work_id: str) -> WorkflowStatus | None:
        with translated():
            rows = self._client.list_workflows(workflow_ids=[work_id], application_name=APPLICATION)
        return rows[0] if rows else None

    def _note(self, work_id: str, **notes: Any) -> None:
        with translated():
            self._client.update_workflow_attributes(work_id, notes, merge=True)


_FIRST_LOOK_SECONDS = 0.02
_LONGEST_LOOK_SECONDS = 0.25
_BREAK_OFF_SECONDS = 2.0
"""Tasks that do not end within this time wait for a database that is down."""


class DbosWork:
    """The port `DurableWork`, created by `open_dbos`. Belongs to the event loop on which it is opened. After `close` it
    can be opened again."""

    def __init__(self, location: Location, rules: EngineRules) -> None:
        self._location, self._rules = location, rules
        self._works: dict[str, Work] = {}
        self._open_store: WorkStore | None = None
        self._member: OpenStore | None = None
        self._runtime: Runtime | None = None

    def define(self, name: str, work: Work) -> None:
        self._works[name] = work

    async def open(self, *, working: bool) -> None:
        """Open it. If cancelled, the opening still completes and is then closed: the threads it waits for cannot be
        cancelled."""
        opening = asyncio.ensure_future(self._begin(working))
        try:
            await asyncio.shield(opening)
        except asyncio.CancelledError:
            await _until_done(asyncio.ensure_future(self._undo(opening)))
            raise

    async def _begin(self, working: bool) -> None:
        forward_logs()
        store = self._open_store = WorkStore(self._location)
        try:
            await asyncio.to_thread(store.prepare)
            if working:
                member = OpenStore(dict(self._works), asyncio.get_running_loop(), store, self._rules.pauses_seconds)
                self._runtime = await asyncio.to_thread(join, self._location, self._rules, member)
                self._member = member
        except BaseException:
            await self.close()
            raise

    async def _undo(self, opening: asyncio.Future[None]) -> None:
        await asyncio.wait([opening])
        await self.close()

    def works(self) -> bool:
        return self._runtime is not None and self._runtime.has_lock

    async def start(self, name: str, *, work_id: str, partition: str, arguments: Json) -> bool:
        given = checked_arguments(arguments, work_id=work_id, partition=partition)
        return await asyncio.to_thread(self._store.enqueue, name, work_id, partition, given)

    async def find(self, work_id: str) -> WorkState | None:
        return await asyncio.to_thread(self._store.find, work_id)

    async def page(
        self,
        *,
        names: Sequence[str] = (),
        status: WorkStatus | None = None,
        prefix: str = "",
        limit: int = 100,
        offset: int = 0,
    ) -> list[WorkState]:
        if limit < 1:
            return []
        return await asyncio.to_thread(self._store.page, names, status, prefix, limit, offset)

    async def retry(self, work_id: str) -> bool:
        return await asyncio.to_thread(self._store.begin_again, work_id)

    async def wait(self, work_id: str, *, seconds: float) -> WorkState | None:
        loop = asyncio.get_running_loop()
        until, pause = loop.time() + seconds, _FIRST_LOOK_SECONDS
        while (state := await self.find(work_id)) and state.status not in ENDED and loop.time() < until:
            await asyncio.sleep(max(min(pause, until - loop.time()), 0))
            pause = min(pause * 1.5, _LONGEST_LOOK_SECONDS)
        return state

    async def drop(self, *, prefix: str, tells: Callable[[str], bool]) -> Dropped:
        return await asyncio.to_thread(self._store.drop, prefix, tells)

    async def expire(self, *, before: datetime) -> int:
        return await asyncio.to_thread(self._store.expire, before)

    async def compact(self) -> None:
        await asyncio.to_thread(self._store.compact)

    async def close(self) -> None:
        member, self._member, self._runtime = self._member, None, None
        try:
            if member:
                await self._let_end(member)
                await asyncio.to_thread(leave, member)
        finally:
            store, self._open_store = self._open_store, None
            if store:
                await asyncio.to_thread(store.close)

    async def _let_end(self, member: OpenStore) -> None:
        member.leaving = True
        loop = asyncio.get_running_loop()
        until = loop.time() + self._rules.grace_seconds
        while member.runs and loop.time() < until + _BREAK_OFF_SECONDS:
            for run in list(member.runs):
                run.stop(at_once=loop.time() > until)
            await asyncio.sleep(_FIRST_LOOK_SECONDS)

    @property
    def _store(self) -> WorkStore:
        if self._open_store is None:
            raise StorageUnavailable("durable_work_not_open")
        return self._open_store


async def _until_done(task: asyncio.Future[None]) -> None:
    """Wait for the task even if the caller is cancelled repeatedly."""
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([task])
