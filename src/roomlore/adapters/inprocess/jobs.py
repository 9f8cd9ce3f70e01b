"""Background work in this process, on its event loop."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from structlog.contextvars import bound_contextvars

from roomlore.core.errors import describe
from roomlore.ports.coordination import Telemetry

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
    trouble: type[Exception] | None = None
    """What it failed of last, since it was done last."""

    def pause(self) -> float:
        """How long a failed job waits whatever is asked: doubled with each failure in a row."""
        return min(_FIRST_PAUSE_SECONDS * 2.0 ** min(self.failures - 1, 20), _LONGEST_PAUSE_SECONDS)


class InProcessJobs:
    """The port `Jobs`, one task a job. Belongs to the event loop on which jobs are declared."""

    def __init__(self, *, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._jobs: dict[str, _Job] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._closed = False

    def handle(self, name: str, work: Callable[[], Awaitable[object]], *, every_seconds: float) -> None:
        job = self._jobs[name] = _Job(name, work, every_seconds)
        self._tasks.append(asyncio.get_running_loop().create_task(self._run_on(job), name=f"roomlore-{name}"))

    def ask(self, name: str) -> None:
        """A job nobody declared is passed over: this process does not do it."""
        if name in self._jobs:
            self._jobs[name].asked.set()

    async def close(self) -> None:
        """What swallows a cancellation (`asyncio.wait_for` may, up to Python 3.11) is cancelled again."""
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
            with bound_contextvars(job=job.name):
                await job.work()
        except Exception as error:  # noqa: BLE001 - a worker loop: whatever went wrong, the job is tried again
            job.failures += 1
            if job.trouble is not type(error):
                self._telemetry.unforeseen(error, attributes={"job": job.name})
            job.trouble = type(error)
            log.warning("a background job failed", extra={"job": job.name, "why": describe(error)})
        else:
            job.failures, job.trouble = 0, None
        result = "failed" if job.failures else "done"
        self._telemetry.count("roomlore_jobs_total", labels={"job": job.name, "result": result})
