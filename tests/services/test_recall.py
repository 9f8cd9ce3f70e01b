"""`lore.recall`: facts of scopes as stored, for conversations in every form, and what happens when something lacks."""

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

import roomlore
from recall_facts import count, fact
from roomlore import Message
from roomlore.adapters.tokens import EncodingTokens
from roomlore.core.audience import Viewer
from roomlore.core.errors import InvalidInput, ModelUnavailable
from roomlore.core.memory.memory import Action, Change, Memory, MemoryKind, MemoryStatus
from roomlore.core.recall.recollection import ConversationMessage, Recollection
from roomlore.core.search.hits import Vectors
from roomlore.services.recall import RecallCache
from roomlore_testkit.case_table import all_cases
from roomlore_testkit.doubles import FrozenClock
from roomlore_testkit.embedding import HashEmbedder

NOW = datetime(2026, 2, 1, tzinfo=UTC)
TEA, DOCKER, PYTEST = "Likes green tea", "Uses Docker for containers", "Prefers pytest for tests"


async def remember(lore: roomlore.Lore, *memories: Memory) -> None:
    """As any writer of memories does it."""
    for memory in memories:
        async with lore.storage.writing(lore.tenant) as work:
            scope = await work.memories.lock(scope=memory.scope, now=NOW)
            change = Change(number=scope.changes + 1, scope=memory.scope, action=Action.CREATE, memory=memory, at=NOW)
            await work.memories.apply(scope=memory.scope, changes=[change])


