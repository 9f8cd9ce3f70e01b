"""Times the main calls in stores of different sizes: do they take longer if the database holds more of other rooms?

Each store has one room with a tenth of the messages, and many of one size. Most are copies of rooms that were really
ingested (`bench.copied_store`). The stores take turns in one process, so the ratios hold where absolute times do not.
A call is made twice in a room and the second one is timed, or in rooms that the process did not read before. The person
who is forgotten said one thing. `--verify` also checks each store, which takes minutes for a million messages.
"""

import argparse
import random
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, ExitStack
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
    """One store. `lore`: opened anew for each kind of call, so that nothing of its rooms is in memory. `fresh`: its
    rooms that this call did not read yet. `newest`: the id of the last message of each. `said`: texts like theirs.
    `seconds`: of each call."""

    messages: int
    url: str
    rooms: int
    newest: str
    said: list[str]
    lore: roomlore.Lore = field(init=False)
    fresh: list[str] = field(init=False)
    rng: random.Random = field(default_factory=lambda: random.Random(_SEED))
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    @property
    def large(self) -> int:
        """Messages of the large room."""
        return self.messages // 10

    def begin(self, lore: roomlore.Lore) -> None:
        self.lore = lore
        self.fresh = [f"room-{number}" for number in range(1, self.rooms + 1)]
        self.rng.shuffle(self.fresh)


async def run(arguments: argparse.Namespace) -> None:
    with ExitStack() as closing:
        folder = arguments.store or Path(closing.enter_context(TemporaryDirectory(prefix="roomlore-growth-")))
        folder.mkdir(parents=True, exist_ok=True)
        server = closing.enter_context(databases.database(arguments.database)) if arguments.database else None
        subjects, said = [], [message.text for message in MadeUpRoom(1, arguments.room).said()]
        for messages in sorted(arguments.messages):
            url = database(folder, server, f"growth_{messages}")
            await copied_store.build(url, messages, big=messages // 10, room=arguments.room)
            rooms = (messages - messages // 10) // arguments.room
            subjects.append(Subject(messages, url, rooms, str(arguments.room - 1), said))
        print(_head(subjects), flush=True)
        for name, kind in CALLS.items():
            await _in_turn(subjects, name, kind, min(kind.most, arguments.rounds))
            print(_row(name, subjects), flush=True)
        print(f"\nresident: {resident() / 1e6:,.0f} MB", flush=True)
        for one in subjects if arguments.verify else ():
            await _verify(one)


async def _in_turn(subjects: Sequence[Subject], name: str, kind: "Kind", rounds: int) -> None:
    async with AsyncExitStack() as closing:
        for one in subjects:
            one.begin(await closing.enter_async_context(opened(one.url, plain=True)))
        for turn in range(rounds):
            for one in subjects if turn % 2 else reversed(subjects):
                room_id = _LARGE if kind.large else one.fresh.pop()
                if kind.again:
                    await kind.call(one, room_id)
                one.seconds[name].append(await kind.call(one, room_id))


async def _verify(one: Subject) -> None:
    began = time.perf_counter()
    async with opened(one.url, plain=True) as lore:
        report = await lore.privacy.verify()
    found = "sound" if report.sound else f"not sound: {report}"
    print(f"{one.messages:,} messages verified in {time.perf_counter() - began:,.0f} s: {found}", flush=True)


async def _context(one: Subject, room_id: str) -> float:
    last = one.rng.randrange(one.large // 2, one.large) if room_id == _LARGE else one.newest
    return await timed(one.lore.context.build(room_id, str(last)))


async def _search(one: Subject, room_id: str) -> float:
    return await timed(one.lore.messages.search(room_id, question(one.rng, one.said)))


async def _add(one: Subject, room_id: str) -> float:
    return await timed(one.lore.messages.add(_message(one, room_id, "ann")))


async def _digest(one: Subject, room_id: str) -> float:
    last = (await one.lore.messages.get(room_id, one.newest)).message.at
    return await timed(one.lore.digest(room_id, since=last - _DIGEST, mode="offline"))


async def _recall(one: Subject, room_id: str) -> float:
    scope = f"group:{room_id}"
    await one.lore.memories.add(scope, "They roll the database back on the first Monday of the month")
    asked = [{"role": "user", "content": "When do they roll the database back? 数据库什么时候回滚？"}]
    return await timed(one.lore.recall.build([scope], asked))


async def _forget(one: Subject, room_id: str) -> float:
    person = f"visitor-of-{room_id}"
    await one.lore.messages.add(_message(one, room_id, person))
    return await timed(one.lore.privacy.forget(person))


@dataclass(frozen=True, slots=True)
class Kind:
    """A call that is timed. `again`: in a room in which it was made before. `most`: times at most in each store."""

    call: Callable[[Subject, str], Awaitable[float]]
    again: bool = False
    large: bool = False
    most: int = 10**9


CALLS = {
    "context": Kind(_context, again=True),
    "context of a room not read before": Kind(_context),
    "search of a room": Kind(_search, again=True),
    "search of a room not read before": Kind(_search),
    "add a message": Kind(_add, again=True),
    "add a message to a room not read before": Kind(_add),
    "digest of two hours": Kind(_digest, again=True),
    "digest of two hours of a room not read before": Kind(_digest),
    "recall": Kind(_recall),
    "context in the large room": Kind(_context, again=True, large=True),
    "search of the large room": Kind(_search, again=True, large=True, most=10),
    "add a message to the large room": Kind(_add, again=True, large=True),
    "forget a person": Kind(_forget, most=1),
}


def _message(one: Subject, room_id: str, sender_id: str) -> Message:
    said = one.rng.choice(one.said)
    return Message(id=f"{sender_id}-{one.rng.random()}", room_id=room_id, sender_id=sender_id, text=said)


def _head(subjects: Sequence[Subject]) -> str:
    sizes = " | ".join(f"{one.messages:,} messages, ms" for one in subjects)
    return f"| call | {sizes} | last against first |\n|---|{'---:|' * (len(subjects) + 1)}"


def _row(name: str, subjects: Sequence[Subject]) -> str:
    medians = [median(one.seconds[name]) * 1e3 for one in subjects]
    return f"| {name} | {' | '.join(f'{ms:,.1f}' for ms in medians)} | {medians[-1] / medians[0]:.2f} |"
