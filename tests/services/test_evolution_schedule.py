"""The schedule: which groups evolve by themselves, when, and how often."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from engines import ENGINES
from evolution_rig import CHINESE, ENGLISH, active, create, lines, mark, opened, talk
from extraction_rig import until
from roomlore import Lore, Message
from roomlore.adapters.cron import Cron
from roomlore.ports.durable import Ticks
from roomlore.services.evolution import Schedule
from roomlore.services.evolution.evolution_service import MARK
from roomlore_testkit import backends
from roomlore_testkit.doubles import FrozenClock
from roomlore_testkit.model_server import ModelServer

ZONE = ZoneInfo("Asia/Shanghai")
NOON = datetime(2026, 11, 20, 12, 0, tzinfo=ZONE)
NIGHTLY = "0 2 * * *"
DAY = 86_400


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(NOON)


@pytest.fixture(params=ENGINES)
async def lore(request: pytest.FixtureRequest, clock: FrozenClock, monkeypatch) -> AsyncIterator[Lore]:
    """One that evolves nothing by itself and goes by the clock."""
    monkeypatch.setattr("roomlore.wiring.resources.SystemClock", lambda: clock)
    answer = lines(create(CHINESE.new[0], "c1"))
    async with ModelServer(default=answer) as server:
        url = request.getfixturevalue(request.param)
        async with opened(server, url=url, evolve_schedule="") as lore:
            yield lore


def schedule(lore: Lore, clock: FrozenClock, *, cron: str = NIGHTLY, people: bool = False) -> Schedule:
    async def evolve() -> bool:
        return people

    return Schedule(
        backends(storage=lore.storage, clock=clock),
        evolutions=lore._resources.evolver,
        times=Cron(cron, ZONE).last,
        people=evolve,
    )


async def say(
    lore: Lore, clock: FrozenClock, count: int, *, room: str = "g", ago: float = 0, prefix: str = "c"
) -> None:
    at = clock.now() - timedelta(seconds=ago)
    await lore.messages.add(
        [
            Message(id=f"{prefix}{n}", room_id=room, sender_id="u", text=f"第{n}句话", sent_at=at)
            for n in range(1, count + 1)
        ]
    )


async def seen_to(lore: Lore) -> datetime:
    async with lore.storage.reading("") as work:
        (tick,) = (await work.progress.marks(room_id="", names=[MARK])).values()
    return datetime.fromtimestamp(tick, ZONE)


async def seen_to_an_hour_ago(lore: Lore) -> None:
    hour_ago = datetime.now(UTC) - timedelta(hours=1)
    async with lore.storage.writing("") as work:
        here = {"room_id": "", "name": MARK, "now": hour_ago}
        assert await work.progress.move_mark(**here, arrival=int(hour_ago.timestamp()), was=0)


async def done(lore: Lore, work_ids: list[str]) -> list[str]:
    """The scopes that evolved."""
    jobs = [await lore.jobs.wait(one.removeprefix("default:")) for one in work_ids]
    assert {job.status for job in jobs} <= {"done"}
    return [job.room_id for job in jobs]


async def test_at_two_every_room_with_ten_new_messages_evolves(lore, clock):
    nightly = schedule(lore, clock)
    assert await nightly.sweep() == []
    for room, count in (("nine", 9), ("ten", 10), ("eleven", 11)):
        await say(lore, clock, count, room=room)
    clock.advance(13 * 3600 + 59 * 60)
    assert await nightly.sweep() == []
    clock.advance(60)
    assert sorted(await done(lore, await nightly.sweep())) == ["eleven", "ten"]
    assert await seen_to(lore) == datetime(2026, 11, 21, 2, 0, tzinfo=ZONE)
    clock.advance(3600)
    assert await nightly.sweep() == []


async def test_a_new_database_begins_with_now(lore, clock):
    await say(lore, clock, 20)
    assert await schedule(lore, clock).sweep() == []
    assert await seen_to(lore) == NOON
    assert await schedule(lore, clock).sweep() == []


async def test_a_night_that_was_missed_is_made_up_once(lore, clock):
    await schedule(lore, clock).sweep()
    clock.advance(3 * DAY - 3600)
    await say(lore, clock, 10)
    clock.advance(3600)
    again = schedule(lore, clock)
    assert len(await again.sweep()) == 1
    assert await seen_to(lore) == datetime(2026, 11, 23, 2, 0, tzinfo=ZONE)
    assert await again.sweep() == []


async def test_history_that_was_imported_does_not_evolve_by_itself(lore, clock):
    await schedule(lore, clock).sweep()
    clock.advance(DAY)
    await say(lore, clock, 50, room="old", ago=8 * DAY)
    await say(lore, clock, 50, room="woken", ago=8 * DAY)
    await say(lore, clock, 10, room="woken", prefix="new")
    assert await done(lore, await schedule(lore, clock).sweep()) == ["woken"]


async def test_a_group_that_talks_little_evolves_once_it_has_said_enough(lore, clock):
    nightly = schedule(lore, clock)
    await nightly.sweep()
    handed_in = []
    for day in range(5):
        await say(lore, clock, 3, prefix=f"d{day}-")
        clock.advance(DAY)
        handed_in.append(await done(lore, await nightly.sweep()))
    assert handed_in == [[], [], [], ["g"], []]
    (record,) = await lore.memories.evolutions("group:g")
    assert (record.messages, await mark(lore)) == (12, 12)


async def test_a_group_evolves_again_only_with_ten_more(lore, clock):
    nightly = schedule(lore, clock)
    await nightly.sweep()
    counts = []
    for day, more in enumerate((10, 9, 1, 0, 12)):
        if more:
            await say(lore, clock, more, prefix=f"d{day}-")
        clock.advance(DAY)
        work_ids = await nightly.sweep()
        counts.append(len(work_ids))
        await done(lore, work_ids)
    assert counts == [1, 0, 1, 0, 1]
    assert await mark(lore) == 32


async def test_what_one_evolution_leaves_over_is_read_by_the_next_of_the_same_night(lore, clock, monkeypatch):
    monkeypatch.setattr("roomlore.services.evolution.evolution_service.LEAST_MESSAGES", 30)
    nightly = schedule(lore, clock)
    await nightly.sweep()
    await say(lore, clock, 445)
    clock.advance(DAY)
    await done(lore, await nightly.sweep())

    async def read_on() -> bool:
        return await mark(lore) == 445

    await until(read_on)
    records = await lore.memories.evolutions("group:g")
    assert [record.messages for record in records] == [45, 200, 200]
    await say(lore, clock, 229, prefix="d")
    clock.advance(DAY)
    await done(lore, await nightly.sweep())
    assert (await mark(lore), await nightly.sweep()) == (645, [])
    assert len(await lore.jobs.page(kind="evolution")) == 4


async def test_many_workers_hand_each_group_in_once(lore, clock):
    workers = [schedule(lore, clock) for _ in range(5)]
    await workers[0].sweep()
    for room in ("a", "b", "c"):
        await say(lore, clock, 10, room=room)
    clock.advance(DAY)
    handed_in = await asyncio.gather(*(worker.sweep() for worker in workers))
    work_ids = {one for some in handed_in for one in some}
    assert sorted(await done(lore, sorted(work_ids))) == ["a", "b", "c"]
    assert len(await lore.jobs.page(kind="evolution")) == 3
    assert len(await lore.memories.evolutions("group:a")) == 1


async def test_a_worker_killed_in_the_middle_leaves_the_rest_to_the_next(lore, clock, monkeypatch):
    nightly = schedule(lore, clock)
    await nightly.sweep()
    for room in ("a", "b"):
        await say(lore, clock, 10, room=room)
    clock.advance(DAY)
    handled = Ticks.handled

    async def killed(self, due):
        raise ConnectionError

    monkeypatch.setattr(Ticks, "handled", killed)
    with pytest.raises(ConnectionError):
        await nightly.sweep()
    monkeypatch.setattr(Ticks, "handled", handled)
    assert sorted(await done(lore, await nightly.sweep())) == ["a", "b"]
    assert len(await lore.jobs.page(kind="evolution")) == 2


async def test_rooms_are_walked_page_by_page(lore, clock, monkeypatch):
    monkeypatch.setattr("roomlore.ports.durable._PAGE", 2)
    await schedule(lore, clock).sweep()
    rooms = [f"r{n}" for n in range(5)]
    for room in rooms:
        await say(lore, clock, 10, room=room)
    clock.advance(DAY)
    assert await done(lore, await schedule(lore, clock).sweep()) == rooms


async def test_catching_up_waits_for_what_the_schedule_hands_in(sqlite_url):
    said = ENGLISH
    async with (
        ModelServer(default=lines(create(said.new[0], "c1"))) as server,
        opened(server, url=sqlite_url, background=False, evolve_schedule="* * * * *") as lore,
    ):
        await seen_to_an_hour_ago(lore)
        await talk(lore, said, range(1, 13))
        assert await lore.jobs.catch_up() == 2  # the room, and its people in one call
        assert await active(lore) == [said.new[0]]


async def test_it_runs_behind_the_calls(sqlite_url, monkeypatch):
    monkeypatch.setattr("roomlore.wiring.work._EVOLUTION_SWEEP_SECONDS", 0.05)
    said = CHINESE
    async with ModelServer(default=lines(create(said.new[0], "c1"))) as server:
        async with opened(server, url=sqlite_url, evolve_schedule="") as lore:
            await talk(lore, said, range(1, 13))
            await seen_to_an_hour_ago(lore)
        async with opened(server, url=sqlite_url, evolve_schedule="* * * * *") as lore:

            async def evolved() -> bool:
                return await active(lore) == [said.new[0]]

            await until(evolved)
