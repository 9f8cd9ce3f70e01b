"""Indexes made, kept and made anew; a person decides about the model, and nothing is given up early."""

import asyncio
from collections.abc import Sequence
from contextlib import asynccontextmanager

import pytest

import roomlore
from engines import ENGINES
from roomlore.adapters.vectors.sql import SqlVectors
from roomlore.core.search import query
from roomlore.core.search.hits import EmbeddingModel, Vectors
from roomlore.ports.vectors import MESSAGES
from roomlore.services.indexing import rebuild as words
from roomlore.storage import connect
from roomlore_testkit.embedding import HashEmbedder
from tuned import tuned

SAID = ["green tea or black?", "black, please", "谁对花生过敏？", "我，谢谢", "the deploy is stuck"]


class Counting(HashEmbedder):
    """Notes what it embeds; refuses where told to."""

    def __init__(self, name: str = "hash", *, down: bool = False, refused: str = "") -> None:
        super().__init__(name=name)
        self.embedded: list[str] = []
        self.down = down
        self.refused = refused

    async def embed(self, texts: Sequence[str], *, kind: str) -> Vectors:
        if self.down:
            raise roomlore.ModelUnavailable("The model was told to fail.")
        if self.refused and any(self.refused in text for text in texts):
            raise roomlore.InvalidInput("The model refuses this text.")
        self.embedded += [text for text in texts if text != "roomlore"]
        return await super().embed(texts, kind=kind)


@asynccontextmanager
async def opened(url, embedder=None, *, index_lease_seconds=0.05):
    settings = roomlore.Settings(vectors="sql")
    with tuned(index_lease_seconds=index_lease_seconds):
        async with roomlore.open(url, settings=settings, embedder=embedder, background=False) as lore:
            yield lore


async def say(lore: roomlore.Lore, texts: Sequence[str], room: str = "tea", first: int = 0) -> None:
    said = [
        roomlore.Message(id=f"{room}{number}", room_id=room, sender_id="ann", text=text)
        for number, text in enumerate(texts, first)
    ]
    await lore.messages.add(said)


async def drain(lore: roomlore.Lore) -> int:
    return max([step.done async for step in lore.index.drain()], default=0)


async def rebuild(lore: roomlore.Lore, **asked) -> int:
    return max([step.done async for step in lore.index.rebuild(**asked)], default=0)


@pytest.fixture(params=ENGINES)
def url(request) -> str:
    return request.getfixturevalue(request.param)


async def test_each_message_is_embedded_once(url):
    embedder = Counting()
    async with opened(url, embedder) as lore:
        await say(lore, SAID)
        assert await drain(lore) == len(SAID)
        assert sorted(embedder.embedded) == sorted(f"ann: {text}" for text in SAID)
        assert await drain(lore) == 0
        assert (await lore.index.status()).vectors == "whole"


async def test_embeddings_turned_on_later_take_in_what_is_there(url):
    async with opened(url) as lore:
        await say(lore, SAID)
        assert (await lore.index.status()).vectors == "off"
        assert await drain(lore) == 0
    async with opened(url, Counting()) as lore:
        assert (await lore.messages.search("tea", "tea")).degraded
        assert await drain(lore) == len(SAID)
        answer = await lore.messages.search("tea", "tea")
        assert (answer.mode, answer.degraded) == ("hybrid", None)


async def test_what_is_written_while_embeddings_are_off_is_taken_in_later(url):
    async with opened(url, Counting()) as lore:
        await say(lore, SAID)
        await drain(lore)
    async with opened(url) as lore:
        await say(lore, ["oolong"], first=10)
        await lore.messages.delete("tea", "tea0")
    embedder = Counting()
    async with opened(url, embedder) as lore:
        assert (await lore.index.status()).vectors == "behind"
        assert await drain(lore) == 2
        assert embedder.embedded == ["ann: oolong"]


