"""`verify` over a whole roomlore: its own writes are sound, also while they go on, and indexes are counted."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest

import roomlore
from meddling import Meddled
from reply_rig import reply_settings
from roomlore import InvalidInput, Message
from roomlore.core.errors import VectorsUnavailable
from roomlore.core.integrity import Fault, Findings, VerifyProgress, VerifyReport
from roomlore.core.search.hits import VectorPoint
from roomlore.ports.vectors import MEMORIES, MESSAGES
from roomlore.services.privacy import IndexChecks, PrivacyService, Verifier
from roomlore.services.privacy.verify import Holds, MessageChecks
from roomlore.storage import Storage, UnitOfWork
from roomlore.storage.values import ReadMessage
from roomlore_testkit import backends
from roomlore_testkit.doubles import FaultyStorage
from roomlore_testkit.embedding import HashEmbedder
from roomlore_testkit.model_server import ModelServer

SAID = {"m1": "谁去喝茶？", "m2": "Ann drinks green tea", "m3": ""}


@asynccontextmanager
async def opened(embedder: HashEmbedder | None) -> AsyncIterator[tuple[roomlore.Lore, PrivacyService]]:
    async with roomlore.open("sqlite://", embedder=embedder, background=False) as lore:
        yield lore, lore.privacy


async def fill(lore: roomlore.Lore) -> None:
    await lore.messages.add(
        [Message(id=name, room_id="tea", sender_id="ann", text=text) for name, text in SAID.items()]
    )
    for statement in ("喜欢绿茶", "Drinks coffee too", "Is often late"):
        await lore.memories.add("user:ann", statement, sources=[roomlore.Source("tea", "m2")])
    made = await lore.memories.add("group:tea", "Meets on Fridays")
    made = await lore.memories.update(made.memory_id, statement="每周五见面")
    await lore.memories.delete(made.memory_id)
    async for _ in lore.index.drain():
        pass


async def test_what_roomlore_writes_is_sound_and_every_vector_is_there():
    seen: list[VerifyProgress] = []
    async with opened(HashEmbedder()) as (lore, privacy):
        await fill(lore)
        report = await privacy.verify(progress=seen.append)
    assert report.faults == ()
    assert report.sound
    assert report.notes == ()
    assert report.checked == {
        "scopes": 2,
        "memories": 5,
        "changes": 6,
        "sources": 3,
        "rooms": 1,
        "messages": 3,
        "vectors": 3 + 2,
    }
    assert seen == [VerifyProgress(1, 2), VerifyProgress(2, 5), VerifyProgress(2, 5, 3)]


async def test_a_room_is_checked_alone():
    """With what is remembered of it; what is wrong in other rooms does not count."""
    seen: list[VerifyProgress] = []
    async with opened(HashEmbedder()) as (lore, privacy):
        await fill(lore)
        for room_id in ("board", "quiet"):
            await lore.messages.add(
                Message(id="m", room_id=room_id, sender_id="ben", text="the board meets on Mondays")
            )
        async for _ in lore.index.drain():
            pass
        report = await privacy.verify("group:tea", progress=seen.append)
        assert (report.checked["rooms"], report.checked["messages"], report.checked["scopes"]) == (1, 3, 1)
        assert seen[-1] == VerifyProgress(1, 2, 3)
        assert (await privacy.verify("group:quiet")).checked == {"rooms": 1, "messages": 1, "vectors": 1}
        async with lore.storage.writing() as work:
            await work.connection.run("UPDATE messages SET role = 'king' WHERE text LIKE 'the board%' AND room_key = 2")
        assert (await privacy.verify("group:tea")).faults == ()
        assert (await privacy.verify("group:board")).counts == {"unreadable": 1}


@pytest.mark.parametrize(
    ("collection", "scope", "check"),
    [(MEMORIES, "user:ann", "memory vectors"), (MESSAGES, "tea", "message vectors")],
    ids=["memories", "messages"],
)
async def test_a_vector_that_is_lost_is_named(collection, scope, check):
    async with opened(HashEmbedder()) as (lore, privacy):
        await fill(lore)
        vectors = lore._resources.indexing.vectors
        await vectors.remove(collection=collection, tenant=lore.tenant, scope=scope, numbers=[1])
        report = await privacy.verify()
        assert report.counts == {check: 1}
        assert "roomlore reindex" in report.faults[0].mend
        assert scope in report.faults[0].where
        async for _ in lore.index.rebuild(part="vectors"):
            pass
        assert (await privacy.verify()).sound


async def test_a_vector_of_a_message_that_says_nothing_is_seen():
    """As many vectors as messages, and one of them too many."""
    async with opened(HashEmbedder()) as (lore, privacy):
        await fill(lore)
        vectors = lore._resources.indexing.vectors
        generation = await vectors.generation(collection=MESSAGES)
        kept = (await HashEmbedder().embed(["茶"], kind="passage"))[0]
        point = VectorPoint(tenant=lore.tenant, scope="tea", number=3, vector=kept)
        await vectors.put(collection=MESSAGES, generation=generation, points=[point])
        assert (await privacy.verify()).counts == {"message vectors": 1}


async def test_vectors_beside_a_message_that_cannot_be_read_are_not_compared():
    async with opened(HashEmbedder()) as (lore, privacy):
        await fill(lore)
        async with lore.storage.writing() as work:
            await work.connection.run("UPDATE messages SET role = 'king' WHERE message_id = 'm1'")
        assert (await privacy.verify()).counts == {"unreadable": 1}


async def test_what_waits_to_be_indexed_is_a_note():
    async with opened(HashEmbedder()) as (lore, privacy):
        await fill(lore)
        await lore.memories.add("user:ann", "Likes white tea")
        await lore.messages.add([Message(id="m4", room_id="tea", sender_id="ann", text="等一下")])
        report = await privacy.verify()
    assert report.sound
    assert {note.where for note in report.notes} == {"vectors of memories", "vectors of messages"}
    assert all("wait" in note.found for note in report.notes)


class Down:
    """A store of vectors that went away; the rest of the port is never asked."""

    async def generation(self, *, collection: str) -> str | None:
        raise VectorsUnavailable("Nobody is there.")


async def test_a_store_of_vectors_that_is_down_is_a_note():
    async with opened(HashEmbedder()) as (lore, _):
        await fill(lore)
        shared = lore._resources
        checks = IndexChecks(storage=lore.storage, vectors=Down())  # type: ignore[arg-type]
        verifier = Verifier(backends(storage=lore.storage, clock=shared.clock), indexes=checks)
        report = await verifier.verify(tenant=lore.tenant, scope=None, progress=None)
    assert report.sound
    assert [note.where for note in report.notes] == ["vectors of memories", "vectors of messages"]
    assert all("Nobody is there" in note.found for note in report.notes)


async def test_without_an_embedder_everything_else_is_checked():
    async with opened(None) as (lore, privacy):
        await fill(lore)
        report = await privacy.verify()
    assert report.sound
    assert report.checked["memories"] == 5
    assert [note.where for note in report.notes] == ["vectors"]


async def test_a_store_that_is_written_to_meanwhile_is_sound(tmp_path):
    async with roomlore.open(f"sqlite:///{tmp_path}/busy.db", background=False) as lore:
        privacy = lore.privacy
        await fill(lore)

        async def write() -> None:
            for number in range(60):
                made = await lore.memories.add("user:ann", f"第{number}件事")
                await lore.memories.update(made.memory_id, statement=f"fact {number}")

        writing = asyncio.create_task(write())
        reports = []
        while not writing.done():
            reports.append(await privacy.verify())
        await writing
        reports.append(await privacy.verify())
    assert all(report.faults == () for report in reports)
    assert reports[-1].checked["memories"] == 5 + 120


async def test_a_scope_that_never_rests_is_a_note():
    async with opened(None) as (lore, _):
        await fill(lore)
        faulty, shared = FaultyStorage(lore.storage), lore._resources
        checks = IndexChecks(storage=lore.storage, vectors=None)
        numbers = iter(range(10_000))

        async def meddle(name: str) -> None:
            if name == "maintenance.read_log":
                await lore.memories.add("user:ann", f"wrote {next(numbers)}")

        faulty.visit = meddle  # type: ignore[method-assign]
        verifier = Verifier(backends(storage=faulty, clock=shared.clock), indexes=checks)
        report = await verifier.verify(tenant=lore.tenant, scope="user:ann", progress=None)
    assert report.sound
    assert any("written to all the while" in note.found for note in report.notes)


async def test_a_forgetting_meanwhile_is_no_fault(sqlite_url):
    """A regression: of a scope whose log was read before and whose memories were read after it, all seemed damaged."""
    async with (
        roomlore.open(sqlite_url, background=False) as lore,
        roomlore.open(sqlite_url, background=False) as other,
    ):
        await fill(lore)
        await lore.messages.add(Message(id="m4", room_id="tea", sender_id="bob", text="so do I"))
        sources = [roomlore.Source("tea", name) for name in ("m2", "m4")]
        made = await lore.memories.add("group:tea", SAID["m2"], sources=sources)
        await lore.memories.delete(made.memory_id)
        lore.privacy._verifier._storage = meddled = Meddled(
            lore.storage, "maintenance.read_versions", partial(other.privacy.forget, "ann", is_id=True)
        )
        assert (await lore.privacy.verify("group:tea")).faults == ()
        assert meddled.happened


async def test_a_room_that_grows_as_fast_as_it_is_read_comes_to_an_end():
    async with opened(None) as (lore, _):
        await fill(lore)
        faulty, numbers = FaultyStorage(lore.storage), iter(range(20))

        async def meddle(name: str) -> None:
            if name == "maintenance.read_messages":
                more = f"more {next(numbers)}"
                await lore.messages.add([Message(id=more, room_id="tea", sender_id="ann", text=more)])

        faulty.visit = meddle  # type: ignore[method-assign]
        found = await checked_messages(lore, faulty)
    assert found.checked == {"rooms": 1, "messages": 4}
    assert found.faults == []


async def test_words_that_were_spelled_otherwise_are_spelled_anew():
    """As another version of Python may have spelled them: the rows, their index and the counters agree."""
    async with opened(None) as (lore, privacy):
        await fill(lore)
        async with lore.storage.writing() as work:
            await work.connection.run("UPDATE message_words SET words = 'ann drinks', length = 2 WHERE arrival = 2")
            await work.connection.run("UPDATE rooms SET words = (SELECT sum(length) FROM message_words)")
        assert (await privacy.verify()).counts == {"message words": 1}
        async for _ in lore.index.rebuild(part="words"):
            pass
        assert (await privacy.verify()).faults == ()


class NeverHeld(FaultyStorage):
    """Notes how many units of work were open whenever messages were read."""

    def __init__(self, storage: Storage) -> None:
        super().__init__(storage)
        self.open = 0
        self.seen: list[int] = []

    @asynccontextmanager
    async def reading(self, tenant: str | None = None) -> AsyncIterator[UnitOfWork]:
        async with super().reading(tenant) as work:
            self.open += 1
            stored = work.maintenance
            maintenance = SimpleNamespace(
                orphan_rows=stored.orphan_rows, word_index_mismatch=stored.word_index_mismatch
            )
            maintenance.read_messages = partial(self._messages, work)
            yield cast(UnitOfWork, SimpleNamespace(rooms=work.rooms, maintenance=maintenance))
            self.open -= 1

    async def _messages(self, work: UnitOfWork, **asked: Any) -> Callable[[], Sequence[ReadMessage]]:
        read = await work.maintenance.read_messages(**asked)

        def noted() -> Sequence[ReadMessage]:
            self.seen.append(self.open)
            return read()

        return noted


async def test_no_unit_of_work_is_held_while_messages_are_read():
    async with opened(None) as (lore, _):
        await fill(lore)
        storage = NeverHeld(lore.storage)
        found = await checked_messages(lore, storage)
    assert found.checked["messages"] == 3
    assert storage.seen == [0]


async def checked_messages(lore: roomlore.Lore, storage: Storage) -> Findings:
    findings = Findings()
    checks = MessageChecks(storage=storage, indexes=IndexChecks(storage=storage, vectors=None))
    await checks.check(lore.tenant, Holds(), findings, lambda: None)
    return findings


FIRST = """\
{"action": "create", "statement": "每周五下午三点开会", "evidence": ["c1", "c2"]}
{"action": "create", "statement": "The group drinks green tea", "evidence": ["c2"]}
{"action": "create", "statement": "Bob brings the cakes", "evidence": ["c2"]}"""
SECOND = """\
{"action": "update", "old_ids": ["m1", "m2"], "statement": "每周五下午四点开会，喝 green tea", "evidence": ["c1"]}
{"action": "delete", "old_id": "m3", "reason": "Bob left", "evidence": ["c1"]}"""
ABOUT_ANN = '{"action": "create", "statement": "Lives in Berlin", "confidence": 0.9, "evidence": ["c1"]}'


async def test_what_was_evolved_reverted_restored_and_forgotten_is_sound():
    async with (
        ModelServer([FIRST, SECOND, ABOUT_ANN]) as model,
        roomlore.open(
            "sqlite://",
            settings=reply_settings(model, evolve_model="chat"),
            embedder=HashEmbedder(),
            background=False,
        ) as lore,
    ):
        await fill(lore)
        first = await lore.memories.evolve("tea", mode="llm")
        await lore.messages.add(
            [Message(id="m5", room_id="tea", sender_id="bob", text="改到四点, and no more cakes from me")]
        )
        second = await lore.memories.evolve("tea", mode="llm")
        about = await lore.memories.evolve("user:ann", mode="llm")
        assert [one.stats.created for one in (first, second, about)] == [3, 0, 1]
        assert (await whole(lore)).sound
        assert len(await lore.memories.revert(second.evolution_id)) == 3
        assert (await whole(lore)).sound
        cakes = first.changes[2].memory.memory_id
        await lore.memories.strength(cakes, 0.2)
        await lore.memories.delete(cakes)
        await lore.memories.restore(cakes)
        assert (await whole(lore)).sound
        await lore.privacy.forget("ann")
        report = await whole(lore)
        assert report.faults == ()
        assert report.notes == ()
        assert report.checked["evolutions"] > 0


async def whole(lore: roomlore.Lore) -> VerifyReport:
    """The report once nothing waits to be indexed."""
    async for _ in lore.index.drain():
        pass
    return await lore.privacy.verify()


@pytest.mark.parametrize("many", [1000, 1001])
async def test_scopes_of_several_pages_are_read_to_their_end(many):
    async with opened(None) as (lore, privacy):
        await lore.memories.add_all(
            [roomlore.NewMemory(scope="user:ann", statement=f"第{number}件事") for number in range(many)]
        )
        report = await privacy.verify()
    assert report.sound
    assert report.checked == {"scopes": 1, "memories": many, "changes": many}


async def test_what_is_no_scope_is_told():
    async with opened(None) as (_, privacy):
        with pytest.raises(InvalidInput, match="scope"):
            await privacy.verify("ann")


def test_a_store_full_of_faults_is_counted_and_not_listed_whole():
    found, others = Findings(), Findings()
    others.add(Fault("head", f"lineage {number}", "It has 0 heads.") for number in range(1500))
    others.add([Fault("parents", "memory x", "It is not there.")])
    found.add([Fault("head", "lineage x", "It has 2 heads.")])
    found.take(others)
    assert found.counts == {"head": 1501, "parents": 1}
    assert len(found.faults) == 1000


@pytest.mark.parametrize("many", [1, 1500])
def test_what_is_found_once_is_dropped_unless_not_all_was_listed(many):
    first, second = Findings(), Findings()
    first.add([Fault("head", f"lineage {number}", "It has 0 heads.") for number in range(many)])
    second.add([Fault("head", "lineage 0", "It has 0 heads."), Fault("parents", "memory x", "It is not there.")])
    second.keep_found_by(first)
    assert second.counts == ({"head": 1} if many == 1 else {"head": 1, "parents": 1})
    assert len(second.faults) == len(second.counts)
