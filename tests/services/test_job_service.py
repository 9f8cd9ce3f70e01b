"""Durable work as people see it, over every way of keeping it: pages, tenants, retries, catching up, counting."""

import asyncio
import logging
from dataclasses import asdict

import pytest

from engines import ENGINES
from roomlore import Conflict, InvalidInput, ModelUnavailable, NotFound
from roomlore.adapters.dbos import open_dbos
from roomlore.adapters.inprocess import InProcessWork, LateWork, SystemClock
from roomlore.adapters.telemetry import PrometheusTelemetry
from roomlore.ports.durable import work_name
from roomlore.services.jobs import JobService, counted

QUICK = (0.02, 0.05)
KIND = "extraction"
SECRET = "the vault opens with 7319"


async def until(met) -> None:
    async with asyncio.timeout(60):
        while not met():  # noqa: ASYNC110 - another thread's doing
            await asyncio.sleep(0.02)


class Desk:
    """Jobs of any tenant on one way of keeping work. What is in `fails` fails so often."""

    def __init__(self, durable) -> None:
        self.durable, self.clock = durable, SystemClock()
        self.telemetry = PrometheusTelemetry(self.clock)
        self.fails: dict[str, int] = {}
        self.held = asyncio.Event()
        self.held.set()
        self.steps: list[str] = []
        self.due: list[tuple[str, str]] = []
        durable.define(KIND, counted(KIND, self._do, clock=self.clock, telemetry=self.telemetry))

    def jobs(self, tenant: str = "acme", *, sweeping: bool = True) -> JobService:
        sweeps = {KIND: self.sweep} if sweeping else {}
        return JobService(
            tenant=tenant, durable=self.durable, sweeps=sweeps, clock=self.clock, telemetry=self.telemetry, shared=True
        )

    async def hand_in(self, own: str, tenant: str = "acme", room: str = "tea") -> str:
        given = {"tenant": tenant, "room_id": room, "own": own, "said": SECRET}
        name = work_name(tenant, KIND, own)
        await self.durable.start(KIND, work_id=name, partition=name, arguments=given)
        return f"{KIND}:{own}"

    async def sweep(self) -> list[str]:
        """Two pieces at a time, as long as something is due."""
        now, self.due = self.due[:2], self.due[2:]
        return [work_name(tenant, KIND, own) for tenant, own in now if await self.hand_in(own, tenant)]

    def counted(self) -> dict[str, float]:
        samples = self.telemetry.registry.collect()
        return {
            sample.labels["result"]: sample.value
            for family in samples
            for sample in family.samples
            if sample.name == "roomlore_work_total"
        }

    async def _do(self, steps, arguments) -> None:
        own = arguments["own"]

        async def first():
            self.steps.append(own)
            return {"said": SECRET}

        await steps.once("first", first)
        await steps.report(f"half of {own}")
        await self.held.wait()
        self.fails[own] = self.fails.get(own, 0) - 1
        if self.fails[own] >= 0:
            raise ModelUnavailable("No provider answers.")


@pytest.fixture(params=["process", "durable_sqlite_url", *ENGINES[1:]])
def make(request):
    """Makes the work, which is the same each time it is opened."""
    if request.param == "process":
        return lambda: InProcessWork(clock=SystemClock(), pauses_seconds=QUICK)
    url = request.getfixturevalue(request.param)
    return lambda: open_dbos(url, pauses_seconds=QUICK, poll_seconds=0.05, sweep_seconds=0.5)


@pytest.fixture
async def desk(make):
    desk = Desk(LateWork([make], working=True))
    yield desk
    desk.held.set()
    await desk.durable.close()


@pytest.fixture
async def looking(make):
    """As in a process that is opened without work behind the calls."""
    desk = Desk(LateWork([make], working=False))
    yield desk
    desk.held.set()
    await desk.durable.close()


async def test_a_job_is_shown_without_what_it_was_given(desk):
    jobs = desk.jobs()
    desk.held.clear()
    name = await desk.hand_in("花 1/2")
    assert name == "extraction:花 1/2"
    await until(lambda: desk.steps)
    async with asyncio.timeout(60):
        while not (running := await jobs.wait(name, 0.1)).progress:
            pass
    assert running.progress == "half of 花 1/2"
    assert (running.kind, running.room_id, running.status, running.error) == (KIND, "tea", "running", "")
    desk.held.set()
    done = await jobs.wait(name, 15)
    assert (done.job_id, done.status, done.attempts) == (name, "done", 1)
    assert done.created_at <= done.updated_at
    assert await jobs.page() == [done]
    assert SECRET not in str(asdict(done))
    assert "acme" not in str(asdict(done))


async def test_a_page_is_the_newest_first_by_status_and_kind(desk):
    jobs = desk.jobs()
    desk.fails["bad"] = 9
    for own in ("old", "bad", "new"):
        await jobs.wait(await desk.hand_in(own), 15)
        await asyncio.sleep(1.01 if own == "old" else 0)
    assert [job.job_id for job in await jobs.page()][-1] == "extraction:old"
    assert [job.job_id for job in await jobs.page(status="failed")] == ["extraction:bad"]
    assert len(await jobs.page(kind=KIND, status="done")) == 2
    assert await jobs.page(kind="evolution") == await jobs.page(status="cancelled") == []
    assert [job.job_id for job in await jobs.page(limit=2, offset=2)] == ["extraction:old"]


