"""Clients of a server that a test kills: they repeat each request until it is answered."""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx
import pytest
from served import Servers

import roomlore
from relink_rig import told
from roomlore import Message

_AT_ONCE = 1_000


async def fill(url: str, chain: int, others: Sequence[Message]) -> None:
    """Store a chain of replies of this length (m1, m2, ...), and other messages."""
    replies = [told(number, id=f"m{number}", reply_to=f"m{number - 1}") for number in range(1, chain + 1)]
    async with roomlore.open(url, background=False) as lore:
        for messages in (replies, others):
            for start in range(0, len(messages), _AT_ONCE):
                await lore.messages.add(messages[start : start + _AT_ONCE])


@dataclass
class Clients:
    """`up`: is set while the server runs. `took`: by name, how many seconds each answer took that came. `last`: by
    task, its last request and what came of it."""

    servers: Servers
    up: asyncio.Event = field(default_factory=asyncio.Event)
    took: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    last: dict[str, str] = field(default_factory=dict)

    @asynccontextmanager
    async def within(self, seconds: float) -> AsyncIterator[None]:
        """Fail after so many seconds, and tell what each client was at."""
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError:
            told = "\n".join(f"{task}: {last}" for task, last in self.last.items())
            pytest.fail(f"not done in {seconds} seconds; the server is {'up' if self.up.is_set() else 'down'}\n{told}")

    async def ask(
        self, name: str, verb: str, path: str, *, refused: Collection[int] = (), **given: object
    ) -> httpx.Response:
        """Return the answer, which is a success or has one of the statuses `refused`."""
        task, at = asyncio.current_task().get_name(), f"{verb} {path}"
        while True:
            self.last[task] = f"{at} waits for a server"
            await self.up.wait()
            begun = time.monotonic()
            self.last[task] = f"{at} is asked since {time.strftime('%X')}"
            try:
                answer = await self.servers.client.request(verb, f"{self.servers.at}{path}", **given)
            except httpx.TransportError:
                await asyncio.sleep(0.01)
                assert not self.up.is_set() or self.servers.alive, "the server ended by itself"
                continue
            self.took[name].append(time.monotonic() - begun)
            self.last[task] = f"{at}: {answer.status_code} {answer.text:.2000} at {time.strftime('%X')}"
            assert answer.is_success or answer.status_code in refused, self.last[task]
            return answer

    async def kill(self) -> None:
        self.up.clear()
        await self.servers.kill()

    async def start(self) -> None:
        await self.servers.start()
        self.up.set()
