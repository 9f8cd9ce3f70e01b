"""Read what is stored after `crash --what evolution`: through the library if it shows it, else from the tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import roomlore
from bench.crash_stored import Step, broken_files, differences, log_of, records_of, steps, versions_of, works
from bench.evolution_items import ABOUT, ANN, ROOMS, SCOPES
from roomlore import StoredMessage
from roomlore.core.memory.memory import Change, Evolution
from roomlore.ports.durable import WorkState
from roomlore.services.evolution import EVOLUTION
from roomlore_testkit.embedding import HashEmbedder

Place = tuple[str, str]
"""A scope and a room that it was evolved from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Everything that is checked. `logs`, `records`: by scope, the oldest first. `marks`: how far each scope has read.
    `troubles`: what is wrong with the database by itself."""

    messages: Mapping[str, Sequence[StoredMessage]]
    logs: Mapping[str, Sequence[Change]]
    records: Mapping[str, Sequence[Evolution]]
    marks: Mapping[Place, int]
    steps: Sequence[Step] = ()
    works: Sequence[WorkState] = ()
    troubles: Sequence[str] = field(default=())


async def read(url: str) -> Stored:
    """From a fresh opening that does no work."""
    async with roomlore.open(url, embedder=HashEmbedder(), background=False) as lore:
        messages = {room.name: [m async for m in lore.messages.export(room.name)] for room in ROOMS}
        logs = {scope: await log_of(lore.storage, scope) for scope in SCOPES}
        records = {scope: (await records_of(lore.storage, scope))[::-1] for scope in SCOPES}
        troubles: list[str] = []
        for scope, log in logs.items():
            troubles += await differences(lore.storage, scope, log, await versions_of(lore.storage, log))
        troubles += await unsound(lore)
        marks = {place: await _mark(lore, *place) for place in PLACES}
    return Stored(
        messages=messages,
        logs=logs,
        records=records,
        marks=marks,
        steps=steps(url, "text"),
        works=await works(url),
        troubles=[*troubles, *broken_files(url)],
    )


async def is_settled(url: str) -> bool:
    """Return True if no work waits or runs, and every message and memory has its vector."""
    if {work.status for work in await works(url)} & {"waiting", "running"}:
        return False
    async with roomlore.open(url, embedder=HashEmbedder(), background=False) as lore:
        return (await lore.index.status()).vectors == "whole"


async def unsound(lore: roomlore.Lore) -> list[str]:
    """Return what roomlore's own check finds, which includes that it could count vectors."""
    report = await lore.privacy.verify()
    return [
        *(f"{fault.where}: {fault.check}: {fault.found}" for fault in report.faults),
        *(f"{note.where}: {note.found}" for note in report.notes),
    ]


async def _mark(lore: roomlore.Lore, scope: str, room: str) -> int:
    name = f"facts:{ANN}" if scope == ABOUT else EVOLUTION
    async with lore.storage.reading(lore.tenant) as work:
        return (await work.progress.marks(room_id=room, names=[name])).get(name, 0)


PLACES: tuple[Place, ...] = (*((f"group:{room.name}", room.name) for room in ROOMS), (ABOUT, "about"))