async def test_a_page_that_cannot_be_is_refused(desk):
    for given in ({"status": "lost"}, {"kind": "Ex\x00"}, {"kind": ""}, {"limit": 0}, {"offset": -1}):
        with pytest.raises(InvalidInput, match=f"^{'after' if 'offset' in given else next(iter(given))} is "):
            await desk.jobs().page(**given)


async def test_another_tenant_sees_nothing(desk):
    name = await desk.hand_in("x")
    await desk.jobs().wait(name, 15)
    for other in ("Acme", "ACME", "acm", "acme:extraction", "a%63me", "acm_", "acme%", "default", "ａcme"):
        theirs = desk.jobs(other)
        assert await theirs.page() == []
        for call in (theirs.get, theirs.wait, theirs.retry):
            with pytest.raises(NotFound):
                await call(name)
    assert len(await desk.jobs().page()) == 1


async def test_what_no_job_is_called_is_not_found(desk):
    for name in ("", "nix", "extraction", "a\x00b", "\ud800", "acme:extraction:x", "%", "../x" * 300):
        for call in (desk.jobs().get, desk.jobs().retry, desk.jobs().wait):
            with pytest.raises(NotFound, match="There is no job"):
                await call(name)


async def test_a_failed_job_is_retried_and_keeps_its_steps(desk, caplog):
    caplog.set_level(logging.WARNING)
    jobs = desk.jobs()
    desk.fails["bad"] = 3
    name = await desk.hand_in("bad")
    failed = await jobs.wait(name, 15)
    assert (failed.status, failed.attempts) == ("failed", 3)
    assert failed.error == "ModelUnavailable: No provider answers."
    assert (await jobs.retry(name)).status in ("waiting", "running", "done")
    done = await jobs.wait(name, 15)
    assert (done.status, done.attempts, done.error) == ("done", 4, "")
    assert desk.steps == ["bad"], "a step that was finished was done again"
    with pytest.raises(Conflict, match="is done; only one that failed"):
        await jobs.retry(name)
    assert desk.counted() == {"failed": 3, "retried": 1, "done": 1}
    told = [(record.getMessage(), record.why) for record in caplog.records if hasattr(record, "kind")]
    assert told == [(f"an attempt at durable work failed: {failed.error}", failed.error)] * 3


async def test_what_waits_or_runs_is_not_retried(desk):
    jobs = desk.jobs()
    desk.held.clear()
    name = await desk.hand_in("a")
    with pytest.raises(Conflict, match=r"is (waiting|running)"):
        await jobs.retry(name)
    assert (await jobs.wait(name, 0.2)).status in ("waiting", "running")
    assert (await jobs.wait(name, -1)).status in ("waiting", "running")


async def test_an_attempt_that_was_broken_off_counts_as_such(desk):
    desk.held.clear()
    await desk.hand_in("a")
    await until(lambda: desk.steps)
    await desk.jobs().wait("extraction:a", 0.3)
    await desk.durable.close()
    assert desk.counted() == {"stopped": 1}
    await desk.durable.open(working=True)
    desk.held.set()
    await desk.jobs().wait("extraction:a", 15)
    assert desk.counted() == {"stopped": 1, "done": 1}
    seconds = [line for line in desk.telemetry.render().decode().splitlines() if "work_seconds_count" in line]
    assert seconds == ['roomlore_work_seconds_count{kind="extraction"} 1.0']


async def test_catching_up_does_all_that_is_due_of_every_tenant(looking):
    desk, jobs = looking, looking.jobs()
    before = await desk.hand_in("handed in before")
    desk.fails["bad"] = 9
    desk.due = [("acme", "1"), ("acme", "bad"), ("other", "2"), ("other", "3"), ("acme", "4")]
    assert not await jobs.works_here()
    assert await jobs.catch_up(seconds=30) == 5
    assert await jobs.works_here()
    assert {job.job_id: job.status for job in await jobs.page()} == {
        before: "done", "extraction:1": "done", "extraction:bad": "failed", "extraction:4": "done",
    }  # fmt: skip
    assert len(await desk.jobs("other").page(status="done")) == 2
    assert await jobs.catch_up(seconds=30) == 0, "what failed for good is not tried again"


async def test_catching_up_counts_what_is_done_as_soon_as_work_begins(looking, monkeypatch):
    jobs = looking.jobs()
    before = await looking.hand_in("handed in before")
    begin = jobs.begin

    async def begin_and_wait():
        await begin()
        assert (await jobs.wait(before, 15)).status == "done"

    monkeypatch.setattr(jobs, "begin", begin_and_wait)
    assert await jobs.catch_up(seconds=30) == 1


async def test_catching_up_ends_when_the_time_is_over(looking):
    looking.held.clear()
    looking.due = [("acme", str(number)) for number in range(20)]
    assert await looking.jobs(sweeping=False).catch_up() == 0
    begun = asyncio.get_running_loop().time()
    assert await looking.jobs().catch_up(seconds=0.5) == 0
    assert asyncio.get_running_loop().time() - begun < 5
    assert len(looking.due) == 18
