"""The tables of messages in partitions: the contracts on them, and which partitions each statement reads."""

import asyncio
import itertools
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest
from sqlalchemy import make_url
from typer.testing import CliRunner

import roomlore
import storage_contracts as contracts
from forget_rig import ENGLISH, NOW, ROOM, fill
from roomlore import Lore, Message, Settings
from roomlore.adapters.vectors.pgvector import PgVectors
from roomlore.adapters.vectors.sql import pgvector_error
from roomlore.core.errors import InvalidInput, StorageBusy
from roomlore.core.recall.recollection import ConversationMessage
from roomlore.ports.vectors import MESSAGES
from roomlore.storage import Storage, archives, connect, every_row, integrity, partitions, people
from roomlore.storage.engine import Statement
from roomlore.storage.partitions import Copied, abandon, partition
from roomlore.storage.postgres import PostgresConnection
from roomlore.surfaces.cli.app import app
from roomlore_testkit import builders
from roomlore_testkit.contracts.vectors import FIRST, MODEL, ask, points_of, put, random_vectors
from roomlore_testkit.embedding import HashEmbedder


@pytest.fixture
async def storage(partitioned_url: str) -> AsyncIterator[Storage]:
    opened = await connect(partitioned_url)
    yield opened
    await opened.close()


class TestMessages(contracts.MessagesContract): ...


class TestThreads(contracts.ThreadsContract): ...


class TestCorrections(contracts.CorrectionsContract): ...


class TestWriter(contracts.WriterContract): ...


class TestLexical(contracts.LexicalContract): ...


_PARTITIONED = ("messages", "message_features", "link_corrections", "message_words", "keyword_counts", "vectors")
_EXPLAIN = "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, BUFFERS OFF, FORMAT JSON) "
_SCANS = """
SELECT relname, coalesce(seq_scan, 0) + coalesce(idx_scan, 0) + n_tup_ins + n_tup_upd + n_tup_del
FROM pg_stat_xact_user_tables
"""


_ACROSS = {
    people._ROOMS_OF: "forgetting a person asks for each of their rooms if others speak there",
    people._SAID_BY_OTHERS: "forgetting a person compares their texts with those of others in all rooms",
    archives._ROOMS_DUE: "archiving asks which rooms have old messages",
    **dict.fromkeys(integrity._ORPHAN_ROWS.values(), "verify looks for rows without a message in all rooms"),
}
"""Statements that read several rooms by what they are asked for. All are of forgetting, archiving and checks."""


_SEARCHES = ("_rooms_telling", "_rooms_with", "_count")
"""Functions that make the statements by which forgetting a person searches all rooms."""


class Reads:
    """Explains each statement of a connection before it runs, in a transaction that it undoes, and notes which
    partitions of which tables it read or wrote: as its plan says, and, for functions and foreign keys, as PostgreSQL
    counts."""

    def __init__(self) -> None:
        self.most: dict[Statement, int] = {}

    async def explain(self, connection: PostgresConnection, statement: Statement, params: Any) -> None:
        compiled = statement.on(connection.dialect)
        params = compiled.ordered(params) if isinstance(params, dict) else params
        if not any(table in compiled.sql or "roomlore_postings" in compiled.sql for table in _PARTITIONED):
            return
        driver = connection._driver
        inside = driver.info.transaction_status.name == "INTRANS"
        await driver.execute("SAVEPOINT explained" if inside else "BEGIN")
        try:
            before = dict(await (await driver.execute(_SCANS)).fetchall())
            (told,) = await (await driver.execute((_EXPLAIN + compiled.sql).encode(), params)).fetchone() or ("",)
            after = dict(await (await driver.execute(_SCANS)).fetchall())
        finally:
            await driver.execute("ROLLBACK TO explained" if inside else "ROLLBACK")
        read = set(_scanned(told[0]["Plan"])) | {name for name, count in after.items() if count != before.get(name)}
        parts: dict[str, set[str]] = defaultdict(set)
        for name in read:
            table, _, part = name.rpartition("_")
            if table in _PARTITIONED:
                parts[table].add(part)
        self.most[statement] = max(self.most.get(statement, 0), *map(len, parts.values()), 0)


def _scanned(plan: dict[str, Any]) -> Iterator[str]:
    """The tables that a plan scanned at least once."""
    if "Scan" in plan["Node Type"] and plan["Actual Loops"] and "Relation Name" in plan:
        yield plan["Relation Name"]
    for below in plan.get("Plans", ()):
        yield from _scanned(below)


