"""Forgetting, looked at from outside: bytes of files, keys of Redis, payloads of Qdrant; broken off anywhere; with the
store of vectors or the cache down."""

import json
import shutil
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from redis import Redis

import roomlore
from forget_rig import CHINESE, ENGLISH, ROOM, Figure, fill, in_files, replays
from qdrant_stand_in import QdrantStandIn
from roomlore import Lore, Message, Role, Settings, Source, StorageUnavailable
from roomlore.core.privacy import ForgetReport
from roomlore.ports.vectors import MESSAGES
from roomlore.services.privacy import MessageEraser, VectorEraser
from roomlore.services.privacy import forget_messages as rooms_without
from roomlore.wiring.work import make_forgetter
from roomlore_testkit import FaultyStorage
from roomlore_testkit.embedding import HashEmbedder

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


async def forgetting(lore: Lore, storage: FaultyStorage, user_id: str = ENGLISH.user_id) -> ForgetReport:
    """As another process does it, over a storage that fails where it is told to."""
    shared = lore._resources
    through = replace(shared, storage=storage)
    forgetter = make_forgetter(
        through, shared.storage, shared.durable, shared.sessions, shared.indexing, shared.archiver
    )
    return await forgetter.forget(tenant=lore.tenant, user_id=user_id, dry_run=False)


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
"""Faults that a check may find while a forgetting is broken off: the log is rewritten before the table of memories, and
the vectors of a room that goes are gone before its messages."""


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
    """Return True if it finished before it was cut."""
    try:
        await forgetting(lore, CutAfter(lore._resources.storage, commits))
    except StorageUnavailable:
        return False
    return True


async def test_the_store_of_vectors_down_and_back(monkeypatch, sqlite_url, tmp_path, qdrant):
    monkeypatch.setattr("roomlore.adapters.qdrant.TIMEOUT_SECONDS", 1)
    settings = Settings(durable_work="process", qdrant_url=qdrant.url)
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


async def test_the_cache_down(monkeypatch, sqlite_url, redis_server):
    monkeypatch.setattr("roomlore.adapters.redis.TIMEOUT_SECONDS", 0.2)
    settings = Settings(durable_work="process", redis_url=redis_server.url)
    async with roomlore.open(sqlite_url, settings=settings, background=False) as lore:
        await fill(lore, ENGLISH)
        redis_server.kill()
        report = await lore.privacy.forget(ENGLISH.user_id)
        assert [one.place for one in report.left] == ["session cache"]
        shown = await lore.sessions.query_context(ROOM)
        assert ENGLISH.told not in shown.history


class SpeaksAt(FaultyStorage):
    """Lets somebody else speak in the room before the unit of work with this number is opened."""

    def __init__(self, lore: Lore, at: int) -> None:
        super().__init__(lore._resources.storage)
        self.lore = lore
        self.left = at

    async def visit(self, name: str) -> None:
        if name not in ("reading", "writing"):
            return
        self.left -= 1
        if self.left == -1:
            await self.lore.messages.add(Message(id="ben", room_id="den", sender_id="ben", text="is anybody here?"))
            source = Source("den", "ben")
            await self.lore.memories.add("group:den", "Ben looks for company", kind="group", sources=[source])


LENA, SECRET = "lena-5c1d", "the spare key hangs under the third flower pot"


async def fill_den(lore: Lore) -> None:
    """A room in which one person and an assistant spoke, remembered and summarised."""
    await lore.messages.add(
        [
            *(Message(id=f"w{n}", room_id="den", sender_id=LENA, text=f"{n}: {SECRET}") for n in range(5)),
            Message(id="bot", room_id="den", sender_id="bot", text=f"Noted: 3: {SECRET}", role=Role.ASSISTANT),
        ]
    )
    await lore.memories.add("group:den", SECRET, kind="group", sources=[Source("den", "w1")])
    await lore.sessions.create_session("den", LENA)
    await lore.sessions.checkpoint("den", f"summary: {SECRET}", covers_through="w4")
    await index(lore)


@pytest.mark.parametrize("part", range(4))
async def test_what_somebody_else_says_meanwhile_stays(sqlite_template, tmp_path, monkeypatch, part):
    """A regression: who else spoke was decided once, and what they said afterwards went with the room."""
    monkeypatch.setattr(rooms_without, "_ERASED_AT_ONCE", 2)
    at, removed, spoke = part, set(), True
    while spoke:
        path = tmp_path / f"at-{at}" / "roomlore.db"
        path.parent.mkdir()
        shutil.copy(sqlite_template, path)
        settings = Settings(durable_work="process", vectors="sql")
        embedder = HashEmbedder()
        async with roomlore.open(f"sqlite:///{path}", settings=settings, embedder=embedder, background=False) as lore:
            await fill_den(lore)
            storage = SpeaksAt(lore, at)
            report = await forgetting(lore, storage, LENA)
            spoke = storage.left < 0
            removed.add("den" in report.rooms_removed)
            if spoke:
                await _holds_what_ben_said(lore, at)
            assert (at, (await lore.privacy.forget(LENA)).left) == (at, ())
            await index(lore)
            assert (at, (await lore.privacy.verify()).faults) == (at, ())
            assert (at, await replays(lore)) == (at, True)
        assert (at, [one.name for one in path.parent.iterdir() if SECRET.encode() in one.read_bytes()]) == (at, [])
        at += 4
    assert removed == {True, False}


async def test_a_kill_leaves_the_vectors_of_what_somebody_else_said_meanwhile(sqlite_url, monkeypatch):
    """A regression: all vectors of the room went before it was found that it stays, and nothing told of theirs."""
    remove, erase = VectorEraser.remove, MessageEraser.erase

    async def removes(its, **which) -> bool:
        gone = await remove(its, **which)
        if which["collection"] == MESSAGES:
            raise KilledError
        return gone

    async def erases(its, person, tally) -> None:
        await lore.messages.add(Message(id="ben", room_id="den", sender_id="ben", text="is anybody here?"))
        await index(lore)
        await erase(its, person, tally)

    settings = Settings(durable_work="process", vectors="sql")
    async with roomlore.open(sqlite_url, settings=settings, embedder=HashEmbedder(), background=False) as lore:
        await fill_den(lore)
        monkeypatch.setattr(VectorEraser, "remove", removes)
        monkeypatch.setattr(MessageEraser, "erase", erases)
        with pytest.raises(KilledError):
            await lore.privacy.forget(LENA)
        monkeypatch.undo()
        assert (await lore.privacy.forget(LENA)).left == ()
        await index(lore)
        assert (await lore.privacy.verify()).faults == ()


class KilledError(Exception):
    """Stands for the end of the process."""


async def _holds_what_ben_said(lore: Lore, at: int) -> None:
    await index(lore)
    said = [one.text for one in await lore.messages.page("den") if one.sender_id == "ben"]
    assert (at, said) == (at, ["is anybody here?"])
    for mode in ("lexical", "hybrid"):
        hits = (await lore.messages.search("den", "is anybody here?", mode=mode)).hits
        assert (at, mode, [hit.message.id for hit in hits][:1]) == (at, mode, ["ben"])
    remembered = [memory.statement for memory in await lore.memories.page("group:den")]
    assert (at, remembered) == (at, ["Ben looks for company"])
