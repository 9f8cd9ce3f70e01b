"""A real `Runner` with a scripted model over a session of the OpenAI Agents SDK."""

import asyncio
import copy
import importlib
import json
import sys
from collections import deque

import pytest
from agents import (
    Agent,
    RunConfig,
    Runner,
    Session,
    SessionSettings,
    SQLiteSession,
    Usage,
    function_tool,
    set_tracing_disabled,
)
from agents.items import ModelResponse
from agents.models.interface import Model
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

import roomlore
from roomlore_integrations.openai_agents import RoomloreSession
from session_rig import summarise_all

set_tracing_disabled(True)

USER = {"role": "user", "content": "What is the weather in 上海?"}
ANSWER = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "24 degrees. 晴。", "annotations": [], "logprobs": []}],
}
EVERY_KIND = [
    USER,
    {"role": "developer", "content": "Be brief."},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "看图"}]},
    {
        "role": "user",
        "content": [
            {"type": "input_text", "text": "Two"},
            {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,AAAA"},
            {"type": "input_text", "text": "texts"},
        ],
    },
    {"role": "user", "content": [{"type": "input_file", "file_id": "file_1"}]},
    {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "I ponder."}],
        "encrypted_content": "gAAA",
    },
    {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "weather", "arguments": '{"city": "上海"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "24 °C"},
    {"type": "function_call", "call_id": "c2", "name": "draw", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "a sun"}]},
    {
        "type": "computer_call",
        "id": "cu_1",
        "call_id": "c3",
        "action": {"type": "click", "x": 3, "y": 4, "button": "left"},
        "pending_safety_checks": [],
        "status": "completed",
    },
    {
        "type": "computer_call_output",
        "call_id": "c3",
        "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,BBBB"},
    },
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "rain"}},
    {"type": "mcp_approval_request", "id": "ap_1", "name": "rm", "arguments": "{}", "server_label": "disk"},
    {"type": "mcp_approval_response", "approval_request_id": "ap_1", "approve": False},
    {"type": "image_generation_call", "id": "ig_1", "result": "CCCC", "status": "completed"},
    {"type": "shell_call_output", "call_id": "c4", "output": [{"stdout": "ok", "stderr": "", "outcome": None}]},
    {"type": "item_reference", "id": "msg_0"},
    {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAB"},
    ANSWER,
    {"role": "assistant", "content": ""},
    {"role": "assistant", "content": [{"type": "refusal", "refusal": "I would rather not."}]},
]


class ScriptedModel(Model):
    """Gives the outputs it was made with, one a call, and remembers what it was asked."""

    def __init__(self, *outputs):
        self.outputs = deque(outputs)
        self.asked = []

    async def get_response(self, system_instructions, input, *_args, **_kwargs):  # noqa: A002
        self.asked.append(copy.deepcopy(input))
        return ModelResponse(output=self.outputs.popleft(), usage=Usage(), response_id=None)

    def stream_response(self, *_args, **_kwargs):
        raise NotImplementedError


def says(text):
    part = ResponseOutputText(type="output_text", text=text, annotations=[])
    return [ResponseOutputMessage(id="msg", type="message", role="assistant", status="completed", content=[part])]


def calls(name, **arguments):
    return [
        ResponseFunctionToolCall(
            type="function_call", name=name, arguments=json.dumps(arguments), call_id=f"call-{name}", id="fc"
        )
    ]


@function_tool
def weather(city: str) -> str:
    """The weather of a city."""
    return f"{city}: 24 degrees"


async def run(model, text, session, **options):
    agent = Agent(name="guide", instructions="Guide.", model=model, tools=[weather])
    result = await Runner.run(agent, text, session=session, **options)
    return result.final_output


def texts_of(items):
    return [item.get("content") for item in items if item.get("role") == "user"]


@pytest.fixture
def session(lore):
    return RoomloreSession("trip", lore, user_id="ann", agent_code="guide")


def test_it_is_a_session_of_the_sdk(session):
    assert isinstance(session, Session)
    assert session.session_id == "trip"
    assert session.session_settings is None


async def test_nothing_is_there_before_the_first_item(session, lore):
    await session.add_items([])
    assert await session.get_items() == []
    assert await session.get_items(limit=3) == []
    assert await session.pop_item() is None
    await session.clear_session()
    with pytest.raises(roomlore.NotFound):
        await lore.sessions.get_session("trip")


