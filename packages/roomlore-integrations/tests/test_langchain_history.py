"""A real `RunnableWithMessageHistory` with a scripted chat model over a roomlore conversation."""

import asyncio
import importlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables.history import RunnableWithMessageHistory

import roomlore
from roomlore_integrations.langchain import RoomloreChatMessageHistory

pytestmark = pytest.mark.filterwarnings("ignore:RunnableWithMessageHistory is deprecated")

CALL = AIMessage(
    content="",
    id="run-1",
    tool_calls=[{"name": "weather", "args": {"city": "上海"}, "id": "call-1", "type": "tool_call"}],
    invalid_tool_calls=[{"name": "w", "args": "{", "id": "call-2", "error": "cut", "type": "invalid_tool_call"}],
    additional_kwargs={"refusal": None, "deep": [{"a": [1, 2.5, True]}]},
    response_metadata={"model_name": "m", "logprobs": None},
    usage_metadata={"input_tokens": 7, "output_tokens": 3, "total_tokens": 10},
)
EVERY_KIND = [
    SystemMessage("Be brief."),
    HumanMessage("上海的天气怎么样?", id="h1", name="Ann"),
    CALL,
    ToolMessage("24 degrees", tool_call_id="call-1", name="weather", artifact={"raw": [24]}, status="success"),
    AIMessage("24 度, 晴。", response_metadata={"finish_reason": "stop"}),
    HumanMessage([{"type": "text", "text": "And "}, {"type": "image", "url": "https://example.org/a.png"}, "this?"]),
    AIMessage([{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "A cat."}]),
    AIMessageChunk("streamed", chunk_position="last"),
    ChatMessage("I disagree.", role="critic"),
    ChatMessage("I ask.", role="user"),
    FunctionMessage("7", name="seven"),
    HumanMessage("NUL \x00, half \ud800"),
]


class EchoModel(BaseChatModel):
    """Answers with how many messages it was given and what the last of them says."""

    @property
    def _llm_type(self):
        return "echo"

    def _generate(self, messages, *_args, **_kwargs):
        answer = AIMessage(f"{len(messages)}: {messages[-1].content}", id="same-id")
        return ChatResult(generations=[ChatGeneration(message=answer)])


def chain(make):
    prompt = ChatPromptTemplate.from_messages(
        [("system", "Guide."), MessagesPlaceholder("history"), ("human", "{question}")]
    )
    return RunnableWithMessageHistory(
        prompt | EchoModel(), make, input_messages_key="question", history_messages_key="history"
    )


def named(session_id):
    return {"configurable": {"session_id": session_id}}


def texts(messages):
    return [message.text for message in messages]


@pytest.fixture
def sync(settings):
    with roomlore.open_sync("sqlite://", settings=settings) as opened:
        yield opened


@pytest.fixture
def history(sync):
    return RoomloreChatMessageHistory("trip", sync, user_id="ann", agent_code="guide")


def test_it_is_a_history_and_empty_at_first(history):
    assert isinstance(history, BaseChatMessageHistory)
    history.add_messages([])
    assert history.messages == []
    history.clear()
    assert str(history) == ""


def test_messages_of_every_kind_come_back_as_they_went_in(history, sync):
    history.add_messages(EVERY_KIND[:5])
    history.add_messages(EVERY_KIND[5:])
    assert history.messages == EVERY_KIND
    assert [type(message) for message in history.messages] == [type(message) for message in EVERY_KIND]
    assert RoomloreChatMessageHistory("trip", sync).messages == EVERY_KIND


async def test_the_async_methods_do_the_same(lore, history):
    asynchronous = RoomloreChatMessageHistory("trip", lore, user_id="ann", agent_code="guide")
    for one in (asynchronous, history):
        assert await one.aget_messages() == []
        await one.aclear()
        await one.aadd_messages([])
        await one.aadd_messages(EVERY_KIND)
        assert await one.aget_messages() == EVERY_KIND
        await one.aclear()
        assert await one.aget_messages() == []
    assert len(await lore.messages.page("trip")) == len(EVERY_KIND)


