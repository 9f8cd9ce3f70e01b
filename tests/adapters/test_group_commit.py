"""Brief units of work share a transaction of SQLite, and a long read leaves the event loop to others."""

import asyncio
import time
from contextlib import asynccontextmanager

import pytest
from sqlalchemy import text

from roomlore.core.errors import StorageUnavailable
from roomlore.storage import connect
from roomlore.storage.engine import UNDO, Statement
from roomlore.storage.store import GroupCommit
from roomlore_testkit import START

LONG = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) SELECT count(*) FROM n"


class Script:
    """A connection that notes what it runs, and fails at one statement."""

    def __init__(self, fails: str = "") -> None:
        self.ran: list[str] = []
        self.fails = fails
        self._awaited: dict[str, asyncio.Event] = {}

    async def reached(self, sql: str) -> None:
        await self._awaited.setdefault(sql, asyncio.Event()).wait()

    async def run(self, sql: str) -> None:
        await asyncio.sleep(0)
        self.ran.append(sql)
        if sql in self._awaited:
            self._awaited[sql].set()
        if sql == self.fails:
            raise StorageUnavailable("the disk is full")

    async def commit(self, *, brief: bool) -> None:
        await self.run("COMMIT")

    def group(self) -> GroupCommit:
        @asynccontextmanager
        async def transaction():
            await self.run("BEGIN")
            try:
                yield self
            except BaseException:
                await self.run("ROLLBACK")
                raise

        return GroupCommit(transaction)


async def write(group: GroupCommit, name: str, error: Exception | None = None) -> str:
    async with group.unit() as connection:
        await connection.run(name)
        if error:
            raise error
    return name


async def test_one_alone_has_no_savepoint():
    script = Script()
    await write(script.group(), "a")
    assert script.ran == ["BEGIN", "a", "COMMIT"]


async def test_those_that_come_together_commit_once():
    script = Script()
    group = script.group()
    assert await asyncio.gather(*(write(group, name) for name in "abc")) == ["a", "b", "c"]
    assert script.ran == ["BEGIN", "a", "SAVEPOINT unit", "b", "SAVEPOINT unit", "c", "COMMIT"]


async def test_an_error_undoes_its_own_unit_only():
    script = Script()
    group = script.group()
    came = await asyncio.gather(
        write(group, "a"), write(group, "b", KeyError("b")), write(group, "c"), return_exceptions=True
    )
    assert [came[0], repr(came[1]), came[2]] == ["a", "KeyError('b')", "c"]
    assert script.ran == ["BEGIN", "a", "SAVEPOINT unit", "b", UNDO, "SAVEPOINT unit", "c", "COMMIT"]


async def test_after_an_error_of_the_first_the_next_begins_anew():
    script = Script()
    group = script.group()
    came = await asyncio.gather(write(group, "a", KeyError("a")), write(group, "b"), return_exceptions=True)
    assert came[1] == "b"
    assert script.ran == ["BEGIN", "a", "ROLLBACK", "BEGIN", "b", "COMMIT"]


@pytest.mark.parametrize("fails", ["COMMIT", UNDO])
async def test_what_is_not_committed_is_acknowledged_to_nobody(fails):
    script = Script(fails)
    group = script.group()
    given = [write(group, "a"), write(group, "b"), write(group, "c", KeyError("c") if fails == UNDO else None)]
    came = await asyncio.gather(*given, return_exceptions=True)
    assert all(isinstance(error, StorageUnavailable) for error in came[:2])
    assert isinstance(came[2], KeyError if fails == UNDO else StorageUnavailable)
    assert script.ran[-1] == "ROLLBACK"
    script.fails = ""
    assert await write(group, "later") == "later"


async def test_one_that_is_cancelled_while_it_waits_takes_no_part():
    script = Script()
    group = script.group()
    tasks = [asyncio.create_task(write(group, name)) for name in "abc"]
    await asyncio.sleep(0)
    tasks[1].cancel()
    came = await asyncio.gather(*tasks, return_exceptions=True)
    assert came[0] == "a"
    assert came[2] == "c"
    assert "b" not in script.ran


async def test_the_first_that_is_cancelled_at_the_commit_leaves_the_others_theirs():
    script = Script()
    group = script.group()
    tasks = [asyncio.create_task(write(group, name)) for name in "abc"]
    await script.reached("c")
    tasks[0].cancel()
    came = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(came[0], asyncio.CancelledError)
    assert came[1:] == ["b", "c"]
    assert script.ran.count("COMMIT") == 1


async def test_a_long_read_runs_beside_the_event_loop(tmp_path):
    storage = await connect(f"sqlite:///{tmp_path}/a.db")
    counted = Statement(lambda: text(LONG.format(3_000_000)).columns())
    short = Statement(lambda: text(LONG.format(10)).columns())
    async with storage.reading() as work:
        assert (await work.connection.fetch(short))[0][0] == 10
        reading = asyncio.create_task(work.connection.fetch(counted))
        longest = 0.0
        while not reading.done():
            began = time.perf_counter()
            await asyncio.sleep(0.001)
            longest = max(longest, time.perf_counter() - began)
        assert (await reading)[0][0] == 3_000_000
    assert longest < 0.2
    await storage.close()


async def test_a_cancelled_read_is_interrupted_and_its_connection_used_again(tmp_path):
    storage = await connect(f"sqlite:///{tmp_path}/a.db")
    endless = Statement(lambda: text(LONG.format(10**12)).columns())
    for _ in range(6):
        began = time.perf_counter()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05), storage.reading() as work:
                await work.connection.fetch(endless)
        assert time.perf_counter() - began < 2
        async with storage.reading("t") as work:
            assert await work.rooms.find(room_id="r") is None
    await storage.close()


async def test_a_writer_waits_for_another_programs_lock_without_the_event_loop(tmp_path):
    one, two = [await connect(f"sqlite:///{tmp_path}/a.db") for _ in range(2)]

    async def make(storage, room_id):
        async with storage.writing("t", brief=True) as work:
            await work.rooms.lock(room_id=room_id, now=START)

    async with one.writing("t") as work:
        await work.rooms.lock(room_id="a", now=START)
        waiting = asyncio.create_task(make(two, "b"))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        await asyncio.wait_for(one.ping(), 1)
    await waiting
    async with one.reading("t") as work:
        assert await work.rooms.find(room_id="b") is not None
    await one.close()
    await two.close()