async def test_items_of_every_kind_come_back_as_they_went_in(session, lore):
    before = copy.deepcopy(EVERY_KIND)
    await session.add_items(EVERY_KIND[:9])
    await session.add_items(EVERY_KIND[9:])
    assert await session.get_items() == before
    assert before == EVERY_KIND
    assert await RoomloreSession("trip", lore).get_items() == before


async def test_what_people_read_of_an_item_is_the_messages_text(session, lore):
    await session.add_items(EVERY_KIND)
    stored = await lore.sessions.messages("trip")
    read = [(str(m.role), m.text, m.has_tool_calls) for m in stored]
    assert read == [
        ("user", "What is the weather in 上海?", False),
        ("system", "Be brief.", False),
        ("user", "看图", False),
        ("user", "Two\ntexts", False),
        ("user", "", False),
        ("assistant", "", False),
        ("assistant", 'weather({"city": "上海"})', True),
        ("tool", "24 °C", False),
        ("assistant", "draw({})", True),
        ("tool", "a sun", False),
        ("assistant", 'computer({"type": "click", "x": 3, "y": 4, "button": "left"})', True),
        ("tool", "", False),
        ("assistant", 'web_search({"type": "search", "query": "rain"})', True),
        ("assistant", "rm({})", True),
        ("tool", "", False),
        ("assistant", "image_generation()", True),
        ("tool", "ok", False),
        ("assistant", "", False),
        ("assistant", "", False),
        ("assistant", "24 degrees. 晴。", False),
        ("assistant", "", False),
        ("assistant", "I would rather not.", False),
    ]
    assert {m.sender_id for m in stored} == {"ann", "guide", "system", "tool"}
    found = await lore.messages.search("trip", "degrees")
    assert found.hits[0].message.text == "24 degrees. 晴。"
    assert (await lore.sessions.get_session("trip")).meta.user_id == "ann"


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
anything = st.characters(exclude_categories=()) | st.sampled_from("\x00\x1a\ud83d\ude00中é")
likely = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["message", "function_call", "function_call_output", "reasoning", "x_call", "", "新"]),
        "role": st.sampled_from(["user", "assistant", "system", "developer", "tool", "critic"]),
        "content": st.text(anything, max_size=12) | st.lists(plain, max_size=3) | plain,
        "output": st.text(anything, max_size=12) | plain,
        "arguments": st.text(max_size=8) | plain,
        "name": plain,
    },
)


@settings(max_examples=25)
@given(st.lists(st.lists(likely | st.dictionaries(st.text(max_size=5), plain, max_size=4), max_size=4), max_size=3))
def test_whatever_json_goes_in_comes_out(batches):
    async def scenario():
        async with roomlore.open("sqlite://", background=False) as lore:
            session = RoomloreSession("trip", lore)
            for batch in batches:
                await session.add_items(batch)
            every = [item for batch in batches for item in batch]
            assert json.dumps(await session.get_items(), sort_keys=True) == json.dumps(every, sort_keys=True)
            assert await session.get_items(limit=2) == every[-2:]
            assert await session.pop_item() == (every[-1] if every else None)

    asyncio.run(scenario())


@pytest.mark.parametrize(("limit", "wanted"), [(1, EVERY_KIND[-1:]), (3, EVERY_KIND[-3:]), (999, EVERY_KIND), (0, [])])
async def test_a_limit_gives_the_newest_in_order_as_the_sdks_own_session_does(session, limit, wanted):
    own = SQLiteSession("trip")
    for store in (session, own):
        await store.add_items(EVERY_KIND)
        assert await store.get_items(limit=limit) == wanted
    own.close()


async def test_the_limit_of_the_settings_counts_where_none_is_given(lore):
    session = RoomloreSession("trip", lore, session_settings=SessionSettings(limit=2))
    await session.add_items([{"role": "user", "content": str(n)} for n in range(4)])
    assert texts_of(await session.get_items()) == ["2", "3"]
    assert texts_of(await session.get_items(limit=3)) == ["1", "2", "3"]


async def test_the_same_text_twice_is_two_items(session):
    await session.add_items([USER, USER])
    await session.add_items([USER])
    assert await session.get_items() == [USER] * 3


