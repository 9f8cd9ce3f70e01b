"""A real agent of LangChain with a scripted model: what the model is sent is what counts."""

import asyncio
import importlib
import sys
import threading
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware, SummarizationMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from scripted_chat import ScriptedChat, human, wants

import roomlore
from roomlore.settings import Settings
from roomlore_integrations.langchain import MemoryMiddleware
from roomlore_testkit.case_table import all_cases
from roomlore_testkit.embedding import HashEmbedder

PLACEMENTS = ("system", "trailing")
TEA, DOCKER, PYTEST = "爱喝茶", "Uses Docker for containers", "Prefers pytest for tests"
THREAD = {"configurable": {"thread_id": "t1"}}
SMALL_TALK = "I had a long day with docker and then went out with friends to eat dumplings near the river"
"""Another fact would be the nearest to it, and yet nothing is asked."""
ONE_FACT = 16
"""Tokens for a block of one of the facts."""


@tool
def look_up(word: str) -> str:
    """Looks a word up."""
    return f"docker {word}"


@dataclass
class Caller:
    user_id: str


@pytest.fixture
def sync():
    with roomlore.open_sync("sqlite://", settings=Settings(), background=False) as opened:
        for text in (TEA, DOCKER, PYTEST):
            opened.memories.add("user:ann", text)
        opened.memories.add("user:bob", "Plays the cello")
        yield opened


@pytest.fixture
async def ann(lore):
    for text in (TEA, DOCKER, PYTEST):
        await lore.memories.add("user:ann", text)
    return lore


def agent_of(lore, *script: AIMessage, scopes: Any = ("user:ann",), middleware=(), more=None, **options):
    """An agent, and the model whose `sent` tells what it was sent. Recalling may take as long as it does on a busy
    machine: after the usual second the model is called without memory."""
    model = ScriptedChat(script=list(script))
    memory = MemoryMiddleware(lore, scopes, **{"timeout_seconds": 60, **options})
    agent = create_agent(model, [look_up], system_prompt="Be brief.", middleware=[memory, *middleware], **(more or {}))
    return agent, model


def blocks(messages: list[BaseMessage]) -> list[str]:
    return [message.text for message in messages if message.name == "memory_context"]


def kinds(messages: list[BaseMessage]) -> list[str]:
    return ["memory" if message.name == "memory_context" else message.type for message in messages]


def bare(messages: list[BaseMessage]) -> list[tuple[str, Any]]:
    """Return the type and the content of each message, as a provider's prompt is made from them."""
    return [(message.type, message.content) for message in messages]


def before_last_human(messages: list[BaseMessage]) -> list[tuple[str, Any]]:
    """Everything before the last human message, but for the block that stands just before it."""
    last = max(place for place, message in enumerate(messages) if kinds([message]) == ["human"])
    assert kinds(messages)[last - 1] == "memory"
    return bare(messages[: last - 1])


def test_the_block_stands_first_or_just_before_the_last_question(sync):
    talk = [HumanMessage("hi"), AIMessage("hello"), HumanMessage("How do I write tests?")]
    for placement, order in (
        ("system", ["system", "memory", "human", "ai", "human"]),
        ("trailing", ["system", "human", "ai", "memory", "human"]),
    ):
        agent, model = agent_of(sync, placement=placement)
        agent.invoke({"messages": talk})
        assert [kinds(sent) for sent in model.sent] == [order]
        (block,) = blocks(model.sent[0])
        assert block.startswith("<memory>\n- Prefers pytest for tests\n")
        assert block.endswith("\n</memory>")
        assert all(fact in block for fact in (TEA, DOCKER))
        assert "cello" not in block


