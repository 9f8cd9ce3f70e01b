"""`roomlore serve` on one database, one process after another, which a test kills."""

import asyncio
import os
import re
from pathlib import Path
from typing import Any

import httpx

from forked_process import ForkedProcess

LONG = 120


class Servers:
    """The server, one process after another. None outlives its test. `at`: the address of the one that is up."""

    at: str

    def __init__(self, url: str, folder: Path) -> None:
        self._url, self._folder = url, str(folder)
        self._process: ForkedProcess | None = None
        self.client = httpx.AsyncClient(timeout=LONG)

    async def start(self) -> None:
        await self.begin()
        while not (found := re.search(r"http://[^ ]+", (await self._process.stdout.readline()).decode())):
            assert not self._process.stdout.at_eof()
        self.at = found[0]

    async def begin(self) -> None:
        """Start the process, which does not answer yet."""
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", "MEMORY_LOG_LEVEL": "error"}
        self._process = await ForkedProcess.start(
            "roomlore", "--db", self._url, "serve", "--port", "0", environment=environment, folder=self._folder
        )

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def kill(self) -> None:
        if self.alive:
            self._process.kill()
            await self._process.communicate()

    async def close(self) -> None:
        await self.kill()
        await self.client.aclose()

    async def forget(self, user_id: str) -> httpx.Response:
        return await self.client.post(f"{self.at}/privacy/forget", json={"user_id": user_id, "confirm": True})

    async def jobs(self, kind: str) -> list[dict[str, Any]]:
        return (await self.client.get(f"{self.at}/jobs?kind={kind}")).json()["jobs"]

    async def until(self, kind: str, status: str, *, seconds: float = LONG) -> None:
        """Come back once there are jobs of this kind, and all have this status."""
        async with asyncio.timeout(seconds):
            while {job["status"] for job in await self.jobs(kind)} != {status}:  # noqa: ASYNC110 - another process's doing
                await asyncio.sleep(0.05)