async def test_pop_gives_the_newest_and_never_the_same_twice(session, lore):
    items = [{"role": "user", "content": f"第 {n}"} for n in range(12)]
    await session.add_items(items)
    others = [session, RoomloreSession("trip", lore), RoomloreSession("trip", lore)]
    popped = await asyncio.gather(*(others[n % 3].pop_item() for n in range(9)))
    assert sorted(item["content"] for item in popped) == sorted(item["content"] for item in items[3:])
    assert [await session.pop_item() for _ in range(4)] == [*reversed(items[:3]), None]


async def test_clear_hides_everything_and_deletes_nothing(session, lore):
    await session.add_items([USER, ANSWER])
    await session.clear_session()
    assert await session.get_items() == []
    assert await session.pop_item() is None
    assert [m.text for m in await lore.messages.page("trip")] == [USER["content"], "24 degrees. 晴。"]
    await session.add_items([USER])
    assert await session.get_items() == [USER]


async def test_a_run_is_one_turn(session, lore):
    model = ScriptedModel(calls("weather", city="Rome"), says("It is warm."), says("See you."))
    await run(model, "Weather in Rome?", session)
    await run(model, "Thanks, 再见", session)
    stored = await lore.sessions.messages("trip")
    assert [m.text for m in stored] == [
        "Weather in Rome?",
        'weather({"city": "Rome"})',
        "Rome: 24 degrees",
        "It is warm.",
        "Thanks, 再见",
        "See you.",
    ]
    turns = [m.turn_id for m in stored]
    assert len(set(turns[:4])) == len(set(turns[4:])) == 1
    assert turns[0] != turns[4]
    assert (await lore.sessions.query_context("trip")).turns == 2
    assert (await lore.sessions.get_session("trip")).flow_context.turn_count == 2


async def test_a_run_that_goes_on_elsewhere_stays_in_its_turn(session, lore):
    await session.add_items([USER, EVERY_KIND[6]])
    elsewhere = RoomloreSession("trip", lore)
    await elsewhere.add_items([EVERY_KIND[7], ANSWER])
    assert len({m.turn_id for m in await lore.sessions.messages("trip")}) == 1


async def test_two_runs_at_once_keep_their_turns(session, lore):
    other = RoomloreSession("trip", lore)
    await session.add_items([USER])
    await other.add_items([{"role": "user", "content": "Another"}])
    await session.add_items([ANSWER])
    first, second, answer = [m.turn_id for m in await lore.sessions.messages("trip")]
    assert first == answer != second


async def test_the_runner_hands_the_history_to_the_model(session):
    model = ScriptedModel(calls("weather", city="Rome"), says("It is warm."), says("Pack light."))
    assert await run(model, "Weather in Rome?", session) == "It is warm."
    assert await run(model, "行李呢?", session) == "Pack light."
    kinds = [item.get("type") or item["role"] for item in model.asked[2]]
    assert kinds == ["user", "function_call", "function_call_output", "message", "user"]
    assert model.asked[2] == (await session.get_items())[:5]


async def test_the_runners_own_limit_counts(session):
    model = ScriptedModel(says("one"), says("two"), says("three"))
    for text in ("1", "2"):
        await run(model, text, session)
    config = RunConfig(session_settings=SessionSettings(limit=2))
    await run(model, "3", session, run_config=config)
    assert texts_of(model.asked[2]) == ["2", "3"]


async def test_an_input_callback_decides_what_the_model_sees(session):
    model = ScriptedModel(says("one"), says("two"))
    await run(model, "1", session)
    config = RunConfig(session_input_callback=lambda _history, new: new)
    await run(model, "2", session, run_config=config)
    assert texts_of(model.asked[1]) == ["2"]
    assert texts_of(await session.get_items()) == ["1", "2"]


async def test_sessions_do_not_mix(lore):
    names = [f"trip-{n}" for n in range(6)]
    sessions = [RoomloreSession(name, lore) for name in names]

    async def talk(session):
        model = ScriptedModel(calls("weather", city=session.session_id), says("fine"), says("bye"))
        await run(model, f"hello {session.session_id}", session)
        await run(model, "你好", session)

    await asyncio.gather(*map(talk, sessions))
    for session in sessions:
        items = await session.get_items()
        assert texts_of(items) == [f"hello {session.session_id}", "你好"]
        assert items[2]["output"] == f"{session.session_id}: 24 degrees"
    stranger = RoomloreSession("trip-0", lore.for_tenant("other"))
    assert await stranger.get_items() == []