def test_the_block_is_a_system_message_only_where_every_provider_takes_one(sync):
    found = []
    for placement in PLACEMENTS:
        agent, model = agent_of(sync, placement=placement)
        agent.invoke({"messages": [HumanMessage("a"), AIMessage("b"), HumanMessage("c")]})
        found += [type(message) for message in model.sent[0] if message.name == "memory_context"]
    assert found == [SystemMessage, HumanMessage]


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_a_tool_loop_sees_one_block_and_always_the_same(sync, placement):
    script = [wants("look_up", number, word="docker") for number in range(4)]
    agent, model = agent_of(sync, *script, AIMessage("done"), placement=placement, max_tokens=ONE_FACT)
    state = agent.invoke(human("pytest?"))
    assert len(model.sent) == 5
    assert {tuple(blocks(sent)) for sent in model.sent} == {(f"<memory>\n- {PYTEST}\n</memory>",)}
    for earlier, later in pairwise(model.sent):
        assert bare(later)[: len(earlier)] == bare(earlier)
    assert kinds(state["messages"]) == ["human", *["ai", "tool"] * 4, "ai"]


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_turns_of_a_thread_never_repeat_the_block(sync, placement):
    agent, model = agent_of(sync, placement=placement, more={"checkpointer": InMemorySaver()})
    for number, text in enumerate(("pytest?", "好的", "docker?", "喝茶?")):
        state = agent.invoke(human(text), THREAD)
        assert [len(blocks(sent)) for sent in model.sent] == [1] * (number + 1)
        assert kinds(state["messages"]) == ["human", "ai"] * (number + 1)
        assert set(state) == {"messages"}


def test_the_facts_follow_the_conversation(sync):
    agent, model = agent_of(sync, max_tokens=ONE_FACT, more={"checkpointer": InMemorySaver()})
    for text in ("Which tests do I write?", "haha, nice", "How do I run Docker?", "喝什么茶?"):
        agent.invoke(human(text), THREAD)
    shown = [blocks(sent)[0] for sent in model.sent]
    assert [PYTEST in text for text in shown] == [True, True, False, False]
    assert shown[0] == shown[1]
    assert [DOCKER in text for text in shown] == [False, False, True, False]
    assert TEA in shown[3]


CONVERSATION = ("pytest?", "ok", "What about docker?", "好", "喝什么茶?", "thanks", "And which tests?", "docker again?")


def test_trailing_changes_nothing_before_the_last_question(sync):
    script = [wants("look_up", 1, word="x"), AIMessage("a"), AIMessage("b"), wants("look_up", 2, word="y")]
    agent, model = agent_of(
        sync, *script, placement="trailing", max_tokens=ONE_FACT, more={"checkpointer": InMemorySaver()}
    )
    for text in CONVERSATION:
        agent.invoke(human(text), THREAD)
    prefixes = [before_last_human(sent) for sent in model.sent]
    assert len(prefixes) == len(CONVERSATION) + 2
    for earlier, later in pairwise(prefixes):
        assert later[: len(earlier)] == earlier
    assert len({blocks(sent)[0] for sent in model.sent}) >= 3


@pytest.mark.parametrize("more", [{"checkpointer": InMemorySaver()}, {}])
def test_the_block_stays_while_nothing_else_is_asked(sync, more):
    """With a checkpointer the thread knows what was shown; without one, the history comes from outside."""
    agent, model = agent_of(sync, max_tokens=ONE_FACT, more=more)
    said: list[BaseMessage] = []
    for text in ("Which tests do I write?", "haha", SMALL_TALK):
        question = [HumanMessage(text)] if more else [*said, HumanMessage(text)]
        said = agent.invoke({"messages": question}, THREAD)["messages"]
    assert len({blocks(sent)[0] for sent in model.sent}) == 1
    other, fresh = agent_of(sync, max_tokens=ONE_FACT)
    other.invoke(human(SMALL_TALK), {"configurable": {"thread_id": "t2"}})
    assert blocks(fresh.sent[0]) != blocks(model.sent[-1])


def test_what_was_shown_outlives_the_process(tmp_path):
    saver, sent = InMemorySaver(), []
    for text in ("Which tests do I write?", SMALL_TALK):
        with roomlore.open_sync(f"sqlite:///{tmp_path}/a.db", background=False) as opened:
            for fact in (PYTEST, DOCKER) if not sent else ():
                opened.memories.add("user:ann", fact)
            agent, model = agent_of(opened, max_tokens=ONE_FACT, more={"checkpointer": saver})
            agent.invoke(human(text), THREAD)
            sent += model.sent
    assert blocks(sent[0]) == blocks(sent[1]) == [f"<memory>\n- {PYTEST}\n</memory>"]


APPROVED = Command(resume={"decisions": [{"type": "approve"}]})


def test_a_turn_goes_on_with_its_block_after_an_interrupt(sync):
    agent, model = agent_of(
        sync,
        wants("look_up", 1, word="x"),
        middleware=[HumanInTheLoopMiddleware(interrupt_on={"look_up": True})],
        more={"checkpointer": InMemorySaver()},
    )
    assert "__interrupt__" in agent.invoke(human("pytest?"), THREAD)
    sync.memories.add("user:ann", "Writes pytest plugins")
    state = agent.invoke(APPROVED, THREAD)
    assert kinds(state["messages"]) == ["human", "ai", "tool", "ai"]
    assert blocks(model.sent[0]) == blocks(model.sent[1])
    agent.invoke(human("pytest plugins?"), THREAD)
    assert "plugins" in blocks(model.sent[2])[0]


