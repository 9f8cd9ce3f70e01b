"""Measure what the decision on who may know what costs: of 10,000 facts, beside the recall that asks for it.

The decision is what a recall does for its viewer when the facts are cached: the stamps of the rooms, the view of those
that changed, and the facts that it shows. It is timed if no room changed since, if a message came into the viewer's
room before, and if nothing is known of the rooms yet; its statements are counted and timed apart. All
times are those of the processor, so that a busy machine measures the same.
"""

import argparse
import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import median
from time import process_time
from typing import Any
from unittest.mock import patch

import roomlore
from roomlore import EvidenceRoom, Member, Message
from roomlore.core.audience import EvidenceTable, Viewer
from roomlore.core.memory.writing import NewMemory
from roomlore.ports.audience import KnownWindows, Sight
from roomlore.storage.engine import Row, Statement
from roomlore.storage.sqlite import SqliteConnection

_ROOMS = 40
_PEOPLE = 12
_BATCH = 5_000
_SCOPE = "user:p0"
_VIEWER = Viewer("room", "r0")
_ASKED = [{"role": "user", "content": "Where is the meeting on Friday about topic 17? 周五的会在哪里开？"}]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--facts", type=int, default=10_000, help="facts of the scope")
    parser.add_argument("--runs", type=int, default=100, help="runs; medians are printed")


@dataclass(slots=True)
class Statements:
    """The statements that were run, and the seconds they took."""

    count: int = 0
    seconds: float = 0.0

    @contextmanager
    def counted(self) -> Iterator[None]:
        fetch = SqliteConnection.fetch

        async def timed(connection: SqliteConnection, statement: Statement, **params: Any) -> Sequence[Row]:
            began = process_time()
            try:
                return await fetch(connection, statement, **params)
            finally:
                self.count += 1
                self.seconds += process_time() - began

        with patch.object(SqliteConnection, "fetch", timed):
            yield


async def run(arguments: argparse.Namespace) -> None:
    async with roomlore.open("sqlite://", settings=roomlore.Settings(), background=False) as lore:
        await _fill(lore, arguments.facts)
        table = EvidenceTable(await lore.memories.page(_SCOPE, limit=10**9))
        print(f"{arguments.facts} facts, {_ROOMS} rooms of {_PEOPLE} people. Medians of {arguments.runs} runs.\n")
        print("| the decision if | ms | statements | of these ms | a recall ms | share |\n|---|---|---|---|---|---|")
        known = KnownWindows()
        sight = Sight(_VIEWER, known)
        for name, make, spoken in (
            ("nothing changed", lambda: sight, False),
            ("a message came", lambda: sight, True),
            ("new facts are asked for", lambda: Sight(_VIEWER, known), False),
            ("nothing is known", lambda: Sight(_VIEWER, KnownWindows()), False),
        ):
            print(f"| {name} | {await _measured(lore, table, make, spoken, arguments.runs)} |")


async def _measured(
    lore: roomlore.Lore, table: EvidenceTable, make: Callable[[], Sight], spoken: bool, runs: int
) -> str:
    """Return a line's figures. `make`: gives what is known already. `spoken`: a message came into the room before
    each."""
    statements, decided, recalled = Statements(), list[float](), list[float]()
    await _decide(lore, table, make())
    await _recall(lore)
    for number in range(runs):
        if spoken:
            await lore.messages.add(Message(id=f"m{number}", room_id="r0", sender_id="p0", text="Hello"))
        recalled.append(await _recall(lore))
        with statements.counted():
            decided.append(await _decide(lore, table, make()))
    spent, whole = 1000 * median(decided), 1000 * median(recalled)
    share = f"{100 * spent / whole:.1f} %"
    sql = f"{statements.count / runs:.0f} | {1000 * statements.seconds / runs:.2f}"
    return f"{spent:.2f} | {sql} | {whole:.1f} | {share}"


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


async def _recall(lore: roomlore.Lore) -> float:
    """Return the seconds of a recall for the viewer."""
    began = process_time()
    await lore.recall.build([_SCOPE], _ASKED, viewer=str(_VIEWER))
    return process_time() - began


async def _decide(lore: roomlore.Lore, table: EvidenceTable, sight: Sight) -> float:
    """Return the seconds of what a recall does for its viewer while the facts are cached."""
    await asyncio.sleep(0)
    began = process_time()
    async with lore.storage.reading(lore.tenant) as work:
        await sight.of(work, table, lore.now())
    return process_time() - began
