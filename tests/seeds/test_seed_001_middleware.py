"""Seed 001: the middleware that puts the facts before each call of an agent's model."""

import pytest
from agent import agent_of, blocks, looks_up
from developer import ANN, DOCKER, FACTS, FASTAPI, HINTS, PROJECT, PYTEST, REACT
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from rig import memory_middleware

import roomlore
from roomlore import InvalidInput, Settings, with_memory

ONE_FACT = 16
"""Tokens for a block of one of the facts."""


@pytest.fixture(scope="module")
def lore():
    with roomlore.open_sync("sqlite://", settings=Settings(), background=False) as opened:
        for statement in FACTS:
            opened.memories.add(ANN, statement, confidence=0.5)
        yield opened


def sent(lore, messages, *script, **options):
    """The calls of the model that one run of an agent makes, and the state after it."""
    agent, model = agent_of(lore, *script, scopes=(ANN,), **options)
    state = agent.invoke({"messages": messages})
    return model.sent, state["messages"]


def block(lore, messages, **options) -> str:
    """The memory before the first call."""
    ((first, *_), _) = sent(lore, messages, **options)
    (found,) = blocks(first)
    return found.text


def test_the_block_is_a_system_message_named_memory_context_in_tags(lore):
    ((first,), _) = sent(lore, [HumanMessage("How do I write tests?")])
    (found,) = blocks(first)
    assert (type(found), found.name) == (SystemMessage, "memory_context")
    assert found.text.startswith("<memory>\n- Prefers pytest for testing\n")
    assert found.text.endswith("\n</memory>")


def test_the_block_stands_before_the_conversation(lore):
    ((first,), _) = sent(lore, [HumanMessage("hi"), AIMessage("hello"), HumanMessage("How do I write tests?")])
    assert [one.name or one.type for one in first] == ["system", "memory_context", "human", "ai", "human"]


def test_the_facts_are_chosen_before_each_call_of_the_model_not_once_for_the_agent(lore):
    middleware = type(memory_middleware(lore, [ANN]))
    own = {
        name for name in ("before_agent", "before_model", "abefore_agent", "abefore_model") if name in vars(middleware)
    }
    assert own == {"before_model", "abefore_model"}


def test_every_call_of_a_loop_with_tools_sees_the_memory(lore):
    calls, _ = sent(lore, [HumanMessage("test?")], looks_up("a"), looks_up("b"), AIMessage("done"))
    assert [len(blocks(call)) for call in calls] == [1, 1, 1]


def test_a_block_that_is_already_there_is_replaced_and_not_repeated(lore):
    old = SystemMessage("<memory>\n- Old\n</memory>", name="memory_context")
    ((first,), _) = sent(lore, [old, HumanMessage("How do I write tests?")])
    (found,) = blocks(first)
    assert "Old" not in found.text
    assert PYTEST in found.text


def test_the_messages_of_the_agent_are_not_changed(lore):
    given = [HumanMessage("hi"), AIMessage("hello"), HumanMessage("How do I write tests?")]
    _, after = sent(lore, given)
    assert [(one.type, one.text) for one in after] == [
        ("human", "hi"),
        ("ai", "hello"),
        ("human", "How do I write tests?"),
        ("ai", "好的"),
    ]


@pytest.mark.parametrize(
    ("topic", "fact"),
    [("How do I write tests with pytest?", PYTEST), ("React 的前端怎么写？", REACT), ("Docker 容器怎么部署？", DOCKER)],
)
def test_another_topic_injects_another_fact(lore, topic, fact):
    assert block(lore, [HumanMessage(topic)], max_tokens=ONE_FACT) == f"<memory>\n- {fact}\n</memory>"


def conversation(*texts: str) -> list:
    said = []
    for text in texts:
        said += [HumanMessage(text), AIMessage("好的")]
    return said[:-1]


def test_three_turns_are_the_context_by_default(lore):
    assert FASTAPI in block(lore, conversation(*PROJECT), max_tokens=ONE_FACT)
    assert FASTAPI not in block(lore, conversation(*PROJECT[:2], "好", "嗯", "怎么写测试？"), max_tokens=ONE_FACT)


def test_the_turns_are_an_argument(lore):
    told = conversation("Docker 容器", "继续", "继续", "继续")
    assert block(lore, told, max_tokens=ONE_FACT, max_context_turns=4) == f"<memory>\n- {DOCKER}\n</memory>"


def test_a_final_answer_is_part_of_the_context(lore):
    told = [HumanMessage("用什么？"), AIMessage("用 Docker"), HumanMessage("好，怎么用？")]
    assert DOCKER in block(lore, told, max_tokens=ONE_FACT)


