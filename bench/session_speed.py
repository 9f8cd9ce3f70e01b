"""Times reading a session: a long conversation against a short one, and with a cache against without.

All sides of a ratio take turns in one process on one database, so the ratios hold where absolute times do not. Every
conversation has a checkpoint; those compared have equally many turns since. `hit`: Redis has the conversation as it
stands; `miss`: its key is deleted before each call, which fills it again; `none`: no Redis is configured.
"""

import argparse
import asyncio
import re
import time
from collections import defaultdict
from collections.abc import Awaitable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from statistics import median, quantiles
from typing import TypeVar
from uuid import uuid4

import roomlore
from bench import databases
from bench.chatter import chat
from bench.progress import Progress
from bench.redis_process import command, redis_process
from bench.took import timed
from roomlore import Message, Role

SINCE = (8, 40, 150)
SHORT = 50
BATCH = 1_000
WINDOW = 64_000
WAYS = ("hit", "miss", "none")
CALLS = ("query_context", "get_session")
AT_ONCE = 8
EVERY = 40
QUESTION = "what did we say about the release, and who was to look at it?"
SUMMARY = " ".join(message.text for message in chat("summary", 24, 3))
_Way = TypeVar("_Way")
_PART = re.compile(rb'roomlore_session_seconds_sum\{part="(\w+)"\} (\S+)')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--turns", type=int, default=10_000, help="turns of the long conversations")
    parser.add_argument("--reads", type=int, default=1_000, help="reads of each kind")
    parser.add_argument("--writes", type=int, default=400, help="turns written in each way")
    parser.add_argument("--redis-url", help="a Redis that may be written to; by default one of its own is started")
    databases.add_argument(parser)


async def run(arguments: argparse.Namespace) -> None:
    with databases.database(arguments.database) as url:
        if arguments.redis_url:
            await measure(arguments, url, arguments.redis_url)
        else:
            with redis_process() as redis:
                await measure(arguments, url, redis.url)


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation with a checkpoint and `since` turns after it."""

    conversation_id: str
    turns: int
    since: int


@dataclass(frozen=True, slots=True)
class Bench:
    """The same database opened with Redis and without."""

    cached: roomlore.Lore
    plain: roomlore.Lore
    redis_url: str

    def lore(self, way: str) -> roomlore.Lore:
        return self.plain if way == "none" else self.cached

    async def call(self, way: str, call: str, talk: Talk) -> float:
        """Seconds that one call took."""
        if way == "miss":
            command(self.redis_url, b"DEL", f"short_term_memory:session:{talk.conversation_id}".encode())
        return await timed(call_of(self.lore(way), call, talk))


def call_of(lore: roomlore.Lore, call: str, talk: Talk) -> Awaitable[object]:
    if call == "get_session":
        return lore.sessions.get_session(talk.conversation_id)
    return lore.sessions.query_context(talk.conversation_id, QUESTION)


async def measure(arguments: argparse.Namespace, url: str, redis_url: str) -> None:
    name = f"speed-{uuid4().hex[:8]}"
    async with AsyncExitStack() as closing:
        cached = await closing.enter_async_context(roomlore.open(url, settings=settings(redis_url), background=False))
        plain = await closing.enter_async_context(roomlore.open(url, settings=settings(""), background=False))
        talks = [Talk(f"{name}-long-{since}", arguments.turns, since) for since in SINCE]
        short = [Talk(f"{name}-short-{since}", SHORT, since) for since in SINCE if since < SHORT]
        await fill(plain, [*talks, *short])
        bench = Bench(cached, plain, redis_url)
        print(f"{url.partition(':')[0]}, {arguments.reads:,} reads of each kind, medians in ms [middle half]")
        await compare_lengths(bench, talks, short, arguments.reads)
        for talk in talks:
            await compare_ways(bench, talk, arguments.reads)
        await compare_writes(bench, name, arguments.writes)
        await compare_throughput(bench, name, arguments.writes)


def settings(redis_url: str) -> roomlore.Settings:
    return roomlore.Settings(
        redis_url=redis_url, model_context_window=WINDOW, auto_checkpoint=False, enable_async_data_collection=False
    )


def turns_of(conversation_id: str, turns: int, seed: int = 7) -> list[tuple[str, str]]:
    """Each turn's query, a line, and its answer, three lines."""
    lines = [message.text for message in chat(conversation_id, 4 * turns, seed)]
    return [(lines[at], " ".join(lines[at + 1 : at + 4])) for at in range(0, len(lines), 4)]


def messages(talk: Talk) -> list[Message]:
    history = []
    for number, (query, answer) in enumerate(turns_of(talk.conversation_id, talk.turns)):
        for role, sender, text in ((Role.USER, "ann", query), (Role.ASSISTANT, "bot", answer)):
            history.append(
                Message(
                    id=f"{number}-{role.value}",
                    room_id=talk.conversation_id,
                    sender_id=sender,
                    role=role,
                    text=text,
                    turn_id=str(number),
                )
            )
    return history


async def fill(lore: roomlore.Lore, talks: Sequence[Talk]) -> None:
    progress, done = Progress("messages", sum(2 * talk.turns for talk in talks)), 0
    for talk in talks:
        every = messages(talk)
        for at in range(0, len(every), BATCH):
            await lore.messages.add(every[at : at + BATCH])
            done += len(every[at : at + BATCH])
            progress.at(done)
        covers = every[-2 * talk.since - 1].id
        await lore.sessions.checkpoint(talk.conversation_id, SUMMARY, covers_through=covers)
    progress.end(done)


