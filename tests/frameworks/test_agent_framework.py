"""A real `Agent` of Microsoft Agent Framework with a scripted client, roomlore's context provider and its history."""

import logging
import sys
from types import ModuleType

import programs
import pytest
from agent_framework import Agent, BaseChatClient, ChatResponse, Content, InMemoryHistoryProvider, Message

import roomlore
from roomlore_integrations.agent_framework import RoomloreContextProvider, RoomloreHistoryProvider

BEFORE = """
from agent_framework import Agent
from agent_framework.openai import OpenAIChatClient

agent = Agent(client=OpenAIChatClient(), instructions="You help travellers.")
session = agent.create_session(session_id="rome")
print(await agent.run("Which snack shall I take along?", session=session))
"""
SETTING_UP = ("import roomlore", 'await lore.memories.add("user:ann", "安对花生过敏")')
ASKED: list[str] = []
FAILS: list[Exception] = []
"""What the next calls of the model raise."""


class Scripted(BaseChatClient):
    """Answers "Noted." and keeps what it was asked."""

    def _inner_get_response(self, *, messages, stream, options, **kwargs):
        async def one():
            said = [f"system: {options.get('instructions')}", *(f"{one.role}: {one.text}" for one in messages)]
            ASKED.append("\n".join(said))
            if FAILS:
                raise FAILS.pop()
            return ChatResponse(messages=[Message(role="assistant", contents=["Noted."])], response_id="r")

        return one()


@pytest.fixture(autouse=True)
def _asked():
    ASKED.clear()


def agent_of(*providers):
    return Agent(client=Scripted(), instructions="You help.", context_providers=list(providers))


async def ask(agent, text, session="s1"):
    return str(await agent.run(text, session=agent.create_session(session_id=session)))


