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
from bench.many_rooms import resident
from bench.search_speed import question
from bench.took import timed
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
        subjects, texts = [], [message.text for message in MadeUpRoom(1, arguments.room).said()]
        for messages in sorted(arguments.messages):
            url = databases.named(folder, server, f"growth_{messages}")
            await copied_store.build(url, messages, big=messages // 10, room=arguments.room)
            rooms = (messages - messages // 10) // arguments.room
            subjects.append(Subject(messages, url, rooms, str(arguments.room - 1), texts))
        print(_head(subjects), flush=True)
        for name, kind in CALLS.items():
            await _in_turn(subjects, name, kind, min(kind.most, arguments.rounds))
            print(_row(name, subjects), flush=True)
        print(f"\nresident: {resident() / 1e6:,.0f} MB", flush=True)
        for subject in subjects if arguments.verify else ():
            await _verify(subject)


async def _in_turn(subjects: Sequence[Subject], name: str, kind: "Kind", rounds: int) -> None:
    async with AsyncExitStack() as closing:
        for subject in subjects:
            subject.begin(await closing.enter_async_context(opened(subject.url, plain=True)))
        for turn in range(rounds):
            for subject in subjects if turn % 2 else reversed(subjects):
                room_id = _LARGE if kind.large else subject.fresh.pop()
                if kind.again:
                    await kind.call(subject, room_id)
                subject.seconds[name].append(await kind.call(subject, room_id))


async def _verify(subject: Subject) -> None:
    began = time.perf_counter()
    async with opened(subject.url, plain=True) as lore:
        report = await lore.privacy.verify()
    verdict = "sound" if report.sound else f"not sound: {report}"
    print(f"{subject.messages:,} messages verified in {time.perf_counter() - began:,.0f} s: {verdict}", flush=True)


async def _context(subject: Subject, room_id: str) -> float:
    last = subject.rng.randrange(subject.large // 2, subject.large) if room_id == _LARGE else subject.newest
    return await timed(subject.lore.context.build(room_id, str(last)))


async def _search(subject: Subject, room_id: str) -> float:
    return await timed(subject.lore.messages.search(room_id, question(subject.rng, subject.said)))


async def _add(subject: Subject, room_id: str) -> float:
    return await timed(subject.lore.messages.add(_message(subject, room_id, "ann")))


async def _digest(subject: Subject, room_id: str) -> float:
    last = (await subject.lore.messages.get(room_id, subject.newest)).message.at
    return await timed(subject.lore.digest(room_id, since=last - _DIGEST, mode="offline"))


async def _recall(subject: Subject, room_id: str) -> float:
    scope = f"group:{room_id}"
    await subject.lore.memories.add(scope, "They roll the database back on the first Monday of the month")
    conversation = [{"role": "user", "content": "When do they roll the database back? 数据库什么时候回滚？"}]
    return await timed(subject.lore.recall.build([scope], conversation))


async def _forget(subject: Subject, room_id: str) -> float:
    person = f"visitor-of-{room_id}"
    await subject.lore.messages.add(_message(subject, room_id, person))
    return await timed(subject.lore.privacy.forget(person))


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


def _message(subject: Subject, room_id: str, sender_id: str) -> Message:
    text = subject.rng.choice(subject.said)
    return Message(id=f"{sender_id}-{subject.rng.random()}", room_id=room_id, sender_id=sender_id, text=text)


def _head(subjects: Sequence[Subject]) -> str:
    sizes = " | ".join(f"{subject.messages:,} messages, ms" for subject in subjects)
    return f"| call | {sizes} | last against first |\n|---|{'---:|' * (len(subjects) + 1)}"


def _row(name: str, subjects: Sequence[Subject]) -> str:
    medians = [median(subject.seconds[name]) * 1e3 for subject in subjects]
    return f"| {name} | {' | '.join(f'{ms:,.1f}' for ms in medians)} | {medians[-1] / medians[0]:.2f} |"
