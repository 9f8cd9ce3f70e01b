"""Vectors kept as BLOBs: two processes on one database, writers that are killed or refused, the bound of memory."""

import asyncio
import itertools
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import numpy as np
import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import make_url

from roomlore.adapters.vectors import rows as vector_rows
from roomlore.adapters.vectors import sql as vectors
from roomlore.adapters.vectors.sql import OVERHEAD, SqlVectors
from roomlore.core.errors import InvalidInput, VectorsUnavailable
from roomlore.ports.vectors import MESSAGES, VectorIndex
from roomlore.storage import Storage, connect
from roomlore_testkit.contracts.vectors import (
    DIMENSIONS,
    FIRST,
    MODEL,
    SCOPE,
    SECOND,
    TENANT,
    along,
    ask,
    check_exact,
    count,
    fill,
    numbers_of,
    points_of,
    put,
    random_vectors,
    remove,
)

_WRITER = """
import asyncio, sys
from roomlore.storage import connect
from roomlore.adapters.vectors.sql import SqlVectors
from roomlore_testkit.contracts.vectors import points_of, put, random_vectors

async def main():
    vectors = SqlVectors(await connect(sys.argv[1]))
    for batch in range(10**6):
        await put(vectors, points_of(random_vectors(50, seed=batch), first=50 * batch + 1))
        print(batch, flush=True)

asyncio.run(main())
"""


@pytest.fixture(params=["sqlite_url", "postgres_url"])
def shared_url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


@asynccontextmanager
async def _opened(url: str) -> AsyncIterator[Storage]:
    storage = await connect(url)
    try:
        yield storage
    finally:
        await storage.close()


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "remove", "ask"]),
        st.integers(0, 1),
        st.sampled_from(["x", "y"]),
        st.lists(st.integers(1, 25), min_size=1, max_size=8, unique=True),
        st.integers(0, 11),
    ),
    max_size=14,
)
_KINDS = random_vectors(12, seed=6)


async def _walk(both: list[SqlVectors], steps: list) -> None:
    """Each index answers as brute force does, whoever wrote and however much of it was in memory."""
    await both[0].prepare(collection=MESSAGES, model=MODEL, generation=FIRST)
    stored: dict[str, dict[int, np.ndarray]] = {"x": {}, "y": {}}
    for step, who, scope, numbers, kind in steps:
        if step == "put":
            new = {number: _KINDS[(kind + number) % 12] for number in numbers}
            await put(both[who], [points_of(vector[None], first=at, scope=scope)[0] for at, vector in new.items()])
            stored[scope] |= new
        elif step == "remove":
            await remove(both[who], *numbers, scope=scope)
            stored[scope] = {number: vector for number, vector in stored[scope].items() if number not in numbers}
        await _compare(both[who : who + 1], stored, scope, _KINDS[kind])
    for scope in stored:
        await _compare(both, stored, scope, _KINDS[0])


async def _compare(indexes: list[SqlVectors], stored: dict, scope: str, query: np.ndarray) -> None:
    for index in indexes:
        (found,) = await ask(index, query[None], limit=6, scope=scope)
        check_exact(found, stored[scope], query, 6)
        ranked = [(-round(float(stored[scope][int(number)] @ query), 6), number) for number in found.numbers]
        assert ranked == sorted(ranked), "the smaller number first"


def test_two_processes_see_each_others_writes(shared_url):
    with asyncio.Runner() as runner:
        storages = [runner.run(connect(shared_url)) for _ in range(2)]
        both = [SqlVectors(storage) for storage in storages]

        @settings(max_examples=25)
        @given(_STEPS)
        def check(steps: list) -> None:
            runner.run(_walk(both, steps))

        try:
            check()
        finally:
            for storage in storages:
                runner.run(storage.close())


async def test_a_model_change_in_one_process_reaches_the_other(shared_url):
    async with _opened(shared_url) as one, _opened(shared_url) as two:
        writer, reader = SqlVectors(one), SqlVectors(two)
        await fill(writer, along(0, 1))
        assert await numbers_of(reader, along(1)) == [2, 1]
        await writer.prepare(collection=MESSAGES, model=MODEL, generation=SECOND)
        with pytest.raises(VectorsUnavailable, match="g2"):
            await ask(reader, along(1))
        with pytest.raises(VectorsUnavailable, match="g2"):
            await put(reader, points_of(along(1)))
        await put(writer, points_of(along(5), first=9), generation=SECOND)
        assert await numbers_of(reader, along(1), generation=SECOND) == [9]
        assert reader.cached_bytes == OVERHEAD + 1 * (8 + 4 * DIMENSIONS)