LEFT_OUT = {
    "a message with tool calls": [
        looks_up("x").model_copy(update={"content": "docker docker"}),
        ToolMessage("ok", tool_call_id="call-1"),
    ],
    "a tool message": [looks_up("docker"), ToolMessage("docker docker", tool_call_id="call-1")],
    "a system message": [SystemMessage("docker docker")],
}


@pytest.mark.parametrize("part", LEFT_OUT)
def test_what_is_no_part_of_the_conversation_changes_no_fact(lore, part):
    asked, again = HumanMessage("How do I write tests?"), HumanMessage("继续")
    assert block(lore, [asked, *LEFT_OUT[part], again], max_tokens=ONE_FACT) == f"<memory>\n- {PYTEST}\n</memory>"


@pytest.mark.parametrize("budget", [16, 24, 40])
def test_the_block_keeps_to_the_budget(lore, budget):
    text = block(lore, conversation(*PROJECT), max_tokens=budget)
    lore.messages.add(roomlore.Message(id=f"m{budget}", room_id="r", sender_id="ann", text=text))
    assert lore.messages.get("r", f"m{budget}").message.tokens <= budget
    assert set(text.splitlines()[1:-1]) <= {f"- {fact}" for fact in FACTS}


def test_the_budget_is_max_injection_tokens_where_none_is_given():
    with roomlore.open_sync("sqlite://", settings=Settings(max_injection_tokens=ONE_FACT), background=False) as small:
        for statement in (PYTEST, HINTS):
            small.memories.add(ANN, statement)
        assert block(small, [HumanMessage("How do I write tests?")]) == f"<memory>\n- {PYTEST}\n</memory>"


def test_enabled_false_leaves_the_call_as_it_is():
    with roomlore.open_sync("sqlite://", settings=Settings(enabled=False), background=False) as off:
        off.memories.add(ANN, PYTEST)
        ((first,), _) = sent(off, [HumanMessage("How do I write tests?")])
    assert [one.type for one in first] == ["system", "human"]


def test_without_words_of_the_user_facts_come_by_confidence():
    with roomlore.open_sync("sqlite://", settings=Settings(), background=False) as opened:
        for statement, confidence in ((DOCKER, 0.1), (PYTEST, 0.9), (REACT, 0.5)):
            opened.memories.add(ANN, statement, confidence=confidence)
        text = block(opened, [HumanMessage("")])
    assert text.splitlines()[1:-1] == [f"- {fact}" for fact in (PYTEST, REACT, DOCKER)]


# Differences


def test_the_block_is_in_no_state():
    """An agent's history, its stream and its checkpoints do not have it."""
    with roomlore.open_sync("sqlite://", settings=Settings(), background=False) as opened:
        opened.memories.add(ANN, PYTEST)
        calls, after = sent(opened, [HumanMessage("How do I write tests?")])
    assert [len(blocks(call)) for call in calls] == [1]
    assert blocks(after) == []


def test_the_block_comes_after_the_system_prompt(lore):
    ((first,), _) = sent(lore, [HumanMessage("How do I write tests?")])
    assert [(one.type, one.name) for one in first[:2]] == [("system", None), ("system", "memory_context")]


def test_the_block_is_the_same_for_all_calls_of_a_turn(lore):
    calls, _ = sent(lore, [HumanMessage("test?")], looks_up("docker"), AIMessage("done"), max_tokens=ONE_FACT)
    first, second = [blocks(call)[0].text for call in calls]
    assert first == second == f"<memory>\n- {PYTEST}\n</memory>"


def test_the_block_may_stand_just_before_the_last_question(lore):
    ((first,), _) = sent(lore, [HumanMessage("hi"), AIMessage("hello"), HumanMessage("test?")], placement="trailing")
    assert [one.name or one.type for one in first] == ["system", "human", "ai", "memory_context", "human"]


@pytest.mark.parametrize("placement", ["before", ""])
def test_another_placement_is_refused(lore, placement):
    with pytest.raises(InvalidInput, match="placement"):
        memory_middleware(lore, [ANN], placement=placement)


def test_agents_without_langchain_get_the_same_message(lore):
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "How do I write tests?"}]
    text = lore.recall.memory_prompt([ANN], messages, max_tokens=ONE_FACT)
    assert with_memory(messages, text) == [
        messages[0],
        {"role": "system", "name": "memory_context", "content": f"<memory>\n- {PYTEST}\n</memory>"},
        messages[1],
    ]
