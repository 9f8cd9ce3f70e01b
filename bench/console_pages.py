"""Times each page of the console in a store of a million messages against the same page in a small one.

Both stores are made-up chat that is really ingested: one big room of a tenth of the messages, and rooms of 1,000. The
same requests go to both in turn, in this process and without a network, so the ratios hold where absolute times do not.
The first visit of a page, in a store just opened, is told by itself; the small store is visited before. CPU is what
this process took, whoever else is busy on the machine.
"""

import argparse
import logging
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from urllib.parse import urlencode

import httpx
import structlog

import roomlore
from bench.built_store import MadeUpRoom, fill, opened
from roomlore.core.memory.memory import Source
from roomlore_server.http import create_app

_ROOM_ID = "room-0"
_SCOPE = f"group:{_ROOM_ID}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--messages", type=int, default=1_000_000, help="messages of the large store")
    parser.add_argument("--small", type=int, default=10_000, help="messages of the small store")
    parser.add_argument("--room", type=int, default=1_000, help="messages of a small room")
    parser.add_argument("--memories", type=int, default=200, help="memories of the big room")
    parser.add_argument("--turns", type=int, default=15, help="visits of each page after the first")
    parser.add_argument("--store", type=Path, help="a folder that keeps the stores for the next run")


async def run(arguments: argparse.Namespace) -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    with TemporaryDirectory() as folder:
        kept = arguments.store or Path(folder)
        kept.mkdir(parents=True, exist_ok=True)
        small_url = await _store(kept, arguments.small, arguments)
        large_url = await _store(kept, arguments.messages, arguments)
        async with _visited("small", small_url) as small, _visited("large", large_url) as large:
            for turn in range(arguments.turns + 1):
                for page in (large, small) if turn % 2 else (small, large):
                    await page.visit()
            _print(small, large, arguments)


@dataclass(slots=True)
class Visited:
    """A store's console. `took`: seconds of each visit, by page; `cpu`: of this process; `length`: bytes of the last
    answer."""

    name: str
    http: httpx.AsyncClient
    pages: Mapping[str, str]
    took: dict[str, list[float]] = field(default_factory=dict)
    cpu: dict[str, list[float]] = field(default_factory=dict)
    length: dict[str, int] = field(default_factory=dict)

    async def visit(self) -> None:
        """Every page once. Raises `RuntimeError` where one cannot be shown."""
        for page, address in self.pages.items():
            begun, worked = time.perf_counter(), time.process_time()
            answer = await self.http.get(address)
            self.took.setdefault(page, []).append(time.perf_counter() - begun)
            self.cpu.setdefault(page, []).append(time.process_time() - worked)
            self.length[page] = len(answer.content)
            if answer.status_code != 200:
                raise RuntimeError(f"{address}: {answer.status_code}")


async def _store(folder: Path, messages: int, arguments: argparse.Namespace) -> str:
    room = arguments.room
    big = MadeUpRoom(0, max(room, messages // 10))
    rooms = [big, *(MadeUpRoom(number, room) for number in range(1, 1 + (messages - big.messages) // room))]
    url = f"sqlite:///{folder / f'console_{messages}.db'}"
    await fill(url, rooms, plain=True)
    async with opened(url, plain=True) as lore:
        for number in range(await lore.memories.count(_SCOPE), arguments.memories):
            statement = f"第 {number} 周五 they meet at {number % 24}:00"
            await lore.memories.add(_SCOPE, statement, sources=[Source(_ROOM_ID, str(number))])
            if number % 10 == 0:
                await lore.sessions.write_turn(f"session-{number}", "anna", "bot", statement, "好的, noted")
    return url


@asynccontextmanager
async def _visited(name: str, url: str) -> AsyncIterator[Visited]:
    async with opened(url, plain=True) as lore:
        transport = httpx.ASGITransport(create_app(lore), client=("127.0.0.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            yield Visited(name, http, await _pages(lore))


async def _pages(lore: roomlore.Lore) -> Mapping[str, str]:
    room = await lore.rooms.get(_ROOM_ID)
    newest = str(room.messages - 1)
    memory = (await lore.memories.page(_SCOPE, limit=1))[0].memory_id
    spoke = (await lore.messages.get(_ROOM_ID, newest)).message.sender_id
    middle = room.next_arrival // 2
    return {
        "today": _at(""),
        "rooms": _at("/rooms"),
        "rooms, from the middle": _at("/rooms", offset=5),
        "room": _at("/room", id=_ROOM_ID),
        "room, from the middle": _at("/room", id=_ROOM_ID, before=middle),
        "room, 500 messages": _at("/room", id=_ROOM_ID, limit=500),
        "people": _at("/people"),
        "person": _at("/person", id=spoke),
        "search": _at("/search", q="周五 meet"),
        "thread": _at("/thread", id=_ROOM_ID, message=newest),
        "context": _at("/context", room=_ROOM_ID, message=newest),
        "context, from the middle": _at("/context", room=_ROOM_ID, message=middle),
        "sessions": _at("/sessions"),
        "session": _at("/session", id="session-0"),
        "memories": _at("/memories"),
        "memory": _at("/memory", id=_ROOM_ID),
        "memory, then": _at("/memory", id=_ROOM_ID, step=50),
        "blame": _at("/memory/one", id=memory),
        "recall": _at("/recall", scopes=_SCOPE, q="周五 meet"),
        "jobs": _at("/jobs"),
        "health": _at("/health"),
    }


def _at(path: str, **query: object) -> str:
    return f"/console{path}?{urlencode(query)}"


def _print(small: Visited, large: Visited, arguments: argparse.Namespace) -> None:
    print(f"{arguments.messages:,} messages against {arguments.small:,}, ms; medians of {arguments.turns} visits\n")
    print("| page | small | large | ratio | large: worst | large: first visit | CPU: small | large | ratio | KiB |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for page, took in large.took.items():
        first, *later = (1000 * seconds for seconds in took)
        before, now = 1000 * median(small.took[page][1:]), median(later)
        cpu_before, cpu = (1000 * median(server.cpu[page][1:]) for server in (small, large))
        print(
            f"| {page} | {before:.1f} | {now:.1f} | {now / before:.2f} | {max(later):.1f} | {first:.1f} "
            f"| {cpu_before:.1f} | {cpu:.1f} | {cpu / cpu_before:.2f} | {large.length[page] / 1024:.0f} |"
        )