def test_another_process_goes_on_with_the_same_facts(sync):
    saver, approve = InMemorySaver(), HumanInTheLoopMiddleware(interrupt_on={"look_up": True})
    options = {"middleware": [approve], "max_tokens": ONE_FACT, "more": {"checkpointer": saver}}
    first, before = agent_of(sync, AIMessage("ok"), wants("look_up", 1, word="x"), **options)
    first.invoke(human("Which tests do I write?"), THREAD)
    first.invoke(human(SMALL_TALK), THREAD)
    second, after = agent_of(sync, **options)
    second.invoke(APPROVED, THREAD)
    assert len(after.sent) == 1
    assert blocks(after.sent[0]) == blocks(before.sent[1]) == blocks(before.sent[0])


def test_no_checkpoint_has_a_fact(sync):
    saver = InMemorySaver()
    agent, model = agent_of(sync, wants("look_up", 1, word="x"), more={"checkpointer": saver})
    agent.invoke(human("hm?"), THREAD)
    assert "Docker" in blocks(model.sent[1])[0]
    kept = [repr(one) for one in agent.get_state_history(THREAD)]
    assert len(kept) > 3
    assert not [one for one in kept if "Docker" in one]


def test_a_fact_learnt_on_the_way_is_seen_from_the_next_turn_on(sync):
    @tool
    def remember(text: str) -> str:
        """Remembers."""
        sync.memories.add("user:ann", text)
        return "ok"

    model = ScriptedChat(script=[wants("remember", 1, text="Has a cat"), AIMessage("noted")])
    agent = create_agent(
        model, [remember], middleware=[MemoryMiddleware(sync, ["user:ann"])], checkpointer=InMemorySaver()
    )
    agent.invoke(human("I have a cat"), THREAD)
    agent.invoke(human("What pet have I?"), THREAD)
    assert ["Has a cat" in blocks(sent)[0] for sent in model.sent] == [False, False, True]


def test_a_message_edited_in_place_is_a_turn_of_its_own(sync):
    agent, model = agent_of(sync, max_tokens=ONE_FACT, more={"checkpointer": InMemorySaver()})
    for text in ("pytest?", "docker?"):
        agent.invoke({"messages": [HumanMessage(text, id="h1")]}, THREAD)
    assert [DOCKER in blocks(sent)[0] for sent in model.sent] == [False, True]


async def test_async_over_an_async_roomlore(ann):
    agent, model = agent_of(
        ann, wants("look_up", 1, word="x"), placement="trailing", more={"checkpointer": InMemorySaver()}
    )
    for text in ("pytest?", "喝茶?"):
        await agent.ainvoke(human(text), THREAD)
    assert [kinds(sent) for sent in model.sent] == [
        ["system", "memory", "human"],
        ["system", "memory", "human", "ai", "tool"],
        ["system", "human", "ai", "tool", "ai", "memory", "human"],
    ]
    assert blocks(model.sent[0]) == blocks(model.sent[1])


async def test_async_over_a_synchronous_roomlore(sync):
    agent, model = agent_of(sync)
    await asyncio.gather(*(agent.ainvoke(human("pytest?")) for _ in range(20)))
    assert {kind for sent in model.sent for kind in kinds(sent)} == {"system", "memory", "human"}
    assert len({tuple(blocks(sent)) for sent in model.sent}) == 1


def test_an_async_roomlore_in_a_synchronous_agent_says_what_to_do(ann):
    agent, _ = agent_of(ann)
    with pytest.raises(roomlore.InvalidInput, match=r"ainvoke.*roomlore\.open_sync"):
        agent.invoke(human("pytest?"))


@pytest.mark.parametrize("mode", ["messages", "values", "updates"])
def test_no_stream_shows_the_block(sync, mode):
    agent, model = agent_of(sync, wants("look_up", 1, word="x"), AIMessage("all is well"))
    streamed = list(agent.stream(human("pytest?"), stream_mode=mode))
    assert streamed
    assert "pytest for tests" not in repr(streamed)
    assert [len(blocks(sent)) for sent in model.sent] == [1, 1]