async def test_what_others_wrote_comes_back_plain(session, lore):
    await lore.sessions.write_turn("trip", "ann", "guide", "早", "Good morning")
    await lore.messages.add(roomlore.Message(id="t", room_id="trip", sender_id="x", role=roomlore.Role.TOOL, text="7"))
    await lore.messages.add(roomlore.Message(id="p", room_id="trip", sender_id="x", metadata={"caption": "a picture"}))
    await session.add_items([ANSWER])
    assert await session.get_items() == [
        {"role": "user", "content": "早"},
        {"role": "assistant", "content": "Good morning"},
        {"role": "assistant", "content": "7"},
        {"role": "user", "content": "a picture"},
        ANSWER,
    ]


async def test_a_damaged_item_comes_back_as_its_text(session, lore):
    for number, kept in enumerate([7, {}, {"raw": 1}, {"raw": {}, "text_at": ["a"]}, {"raw": {"a": 1}, "text_at": 3}]):
        await lore.messages.add(
            roomlore.Message(id=str(number), room_id="trip", sender_id="x", text="hi", metadata={"openai_agents": kept})
        )
    assert await session.get_items() == [{"role": "user", "content": "hi"}] * 5


async def test_an_edit_of_the_text_is_an_edit_of_the_item(session, lore):
    await session.add_items([USER, EVERY_KIND[3], EVERY_KIND[6], ANSWER])
    for message in await lore.sessions.messages("trip"):
        await lore.messages.edit("trip", message.id, text="redacted")
    one, two, call, answer = await session.get_items()
    assert one == two == {"role": "user", "content": "redacted"}
    assert call == EVERY_KIND[6]
    assert answer == {**ANSWER, "content": [{**ANSWER["content"][0], "text": "redacted"}]}


@pytest.mark.parametrize(
    ("item", "why"),
    [
        ("hello", "must be a mapping"),
        ({"role": "user", "content": {1, 2}}, "plain JSON"),
        ({"role": "user", "content": float("nan")}, "plain JSON"),
        ({"role": "user", "content": "x" * 20_001}, "20001 characters"),
        ({"role": "user", "content": [{"type": "input_image", "image_url": "x" * 300_000}]}, "at most 262144"),
    ],
)
async def test_what_cannot_be_kept_is_refused_and_nothing_is_half_stored(session, item, why):
    await session.add_items([USER])
    with pytest.raises(roomlore.InvalidInput, match=why):
        await session.add_items([ANSWER, item])
    with pytest.raises(roomlore.InvalidInput):
        await session.add_items([USER] * 51)
    assert await session.get_items() == [USER]


async def test_a_text_as_long_as_the_limit_is_kept_once():
    async with roomlore.open("sqlite://") as lore:
        session = RoomloreSession("trip", lore)
        item = {"type": "function_call_output", "call_id": "c", "output": "长 text " * 100_000}
        await session.add_items([item])
        assert await session.get_items() == [item]
        assert len(json.dumps((await lore.sessions.messages("trip"))[0].metadata)) < 200


async def test_inside_the_window_a_summary_stands_for_what_it_covers(lore):
    session = RoomloreSession("trip", lore, fit_window=True, recent_turns=1)
    assert await session.get_items() == []
    await session.add_items([USER, *EVERY_KIND[6:8], ANSWER])
    assert await session.get_items() == [USER, *EVERY_KIND[6:8], ANSWER]
    await summarise_all(lore, "trip", "They spoke of the weather.")
    last = [{"role": "user", "content": "Pack?"}, EVERY_KIND[8], EVERY_KIND[9], EVERY_KIND[5], ANSWER]
    await session.add_items(last)
    assert await session.get_items() == [{"role": "system", "content": "Summary: They spoke of the weather."}, *last]
    assert await session.get_items(limit=1) == [ANSWER]
    assert len(await RoomloreSession("trip", lore).get_items()) == 9