async def test_another_model_is_a_persons_decision(url):
    async with opened(url, Counting("first")) as lore:
        await say(lore, SAID)
        await drain(lore)
    second = Counting("second")
    async with opened(url, second) as lore:
        answer = await lore.messages.search("tea", "black tea")
        assert answer.mode == "lexical"
        assert "roomlore reindex" in answer.degraded
        assert (await lore.index.status()).vectors == "other model"
        with pytest.raises(roomlore.InvalidInput, match="reindex"):
            await drain(lore)
        assert second.embedded == []
        assert await rebuild(lore, part="vectors") == len(SAID)
        answer = await lore.messages.search("tea", "black tea")
        assert (answer.mode, answer.degraded) == ("hybrid", None)
    async with opened(url, Counting("first")) as lore:
        assert (await lore.messages.search("tea", "black tea")).mode == "lexical"


async def test_the_same_name_of_another_length_is_another_model(url):
    async with opened(url, HashEmbedder(dimensions=64)) as lore:
        await say(lore, SAID)
        await drain(lore)
    async with opened(url, HashEmbedder(dimensions=32)) as lore:
        assert (await lore.index.status()).vectors == "other model"


async def test_a_model_that_cannot_be_reached_costs_no_index(url):
    async with opened(url, Counting("first")) as lore:
        await say(lore, SAID)
        await drain(lore)
    async with opened(url, Counting("second", down=True)) as lore:
        with pytest.raises(roomlore.ModelUnavailable):
            await rebuild(lore, part="vectors")
    async with opened(url, Counting("first")) as lore:
        assert (await lore.index.status()).vectors == "whole"
        assert (await lore.messages.search("tea", "tea")).mode == "hybrid"


async def test_texts_the_model_refuses_hold_up_no_other(url):
    embedder = Counting(refused="poison")
    async with opened(url, embedder, index_lease_seconds=30) as lore:
        await say(lore, ["poison", *SAID, "poison", "poison", *SAID, "poison"])
        await drain(lore)
        assert (await lore.index.status()).waiting == 4
        assert len(embedder.embedded) == 10


async def test_a_model_that_refuses_everything_is_reported(url):
    embedder = Counting()
    async with opened(url, embedder, index_lease_seconds=30) as lore:
        await say(lore, ["tea"])
        await drain(lore)
        embedder.refused = "ann"
        await say(lore, [f"tea {number}" for number in range(40)], first=1)
        with pytest.raises(roomlore.InvalidInput, match="refuses"):
            await drain(lore)


async def test_a_question_the_model_refuses_is_searched_by_words_and_harms_no_other(url):
    async with opened(url, Counting(refused="poison")) as lore:
        await say(lore, SAID)
        await drain(lore)
        refused = await lore.messages.search("tea", "poison tea")
        assert (refused.mode, refused.hits[0].message.id) == ("lexical", "tea0")
        assert "refuses" in refused.degraded
        assert (await lore.messages.search("tea", "tea")).degraded is None


async def test_a_slow_worker_does_not_put_back_what_was_edited_or_deleted_meanwhile(url):
    """His lease ends while he embeds; another worker brings the new state; then his old vectors come."""
    begun, go = asyncio.Event(), asyncio.Event()

    class Slow(Counting):
        async def embed(self, texts, *, kind):
            made = await super().embed(texts, kind=kind)
            if any("secret" in text for text in texts):
                begun.set()
                await go.wait()
            return made

    async with opened(url, Counting()) as quick, opened(url, Slow()) as slow:
        await say(quick, ["tea"])
        await drain(quick)
        await say(quick, ["the secret zebra", "another secret zebra"], first=1)
        late = asyncio.create_task(drain(slow))
        await begun.wait()
        await quick.messages.edit("tea", "tea1", text="nothing of note")
        await quick.messages.delete("tea", "tea2")
        await asyncio.sleep(0.1)
        await drain(quick)
        go.set()
        await late
        await drain(quick)
        assert (await quick.index.status()).vectors == "whole"
        storage = await connect(url)
        vectors = SqlVectors(storage, cache_bytes=1 << 20)
        assert await vectors.count(collection=MESSAGES, tenant="default", scope="tea") == 2
        await storage.close()
        found = await quick.messages.search("tea", "the secret zebra")
        assert all(hit.signals["meaning"] < 0.95 for hit in found.hits)


