"""kill -9 at any instant: every piece of work is done, and no step that was finished is done again."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from roomlore.adapters.dbos import open_dbos
from roomlore.ports.durable import DurableWork
from worker_processes import Process, Workers, end, kill, kills, printed, workers_of

WORKER = Path(__file__).with_name("durable_worker.py")
KILLS = kills(3)
PIECES = 40 + 12 * KILLS
PARTITIONS = 25
AT_ONCE = 4
ON_POSTGRES = pytest.mark.parametrize("url", ["postgres"], indirect=True)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request) -> str:
    return request.getfixturevalue("durable_sqlite_url" if request.param == "sqlite" else "postgres_url")


@pytest.fixture
def diary(tmp_path) -> Path:
    path = tmp_path / "diary"
    path.touch()
    return path


@asynccontextmanager
async def desk(url: str) -> AsyncIterator[DurableWork]:
    work = open_dbos(url)
    await work.open(working=False)
    yield work
    await work.close()


async def hand_in(work: DurableWork, count: int, partitions: int = PARTITIONS) -> None:
    for piece in range(count):
        assert await work.start(
            "count", work_id=f"piece {piece}", partition=f"room {piece % partitions}", arguments={"piece": piece}
        )


@pytest.fixture
async def workers(url, diary) -> AsyncIterator[Workers]:
    async with workers_of(WORKER, url, str(diary)) as started:
        yield started


async def start(workers: Workers, *, pause: float = 0.0, name: str = "one") -> Process:
    return await workers.spawn(pause, name)


async def opened(process: Process) -> None:
    await printed(process, "open")


async def until(condition: Callable[[], Awaitable[bool] | bool], *, seconds: float = 60) -> None:
    async with asyncio.timeout(seconds):
        while not (met if isinstance(met := condition(), bool) else await met):  # noqa: ASYNC110 - another process's doing
            await asyncio.sleep(0.03)


async def all_done(work: DurableWork, count: int, *, seconds: float = 60) -> float:
    """Return the duration."""

    async def done() -> bool:
        return len(await work.page(status="done", limit=count + 1)) >= count

    begun = time.monotonic()
    await until(done, seconds=seconds)
    return time.monotonic() - begun


def written(diary: Path) -> dict[int, list[int]]:
    """The steps of each piece, in the order in which they were begun."""
    steps: dict[int, list[int]] = {}
    for line in diary.read_text().splitlines():
        piece, number, _ = line.split()
        steps.setdefault(int(piece), []).append(int(number))
    return steps


def assert_whole(diary: Path, count: int) -> int:
    """Every piece has its steps, in order: a step that is begun says that all before it were finished. How many were
    begun twice."""
    steps = written(diary)
    assert sorted(steps) == list(range(count))
    assert [piece for piece, done in steps.items() if done != sorted(done) or sorted(set(done)) != [0, 1, 2]] == []
    return sum(len(done) - 3 for done in steps.values())


async def test_killed_at_any_instant(url, workers, diary):
    chance = random.Random(20261122)
    async with desk(url) as work:
        await hand_in(work, PIECES)
        for number in range(KILLS):
            begun = diary.stat().st_size
            process = await start(workers, pause=0.05)
            if number == KILLS - 1:
                await until(lambda begun=begun: diary.stat().st_size > begun)
            elif number % 4:
                await opened(process)
                await asyncio.sleep(chance.uniform(0.0, 0.6))
            else:
                await asyncio.sleep(chance.uniform(0.3, 2.0))
            await kill(process)
        assert len(await work.page(status="done")) < PIECES
        process = await start(workers)
        await all_done(work, PIECES)
        await end(process)
        assert {state.error for state in await work.page(limit=PIECES)} == {""}
        assert await work.page(status="failed") == []
    doubled = assert_whole(diary, PIECES)
    assert 0 < doubled <= KILLS * AT_ONCE


async def test_another_process_takes_over(url, workers, diary, capfd):
    """The one that was killed never comes back. On SQLite the other stands by until then."""
    async with desk(url) as work:
        first = await start(workers, pause=0.5)
        await opened(first)
        second = await start(workers, name="two", pause=0.5)
        await opened(second)
        await hand_in(work, 12)
        await until(lambda: "one" in diary.read_text())
        await kill(first)
        assert await all_done(work, 12) < 15
        await end(second)
    assert 0 < assert_whole(diary, 12) <= AT_ONCE
    assert "work that was broken off is taken over" in capfd.readouterr().err


async def test_ended_politely_it_leaves_its_work_to_the_others(url, workers, diary):
    async with desk(url) as work:
        first = await start(workers, pause=0.3)
        await opened(first)
        await hand_in(work, 8)
        await until(lambda: len(written(diary)) >= AT_ONCE)
        await end(first)
        states = await work.page()
        assert {state.status for state in states} in ({"waiting"}, {"waiting", "done"})
        second = await start(workers, name="two")
        await all_done(work, 8)
        await end(second)
    assert assert_whole(diary, 8) == 0


@ON_POSTGRES
async def test_two_processes_share_the_work(url, workers, diary, capsys):
    """Each step lasts a while, as a model's answer would; one worker does four pieces at a time."""
    count = 60
    async with desk(url) as work:
        alone = await _timed(work, workers, ["one"], first=0, count=count)
        together = await _timed(work, workers, ["one", "two"], first=count, count=count)
    assert assert_whole(diary, 2 * count) == 0
    names = [line.split()[2] for line in diary.read_text().splitlines()[3 * count :]]
    assert min(names.count("one"), names.count("two")) > count / 3
    with capsys.disabled():
        print(f"\n{count / alone:.1f} pieces/s by one worker, {count / together:.1f} by two")  # noqa: T201
    assert together < alone


async def _timed(work: DurableWork, workers: Workers, names: list[str], *, first: int, count: int) -> float:
    processes = [await start(workers, pause=0.1, name=name) for name in names]
    for process in processes:
        await opened(process)
    begun = time.monotonic()
    for piece in range(first, first + count):
        await work.start("count", work_id=f"piece {piece}", partition=f"room {piece}", arguments={"piece": piece})
    await all_done(work, first + count)
    took = time.monotonic() - begun
    for process in processes:
        await end(process)
    return took


@ON_POSTGRES
async def test_one_of_two_processes_is_killed_half_way(url, workers, diary):
    count = 60
    async with desk(url) as work:
        await hand_in(work, count)
        processes = [await start(workers, pause=0.1, name=name) for name in ("one", "two")]
        await until(lambda: len(written(diary)) >= count / 2 and diary.read_text().endswith(" one\n"))
        await kill(processes[0])
        await all_done(work, count)
        await end(processes[1])
    assert 0 < assert_whole(diary, count) <= AT_ONCE