async def compare_lengths(bench: Bench, long: Sequence[Talk], short: Sequence[Talk], reads: int) -> None:
    print(f"\n| query_context, turns since | long ({long[0].turns:,}) | short ({SHORT}) | long / short |")
    print("|---|---|---|---|")
    for way in ("none", "hit"):
        for pair in zip(long, short, strict=False):
            times: list[list[float]] = [[], []]
            for talk in pair:
                await bench.call(way, "query_context", talk)
            for read in range(reads):
                for side in (0, 1) if read % 2 else (1, 0):
                    times[side].append(await bench.call(way, "query_context", pair[side]))
            redis = "Redis hit" if way == "hit" else "no Redis"
            print(f"| {pair[0].since}, {redis} | {shown(times[0])} | {shown(times[1])} | {ratio(*times)} |", flush=True)


async def compare_ways(bench: Bench, talk: Talk, reads: int) -> None:
    print(f"\n| {talk.since} turns since | hit | miss | none | hit / none | miss / none |")
    print("|---|---|---|---|---|---|")
    for call in CALLS:
        times: dict[str, list[float]] = defaultdict(list)
        for read in range(reads):
            for way in rotated(WAYS, read):
                times[way].append(await bench.call(way, call, talk))
        cells = [shown(times[way]) for way in WAYS]
        ratios = [ratio(times[way], times["none"]) for way in ("hit", "miss")]
        print(f"| {call} | {' | '.join([*cells, *ratios])} |", flush=True)
    for way in WAYS:
        spent = await parts(bench, way, talk, max(50, reads // 10))
        print(f"of which, {way}: " + ", ".join(f"{part} {median(each) * 1e3:.2f}" for part, each in spent.items()))


async def parts(bench: Bench, way: str, talk: Talk, reads: int) -> dict[str, list[float]]:
    """Seconds that the database and the cache took of each read, as roomlore measures them itself."""
    spent: dict[str, list[float]] = defaultdict(list)
    for _ in range(reads):
        before = measured(bench.lore(way))
        await bench.call(way, "get_session", talk)
        for part, total in measured(bench.lore(way)).items():
            spent[part].append(total - before.get(part, 0))
    return dict(sorted(spent.items()))


def measured(lore: roomlore.Lore) -> dict[str, float]:
    return {part.decode(): float(total) for part, total in _PART.findall(lore.prometheus())}


async def compare_writes(bench: Bench, name: str, writes: int) -> None:
    """One conversation for each way, with a checkpoint every 40 turns."""
    times: dict[str, list[float]] = defaultdict(list)
    ways = ("hit", "none")
    for number, (query, answer) in enumerate(turns_of(name, writes)):
        for way in rotated(ways, number):
            sessions, talk = bench.lore(way).sessions, f"{name}-write-{way}"
            times[way].append(await timed(sessions.write_turn(talk, "ann", "bot", query, answer)))
            if number % EVERY == EVERY - 1:
                context = await sessions.query_context(talk)
                await sessions.checkpoint(talk, SUMMARY, covers_through=context.covers_through)
    print("\n| write_turn | with Redis | no Redis | with / without |")
    print("|---|---|---|---|")
    cells = [shown(times[way]) for way in ways]
    print(f"| a turn | {' | '.join(cells)} | {ratio(times['hit'], times['none'])} |", flush=True)


async def compare_throughput(bench: Bench, name: str, writes: int) -> None:
    """8 conversations at once, each reads its context and writes a turn; with Redis and without in short rounds."""
    rates: dict[str, list[float]] = defaultdict(list)
    turns = max(1, writes // EVERY)
    for number in range(10):
        for way in rotated(("hit", "none"), number):
            started = time.perf_counter()
            talks = [f"{name}-many-{way}-{place}" for place in range(AT_ONCE)]
            await asyncio.gather(*(exchange(bench.lore(way), talk, number, turns) for talk in talks))
            rates[way].append(AT_ONCE * turns / (time.perf_counter() - started))
    print("\n| one process, 8 conversations at once | with Redis | no Redis |")
    print("|---|---|---|")
    print(f"| query_context and write_turn a second | {median(rates['hit']):,.0f} | {median(rates['none']):,.0f} |")


async def exchange(lore: roomlore.Lore, talk: str, number: int, turns: int) -> None:
    for query, answer in turns_of(talk, turns, number):
        await lore.sessions.write_turn(talk, "ann", "bot", query, answer)
        context = await lore.sessions.query_context(talk, query)
    await lore.sessions.checkpoint(talk, SUMMARY, covers_through=context.covers_through)


def rotated(ways: Sequence[_Way], number: int) -> list[_Way]:
    place = number % len(ways)
    return [*ways[place:], *ways[:place]]


def shown(seconds: Sequence[float]) -> str:
    low, middle, high = (quartile * 1e3 for quartile in quantiles(seconds, n=4))
    return f"{middle:.2f} [{low:.2f}, {high:.2f}]"


def ratio(times: Sequence[float], other: Sequence[float]) -> str:
    return f"{median(times) / median(other):.2f}"
