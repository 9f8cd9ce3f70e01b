"""Opening: which addresses are understood, and what is said when a database cannot be opened."""

import asyncio
import sys
import time

import psycopg
import pytest
from sqlalchemy import create_engine

import open_connections
from roomlore.core.errors import InvalidInput, StorageUnavailable
from roomlore.storage import connect
from roomlore_testkit import START


@pytest.mark.parametrize("form", ["sqlite:///{}/a.db", "{}/a.db", "sqlite+aiosqlite:///{}/a.db"])
async def test_forms_of_a_file(tmp_path, form):
    storage = await connect(form.format(tmp_path))
    await storage.ping()
    await storage.close()
    assert (tmp_path / "a.db").exists()


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:"])
async def test_forms_of_memory_are_a_database_each(url):
    one, two = await connect(url), await connect(url)
    async with one.writing("t") as work:
        await work.rooms.lock(room_id="r", now=START)
    async with two.reading("t") as work:
        assert await work.rooms.find(room_id="r") is None
    await one.close()
    await two.close()


@pytest.mark.parametrize(
    "url", ["", "roomlore", "mysql://x/y", "postgres", "file.txt", "sqlite:/x", "://", "postgresql+asyncpg://x"]
)
async def test_other_addresses_are_refused_with_the_forms_there_are(url):
    with pytest.raises(InvalidInput, match="sqlite:///path"):
        await connect(url)


def test_a_missing_folder_leaves_no_thread_behind(tmp_path, monkeypatch):
    left: list[object] = []
    monkeypatch.setattr("threading.excepthook", left.append)

    async def fail() -> None:
        with pytest.raises(StorageUnavailable):
            await connect(f"sqlite:///{tmp_path}/none/a.db")

    for _ in range(20):
        asyncio.run(fail())
    time.sleep(0.05)
    assert left == []


async def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(StorageUnavailable, match="folder exists"):
        await connect(f"sqlite:///{tmp_path}/none/a.db")


async def test_a_file_that_is_no_database(tmp_path):
    (tmp_path / "a.db").write_text("this is not a database at all" * 100)
    with pytest.raises(StorageUnavailable, match="another path"):
        await connect(f"sqlite:///{tmp_path}/a.db")


async def test_a_postgres_that_is_not_there_keeps_the_password_to_itself():
    with pytest.raises(StorageUnavailable) as caught:
        await connect("postgresql://user:hunter2@127.0.0.1:1/none")
    assert "hunter2" not in str(caught.value)


async def test_postgres_without_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InvalidInput, match=r"roomlore\[postgres\]"):
        await connect("postgresql://localhost/x")


async def test_a_warm_open_is_quick(sqlite_url):
    assert min([await _seconds_to_open(sqlite_url) for _ in range(5)]) < 0.05


async def _seconds_to_open(url: str) -> float:
    """Of the processor, whatever else the machine does."""
    started = time.process_time()
    storage = await connect(url)
    took = time.process_time() - started
    await storage.close()
    return took


_END_THE_OTHERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND datname = current_database()
"""


async def test_a_postgres_that_restarts_is_found_again(postgres_url):
    """Every pooled connection dies; one call may fail, the next one is served."""
    storage = await connect(postgres_url)
    await storage.ping()
    with psycopg.connect(postgres_url, autocommit=True) as other:
        other.execute(_END_THE_OTHERS)
    with pytest.raises(StorageUnavailable):
        await storage.ping()
    await storage.ping()
    await storage.close()


_CALLS = """
SELECT pid, wait_event FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND datname = current_database() AND state IS NOT NULL
"""


def _asleep(connection: psycopg.Connection) -> set[int]:
    """Wait for a call that sleeps, and return whose it is."""
    while not (found := {pid for pid, event in connection.execute(_CALLS) if event == "PgSleep"}):
        time.sleep(0.01)
    return found


async def test_a_postgres_connection_whose_call_was_cancelled_is_not_used_again(postgres_url):
    """psycopg may count on a prepared statement that the server does not have. The other connections stay."""
    storage = await connect(postgres_url)
    async with storage.reading(), storage.reading():
        pass
    with psycopg.connect(postgres_url, autocommit=True) as other:
        before = {pid for pid, _ in other.execute(_CALLS)}

        async def sleep() -> None:
            async with storage.reading() as work:
                await work.connection.run("SELECT pg_sleep(60)")

        task = asyncio.create_task(sleep())
        asleep = await asyncio.to_thread(_asleep, other)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert asleep < before
        async with storage.reading(), storage.reading():
            assert {pid for pid, _ in other.execute(_CALLS)} & before == before - asleep
    await storage.close()


def leave_open(url: str) -> psycopg.Connection:
    return psycopg.connect(url)


def test_a_connection_left_open_names_who_made_it(postgres_url):
    with (
        pytest.raises(AssertionError, match=r"made by .*who_made_it.*(?s:.)*in leave_open"),
        open_connections.all_closed(patience_seconds=0),
    ):
        left = leave_open(postgres_url)
    left.close()


def test_an_engine_left_open_names_who_made_it(postgres_url):
    engine = create_engine(postgres_url.replace("postgresql://", "postgresql+psycopg://"))
    with (
        pytest.raises(AssertionError, match="in test_an_engine_left_open_names_who_made_it"),
        open_connections.all_closed(patience_seconds=0),
    ):
        engine.connect().close()
    engine.dispose()
