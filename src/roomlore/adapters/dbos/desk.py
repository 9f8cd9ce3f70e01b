"""Handing work in and looking at it, through DBOS's client, which is no singleton. Called on threads."""

from collections.abc import Sequence
from typing import Any

from dbos import DBOSClient, WorkflowStatus, error

from roomlore.adapters.dbos.places import Place
from roomlore.adapters.dbos.rows import PREFIX, fit, state_of, theirs
from roomlore.adapters.dbos.runtime import APPLICATION, QUEUE, VERSION, client
from roomlore.adapters.dbos.troubles import translated
from roomlore.ports.durable import RETRIABLE, Json, WorkState, WorkStatus

_CONNECTIONS = 4
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

    def close(self) -> None:
        self._engine.dispose()

    def _row(self, work_id: str) -> WorkflowStatus | None:
        with translated():
            rows = self._client.list_workflows(workflow_ids=[work_id], application_name=APPLICATION, load_output=False)
        return rows[0] if rows else None

    def _note(self, work_id: str, **notes: Any) -> None:
        with translated():
            self._client.update_workflow_attributes(work_id, notes, merge=True)