async def test_a_long_run_stays_inside_the_window(lore):
    session = RoomloreSession("trip", lore, fit_window=True, recent_turns=2, model_context_window=300)
    model = ScriptedModel(*(says(f"answer {n} " + "fine weather " * 10) for n in range(12)))
    for n in range(12):
        await run(model, f"question {n} " + "word " * 20, session)
        context = await lore.sessions.query_context("trip", model_context_window=300)
        if context.should_checkpoint_summary:
            await lore.sessions.checkpoint(
                "trip", f"{n + 1} questions were answered.", covers_through=context.covers_through
            )
    asked = model.asked[-1]
    assert asked[0]["role"] == "system"
    assert asked[0]["content"].startswith("Summary: ")
    assert len(asked) < 10
    assert all(item["role"] in ("user", "assistant") for item in asked[1:])
    assert len(await session.get_items(limit=99)) == 24


async def test_the_window_shows_what_it_should_where_runs_interleave(lore):
    one, two = (RoomloreSession("trip", lore, fit_window=True, recent_turns=2) for _ in range(2))
    await one.add_items([{"role": "user", "content": "A?"}])
    for name in "BC":
        await two.add_items([{"role": "user", "content": f"{name}?"}, {"role": "assistant", "content": f"{name}!"}])
    await one.add_items([{"role": "assistant", "content": "A!"}])
    assert len(await one.get_items()) == 6
    await summarise_all(lore, "trip", "Three asked.")
    shown = [item["content"] for item in await one.get_items()]
    assert shown == ["Summary: Three asked.", "B?", "B!", "C?", "C!"]


async def test_inside_the_window_no_output_stands_without_its_call(lore):
    one, two = (RoomloreSession("trip", lore, fit_window=True, recent_turns=1) for _ in range(2))
    await one.add_items([USER, EVERY_KIND[6]])
    await two.add_items([USER, ANSWER])
    await one.add_items([EVERY_KIND[7]])
    await summarise_all(lore, "trip", "Two asked.")
    shown = await one.get_items()
    assert [item for item in shown if item.get("call_id")] in ([], EVERY_KIND[6:8])


async def test_the_plain_view_keeps_an_output_without_its_call(session):
    await session.add_items([EVERY_KIND[7]])
    assert await session.get_items() == [EVERY_KIND[7]]


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "agents", None)
    monkeypatch.delitem(sys.modules, "roomlore_integrations.openai_agents")
    with pytest.raises(roomlore.InvalidInput, match=r"needs the extra .*pip install 'roomlore\[openai-agents\]'"):
        importlib.import_module("roomlore_integrations.openai_agents")


async def test_what_is_no_roomlore_is_refused():
    with pytest.raises(roomlore.InvalidInput, match="open_sync"):
        RoomloreSession("talk", "sqlite://")


@pytest.fixture
def another_loop():
    """The event loop on which `Runner.run_sync` runs, which is not roomlore's."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield loop
    loop.run_until_complete(loop.shutdown_default_executor())
    asyncio.set_event_loop(None)
    loop.close()


@pytest.mark.parametrize("fit_window", [False, True])
def test_a_synchronous_roomlore_remembers_under_run_sync(tmp_path, another_loop, fit_window):
    asked = another_loop.run_until_complete
    with roomlore.open_sync(f"sqlite:///{tmp_path / 'talk.db'}", background=False) as lore:
        session = RoomloreSession("talk", lore, user_id="ann", fit_window=fit_window)
        model = ScriptedModel(says("Hello Ann."), says("安，你好。"))
        agent = Agent(name="helper", model=model)
        Runner.run_sync(agent, "I am Ann.", session=session)
        Runner.run_sync(agent, "Who am I?", session=session)
        assert [message.text for message in lore.sessions.messages("talk")] == [
            "I am Ann.", "Hello Ann.", "Who am I?", "安，你好。",
        ]  # fmt: skip
        assert texts_of(asked(session.get_items())) == ["I am Ann.", "Who am I?"]
        assert asked(session.pop_item()) is not None
        asked(session.clear_session())
        assert asked(session.get_items()) == []


async def test_the_settings_of_a_session_may_be_a_dict(lore):
    session = RoomloreSession("talk", lore, session_settings={"limit": 1})
    await session.add_items([USER, ANSWER])
    assert len(await session.get_items()) == 1
    with pytest.raises(roomlore.InvalidInput, match="limit"):
        RoomloreSession("talk", lore, session_settings={"limits": 1})
