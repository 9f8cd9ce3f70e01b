"""Processes that hold conversations: each reads the context, puts a checkpoint where it is asked for, writes a turn."""

import asyncio
import logging
import random
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.sharedctypes import Synchronized
from typing import TypeVar

import roomlore
from bench.chatter import chat
from roomlore.core.errors import Conflict, RoomloreError
from roomlore.services.sessions import SegmentCache

RECENT_TURNS = 8
AT_ONCE = 4
"""Conversations that one process holds at the same time."""
_CACHE = re.compile(rb'roomlore_session_cache_total\{result="(\w+)"\} (\S+)')
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class Share:
    """The messages of one writer in one conversation: turns `first`, `first + step`, ... below `turns`."""

    conversation_id: str
    first: int
    step: int
    turns: int

    @property
    def alone(self) -> bool:
        return self.step == 1

    def numbers(self) -> range:
        return range(self.first, self.turns, self.step)


@dataclass(frozen=True, slots=True)
class Task:
    """One process's work. `window`: tokens of the model, small enough for several checkpoints a conversation."""

    url: str
    redis_url: str
    window: int
    shares: Sequence[Share]


@dataclass(frozen=True, slots=True)
class Call:
    """`began` is of the clock that all processes of a machine share."""

    name: str
    began: float
    seconds: float


@dataclass(slots=True)
class Report:
    """The knowledge of a writer: turns that were acknowledged and checkpoints (id and summary) that were put, by
    conversation. `stale`: contexts that lacked what the same writer had just written. `failures`: when Redis failed a
    call of its process."""

    acknowledged: dict[str, list[str]] = field(default_factory=dict)
    put: dict[str, dict[str, str]] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    conflicts: int = 0
    failures: list[float] = field(default_factory=list)
    cache: Counter[str] = field(default_factory=Counter)


def settings(redis_url: str, window: int) -> roomlore.Settings:
    return roomlore.Settings(
        redis_url=redis_url,
        recent_turns=RECENT_TURNS,
        model_context_window=window,
        auto_checkpoint=False,
        enable_async_data_collection=False,
    )


def turns_of(conversation_id: str, turns: int) -> list[tuple[str, str]]:
    """Each turn's query, a line, and its answer, three lines; always the same for one conversation."""
    seed = random.Random(conversation_id).randrange(1 << 30)
    lines = [message.text for message in chat(conversation_id, 4 * turns, seed, words=7)]
    return [(lines[at], " ".join(lines[at + 1 : at + 4])) for at in range(0, len(lines), 4)]


def shares(name: str, conversations: int, turns: int, writers: int) -> list[list[Share]]:
    """Every fifth conversation is held by two writers in turn; these come first, so that both are at it at once."""
    given: list[list[Share]] = [[] for _ in range(writers)]
    together = [place for place in range(conversations) if place % 5 == 0 and writers > 1]
    for place in together:
        for first in (0, 1):
            given[(place // 5 + first) % writers].append(Share(f"{name}-{place}", first, 2, turns))
    for place in sorted(set(range(conversations)) - set(together)):
        given[place % writers].append(Share(f"{name}-{place}", 0, 1, turns))
    return given


_written: "Synchronized[int] | None" = None


def _begin(written: "Synchronized[int]") -> None:
    global _written
    _written = written


@contextmanager
def started(tasks: Sequence[Task]) -> Iterator[tuple[list[Future[Report]], Callable[[], int]]]:
    """A process for each task; beside what they will report, how many turns are written so far."""
    processes = get_context("forkserver")
    processes.set_forkserver_preload([__name__])
    written: Synchronized[int] = processes.Value("l", 0)
    with ProcessPoolExecutor(len(tasks), mp_context=processes, initializer=_begin, initargs=(written,)) as pool:
        yield [pool.submit(_hold, task) for task in tasks], lambda: written.value


def _hold(task: Task) -> Report:
    return asyncio.run(_hold_all(task))


async def _hold_all(task: Task) -> Report:
    report = Report()
    log = logging.getLogger(SegmentCache.__module__)
    log.addHandler(_Failures(report.failures))
    log.propagate = False
    async with roomlore.open(task.url, settings=settings(task.redis_url, task.window), background=False) as lore:
        waiting = iter(task.shares)
        await asyncio.gather(*(_hold_some(lore, waiting, report) for _ in range(AT_ONCE)))
        report.cache.update({result.decode(): int(float(n)) for result, n in _CACHE.findall(lore.prometheus())})
    return report


async def _hold_some(lore: roomlore.Lore, waiting: Iterator[Share], report: Report) -> None:
    for share in waiting:
        await Conversation(lore, share, report).hold()


class _Failures(logging.Handler):
    """Notes when the cache says that it failed."""

    def __init__(self, moments: list[float]) -> None:
        super().__init__()
        self._moments = moments

    def emit(self, record: logging.LogRecord) -> None:
        self._moments.append(time.monotonic())


class Conversation:
    """One conversation as one writer holds it."""

    def __init__(self, lore: roomlore.Lore, share: Share, report: Report) -> None:
        self._sessions = lore.sessions
        self._share = share
        self._report = report
        self._name = share.conversation_id
        self._said = turns_of(share.conversation_id, share.turns)
        self._last: str | None = None

    async def hold(self) -> None:
        await self._call("create_session", self._sessions.create_session(self._name, "ann"))
        for number in self._share.numbers():
            await self._turn(number)
            if _written is not None:
                with _written.get_lock():
                    _written.value += 1

    async def _turn(self, number: int) -> None:
        query, answer = self._said[number]
        context = await self._call("query_context", self._sessions.query_context(self._name, query))
        if context is not None:
            await self._look_at(context)
        turn_id = f"turn-{number}"
        writing = self._sessions.write_turn(self._name, "ann", "bot", query, answer, turn_id=turn_id)
        if await self._call("write_turn", writing) is not None:
            self._report.acknowledged.setdefault(self._name, []).append(turn_id)
            self._last = answer

    async def _look_at(self, context: roomlore.SessionContext) -> None:
        if self._share.alone and self._last is not None and context.messages[-1]["content"] != self._last:
            self._report.stale.append(self._name)
        if context.should_checkpoint_summary and context.covers_through:
            await self._checkpoint(context)

    async def _checkpoint(self, context: roomlore.SessionContext) -> None:
        summary = f"What was said up to {context.covers_through}, {len(context.full_history)} characters."
        checkpoint = await self._call(
            "checkpoint",
            self._sessions.checkpoint(
                self._name,
                summary,
                covers_through=context.covers_through,
                expected_checkpoint=context.checkpoint_id,
            ),
        )
        if checkpoint is not None:
            self._report.put.setdefault(self._name, {})[checkpoint.checkpoint_id] = summary

    async def _call(self, name: str, calling: Awaitable[_Answer]) -> _Answer | None:
        """The answer; None where there was none, which is noted."""
        began = time.monotonic()
        try:
            return await calling
        except Conflict as error:
            if name != "checkpoint":
                self._report.errors.append(f"{name}: {error!r}")
            self._report.conflicts += name == "checkpoint"
        except (RoomloreError, OSError, TimeoutError) as error:
            self._report.errors.append(f"{name}: {error!r}")
        finally:
            self._report.calls.append(Call(name, began, time.monotonic() - began))
        return None
