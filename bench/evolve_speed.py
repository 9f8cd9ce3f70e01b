"""Times roomlore's own work of an evolution: 50 memories and 200 new messages of a group, and a model that answers at
once.

The model stands at the port of models in this process, so no time of its own is in the figures. Every evolution is the
first one of a group of its own, with memories that no other group has, so that nothing of them is in a cache; else all
are alike, and each does twelve changes. Parts are timed where they are called, and what is
left over is told as such.
"""

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import cache, wraps
from statistics import median, quantiles
from typing import Any, cast
from unittest.mock import patch
from uuid import uuid4

import roomlore
from bench import databases
from bench.chatter import chat
from bench.progress import Progress
from roomlore import Lore, Message, NewMemory, Settings
from roomlore.adapters.inprocess import InProcessWork
from roomlore.adapters.prompts import PackagedPrompts
from roomlore.core.chat import ChatAnswer, ChatRequest, Usage
from roomlore.core.evolution.guards import checked_answer
from roomlore.core.evolution.plan import plan
from roomlore.core.memory.memory import MemoryKind
from roomlore.services.evolution import Applying, EvolutionLeases, EvolutionService, PieceReader, applying
from roomlore.services.models import ModelService
from roomlore.storage import Storage
from roomlore.wiring.work import make_evolutions

MEMORIES = 50
MESSAGES = 200
CHANGES = 12
_DAYS = 3_650
_HABITS = ("on Fridays they eat", "they never talk about", "newcomers are asked about", "大家习惯讨论", "群里不提")