async def test_nothing_of_an_earlier_making_is_left(shared_url, monkeypatch):
    monkeypatch.setattr(vector_rows, "_SWEPT_AT_ONCE", 7)
    async with _opened(shared_url) as storage:
        index = SqlVectors(storage)
        await fill(index, random_vectors(30))
        await fill(index, random_vectors(3), scope="other")
        await index.prepare(collection=MESSAGES, model=MODEL, generation=SECOND)
        await put(index, points_of(along(1)), generation=SECOND)
    assert _look(shared_url, "SELECT count(*) FROM vectors") == [(1,)]
    assert _look(shared_url, "SELECT count(*) FROM vector_scopes") == [(1,)]


async def test_a_removed_vector_leaves_no_bytes(shared_url):
    async with _opened(shared_url) as storage:
        await fill(SqlVectors(storage), along(0, 1))
        await remove(SqlVectors(storage), 1)
    assert _look(shared_url, "SELECT number FROM vectors WHERE vector IS NOT NULL") == [(2,)]


def _look(url: str, query: str) -> list[tuple]:
    if url.startswith("sqlite"):
        connection = sqlite3.connect(make_url(url).database)
        rows = connection.execute(query).fetchall()
        connection.close()
        return rows
    with psycopg.connect(url) as connection:
        return connection.execute(query).fetchall()


class _StopError(Exception): ...


async def _write_and_stop(storage: Storage, beside: VectorIndex) -> None:
    async with storage.writing() as work:
        held = await vectors.held_collection(work.connection, MESSAGES, "sql", FIRST)
        state = await vector_rows.take_stamps(work.connection, held, tenant=TENANT, scope=SCOPE, rows=1)
        key = vector_rows.first_key(state.key, state.stamp)
        half = along(1)[0].astype("<f2").tobytes()
        await vector_rows.put_rows(work.connection, [(key, state.key, 2, TENANT, half)])
        assert await numbers_of(beside, along(1)) == [1]
        raise _StopError


async def test_a_write_rolled_back_leaves_nothing(shared_url):
    async with _opened(shared_url) as one, _opened(shared_url) as two:
        index, beside = SqlVectors(one), SqlVectors(two)
        await fill(index, along(0))
        with pytest.raises(_StopError):
            await _write_and_stop(one, beside)
        for either in (index, beside):
            assert await numbers_of(either, along(1)) == [1]
        await put(index, points_of(along(2), first=3))
        for either in (index, beside):
            assert await numbers_of(either, along(1)) == [1, 3]


async def test_a_put_that_is_cancelled_leaves_all_or_nothing(shared_url):
    async with _opened(shared_url) as storage:
        index = SqlVectors(storage)
        await fill(index, along(0))
        for pause in (0, 0.005, 0.02):
            writing = asyncio.create_task(put(index, points_of(random_vectors(2_000), first=2)))
            await asyncio.sleep(pause)
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
            held = await count(index)
            assert held in (1, 2_001)
            assert len(await numbers_of(index, along(0), limit=9_999)) == held


async def test_a_search_that_is_cancelled_while_loading_harms_nobody(shared_url):
    stored = random_vectors(4_000)
    async with _opened(shared_url) as storage:
        await fill(SqlVectors(storage), stored)
        index = SqlVectors(storage)
        searches = [asyncio.create_task(ask(index, stored[:1], limit=9)) for _ in range(6)]
        for search in searches[:4]:
            await asyncio.sleep(0.002)
            search.cancel()
        done = await asyncio.gather(*searches, return_exceptions=True)
        for (found,) in [*done[4:], await ask(index, stored[:1], limit=9)]:
            check_exact(found, dict(enumerate(stored, 1)), stored[0], 9)
        assert len(await numbers_of(index, along(0), limit=9_999)) == 4_000