async def test_no_async_stream_shows_the_block(ann):
    agent, model = agent_of(ann, AIMessage("all is well"))
    streamed = [one async for one in agent.astream(human("pytest?"), stream_mode="messages")]
    assert "".join(chunk.text for chunk, _ in streamed).split() == ["all", "is", "well"]
    assert [len(blocks(sent)) for sent in model.sent] == [1]


def test_scopes_come_from_the_runtime_and_the_state(sync):
    def whose(state, runtime):
        return [f"user:{runtime.context.user_id}"] if len(state["messages"]) < 3 else []

    agent, model = agent_of(sync, scopes=whose, more={"context_schema": Caller, "checkpointer": InMemorySaver()})
    agent.invoke(human("music?"), THREAD, context=Caller("bob"))
    agent.invoke(human("music?"), THREAD, context=Caller("bob"))
    assert [blocks(sent) for sent in model.sent] == [["<memory>\n- Plays the cello\n</memory>"], []]


def test_the_viewer_comes_from_the_runtime_and_the_state(sync):
    said = roomlore.Message(id="m", room_id="dm", sender_id="ann", text="I have an ulcer")
    sync.messages.add(said)
    sync.rooms.set_kind("dm", "direct")
    sync.memories.add("user:ann", "Has an ulcer", sources=[roomlore.Source("dm", "m")])

    def shown_to(_state, runtime):
        return f"user:{runtime.context.user_id}" if runtime.context.user_id != "nobody" else "nonsense"

    for name, seen in (("ann", [True]), ("bob", [False]), ("nobody", [])):
        agent, model = agent_of(sync, viewer=shown_to, more={"context_schema": Caller})
        agent.invoke(human("ulcer?"), context=Caller(name))
        assert ["ulcer" in block for sent in model.sent for block in blocks(sent)] == seen, name


def test_who_goes_on_with_a_turn_sees_no_facts_of_others(sync):
    def whose(_state, runtime):
        return [f"user:{runtime.context.user_id}"]

    agent, model = agent_of(
        sync,
        wants("look_up", 1, word="x"),
        scopes=whose,
        middleware=[HumanInTheLoopMiddleware(interrupt_on={"look_up": True})],
        more={"context_schema": Caller, "checkpointer": InMemorySaver()},
    )
    agent.invoke(human("music?"), THREAD, context=Caller("ann"))
    agent.invoke(APPROVED, THREAD, context=Caller("bob"))
    assert ["cello" in blocks(sent)[0] for sent in model.sent] == [False, True]


IGNORED = [
    [wants("look_up", 1, word="docker"), ToolMessage("docker docker", tool_call_id="call-1")],
    [
        wants("look_up", 1, word="x").model_copy(update={"content": "docker docker"}),
        ToolMessage("y", tool_call_id="call-1"),
    ],
    [SystemMessage("docker docker")],
    [HumanMessage("docker docker", name="memory_context")],
    [HumanMessage("docker docker", additional_kwargs={"lc_source": "summarization"})],
]


@pytest.mark.parametrize("ignored", IGNORED)
def test_what_nobody_said_is_no_part_of_the_question(sync, ignored):
    agent, model = agent_of(sync, max_tokens=ONE_FACT)
    agent.invoke(human("hm?"))
    again = [message.model_copy() for message in ignored]
    agent.invoke({"messages": [*ignored, HumanMessage("hm?"), *again]})
    assert blocks(model.sent[0]) == blocks(model.sent[1]) == [f"<memory>\n- {PYTEST}\n</memory>"]


def test_earlier_questions_and_final_answers_are_part_of_it(sync):
    for before in ([HumanMessage("喝茶"), AIMessage("ok")], [HumanMessage("hm"), AIMessage("你爱喝茶")]):
        agent, model = agent_of(sync, max_tokens=ONE_FACT)
        agent.invoke({"messages": [*before, HumanMessage([{"type": "text", "text": "why?"}])]})
        assert blocks(model.sent[0]) == [f"<memory>\n- {TEA}\n</memory>"]


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_a_block_that_older_code_left_in_the_history_is_replaced(sync, placement):
    agent, model = agent_of(sync, placement=placement)
    old = SystemMessage("<memory>\n- Old\n</memory>", name="memory_context")
    agent.invoke({"messages": [old, HumanMessage("pytest?")]})
    assert kinds(model.sent[0]) == ["system", "memory", "human"]
    assert "Old" not in blocks(model.sent[0])[0]


