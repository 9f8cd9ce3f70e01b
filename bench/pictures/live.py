"""`roomlore serve` on a store of its own, and something for it to do: the page of health shows what really ran."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import uvicorn

from bench.pictures import nights
from bench.pictures.console_store import fill
from bench.pictures.held import held
from roomlore.samples import DEMO_ROOM, demo_path
from roomlore_testkit.model_server import ModelServer

BUSY_SECONDS = 95.0
_WAVES = (2, 5, 9, 12, 9, 5, 3, 6, 11, 7)
"""Requests of each kind in a second, one after the other and again."""
_QUESTIONS = ("what about the BOM", "今天谁值班", "release notes", "乱码怎么修", "who is on call on Friday", "粽子")


@asynccontextmanager
async def live() -> AsyncIterator[str]:
    """The address of a server that has been busy for `BUSY_SECONDS` and still is."""
    with TemporaryDirectory(prefix="roomlore-live-") as folder:
        url = f"sqlite:///{Path(folder) / 'live.db'}"
        await _make(url)
        async with served(url, folder) as address, httpx.AsyncClient(base_url=address, timeout=60) as asking:
            busy = asyncio.create_task(_keep_busy(asking))
            try:
                await asyncio.wait([busy], timeout=BUSY_SECONDS)
                if busy.done():
                    busy.result()
                yield address
            finally:
                busy.cancel()
                await asyncio.wait([busy])


@asynccontextmanager
async def served(url: str, folder: str) -> AsyncIterator[str]:
    """Yield the address of `roomlore serve` on this store."""
    command = [sys.executable, "-m", "roomlore", "--db", url, "serve", "--port", "0"]
    pipe = asyncio.subprocess.PIPE
    server = await asyncio.create_subprocess_exec(*command, cwd=folder, stdout=pipe, stderr=asyncio.subprocess.DEVNULL)
    try:
        assert server.stdout is not None
        line = await server.stdout.readline()
        yield line.decode().split(" listens on ")[1].split()[0]
    finally:
        server.terminate()
        await server.wait()


@asynccontextmanager
async def listening(app: Any) -> AsyncIterator[str]:
    """Serve an ASGI app in this process at a free port and yield its URL."""
    config = uvicorn.Config(app, port=0, log_config=None, access_log=False, lifespan="off")
    server = uvicorn.Server(config)
    door = config.bind_socket()
    running = asyncio.create_task(server.serve([door]))
    try:
        yield f"http://127.0.0.1:{door.getsockname()[1]}"
    finally:
        server.should_exit = True
        await running
        door.close()


async def _make(url: str) -> None:
    async with ModelServer(nights.Script()) as model, held(nights.settings(model), url=url) as (lore, clock):
        await fill(lore, clock)


async def _keep_busy(asking: httpx.AsyncClient) -> None:
    """Messages, contexts, searches and an evolution, now more and now less."""
    rows = [json.loads(line) for line in demo_path().read_text(encoding="utf-8").splitlines()]
    (await asking.post(f"/memory/evolve/{DEMO_ROOM}", params={"mode": "offline", "days": 365})).raise_for_status()
    loop = asyncio.get_running_loop()
    begun, done = loop.time(), 0
    while True:
        passed = loop.time() - begun
        for _ in range(_WAVES[int(passed / 10) % len(_WAVES)]):
            await _ask(asking, rows[done % len(rows)], done)
            done += 1
        await asyncio.sleep(max(0.0, begun + int(passed) + 1 - loop.time()))


async def _ask(asking: httpx.AsyncClient, row: Mapping[str, Any], number: int) -> None:
    message = {**row, "id": f"x{number}", "room_id": "harbour-live", "sent_at": None, "reply_to": None}
    for answer in (
        await asking.post("/messages", json=message),
        await asking.post("/context", json={"room_id": DEMO_ROOM, "message_id": row["id"]}),
        await asking.get("/messages/search", params={"room_id": DEMO_ROOM, "q": _QUESTIONS[number % len(_QUESTIONS)]}),
    ):
        answer.raise_for_status()
