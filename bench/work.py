"""Counts what the main calls do in a warm room: statements, round trips, hops to threads, calls, memory, JSON.

Unlike times, counts are the same on every machine, so that tests can hold them. Each is the median of `--calls` calls.

round trips    times that PostgreSQL's driver waited for an answer
hops           jobs that the event loop gave to a thread
Python calls   calls and resumptions of functions of Python, without those of the event loop; C calls alike
blocks kept    blocks of memory of Python's that are there afterwards, before any garbage is collected
"""

import argparse
import asyncio
import gc
import json
import selectors
import sys
import tracemalloc
import weakref
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from functools import partial
from itertools import islice
from math import inf
from statistics import median
from types import FrameType
from typing import Any
from unittest.mock import patch

from psycopg import AsyncConnection
from psycopg.waiting import WAIT_R

import roomlore
from bench import databases
from bench.chatter import chat
from bench.two_builds_side import ROOMS, Figures, new, warmed
from roomlore.storage import sqlite
from roomlore.storage.postgres import PostgresConnection
from roomlore.storage.sqlite import SqliteConnection

BATCH = 100
FIGURES = (
    "statements",
    "round trips",
    "hops",
    "Python calls",
    "C calls",
    "JSON encoded",
    "JSON decoded",
    "blocks kept",
    "peak KiB",
)
_CODES = {json.JSONEncoder.encode.__code__: "JSON encoded", json.JSONDecoder.decode.__code__: "JSON decoded"}
_LOOP = {module.__file__ for module in (asyncio.base_events, asyncio.selector_events, selectors)}
"""The event loop turns as often as there is something to do for others too."""