def test_a_summary_of_the_conversation_has_no_block_and_takes_none_away(sync):
    @tool
    def remember(text: str) -> str:
        """Remembers."""
        sync.memories.add("user:ann", text)
        return "ok"

    summaries = ScriptedChat(script=[AIMessage(f"summary {number}") for number in range(9)])
    shorten = SummarizationMiddleware(summaries, trigger=("messages", 4), keep=("messages", 2))
    model = ScriptedChat(script=[wants("remember", number, text=f"Note {number}") for number in range(4)])
    memory = MemoryMiddleware(sync, ["user:ann"], placement="trailing")
    agent = create_agent(model, [remember], middleware=[memory, shorten], checkpointer=InMemorySaver())
    agent.invoke(human("pytest?"), THREAD)
    agent.invoke(human("docker?"), THREAD)
    assert summaries.sent
    assert "pytest for tests" not in repr(summaries.sent)
    assert "human" not in kinds([one for one in model.sent[4] if "summary" not in one.text])
    assert [len(blocks(sent)) for sent in model.sent] == [1] * 6
    assert ["Note" in blocks(sent)[0] for sent in model.sent] == [False] * 5 + [True]


def test_a_memory_that_fails_leaves_the_block_out(sync, caplog):
    def broken(_state, _runtime):
        raise LookupError("no user")

    for scopes in (broken, lambda _state, _runtime: ["nonsense"], lambda _state, _runtime: None):
        agent, model = agent_of(sync, scopes=scopes)
        agent.invoke(human("pytest?"))
        assert kinds(model.sent[0]) == ["system", "human"]
    told = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(told) == 3
    assert "without memory: " in told[0]
    assert "LookupError" in told[0]
    assert "A scope is " in told[1]


async def test_a_closed_roomlore_leaves_the_block_out(caplog):
    with roomlore.open_sync("sqlite://", background=False) as opened:
        opened.memories.add("user:ann", PYTEST)
        agent, model = agent_of(opened, wants("look_up", 1, word="x"), more={"checkpointer": InMemorySaver()})
    agent.invoke(human("pytest?"), THREAD)
    assert [kinds(sent)[:3] for sent in model.sent] == [["system", "human"], ["system", "human", "ai"]]
    await agent.ainvoke(human("pytest?"), THREAD)
    assert blocks(model.sent[-1]) == []
    assert len([one for one in caplog.records if "without memory" in one.getMessage()]) == 2


def test_a_turn_without_memory_does_not_forget_what_was_shown(sync):
    whose = [["user:ann"], None, ["user:ann"]]
    agent, model = agent_of(
        sync, scopes=lambda *_: whose.pop(0), max_tokens=ONE_FACT, more={"checkpointer": InMemorySaver()}
    )
    for text in ("Which tests do I write?", "haha", SMALL_TALK):
        agent.invoke(human(text), THREAD)
    assert [blocks(sent) for sent in model.sent] == [[f"<memory>\n- {PYTEST}\n</memory>"], [], blocks(model.sent[0])]


