"""Run by the Python of each build that `two-builds` compares: does one piece of work, and prints what it took as JSON.

Only what both builds have is used: `roomlore.open`, `messages.add`, `messages.search` and `context.build`.
"""

import asyncio
import json
import resource
import sys
import time
from collections.abc import Awaitable, Callable
from statistics import median
from typing import Any

import roomlore
from bench.chatter import chat

ROOMS = 10
WARM = 400
"""Messages of each room before anything is timed: the linker sees a full window."""
BATCH = 500
SMALL_ROOMS = 100

Work = Callable[[roomlore.Lore, int], Awaitable[dict[str, Any]]]


def milliseconds(used: float, count: int) -> float:
    return 1000 * used / count


async def add(lore: roomlore.Lore, count: int) -> dict[str, Any]:
    """Add `count` messages one a call, in rooms that take turns."""
    said = await warmed(lore, WARM + count // ROOMS)
    waiting = [message for number in range(count // ROOMS) for message in (room[WARM + number] for room in said)]
    took = []
    used = time.process_time()
    for message in waiting:
        begun = time.perf_counter()
        await lore.messages.add(message)
        took.append(time.perf_counter() - begun)
    return {"processor": milliseconds(time.process_time() - used, len(waiting)), "median": 1000 * median(took)}


async def batch(lore: roomlore.Lore, count: int) -> dict[str, Any]:
    """Add `count` messages in batches of one room, each room new."""
    said = [list(chat(f"new-{number}", 1_000, seed=number)) for number in range(max(1, count // 1_000))]
    used = time.process_time()
    for room in said:
        for first in range(0, len(room), BATCH):
            await lore.messages.add(room[first : first + BATCH])
    return {"processor": milliseconds(time.process_time() - used, sum(map(len, said)))}


async def context(lore: roomlore.Lore, count: int) -> dict[str, Any]:
    """Build a context for the newest message of a room, which came just before, as a bot does."""
    said = await warmed(lore, WARM + count // ROOMS)
    used, took = 0.0, []
    for number in range(count // ROOMS):
        for room in said:
            message = room[WARM + number]
            await lore.messages.add(message)
            begun, begun_clock = time.process_time(), time.perf_counter()
            await lore.context.build(message.room_id, message.id)
            took.append(time.perf_counter() - begun_clock)
            used += time.process_time() - begun
    return {"processor": milliseconds(used, len(took)), "median": 1000 * median(took)}


async def search(lore: roomlore.Lore, count: int) -> dict[str, Any]:
    """Search a small room, one message of which came just before every tenth search."""
    said = await warmed(lore, WARM + count // ROOMS)
    queries = [" ".join(message.text.split()[:4]) for room in said for message in room[:WARM:7]]
    used, took = 0.0, []
    for number in range(count):
        room = said[number % ROOMS]
        if number % 10 == 0:
            await lore.messages.add(said[number // 10 % ROOMS][WARM + number // 10 // ROOMS])
        begun, begun_clock = time.process_time(), time.perf_counter()
        await lore.messages.search(room[0].room_id, queries[number * 31 % len(queries)])
        took.append(time.perf_counter() - begun_clock)
        used += time.process_time() - begun
    return {"processor": milliseconds(used, len(took)), "median": 1000 * median(took)}


async def memory(lore: roomlore.Lore, count: int) -> dict[str, Any]:
    """Add one batch with messages of 100 small rooms. Memory is in MB, the highest so far."""
    said = [message for number in range(SMALL_ROOMS) for message in chat(f"room-{number}", count, seed=number)]
    before = peak_mb()
    await lore.messages.add(said)
    return {"before": before, "after": peak_mb()}


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def warmed(lore: roomlore.Lore, count: int) -> list[list[roomlore.Message]]:
    """Return what is said in the rooms, with the first `WARM` messages of each stored."""
    said = [list(chat(f"room-{number}", count, seed=number)) for number in range(ROOMS)]
    for room in said:
        await lore.messages.add(room[:WARM])
    return said


WORK: dict[str, Work] = {"add": add, "batch": batch, "context": context, "search": search, "memory": memory}


async def main(url: str, name: str, count: int) -> None:
    settings = roomlore.Settings(enable_async_data_collection=False)
    async with roomlore.open(url, settings=settings, background=False) as lore:
        print(json.dumps(await WORK[name](lore, count)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
