"""Forgetting, looked at from outside: bytes of files, keys of Redis, payloads of Qdrant; broken off anywhere; with the
store of vectors or the cache down."""

import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis import Redis

import roomlore
from forget_rig import CHINESE, ENGLISH, ROOM, Figure, fill, in_files, replays
from roomlore import Lore, Settings, StorageUnavailable
from roomlore.testing import FaultyStorage
from roomlore.testing.embedding import HashEmbedder
from roomlore.testing.qdrant_stand_in import QdrantStandIn
from roomlore.wiring.privacy import make_forgetter

both = pytest.mark.parametrize("who", [ENGLISH, CHINESE], ids=["en", "zh"])


@pytest.fixture
async def qdrant() -> AsyncIterator[QdrantStandIn]:
    async with QdrantStandIn() as server:
        yield server


async def index(lore: Lore) -> None:
    async for _ in lore.index.drain():
        pass


def in_qdrant(server: QdrantStandIn, who: Figure) -> list[str]:
    payloads = [point.payload for one in server.holdings.collections.values() for point in one.points.values()]
    held = json.dumps(payloads, ensure_ascii=False)
    return [trace for trace in who.traces if trace in held]


def in_redis(url: str, who: Figure) -> list[str]:
    with Redis.from_url(url) as redis:
        keys = redis.keys()
        held = b"\n".join([*keys, *(redis.get(key) or b"" for key in keys)])
    both_forms = [(trace, form) for trace in who.traces for form in (trace.encode(), _escaped(trace))]
    return [trace for trace, form in both_forms if form in held]


def _escaped(trace: str) -> bytes:
    return trace.encode("ascii", "backslashreplace")


@both
async def test_no_byte_no_key_and_no_payload_is_left(sqlite_url, tmp_path: Path, redis_url, qdrant, who):
    settings = Settings(durable_work="dbos", redis_url=redis_url, qdrant_url=qdrant.url)
    async with roomlore.open(sqlite_url, settings=settings, embedder=HashEmbedder(), background=False) as lore:
        await fill(lore, who)
        await index(lore)
        seen = {trace for _, trace in in_files(tmp_path, who)}
        assert seen == set(who.traces)
        assert in_redis(redis_url, who)
        assert in_qdrant(qdrant, who)
        report = await lore.privacy.forget(who.user_id)
        assert report.left == ()
        assert in_files(tmp_path, who) == []
        assert in_redis(redis_url, who) == []
        assert in_qdrant(qdrant, who) == []
        await index(lore)
        assert in_qdrant(qdrant, who) == []
        assert await replays(lore)
    assert in_files(tmp_path, who) == []


async def forgetting(lore: Lore, storage: FaultyStorage) -> None:
    """As another process does it, over a storage that fails where it is told to."""
    shared = lore._resources
    forgetter = make_forgetter(
        shared.storage,
        shared.durable,
        shared.sessions,
        shared.indexing,
        tokens=shared.tokens,
        clock=shared.clock,
        ids=shared.ids,
        over=storage,
    )
    await forgetter.forget(tenant=lore.tenant, user_id=ENGLISH.user_id, dry_run=False)


class CutAfter(FaultyStorage):
    """Breaks off at the commit with this number, counted from 0, and keeps broken off."""

    def __init__(self, storage, commits: int) -> None:
        super().__init__(storage)
        self.left = commits

    async def visit(self, name: str) -> None:
        if name == "commit":
            self.left -= 1
        if self.left < 0:
            raise StorageUnavailable("This process is gone.")


UNFINISHED = {"log and tables", "message vectors"}
"""What a check may find while a forgetting is broken off: the log is rewritten before the table of memories, and the
vectors of a room that goes are gone before its messages."""


@pytest.mark.parametrize("indexed", [False, True], ids=["words alone", "vectors too"])
@pytest.mark.parametrize("part", range(4))
async def test_broken_off_at_any_commit_it_goes_on(sqlite_template: Path, tmp_path: Path, part: int, indexed: bool):
    at, finished = part, False
    while not finished:
        path = tmp_path / f"cut-{at}" / "roomlore.db"
        path.parent.mkdir()
        shutil.copy(sqlite_template, path)
        settings = Settings(durable_work="process", vectors="sql")
        embedder = HashEmbedder() if indexed else None
        async with roomlore.open(f"sqlite:///{path}", settings=settings, embedder=embedder, background=False) as lore:
            await fill(lore, ENGLISH)
            await index(lore)
            finished = await _forgotten(lore, at)
            await index(lore)
            await _looks_unfinished(lore, at)
            report = await lore.privacy.forget(ENGLISH.user_id)
            assert (at, report.left) == (at, ())
            assert (at, await replays(lore)) == (at, True)
            await index(lore)
            assert (at, (await lore.privacy.verify()).faults) == (at, ())
        assert (at, in_files(path.parent, ENGLISH)) == (at, [])
        at += 4
    assert at > 8


async def _looks_unfinished(lore: Lore, at: int) -> None:
    report = await lore.privacy.verify()
    assert (at, report.counts.keys() - UNFINISHED) == (at, set())
    assert all("broken off, forget again first" in fault.mend for fault in report.faults)


async def _forgotten(lore: Lore, commits: int) -> bool:
    """Whether it came to its end before it was cut."""
    try:
        await forgetting(lore, CutAfter(lore._resources.storage, commits))
    except StorageUnavailable:
        return False
    return True


async def test_the_store_of_vectors_down_and_back(sqlite_url, tmp_path, qdrant):
    settings = Settings(durable_work="process", qdrant_url=qdrant.url, qdrant_timeout_seconds=1)
    async with roomlore.open(sqlite_url, settings=settings, embedder=HashEmbedder(), background=False) as lore:
        await fill(lore, ENGLISH)
        await index(lore)
        qdrant.fault = "error"
        report = await lore.privacy.forget(ENGLISH.user_id)
        assert {one.place for one in report.left} >= {"vectors of messages", "vectors of memories", "rooms"}
        assert not report.complete
        assert ENGLISH.secret not in str(await lore.messages.page(ROOM))
        qdrant.fault = None
        assert in_qdrant(qdrant, ENGLISH)
        again = await lore.privacy.forget(ENGLISH.user_id)
        assert again.left == ()
        await index(lore)
        assert in_qdrant(qdrant, ENGLISH) == []
    assert in_files(tmp_path, ENGLISH) == []


async def test_the_cache_down(sqlite_url, redis_server):
    settings = Settings(durable_work="process", redis_url=redis_server.url, redis_timeout_seconds=0.2)
    async with roomlore.open(sqlite_url, settings=settings, background=False) as lore:
        await fill(lore, ENGLISH)
        redis_server.kill()
        report = await lore.privacy.forget(ENGLISH.user_id)
        assert [one.place for one in report.left] == ["session cache"]
        shown = await lore.sessions.query_context(ROOM)
        assert ENGLISH.told not in shown.history