Call = Callable[[], Awaitable[object]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--calls", type=int, default=20, help="calls of each kind that are counted")
    parser.add_argument("--statements", action="store_true", help="print the statements of one call of each kind")
    databases.add_argument(parser)


async def run(arguments: argparse.Namespace) -> None:
    with databases.database(arguments.database) as url:
        async with calls_of(url, 4 * (arguments.calls + 1)) as kinds:
            told = {kind: await counts(calls, arguments.calls) for kind, calls in kinds.items()}
            print(f"| | {' | '.join(told)} |\n|---|{'---:|' * len(told)}")
            for figure in FIGURES:
                print(f"| {figure} | {' | '.join(f'{of_kind[figure]:,.1f}' for of_kind in told.values())} |")
            for kind, calls in kinds.items() if arguments.statements else ():
                call = await anext(calls)
                with counted() as work:
                    await call()
                print(f"\n{kind}:\n" + "\n".join(work.statements))


@asynccontextmanager
async def calls_of(url: str, most: int) -> AsyncIterator[Mapping[str, AsyncIterator[Call]]]:
    """Yield calls of each kind, at most so many, in rooms that are warm."""
    settings = roomlore.Settings(enable_async_data_collection=False)
    with patch.multiple(sqlite, _TURN_SECONDS=inf, _READ_SECONDS=inf, _WRITE_SECONDS=inf):  # whatever the machine
        async with roomlore.open(url, settings=settings, background=False) as lore:
            coming = new(await warmed(lore, 3 * most))
            batches = chat(f"room-{ROOMS}", most * BATCH, words=7)
            yield {
                "add": _adds(lore, coming),
                f"batch of {BATCH}": _batches(lore, batches),
                "context": _contexts(lore, coming),
                "search": _searches(lore, coming),
            }


async def _adds(lore: roomlore.Lore, coming: Iterator[roomlore.Message]) -> AsyncIterator[Call]:
    for message in coming:
        yield partial(lore.messages.add, message)


async def _batches(lore: roomlore.Lore, coming: Iterator[roomlore.Message]) -> AsyncIterator[Call]:
    while batch := list(islice(coming, BATCH)):
        yield partial(lore.messages.add, batch)


async def _contexts(lore: roomlore.Lore, coming: Iterator[roomlore.Message]) -> AsyncIterator[Call]:
    for message in coming:
        await lore.messages.add(message)
        yield partial(lore.context.build, message.room_id, message.id)


async def _searches(lore: roomlore.Lore, coming: Iterator[roomlore.Message]) -> AsyncIterator[Call]:
    for message in coming:
        await lore.messages.add(message)
        yield partial(lore.messages.search, message.room_id, " ".join(message.text.split()[:4]))


async def counts(calls: AsyncIterator[Call], number: int) -> Figures:
    """Return the medians of so many calls for each way of counting, each after one that is not counted."""
    of_calls: dict[str, list[float]] = {}
    for count in (_database_and_threads, _functions, _memory):
        for turn in range(number + 1):
            told = await count(await anext(calls))
            for name, figure in told.items() if turn else ():
                of_calls.setdefault(name, []).append(figure)
    return {name: median(figures) for name, figures in of_calls.items()}


async def _database_and_threads(call: Call) -> Figures:
    with counted() as work:
        await call()
    return {"statements": len(work.statements), "round trips": work.round_trips, "hops": len(work.hops)}


async def _functions(call: Call) -> Figures:
    seen: defaultdict[str, float] = defaultdict(float)

    def event(frame: FrameType, kind: str, _: object) -> None:
        if frame.f_code.co_filename in _LOOP:
            return
        seen[kind] += 1
        if kind == "call" and frame.f_code in _CODES:
            seen[_CODES[frame.f_code]] += 1

    def profiled(job: Callable[..., Any]) -> Callable[..., Any]:
        def work(*given: Any) -> Any:
            with _profile(event):
                return job(*given)

        return work

    with _uncollected(), _handed_over(profiled), _profile(event):  # packages watch the garbage collector
        await call()
    json_calls = {name: seen[name] for name in _CODES.values()}
    return {"Python calls": seen["call"], "C calls": seen["c_call"], **json_calls}


@contextmanager
def _profile(event: Callable[[FrameType, str, object], None]) -> Iterator[None]:
    """Tell what happens in this thread."""
    sys.setprofile(event)
    try:
        yield
    finally:
        sys.setprofile(None)


async def _memory(call: Call) -> Figures:
    handed_over: list[weakref.ref[object]] = []

    def noted(job: Callable[..., Any]) -> Callable[..., Any]:
        handed_over.append(weakref.ref(work := partial(job)))
        return work

    with _uncollected():
        tracemalloc.start()
        before = sys.getallocatedblocks()
        with _handed_over(noted):
            result = await call()
        del result
        while any(job() for job in handed_over):  # noqa: ASYNC110 - a thread lets go of a job after it has answered
            await asyncio.sleep(0.001)
        kept, (_, peak) = sys.getallocatedblocks() - before, tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return {"blocks kept": kept, "peak KiB": peak / 1024}


@contextmanager
def _uncollected() -> Iterator[None]:
    """Collect garbage before, and not meanwhile."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


_CONNECTIONS = (SqliteConnection, PostgresConnection)


class Counted:
    """What is asked of the database, and of threads. `hops`: the jobs."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.round_trips = 0
        self.hops: list[object] = []

    def hop(self, job: Callable[..., Any]) -> Callable[..., Any]:
        self.hops.append(job)
        return job


@contextmanager
def counted() -> Iterator[Counted]:
    """Count what the event loop asks for until the end of the block."""
    work = Counted()
    with ExitStack() as stack:
        for (connection, name), runs in _STATEMENTS.items():
            stack.enter_context(patch.object(connection, name, _noting(getattr(connection, name), runs, work)))
        stack.enter_context(_handed_over(work.hop))
        stack.enter_context(_round_trips(work))
        yield work


def _first(statement: Any, *_: Any) -> list[Any]:
    return [statement]


def _written(changes: Any, statement: Any, *_: Any) -> list[Any]:
    return [*(change for change, _ in changes), statement]


_STATEMENTS: dict[tuple[Any, str], Callable[..., list[Any]]] = {
    **{(connection, name): _first for connection in _CONNECTIONS for name in ("fetch", "many", "run")},
    **{(connection, "write"): _written for connection in _CONNECTIONS},
    (SqliteConnection, "commit"): lambda: ["COMMIT"],
    (PostgresConnection, "fetch_locked"): lambda *statements: list(statements),
}
"""The methods that run statements, with those that a call runs; what they call in turn is left out."""


def _noting(
    method: Callable[..., Awaitable[Any]], runs: Callable[..., list[Any]], work: Counted
) -> Callable[..., Awaitable[Any]]:
    async def noted(connection: Any, *given: Any, **named: Any) -> Any:
        for statement in runs(*given):
            sql = statement if isinstance(statement, str) else statement.on(connection.dialect).sql
            work.statements.append(" ".join(sql.split()))
        return await method(connection, *given, **named)

    return noted


@contextmanager
def _handed_over(change: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Iterator[None]:
    """Change each job that the event loop gives to a thread."""
    loop = asyncio.get_running_loop()
    hand_over = loop.run_in_executor

    def changed(executor: Any, job: Any, *given: Any) -> Any:
        return hand_over(executor, change(job), *given)

    with patch.object(loop, "run_in_executor", changed):
        yield


@contextmanager
def _round_trips(work: Counted) -> Iterator[None]:
    """Count the calls of the driver that wait until there is something to read. One that waits to read or write sends
    what is not answered yet."""
    wait: Callable[..., Any] = AsyncConnection.wait

    def watched(steps: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        waited, ready = False, None
        try:
            while True:
                state = steps.send(ready)
                waited |= state == WAIT_R
                ready = yield state
        except StopIteration as end:
            return end.value
        finally:
            work.round_trips += waited

    def counting(connection: Any, steps: Generator[Any, Any, Any], *given: Any, **named: Any) -> Any:
        return wait(connection, watched(steps), *given, **named)

    with patch.object(AsyncConnection, "wait", counting):
        yield