def test_the_program_of_the_page_is_the_usual_one_with_three_lines_changed(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    module = ModuleType("agent_framework.openai")
    module.OpenAIChatClient = Scripted
    monkeypatch.setitem(sys.modules, "agent_framework.openai", module)
    (program,) = programs.blocks("agent-framework")
    programs.run(BEFORE)
    assert "花生" not in ASKED[-1]
    programs.run(program)
    assert "- 安对花生过敏" in ASKED[-1]
    new = [line for line in programs.changed(BEFORE, program) if line not in SETTING_UP]
    assert len([line for line in new if not line.startswith("from roomlore")]) <= programs.MOST_CHANGED, new
    with roomlore.open_sync("sqlite:///trips.db") as lore:
        assert [(one.sender_id, one.text) for one in lore.messages.page("rome")] == [
            ("ann", "Which snack shall I take along?"),
            ("assistant", "Noted."),
        ]


KNOWN = "system: You help.\n<memory>\n- 安对花生过敏\n</memory>"
WITH_HISTORY = [
    [KNOWN, "user: 要带什么零食？"],
    [KNOWN, "user: 要带什么零食？", "assistant: Noted.", "user: And to drink?"],
    [KNOWN, "user: 要带什么零食？", "assistant: Noted.", "user: And to drink?", "assistant: Noted.", "user: 谢谢"],
]


@pytest.mark.parametrize("alone", [False, True], ids=["with its history", "with the framework's"])
async def test_what_the_model_is_sent_in_three_turns_of_which_one_fails_first(lore, alone):
    """Each question once and in order, the facts once, in the instructions; what is asked stays if the model fails, and
    asked again it is no second message."""
    await lore.memories.add("user:ann", "安对花生过敏")
    context = RoomloreContextProvider(lore, "ann", max_messages=0)
    agent = agent_of(InMemoryHistoryProvider() if alone else RoomloreHistoryProvider(lore, user_id="ann"), context)
    session = agent.create_session(session_id="s1")
    for number, text in enumerate(("要带什么零食？", "And to drink?", "谢谢")):
        if number == 1:
            FAILS.append(ConnectionError("the model is away"))
            with pytest.raises(ConnectionError):
                await agent.run(text, session=session)
            assert [one.text for one in await lore.messages.page("s1")] == ["要带什么零食？", "Noted.", text]
            ASKED.pop()
        await agent.run(text, session=session)
    assert ["\n".join(lines) for lines in WITH_HISTORY] == ASKED
    stored = [(one.sender_id, one.text) for one in await lore.messages.page("s1")]
    assert stored == [
        *(("ann", "要带什么零食？"), ("assistant", "Noted.")),
        *(("ann", "And to drink?"), ("assistant", "Noted.")),
        *(("ann", "谢谢"), ("assistant", "Noted.")),
    ]


async def test_another_question_after_a_failure_follows_the_first(lore):
    agent = agent_of(RoomloreHistoryProvider(lore, user_id="ann"))
    FAILS.append(ConnectionError("the model is away"))
    with pytest.raises(ConnectionError):
        await ask(agent, "And to drink?")
    await ask(agent, "Or to eat?")
    assert ASKED[-1].splitlines()[1:] == ["user: And to drink?", "user: Or to eat?"]


@pytest.mark.parametrize(
    ("options", "stored"),
    [
        ({"store_inputs": False}, ["Noted.", "Noted."]),
        ({"store_outputs": False}, ["Yes", "Yes"]),
        ({"load_messages": False}, ["Yes", "Noted.", "Yes", "Noted."]),
        ({"store_context_messages": True}, ["Yes", "Noted.", "Yes", "Noted."]),
    ],
)
async def test_the_options_of_a_history_say_what_is_stored(lore, options, stored):
    for _ in range(2):
        await ask(agent_of(RoomloreHistoryProvider(lore, user_id="ann", **options)), "Yes")
    assert [one.text for one in await lore.messages.page("s1")] == stored


async def test_a_conversation_goes_on_after_a_restart(tmp_path):
    for _ in range(2):
        async with roomlore.open(f"sqlite:///{tmp_path / 'a.db'}", background=False) as lore:
            await ask(agent_of(RoomloreHistoryProvider(lore, user_id="ann")), "你好")
    assert ASKED[-1].splitlines()[1:] == ["user: 你好", "assistant: Noted.", "user: 你好"]


async def test_messages_of_every_kind_come_back_as_they_were(lore):
    history = RoomloreHistoryProvider(lore, user_id="ann", agent_id="guide")
    given = [
        Message(role="user", contents=["看", "Look"], author_name="Ann"),
        Message(role="assistant", contents=[Content.from_function_call(call_id="c1", name="look", arguments={"a": 1})]),
        Message(role="tool", contents=[Content.from_function_result(call_id="c1", result="24 °C")]),
        Message(role="assistant", contents=["晴"]),
    ]
    await history.save_messages("s", given)
    assert [one.to_dict() for one in await history.get_messages("s")] == [one.to_dict() for one in given]
    said = await lore.messages.page("s")
    assert [(one.sender_id, one.role.value, one.text) for one in said] == [
        ("ann", "user", "看\nLook"),
        ("guide", "assistant", 'look({"a": 1})'),
        ("guide", "tool", "24 °C"),
        ("guide", "assistant", "晴"),
    ]
    await lore.messages.add(roomlore.Message(id="x", room_id="s", sender_id="bob", text="Me too"))
    assert (await history.get_messages("s"))[-1].text == "Me too"
    assert await history.get_messages("nothing") == []
    with pytest.raises(roomlore.InvalidInput, match="no session"):
        await history.save_messages(None, given)


async def test_a_provider_alone_stores_what_was_said_and_finds_it_in_a_later_run(lore):
    provider = RoomloreContextProvider(lore, "ann")
    await ask(agent_of(provider), "我住在京都，养了两只猫")
    for number in range(8):
        await ask(agent_of(provider), f"number {number} " * 3)
    await ask(agent_of(provider), "你还记得我住在哪里吗")
    assert "ann: 我住在京都，养了两只猫" in ASKED[-1]
    said = await lore.messages.page("s1")
    assert len(said) == 20
    assert {one.sender_id for one in said} == {"ann", "assistant"}


async def test_two_providers_store_once(lore):
    agent = agent_of(RoomloreHistoryProvider(lore, user_id="ann"), RoomloreContextProvider(lore, "ann"))
    await ask(agent, "I live in Kyoto")
    await ask(agent, "Where do I live?")
    assert len(await lore.messages.page("s1")) == 4
    assert "Said earlier" not in ASKED[-1], "the history has it"


async def test_what_others_may_not_know_is_not_recalled(lore):
    await lore.messages.add(roomlore.Message(id="1", room_id="alone", sender_id="ann", text="I am ill, tell nobody"))
    await lore.messages.add(roomlore.Message(id="1", room_id="team", sender_id="bob", text="Hi"))
    await lore.memories.add("user:ann", "Ann is ill", sources=[roomlore.Source("alone", "1")])
    for more, told in (({}, True), ({"viewer": "room:team"}, False), ({"viewer": "user:bob"}, False)):
        await ask(agent_of(RoomloreContextProvider(lore, "ann", room_id="alone", max_messages=0, **more)), "Am I ill?")
        assert ("Ann is ill" in ASKED[-1]) is told


async def test_a_trouble_of_the_memory_leaves_the_agent_alone(caplog):
    async with roomlore.open("sqlite://", background=False) as lore:
        agent = agent_of(RoomloreContextProvider(lore, "ann"))
    with caplog.at_level(logging.WARNING):
        assert await ask(agent, "Hi") == "Noted."
    assert "without memory" in caplog.text
    assert "not stored" in caplog.text


async def test_invalid_arguments_are_refused(lore):
    for bad in ({"viewer": "ann"}, {"max_messages": -1}, {"scopes": ["ann"]}):
        with pytest.raises(roomlore.InvalidInput):
            RoomloreContextProvider(lore, "ann", **bad)
    with pytest.raises(roomlore.InvalidInput, match=r"roomlore\.open"):
        RoomloreHistoryProvider("sqlite://")
