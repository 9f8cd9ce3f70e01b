"""Memory of one process that takes messages of very many rooms, in large batches.

Every message opens a room of its own. Printed is what the process holds (resident) before, and after each tenth; the
last line is the one to compare. The goal is under 600 MB after 100,000 rooms.
"""

import argparse
import resource
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import roomlore
from bench import databases
from bench.progress import Progress
from roomlore import Message

_TEXT = "Room {number}: shall we meet on Monday at 10:30 in the small hall? 周一十点半在小会议室见，可以吗？"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rooms", type=int, default=100_000, help="rooms, of one message each")
    parser.add_argument("--batch", type=int, default=10_000, help="messages in one call")
    databases.add_argument(parser)


async def run(arguments: argparse.Namespace) -> None:
    with ExitStack() as closing:
        url = closing.enter_context(databases.database(arguments.database))
        async with roomlore.open(url) as lore:
            print("| rooms | resident | highest | messages a second |\n|---:|---:|---:|---:|")
            _tell(0, 0.0)
            progress = Progress("rooms", arguments.rooms)
            for first in range(0, arguments.rooms, arguments.batch):
                numbers = range(first, min(first + arguments.batch, arguments.rooms))
                began = time.perf_counter()
                await lore.messages.add([_message(number) for number in numbers])
                _tell(numbers.stop, len(numbers) / (time.perf_counter() - began))
                progress.at(numbers.stop)


def _message(number: int) -> Message:
    return Message(id="1", room_id=f"room-{number}", sender_id=f"person-{number}", text=_TEXT.format(number=number))


def _tell(rooms: int, rate: float) -> None:
    print(f"| {rooms:,} | {resident() / 1e6:,.0f} MB | {_highest() / 1e6:,.0f} MB | {rate:,.0f} |", flush=True)


def resident() -> int:
    """Bytes, of Linux; elsewhere the highest there was."""
    known = Path("/proc/self/statm")
    return int(known.read_text().split()[1]) * resource.getpagesize() if known.exists() else _highest()


def _highest() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
