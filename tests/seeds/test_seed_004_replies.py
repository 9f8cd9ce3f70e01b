"""Seed 004, sections 2.1, 5.1 and 6.2: a reply in the group, streamed, with the context that was chosen for it."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from group_chat import GROUP, TALK, said
from rig import served, strategy

import roomlore
from roomlore import Lore, Settings, Tool, ToolCall
from roomlore_testkit.model_server import Break, Fails, ModelServer, Says

MODEL = "gpt-4o-mini"
ASKED = {"id": "m8", "sender_id": "ann", "text": "@小助手 贴纸上的密码不对", "sent_at": "2026-05-04T09:08:00Z"}
LOOK = Tool("look", "Looks something up.", {"type": "object", "properties": {"q": {"type": "string"}}})


def models(server: ModelServer, *names: str) -> dict[str, Any]:
    """Settings with these models, all at this server."""
    offers = {name: {"providers": [{"name": "here", "model_id": name}]} for name in names or (MODEL,)}
    return {"models": offers, "providers": {"here": {"base_url": server.url}}, "extract_every": 0}


@asynccontextmanager
async def answering(*script: Any, **more: Any) -> AsyncIterator[tuple[Lore, ModelServer]]:
    """A group that talked, and a model that answers so."""
    own = {"strategies": more.pop("strategies", None)}
    async with ModelServer(list(script)) as server:
        settings = Settings(**{**models(server), **more})
        async with roomlore.open("sqlite://", settings=settings, **own) as lore:
            await lore.messages.add(TALK)
            yield lore, server


async def stream(lore: Lore, message: dict[str, Any] = ASKED, **more: Any) -> list[tuple[str, dict[str, Any]]]:
    """The events of POST /chat/sse, by name."""
    async with served(lore) as http:
        answer = await http.post("/chat/sse", json={"chat_id": GROUP, "message": message, "agent_id": "bot", **more})
    assert answer.headers["content-type"].startswith("text/event-stream"), answer.text
    events = [block.split("\n") for block in answer.text.split("\n\n") if block.startswith("event")]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in events]


def text_of(events: list[tuple[str, dict[str, Any]]]) -> str:
    return "".join(data["text"] for name, data in events if name == "text")


def shown(server: ModelServer) -> str:
    """What the model was shown beside what it is told to be."""
    return "\n".join(one["content"] for one in server.requests[0].body["messages"] if one["role"] != "system")


# 2.1


async def test_a_reply_is_streamed_as_it_is_written():
    async with answering(Says(pieces=["密码", "重置", "即可。"])) as (lore, server):
        events = await stream(lore)
    assert [name for name, _ in events] == ["start", "text", "text", "text", "done"]
    assert [data["text"] for name, data in events if name == "text"] == ["密码", "重置", "即可。"]
    assert (events[-1][1]["text"], events[-1][1]["finish_reason"]) == ("密码重置即可。", "stop")
    assert server.requests[0].streaming


async def test_the_question_and_the_reply_are_stored_in_the_group():
    async with answering("重置即可。") as (lore, _):
        await stream(lore)
        *_, question, reply = await lore.messages.page(GROUP)
    assert (question.id, question.text, question.role) == ("m8", ASKED["text"], "user")
    assert (reply.sender_id, reply.text, reply.role, reply.reply_to) == ("bot", "重置即可。", "assistant", "m8")


# 5.1


async def test_the_model_sees_the_context_that_was_chosen():
    other = {**ASKED, "id": "m9", "sender_id": "bob", "reply_to": "m7", "text": "就是那张贴纸"}
    async with answering("好。", strategy="weighted", max_context_messages=2) as (lore, server):
        await stream(lore, other)
    assert "密码在路由器背面的贴纸上" in shown(server)
    assert "火锅" not in shown(server)


async def test_with_intelligent_memory_off_the_model_sees_the_last_ten_messages():
    flood = [said(number, f"u{number}", f"第{number}句", minute=7 + number / 60) for number in range(20, 34)]
    async with answering("好。", enable_intelligent_memory=False) as (lore, server):
        await lore.messages.add(flood)
        await stream(lore, {**ASKED, "sent_at": "2026-05-04T09:08:30Z"})
    assert [number for number in range(20, 34) if f"第{number}句" in shown(server)] == list(range(24, 34))
    assert "路由器" not in shown(server)


async def broken(*_more) -> None:
    raise KeyError("评分失败")


async def test_where_the_context_fails_there_is_a_reply_from_the_plain_window():
    async with answering("好。", strategies={"broken": strategy(broken)}) as (lore, server):
        await lore.rooms.configure(GROUP, {"strategy": "broken"})
        events = await stream(lore)
    assert events[0][1]["degraded"].startswith("recent messages only (")
    assert (text_of(events), "火锅怎么样" in shown(server)) == ("好。", True)


async def test_the_answer_and_its_feedback_are_recorded_with_the_context():
    async with answering("重置即可。") as (lore, _):
        context_id = (await stream(lore))[-1][1]["context_id"]
        await lore.context.feedback(context_id, score=0.8)
        record = await lore.context.usage(context_id)
    assert (record.trigger_message_id, record.llm_response, record.success_indicator) == ("m8", "重置即可。", 0.8)


# 6.2


@pytest.mark.parametrize(("name", "value"), [("temperature", 0.7), ("max_tokens", 50)])
async def test_an_argument_reaches_the_model(name, value):
    async with answering("好。") as (lore, server):
        await stream(lore, **{name: value})
    assert server.requests[0].body[name] == value


async def test_the_model_is_the_one_that_is_named():
    async with ModelServer(default="好。") as server:
        settings = Settings(**models(server, "gpt-4o", MODEL))
        async with roomlore.open("sqlite://", settings=settings) as lore:
            await stream(lore, model_id=MODEL)
    assert server.requests[0].model == MODEL


async def test_the_system_prompt_is_an_argument():
    async with answering("好。") as (lore, server):
        await stream(lore, system_prompt="你是赤尾。")
    assert server.requests[0].body["messages"][0]["content"].startswith("你是赤尾。")


async def test_without_tools_none_are_offered():
    async with answering("好。") as (lore, server):
        await stream(lore)
    assert "tools" not in server.requests[0].body


async def test_tools_are_offered_and_called_and_the_reply_goes_on():
    called = []

    async def look(call: ToolCall) -> str:
        called.append(call.arguments)
        return "默认密码 admin"

    wants = Says(text="我查一下。", tool_calls=[ToolCall("c1", "look", '{"q": "密码"}')])
    async with answering(wants, "默认密码是 admin。") as (lore, server):
        message = roomlore.Message(**{**ASKED, "room_id": GROUP, "sent_at": None})
        reply = await lore.replies.reply(message, tools=[LOOK], call_tool=look)
    assert (called, reply.finish_reason) == (['{"q": "密码"}'], "stop")
    assert reply.text == "我查一下。\n\n默认密码是 admin。"
    assert server.requests[1].body["messages"][-1]["content"] == "默认密码 admin"


@pytest.mark.parametrize(("given", "rounds"), [({}, 10), ({"max_tool_iterations": 2}, 2)])
async def test_the_model_may_ask_for_tools_ten_times_unless_told_otherwise(given, rounds):
    async def look(_: ToolCall) -> str:
        return "没有"

    def script(asked) -> Any:
        return (
            Says(text="", tool_calls=[ToolCall(f"c{len(asked.body['messages'])}", "look", "{}")])
            if ("tools" in asked.body)
            else "算了。"
        )

    async with ModelServer(script) as server:
        async with roomlore.open("sqlite://", settings=Settings(**models(server))) as lore:
            message = roomlore.Message(**{**ASKED, "room_id": GROUP, "sent_at": None})
            reply = await lore.replies.reply(message, tools=[LOOK], call_tool=look, **given)
        assert ["tools" in asked.body for asked in server.requests] == [True] * rounds + [False]
    assert reply.text == "算了。"


async def test_a_tool_that_fails_does_not_end_the_reply():
    async def look(_: ToolCall) -> str:
        raise RuntimeError("no tools today")

    async with answering(Says(text="", tool_calls=[ToolCall("c1", "look", "{}")]), "不查了。") as (lore, server):
        message = roomlore.Message(**{**ASKED, "room_id": GROUP, "sent_at": None})
        assert (await lore.replies.reply(message, tools=[LOOK], call_tool=look)).text == "不查了。"
        assert server.requests[1].body["messages"][-1]["content"].startswith("error: ")


async def test_finish_reason_tool_calls_waits_for_the_results_of_the_caller():
    wants = Says(text="", tool_calls=[ToolCall("c1", "look", '{"q": "密码"}')])
    function = {"name": LOOK.name, "description": LOOK.description, "parameters": dict(LOOK.parameters)}
    tools = [{"type": "function", "function": function}]
    async with answering(wants, "默认密码是 admin。") as (lore, _):
        events = await stream(lore, tools=tools)
        assert [name for name, _ in events] == ["start", "tool_calls", "done"]
        assert events[-1][1]["finish_reason"] == "tool_calls"
        given = [{"tool_call_id": "c1", "content": "admin"}]
        events = await stream(lore, tools=tools, tool_results=given)
    assert (text_of(events), events[-1][1]["finish_reason"]) == ("默认密码是 admin。", "stop")


@pytest.mark.parametrize(
    ("reason", "setting", "closing"),
    [
        ("content_filter", "content_filter_text", "赤尾有点不想讨论这个话题呢~"),
        ("length", "length_text", "(后续内容被截断)"),
    ],
)
async def test_a_reply_that_is_cut_ends_with_a_polite_chunk(reason, setting, closing):
    async with answering(Says(text="密码是", finish_reason=reason), **{setting: closing}) as (lore, _):
        events = await stream(lore)
    assert text_of(events) == events[-1][1]["text"] == f"密码是\n\n{closing}"
    assert (events[-2][0], events[-1][0], events[-1][1]["finish_reason"]) == ("text", "done", reason)


@pytest.mark.parametrize(
    ("reason", "closing"),
    [("content_filter", "抱歉，这个话题我不太方便聊。"), ("length", "（回答太长，到这里为止。）")],
)
async def test_the_polite_chunk_that_ships(reason, closing):
    async with answering(Says(text="", finish_reason=reason)) as (lore, _):
        assert text_of(await stream(lore)) == closing


async def test_an_error_ends_the_stream_with_an_event_and_loses_nothing():
    half = Says(pieces=["密码", "在", "贴"], breaks=Break(after=2))
    async with answering(half, "密码在贴纸上。") as (lore, _):
        events = await stream(lore)
        assert [name for name, _ in events][-1] == "error"
        assert events[-1][1]["status"] == 503
        assert "m8" in [one.id for one in await lore.messages.page(GROUP)]
        assert text_of(await stream(lore)) == "密码在贴纸上。"


# Differences


async def test_an_error_is_no_text_of_the_agent():
    async with answering(Fails(status=500)) as (lore, _):
        async with served(lore) as http:
            answer = await http.post("/chat/sse", json={"chat_id": GROUP, "message": ASKED})
        assert "生成回复时出现错误" not in answer.text
        assert [one.id for one in await lore.messages.page(GROUP)][-1] == "m8"


async def test_model_and_temperature_have_no_default_of_roomlores_own():
    async with answering("好。") as (lore, server):
        await stream(lore)
    assert (server.requests[0].model, "temperature" in server.requests[0].body) == (MODEL, False)
    async with roomlore.open("sqlite://", settings=Settings(**models(server, "a", "b"))) as lore, served(lore) as http:
        refused = await http.post("/chat/sse", json={"chat_id": GROUP, "message": ASKED})
    assert (refused.status_code, "reply_model" in refused.json()["detail"]) == (422, True)