def test_what_people_read_of_a_message_is_its_text(history, sync):
    history.add_messages(EVERY_KIND)
    stored = sync.sessions.messages("trip")
    assert [(str(m.role), m.sender_id, m.text, m.has_tool_calls) for m in stored] == [
        ("system", "system", "Be brief.", False),
        ("user", "ann", "上海的天气怎么样?", False),
        ("assistant", "guide", 'weather({"city": "上海"})', True),
        ("tool", "tool", "24 degrees", False),
        ("assistant", "guide", "24 度, 晴。", False),
        ("user", "ann", "And \nthis?", False),
        ("assistant", "guide", "A cat.", False),
        ("assistant", "guide", "streamed", False),
        ("assistant", "guide", "I disagree.", False),
        ("user", "ann", "I ask.", False),
        ("tool", "tool", "7", False),
        ("user", "ann", "NUL \x00, half \ud800", False),
    ]
    assert stored[1].sender_name == "Ann"
    assert sync.messages.search("trip", "天气").hits[0].message.id == stored[1].id
    turns = [m.turn_id for m in stored]
    assert [turns.index(turn) for turn in turns] == [0, 0, 0, 0, 0, 5, 5, 5, 5, 9, 9, 11]


def test_the_easy_ways_to_add_one_make_one_turn(history, sync):
    history.add_user_message("hello")
    history.add_ai_message("你好")
    assert texts(history.messages) == ["hello", "你好"]
    assert len({m.turn_id for m in sync.sessions.messages("trip")}) == 1


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)
content_text = st.text(st.characters(exclude_categories=()), max_size=10)
part = content_text | st.fixed_dictionaries({"type": st.just("text"), "text": content_text})
contents = content_text | st.lists(part, max_size=3)
kwargs = st.dictionaries(st.text(max_size=4), json_values, max_size=2)
some_message = st.one_of(
    st.builds(HumanMessage, content=contents, additional_kwargs=kwargs, name=st.none() | st.text(max_size=5)),
    st.builds(AIMessage, content=contents, response_metadata=kwargs, id=st.none() | st.text(max_size=5)),
    st.builds(ToolMessage, content=contents, tool_call_id=st.text(max_size=4)),
    st.builds(SystemMessage, content=contents),
)


@settings(max_examples=20)
@given(st.lists(st.lists(some_message, max_size=4), max_size=3))
def test_whatever_is_said_comes_back(batches):
    async def scenario():
        async with roomlore.open("sqlite://", background=False) as lore:
            history = RoomloreChatMessageHistory("trip", lore)
            for batch in batches:
                await history.aadd_messages(batch)
            assert await history.aget_messages() == [message for batch in batches for message in batch]

    asyncio.run(scenario())


def test_a_chain_remembers_what_was_said(sync):
    talk = chain(lambda session_id: RoomloreChatMessageHistory(session_id, sync))
    assert talk.invoke({"question": "Hello"}, named("a")).content == "2: Hello"
    assert talk.invoke({"question": "再来"}, named("a")).content == "4: 再来"
    assert talk.invoke({"question": "Other"}, named("b")).content == "2: Other"
    said = RoomloreChatMessageHistory("a", sync).messages
    assert texts(said) == ["Hello", "2: Hello", "再来", "4: 再来"]
    assert [m.type for m in said] == ["human", "ai", "human", "ai"]
    assert sync.sessions.query_context("a").turns == 2


async def test_an_async_chain_remembers_what_was_said(lore):
    talk = chain(lambda session_id: RoomloreChatMessageHistory(session_id, lore))
    assert (await talk.ainvoke({"question": "Hello"}, named("a"))).content == "2: Hello"
    assert (await talk.ainvoke({"question": "再来"}, named("a"))).content == "4: 再来"
    assert texts(await RoomloreChatMessageHistory("a", lore).aget_messages()) == [
        "Hello", "2: Hello", "再来", "4: 再来",
    ]  # fmt: skip


def test_a_chain_of_messages_alone_adds_each_once(sync):
    talk = RunnableWithMessageHistory(EchoModel(), lambda name: RoomloreChatMessageHistory(name, sync))
    for number in range(3):
        talk.invoke([HumanMessage(f"q{number}")], named("a"))
    said = texts(RoomloreChatMessageHistory("a", sync).messages)
    assert said == ["q0", "1: q0", "q1", "3: q1", "q2", "5: q2"]


