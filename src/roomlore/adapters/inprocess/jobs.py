"""Background jobs in this process, on its event loop."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from structlog.contextvars import bound_contextvars

from roomlore.core.errors import StorageBusy, describe
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
            with bound_contextvars(job=job.name):
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