async def test_a_rebuild_is_whole_when_hardly_anything_waits(url, monkeypatch):
    monkeypatch.setattr("roomlore.services.indexing.vectors._PAGE", 4)
    monkeypatch.setattr("roomlore.services.indexing.vectors._BATCH", 2)
    async with opened(url, Counting()) as lore:
        await say(lore, SAID * 4)
        seen = [(step.done, (await lore.index.status()).vectors) async for step in lore.index.rebuild(part="vectors")]
        assert all(standing == "rebuilding" for done, standing in seen if done < 16)
        assert (await lore.index.status()).vectors == "whole"


async def test_a_rebuild_broken_off_goes_on_where_it_was(url, monkeypatch):
    monkeypatch.setattr("roomlore.services.indexing.vectors._PAGE", 3)
    monkeypatch.setattr("roomlore.services.indexing.vectors._BATCH", 3)
    embedder = Counting()
    async with opened(url, embedder) as lore:
        for room in ("a", "b", "c"):
            await say(lore, SAID, room)
        await drain(lore)
        embedder.embedded.clear()
        async for step in lore.index.rebuild(part="vectors"):
            if step.done >= 6:
                break
        assert (await lore.index.status()).vectors == "rebuilding"
    async with opened(url, embedder) as lore:
        await rebuild(lore, part="vectors", resume=True)
        assert (await lore.index.status()).vectors == "whole"
        assert len(embedder.embedded) == 15


async def test_words_read_otherwise_are_indexed_anew_by_themselves(url, monkeypatch):
    async with opened(url) as lore:
        await say(lore, SAID)
        await lore.index.catch_up()
    monkeypatch.setattr(words, "WORDS_MODEL", EmbeddingModel(name="words-test", dimensions=0))
    monkeypatch.setattr("roomlore.services.indexing.index_state.WORDS_MODEL", words.WORDS_MODEL)
    monkeypatch.setattr(query, "terms", lambda text: [word[::-1] for word in text.split()])
    async with opened(url) as lore:
        assert (await lore.messages.search("tea", "deploy")).degraded
        await lore.index.catch_up()
        assert (await lore.messages.search("tea", "deploy")).degraded is None
        async with lore.storage.reading("default") as work:
            postings = await work.messages.look_up(room_id="tea", words=["yolped", "deploy"])
        assert postings is not None
        assert postings.ends.tolist() == [1, 1]


async def test_a_picture_without_a_caption_needs_no_vector(url):
    embedder = Counting()
    async with opened(url, embedder) as lore:
        await say(lore, ["", "tea"])
        await drain(lore)
        assert embedder.embedded == ["ann: tea"]
        assert (await lore.index.status()).vectors == "whole"


async def test_edits_and_deletions_reach_the_vectors(url):
    async with opened(url, Counting()) as lore:
        await say(lore, SAID)
        await drain(lore)
        await lore.messages.edit("tea", "tea1", text="a zebra crossing")
        await lore.messages.delete("tea", ["tea0", "tea2"])
        await drain(lore)
        found = await lore.messages.search("tea", "zebra")
        assert found.hits[0].message.id == "tea1"
        assert {hit.message.id for hit in found.hits} <= {"tea1", "tea3", "tea4"}


async def test_a_part_that_is_none(url):
    async with opened(url) as lore:
        with pytest.raises(roomlore.InvalidInput, match="part"):
            await rebuild(lore, part="everything")
        with pytest.raises(roomlore.InvalidInput, match="embedder"):
            await rebuild(lore, part="vectors")


def test_the_collection_of_messages_is_named_as_the_state_is():
    """One name in SQL and in the vector store: who looks at either finds the other."""
    assert MESSAGES == "messages"