class SlowEmbedder(HashEmbedder):
    """Answers when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.let = threading.Event()

    async def embed(self, texts, *, kind):
        await asyncio.to_thread(self.let.wait, 60)
        return await super().embed(texts, kind=kind)


async def test_a_slow_memory_is_not_waited_for(caplog):
    embedder, script = SlowEmbedder(), [wants("look_up", 1, word="x"), AIMessage("a"), AIMessage("b")]
    options = {"similarity": "embedding", "timeout_seconds": 1.5, "more": {"checkpointer": InMemorySaver()}}
    async with roomlore.open("sqlite://", embedder=embedder, background=False) as opened:
        await opened.memories.add("user:ann", PYTEST)
        agent, model = agent_of(opened, *script, **options)
        await agent.ainvoke(human("pytest?"), THREAD)
        assert [len(blocks(sent)) for sent in model.sent] == [0, 0]
        embedder.let.set()
        await agent.ainvoke(human("pytest?"), THREAD)
        assert len(blocks(model.sent[2])) == 1
    assert [one.getMessage() for one in caplog.records if "without memory" in one.getMessage()] == [
        "the model is called without memory: it took too long"
    ]


def test_a_slow_memory_is_not_waited_for_in_a_synchronous_agent(caplog):
    embedder = SlowEmbedder()
    with roomlore.open_sync("sqlite://", embedder=embedder, background=False) as opened:
        opened.memories.add("user:ann", PYTEST)
        agent, model = agent_of(opened, similarity="embedding", timeout_seconds=1.5)
        agent.invoke(human("pytest?"))
        asyncio.run(agent.ainvoke(human("pytest?")))
        embedder.let.set()
        agent.invoke(human("pytest?"))
    assert [len(blocks(sent)) for sent in model.sent] == [0, 0, 1]
    assert caplog.text.count("it took too long") == 2


@pytest.mark.parametrize(
    ("yaml", "told"),
    [
        ("", [PYTEST, DOCKER]),
        ("memory: {enabled: false}", []),
        (f"memory: {{max_injection_tokens: {ONE_FACT}}}", [PYTEST]),
        (f"memory: {{max_injection_tokens: {ONE_FACT}, similarity_weight: 0, confidence_weight: 1}}", [DOCKER]),
        (f"memory: {{max_injection_tokens: {ONE_FACT}, max_context_turns: 0}}", [DOCKER]),
    ],
)
def test_the_configuration_of_old_works(tmp_path, yaml, told):
    (tmp_path / "roomlore.yaml").write_text(yaml, encoding="utf-8")
    with roomlore.open_sync("sqlite://", background=False) as opened:
        opened.memories.add("user:ann", PYTEST, confidence=0.1)
        opened.memories.add("user:ann", DOCKER, confidence=0.9)
        agent, model = agent_of(opened)
        agent.invoke(human("Which tests do I write with pytest?"))
    block = "".join(blocks(model.sent[0]))
    assert [fact for fact in (PYTEST, DOCKER) if fact in block] == told
    assert len(blocks(model.sent[0])) == bool(told)


CANNOT_BE_USED = [
    ({"scopes": ["ann"]}, "scope"),
    ({"scopes": None}, "scopes is a list"),
    ({"placement": "middle"}, "system, trailing"),
    ({"max_tokens": -1}, "max_tokens"),
    ({"max_context_turns": 1.5}, "max_context_turns"),
    ({"similarity_weight": 2}, "similarity_weight"),
    ({"similarity": "magic"}, "tfidf"),
    ({"kinds": ["magic"]}, "Kinds"),
    ({"timeout_seconds": 0}, "timeout_seconds"),
    ({"lore": "sqlite://"}, r"roomlore\.open_sync or roomlore\.open "),
]


def test_arguments_that_cannot_be_used_are_refused_at_once(sync):
    with all_cases() as case:
        for given, told in CANNOT_BE_USED:
            with case(given), pytest.raises(roomlore.InvalidInput, match=told):
                MemoryMiddleware(**{"lore": sync, "scopes": ["user:ann"], **given})


def test_a_tool_of_the_same_name_is_no_block(sync):
    @tool
    def memory_context(word: str) -> str:
        """Looks a word up."""
        return "a tool's word"

    model = ScriptedChat(script=[wants("memory_context", 1, word="x")])
    agent = create_agent(model, [memory_context], middleware=[MemoryMiddleware(sync, ["user:ann"])])
    agent.invoke(human("pytest?"))
    assert [message.type for message in model.sent[1]] == ["system", "human", "ai", "tool"]


def test_other_middleware_sees_no_block_and_may_change_the_prompt(sync):
    seen = []

    class Shout(AgentMiddleware):
        def before_model(self, state, runtime):
            seen.append(kinds(state["messages"]))

        def wrap_model_call(self, request, handler):
            return handler(request.override(system_message=SystemMessage("LOUD")))

    agent, model = agent_of(sync, middleware=[Shout()])
    agent.invoke(human("pytest?"))
    assert seen == [["human"]]
    assert bare(model.sent[0])[0] == ("system", "LOUD")
    assert kinds(model.sent[0]) == ["system", "memory", "human"]


def test_agents_without_a_prompt_or_a_question(sync):
    model = ScriptedChat()
    agent = create_agent(model, middleware=[MemoryMiddleware(sync, ["user:ann"], placement="trailing")])
    agent.invoke(human("pytest?"))
    agent.invoke({"messages": [SystemMessage("Greet.")]})
    assert [kinds(sent) for sent in model.sent] == [["memory", "human"], ["system", "memory"]]


def test_a_missing_langchain_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "langchain.agents.middleware.types", None)
    monkeypatch.delitem(sys.modules, "roomlore_integrations.langchain.middleware")
    with pytest.raises(roomlore.InvalidInput, match=r"needs the extra .*pip install 'roomlore\[langchain\]'"):
        importlib.import_module("roomlore_integrations.langchain.middleware")