def asked(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


@pytest.fixture
async def ann(lore: roomlore.Lore) -> roomlore.Lore:
    await remember(lore, *(fact(n, text) for n, text in enumerate((TEA, DOCKER, PYTEST))))
    return lore


async def test_the_block_of_a_scope(ann):
    found = await ann.recall.build(["user:ann"], asked("How do I write tests?"))
    assert found.facts[0].memory.statement == PYTEST
    assert found.considered == 3
    assert found.degraded is None
    assert found.text == await ann.recall.memory_prompt(["user:ann"], asked("How do I write tests?"))
    assert found.tokens == count([found.text])[0]


async def test_nothing_known_is_an_empty_text(lore):
    assert await lore.recall.memory_prompt(["user:nobody"], asked("Hello?")) == ""
    assert await lore.recall.memory_prompt([], asked("Hello?")) == ""
    assert await lore.recall.memory_prompt(["user:nobody"], []) == ""


async def test_tenants_and_scopes_are_apart(ann):
    assert await ann.for_tenant("other").recall.memory_prompt(["user:ann"], asked("tea?")) == ""
    assert await ann.recall.memory_prompt(["group:ann"], asked("tea?")) == ""


async def test_several_scopes_are_named_in_the_block(ann):
    await remember(ann, fact(9, "喜欢喝茶", scope="group:茶馆"))
    text = await ann.recall.memory_prompt(["user:ann", "group:茶馆"], asked("喝什么茶？"))
    assert "- [group:茶馆] 喜欢喝茶\n" in text
    assert f"- [user:ann] {TEA}\n" in text


async def test_what_is_added_and_deleted_is_seen_at_once(ann):
    before = await ann.recall.build(["user:ann"], asked("tea"))
    new = fact(7, "Drinks oolong tea at four")
    await remember(ann, new)
    assert "oolong" in await ann.recall.memory_prompt(["user:ann"], asked("tea"))
    async with ann.storage.writing(ann.tenant) as work:
        scope = await work.memories.lock(scope="user:ann", now=NOW)
        deleted = replace(new, status=MemoryStatus.DEPRECATED)
        gone = Change(number=scope.changes + 1, scope="user:ann", action=Action.DELETE, memory=deleted, at=NOW)
        await work.memories.apply(scope="user:ann", changes=[gone])
    assert (await ann.recall.build(["user:ann"], asked("tea"))).text == before.text


async def test_kinds_are_chosen(ann):
    short = fact(8, "They spoke of tea")
    await remember(ann, replace(short, kind=MemoryKind.SHORT))
    assert "They spoke" not in await ann.recall.memory_prompt(["user:ann"], asked("tea"))
    assert "They spoke" in await ann.recall.memory_prompt(["user:ann"], asked("tea"), kinds=["fact", "short"])


FORMS = {
    "mapping": [{"role": "user", "content": "pytest"}],
    "parts": [{"role": "user", "content": [{"type": "text", "text": "pytest"}, {"type": "image_url"}]}],
    "said": [ConversationMessage("user", "pytest")],
    "message": [roomlore.Message(id="1", room_id="r", sender_id="ann", text="pytest")],
}


@pytest.mark.parametrize("form", FORMS)
async def test_messages_come_in_any_form(ann, form):
    found = await ann.recall.build(["user:ann"], FORMS[form])
    assert found.facts[0].memory.statement == PYTEST
    assert found.facts[0].similarity > 0


@pytest.mark.parametrize(
    "ignored",
    [
        {"role": "tool", "content": "docker"},
        {"role": "system", "content": "docker"},
        {"role": "assistant", "content": "docker", "tool_calls": [{"id": "1"}]},
        {"role": "user", "name": "memory_context", "content": "docker"},
        {"role": "user", "content": "<memory>docker</memory>"},
        {"role": "assistant", "content": None},
        roomlore.Message(id="1", room_id="r", sender_id="x", text="docker", sender_name="memory_context"),
        roomlore.Message(id="1", room_id="r", sender_id="x", text="docker", role=roomlore.Role.TOOL),
    ],
)
async def test_what_nobody_said_does_not_count(ann, ignored):
    alone = await ann.recall.build(["user:ann"], asked("tea"))
    assert await ann.recall.build(["user:ann"], [ignored, *asked("tea"), ignored]) == alone


BAD = [
    ({"scopes": ["ann"]}, "scope"),
    ({"scopes": None}, "scopes"),
    ({"messages": "hello"}, "list"),
    ({"messages": [7]}, r"messages\[0\]"),
    ({"messages": [{"role": "bot", "content": ""}]}, "role"),
    ({"messages": [{"role": "user", "content": 7}]}, "content"),
    ({"max_tokens": -1}, "max_tokens"),
    ({"max_tokens": True}, "max_tokens"),
    ({"max_context_turns": 1.5}, "max_context_turns"),
    ({"similarity_weight": float("nan")}, "similarity_weight"),
    ({"confidence_weight": 2}, "confidence_weight"),
    ({"similarity": "magic"}, "tfidf"),
    ({"kinds": ["magic"]}, "Kinds"),
    ({"conversation_id": ""}, "conversation_id"),
    ({"previous": "f1"}, "previous"),
    ({"previous": 5}, "previous"),
    ({"kinds": None}, "kinds"),
    ({"conversation_id": "c" * 513}, "conversation_id"),
    ({"messages": [{"role": ["user"], "content": ""}]}, "role"),
    ({"messages": [ConversationMessage("human", "tea")]}, "role"),
    ({"messages": [ConversationMessage("user", None)]}, "text"),
]


async def test_what_cannot_be_used_is_told(ann):
    with all_cases() as case:
        for given, told in BAD:
            with case(given), pytest.raises(InvalidInput, match=told):
                await ann.recall.build(**{"scopes": ["user:ann"], "messages": asked("tea"), **given})


async def test_a_conversation_keeps_its_block_and_says_how_often_it_changed(lore):
    await remember(lore, *(fact(n, f"Once read {name} on a long train journey") for n, name in enumerate(NAMES)))

    async def say(text: str, conversation: str = "c", budget: int = 40) -> Recollection:
        return await lore.recall.build(["user:ann"], asked(text), max_tokens=budget, conversation_id=conversation)

    first = await say("Who read Emma?")
    assert (await say("haha, great")).text == first.text
    assert (await say("And Dracula?")).text != first.text
    assert not (await say("haha, great", conversation="d")).kept
    assert not (await say("haha, great", budget=50)).kept
    metrics = lore.prometheus().decode()
    for block, times in (("new", 3), ("kept", 1), ("changed", 1)):
        assert f'roomlore_recall_blocks_total{{block="{block}",degraded="no"}} {times}.0' in metrics


async def test_a_block_whose_lines_name_their_scopes_is_another_one(ann):
    alone = await ann.recall.build(["user:ann"], asked("tea"), conversation_id="c")
    named = await ann.recall.build(["user:ann", "group:tea"], asked("tea"), conversation_id="c")
    assert named.text != alone.text
    assert not named.kept
    again = await ann.recall.build(["user:ann", "group:tea"], asked("tea"), conversation_id="c")
    assert (again.kept, again.text) == (True, named.text)


class SlowTokens(EncodingTokens):
    def __init__(self) -> None:
        super().__init__()
        self.calls, self.may_go_on = 0, threading.Event()

    def count(self, texts: Sequence[str]) -> list[int]:
        self.calls += 1
        assert self.may_go_on.wait(60)
        return super().count(texts)


async def test_facts_are_made_ready_though_who_asked_gave_up(lore):
    await remember(lore, *(fact(n, f"{n} " + "茶" * 3000) for n in range(9)))
    tokens = SlowTokens()
    cache = RecallCache(storage=lore.storage, tokens=tokens, clock=FrozenClock())
    asking = asyncio.ensure_future(cache.find("default", ["user:ann"], [MemoryKind.FACT]))
    async with asyncio.timeout(60):
        while not tokens.calls:  # noqa: ASYNC110 - a thread tells nobody
            await asyncio.sleep(0.005)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    tokens.may_go_on.set()
    (late,) = (task for task in asyncio.all_tasks() if task.get_coro().__name__ == "_made")
    await late
    calls = tokens.calls
    assert len((await cache.find("default", ["user:ann"], [MemoryKind.FACT]))[1]) == 9
    assert (calls, tokens.calls) == (2, 2)


class FirstSlow(EncodingTokens):
    """Lets the first call wait, and no other."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.may_go_on = threading.Event(), threading.Event()

    def count(self, texts: Sequence[str]) -> list[int]:
        if not self.begun.is_set():
            self.begun.set()
            assert self.may_go_on.wait(60)
        return super().count(texts)


async def test_facts_that_are_ready_late_do_not_replace_newer_ones(lore):
    """A regression: a room that somebody had joined was shown again what they had not heard."""
    for room, members in (("heard", ["ann", "bob"]), ("asking", ["bob"])):
        await lore.rooms.set_members(room, members)
    await lore.messages.add(Message(id="1", room_id="heard", sender_id="ann", text="hello"))
    sources = [roomlore.Source("heard", "1")]
    new = [roomlore.NewMemory(scope="user:ann", statement=f"{n} " + "茶" * 3000, sources=sources) for n in range(9)]
    await lore.memories.add_all(new)
    tokens = FirstSlow()
    cache = RecallCache(storage=lore.storage, tokens=tokens, clock=FrozenClock())

    async def shown() -> int:
        return len((await cache.find("default", ["user:ann"], [MemoryKind.FACT], Viewer("room", "asking")))[1])

    asking = asyncio.ensure_future(shown())
    assert await asyncio.to_thread(tokens.begun.wait, 60)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await lore.rooms.add_members("asking", ["eve"])
    assert await shown() == 0
    tokens.may_go_on.set()
    await asyncio.gather(*(task for task in asyncio.all_tasks() if task.get_coro().__name__ == "_made"))
    assert await shown() == 0


NAMES = ["Emma", "Dracula", "Walden", "Ulysses", "Candide", "Hamlet", "Faust", "Macbeth"]


async def test_callers_may_keep_what_was_shown_themselves(lore):
    await remember(lore, *(fact(n, f"Once read {name} on a long train journey") for n, name in enumerate(NAMES)))
    first = await lore.recall.build(["user:ann"], asked("Who read Emma?"), max_tokens=40)
    shown = [one.memory.memory_id for one in first.facts]
    again = await lore.recall.build(["user:ann"], asked("haha"), max_tokens=40, previous=shown)
    assert again.kept
    assert again.text == first.text


async def test_switched_off_it_recalls_nothing():
    async with roomlore.open("sqlite://", settings=roomlore.Settings(enabled=False)) as lore:
        await remember(lore, fact(1, TEA))
        assert await lore.recall.memory_prompt(["user:ann"], asked("tea")) == ""
        with pytest.raises(InvalidInput):
            await lore.recall.build(["ann"], asked("tea"))


async def test_settings_under_the_names_of_the_design(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(
        "memory:\n  enabled: true\n  max_injection_tokens: 12\n  max_context_turns: 1\n"
        "  similarity_weight: 0.0\n  confidence_weight: 1.0\n"
    )
    async with roomlore.open("sqlite://", settings=roomlore.Settings(path)) as lore:
        await remember(lore, fact(1, TEA, 0.1), fact(2, "Has a dog", 0.9))
        found = await lore.recall.build(["user:ann"], asked("tea"))
    assert [one.memory.statement for one in found.facts] == ["Has a dog"]
    assert found.tokens <= 12


class Troubled(HashEmbedder):
    """Answers until told otherwise."""

    broken = False
    asked = 0

    async def embed(self, texts: Sequence[str], *, kind: str) -> Vectors:
        if self.broken:
            raise ModelUnavailable("The model is away.")
        self.asked += len(texts)
        return await super().embed(texts, kind=kind)  # type: ignore[arg-type]


@pytest.mark.parametrize("similarity", ["embedding", "hybrid"])
async def test_vectors_are_made_once_and_made_do_without(similarity):
    embedder = Troubled()
    settings = roomlore.Settings(similarity=similarity)
    async with roomlore.open("sqlite://", settings=settings, embedder=embedder, background=False) as lore:
        await remember(lore, *(fact(n, text) for n, text in enumerate((TEA, DOCKER, PYTEST))))
        found = await lore.recall.build(["user:ann"], asked(TEA))
        assert found.degraded is None
        assert found.facts[0].memory.statement == TEA
        made = embedder.asked
        await lore.recall.build(["user:ann"], asked(TEA))
        assert embedder.asked == made + 1
        embedder.broken = True
        found = await lore.recall.build(["user:ann"], asked(TEA))
        assert "The model is away" in found.degraded
        assert found.facts[0].memory.statement == TEA
        assert (await lore.recall.build(["user:ann"], [])).degraded is None


class Slow(Troubled):
    """Embeds facts only once it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.let = asyncio.Event()

    async def embed(self, texts: Sequence[str], *, kind: str) -> Vectors:
        if kind == "passage":
            await self.let.wait()
        return await super().embed(texts, kind=kind)


async def test_a_slow_embedder_is_not_waited_for_and_not_asked_twice(monkeypatch):
    monkeypatch.setattr("roomlore.core.recall.recollection.RECALL_SECONDS", 1)
    embedder = Slow()
    settings = roomlore.Settings(similarity="hybrid")
    async with roomlore.open("sqlite://", settings=settings, embedder=embedder, background=False) as lore:
        await remember(lore, *(fact(n, text) for n, text in enumerate((TEA, DOCKER, PYTEST))))
        before = asyncio.all_tasks()
        for _ in range(2):
            found = await lore.recall.build(["user:ann"], asked(TEA))
            assert "longer than 1 s" in found.degraded
            assert found.facts[0].memory.statement == TEA
        embedder.let.set()
        await asyncio.gather(*asyncio.all_tasks() - before)
        assert embedder.asked == 3
        assert (await lore.recall.build(["user:ann"], asked(TEA))).degraded is None
        assert embedder.asked == 3 + 1


async def test_many_vectors_are_made_call_by_call():
    async with roomlore.open("sqlite://", embedder=Troubled(), background=False) as lore:
        await remember(lore, *(fact(n, f"fact {n}") for n in range(100)))
        first = await lore.recall.build(["user:ann"], asked("fact 3"), similarity="hybrid")
        assert "36 facts" in first.degraded
        assert (await lore.recall.build(["user:ann"], asked("fact 3"), similarity="hybrid")).degraded is None


async def test_without_an_embedder_words_decide_and_it_says_so(ann):
    found = await ann.recall.build(["user:ann"], asked("tests"), similarity="hybrid")
    assert "embeddings" in found.degraded
    assert found.facts[0].memory.statement == PYTEST


def test_the_synchronous_client_has_it_too():
    with roomlore.open_sync("sqlite://") as lore:
        assert lore.recall.memory_prompt(["user:ann"], asked("tea")) == ""


async def test_the_cache_forgets_what_was_asked_for_longest_ago(lore):
    for name in ("ann", "bob", "cem"):
        await remember(lore, fact(ord(name[0]), f"{name} likes tea", scope=f"user:{name}"))
    cache = RecallCache(storage=lore.storage, tokens=EncodingTokens(), clock=FrozenClock(), held=45)
    kept = {name: await cache.find("default", [f"user:{name}"], [MemoryKind.FACT]) for name in ("ann", "bob")}
    assert (await cache.find("default", ["user:ann"], [MemoryKind.FACT]))[1] is kept["ann"][1]
    await cache.find("default", ["user:cem"], [MemoryKind.FACT])
    assert (await cache.find("default", ["user:ann"], [MemoryKind.FACT]))[1] is kept["ann"][1]
    assert (await cache.find("default", ["user:bob"], [MemoryKind.FACT]))[1] is not kept["bob"][1]