Parts = dict[str, list[float]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--groups", type=int, default=60, help="groups that evolve, once each")
    databases.add_argument(parser)


async def run(arguments: argparse.Namespace) -> None:
    settings = Settings(evolve_schedule="", most_memories=100)
    stale = patch("roomlore.core.evolution.requests.STRENGTH_FLOOR", 1.0)
    with databases.database(arguments.database) as url, stale:
        async with roomlore.open(url, settings=settings, background=False) as lore:
            groups = [f"speed-{uuid4().hex[:8]}-{number}" for number in range(arguments.groups)]
            await fill(lore, groups)
            await settle(lore.storage)
            model = Instant()
            service = evolver(lore, settings, model)
            parts: Parts = defaultdict(list)
            for number, group in enumerate(groups):
                model.answer = answer(number)
                await evolve(service, group, parts)
    print(f"{url.partition(':')[0]}: {len(groups)} evolutions, {MEMORIES} memories and {MESSAGES} messages each")
    report(parts)


async def fill(lore: Lore, groups: Sequence[str]) -> None:
    """Every group has the same messages, and memories that differ in their numbers."""
    progress = Progress("groups", len(groups))
    for number, group in enumerate(groups):
        messages = [Message(id=m.id, room_id=group, sender_id=m.sender_id, text=m.text) for m in chat(group, MESSAGES)]
        await lore.messages.add(messages)
        known = [
            NewMemory(scope=f"group:{group}", statement=statement, kind=MemoryKind.GROUP)
            for statement in statements(number)
        ]
        await lore.memories.add_all(known)
        progress.at(number)
    progress.end(len(groups))


async def settle(storage: Storage) -> None:
    """PostgreSQL counts its rows by itself within a minute or so; until then its plans are those for empty tables."""
    async with storage.outside() as connection:
        if connection.dialect.name == "postgresql":
            await connection.run("ANALYZE")


def statements(number: int) -> list[str]:
    """The memories of the group with this number, none like another."""
    words, first = _words(), 1000 * (number + 1)
    return [
        f"{_HABITS[place % len(_HABITS)]} {' '.join(words[8 * place : 8 * place + 8])} {first + place}"
        for place in range(MEMORIES)
    ]


@cache
def _words() -> list[str]:
    return " ".join(message.text for message in chat("memories", 20 * MEMORIES, 11)).split()


def answer(number: int) -> str:
    """For the group with this number: five updates, two merges, three new memories, two deletions, ten kept."""
    known = statements(number)
    operations: list[dict[str, Any]] = [
        *(
            {"action": "update", "old_id": f"m{n}", "statement": f"{known[n - 1]}, {text[:120]}"}
            for n, text in enumerate(_new(5), 1)
        ),
        *(
            {
                "action": "update",
                "old_ids": [f"m{n + 10}", f"m{n + 20}"],
                "statement": f"{known[n + 9]}, {known[n + 19]}",
            }
            for n in (1, 2)
        ),
        *({"action": "create", "statement": f"{text}, newly"} for text in _new(3)),
        *({"action": "delete", "old_id": f"m{n}"} for n in (48, 49)),
        *({"action": "keep", "old_id": f"m{n}"} for n in range(30, 40)),
    ]
    fields = {"change_reason": "seen again and again", "tags": ["habit"], "evidence": ["c3", "c70", "c199"]}
    return "\n".join(json.dumps({**operation, **fields}, ensure_ascii=False) for operation in operations)


def _new(count: int) -> list[str]:
    return [message.text for message in chat("new", 50, 13) if len(message.text) > 40][:count]


class Instant:
    """A model that answers at once, with what it was given."""

    answer = ""

    async def can_ask(self, model_id: str) -> bool:
        return True

    async def has_provider(self, model_id: str) -> bool:
        return True

    async def complete(self, model_id: str, request: ChatRequest, **more: Any) -> ChatAnswer:
        return ChatAnswer(text=self.answer, provider="instant", model_id=model_id, usage=Usage(1, 1))


def evolver(lore: Lore, settings: Settings, model: Instant) -> EvolutionService:
    """The service as it is wired, but for the model."""
    common = replace(lore._resources, settings=settings, background=False)  # noqa: SLF001 - a part is taken
    work = InProcessWork(clock=common.clock, at_once=1)
    return make_evolutions(common, work, cast(ModelService, model), PackagedPrompts()).service


async def evolve(service: EvolutionService, group: str, parts: Parts) -> None:
    """One evolution, with what its parts took."""
    taken: dict[str, float] = defaultdict(float)
    timed = [
        patch.object(EvolutionLeases, "_take", _timed(EvolutionLeases._take, "lease", taken)),  # noqa: SLF001 - a part is timed
        patch.object(EvolutionLeases, "_free", _timed(EvolutionLeases._free, "lease", taken)),  # noqa: SLF001
        patch.object(PieceReader, "read", _timed(PieceReader.read, "read what is new, and show it", taken)),
        patch.object(PieceReader, "current", _timed(PieceReader.current, "read how the scope stands", taken)),
        patch.object(Applying, "_write", _timed(Applying._write, "apply", taken)),  # noqa: SLF001
        patch.object(applying, "checked_answer", _timed_here(checked_answer, "read the answer", taken)),
        patch.object(applying, "plan", _timed_here(plan, "guards and plan", taken)),
    ]
    for timer in timed:
        timer.start()
    started, worked = time.perf_counter(), time.process_time()
    result = await service.evolve(tenant="default", scope=f"group:{group}", days=_DAYS, mode="llm")
    total, worked = time.perf_counter() - started, time.process_time() - worked
    for timer in timed:
        timer.stop()
    if len(result.changes) != CHANGES or result.messages != MESSAGES:
        raise SystemExit(f"{len(result.changes)} changes by {result.messages} messages: {result.rejected}")
    for part, seconds in taken.items():
        parts[part].append(seconds)
    parts["the rest: the lease's task, prompt, threads"].append(total - sum(taken.values()))
    parts["all"].append(total)
    parts["all, as time of the processor in this process"].append(worked)


def _timed(call: Callable[..., Awaitable[Any]], part: str, taken: dict[str, float]) -> Callable[..., Awaitable[Any]]:
    @wraps(call)
    async def timed(*given: Any, **named: Any) -> Any:
        started = time.perf_counter()
        try:
            return await call(*given, **named)
        finally:
            taken[part] += time.perf_counter() - started

    return timed


def _timed_here(call: Callable[..., Any], part: str, taken: dict[str, float]) -> Callable[..., Any]:
    @wraps(call)
    def timed(*given: Any, **named: Any) -> Any:
        started = time.perf_counter()
        try:
            return call(*given, **named)
        finally:
            taken[part] += time.perf_counter() - started

    return timed


def report(parts: Parts) -> None:
    print("| part | median ms | middle half |\n|---|---|---|")
    for part, seconds in parts.items():
        low, _, high = (1e3 * quantile for quantile in quantiles(seconds, n=4))
        print(f"| {part} | {1e3 * median(seconds):.1f} | {low:.1f} to {high:.1f} |")
