"""Sessions in SQL: which index is used, and who waits for whom."""

import asyncio
import re
from collections.abc import AsyncIterator

import psycopg
import pytest
from plans import analyse, plan, without_statistics

from roomlore.core.sessions.session import DueCheckpoint
from roomlore.storage import Storage, connect
from roomlore.storage.messages import _CHANGED
from roomlore.storage.sessions import _DUE, _FIND
from roomlore_testkit import START, entry, session
from storage_contracts.sessions import MINUTE, find, make_due, names, save, schedule, take
from storage_contracts.texts import ROOM, TENANT, fill


@pytest.fixture
async def postgres(postgres_url: str) -> AsyncIterator[Storage]:
    storage = await connect(postgres_url)
    yield storage
    await storage.close()


@pytest.fixture(params=["sqlite_url", "postgres_url"])
def filled_url(request: pytest.FixtureRequest) -> str:
    """The address of a database with a room of 300 messages."""
    url = str(request.getfixturevalue(request.param))
    asyncio.run(_fill(url))
    return url


async def _fill(url: str) -> None:
    without_statistics(url)
    storage = await connect(url)
    await fill(storage, [entry(n) for n in range(1, 301)])
    await storage.close()


@pytest.mark.parametrize("analysed", [False, True])
def test_what_changed_is_found_without_walking_the_room(filled_url, analysed):
    if analysed:
        analyse(filled_url)
    found = plan(filled_url, _CHANGED)
    assert "ix_message_words_changed" in found
    assert not re.search("SCAN (messages|message_words)|Seq Scan|pk_message_words", found)
    assert re.search(r"\(room_key=\? AND arrival=\?\)|AND \(arrival = message_words.arrival\)", found)


def test_sessions_are_found_along_indexes(filled_url):
    assert "ix_sessions_due_at" in plan(filled_url, _DUE)
    for statement in (_DUE, _FIND):
        assert not re.search("SCAN|Seq Scan|TEMP B-TREE", plan(filled_url, statement))


async def test_a_locked_room_does_not_keep_what_is_due_waiting(postgres):
    await make_due(postgres, START)
    async with postgres.writing(TENANT) as work:
        await work.rooms.lock(room_id=ROOM, now=START)
        async with asyncio.timeout(60):
            assert names(await take(postgres, START)) == [ROOM]
            assert await schedule(postgres, DueCheckpoint(at=START), START + MINUTE)
        await work.sessions.save(session=session(2))
    assert await find(postgres) == session(2, due=DueCheckpoint(at=START))


async def test_a_session_that_is_being_written_is_passed_over(postgres):
    await make_due(postgres, START)
    await make_due(postgres, START + MINUTE, "b")
    async with postgres.writing(TENANT) as work:
        await work.rooms.lock(room_id=ROOM, now=START)
        await work.sessions.save(session=session(2))
        async with asyncio.timeout(60):
            assert names(await take(postgres, START + MINUTE)) == ["b"]
    assert names(await take(postgres, START + MINUTE)) == [ROOM]


async def test_who_waited_to_schedule_compares_with_what_is_there_then(postgres):
    await save(postgres, session(1))
    async with postgres.writing(TENANT) as work:
        assert await work.sessions.schedule(conversation_id=ROOM, due=DueCheckpoint(at=START), was=None)
        late = asyncio.create_task(schedule(postgres, DueCheckpoint(at=START + MINUTE), None))
        await asyncio.sleep(0.1)
        assert not late.done()
    assert not await late
    assert await find(postgres) == session(1, due=DueCheckpoint(at=START))


async def test_a_row_is_redacted_as_it_is_once_its_room_is_locked(postgres, postgres_url):
    """A regression: a state that was saved while a person's name was removed from it was overwritten, on PostgreSQL."""
    await fill(postgres, [entry(1)])
    await save(postgres, session(state={"asked by": "ann"}))
    async with postgres.reading(TENANT) as work:
        (row,) = await work.maintenance.rows(table="sessions", after=None, limit=9)

    async def redact() -> None:
        async with postgres.writing(TENANT) as work:
            await work.maintenance.redact_row(
                table="sessions", key=row.key, columns=["state"], change=lambda text: text.replace("ann", "[forgotten]")
            )

    waiting = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    async with (
        postgres.writing(TENANT) as work,
        await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as look,
    ):
        await work.rooms.lock(room_id=ROOM, now=START)
        redacting = asyncio.ensure_future(redact())
        while not redacting.done() and not await (await look.execute(waiting)).fetchall():
            await asyncio.wait({redacting}, timeout=0.01)
        await work.sessions.save(session=session(state={"asked by": "ann", "plan": "gold"}, version=2))
    await redacting
    assert (await find(postgres)).state == {"asked by": "[forgotten]", "plan": "gold"}
