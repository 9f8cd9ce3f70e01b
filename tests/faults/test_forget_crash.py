"""kill -9 of a server while it forgets somebody: the next one goes on by itself, and lists the job until it is done."""

import asyncio
import os
import random
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import roomlore
from forked_process import ForkedProcess
from roomlore import Message
from worker_processes import kills

MARIA, SECRET = "maria-7f3a9c", "the spare key hangs under the third flower pot"
ROOMS = 600
KILLS = kills(2)
LONG = 120


class Servers:
    """`roomlore serve` on one database, one process after another. None outlives its test."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url, self._folder = url, str(folder)
        self._process: ForkedProcess | None = None
        self.client = httpx.AsyncClient(timeout=LONG)

    async def start(self) -> None:
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", "MEMORY_LOG_LEVEL": "error"}
        self._process = await ForkedProcess.start(
            "roomlore", "--db", self._url, "serve", "--port", "0", environment=environment, folder=self._folder
        )
        while not (found := re.search(r"http://[^ ]+", (await self._process.stdout.readline()).decode())):
            assert not self._process.stdout.at_eof()
        self._at = found[0]

    async def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.communicate()

    async def ask(self) -> httpx.Response:
        return await self.client.post(f"{self._at}/privacy/forget", json={"user_id": MARIA, "confirm": True})

    async def jobs(self) -> list[dict[str, Any]]:
        return (await self.client.get(f"{self._at}/jobs?kind=forgetting")).json()["jobs"]

    async def until(self, status: str) -> None:
        async with asyncio.timeout(LONG):
            while [job["status"] for job in await self.jobs()] != [status]:  # noqa: ASYNC110 - another process's doing
                await asyncio.sleep(0.05)


@pytest.fixture(params=["sqlite_url", "postgres_url"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


@pytest.fixture
async def servers(url: str, tmp_path: Path) -> AsyncIterator[Servers]:
    started = Servers(url, tmp_path)
    yield started
    await started.kill()
    await started.client.aclose()


async def left(url: str) -> int:
    async with roomlore.open(url, background=False) as lore:
        return len(await lore.rooms.page(limit=ROOMS + 1)) - 1


async def test_a_killed_server_forgets_after_its_restart(url, servers, tmp_path):
    async with roomlore.open(url, background=False) as lore:
        own = [Message(id=f"{n}", room_id=f"den-{n}", sender_id=MARIA, text=f"{n}: {SECRET}") for n in range(ROOMS)]
        shared = [
            Message(id="1", room_id="tea", sender_id=MARIA, text=SECRET),
            Message(id="2", room_id="tea", sender_id="ben", text=f"> {SECRET}\n@{MARIA} which pot?", reply_to="1"),
        ]
        await lore.messages.add([*own, *shared])
    chance, places = random.Random(20261128), [await left(url)]
    await servers.start()
    asked = asyncio.create_task(servers.ask())
    for _ in range(KILLS):
        await servers.until("running")
        await asyncio.sleep(chance.uniform(0.1, 0.5))
        await servers.kill()
        places.append(await left(url))
        await servers.start()
    assert places[-1] > 0, "it was done before it could be killed"
    assert places == sorted(places, reverse=True), "each process went on"
    with pytest.raises(httpx.TransportError):
        await asked
    await servers.until("done")
    (job,) = await servers.jobs()
    assert (job["error"], "left" in job["progress"], MARIA in str(job)) == ("", False, False)
    told = (await servers.ask()).json()
    assert (told["found"], told["complete"]) == (False, True), "nothing is left"
    await servers.kill()
    async with roomlore.open(url, background=False) as lore:
        assert [one.room_id for one in await lore.rooms.page()] == ["tea"]
        (kept,) = await lore.messages.page("tea")
        assert (kept.sender_id, kept.text) == ("ben", "> [forgotten]\n@[forgotten] which pot?")
        assert (await lore.privacy.verify()).sound
    held = [path.name for path in sorted(tmp_path.glob("*.db*")) if MARIA.encode() in path.read_bytes()]
    assert held == []
