"""Replies over HTTP on a real socket: as they are written, to their end, and no longer than anybody listens."""

import asyncio
import json
import os
import signal
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx
import pytest
import uvicorn
from jsonschema import Draft202012Validator

import roomlore
from reply_rig import untimed
from roomlore.core.chat import ToolCall
from roomlore.settings import Settings
from roomlore_server.http import create_app, serve, server
from roomlore_server.http.event_stream import EventStream
from roomlore_testkit.doubles import FaultyStorage
from roomlore_testkit.model_server import Break, Fails, Hangs, ModelServer, Says, serve_models

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of a town.",
        "parameters": {"type": "object", "properties": {"town": {"type": "string"}}, "required": ["town"]},
    },
}
CALL = ToolCall("call-1", "weather", '{"town": "杭州"}')


@dataclass
class Heard:
    """An answer: its events as (name, content), when each came, and what is no event."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    events: list[tuple[str, dict]] = field(default_factory=list)
    at: list[float] = field(default_factory=list)
    comments: int = 0
    raw: bytes = b""

    def names(self) -> list[str]:
        return [name for name, _ in self.events]

    def text(self) -> str:
        return "".join(content["text"] for name, content in self.events if name == "text")

    def last(self) -> dict:
        return self.events[-1][1]

    def take(self, block: bytes) -> None:
        if block.startswith(b":"):
            self.comments += 1
            return
        name, data = block.split(b"\n")
        assert data.startswith(b"data: ")
        self.events.append((name.removeprefix(b"event: ").decode(), json.loads(data.removeprefix(b"data: "))))
        self.at.append(time.perf_counter())


def configured(url: str, **more) -> Settings:
    """One model at the server, one whose key nobody has, and what summarises at the server too."""
    providers = {"here": {"base_url": url}, "closed": {"base_url": url, "key_variable": "NO_SUCH_KEY"}}
    named = {
        "chat": {"providers": [{"name": "here", "model_id": "m"}]},
        "locked": {"internal": True, "providers": [{"name": "closed", "model_id": "m"}]},
        "memory-summary-model": {"internal": True, "providers": [{"name": "here", "model_id": "summary"}]},
    }
    return Settings(**{"models": named, "providers": providers, "extract_every": 0, "log_level": "error"} | more)


@asynccontextmanager
async def serving(lore):
    """A client of the service on a socket of its own."""
    config = uvicorn.Config(create_app(lore), port=0, log_config=None, access_log=False, lifespan="off")
    service = uvicorn.Server(config)
    running = asyncio.ensure_future(service.serve())
    while not service.started:  # noqa: ASYNC110 - uvicorn tells nobody
        await asyncio.sleep(0.005)
    port = service.servers[0].sockets[0].getsockname()[1]
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        yield client
    service.should_exit = True
    await running


@asynccontextmanager
async def chatting(script=(), *, url="sqlite://", **more):
    """A scripted model, an open roomlore, and a client of the service over both."""
    with serve_models(script, **more) as model:
        async with roomlore.open(url, settings=configured(model.url)) as lore, serving(lore) as client:
            yield model, lore, client


@asynccontextmanager
async def unanswered(url: str):
    """A client of the service with a model whose provider is not there."""
    async with roomlore.open("sqlite://", settings=configured(url)) as lore, serving(lore) as client:
        yield client


def body(number: int = 1, text: str = "Green or black tea?", **more) -> dict:
    return {"room_id": "tea", "message": {"id": f"m{number}", "sender_id": "ann", "text": text}, **more}


async def hear(
    client: httpx.AsyncClient, content: dict, *, until: int | None = None, once=lambda: True, **more
) -> Heard:
    """The answer, or its first events: then, once that is true, the client leaves."""
    async with client.stream("POST", "/chat/sse", json=content, **more) as answer:
        heard, rest = Heard(answer.status_code, dict(answer.headers)), b""
        if "event-stream" not in answer.headers["content-type"]:
            heard.events.append(("problem", json.loads(await answer.aread())))
            return heard
        async for chunk in answer.aiter_bytes():
            heard.raw += chunk
            *blocks, rest = (rest + chunk).split(b"\n\n")
            for block in blocks:
                heard.take(block)
            if until is not None and len(heard.events) >= until:
                await until_true(once)
                return heard
        assert rest == b""
    return heard


async def said(lore, room: str = "tea") -> list[tuple[str, str, str]]:
    return [(one.sender_id, one.role.value, one.text) for one in await lore.messages.page(room)]


async def until_true(check) -> None:
    ends = time.perf_counter() + 60
    while not check():
        assert time.perf_counter() < ends, "it never came true"
        await asyncio.sleep(0.01)


# As it is written.


async def test_the_first_words_arrive_before_the_model_is_done():
    script = [Says(pieces=["Green", " tea", ", of", " course."], between=0.15)]
    async with chatting(script) as (_model, _lore, client):
        heard = await hear(client, body())
    assert (heard.status, heard.names()) == (200, ["start", "text", "text", "text", "text", "done"])
    assert heard.headers["content-type"].startswith("text/event-stream")
    assert heard.headers["cache-control"] == "no-cache"
    assert heard.headers["x-accel-buffering"] == "no"
    assert heard.headers["x-request-id"]
    assert heard.at[-1] - heard.at[1] > 0.3
    assert heard.text() == heard.last()["text"] == "Green tea, of course."


async def test_what_was_asked_and_answered_is_stored_when_it_is_done():
    async with chatting(["Green tea."]) as (model, lore, client):
        heard = await hear(client, body(agent_id="bot", agent_name="Tea Bot", system_prompt="Be brief.", temperature=0))
        assert await said(lore) == [("ann", "user", "Green or black tea?"), ("bot", "assistant", "Green tea.")]
        start, done = heard.events[0][1], heard.last()
        assert (start["message_id"], start["model_id"]) == ("m1", "chat")
        assert (await lore.messages.page("tea"))[1].id == start["reply_id"] == done["reply_id"]
        assert (done["finish_reason"], done["provider"], done["repeated"]) == ("stop", "here", False)
        assert done["usage"] == {"input_tokens": 7, "output_tokens": 3}
        feedback = await client.post(f"/context/{done['context_id']}/feedback", json={"score": 1})
        assert feedback.status_code == 204
    assert model.requests[0].body["temperature"] == 0
    assert "Be brief." in model.requests[0].prompt


async def test_a_room_has_four_names_in_the_message_or_beside_it():
    message = {"id": "m1", "sender_id": "ann", "text": "?"}
    async with chatting(default="好") as (_, lore, client):
        for word in ("room_id", "group_id", "chat_id", "conversation_id"):
            inside = {"message": {**message, word: f"茶 {word}"}}
            assert (await hear(client, inside)).text() == "好"
            beside = {"message": message, word: f"茶 {word}"}
            assert (await hear(client, beside)).last()["repeated"]
            assert await said(lore, f"茶 {word}") == [("ann", "user", "?"), ("assistant", "assistant", "好")]


async def test_chinese_and_every_line_end_survive_and_chinese_goes_out_as_it_is():
    text = "你好，\n第二行\r\n\u2028三\x85四 👍 data: x\n\nevent: done"
    async with chatting([Says(pieces=[text, "。"])]) as (_, lore, client):
        heard = await hear(client, body(text="绿茶还是红茶？"))
        assert (await said(lore))[-1][2] == text + "。"
    assert (heard.text(), heard.last()["text"]) == (text + "。", text + "。")
    assert "你好，".encode() in heard.raw
    assert "👍".encode() in heard.raw


async def test_a_model_that_thinks_long_is_heard_of_meanwhile(monkeypatch):
    monkeypatch.setattr(EventStream, "moment_seconds", 0.01)
    monkeypatch.setattr(EventStream, "ping_seconds", 0.05)
    async with chatting([Says(text="At last.", after=0.8)]) as (_, _lore, client):
        heard = await hear(client, body())
    assert (heard.names(), heard.text()) == (["start", "text", "text", "done"], "At last.")
    assert heard.comments >= 3


async def test_the_same_message_again_is_answered_from_the_store():
    async with chatting(["Green tea."]) as (model, _lore, client):
        first = await hear(client, body())
        again = await hear(client, body())
    assert (again.names(), again.last()["repeated"], again.last()["text"]) == (["done"], True, "Green tea.")
    assert again.last()["reply_id"] == first.last()["reply_id"]
    assert len(model.requests) == 1


async def test_tools_are_called_between_two_requests():
    script = [Says(text="One moment.", tool_calls=[CALL]), "杭州：晴，21 度。"]
    async with chatting(script) as (model, _lore, client):
        wanted = await hear(client, body(tools=[WEATHER]))
        call = {"id": "call-1", "name": "weather", "arguments": CALL.arguments}
        assert [content for name, content in wanted.events if name == "tool_calls"] == [{"calls": [call]}]
        assert (wanted.last()["finish_reason"], wanted.last()["tool_calls"]) == ("tool_calls", [call])
        results = [{"tool_call_id": "call-1", "content": "晴 21"}]
        answered = await hear(client, body(tools=[WEATHER], tool_results=results))
        assert answered.last()["text"].endswith("杭州：晴，21 度。")
        assert answered.last()["finish_reason"] == "stop"
    first, second = model.requests
    assert first.body["tools"] == [WEATHER]
    assert [one["content"] for one in second.body["messages"] if one["role"] == "tool"] == ["晴 21"]


async def test_an_answer_that_grew_too_long_is_closed_politely():
    async with chatting([Says(text="And then", finish_reason="length")]) as (_, _lore, client):
        heard = await hear(client, body())
    assert heard.last()["finish_reason"] == "length"
    assert heard.text() == heard.last()["text"]
    assert len(heard.text()) > len("And then")


# When it breaks off.


async def test_a_client_that_leaves_ends_the_model_and_what_was_said_is_kept():
    script = [Says(pieces=["word "] * 2000, between=0.05)]
    async with chatting(script) as (model, lore, client):
        heard = await hear(client, body(), until=5)
        await until_true(lambda: model.requests[0].left_at is not None)
        assert model.requests[0].answered_at is None
        async with asyncio.timeout(60):
            while len(stored := await said(lore)) < 2:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.01)
    assert stored[0] == ("ann", "user", "Green or black tea?")
    assert stored[1][:2] == ("assistant", "assistant")
    assert stored[1][2].startswith(heard.text().strip())
    assert len(stored[1][2]) < 2000


@pytest.mark.parametrize("moment", [0.01, 60.0])
async def test_a_client_that_leaves_while_the_model_thinks_ends_it_too(monkeypatch, moment):
    monkeypatch.setattr(EventStream, "moment_seconds", moment)
    async with chatting([Hangs()]) as (model, lore, client):
        hearing = asyncio.ensure_future(hear(client, body(), until=1, once=lambda: model.requests))
        await until_true(lambda: model.requests)
        if moment > 1:  # else it hears that the answer begins, and leaves by itself
            hearing.cancel()
        await asyncio.wait({hearing})
        assert hearing.cancelled() == (moment > 1)
        await until_true(lambda: model.requests[0].left_at is not None)
        assert await said(lore) == [("ann", "user", "Green or black tea?")]


async def test_a_model_that_breaks_off_is_an_error_event_and_nothing_is_lost():
    script = [Says(pieces=["Green ", "tea ", "is ", "best"], between=0.1, breaks=Break(after=3)), "Green."]
    async with chatting(script) as (_, lore, client):
        heard = await hear(client, body(), headers={"X-Request-Id": "trace-9"})
        assert heard.status == 200
        assert heard.names()[-1] == "error"
        assert set(heard.last()) == {"type", "title", "status", "detail", "instance", "request_id"}
        assert (heard.last()["type"], heard.last()["status"]) == ("urn:roomlore:unavailable", 503)
        assert heard.last()["request_id"] == "trace-9"
        assert "done" not in heard.names()
        asked, answered = [text for *_, text in await said(lore)]
        assert (asked, answered.strip()) == ("Green or black tea?", heard.text().strip())
        assert answered
        again = await hear(client, body())
        assert (again.last()["text"], again.last()["repeated"]) == ("Green.", False)


async def test_an_error_nobody_foresaw_is_an_event_that_tells_nothing_of_itself(monkeypatch, capfd):
    async with chatting() as (_, lore, client):

        async def broken(*_: object, **__: object):
            yield roomlore.ReplyText("Green")
            yield roomlore.ReplyText(" tea")
            raise ZeroDivisionError("somebody's secret words")

        monkeypatch.setattr(lore.replies, "stream", broken)
        heard = await hear(client, body())
    assert (heard.names(), heard.last()["status"], heard.last()["type"]) == (
        ["text", "text", "error"],
        500,
        "urn:roomlore:error",
    )
    told = "".join(capfd.readouterr())
    assert "ZeroDivisionError" in told
    assert "secret" not in told + heard.raw.decode()


async def test_a_service_that_is_stopped_keeps_what_was_said(monkeypatch, tmp_path):
    monkeypatch.setattr(server, "_GRACE_SECONDS", 1)
    url = f"sqlite:///{tmp_path / 'stopped.db'}"
    with serve_models([Says(pieces=["word "] * 4000, between=0.05)]) as model:
        settings = configured(model.url, database_url=url, port=0)
        at: list[str] = []
        running = asyncio.ensure_future(serve(settings, listening=at.append))
        await until_true(lambda: at)
        async with httpx.AsyncClient(base_url=at[0], timeout=60) as client:
            async with client.stream("POST", "/chat/sse", json=body()) as answer:
                heard, parts = b"", answer.aiter_bytes()
                while heard.count(b"word") < 5:
                    heard += await anext(parts)
                os.kill(os.getpid(), signal.SIGTERM)
                with pytest.raises(httpx.HTTPError):
                    _ = [part async for part in parts]
            await running
        async with roomlore.open(url, settings=settings, background=False) as lore:
            stored = await said(lore)
    assert [sender for sender, *_ in stored] == ["ann", "assistant"]
    assert stored[1][2].startswith("word word word")


# Extraction.


@pytest.mark.parametrize("kept_by", ["process", "dbos"])
async def test_a_reply_never_waits_for_an_extraction(tmp_path, kept_by):
    def answer(asked):
        return Hangs() if asked.model == "summary" else "Green."

    url = f"sqlite:///{tmp_path / 'chat.db'}"
    async with ModelServer(answer) as model:
        settings = configured(model.url, extract_every=1, durable_work=kept_by)
        async with roomlore.open(url, settings=settings) as lore, serving(lore) as client:

            def hanging() -> bool:
                return any(asked.model == "summary" and not asked.left_at for asked in model.requests)

            await hear(client, body(0))
            await until_true(hanging)
            took = []
            for number in range(1, 7):
                begun = time.perf_counter()
                assert (await hear(client, body(number))).text() == "Green."
                took.append(time.perf_counter() - begun)
            assert hanging(), "no extraction was under way while replies were written"
            assert max(took) < 30
            await model.stop()


# Problems before it begins.

BAD = [
    ({"room_id": "tea"}, 422, "message is missing"),
    ([], 422, "must be a JSON object"),
    (body(room_id=""), 422, "room_id"),
    (body(chat_id="coffee"), 422, "name different rooms"),
    ({"room_id": "tea", "message": {"id": "m1", "chat_id": "coffee", "sender_id": "ann"}}, 422, "different rooms"),
    ({"message": {"id": "m1", "sender_id": "ann"}}, 422, "message: room_id is missing"),
    ({"room_id": "tea", "message": {"id": "m1", "sender_id": "ann", "txt": "?"}}, 422, "message: unknown field 'txt'"),
    ({"room_id": "tea", "message": {"id": "m1", "sender_id": "ann", "role": "system"}}, 422, "role"),
    (body(text="long " * 300_000), 422, "max_text_chars"),
    (body(model="chat"), 422, "did you mean model_id?"),
    (body(model_id="nix"), 404, "no model 'nix'; there are chat"),
    (body(model_id="locked"), 503, "set NO_SUCH_KEY"),
    (body(temperature=3), 422, "temperature"),
    (body(temperature="0"), 422, "temperature"),
    (body(max_tokens=0), 422, "max_tokens"),
    (body(model_context_window=10), 422, "window"),
    (body(tools=[{"type": "function"}]), 422, "tools.0.function is missing"),
    (body(tools=["weather"]), 422, "tools.0 must be a JSON object"),
    (body(tools=[WEATHER, WEATHER]), 422, "name of its own"),
    (body(tool_results=[{"tool_call_id": "x", "content": "y"}]), 422, "No tool was asked for"),
    (body(tool_results=[{"tool_call_id": "x"}]), 422, "tool_results.0.content is missing"),
]


async def test_what_is_known_before_the_stream_is_an_ordinary_problem():
    async with chatting() as (model, _, client):
        for content, status, says in BAD:
            heard = await hear(client, content)
            assert (heard.status, heard.last()["status"]) == (status, status), heard.last()
            assert says in heard.last()["detail"]
            assert heard.headers["content-type"] == "application/problem+json"
            assert "retry-after" not in heard.headers, "waiting helps in none of these cases"
        assert not model.requests


async def test_a_provider_that_refuses_at_once_is_an_ordinary_problem_too():
    async with chatting([Fails(status=400)]) as (_, lore, client):
        heard = await hear(client, body())
        assert (heard.status, heard.last()["type"]) == (503, "urn:roomlore:unavailable")
        assert await said(lore) == [("ann", "user", "Green or black tea?")]


async def test_while_providers_are_paused_the_answer_says_for_how_long_and_why():
    async with chatting([Fails(status=500)] * 3) as (model, _, client):
        waits = [(await hear(client, body(number))).headers["retry-after"] for number in range(3)]
        assert waits == ["2", "2", "15"], "the answer that begins the pause says how long it is"
        heard = await hear(client, body(3))
        assert (heard.status, len(model.requests)) == (503, 3)
        assert heard.last()["detail"] == (
            "No provider of the model 'chat' can be asked: each failed lately (here: broken) and is tried again soon."
        )
        assert 2 < int(heard.headers["retry-after"]) <= 15


async def test_a_provider_that_cannot_be_reached_is_paused_after_the_second_question():
    """The first question is sent twice, and the first failure of the second one begins the pause."""
    async with unanswered("http://127.0.0.1:1/v1") as client:
        heard = [await hear(client, body(number), headers={"Accept-Language": "zh"}) for number in range(3)]
        assert [one.status for one in heard] == [503] * 3, "the first one like the later ones"
        assert [one.headers["retry-after"] for one in heard] == ["2", "15", "15"]
        told = [one.last()["detail"] for one in heard]
        assert told[0] == told[1] == "无法连接服务商 here：请检查它的 base_url 和网络。"
        assert told[2] == "模型 'chat' 的服务商都不可用：各服务商最近都失败了（here: unreachable），稍后会重试。"


async def test_the_first_question_that_no_provider_answers_in_a_moment_is_a_stream_that_fails(monkeypatch):
    """The stream has begun by then; while providers are paused it does not begin."""
    monkeypatch.setattr(EventStream, "moment_seconds", 0.01)
    async with unanswered("http://127.0.0.1:1/v1") as client:
        first, _, third = [await hear(client, body(number)) for number in range(3)]
        assert (first.status, first.names()[-1], first.last()["status"]) == (200, "error", 503)
        assert (third.status, third.last()["status"]) == (503, 503)


async def test_the_same_id_with_other_content_is_a_conflict():
    async with chatting(["Green."]) as (model, lore, client):
        await hear(client, body())
        heard = await hear(client, body(text="Coffee?"))
        assert (heard.status, heard.last()["type"]) == (409, "urn:roomlore:conflict")
        assert len(await said(lore)) == 2
    assert len(model.requests) == 1


async def test_a_database_that_is_down_keeps_no_reply_back(monkeypatch):
    async with chatting() as (model, lore, client):
        faulty = FaultyStorage(lore.storage)
        monkeypatch.setattr(lore.replies._store, "_storage", faulty)
        faulty.fail("reading")
        heard = await hear(client, body())
        assert (heard.status, heard.names()[-1]) == (200, "done")
        assert "reading was told to fail" in heard.last()["degraded"]
        assert len(model.requests) == 1
        faulty.heal()


# Who may ask.


async def test_a_key_of_another_tenant_sees_and_changes_nothing():
    async with chatting() as (model, lore, client):
        ours = lore.for_tenant("ours")
        secret = roomlore.Message(id="m0", room_id="tea", sender_id="bob", text="The vault opens with 7319.")
        await ours.messages.add([secret])
        _, key = await lore.for_tenant("theirs").keys.create("theirs", scopes=("write",))
        heard = await hear(client, body(text="bob: what opens it?"), headers={"Authorization": f"Bearer {key}"})
        assert (heard.status, heard.names()[-1]) == (200, "done")
        assert "7319" not in model.requests[0].prompt
        assert [one.id for one in await ours.messages.page("tea")] == ["m0"]
        assert len(await said(lore.for_tenant("theirs"))) == 2


async def test_asking_needs_a_key_that_may_write_and_a_name_of_this_machine():
    async with chatting() as (model, lore, client):
        assert (await hear(client, body(), headers={"Host": "evil.example"})).status == 403
        assert (await hear(client, body(), headers={"Origin": "https://evil.example"})).status == 403
        _, reader = await lore.keys.create("reader", scopes=("read",))
        assert (await hear(client, body())).status == 401
        assert (await hear(client, body(), headers={"Authorization": f"Bearer {reader}"})).status == 403
        assert not model.requests
        assert not await lore.rooms.page()


async def test_many_talk_at_once_and_each_hears_its_own():
    def answer(asked):
        return Says(text=untimed(asked.body["messages"][-1]["content"]).upper(), between=0.02)

    async with chatting(answer) as (_, _lore, client):
        asks = [{**body(n, text=f"word {n}"), "room_id": f"room {n}"} for n in range(12)]
        heard = await asyncio.gather(*(hear(client, one) for one in asks))
    assert [one.text() for one in heard] == [f"WORD {n}" for n in range(12)]


def test_openapi_describes_the_events_and_has_no_reference_that_leads_nowhere(app):
    document = app.openapi()
    operation = document["paths"]["/chat/sse"]["post"]
    told = operation["responses"]["200"]["content"]["text/event-stream"]["itemSchema"]["oneOf"]
    assert [one["properties"]["event"]["const"] for one in told] == [
        "start", "text", "tool_calls", "tool_result", "done", "error",
    ]  # fmt: skip
    assert "$ref" not in json.dumps(operation["requestBody"]) + json.dumps(told)
    asked = operation["requestBody"]["content"]["application/json"]["schema"]
    assert set(asked["properties"]) >= {"message", "tools"}
    assert "anyOf" not in asked, "one form of the body"
    message = {"id": "m1", "sender_id": "ann", "role": "user"}
    in_it = {"message": {**message, "room_id": "tea"}}
    named = [{"message": message, "room_id": "tea"}, in_it, {**in_it, "room_id": None}]
    assert [Draft202012Validator(asked).is_valid(one) for one in (*named, {"message": message})] == [True] * 3 + [False]
