"""Run by the Python of each build that `two-builds` compares: does one piece of work, and prints what it took as JSON.

Only what both builds have is used: `roomlore.open`, `messages.add`, `messages.search` and `context.build`.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from statistics import fmean

import roomlore
from bench.chatter import chat
from bench.took import Took, medians, took

ROOMS = 10
WARM = 400
"""Messages of each room before anything is timed: the linker sees a full window."""
BATCH = 500
ROOM = 1_000
SMALL_ROOMS = 100

Figures = dict[str, float]
Talk = list[list[roomlore.Message]]


async def add(lore: roomlore.Lore, count: int) -> Figures:
    """Add `count` messages one a call, in rooms that take turns."""
    said = await warmed(lore, count)
    return figures([await took(lore.messages.add(message)) for message in new(said)])


async def batch(lore: roomlore.Lore, count: int) -> Figures:
    """Add `count` messages in batches of one room, in new rooms of `ROOM` messages. Times are of a message."""
    spent = []
    for number in range(max(1, count // ROOM)):
        room = said_in(number, min(ROOM, count))
        for first in range(0, len(room), BATCH):
            part = room[first : first + BATCH]
            spent.append((await took(lore.messages.add(part))).each(len(part)))
    return figures(spent)


async def context(lore: roomlore.Lore, count: int) -> Figures:
    """Build a context for the newest message of a room, which came just before, as a bot does."""
    spent = []
    for message in new(await warmed(lore, count)):
        await lore.messages.add(message)
        spent.append(await took(lore.context.build(message.room_id, message.id)))
    return figures(spent)


async def search(lore: roomlore.Lore, count: int) -> Figures:
    """Search for words that somebody said in the room, in rooms that take turns; a message comes before every tenth."""
    said = await warmed(lore, count // 10)
    coming, spent = new(said), []
    for number in range(count):
        if number % 10 == 0:
            await lore.messages.add(next(coming))
        room = said[number % ROOMS]
        query = " ".join(room[number * 31 % WARM].text.split()[:4])
        spent.append(await took(lore.messages.search(room[0].room_id, query)))
    return figures(spent)


async def memory(lore: roomlore.Lore, count: int) -> Figures:
    """Add one batch with `count` messages of each of 100 small rooms."""
    said = [message for number in range(SMALL_ROOMS) for message in said_in(number, count)]
    before = megabytes("VmRSS")
    await lore.messages.add(said)
    return {"MB before": before, "MB after": megabytes("VmRSS"), "highest MB": megabytes("VmHWM")}


async def warmed(lore: roomlore.Lore, new_ones: int) -> Talk:
    """Store `WARM` messages of each room. Return what is said there, with `new_ones` more in all rooms together."""
    said = [said_in(number, WARM + max(1, new_ones // ROOMS)) for number in range(ROOMS)]
    for room in said:
        await lore.messages.add(room[:WARM])
    return said


def new(said: Talk) -> Iterator[roomlore.Message]:
    """Yield what is not stored yet, the rooms taking turns."""
    return (room[number] for number in range(WARM, len(said[0])) for room in said)


def said_in(number: int, count: int) -> list[roomlore.Message]:
    return list(chat(f"room-{number}", count, seed=number, words=7))


def figures(calls: Sequence[Took]) -> Figures:
    """Return mean and median, without the first tenth, which warms up."""
    calls = calls[len(calls) // 10 :]
    middle = medians(calls)
    mean = fmean(call.processor for call in calls)
    times = {"processor ms": mean, "median processor ms": middle.processor, "median wall ms": middle.wall}
    return {name: 1000 * seconds for name, seconds in times.items()}


def megabytes(name: str) -> float:
    """Return a figure of the memory of this process. That of `resource` has the highest of the parent in it."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) / 1024


WORK: dict[str, Callable[[roomlore.Lore, int], Awaitable[Figures]]] = {
    "add": add,
    "batch": batch,
    "context": context,
    "search": search,
    "memory": memory,
}


async def main(url: str, name: str, count: int) -> None:
    settings = roomlore.Settings(enable_async_data_collection=False)
    async with roomlore.open(url, settings=settings, background=False) as lore:
        print(json.dumps(await WORK[name](lore, count)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
