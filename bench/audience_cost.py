"""What deciding who may know what costs: of 10,000 facts, beside the recall that asks for it.

The decision is what a recall does for its viewer when nothing was cached but the facts: the view of the rooms, and the
facts that it shows.
"""

import argparse
import asyncio
from datetime import UTC, datetime, timedelta
from statistics import median
from time import perf_counter

import roomlore
from roomlore import EvidenceRoom, Member
from roomlore.core.audience import EvidenceTable, Viewer
from roomlore.core.memory.writing import NewMemory
from roomlore.ports.audience import view_for

_ROOMS = 40
_PEOPLE = 12
_BATCH = 5_000
_SCOPE = "user:p0"
_ASKED = [{"role": "user", "content": "Where is the meeting on Friday about topic 17? 周五的会在哪里开？"}]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--facts", type=int, default=10_000, help="facts of the scope")
    parser.add_argument("--runs", type=int, default=30, help="runs; the median is printed")


async def run(arguments: argparse.Namespace) -> None:
    async with roomlore.open("sqlite://", settings=roomlore.Settings(), background=False) as lore:
        await _fill(lore, arguments.facts)
        recall = [await _seconds_of_recall(lore) for _ in range(arguments.runs)][1:]
        decide = await _seconds_of_deciding(lore, arguments.runs)
    spent, whole = 1000 * median(decide), 1000 * median(recall)
    print(f"{arguments.facts} facts, {_ROOMS} rooms of {_PEOPLE} people: the decision takes {spent:.2f} ms,")
    print(f"a recall with it {whole:.1f} ms: {100 * spent / whole:.1f} %.")


async def _fill(lore: roomlore.Lore, facts: int) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    for room in range(_ROOMS):
        people = [Member(f"p{(room + number) % 20}", at) for number in range(_PEOPLE)]
        await lore.rooms.set_members(f"r{room}", people)
    new = [
        NewMemory(
            scope=_SCOPE,
            statement=f"Fact {number} about topic {number % 97} 第{number}条",
            evidence=[EvidenceRoom(f"r{number % _ROOMS}", when, when)],
        )
        for number in range(facts)
        for when in (at + timedelta(minutes=number),)
    ]
    for start in range(0, facts, _BATCH):
        await lore.memories.add_all(new[start : start + _BATCH])


async def _seconds_of_recall(lore: roomlore.Lore) -> float:
    began = perf_counter()
    await lore.recall.build([_SCOPE], _ASKED, viewer="room:r0")
    return perf_counter() - began


async def _seconds_of_deciding(lore: roomlore.Lore, runs: int) -> list[float]:
    """Time what a recall does for its viewer while the facts are cached."""
    every = await lore.memories.page(_SCOPE, limit=10**9)
    table, spent = EvidenceTable(every), []
    for _ in range(runs):
        await asyncio.sleep(0)
        began = perf_counter()
        async with lore.storage.reading() as work:
            viewer = Viewer("room", "r0")
            view = await view_for(work, tenant=lore.tenant, viewer=viewer, rooms=table.rooms, now=lore.now())
        table.visible(view)
        spent.append(perf_counter() - began)
    return spent
