"""`roomlore worker` as a process of its own: it works, ends when it is told to, and another goes on where it was."""

import asyncio
import json
import os
import re
import signal
from collections.abc import AsyncIterator

import httpx
import pytest

import roomlore
from extraction_rig import ENGLISH, MODEL, memories, replies, until
from forked_process import ForkedProcess
from roomlore_testkit.model_server import Hangs, ModelServer, Says

ROOMS = 12
AT_ONCE = 4
LONG = 60


@pytest.fixture(params=["sqlite", "postgres"])
def url(request) -> str:
    return request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "postgres_url")


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer(default=Says(text=ENGLISH.summary, after=0.3)) as model:
        yield model


class Programs:
    """Processes of roomlore on one database and one model; none outlives its test."""

    def __init__(self, url: str, model: ModelServer, folder: str) -> None:
        provider = {"name": "here", "model_id": "tiny"}
        self._folder = folder
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")} | {
            "MEMORY_DATABASE_URL": url,
            "MEMORY_MODELS": json.dumps({MODEL: {"internal": True, "providers": [provider]}}),
            "MEMORY_PROVIDERS": json.dumps({"here": {"base_url": model.url}}),
            "PYTHONUNBUFFERED": "1",
        }
        self._all: list[ForkedProcess] = []

    async def start(self, *arguments: str, until: str) -> tuple[ForkedProcess, str]:
        """Waits until it says that; the line in which it does."""
        process = await ForkedProcess.start("roomlore", *arguments, environment=self._environment, folder=self._folder)
        self._all.append(process)
        return process, await says(process, until)

    async def worker(self, *, until: str = "Stop it with Ctrl-C") -> tuple[ForkedProcess, str]:
        return await self.start("worker", "--at-once", str(AT_ONCE), until=until)

    async def kill_all(self) -> None:
        for process in self._all:
            if process.returncode is None:
                process.kill()
                await process.communicate()


@pytest.fixture
async def programs(url, server, tmp_path) -> AsyncIterator[Programs]:
    started = Programs(url, server, str(tmp_path))
    yield started
    await started.kill_all()


async def says(process: ForkedProcess, text: str) -> str:
    """The first line that holds the text."""
    async with asyncio.timeout(LONG):
        while line := (await process.stdout.readline()).decode():
            if text in line:
                return line
    raise AssertionError(f"it never said {text!r}")


async def end(process: ForkedProcess, number: signal.Signals = signal.SIGTERM) -> str:
    """Return the output of the worker when it is told to end."""
    process.send_signal(number)
    told, _ = await asyncio.wait_for(process.communicate(), LONG)
    assert process.returncode == 0
    return told.decode()


async def fill(lore: roomlore.Lore, rooms: int = ROOMS) -> None:
    for number in range(rooms):
        await replies(lore, ENGLISH, 5, room=f"room {number}")


async def remembered(lore: roomlore.Lore, rooms: int = ROOMS) -> None:
    """Waits until there is a memory of every room, and checks that there is one only."""

    async def all_there() -> bool:
        return len(await memories(lore)) >= rooms

    await until(all_there, seconds=LONG)
    sources = [memory.sources[0].room_id for memory in await memories(lore)]
    assert sorted(sources) == sorted({f"room {number}" for number in range(rooms)})


async def finished(lore: roomlore.Lore) -> None:
    """Waits until all jobs are done: a memory is there a moment before its job has ended."""

    async def all_done() -> bool:
        return {job.status for job in await lore.jobs.page()} == {"done"}

    await until(all_done, seconds=LONG)


async def asked(server: ModelServer, count: int) -> None:
    async def so_often() -> bool:
        return len(server.requests) >= count

    await until(so_often, seconds=LONG)


@pytest.mark.parametrize(("url", "number"), [("sqlite", signal.SIGTERM), ("postgres", signal.SIGINT)], indirect=["url"])
async def test_told_to_end_it_leaves_the_rest_to_the_next(url, server, programs, number):
    """An answer of the model is not asked for again: none was paid for twice."""
    async with roomlore.open(url, background=False) as lore:
        await fill(lore)
        first, _ = await programs.worker()
        await asked(server, AT_ONCE + 1)
        assert "what is not finished is left to whoever works next" in await end(first, number)
        assert {job.status for job in await lore.jobs.page()} <= {"waiting", "done"}
        assert len(await memories(lore)) < ROOMS
        second, _ = await programs.worker()
        await remembered(lore)
        await finished(lore)
        await end(second)
        assert len(server.requests) == ROOMS


async def test_killed_another_goes_on(url, server, programs):
    async with roomlore.open(url, background=False) as lore:
        await fill(lore)
        first, _ = await programs.worker()
        await asked(server, AT_ONCE + 1)
        first.kill()
        await first.communicate()
        assert len(await memories(lore)) < ROOMS
        second, _ = await programs.worker()
        await remembered(lore)
        await end(second)
        assert len(server.requests) <= ROOMS + AT_ONCE


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_on_sqlite_the_second_stands_by_and_follows(url, server, programs):
    first, _ = await programs.worker(until="On SQLite one process works at a time")
    second, _ = await programs.worker(until="Stands by: another process works on this database.")
    async with roomlore.open(url, background=False) as lore:
        await fill(lore, 2)
        first.kill()
        await says(second, "Works now.")
        third, _ = await programs.worker(until="Stands by")
        assert await end(third)
        await remembered(lore, 2)


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
async def test_a_second_signal_ends_it_at_once(url, server, programs):
    server.default = Hangs()
    async with roomlore.open(url, background=False) as lore:
        await fill(lore, 1)
        process, _ = await programs.worker()
        await asked(server, 1)
        process.terminate()
        await says(process, "Stopping")
        process.terminate()
        assert await asyncio.wait_for(process.wait(), LONG) == -signal.SIGTERM


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_a_server_that_does_not_work_leaves_it_to_a_worker(url, server, programs):
    said = [
        {"id": f"m{n}", "room_id": "room 0", "sender_id": "bot", "role": "assistant", "text": "At seven, as always."}
        for n in range(5)
    ]
    serving, heard = await programs.start("serve", "--no-work", "--port", "0", until="listens on")
    async with httpx.AsyncClient(base_url=re.search(r"http://[\d.:]+", heard).group()) as client:
        assert (await client.post("/messages", json={"messages": said})).status_code == 200
        await asyncio.sleep(0.5)
        assert (await client.get("/jobs")).json() == {"jobs": [], "next": None}
        assert server.requests == []
        worker, _ = await programs.worker()
        async with roomlore.open(url, background=False) as lore:
            await remembered(lore, 1)
        (job,) = (await client.get("/jobs")).json()["jobs"]
        assert (job["room_id"], job["kind"]) == ("room 0", "extraction")
    await end(worker)
    await end(serving)