@contextmanager
def reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[Reads]:
    found = Reads()
    fetch, many = PostgresConnection.fetch, PostgresConnection.many

    async def fetch_explained(self: PostgresConnection, statement: Statement, **params: Any) -> Any:
        await found.explain(self, statement, params)
        return await fetch(self, statement, **params)

    async def many_explained(self: PostgresConnection, statement: Statement, rows: Any) -> None:
        rows = list(rows)
        for row in rows[:1]:
            await found.explain(self, statement, row)
        await many(self, statement, rows)

    # One after another: in a pipeline a statement would be explained before those that it follows have run.
    async def write_explained(
        self: PostgresConnection, changes: Any, statement: Statement, params: Any, **_: Any
    ) -> Any:
        for change, rows in changes:
            await many_explained(self, change, rows)
        return await fetch_explained(self, statement, **params)

    async def locked_explained(self: PostgresConnection, lock: Statement, statement: Statement, **params: Any) -> Any:
        await fetch_explained(self, lock, **params)
        return await fetch_explained(self, statement, **params)

    with monkeypatch.context() as patched:
        patched.setattr(PostgresConnection, "fetch", fetch_explained)
        patched.setattr(PostgresConnection, "many", many_explained)
        patched.setattr(PostgresConnection, "write", write_explained)
        patched.setattr(PostgresConnection, "fetch_locked", locked_explained)
        yield found


@pytest.fixture
async def lore(partitioned_url: str, tmp_path: Path) -> AsyncIterator[Lore]:
    settings = Settings(durable_work="process", vectors="sql", archive_folder=str(tmp_path), quota_messages_kept=10_000)
    async with roomlore.open(partitioned_url, settings=settings, embedder=HashEmbedder(), background=False) as opened:
        yield opened


async def _other_rooms(lore: Lore) -> None:
    """Rooms in every partition, so that a statement that reads all of them shows it."""
    said = [
        Message(id=f"m{number}", room_id=f"room-{room}", sender_id="ben", text="who waters the garden?", sent_at=NOW)
        for room in range(20)
        for number in range(3)
    ]
    await lore.messages.add(said)


async def _index(lore: Lore) -> None:
    async for _ in lore.index.drain():
        pass


async def test_every_statement_of_one_room_reads_one_partition(lore, monkeypatch):
    await _other_rooms(lore)
    await _index(lore)
    searches: set[Statement] = set()
    for name in _SEARCHES:
        monkeypatch.setattr(every_row, name, _noting(getattr(every_row, name), searches))
    with reads(monkeypatch) as found:
        await fill(lore, ENGLISH)
        await _index(lore)
        await lore.messages.edit(ROOM, "ben-10", text="good evening, who waters the garden?")
        await lore.messages.delete(ROOM, "ben-6")
        for mode in ("hybrid", "lexical"):
            assert (await lore.messages.search(ROOM, "who waters the garden", mode=mode, conversation=True)).hits
        assert (await lore.messages.search(None, "who waters the garden", viewer="user:ben")).hits
        await lore.context.build(ROOM)
        await lore.context.build(ROOM, strategy="weighted")
        await lore.digest(ROOM, for_user="ben")
        await lore.rooms.threads(ROOM)
        await lore.rooms.headings(ROOM, ["ben-1"])
        await lore.rooms.thread(ROOM, "ben-1")
        await lore.rooms.page()
        await lore.rooms.page(viewer="user:ben")
        await lore.rooms.mark_read(ROOM, "ben")
        await lore.messages.page(ROOM)
        await lore.messages.named(ROOM, "ben-1")
        await lore.links.undo(ROOM, "ben-4")
        await lore.links.corrections(ROOM)
        await lore.sessions.messages(ENGLISH.user_id)
        await lore.sessions.query_context(ENGLISH.user_id)
        await lore.recall.memory_prompt([f"group:{ROOM}"], [ConversationMessage("user", "who waters the garden?")])
        assert (await lore.archives.run(days=0)).messages > 60
        await lore.archives.restore(room_id=ROOM)
        await lore.privacy.verify()
        await lore.privacy.forget(ENGLISH.user_id)
    assert len(found.most) > 80, "the verbs above run this many statements on these tables"
    several = {statement for statement, parts in found.most.items() if parts > 1}
    assert {_sql(statement) for statement in several - _ACROSS.keys() - searches} == set()


