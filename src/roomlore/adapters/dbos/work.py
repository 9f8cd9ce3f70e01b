"""The port `DurableWork` on DBOS. Handing work in and looking at it goes through DBOS's client, which is no singleton;
doing it through the runtime this process shares."""

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from dbos import DBOSClient, WorkflowStatus
from dbos._error import DBOSException, DBOSWorkflowIDInUseError
from sqlalchemy import Engine

from roomlore.adapters.dbos.places import Place
from roomlore.adapters.dbos.rows import PREFIX, fit, state_of, theirs
from roomlore.adapters.dbos.runtime import APPLICATION, QUEUE, VERSION, Member, Rules, client, join, leave
from roomlore.adapters.dbos.troubles import quieten, translated
from roomlore.core.errors import InvalidInput, StorageUnavailable
from roomlore.ports.durable import Json, WorkState, WorkStatus
from roomlore.ports.durable import Work as Work

_CONNECTIONS = 4
_PAST_EVERY_STEP = 1_000_000_000
_ENDED = {"done", "failed", "cancelled"}
_FIRST_LOOK_SECONDS = 0.02
_LONGEST_LOOK_SECONDS = 0.25

T = TypeVar("T")


class DbosWork:
    """Made by `open_dbos`; belongs to the event loop on which it is opened."""

    def __init__(self, place: Place, rules: Rules) -> None:
        self._place, self._rules = place, rules
        self._works: dict[str, Work] = {}
        self._engine: Engine | None = None
        self._open: DBOSClient | None = None
        self._member: Member | None = None

    def define(self, name: str, work: Work) -> None:
        self._works[name] = work

    async def open(self, *, working: bool) -> None:
        quieten()
        self._engine = self._place.engine(connections=_CONNECTIONS)
        self._open = client(self._engine)
        try:
            await self._call(self._open._sys_db.run_migrations)  # noqa: SLF001
            if working:
                member = Member(self._works, asyncio.get_running_loop(), self, self._rules.pauses_seconds)
                await self._call(lambda: join(self._place, self._rules, member))
                self._member = member
        except BaseException:
            await self.close()
            raise

    async def start(self, name: str, *, work_id: str, partition: str, arguments: Json) -> bool:
        if not work_id.strip() or not partition:
            raise InvalidInput("Work needs an id and a partition that are not empty.")
        given = _plain(arguments)
        try:
            await self._call(lambda: self._enqueue(PREFIX + name, work_id, partition, given))
        except DBOSWorkflowIDInUseError:
            return False
        return True

    async def find(self, work_id: str) -> WorkState | None:
        row = await self._call(lambda: self._row(work_id))
        return state_of(row) if row else None

    async def page(
        self, *, names: Sequence[str] = (), status: WorkStatus | None = None, limit: int = 100, offset: int = 0
    ) -> list[WorkState]:
        if limit < 1:
            return []
        rows = await self._call(
            lambda: self._client.list_workflows(
                name=[PREFIX + name for name in names] or None,
                status=theirs(status),
                application_name=APPLICATION,
                limit=limit,
                offset=offset,
                sort_desc=True,
                load_output=False,
            )
        )
        return [state_of(row) for row in rows]

    async def retry(self, work_id: str) -> bool:
        return await self._call(lambda: self._begin_again(work_id))

    async def wait(self, work_id: str, *, seconds: float) -> WorkState | None:
        loop = asyncio.get_running_loop()
        until, pause = loop.time() + seconds, _FIRST_LOOK_SECONDS
        while (state := await self.find(work_id)) and state.status not in _ENDED and loop.time() < until:
            await asyncio.sleep(min(pause, max(until - loop.time(), 0)))
            pause = min(pause * 1.5, _LONGEST_LOOK_SECONDS)
        return state

    async def close(self) -> None:
        member, self._member = self._member, None
        if member:
            await self._let_end(member)
            await self._call(lambda: leave(member))
        engine, self._engine, self._open = self._engine, None, None
        if engine:
            await asyncio.to_thread(engine.dispose)

    async def _let_end(self, member: Member) -> None:
        member.leaving = True
        loop = asyncio.get_running_loop()
        until = loop.time() + self._rules.grace_seconds
        while member.runs:
            for run in list(member.runs):
                run.stop(at_once=loop.time() > until)
            await asyncio.sleep(_FIRST_LOOK_SECONDS)

    def report(self, work_id: str, progress: str) -> None:
        """`Notes`: beside the work, outside what DBOS remembers of its steps."""
        self._note(work_id, progress=fit(progress))

    def fail(self, work_id: str, error: str, *, most: int) -> int:
        """`Notes`: counted beside the work, so that being killed between attempts begins no new count."""
        row = self._row(work_id)
        failures = ((row.attributes or {}).get("failures", 0) if row else 0) + 1
        self._note(work_id, failures=failures, again=min(failures, most - 1), error=fit(error))
        return int(failures)

    @property
    def _client(self) -> DBOSClient:
        if self._open is None:
            raise StorageUnavailable("Durable work is not open; open it first.")
        return self._open

    def _note(self, work_id: str, **notes: Any) -> None:
        with translated():
            self._client.update_workflow_attributes(work_id, notes, merge=True)

    def _row(self, work_id: str) -> WorkflowStatus | None:
        rows = self._client.list_workflows(workflow_ids=[work_id], application_name=APPLICATION, load_output=False)
        return rows[0] if rows else None

    def _enqueue(self, name: str, work_id: str, partition: str, arguments: Json) -> None:
        self._client.enqueue(
            {
                "workflow_name": name,
                "queue_name": QUEUE,
                "workflow_id": work_id,
                "queue_partition_key": partition,
                "app_version": VERSION,
                "workflow_id_reuse_policy": "reject",
            },
            arguments,
        )

    def _begin_again(self, work_id: str) -> bool:
        """DBOS's rewind, to a point past every step: it keeps them all."""
        row = self._row(work_id)
        if row is None or (state := state_of(row)).status not in ("failed", "cancelled"):
            return False
        self._note(work_id, before=state.attempts, failures=0, again=0)
        try:
            self._client.rewind_workflow(
                work_id,
                start_step=_PAST_EVERY_STEP,
                application_version=VERSION,
                queue_name=QUEUE,
                queue_partition_key=state.partition,
            )
        except DBOSException:
            if (now := self._row(work_id)) and state_of(now).status in ("failed", "cancelled"):
                raise
            return False  # somebody else was quicker
        return True

    async def _call(self, what: Callable[[], T]) -> T:
        def run() -> T:
            try:
                with translated():
                    return what()
            except StorageUnavailable as exc:
                if isinstance(exc.__cause__, DBOSWorkflowIDInUseError):
                    raise exc.__cause__ from None
                raise

        return await asyncio.to_thread(run)


def _plain(arguments: Json) -> Json:
    try:
        given: Json = json.loads(json.dumps(dict(arguments)))
    except (TypeError, ValueError) as exc:
        raise InvalidInput("Arguments of work must be plain JSON: ids, numbers and texts, never objects.") from exc
    return given
