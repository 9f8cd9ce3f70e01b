"""Times the main calls in stores of different sizes: do they take longer if the database holds more of other rooms?

Each store has one room with a tenth of the messages, and many of one size. Most are copies of rooms that were really
ingested (`bench.copied_store`). The stores take turns in one process, so the ratios hold where absolute times do not.
Every call reads a room that the process has not read before, except those of the large room. The person who is
forgotten said one thing. `--verify` also checks each store, which takes minutes for a million messages.
"""

import argparse
import random
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import roomlore
from bench import copied_store, databases
from bench.built_store import MadeUpRoom, opened
from bench.context_speed import timed
from bench.many_rooms import resident
from bench.search_speed import database, question
from roomlore import Message

_SEED = 3
_LARGE = "room-0"
_DIGEST = timedelta(hours=2)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--messages", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--room", type=int, default=1_000, help="messages of every other room")
    parser.add_argument("--rounds", type=int, default=40, help="times that each call is made in each store")
    parser.add_argument("--verify", action="store_true", help="verify each store at the end")
    parser.add_argument("--store", type=Path, help="a folder that keeps SQLite files for the next run")
    databases.add_argument(parser)


@dataclass(slots=True)
class Subject:
    """One store. `fresh`: its rooms that were not read yet. `newest`: the id of the last message of each. `said`: texts
    like theirs. `seconds`: of each call."""

    messages: int
    lore: roomlore.Lore
    fresh: list[str]
    newest: str
    said: list[str]
    rng: random.Random = field(default_factory=lambda: random.Random(_SEED))
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    @property
    def large(self) -> int:
        """Messages of the large room."""
        return self.messages // 10


async def run(arguments: argparse.Namespace) -> None:
    async with AsyncExitStack() as closing:
        folder = arguments.store or Path(closing.enter_context(TemporaryDirectory(prefix="roomlore-growth-")))
        folder.mkdir(parents=True, exist_ok=True)
        server = closing.enter_context(databases.database(arguments.database)) if arguments.database else None
        subjects, said = [], [message.text for message in MadeUpRoom(1, arguments.room).said()]
        for messages in sorted(arguments.messages):
            url = database(folder, server, f"growth_{messages}")
            await copied_store.build(url, messages, big=messages // 10, room=arguments.room)
            fresh = [f"room-{number}" for number in range(1, (messages - messages // 10) // arguments.room + 1)]
            random.Random(_SEED).shuffle(fresh)
            lore = await closing.enter_async_context(opened(url, plain=True))
            subjects.append(Subject(messages, lore, fresh, str(arguments.room - 1), said))
        before = resident()
        print(_head(subjects), flush=True)
        for name, (call, most) in CALLS.items():
            for turn in range(min(most, arguments.rounds)):
                for one in subjects if turn % 2 else reversed(subjects):
                    one.seconds[name].append(await call(one))
            print(_row(name, subjects), flush=True)
        print(f"\nresident: {before / 1e6:,.0f} MB before the calls, {resident() / 1e6:,.0f} MB after them", flush=True)
        for one in subjects if arguments.verify else ():
            began = time.perf_counter()
            report = await one.lore.privacy.verify()
            took = time.perf_counter() - began
            print(
                f"{one.messages:,} messages verified in {took:,.0f} s: {'sound' if report.sound else report}",
                flush=True,
            )


async def _context(one: Subject) -> float:
    return await timed(one.lore.context.build(one.fresh.pop(), one.newest))


async def _search(one: Subject) -> float:
    return await timed(one.lore.messages.search(one.fresh.pop(), question(one.rng, one.said)))


async def _add(one: Subject) -> float:
    return await timed(one.lore.messages.add(_message(one, one.fresh.pop(), "ann")))


async def _digest(one: Subject) -> float:
    room_id = one.fresh.pop()
    last = (await one.lore.messages.get(room_id, one.newest)).message.at
    return await timed(one.lore.digest(room_id, since=last - _DIGEST, mode="offline"))


async def _recall(one: Subject) -> float:
    scope = f"group:{one.fresh.pop()}"
    await one.lore.memories.add(scope, "They roll the database back on the first Monday of the month")
    asked = [{"role": "user", "content": "When do they roll the database back? 数据库什么时候回滚？"}]
    return await timed(one.lore.recall.build([scope], asked))


async def _context_of_the_large(one: Subject) -> float:
    return await timed(one.lore.context.build(_LARGE, str(one.rng.randrange(one.large // 2, one.large))))


async def _search_in_the_large(one: Subject) -> float:
    return await timed(one.lore.messages.search(_LARGE, question(one.rng, one.said)))


async def _add_to_the_large(one: Subject) -> float:
    return await timed(one.lore.messages.add(_message(one, _LARGE, "ann")))


async def _forget(one: Subject) -> float:
    room_id = one.fresh.pop()
    person = f"visitor-of-{room_id}"
    await one.lore.messages.add(_message(one, room_id, person))
    return await timed(one.lore.privacy.forget(person))


CALLS: dict[str, tuple[Callable[[Subject], Awaitable[float]], int]] = {
    "context": (_context, 10**9),
    "search of a room": (_search, 10**9),
    "add a message": (_add, 10**9),
    "digest of two hours": (_digest, 10**9),
    "recall": (_recall, 10**9),
    "context, in the large room": (_context_of_the_large, 10**9),
    "search of the large room": (_search_in_the_large, 10),
    "add a message, to the large room": (_add_to_the_large, 10**9),
    "forget a person": (_forget, 3),
}
"""Each call, and how many times it is made at most in each store."""


def _message(one: Subject, room_id: str, sender_id: str) -> Message:
    said = one.rng.choice(one.said)
    return Message(id=f"{sender_id}-{one.rng.random()}", room_id=room_id, sender_id=sender_id, text=said)


def _head(subjects: Sequence[Subject]) -> str:
    sizes = " | ".join(f"{one.messages:,} messages, ms" for one in subjects)
    return f"| call | {sizes} | last against first |\n|---|{'---:|' * (len(subjects) + 1)}"


def _row(name: str, subjects: Sequence[Subject]) -> str:
    medians = [median(one.seconds[name]) * 1e3 for one in subjects]
    return f"| {name} | {' | '.join(f'{ms:,.1f}' for ms in medians)} | {medians[-1] / medians[0]:.2f} |"
