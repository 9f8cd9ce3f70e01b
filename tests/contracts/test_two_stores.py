"""Two openings of one database, as two processes have them."""

import asyncio
import os
import signal
import subprocess
import sys

import pytest

from roomlore.storage import Storage
from roomlore.storage.opening import connect
from storage_contracts.texts import ROOM, TENANT, everything
from storage_contracts.transactions import append_one

_WRITER = """
import asyncio, sys
from roomlore.storage.opening import connect
from storage_contracts.transactions import append_one

async def main():
    storage = await connect(sys.argv[1])
    while True:
        print(await append_one(storage, "x"), flush=True)

asyncio.run(main())
"""


async def where_said(store: Storage, word: str) -> list[int]:
    """Arrivals, by the word index."""
    async with store.reading(TENANT) as work:
        postings = await work.messages.look_up(room_id=ROOM, words=[word])
    assert postings is not None
    return postings.arrivals.tolist()


@pytest.fixture(params=["sqlite_url", "postgres_url"])
def shared_url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


async def test_two_openings_never_share_an_arrival(shared_url):
    one, two = await connect(shared_url), await connect(shared_url)
    try:
        arrivals = await asyncio.gather(*(append_one(store, "x") for _ in range(10) for store in (one, two)))
        assert sorted(arrivals) == list(range(1, 21))
        assert await everything(one) == await everything(two)
    finally:
        await one.close()
        await two.close()


async def test_words_written_by_two_openings_are_one_index(shared_url):
    one, two = await connect(shared_url), await connect(shared_url)
    try:
        for _ in range(20):
            await append_one(one, "deploy")
            await append_one(two, "deploy rollback")
        assert await where_said(one, "deploy") == await where_said(two, "deploy") == list(range(1, 41))
        assert await where_said(one, "rollback") == list(range(2, 41, 2))
    finally:
        await one.close()
        await two.close()


async def test_one_opening_sees_what_the_other_committed(shared_url):
    one, two = await connect(shared_url), await connect(shared_url)
    try:
        for count in range(1, 4):
            await append_one(one, "x")
            assert len(await everything(two)) == count
    finally:
        await one.close()
        await two.close()


def _kill_a_writer(url: str) -> list[int]:
    """The arrivals that a writer, killed in the middle, said it had stored."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    writer = subprocess.Popen([sys.executable, "-c", _WRITER, url], stdout=subprocess.PIPE, text=True, env=environment)
    assert writer.stdout is not None
    with writer.stdout as said:
        acknowledged = [int(said.readline()) for _ in range(20)]
        writer.send_signal(signal.SIGKILL)
        acknowledged += [int(line) for line in said.read().split()]
    writer.wait()
    return acknowledged


async def test_a_killed_writer_loses_nothing_it_acknowledged(shared_url):
    acknowledged = await asyncio.to_thread(_kill_a_writer, shared_url)
    store = await connect(shared_url)
    try:
        arrivals = [found.message.arrival for found in await everything(store)]
        assert arrivals == list(range(1, len(arrivals) + 1))
        assert len(arrivals) - len(acknowledged) in (0, 1), "the last one may be stored and not yet acknowledged"
        assert await where_said(store, "x") == arrivals
        assert await append_one(store, "after") == len(arrivals) + 1
    finally:
        await store.close()