def _noting(make: Callable[..., Statement], made: set[Statement]) -> Callable[..., Statement]:
    def noted(*how: Any) -> Statement:
        statement = make(*how)
        made.add(statement)
        return statement

    return noted


def _sql(statement: Statement) -> str:
    return statement.on(make_url("postgresql+psycopg://").get_dialect()(paramstyle="format")).sql


class _Talk:
    """Rooms in which people write, edit and delete, and what each is acknowledged to hold."""

    def __init__(self, lore: Lore) -> None:
        self._lore = lore
        self._numbers = itertools.count(1)
        self.said: dict[str, dict[str, str]] = defaultdict(dict)

    async def go_on(self, random: Random) -> None:
        room_id = f"room-{random.randrange(8)}"
        here = self.said[room_id]
        step = random.random()
        if step < 0.6 or len(here) < 3:
            new = {f"m{next(self._numbers)}": f"the garden needs water {random.random()}" for _ in range(3)}
            await self._lore.messages.add([_said(room_id, name, text) for name, text in new.items()])
            here |= new
        elif step < 0.85:
            name, text = random.choice(sorted(here)), f"the mill needs no water {random.random()}"
            await self._lore.messages.edit(room_id, name, text=text)
            here[name] = text
        else:
            name = random.choice(sorted(here))
            await self._lore.messages.delete(room_id, [name])
            del here[name]

    async def go_on_until(self, done: asyncio.Event, random: Random) -> int:
        steps = 0
        while not done.is_set():
            await self.go_on(random)
            steps += 1
        return steps

    async def check(self) -> None:
        for room_id, here in self.said.items():
            assert {one.id: one.text async for one in self._lore.messages.export(room_id)} == here
            found = await self._lore.messages.search(room_id, "needs water", limit=200)
            assert {hit.message.id for hit in found.hits} == set(here)
        assert (await self._lore.privacy.verify()).sound


def _said(room_id: str, name: str, text: str) -> Message:
    return Message(id=name, room_id=room_id, sender_id="ben", text=text, sent_at=NOW)


@pytest.fixture
async def whole(postgres_url: str) -> AsyncIterator[Lore]:
    """On a database whose tables have no partitions."""
    settings = Settings(durable_work="process", vectors="sql")
    async with roomlore.open(postgres_url, settings=settings, embedder=HashEmbedder(), background=False) as opened:
        yield opened


def _ask(url: str, sql: str) -> Any:
    with psycopg.connect(url) as connection:
        return (connection.execute(sql.encode()).fetchone() or (None,))[0]


_PARTS = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'messages'::regclass"


async def test_a_database_is_copied_while_it_is_written_to(whole, postgres_url):
    talk, random = _Talk(whole), Random(5)
    for _ in range(60):
        await talk.go_on(random)
    await _index(whole)
    told, done = [], asyncio.Event()
    writing = asyncio.create_task(talk.go_on_until(done, random))
    assert await partition(postgres_url, 4, told=told.append)
    await talk.go_on(random)
    done.set()
    assert await writing > len(told) / 4, "the writer was not kept waiting"
    assert _ask(postgres_url, _PARTS) == 4
    assert told[-1].rooms == told[-1].all_rooms
    await talk.check()
    assert not await partition(postgres_url, 4, told=told.append)
    with pytest.raises(InvalidInput, match="4 partitions already"):
        await partition(postgres_url, 8, told=told.append)


async def test_a_stopped_copy_goes_on_and_carries_every_change(whole, postgres_url):
    """A copy that was killed leaves triggers, and changes to copied and to other rooms both arrive."""
    talk, random = _Talk(whole), Random(7)
    for _ in range(40):
        await talk.go_on(random)
    await _index(whole)

    def stop(copied: Copied) -> None:
        if copied.rooms == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await partition(postgres_url, 4, told=stop)
    owner = _ask(postgres_url, "SELECT max(owner) FROM partitioning WHERE kind = 'room'")
    for _ in range(60):
        await talk.go_on(random)
    await _index(whole)
    with pytest.raises(InvalidInput, match="4 partitions already"):
        await partition(postgres_url, 16, told=lambda _: None)
    told: list[Copied] = []
    assert await partition(postgres_url, 4, told=told.append)
    assert told[0].rooms >= 4, f"went on after room {owner}"
    await talk.check()


