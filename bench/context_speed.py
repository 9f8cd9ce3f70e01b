"""Times a context against the plain newest-rows query, a large store against a small one, and ingest.

All figures of one run come from the same machine, port and process, with the kinds of call taken in turn, so the ratios
hold where absolute times do not. The store is filled through the storage port with rooms that were really ingested once
and then repeated under other names.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from statistics import median

import roomlore
from bench.chatter import chat
from roomlore.adapters.sql import connect
from roomlore.core.models import Entry

ROOM = 1_000
TENANT = "default"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--messages", type=int, default=10_000, help="messages of the small store")
    parser.add_argument("--large", type=int, default=1_000_000, help="messages of the large store")
    parser.add_argument("--ingest", type=int, default=5_000, help="messages added to time ingest")
    parser.add_argument("--reads", type=int, default=1_000, help="contexts built on each store")
    parser.add_argument("--url", help="the database to use instead of two new SQLite files (it must be empty)")


async def run(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        entries = await ingested(ROOM)
        sizes = [arguments.messages, arguments.large]
        urls = [f"sqlite:///{Path(folder) / str(size)}.db" for size in sizes]
        for url, size in zip(urls, sizes, strict=True):
            started = time.perf_counter()
            await fill(url, entries, size)
            print(f"filled a store with {size:,} messages in {time.perf_counter() - started:.0f} s", flush=True)
        await compare(urls, sizes, arguments)


async def ingested(count: int) -> list[Entry]:
    async with roomlore.open("sqlite://", settings=quiet()) as lore:
        await lore.messages.add(list(chat("seed", count)))
        return [await lore.messages.get("seed", str(number)) for number in range(count)]


def quiet() -> roomlore.Settings:
    return roomlore.Settings(enable_async_data_collection=False, fallback_on_error=False)


async def fill(url: str, entries: list[Entry], size: int) -> None:
    storage = await connect(url)
    try:
        for number in range(size // len(entries)):
            room_id = f"room-{number}"
            copies = [replace(entry, message=replace(entry.message, room_id=room_id)) for entry in entries]
            async with storage.writing() as work:
                await work.rooms.lock(tenant=TENANT, room_id=room_id, now=copies[0].message.at)
                await work.writer.append(tenant=TENANT, room_id=room_id, entries=copies)
    finally:
        await storage.close()


async def timed(call: Callable[[], Awaitable[object]]) -> float:
    started = time.perf_counter()
    await call()
    return time.perf_counter() - started


async def compare(urls: list[str], sizes: list[int], arguments: argparse.Namespace) -> None:
    plain: list[list[float]] = [[], []]
    built: list[list[float]] = [[], []]
    rates: list[list[float]] = [[], []]
    rng = random.Random(11)
    async with roomlore.open(urls[0], settings=quiet()) as small, roomlore.open(urls[1], settings=quiet()) as large:
        lores = (small, large)
        storages = [lore.storage for lore in lores]
        for _ in range(arguments.reads):
            for place in (0, 1):
                room = f"room-{rng.randrange(sizes[place] // ROOM)}"
                number = rng.randrange(100, ROOM)

                async def window(storage=storages[place], room=room, number=number) -> object:
                    async with storage.reading() as work:
                        return await work.messages.recent(tenant=TENANT, room_id=room, limit=20, before=number + 1)

                async def context(lore=lores[place], room=room, number=number) -> object:
                    return await lore.context.build(room, str(number))

                first, second = (window, context) if rng.random() < 0.5 else (context, window)
                for call in (first, second):
                    (plain if call is window else built)[place].append(await timed(call))
        step = 500
        for start in range(0, arguments.ingest, step):
            for place in (0, 1):
                batch = [m for m in chat(f"new-{start}", step, seed=start)]
                rates[place].append(step / await timed(lambda lore=lores[place], batch=batch: lore.messages.add(batch)))
    report(sizes, plain, built, rates)


def report(sizes: list[int], plain: list[list[float]], built: list[list[float]], rates: list[list[float]]) -> None:
    for place, size in enumerate(sizes):
        window, context = median(plain[place]) * 1e3, median(built[place]) * 1e3
        print(
            f"{size:>9,} messages: last 20 rows {window:.2f} ms, context {context:.2f} ms, ratio {context / window:.2f}; "
            f"ingest {median(rates[place]):,.0f} messages/s"
        )
    print(f"context, large store against small: {median(built[1]) / median(built[0]):.2f}")
    print(f"ingest cost a message, large store against small: {median(rates[0]) / median(rates[1]):.2f}")