def _kill_a_writer(url: str) -> int:
    """Return the number of batches that a writer, killed in the middle, said it had put."""
    writer = subprocess.Popen([sys.executable, "-c", _WRITER, url], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    with writer.stdout as said:
        acknowledged = len([said.readline() for _ in range(10)])
        writer.send_signal(signal.SIGKILL)
        acknowledged += len(said.read().split())
    writer.wait()
    return acknowledged


async def test_a_killed_writer_leaves_whole_batches(shared_url):
    async with _opened(shared_url) as storage:
        index = SqlVectors(storage)
        await index.prepare(collection=MESSAGES, model=MODEL, generation=FIRST)
        acknowledged = await asyncio.to_thread(_kill_a_writer, shared_url)
        held = await count(index)
        assert held in (50 * acknowledged, 50 * (acknowledged + 1))
        stored = np.concatenate([random_vectors(50, seed=batch) for batch in range(held // 50)])
        (found,) = await ask(index, along(0), limit=held)
        check_exact(found, dict(enumerate(stored, 1)), along(0)[0], held)


class _Counting:
    """A storage that counts the reading units of work it gives."""

    def __init__(self, storage: Storage) -> None:
        self._storage, self.reads = storage, 0

    def reading(self, tenant=None):
        self.reads += 1
        return self._storage.reading(tenant)

    def writing(self, tenant=None):
        return self._storage.writing(tenant)


async def test_searches_at_once_load_a_cold_scope_once(shared_url):
    async with _opened(shared_url) as storage:
        await fill(SqlVectors(storage), random_vectors(2_500))
        counting = _Counting(storage)
        index = SqlVectors(counting)  # type: ignore[arg-type]
        answers = await asyncio.gather(*(ask(index, along(0), limit=3) for _ in range(20)))
        assert counting.reads == 20 + 1
        assert len({tuple(found.numbers) for (found,) in answers}) == 1
        await ask(index, along(0))
        assert counting.reads == 22, "in memory now: one short question"


async def test_memory_stays_within_its_bound(shared_url):
    of_one = OVERHEAD + 100 * (8 + 4 * DIMENSIONS)
    stored = {scope: random_vectors(100, seed=place) for place, scope in enumerate("abcd")}
    async with _opened(shared_url) as storage:
        index, tiny = SqlVectors(storage, cache_bytes=2 * of_one), SqlVectors(storage, cache_bytes=of_one - 1)
        for scope, held in stored.items():
            await fill(index, held, scope=scope)
        for scope, either in itertools.product("abcabdca", (index, tiny)):
            (found,) = await ask(either, along(0), limit=9, scope=scope)
            check_exact(found, dict(enumerate(stored[scope], 1)), along(0)[0], 9)
            assert index.cached_bytes <= 2 * of_one
            assert tiny.cached_bytes == 0
        await index.close()
        assert index.cached_bytes == 0


async def test_a_large_search_runs_in_a_thread(monkeypatch):
    monkeypatch.setattr(vectors, "_INLINE", 0)
    threads, search = [], vectors.nearest

    def noted(*given: object) -> list:
        threads.append(threading.current_thread())
        return search(*given)

    monkeypatch.setattr(vectors, "nearest", noted)
    async with _opened("sqlite://") as storage:
        index = SqlVectors(storage)
        await fill(index, along(0, 1))
        assert await numbers_of(index, along(1)) == [2, 1]
    assert [thread is threading.current_thread() for thread in threads] == [False]


async def test_a_database_that_is_gone_is_an_index_that_does_not_answer(shared_url):
    storage = await connect(shared_url)
    index: VectorIndex = SqlVectors(storage)
    await fill(index, along(0))
    await storage.close()
    for work in (
        ask(index, along(0)),
        put(index, points_of(along(0))),
        remove(index, 1),
        count(index),
        index.generation(collection=MESSAGES),
    ):
        with pytest.raises(VectorsUnavailable):
            await work


@pytest.mark.parametrize("bad", [np.nan, np.inf, 0])
async def test_vectors_without_a_direction_are_refused(bad):
    async with _opened("sqlite://") as storage:
        index = SqlVectors(storage)
        await fill(index, along(0))
        with pytest.raises(InvalidInput, match="finite"):
            await put(index, points_of(np.full((1, DIMENSIONS), bad, np.float32), first=2))
        with pytest.raises(InvalidInput, match="finite"):
            await ask(index, np.full((1, DIMENSIONS), bad, np.float32))
        assert await count(index) == 1


async def test_told_to_be_late_a_search_asks_now_and_then_and_sees_its_own_writes_at_once(shared_url):
    async with _opened(shared_url) as storage:
        late, other = SqlVectors(storage, late_seconds=600), SqlVectors(storage)
        here, one = along(0)[0], random_vectors(4, seed=3)
        await fill(late, one[:1])
        assert await numbers_of(late, here[None]) == [1]
        await put(other, points_of(one[1:2], first=2))
        assert await numbers_of(late, here[None]) == [1]
        await put(late, points_of(one[2:3], first=3))
        assert sorted(await numbers_of(late, here[None])) == [1, 2, 3]
        soon = SqlVectors(storage, late_seconds=0.2)
        assert sorted(await numbers_of(soon, here[None])) == [1, 2, 3]
        await put(other, points_of(one[3:4], first=4))
        await asyncio.sleep(0.25)
        assert sorted(await numbers_of(soon, here[None])) == [1, 2, 3, 4]
