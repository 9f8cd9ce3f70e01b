"""`lore.memories.search`: what is found, in which scopes, and by what, as memories come, change and go."""

from collections.abc import AsyncIterator, Sequence

import numpy as np
import pytest

import roomlore
from engines import ENGINES
from roomlore.adapters.embedding import open_offline
from roomlore.core.errors import InvalidInput, ModelUnavailable
from roomlore.core.memory.scoring import CHINESE
from roomlore.core.search.hits import VectorPoint, Vectors
from roomlore.ports.vectors import MEMORIES
from roomlore.services import memory_search
from roomlore_testkit.doubles import FrozenClock
from roomlore_testkit.embedding import HashEmbedder

GROUP = roomlore.MemoryKind.GROUP
ENGLISH_MEMORIES = [
    "Most members are front-end developers",
    "The weekly meeting is on Friday at three in the afternoon",
    "Lin owns the group and approves new members",
    "People prefer React and rarely use Vue",
    "The tone is relaxed and full of jokes",
    "Advertising is forbidden in the group",
    "A team trip to Xiamen is planned for July",
    "Newcomers introduce themselves before they ask questions",
    "Jay is allergic to peanuts, which matters at dinners",
    "When production breaks, look up who is on call in the duty list",
]
CHINESE_MEMORIES = [
    "成员多为前端开发者",
    "每周五下午三点开例会",
    "群主是小林，负责审批入群申请",
    "大家更喜欢 React，不太用 Vue",
    "聊天里常开玩笑，气氛轻松",
    "群里禁止发广告",
    "七月要一起去厦门团建",
    "新人先自我介绍再提问",
    "阿杰对花生过敏，聚餐要注意",
    "线上故障在值班表里找当天的人",
]


class Counting(HashEmbedder):
    """Notes what it embeds, and can be down for passages alone."""

    def __init__(self, *, dimensions: int = 256) -> None:
        super().__init__(dimensions=dimensions)
        self.passages: list[str] = []
        self.down = False

    async def embed(self, texts: Sequence[str], *, kind: str) -> Vectors:
        if kind == "passage":
            if self.down:
                raise ModelUnavailable("The model was told to fail.")
            self.passages += texts
        return await super().embed(texts, kind=kind)


@pytest.fixture(params=ENGINES)
def url(request) -> str:
    return request.getfixturevalue(request.param)


def opened(url: str, embedder=None, **settings):
    return roomlore.open(url, settings=roomlore.Settings(**settings), embedder=embedder, background=False)


@pytest.fixture
async def lore(url) -> AsyncIterator[roomlore.Lore]:
    async with opened(url, HashEmbedder(dimensions=256)) as lore:
        yield lore


async def remember(lore: roomlore.Lore, statements: Sequence[str], scope: str = "group:tea") -> list[roomlore.Memory]:
    made = [roomlore.NewMemory(scope=scope, statement=text, kind=GROUP) for text in statements]
    return [one.memory for one in await lore.memories.add_all(made)]


async def drain(lore: roomlore.Lore) -> None:
    async for _ in lore.index.drain():
        pass


def said(answer: roomlore.MemoryAnswer) -> list[str]:
    return [hit.memory.statement for hit in answer.hits]


@pytest.mark.parametrize(
    ("question", "statements", "best"),
    [
        ("Who is allergic to peanuts?", ENGLISH_MEMORIES, ENGLISH_MEMORIES[8]),
        ("谁对花生过敏？", CHINESE_MEMORIES, CHINESE_MEMORIES[8]),
        ("React 还是 Vue？", CHINESE_MEMORIES, CHINESE_MEMORIES[3]),
    ],
    ids=["en", "zh", "mixed"],
)
async def test_words_and_meaning_find_what_was_asked_for(lore, question, statements, best):
    await remember(lore, statements)
    await drain(lore)
    answer = await lore.memories.search("tea", question)
    assert (answer.mode, answer.degraded, answer.scope) == ("hybrid", None, "group:tea")
    assert said(answer)[0] == best
    assert answer.hits[0].score >= 0.7
    assert set(answer.hits[0].signals) == {"words", "meaning"}
    everything = await lore.memories.search("tea", question, threshold=0, limit=200)
    assert sorted(said(everything)) == sorted(statements)
    scores = [hit.score for hit in everything.hits]
    assert scores == sorted(scores, reverse=True)
    assert [hit for hit in everything.hits if hit.score >= 0.7][:5] == list(answer.hits)


async def test_without_an_embedder_words_alone_are_searched_and_the_answer_says_so(url):
    async with opened(url) as lore:
        await remember(lore, CHINESE_MEMORIES)
        answer = await lore.memories.search("tea", "谁对花生过敏？")
        assert (answer.mode, answer.degraded) == ("lexical", None)
        assert said(answer)[0] == CHINESE_MEMORIES[8]
        assert answer.hits[0].signals["meaning"] == 0


