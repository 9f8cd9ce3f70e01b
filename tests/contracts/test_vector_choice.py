"""Which vector index a database gets, and what becomes of the vectors when that changes."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import psycopg
import pytest
from sqlalchemy import make_url

from roomlore.adapters.inprocess import SystemClock
from roomlore.adapters.vectors.pgvector import PgVectors
from roomlore.adapters.vectors.sql import SqlVectors
from roomlore.core.errors import InvalidInput, VectorsUnavailable
from roomlore.ports.backends import VECTORS, Host
from roomlore.ports.vectors import MESSAGES, VectorIndex
from roomlore.settings import Settings
from roomlore.storage import Storage, connect
from roomlore.wiring.models import opened, usable
from roomlore_testkit.contracts.vectors import FIRST, MODEL, along, ask, count, fill, numbers_of, points_of, put, remove


@asynccontextmanager
async def _opened(url: str) -> AsyncIterator[Storage]:
    storage = await connect(url)
    try:
        yield storage
    finally:
        await storage.close()


async def open_vectors(storage: Storage, *, kind: str = "auto") -> VectorIndex:
    """Open the vector store that the settings choose for this database."""
    settings, host = Settings(vectors=kind), Host(url="", clock=SystemClock(), storage=storage)
    return opened((await usable(VECTORS, settings, host))[0], settings, host)


def _look(url: str, query: str) -> list[tuple]:
    with psycopg.connect(url) as connection:
        return connection.execute(query).fetchall()


async def test_sqlite_gets_blobs_and_refuses_pgvector():
    async with _opened("sqlite://") as storage:
        assert isinstance(await open_vectors(storage), SqlVectors)
        with pytest.raises(InvalidInput, match="PostgreSQL"):
            await open_vectors(storage, kind="pgvector")


async def test_postgresql_gets_pgvector_made_where_it_is_missing(postgres_url):
    async with _opened(postgres_url) as one, _opened(postgres_url) as two:
        assert isinstance(await open_vectors(one, kind="sql"), SqlVectors)
        opened = await asyncio.gather(open_vectors(one), open_vectors(two), open_vectors(two))
        assert [type(index) for index in opened] == [PgVectors] * 3


@pytest.fixture
def powerless_url(postgres_url: str) -> Iterator[str]:
    """The address for somebody who may use the tables and make nothing."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        name = make_url(postgres_url).database
        role = f"user_of_{name}"
        connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'x'")
        connection.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}")
        connection.execute(f"GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {role}")
        url = make_url(postgres_url).set(username=role, password="x")
        yield url.render_as_string(hide_password=False)
        connection.execute(f"DROP OWNED BY {role}")
        connection.execute(f"DROP ROLE {role}")


async def test_without_the_right_to_make_the_extension(powerless_url):
    async with _opened(powerless_url) as storage:
        index = await open_vectors(storage)
        assert isinstance(index, SqlVectors)
        await fill(index, along(0))
        with pytest.raises(VectorsUnavailable, match="CREATE EXTENSION vector"):
            await open_vectors(storage, kind="pgvector")


async def test_changing_from_one_kind_to_the_other_and_back(postgres_url):
    async with _opened(postgres_url) as storage:
        blobs, there = SqlVectors(storage), await open_vectors(storage, kind="pgvector")
        for holder, other in ((blobs, there), (there, blobs), (blobs, there)):
            await holder.prepare(collection=MESSAGES, model=MODEL, generation=FIRST)
            await put(holder, points_of(along(0, 1)))
            assert await numbers_of(holder, along(1)) == [2, 1]
            assert await other.generation(collection=MESSAGES) is None
            assert await count(other) == 0
            await remove(other, 1)
            assert await count(holder) == 2
            with pytest.raises(VectorsUnavailable, match="rebuild"):
                await ask(other, along(0))
            with pytest.raises(VectorsUnavailable, match="rebuild"):
                await put(other, points_of(along(0)))
        assert _look(postgres_url, "SELECT to_regclass('vectors_of_messages') IS NULL") == [(True,)]
        await there.prepare(collection=MESSAGES, model=MODEL, generation=FIRST)
    assert _look(postgres_url, "SELECT count(*) FROM vectors") == [(0,)]


async def test_a_table_that_was_dropped_is_a_collection_that_was_wiped(postgres_url):
    async with _opened(postgres_url) as storage:
        index = await open_vectors(storage, kind="pgvector")
        await fill(index, along(0))
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute("DROP TABLE vectors_of_messages")
        assert await index.generation(collection=MESSAGES) is None
        with pytest.raises(VectorsUnavailable):
            await ask(index, along(0))
        await fill(index, along(0, 1))
        assert await numbers_of(index, along(1)) == [2, 1]


@pytest.mark.parametrize("name", ["Messages", "x; DROP TABLE rooms", "", "9", "a" * 41])
async def test_a_table_has_a_plain_name(postgres_url, name):
    async with _opened(postgres_url) as storage:
        index = await open_vectors(storage, kind="pgvector")
        with pytest.raises(InvalidInput, match="small letters"):
            await index.prepare(collection=name, model=MODEL, generation=FIRST)


_FROM_THE_START = """
import asyncio, sys, roomlore
from roomlore_testkit.embedding import HashEmbedder

async def main():
    settings = roomlore.Settings(vectors="pgvector")
    async with roomlore.open(sys.argv[1], settings=settings, embedder=HashEmbedder(), background=False) as lore:
        await lore.messages.add(roomlore.Message(id="1", room_id="tea", sender_id="ann", text="green tea"))
        async for _ in lore.index.drain():
            pass
        answer = await lore.messages.search("tea", "tea")
        print(answer.mode, answer.degraded, [hit.message.id for hit in answer.hits])

asyncio.run(main())
"""


def test_pgvector_serves_a_process_that_never_heard_of_it_before(postgres_url):
    """Engines copy psycopg's adapters when they are made: those of vectors must be there by then."""
    done = subprocess.run(
        [sys.executable, "-c", _FROM_THE_START, postgres_url], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "hybrid None ['1']\n"), done.stderr
