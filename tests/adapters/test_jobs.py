"""Background work in this process."""

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest
from structlog.contextvars import get_contextvars

from roomlore.adapters import inprocess as module
from roomlore.adapters.inprocess import InProcessJobs, SystemClock
from roomlore.adapters.telemetry import PrometheusTelemetry
from roomlore.core.errors import StorageBusy


@pytest.fixture
async def jobs() -> AsyncIterator[InProcessJobs]:
    opened = InProcessJobs(telemetry=PrometheusTelemetry(SystemClock()))
    yield opened
    await opened.close()


async def until(condition) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - what is waited for is what the job did, whatever it is
            await asyncio.sleep(0.001)


async def test_a_job_runs_once_at_the_start_and_again_when_asked(jobs):
    runs = []

    async def work() -> None:
        runs.append(1)

    jobs.handle("tidy", work, every_seconds=1000)
    await until(lambda: len(runs) == 1)
    jobs.ask("tidy")
    await until(lambda: len(runs) == 2)
    await asyncio.sleep(0.02)
    assert len(runs) == 2


async def test_what_is_logged_meanwhile_names_the_job(jobs):
    seen = []

    async def work() -> None:
        seen.append(get_contextvars())

    jobs.handle("tidy", work, every_seconds=1000)
    await until(lambda: seen)
    assert seen == [{"job": "tidy"}]


async def test_asked_often_before_it_begins_it_runs_once(jobs):
    runs, gate = [], asyncio.Event()

    async def work() -> None:
        runs.append(1)
        await gate.wait()

    jobs.handle("tidy", work, every_seconds=1000)
    await until(lambda: runs)
    for _ in range(5):
        jobs.ask("tidy")
    gate.set()
    await until(lambda: len(runs) == 2)
    await asyncio.sleep(0.02)
    assert len(runs) == 2


async def test_a_job_comes_round_by_itself(jobs):
    runs = []

    async def work() -> None:
        runs.append(1)

    jobs.handle("sweep", work, every_seconds=0.01)
    await until(lambda: len(runs) >= 3)


async def test_a_failing_job_is_tried_again_later_each_time_and_harms_no_other(jobs, monkeypatch):
    monkeypatch.setattr(module, "_FIRST_PAUSE_SECONDS", 0.01)
    tries, others = [], []
    loop = asyncio.get_running_loop()

    async def bad() -> None:
        tries.append(loop.time())
        if len(tries) < 4:
            raise ValueError("no luck")

    async def good() -> None:
        others.append(1)

    jobs.handle("bad", bad, every_seconds=1000)
    jobs.handle("good", good, every_seconds=0.01)
    await until(lambda: len(tries) == 4 and len(others) >= 3)
    pauses = [after - before for before, after in pairwise(tries)]
    assert pauses[0] >= 0.009
    assert pauses[1] >= 0.019
    assert pauses[2] >= 0.039


async def test_asking_for_an_unknown_job_does_nothing(jobs):
    jobs.ask("nobody does this")


async def test_closing_breaks_off_what_runs(jobs):
    begun, ended = asyncio.Event(), []

    async def work() -> None:
        try:
            begun.set()
            await asyncio.sleep(1000)
        finally:
            ended.append(1)

    jobs.handle("long", work, every_seconds=1)
    await begun.wait()
    await jobs.close()
    assert ended == [1]


async def test_a_job_that_a_large_write_holds_up_is_tried_again_and_fails_nothing(jobs, caplog):
    """A regression: a batch of very many rooms had jobs told as failed, to Sentry too."""
    runs = []

    async def work() -> None:
        runs.append(1)
        if len(runs) == 1:
            raise StorageBusy("All connections to the database are busy; try again.")

    with caplog.at_level("INFO"):
        jobs.handle("tidy", work, every_seconds=1000)
        await until(lambda: len(runs) == 2)
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("INFO", "a background job waits for a large write")
    ]
