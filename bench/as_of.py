"""Times the past of a scope against the length of its log: `as_of`, `diff` over a few changes, and an add.

Each scope has 50 active memories that are updated in turn. The moments are spread over the whole log.
"""

import argparse
import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from statistics import median
from time import perf_counter
from typing import Any

import roomlore
from bench import databases
from roomlore.core.memory.memory import Action, Change, Memory, MemoryKind
from roomlore_testkit import change, memory

ACTIVE = 50
BEGAN = datetime(2024, 1, 1, tzinfo=UTC)
APART = timedelta(minutes=1)
_AT_ONCE = 1_000
_SEED = 3
_FEW = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--entries", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--rounds", type=int, default=40, help="times that each call is made in each log")
    databases.add_argument(parser)


async def run(arguments: argparse.Namespace) -> None:
    with databases.database(arguments.database) as url:
        async with roomlore.open(url, background=False) as lore:
            print("| entries | `as_of` ms | `diff` ms | add ms |\n|---:|---:|---:|---:|", flush=True)
            for entries in arguments.entries:
                scope = f"group:log-{entries}"
                await log_of(lore, scope, entries)
                times = [await _timed(lore, scope, entries, arguments.rounds, call) for call in (_as_of, _diff, _add)]
                print(f"| {entries:,} | {' | '.join(f'{time:,.1f}' for time in times)} |", flush=True)


async def log_of(lore: roomlore.Lore, scope: str, entries: int) -> None:
    """Fill the log of a new scope, an entry a minute, with 50 active memories at its end."""
    heads: list[Memory] = []
    for start in range(1, entries + 1, _AT_ONCE):
        numbers = range(start, min(start + _AT_ONCE, entries + 1))
        made = [_next(scope, number, heads) for number in numbers]
        async with lore.storage.writing(lore.tenant) as work:
            await work.memories.lock(scope=scope, now=BEGAN)
            await work.memories.apply(scope=scope, changes=made)


def _next(scope: str, number: int, heads: list[Memory]) -> Change:
    """Return the next entry, and put the version that it makes in the place of the oldest one."""
    at, memory_id = BEGAN + number * APART, f"{scope}-{number}"
    fields: dict[str, Any] = {
        "statement": f"In week {number} the group meets at the boat house and rows for two hours.",
        "updated_at": at,
    }
    if len(heads) < ACTIVE:
        heads.append(memory(memory_id, scope=scope, kind=MemoryKind.GROUP, **fields))
        return change(number, heads[-1], at=at)
    old = heads.pop(0)
    heads.append(replace(old, memory_id=memory_id, version=old.version + 1, parents=(old.memory_id,), **fields))
    closed: dict[str, Any] = {"closes": (old.memory_id,), "old_statement": old.statement}
    return change(number, heads[-1], action=Action.UPDATE, at=at, **closed)


_Call = Callable[[roomlore.Lore, str, datetime, int], Awaitable[object]]


async def _timed(lore: roomlore.Lore, scope: str, entries: int, rounds: int, call: _Call) -> float:
    """Return the median in milliseconds."""
    rng, took = random.Random(_SEED), []
    for turn in range(rounds):
        at = BEGAN + rng.randrange(1, entries) * APART
        began = perf_counter()
        await call(lore, scope, at, turn)
        took.append(perf_counter() - began)
    return 1000 * median(took)


async def _as_of(lore: roomlore.Lore, scope: str, at: datetime, _: int) -> object:
    return await lore.memories.as_of(scope, at)


async def _diff(lore: roomlore.Lore, scope: str, at: datetime, _: int) -> object:
    return await lore.memories.diff(scope, at, at + _FEW * APART)


async def _add(lore: roomlore.Lore, scope: str, _: datetime, turn: int) -> object:
    return await lore.memories.add(scope, f"Boat {turn} has a new oar.", kind=MemoryKind.GROUP)