async def test_one_opened_before_embeddings_were_turned_on_elsewhere_notes_what_is_due(url):
    embedder = Counting()
    async with opened(url) as plain:
        await say(plain, SAID)
        async with opened(url, embedder) as other:
            await drain(other)
            await say(plain, ["oolong"], first=10)
            await plain.messages.edit("tea", "tea1", text="a zebra crossing")
            await plain.messages.delete("tea", "tea0")
            assert (await other.index.status()).waiting == 3
            await drain(other)
            assert embedder.embedded[len(SAID) :] == ["ann: a zebra crossing", "ann: oolong"]


async def test_what_was_written_under_contention_is_indexed_in_the_background_too(sqlite_url, monkeypatch):
    monkeypatch.setattr("roomlore.wiring.indexing._SWEEP_SECONDS", 3600)
    settings = roomlore.Settings(vectors="sql")
    async with roomlore.open(sqlite_url, settings=settings, embedder=HashEmbedder()) as lore:
        await say(lore, SAID)
        await until_whole(lore)
        monkeypatch.setattr("roomlore.services.messages.ingest._TRIES", 0)
        await say(lore, ["oolong"], first=10)
        await until_whole(lore)


async def until_whole(lore: roomlore.Lore) -> None:
    async with asyncio.timeout(60):
        while (await lore.index.status()).vectors != "whole":  # noqa: ASYNC110 - a store tells nobody
            await asyncio.sleep(0.01)


async def test_whoever_comes_first_right_after_opening_makes_the_index_for_all(url):
    """A regression: they raced in one process, and all but one were told of another process."""
    async with opened(url) as lore:
        await say(lore, SAID)
    embedder = Counting()
    async with opened(url, embedder, index_lease_seconds=60) as lore:
        await asyncio.gather(drain(lore), lore.index.catch_up(), drain(lore), lore.index.catch_up())
        assert set(embedder.embedded) == {
            f"ann: {text}" for text in SAID
        }  # two may read the same page of messages, and embed it twice
        assert (await lore.index.status()).vectors == "whole"


class Slow(HashEmbedder):
    """Waits with the texts of messages until it is told to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.has_read = asyncio.Event()
        self.go_on = asyncio.Event()

    async def embed(self, texts: Sequence[str], *, kind: str) -> Vectors:
        if any("tea" in text for text in texts):
            self.has_read.set()
            await self.go_on.wait()
        return await super().embed(texts, kind=kind)


async def _rooms(lore: roomlore.Lore) -> list[str]:
    async with lore.storage.reading(lore.tenant) as work:
        return [room.room_id for room in await work.rooms.page(after=None, limit=9)]


async def _no_vectors(url: str) -> bool:
    storage = await connect(url)
    vectors = SqlVectors(storage, cache_bytes=1 << 20)
    count = await vectors.count(collection=MESSAGES, tenant="default", scope="tea")
    await storage.close()
    return count == 0


async def test_a_vector_made_while_its_room_is_forgotten_is_removed(url):
    """A regression: the vector of a text that was read before stayed for good."""
    slow = Slow()
    async with opened(url, slow, index_lease_seconds=60) as lore:
        await say(lore, SAID[:1])
        indexing = asyncio.create_task(drain(lore))
        await slow.has_read.wait()
        forgetting = asyncio.create_task(lore.privacy.forget("ann"))
        while await lore.messages.page("tea"):  # noqa: ASYNC110 - nobody tells when they are erased
            await asyncio.sleep(0.01)
        slow.go_on.set()
        await indexing
        report = await forgetting
        assert (report.left, report.rooms_removed) == ((), ("tea",))
        assert await _rooms(lore) == []
    assert await _no_vectors(url)


async def test_a_vector_made_after_its_lease_and_its_room_are_gone_is_removed(url):
    slow = Slow()
    async with opened(url, slow) as lore:
        await say(lore, SAID[:1])
        indexing = asyncio.create_task(drain(lore))
        await slow.has_read.wait()
        assert (await lore.privacy.forget("ann")).rooms_removed == ("tea",)
        slow.go_on.set()
        await indexing
        assert await _rooms(lore) == []
    assert await _no_vectors(url)