async def test_what_was_just_written_is_found_before_it_is_indexed(lore):
    await remember(lore, ENGLISH_MEMORIES)
    await drain(lore)
    await remember(lore, ["The tea house opens at dawn"])
    answer = await lore.memories.search("tea", "the tea house")
    assert said(answer)[0] == "The tea house opens at dawn"
    assert (answer.mode, answer.degraded) == ("hybrid", None)
    assert answer.hits[0].signals["meaning"] > 0


async def test_many_that_are_not_indexed_yet_are_told(lore, monkeypatch):
    monkeypatch.setattr(memory_search, "_AT_ONCE", 3)
    await remember(lore, ENGLISH_MEMORIES[:2])
    await drain(lore)
    await remember(lore, ENGLISH_MEMORIES)
    answer = await lore.memories.search("tea", "peanuts")
    assert answer.mode == "hybrid"
    assert "8 memories have no vector yet" in answer.degraded
    assert said(answer) == [ENGLISH_MEMORIES[8]]


async def test_only_what_is_in_force_is_found(lore):
    kept, changed, gone = await remember(lore, ["likes green tea", "drinks black tea", "hates herbal tea"])
    await drain(lore)
    updated = await lore.memories.update(changed.memory_id, statement="drinks oolong tea")
    await lore.memories.delete(gone.memory_id)
    for _ in range(2):
        found = {hit.memory.memory_id for hit in (await lore.memories.search("tea", "tea", threshold=0)).hits}
        assert found == {kept.memory_id, updated.memory_id}
        await drain(lore)
    await lore.memories.restore(gone.memory_id)
    found = {hit.memory.memory_id for hit in (await lore.memories.search("tea", "tea", threshold=0)).hits}
    assert found == {kept.memory_id, updated.memory_id, gone.memory_id}


async def test_vectors_of_what_is_gone_are_dropped(url):
    embedder = Counting()
    async with opened(url, embedder, vectors="sql") as lore:
        first, _ = await remember(lore, ["likes tea", "likes rain"])
        await drain(lore)
        embedder.passages.clear()
        await lore.memories.update(first.memory_id, statement="likes oolong")
        await drain(lore)
        assert embedder.passages == ["likes oolong"]
        assert (await lore.index.status()).vectors == "whole"


async def test_a_point_whose_memory_is_not_in_force_is_passed_over(url):
    """As where the index is behind, or was brought back from a backup."""
    async with opened(url, HashEmbedder(dimensions=256), vectors="sql") as lore:
        await remember(lore, ["likes tea"])
        await drain(lore)
        indexes = lore._resources.indexing
        async with lore.storage.reading() as work:
            state = await work.progress.index_state(name="memories")
        point = VectorPoint(tenant=lore.tenant, scope="group:tea", number=999, vector=np.ones(256, np.float32))
        await indexes.vectors.put(collection=MEMORIES, generation=state.generation, points=[point])
        answer = await lore.memories.search("tea", "likes tea", threshold=0)
        assert said(answer) == ["likes tea"]


async def test_scopes_and_tenants_are_apart(lore):
    await remember(lore, ["likes tea"])
    await remember(lore, ["grows tea"], scope="user:tea")
    await remember(lore.for_tenant("other"), ["sells tea"])
    await drain(lore)
    assert said(await lore.memories.search("tea", "tea", threshold=0)) == ["likes tea"]
    assert said(await lore.memories.search("user:tea", "tea", threshold=0)) == ["grows tea"]
    assert said(await lore.for_tenant("other").memories.search("tea", "tea", threshold=0)) == ["sells tea"]
    assert (await lore.memories.search("nobody", "tea", threshold=0)).hits == ()


async def test_a_large_scope_is_ranked_against_a_sample_of_itself(lore, monkeypatch):
    monkeypatch.setattr(memory_search, "_SAMPLE", 8)
    monkeypatch.setattr("roomlore.services.indexing.index_state.NEIGHBOURHOOD", 12)
    await remember(lore, [f"fact {n} about chairs and tables" for n in range(60)], scope="user:ann")
    await remember(lore, ["allergic to peanuts"], scope="user:ann")
    await drain(lore)
    answer = await lore.memories.search("user:ann", "allergic to peanuts")
    assert said(answer) == ["allergic to peanuts"]
    assert answer.degraded is None
    everything = await lore.memories.search("user:ann", "chairs", threshold=0, limit=200)
    assert len(everything.hits) == 61


async def test_what_is_kept_ready_is_bounded(url, monkeypatch):
    monkeypatch.setattr(memory_search, "_INLINE", 1)
    async with opened(url, HashEmbedder(dimensions=256)) as lore:
        held = memory_search.MemorySearchCache(storage=lore.storage, clock=FrozenClock(), held=20)
        for group in "abc":
            await remember(lore, ["likes tea", "likes rain", "hates noise"], scope=f"group:{group}")
        ready = [await held.find(lore.tenant, f"group:{group}") for group in "abca"]
        assert ready[3] is not ready[0], "the first was dropped"
        assert await held.find(lore.tenant, "group:c") is ready[2]