async def test_many_histories_at_once_do_not_mix(lore, sync):
    async def talk(name):
        history = RoomloreChatMessageHistory(name, lore)
        for number in range(3):
            await history.aadd_messages([HumanMessage(f"{name} 问 {number}"), AIMessage(f"{name} 答 {number}")])
        return texts(await history.aget_messages())

    def talk_in_a_thread(name):
        RoomloreChatMessageHistory(name, sync).add_messages([HumanMessage(name), AIMessage("好")])
        return texts(RoomloreChatMessageHistory(name, sync).messages)

    names = [f"room-{n}" for n in range(10)]
    said = await asyncio.gather(*map(talk, names))
    assert said == [[f"{name} {what} {n}" for n in range(3) for what in "问答"] for name in names]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(talk_in_a_thread, names)) == [[name, "好"] for name in names]


def test_clear_hides_everything_and_deletes_nothing(history, sync):
    history.add_messages(EVERY_KIND[:4])
    history.clear()
    assert history.messages == []
    assert len(sync.messages.page("trip")) == 4
    history.add_user_message("again")
    assert texts(history.messages) == ["again"]


def test_what_others_wrote_comes_back_by_its_role(history, sync):
    sync.sessions.write_turn("trip", "ann", "guide", "早", "Good morning")
    for role in ("system", "tool"):
        sync.messages.add(roomlore.Message(id=role, room_id="trip", sender_id="x", role=roomlore.Role(role), text=role))
    said = history.messages
    assert [(type(m), m.content) for m in said] == [
        (HumanMessage, "早"),
        (AIMessage, "Good morning"),
        (SystemMessage, "system"),
        (ToolMessage, "tool"),
    ]


def test_a_damaged_message_comes_back_as_its_text(history, sync):
    data = {"content": None, "type": "human"}
    damaged = [7, {"raw": {"type": "zebra", "data": data}, "text_at": ["data", "content"]}, {"raw": {"type": "human"}}]
    for number, kept in enumerate(damaged):
        sync.messages.add(
            roomlore.Message(id=str(number), room_id="trip", sender_id="x", text="hi", metadata={"langchain": kept})
        )
    assert history.messages == [HumanMessage("hi", id=str(number)) for number in range(3)]


def test_an_edit_of_the_text_is_an_edit_of_the_message(history, sync):
    history.add_messages([EVERY_KIND[1], EVERY_KIND[5], EVERY_KIND[6]])
    for message in sync.sessions.messages("trip"):
        sync.messages.edit("trip", message.id, text="redacted")
    plain, parts, thought = history.messages
    assert plain == HumanMessage("redacted", id="h1", name="Ann")
    assert parts == HumanMessage("redacted")
    assert thought == AIMessage([{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "redacted"}])


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ("hello", "messages of langchain_core"),
        (ToolMessage("ok", tool_call_id="1", artifact=object()), "A ToolMessage of the history must be plain JSON"),
        (HumanMessage("x" * 20_001), "20001 characters"),
        (HumanMessage([{"type": "image", "base64": "x" * 300_000}]), "at most 262144"),
    ],
)
async def test_what_cannot_be_kept_is_refused_and_nothing_is_half_stored(history, lore, message, why):
    asynchronous = RoomloreChatMessageHistory("trip", lore)
    with pytest.raises(roomlore.InvalidInput, match=why):
        history.add_messages([HumanMessage("first"), message])
    with pytest.raises(roomlore.InvalidInput, match=why):
        await asynchronous.aadd_messages([HumanMessage("first"), message])
    assert history.messages == await asynchronous.aget_messages() == []


async def test_an_async_roomlore_has_no_synchronous_face(lore):
    history = RoomloreChatMessageHistory("trip", lore)
    for use in (lambda: history.messages, lambda: history.add_user_message("hi"), history.clear):
        with pytest.raises(roomlore.InvalidInput, match=r"roomlore\.open_sync"):
            use()
    with pytest.raises(roomlore.InvalidInput, match=r"roomlore\.open_sync or roomlore\.open "):
        RoomloreChatMessageHistory("trip", "sqlite://")


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "langchain_core.chat_history", None)
    for name in ("roomlore_integrations.langchain.history", "roomlore_integrations.langchain"):
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(roomlore.InvalidInput, match=r"needs the extra .*pip install 'roomlore\[langchain\]'"):
        importlib.import_module("roomlore_integrations.langchain")


def test_roomlore_itself_needs_no_extra():
    asked = "import sys, roomlore; print(sorted({'agents', 'openai', 'langchain_core'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
