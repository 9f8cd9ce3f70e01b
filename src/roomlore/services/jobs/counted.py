"""Durable work that is counted, timed and logged, whatever keeps it."""

import logging

from roomlore.core.errors import describe
from roomlore.ports.coordination import Clock, Telemetry
from roomlore.ports.durable import Json, Steps, Work

log = logging.getLogger(__name__)


def counted(kind: str, work: Work, *, clock: Clock, telemetry: Telemetry) -> Work:
    """The same work. Each attempt counts as `done`, `failed`, or `stopped` where it was broken off; those that were
    done are timed."""

    async def does(steps: Steps, arguments: Json) -> None:
        begun, result = clock.monotonic(), "stopped"
        try:
            with telemetry.span(f"work {kind}"):
                await work(steps, arguments)
            result = "done"
            telemetry.observe("roomlore_work_seconds", clock.monotonic() - begun, labels={"kind": kind})
        except Exception as error:
            result = "failed"
            telemetry.unforeseen(error, attributes={"kind": kind})
            log.warning("an attempt at durable work failed", extra={"kind": kind, "why": describe(error)})
            raise
        finally:
            telemetry.count("roomlore_work_total", labels={"kind": kind, "result": result})

    return does