async def test_a_background_that_cannot_be_embedded_leaves_words(url):
    embedder = Counting()
    async with opened(url, embedder) as lore:
        await remember(lore, ["likes tea"])
        await drain(lore)
        embedder.down = True
        answer = await lore.memories.search("tea", "tea")
        assert (answer.mode, said(answer)) == ("lexical", ["likes tea"])
        assert "told to fail" in answer.degraded
        embedder.down = False
        embedder.passages.clear()
        assert (await lore.memories.search("tea", "tea")).mode == "hybrid"
        assert (await lore.memories.search("tea", "rain")).mode == "hybrid"
        assert embedder.passages.count(CHINESE[0]) == 1, "it is embedded once"


async def test_memories_that_were_there_before_embeddings_were_turned_on(url):
    async with opened(url) as lore:
        await remember(lore, ENGLISH_MEMORIES)
    async with opened(url, Counting()) as lore:
        answer = await lore.memories.search("tea", "peanuts")
        assert (answer.mode, said(answer)) == ("lexical", [ENGLISH_MEMORIES[8]])
        assert "not made yet" in answer.degraded
        await drain(lore)
        assert (await lore.memories.search("tea", "peanuts")).mode == "hybrid"
        assert (await lore.index.status()).vectors == "whole"


async def test_a_rebuild_takes_memories_in_again(url):
    embedder = Counting()
    async with opened(url, embedder) as lore:
        await remember(lore, ENGLISH_MEMORIES)
        await remember(lore, CHINESE_MEMORIES, scope="user:ann")
        await drain(lore)
        embedder.passages.clear()
        steps = [step async for step in lore.index.rebuild(part="vectors")]
        assert (steps[-1].done, steps[-1].total) == (20, 20)
        assert sorted(set(embedder.passages)) == sorted({"roomlore", *ENGLISH_MEMORIES, *CHINESE_MEMORIES})
        assert (await lore.memories.search("tea", "peanuts")).mode == "hybrid"


async def test_another_model_is_a_persons_decision(url):
    async with opened(url, HashEmbedder(name="first")) as lore:
        await remember(lore, ["likes tea"])
        await drain(lore)
    async with opened(url, HashEmbedder(name="second")) as lore:
        answer = await lore.memories.search("tea", "tea")
        assert answer.mode == "lexical"
        assert "roomlore reindex" in answer.degraded


@pytest.mark.parametrize(
    "asked",
    [
        {"q": ""},
        {"q": " \n"},
        {"q": 7},
        {"q": "x" * 20_001},
        {"q": "tea", "limit": 0},
        {"q": "tea", "limit": 201},
        {"q": "tea", "limit": True},
        {"q": "tea", "threshold": 1.1},
        {"q": "tea", "threshold": -0.1},
        {"q": "tea", "threshold": float("nan")},
        {"q": "tea", "threshold": "high"},
    ],
    ids=lambda asked: "-".join(f"{name}={value!s:.8}" for name, value in asked.items()),
)
async def test_what_cannot_be_searched_for_is_refused(lore, asked):
    with pytest.raises(InvalidInput):
        await lore.memories.search("tea", **asked)


@pytest.mark.parametrize("text", ["\x00", "\ud800", "e\u0301 👩‍👩‍👧 部署", "'; DROP TABLE memories; --", "？！", "的"])
async def test_any_text_can_be_asked_for(lore, text):
    await remember(lore, ["likes tea", "喜欢喝茶"])
    await drain(lore)
    answer = await lore.memories.search("tea", text, threshold=0)
    assert len(answer.hits) == 2


@pytest.mark.parametrize(
    ("question", "statements"),
    [
        ("群组的技术背景是什么？", CHINESE_MEMORIES),
        ("What is the technical background of the group?", ENGLISH_MEMORIES),
        ("群组的技术背景是什么？", ENGLISH_MEMORIES),
    ],
    ids=["zh", "en", "zh to en"],
)
async def test_with_the_model_on_this_machine_what_answers_scores_high_and_the_rest_low(question, statements):
    """No word of the question is in the memory that answers it."""
    async with opened("sqlite://", open_offline()) as lore:
        await remember(lore, statements)
        await drain(lore)
        first, *others = (await lore.memories.search("tea", question, threshold=0, limit=10)).hits
    assert first.memory.statement == statements[0]
    assert first.score > 0.8
    assert all(hit.score < 0.7 for hit in others)
    assert len(others) == 9


async def test_with_the_model_on_this_machine_a_memory_scores_the_same_before_it_is_indexed():
    async with opened("sqlite://", open_offline()) as lore:
        await remember(lore, CHINESE_MEMORIES[:5])
        await drain(lore)
        await remember(lore, ENGLISH_MEMORIES[5:])
        scores = []
        for _ in range(2):
            found = await lore.memories.search("tea", "谁不能吃花生？ Who cannot eat peanuts?", threshold=0, limit=10)
            scores.append({hit.memory.statement: hit.score for hit in found.hits})
            await drain(lore)
    assert scores[0] == pytest.approx(scores[1], abs=1e-4)
    assert max(scores[0], key=scores[0].__getitem__) == ENGLISH_MEMORIES[8]
