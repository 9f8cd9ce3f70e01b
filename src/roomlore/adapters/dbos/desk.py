"""Handing work in and looking at it, through DBOS's client, which is no singleton. Called on threads."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

from dbos import DBOSClient, WorkflowStatus, error

from roomlore.adapters.dbos.places import Place
from roomlore.adapters.dbos.rows import PREFIX, fit, state_of, theirs
from roomlore.adapters.dbos.runtime import APPLICATION, QUEUE, VERSION, client
from roomlore.adapters.dbos.troubles import translated
from roomlore.core.plain import texts_in
from roomlore.ports.durable import RETRIABLE, Dropped, Json, WorkState, WorkStatus

_CONNECTIONS = 4
_PAGE = 200
_COMPACTING = ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)")
_PAST_EVERY_STEP = 1_000_000_000


class Desk:
    """Raises only the project's errors. It is the `Notes` of the work that this process runs."""

    def __init__(self, place: Place) -> None:
        self._engine = place.engine(connections=_CONNECTIONS)
        self._client: DBOSClient = client(self._engine)

    def prepare(self) -> None:
        """Makes DBOS's tables, or brings them up to date."""
        with translated():
            self._client._sys_db.run_migrations()  # noqa: SLF001

    def enqueue(self, name: str, work_id: str, partition: str, arguments: Json) -> bool:
        """False where work of this id is there."""
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
                status=theirs(status),
                workflow_id_prefix=prefix or None,
                application_name=APPLICATION,
                limit=limit,
                offset=offset,
                sort_desc=True,
                load_output=False,
            )
        return [state_of(row) for row in rows]

    def begin_again(self, work_id: str) -> bool:
        """DBOS's rewind, to a point past every step: it keeps them all."""
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
                return False  # somebody else was quicker
        return True

    def report(self, work_id: str, progress: str) -> None:
        self._note(work_id, progress=fit(progress))

    def fail(self, work_id: str, error: str, *, most: int) -> int:
        """Counted beside the work, so that a kill between attempts begins no new count."""
        row = self._row(work_id)
        failures = int((row.attributes or {}).get("failures", 0) if row else 0) + 1
        self._note(work_id, failures=failures, again=min(failures, most - 1), error=fit(error))
        return failures

    def drop(self, prefix: str, tells: Callable[[str], bool]) -> Dropped:
        """What waits is cancelled first, so that nobody begins it meanwhile."""
        told = [row for row in self._rows(prefix) if self._tells(row, tells)]
        running = tuple(row.workflow_id for row in told if row.status in (theirs("running") or ()))
        going = [row.workflow_id for row in told if row.workflow_id not in running]
        waiting = [row.workflow_id for row in told if row.status in (theirs("waiting") or ())]
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
        """On PostgreSQL the tables lie beside our own, and are seen to by whoever keeps that database."""
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
        self._engine.dispose()

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
                status=theirs("done"),
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
            rows = self._client.list_workflows(workflow_ids=[work_id], application_name=APPLICATION, load_output=False)
        return rows[0] if rows else None

    def _note(self, work_id: str, **notes: Any) -> None:
        with translated():
            self._client.update_workflow_attributes(work_id, notes, merge=True)
