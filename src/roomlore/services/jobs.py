"""Durable work: counted, timed and logged, with any backend; and the verbs of `lore.jobs`."""

import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import get_args

from roomlore.core.errors import Conflict, InvalidInput, NotFound, describe
from roomlore.core.intake import check_page
from roomlore.ports.coordination import Clock, Telemetry
from roomlore.ports.durable import RETRIABLE, DurableWork, Json, Steps, Work, WorkState, WorkStatus, owner_prefix

log = logging.getLogger(__name__)


Sweep = Callable[[], Awaitable[list[str]]]
"""Enqueue the work of one kind that is due, of all tenants, and return its ids."""
KIND = re.compile(r"[a-z_]{1,64}")
_MAX_WAITED_FOR = 1000


def counted(kind: str, work: Work, *, clock: Clock, telemetry: Telemetry) -> Work:
    """Return the same work, counted. Each attempt counts as `done`, `failed`, or `stopped` if it was interrupted; those
    done are timed."""

    async def does(steps: Steps, arguments: Json) -> Json | None:
        begun, result = clock.monotonic(), "stopped"
        try:
            with telemetry.span(f"work {kind}"):
                gave = await work(steps, arguments)
            result = "done"
            telemetry.observe("roomlore_work_seconds", clock.monotonic() - begun, labels={"kind": kind})
            return gave
        except Exception as error:
            result = "failed"
            telemetry.unforeseen(error, attributes={"kind": kind})
            why = describe(error)
            log.warning("an attempt at durable work failed: %s", why, extra={"kind": kind, "why": why})
            raise
        finally:
            telemetry.count("roomlore_work_total", labels={"kind": kind, "result": result})

    return does


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A piece of durable work.

    `room_id`: the room it belongs to, '' if none. `status`: `waiting`, `running`, `done`, `failed` or `cancelled`.
    `attempts`: how often it was started. `progress`: its last progress report. `error`: why it failed, else ''.
    """

    job_id: str
    kind: str
    room_id: str
    status: WorkStatus
    attempts: int
    progress: str
    error: str
    created_at: datetime
    updated_at: datetime


class JobService:
    """The durable work of one tenant. Every call may raise `StorageUnavailable`.

    `shared`: True if other processes see the same work and continue it.
    """

    def __init__(
        self,
        *,
        tenant: str,
        durable: DurableWork,
        sweeps: Mapping[str, Sweep],
        clock: Clock,
        telemetry: Telemetry,
        shared: bool,
    ) -> None:
        self._durable = durable
        self._sweeps = sweeps
        self._clock = clock
        self._telemetry = telemetry
        self._mine = owner_prefix(tenant)
        self.shared = shared

    async def page(
        self, *, status: WorkStatus | None = None, kind: str | None = None, limit: int = 100, offset: int = 0
    ) -> list[Job]:
        """Return jobs, the newest first. Raise `InvalidInput` for an unknown status or kind."""
        check_page(limit=limit, after=offset)
        if status not in (None, *get_args(WorkStatus)):
            raise InvalidInput(
                "choice_unknown", name="status", value=f"{status!r:.60}", known=", ".join(get_args(WorkStatus))
            )
        if kind is not None and not KIND.fullmatch(kind):
            raise InvalidInput("job_kind_invalid", value=f"{kind!r:.80}")
        names = [kind] if kind else []
        states = await self._durable.page(names=names, status=status, prefix=self._mine, limit=limit, offset=offset)
        return [self._job(state) for state in states]

    async def get(self, job_id: str) -> Job:
        """Return the current state of the job. Raise `NotFound`."""
        return self._known(job_id, await self._durable.find(self._work_id(job_id)))

    async def wait(self, job_id: str, seconds: float = 30.0) -> Job:
        """Return the job once it is done, failed or cancelled, or its state after so many seconds. Raise `NotFound`."""
        return self._known(job_id, await self._durable.wait(self._work_id(job_id), seconds=max(seconds, 0.0)))

    async def retry(self, job_id: str) -> Job:
        """Run again a job that failed or was cancelled; steps that were finished are not repeated.

        Raise `NotFound`, and `Conflict` for a job that is waiting, running or done.
        """
        job = await self.get(job_id)
        if job.status not in RETRIABLE or not await self._durable.retry(self._work_id(job_id)):
            job = await self.get(job_id)
            raise Conflict("job_not_failed", job=f"{job_id!r:.80}", status=job.status)
        self._telemetry.count("roomlore_work_total", labels={"kind": job.kind, "result": "retried"})
        return await self.get(job_id)

    async def begin(self) -> None:
        """Run the durable work of all tenants in this process from now on, until roomlore is closed.

        Raise `Conflict` if the setting `durable_work` is `dbos` and this process works for another database.
        """
        await self._durable.open(working=True)

    async def works_here(self) -> bool:
        """Return True if this process runs work now: it has begun and, if only one process may work at a time, it is
        that one."""
        return self._durable.works()

    async def catch_up(self, *, seconds: float = 300.0) -> int:
        """Run what is due, of all tenants, until nothing is left or the time is over. Return how many jobs were done.

        Meant for roomlore opened with `background=False`. From then on this process runs work, as after `begin`.
        """
        waiting = await self._waiting()  # before work begins, which may be done at once
        await self.begin()
        waited_for = waiting | await self._due()
        until = self._clock.monotonic() + seconds
        done: set[str] = set()
        while waited_for:
            for work_id in waited_for:
                state = await self._durable.wait(work_id, seconds=max(until - self._clock.monotonic(), 0.0))
                if state and state.status == "done":
                    done.add(work_id)
            if self._clock.monotonic() >= until:
                break
            waited_for = await self._due()
        return len(done)

    async def _due(self) -> set[str]:
        """Return the ids of what is enqueued now, and what was before."""
        if not self._sweeps:
            return set()
        due = {work_id for sweep in self._sweeps.values() for work_id in await sweep()}
        return due | await self._waiting()

    async def _waiting(self) -> set[str]:
        work_ids: set[str] = set()
        for status in ("running", "waiting") if self._sweeps else ():
            known = await self._durable.page(names=list(self._sweeps), status=status, limit=_MAX_WAITED_FOR)
            work_ids |= {state.work_id for state in known}
        return work_ids

    def _work_id(self, job_id: str) -> str:
        """Return the id of the work. Raise `NotFound` for a text that cannot be a job's id."""
        if not job_id.isprintable():
            raise _unknown(job_id)
        return self._mine + job_id

    def _known(self, job_id: str, state: WorkState | None) -> Job:
        if state is None:
            raise _unknown(job_id)
        return self._job(state)

    def _job(self, state: WorkState) -> Job:
        """Return the job without its tenant, its arguments and the results of its steps."""
        return Job(
            job_id=state.work_id.removeprefix(self._mine),
            kind=state.name,
            room_id=str(state.arguments.get("room_id") or ""),
            status=state.status,
            attempts=state.attempts,
            progress=state.progress,
            error=state.error,
            created_at=state.created_at,
            updated_at=state.updated_at,
        )


def _unknown(job_id: str) -> NotFound:
    return NotFound("job_unknown", job=f"{job_id!r:.80}")
