"""A real agent of LangChain whose conversation is kept: what was heard and said, once each, in its room."""

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from scripted_chat import ScriptedChat

import roomlore
from roomlore_integrations.langchain import MemoryMiddleware, RecordingMiddleware

THREAD = {"configurable": {"thread_id": "茶"}}


@tool
def look_up(word: str) -> str:
    """Looks a word up."""
    return f"secret of {word}"


@pytest.fixture
def sync():
    with roomlore.open_sync("sqlite://", background=False) as opened:
        yield opened


def agent_of(lore, *script: AIMessage, before=(), saver=True, **options):
    recording = RecordingMiddleware(lore, **options)
    more = {"checkpointer": InMemorySaver()} if saver else {}
    return create_agent(ScriptedChat(script=list(script)), [look_up], middleware=[*before, recording], **more)


def said(lore, room: str = "茶") -> list[tuple[str, str, str]]:
    return [(m.sender_id, m.role.value, m.text) for m in lore.messages.page(room)]


def test_what_was_heard_and_said_is_stored_once_each(sync):
    agent = agent_of(sync, AIMessage("你好"), AIMessage("Green."), user_id="ann", agent_id="bot")
    agent.invoke({"messages": [HumanMessage("Hi")]}, THREAD)
    agent.invoke({"messages": [HumanMessage("绿茶还是红茶?")]}, THREAD)
    talk = [("ann", "user", "Hi"), ("bot", "assistant", "你好")]
    assert said(sync) == [*talk, ("ann", "user", "绿茶还是红茶?"), ("bot", "assistant", "Green.")]
    first, answer, *_ = sync.messages.page("茶")
    assert answer.reply_to == first.id


def test_people_are_told_apart_and_a_function_names_the_room(sync):
    agent = agent_of(
        sync, AIMessage("Hello both"), room_id=lambda state, _: f"room-{len(state['messages'])}", saver=False
    )
    agent.invoke({"messages": [HumanMessage("I am Ann", name="ann"), HumanMessage("我是李", name="li")]})
    assert [one[:2] for one in said(sync, "room-3")] == [("ann", "user"), ("li", "user"), ("assistant", "assistant")]


def test_neither_tools_nor_blocks_of_memory_are_stored(sync):
    sync.memories.add("user:ann", "Ann drinks oolong")
    memory = MemoryMiddleware(sync, ["user:ann"])
    agent = agent_of(
        sync,
        AIMessage("", tool_calls=[{"name": "look_up", "args": {"word": "tea"}, "id": "c1"}]),
        AIMessage("Oolong."),
        before=[memory],
        user_id="ann",
    )
    agent.invoke({"messages": [HumanMessage("Which oolong?")]}, THREAD)
    assert said(sync) == [("ann", "user", "Which oolong?"), ("assistant", "assistant", "Oolong.")]


async def test_both_kinds_of_roomlore_serve_an_async_agent(sync):
    await agent_of(sync, AIMessage("1")).ainvoke({"messages": [HumanMessage("a")]}, THREAD)
    assert len(said(sync)) == 2
    async with roomlore.open("sqlite://") as lore:
        agent = agent_of(lore, AIMessage("1"), AIMessage("2"))
        await agent.ainvoke({"messages": [HumanMessage("a")]}, THREAD)
        assert len(await lore.messages.page("茶")) == 2
        with pytest.raises(roomlore.InvalidInput, match="async"):
            agent.invoke({"messages": [HumanMessage("b")]}, THREAD)


def test_an_agent_without_a_thread_goes_on_and_the_log_says_why(sync, caplog):
    agent = agent_of(sync, AIMessage("1"), saver=False)
    assert agent.invoke({"messages": [HumanMessage("a")]})["messages"][-1].text == "1"
    assert "thread_id" in caplog.text


def test_a_lore_is_needed():
    with pytest.raises(roomlore.InvalidInput, match="lore is a str"):
        RecordingMiddleware("sqlite://")
