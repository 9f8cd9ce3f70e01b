"""Read what is stored after `crash`: through the library if it shows it, else from the tables."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Engine, create_engine, make_url, text

import roomlore
from bench.crash_items import ROOMS, request_of
from roomlore import Role, StoredMessage
from roomlore.adapters.dbos import open_dbos
from roomlore.adapters.dbos.locations import location_of
from roomlore.core.memory.log import replay
from roomlore.core.memory.memory import Change, Evolution, Memory, MemoryKind
from roomlore.ports.durable import WorkState
from roomlore.storage import Storage

_PAGE = 500
_WIDE = 100_000_000


@dataclass(frozen=True, slots=True)
class Step:
    """A model's answer that DBOS wrote beside work. `request`: which one, 0 where no model gave it. `at`: when, seconds
    of `time.time`."""

    work_id: str
    request: int
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Everything that is checked. `windows`: what sessions show, by room. `troubles`: what is wrong with the database
    by itself."""

    messages: Mapping[str, Sequence[StoredMessage]]
    evolutions: Sequence[Evolution] = ()
    memories: Sequence[Memory] = ()
    steps: Sequence[Step] = ()
    works: Sequence[WorkState] = ()
    windows: Mapping[str, Sequence[str]] = field(default_factory=dict)
    troubles: Sequence[str] = ()


async def read(url: str) -> Stored:
    """From a fresh opening that does no work."""
    async with roomlore.open(url, background=False) as lore:
        messages = {room.name: [m async for m in lore.messages.export(room.name)] for room in ROOMS}
        evolutions: list[Evolution] = []
        memories: list[Memory] = []
        troubles: list[str] = []
        for scope in _agents(messages):
            log = await log_of(lore.storage, scope)
            tables = await versions_of(lore.storage, log)
            evolutions += await records_of(lore.storage, scope)
            memories += list(tables.values())
            troubles += await differences(lore.storage, scope, log, tables)
        windows = {room.name: await _shown(lore, room.name) for room in ROOMS if room.session}
    return Stored(
        messages=messages,
        evolutions=evolutions,
        memories=memories,
        steps=steps(url),
        works=await works(url),
        windows=windows,
        troubles=[*troubles, *broken_files(url), *_waiting(rooms_due(url))],
    )


async def works(url: str) -> list[WorkState]:
    """All durable work there is."""
    desk = open_dbos(url)
    states: list[WorkState] = []
    await desk.open(working=False)
    try:
        while page := await desk.page(limit=_PAGE, offset=len(states)):
            states += page
    finally:
        await desk.close()
    return states


async def is_settled(url: str) -> bool:
    """Return True if no work waits or runs, and no room may have any. In this order: work that ends notes its room
    first."""
    if {work.status for work in await works(url)} & {"waiting", "running"}:
        return False
    return rooms_due(url) == 0


def rooms_due(url: str) -> int:
    """Return how many rooms are noted for extraction."""
    return int(rows_of(own_database(url), "SELECT count(*) FROM rooms_due")[0][0])


def steps(url: str, answer: str = "raw_answer") -> list[Step]:
    """Those that were finished; failed ones are left out. `answer`: the field that has the model's words."""
    place = location_of(url)
    table = "operation_outputs" if place.on_a_file else "dbos.operation_outputs"
    rows = rows_of(
        create_engine(place.url),
        f"SELECT workflow_uuid, output, completed_at_epoch_ms FROM {table} ORDER BY workflow_uuid, function_id",
    )
    rows_of_steps = [(work_id, json.loads(output).get("gave"), at) for work_id, output, at in rows if output]
    return [
        Step(work_id, request_of(str(gave[answer])), at / 1000)
        for work_id, gave, at in rows_of_steps
        if gave and answer in gave
    ]


def broken_files(url: str) -> list[str]:
    """Return what SQLite finds wrong with its files."""
    place = location_of(url)
    if not place.on_a_file:
        return []
    faults = {"database": rows_of(own_database(url), "PRAGMA integrity_check")}
    faults["database of work"] = rows_of(create_engine(place.url), "PRAGMA integrity_check")
    return [f"{name}: {row[0]}" for name, rows in faults.items() for row in rows if row[0] != "ok"]


def _waiting(rooms: int) -> list[str]:
    return [f"{rooms} rooms are still noted for extraction"] if rooms else []


def _agents(messages: Mapping[str, Sequence[StoredMessage]]) -> list[str]:
    """The scopes of whoever replied."""
    return sorted(
        {
            f"agent:{m.sender_id}"
            for messages_of_room in messages.values()
            for m in messages_of_room
            if m.role is Role.ASSISTANT
        }
    )


async def log_of(storage: Storage, scope: str) -> list[Change]:
    """All of it."""
    found: list[Change] = []
    async with storage.reading("default") as work:
        while page := await work.memories.changes(scope=scope, after=len(found), limit=_PAGE):
            found += page
    return found


async def versions_of(storage: Storage, log: Sequence[Change]) -> dict[str, Memory]:
    """Return the rows of everything that the log mentions, by id."""
    ids = list({change.memory.memory_id for change in log})
    found: dict[str, Memory] = {}
    async with storage.reading("default") as work:
        for first in range(0, len(ids), _PAGE):
            page = await work.memories.by_id(memory_ids=ids[first : first + _PAGE])
            found |= {memory.memory_id: memory for memory in page}
    return found


async def records_of(storage: Storage, scope: str) -> list[Evolution]:
    """The newest first."""
    records: list[Evolution] = []
    async with storage.reading("default") as work:
        while page := await work.memories.evolutions(
            scope=scope, before=records[-1].evolution_id if records else None, limit=_PAGE
        ):
            records += page
    return records


async def differences(storage: Storage, scope: str, log: Sequence[Change], tables: Mapping[str, Memory]) -> list[str]:
    """Between the log of a scope and its tables, a line each."""
    wrong: list[str] = []
    if [change.number for change in log] != list(range(1, len(log) + 1)):
        wrong.append(f"{scope}: its log has a gap")
    replayed = replay(log)
    differing = [
        memory_id for memory_id in sorted({*replayed, *tables}) if replayed.get(memory_id) != tables.get(memory_id)
    ]
    wrong += [f"{scope}: the log and the table differ about {memory_id}" for memory_id in differing]
    async with storage.reading("default") as work:
        heads = await work.memories.count(scopes=[scope], kinds=tuple(MemoryKind), status=None)
    if heads != len({memory.lineage_id for memory in tables.values()}):
        wrong.append(f"{scope}: {heads} lineages are stored, and its log knows others")
    return wrong


async def _shown(lore: roomlore.Lore, room: str) -> list[str]:
    """Return what a session shows that forgets nothing."""
    context = await lore.sessions.query_context(room, model_context_window=_WIDE)
    return [message["content"] for message in context.messages]


def own_database(url: str) -> Engine:
    """roomlore's own tables, for queries of ours."""
    parsed = make_url(url)
    on_a_file = parsed.drivername.startswith("sqlite")
    return create_engine(parsed.set(drivername="sqlite" if on_a_file else "postgresql+psycopg"))


def rows_of(engine: Engine, query: str) -> list[Any]:
    """Return the result and dispose of the engine."""
    try:
        with engine.connect() as connection:
            return list(connection.execute(text(query)))
    finally:
        engine.dispose()
