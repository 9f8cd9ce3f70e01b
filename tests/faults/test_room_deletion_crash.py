"""kill -9 at every transaction of the deletion of a room: nothing was begun, or the room is hidden and the next one
that deletes it, a person or the background, goes on."""

import asyncio
import signal
from datetime import UTC, datetime

import pytest

import roomlore
from forked_process import run_forked
from roomlore import MemoryKind, Message, Settings, Source
from roomlore.core.errors import Conflict, NotFound
from worker_processes import kills

KILLED = """
import asyncio, os, signal, sys
from contextlib import asynccontextmanager
import roomlore
from roomlore_testkit.embedding import HashEmbedder

url, at = sys.argv[1], int(sys.argv[2])

async def main():
    settings = roomlore.Settings(durable_work="process", vectors="sql")
    async with roomlore.open(url, settings=settings, embedder=HashEmbedder(), background=False) as lore:
        storage, count = type(lore.storage), 0
        whole = storage.writing

        @asynccontextmanager
        async def writing(self, *words, **named):
            nonlocal count
            async with whole(self, *words, **named) as work:
                yield work
                count += 1
                if count == at:
                    os.kill(os.getpid(), signal.SIGKILL)

        storage.writing = writing
        await lore.rooms.delete("tea")

asyncio.run(main())
"""
BEGAN = datetime(2020, 1, 1, tzinfo=UTC)
MOST = 40


async def fill(lore) -> None:
    said = [
        Message(id=f"{n}", room_id=room, sender_id="ann", text=f"{n}: the mill closes in May", sent_at=BEGAN)
        for room, count in (("tea", 230), ("den", 3))
        for n in range(count)
    ]
    await lore.messages.add(said)
    await lore.sessions.create_session("tea", "ann")
    here, there = Source("tea", "1"), Source("den", "1")
    await lore.memories.add("user:ann", f"works at the mill {lore.now()}", sources=[here])
    await lore.memories.add("user:ann", f"likes the mill {lore.now()}", sources=[here, there])
    await lore.memories.add("group:tea", "the mill closes", kind=MemoryKind.GROUP, sources=[here])
    async for _ in lore.index.drain():
        pass


async def is_hidden(lore) -> bool:
    """Whether the deletion was begun: then nobody reads the room or writes to it."""
    report = await lore.privacy.verify()
    assert report.sound, report.faults
    try:
        await lore.rooms.get("tea")
    except NotFound:
        assert [room.room_id for room in await lore.rooms.page()] == ["den"]
        assert await lore.memories.page("group:tea", viewer=None) == []
        with pytest.raises(Conflict):
            await lore.messages.add([Message(id="new", room_id="tea", sender_id="ann", text="hello")])
        return True
    assert (await lore.rooms.delete("tea", dry_run=True)).places["messages"] == 230
    return False


async def assert_gone(lore) -> None:
    with pytest.raises(NotFound):
        await lore.rooms.get("tea")
    facts = await lore.memories.page("user:ann", viewer=None)
    assert all(fact.sources == (Source("den", "1"),) for fact in facts)
    assert facts
    report = await lore.privacy.verify()
    assert report.sound, report.faults
    async with lore.storage.reading(lore.tenant) as work:
        for table in await work.maintenance.tables():
            rows = await work.maintenance.rows(table=table, after=None, limit=10_000)
            told = [row for row in rows for texts in row.texts.values() if {"tea", "group:tea"}.intersection(texts)]
            assert told == [], table


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    return f"sqlite:///{tmp_path}/a.db" if request.param == "sqlite" else request.getfixturevalue("empty_postgres")


async def test_a_kill_at_any_transaction_loses_nothing_and_leaves_nothing(url, tmp_path):
    settings = Settings(durable_work="process", vectors="sql")
    program = tmp_path / "killed.py"
    program.write_text(KILLED, encoding="utf-8")
    from roomlore_testkit.embedding import HashEmbedder

    hidden = []
    step = max(1, 9 // kills(3))
    for at in range(1, MOST, step):
        async with roomlore.open(url, settings=settings, embedder=HashEmbedder(), background=False) as lore:
            await fill(lore)
        killed = await asyncio.to_thread(run_forked, program, url, str(at))
        if killed.returncode == 0:
            break
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        async with roomlore.open(url, settings=settings, embedder=HashEmbedder(), background=False) as lore:
            hidden.append(await is_hidden(lore) if at < 9 else True)
            try:
                await lore.rooms.delete("tea")
            except NotFound:
                assert at > 9, "it was done, and the databases were to be compacted"
            await assert_gone(lore)
    assert killed.returncode == 0, "every place was tried"
    assert hidden[0] is False
    assert any(hidden)


async def test_the_next_process_goes_on_by_itself(url, tmp_path):
    settings = Settings(durable_work="process")
    program = tmp_path / "killed.py"
    program.write_text(KILLED.replace('lore.rooms.delete("tea")', 'lore.rooms.begin_deletion("tea")'), encoding="utf-8")
    async with roomlore.open(url, settings=settings, background=False) as lore:
        await fill(lore)
    killed = await asyncio.to_thread(run_forked, program, url, "2")
    assert killed.returncode in (-signal.SIGKILL, 0), killed.stderr
    async with roomlore.open(url, settings=settings) as lore:
        async with asyncio.timeout(60):
            while True:
                async with lore.storage.reading(lore.tenant) as work:
                    if not await work.progress.noted(work="room_deletion"):
                        break
                await asyncio.sleep(0.1)
        await assert_gone(lore)