async def test_a_copy_that_is_given_up_leaves_the_tables_as_they_were(whole, postgres_url):
    talk, random = _Talk(whole), Random(9)
    for _ in range(20):
        await talk.go_on(random)

    def stop(_: Copied) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await partition(postgres_url, 4, told=stop)
    assert await abandon(postgres_url)
    assert not await abandon(postgres_url)
    await talk.go_on(random)
    await talk.check()
    assert _ask(postgres_url, "SELECT count(*) FROM pg_class WHERE relkind = 'p' OR relname LIKE '%in_parts%'") == 0
    assert _ask(postgres_url, "SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal") == 0


async def test_partitions_are_of_postgresql(sqlite_url):
    with pytest.raises(InvalidInput, match="PostgreSQL"):
        await partition(sqlite_url, 4, told=lambda _: None)


async def test_the_copy_waits_for_a_transaction_that_holds_the_tables(whole, postgres_url, monkeypatch):
    monkeypatch.setattr(partitions, "PATIENCE_SECONDS", 0.0)
    await _Talk(whole).go_on(Random(3))
    with psycopg.connect(postgres_url) as other:
        other.execute("SELECT FROM rooms FOR UPDATE")
        with pytest.raises(StorageBusy, match="pg_stat_activity"):
            await partition(postgres_url, 4, told=lambda _: None)
    assert await partition(postgres_url, 4, told=lambda _: None)
    assert _ask(postgres_url, _PARTS) == 4


async def test_both_ways_make_the_same_tables(postgres_url, partitioned_url):
    assert await partition(postgres_url, 4, told=lambda _: None)
    looks = (
        "SELECT string_agg(format('%s %s', indexrelid::regclass, pg_get_indexdef(indexrelid)), ';' ORDER BY"
        " indexrelid::regclass::text) FROM pg_index WHERE indrelid::regclass::text NOT LIKE 'pg\\_%'",
        "SELECT string_agg(format('%s %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid)), ';' ORDER BY"
        " conrelid::regclass::text, conname) FROM pg_constraint WHERE conname NOT LIKE '%\\_fkey%'"
        " AND contype IN ('p', 'u', 'f')",
        "SELECT string_agg(format('%s %s', proname, prosrc), ';' ORDER BY proname) FROM pg_proc"
        " WHERE proname LIKE 'roomlore%'",
        "SELECT string_agg(viewname || definition, ';' ORDER BY viewname) FROM pg_views WHERE schemaname = 'public'",
    )
    for look in looks:
        assert _ask(postgres_url, look) == _ask(partitioned_url, look)


def test_the_command_partitions_a_database_and_says_so(postgres_url):
    def run(*words: str, code: int = 0) -> str:
        result = CliRunner().invoke(app, ["--db", postgres_url, "partition", *words])
        assert result.exit_code == code, result.output
        return result.stdout or result.output

    assert "no copy" in run("--abandon")
    assert "PARTS or --abandon" in run(code=2)
    assert run("4") == "The tables of messages have 4 partitions.\n"
    assert run("4") == "The tables of messages have 4 partitions already.\n"
    assert "cannot be changed to 8" in run("8", code=1)
    assert _ask(postgres_url, _PARTS) == 4


async def test_the_vectors_of_pgvector_have_partitions_too(storage, partitioned_url):
    assert await pgvector_error(storage) is None
    vectors = PgVectors(storage)
    await vectors.prepare(collection=MESSAGES, model=MODEL, generation=FIRST)
    given = random_vectors(6, seed=3)
    await put(vectors, points_of(given))
    (found,) = await ask(vectors, given[:1], limit=1)
    assert found.numbers.tolist() == [1]
    of_vectors = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'vectors_of_messages'::regclass"
    assert _ask(partitioned_url, of_vectors) == 4


async def test_a_room_made_by_a_slow_writer_is_copied_too(whole, postgres_url):
    """Its key is lower than that of a room which others made meanwhile, and it is seen only when it is committed."""
    await whole.messages.add([_said("first", "m1", "the garden needs water")])

    def stop(_: Copied) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await partition(postgres_url, 4, told=stop)
    copied = asyncio.Event()
    async with whole.storage.writing("default") as work:
        await work.rooms.lock(room_id="slow", now=NOW)
        await work.messages.append(room_id="slow", entries=[builders.entry(1, room_id="slow")])
        await whole.messages.add([_said("fast", "m1", "the garden needs water")])
        copying = asyncio.create_task(partition(postgres_url, 4, told=lambda _: copied.set()))
        await asyncio.wait_for(copied.wait(), 20)
        await asyncio.sleep(1)
    assert await copying
    assert len(await whole.messages.page("slow")) == 1
    assert (await whole.privacy.verify()).sound
