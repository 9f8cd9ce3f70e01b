"""Times single adds, contexts and searches, alone and many at once, on the library.

For each the wall time of one call (median; at once: all of them divided by their number) and the processor time of the
process, which holds on a shared machine where the wall time does not. To compare two versions, run the bench of one in
turn with that of the other: `PYTHONPATH=.../src python -m bench at-once`.
"""

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from statistics import median

import roomlore
from bench import databases
from bench.chatter import chat
from bench.took import timed

ROOMS = 10
Call = Callable[[str], Awaitable[object]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--messages", type=int, default=600, help=f"messages of each of {ROOMS} rooms")
    parser.add_argument("--calls", type=int, default=100, help="calls of each kind in a turn")
    parser.add_argument("--turns", type=int, default=5, help="turns; medians over them are printed")
    databases.add_argument(parser)


@dataclass(slots=True)
class Kind:
    """A kind of call, with the seconds that one took in each turn: on the wall, and of the processor."""

    name: str
    call: Call
    together: bool
    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)

    async def turn(self, calls: int) -> None:
        rooms = [name_of(number if self.together else 0) for number in range(calls)]
        processor, begun = time.process_time(), time.perf_counter()
        if self.together:
            await asyncio.gather(*map(self.call, rooms))
            self.wall.append((time.perf_counter() - begun) / calls)
        else:
            self.wall.append(median([await timed(self.call(room)) for room in rooms]))
        self.processor.append((time.process_time() - processor) / calls)


async def run(arguments: argparse.Namespace) -> None:
    with databases.database(arguments.database) as url:
        async with roomlore.open(url, settings=roomlore.Settings(), background=False) as lore:
            for number in range(ROOMS):
                await lore.messages.add(list(chat(name_of(number), arguments.messages)))
            measured = list(kinds(lore))
            for turn in range(-1, arguments.turns):
                for kind in measured:
                    await kind.turn(arguments.calls)
                if turn < 0:
                    for kind in measured:
                        kind.wall.clear()
                        kind.processor.clear()
    tell(measured, arguments)


def kinds(lore: roomlore.Lore) -> Iterator[Kind]:
    (message,) = chat("any", 1)
    words = " ".join(message.text.split()[:4])
    added = iter(range(10**9))

    async def add(room: str) -> None:
        await lore.messages.add(replace(message, id=f"added {next(added)}", room_id=room, sent_at=None))

    for together in (False, True):
        yield Kind("add", add, together)
        yield Kind("context", lambda room: lore.context.build(room), together)
        yield Kind("search", lambda room: lore.messages.search(room, words), together)


def name_of(number: int) -> str:
    return f"room {number % ROOMS}"


def tell(measured: list[Kind], arguments: argparse.Namespace) -> None:
    print(f"{ROOMS} rooms of {arguments.messages:,} messages; {arguments.turns} turns of {arguments.calls} calls.\n")
    print("| call | | ms | processor ms |\n|---|---|---|---|")
    for kind in measured:
        how = "at once" if kind.together else "alone"
        print(f"| {kind.name} | {how} | {1000 * median(kind.wall):.2f} | {1000 * median(kind.processor):.2f} |")
