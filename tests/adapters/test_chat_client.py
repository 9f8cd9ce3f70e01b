"""Asking a provider over the wire: what is sent, how answers are read, when calls end, and that nothing is told."""

import asyncio
import json
import logging
import subprocess
import sys
import time
import traceback
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from datetime import timedelta
from email.utils import format_datetime

import pytest

from roomlore.adapters.chat import can_chat, open_chat
from roomlore.adapters.chat.events import data
from roomlore.core.chat.models import ChatAnswer, ChatPiece, ChatRequest, ToolCall, Usage
from roomlore.core.chat.registry import Offer, Provider
from roomlore.core.errors import InvalidInput, ModelUnavailable
from roomlore.ports.chat import ChatClient
from roomlore.testing import START, FrozenClock
from roomlore.testing.model_answers import Break, Drops, Fails, Hangs, Says, Sends
from roomlore.testing.model_server import ModelServer

KEY = "sk-secret-0123456789"
PROMPT = "a very private matter, 私事"
ASKED = ChatRequest(messages=({"role": "user", "content": PROMPT},))
SOON = 0.2
WHOLE, STREAMED = "whole", "streamed"
CALL = ToolCall("call_a", "find_tea", '{"名": "茶", "n": 2}')


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer() as server:
        yield server


@pytest.fixture
async def client() -> AsyncIterator[ChatClient]:
    client = open_chat(clock=FrozenClock())
    yield client
    await client.close()


def offer(server: ModelServer, **provider: object) -> Offer:
    return Offer(replace(Provider("near", server.url, "NEAR_KEY"), **provider), "tiny")


async def ask(client, server, how=WHOLE, request=ASKED, *, key=KEY, seconds=5.0) -> ChatAnswer:
    """The answer, in the same form whichever way it came."""
    if how == WHOLE:
        return await client.complete(offer(server), request, key=key, timeout_seconds=seconds)
    pieces = [piece async for piece in client.stream(offer(server), request, key=key, timeout_seconds=seconds)]
    last = pieces[-1]
    assert not any(piece.finish_reason or piece.tool_calls or piece.usage != Usage() for piece in pieces[:-1])
    assert all(piece.text for piece in pieces[:-1])
    return ChatAnswer(
        text="".join(piece.text for piece in pieces),
        finish_reason=last.finish_reason,
        tool_calls=last.tool_calls,
        usage=last.usage,
        provider=last.provider,
        model_id=last.model_id,
    )


async def refused(client, server, how=WHOLE, **more) -> ModelUnavailable:
    """The error of a call, after a look for what it must not tell."""
    with pytest.raises(ModelUnavailable) as caught:
        await ask(client, server, how, **more)
    told = "".join(traceback.format_exception(caught.value))
    assert not [secret for secret in (KEY, PROMPT, "refused:", "私事") if secret in told]
    return caught.value


both = pytest.mark.parametrize("how", [WHOLE, STREAMED])


@both
@pytest.mark.parametrize("text", ["ready when you are", "已经准备好了，谢谢！👩‍🚀"])
async def test_a_text(client, server, how, text):
    server.default = text
    answer = await ask(client, server, how)
    assert answer == ChatAnswer(text=text, finish_reason="stop", usage=Usage(7, 3), provider="near", model_id="tiny")


async def test_pieces_come_as_they_are_written(client, server):
    server.default = Says(pieces=["One. ", "二。"], between=0.1)
    begun = time.monotonic()
    came = [
        (piece.text, time.monotonic() - begun)
        async for piece in client.stream(offer(server), ASKED, key=KEY, timeout_seconds=5)
    ]
    assert [text for text, _ in came] == ["One. ", "二。", ""]
    assert came[1][1] - came[0][1] > 0.08


async def test_what_is_sent(client, server):
    tools = [{"type": "function", "function": {"name": "find_tea"}}]
    request = replace(ASKED, temperature=0.5, max_tokens=9, tools=tools, options={"top_p": 0.1, "model": "x", "n": 1})
    await ask(client, server, request=request)
    await ask(client, server, STREAMED)
    full, streamed = (asked.body for asked in server.requests)
    messages = [{"role": "user", "content": PROMPT}]
    assert full == {
        "model": "tiny", "messages": messages, "temperature": 0.5, "max_tokens": 9, "tools": tools, "top_p": 0.1,
        "n": 1, "stream": False,
    }  # fmt: skip
    assert streamed == {
        "model": "tiny", "messages": messages, "stream": True, "stream_options": {"include_usage": True},
    }  # fmt: skip
    assert [asked.key for asked in server.requests] == [KEY, KEY]
    assert server.requests[0].path == "/v1/chat/completions"


async def test_the_limit_goes_by_the_name_the_provider_has_for_it(client, server):
    there = offer(server, limit_field="max_completion_tokens")
    await client.complete(there, replace(ASKED, max_tokens=9), key=KEY, timeout_seconds=5)
    assert server.requests[0].body["max_completion_tokens"] == 9
    assert "max_tokens" not in server.requests[0].body


@both
async def test_no_key_is_sent_where_none_is_needed(client, server, monkeypatch, how):
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "sk-of-somebody-else")
    await ask(client, server, how, key=None)
    assert "authorization" not in server.requests[0].headers
    assert "sk-of-somebody-else" not in str(server.requests[0].headers)


async def test_what_utf8_cannot_carry_is_replaced(client, server):
    await ask(client, server, request=ChatRequest(messages=[{"role": "user", "content": "a\ud800b \ud83d\ude00"}]))
    assert server.requests[0].prompt == "a\ufffdb 😀"


@pytest.mark.parametrize("value", [float("nan"), object(), b"x"], ids=str)
async def test_what_is_no_json_is_refused(client, server, value):
    with pytest.raises(InvalidInput, match="must be JSON"):
        await ask(client, server, request=replace(ASKED, options={"seed": value}))
    assert server.requests == []


@both
async def test_tool_calls(client, server, how):
    second = ToolCall("call_b", "stop", "{}")
    server.default = Says(tool_calls=[CALL, second])
    answer = await ask(client, server, how)
    assert (answer.text, answer.finish_reason, answer.tool_calls) == ("", "tool_calls", (CALL, second))


def event(delta: object, finish: object = None) -> bytes:
    return b"data: " + json.dumps({"choices": [{"delta": delta, "finish_reason": finish}]}).encode() + b"\n\n"


def streamed(*events: bytes) -> Sends:
    return Sends(body=b"".join(events), content_type="text/event-stream", in_chunks=True)


def fragment(arguments: object, **fields: object) -> dict:
    named = {"name": fields.pop("name")} if "name" in fields else {}
    return {**fields, "function": {**named, "arguments": arguments}}


DONE = b"data: [DONE]\n\n"
ODD_CALLS = {
    "all numbered 0": [fragment("{}", index=0, id="a", name="f"), fragment("[]", index=0, id="b", name="g")],
    "not numbered": [fragment("{}", id="a", name="f"), fragment("[]", id="b", name="g")],
    "the id in every fragment": [
        fragment("{", index=0, id="a", name="f"), fragment("}", index=0, id="a"),
        fragment("[", index=1, id="b", name="g"), fragment("]", index=1, id="b"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("calls", ODD_CALLS.values(), ids=ODD_CALLS)
async def test_fragments_of_tool_calls_as_odd_servers_send_them(client, server, calls):
    server.default = streamed(*(event({"tool_calls": [call]}) for call in calls), event({}, "stop"), DONE)
    answer = await ask(client, server, STREAMED)
    assert answer.tool_calls == (ToolCall("a", "f", "{}"), ToolCall("b", "g", "[]"))
    assert answer.finish_reason == "tool_calls"


async def test_a_tool_call_without_an_id_gets_one_and_arguments_may_be_json(client, server):
    calls = [fragment({"a": 1}, index=0, name="f"), "rubbish", fragment("x", index=7), None]
    server.default = streamed(event({"tool_calls": calls}), event({}, "tool_calls"), DONE)
    assert (await ask(client, server, STREAMED)).tool_calls == (ToolCall("call_0", "f", '{"a": 1}'),)


@both
@pytest.mark.parametrize(
    ("said", "understood"),
    [
        ("stop", "stop"), ("length", "length"), ("content_filter", "content_filter"), ("max_tokens", "length"),
        ("tool_calls", "tool_calls"), ("function_call", "tool_calls"), ("eos", None), ({}, None), (7, None),
    ],
)  # fmt: skip
async def test_why_it_stopped(client, server, how, said, understood):
    server.default = Says(finish_reason=said)
    assert (await ask(client, server, how)).finish_reason == understood


@both
@pytest.mark.parametrize("reason", ["length", "content_filter"])
async def test_an_answer_may_be_empty_where_it_says_why(client, server, how, reason):
    server.default = Says(content=None, finish_reason=reason)
    assert (await ask(client, server, how)).finish_reason == reason


@both
@pytest.mark.parametrize(
    ("usage", "understood"),
    [
        ({"prompt_tokens": 2, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 1}}, Usage(2, 1)),
        ({"input_tokens": 2, "output_tokens": 1}, Usage(2, 1)),
        ({"prompt_tokens": 2.0}, Usage(2, 0)),
        (None, Usage()),
        ([], Usage()),
        ("many", Usage()),
        ({"prompt_tokens": -1, "completion_tokens": "3"}, Usage()),
        ({"prompt_tokens": True, "completion_tokens": 10**30}, Usage()),
        ({"prompt_tokens": float("nan"), "completion_tokens": float("inf")}, Usage()),
    ],
    ids=str,
)
async def test_usage_is_read_leniently(client, server, how, usage, understood):
    server.default = Says(usage=usage)
    assert (await ask(client, server, how)).usage == understood


@both
async def test_the_last_word_on_usage_counts(client, server, how):
    grown = [{"usage": {"prompt_tokens": 5, "completion_tokens": n}, "choices": []} for n in (1, 2)]
    lines = [b"data: " + json.dumps(one).encode() + b"\n\n" for one in grown]
    server.default = streamed(lines[0], event({"content": "hi"}, "stop"), lines[1], DONE)
    assert (await ask(client, server, STREAMED)).usage == Usage(5, 2)


@both
@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "text", "text": "茶 "}, {"type": "thinking", "text": "hm"}, "yes", 7, {"text": "!"}], "茶 yes!"),
        ([{"type": "text", "text": None}, {"type": "image_url"}, "ok"], "ok"),
    ],
)
async def test_content_in_parts(client, server, how, content, text):
    server.default = Says(content=content)
    assert (await ask(client, server, how)).text == text


@both
async def test_thoughts_and_unknown_fields_are_left_out(client, server, how):
    extra = {
        "reasoning_content": "let me think",
        "reasoning": "hm",
        "reasoning_details": [{}],
        "logprobs": None,
        "x": {},
    }
    server.default = Says(text="茶。", extra=extra)
    assert (await ask(client, server, how)).text == "茶。"


@both
async def test_a_refusal_is_what_was_said(client, server, how):
    server.default = Says(content=None, extra={"refusal": "I would rather not."})
    assert (await ask(client, server, how)).text.startswith("I would rather not.")


async def test_a_server_that_does_not_stream_is_understood(client, server):
    body = {"choices": [{"message": {"content": "all at once"}, "finish_reason": "stop"}]}
    server.default = Sends(body=json.dumps(body).encode())
    assert (await ask(client, server, STREAMED)).text == "all at once"


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n"])
async def test_comments_and_other_fields_between_events_are_passed_over(client, server, end):
    said = event({"content": "hi"}, "stop").replace(b"\n\n", end)
    server.default = streamed(b": still there" + end, b"event: message\nid: 3\nretry: 9\n", said, b"data:[DONE]" + end)
    assert (await ask(client, server, STREAMED)).text == "hi"


@pytest.mark.parametrize("size", [1, 3, 1000])
async def test_events_are_put_together_wherever_the_network_cuts_them(size):
    body = event({"content": "茶" * 9}) + b": x\r\n\r\n" + b"data: a\ndata: b\n\n" + DONE + b"data: half"

    async def cut() -> AsyncIterator[bytes]:
        for at in range(0, len(body), size):
            yield body[at : at + size]

    assert [one async for one in data(cut())] == [event({"content": "茶" * 9})[6:-2], b"a\nb", b"[DONE]"]


async def test_the_end_may_be_the_end_of_the_body(client, server):
    server.default = streamed(event({"content": "hi"}), event({}, "stop"))
    assert (await ask(client, server, STREAMED)).text == "hi"
    server.default = streamed(event({"content": "hi"}), DONE)
    assert (await ask(client, server, STREAMED)).finish_reason is None


@pytest.mark.parametrize("after", [b"data: {bro", b"data: rubbish\n\n", b'data: {"error": {"code": 500}}\n\n'])
async def test_what_goes_wrong_after_the_end_does_no_harm(client, server, after):
    server.default = streamed(event({"content": "hi"}), event({}, "stop"), after)
    answer = await ask(client, server, STREAMED)
    assert (answer.text, answer.finish_reason) == ("hi", "stop")


async def test_the_end_is_not_waited_for_without_end(client, server):
    server.default = Says(text="hi", breaks=Break(after=2, how="hang"))
    begun = time.monotonic()
    assert (await ask(client, server, STREAMED, seconds=0.5)).text == "hi"
    assert time.monotonic() - begun < 1


# What goes wrong.

RUBBISH = [
    b"", b"<html>502 Bad Gateway</html>", b"\xff\xfe\xfa", b"[" * 100_000, b"null", b"[]", b'"text"', b"{}",
    b"7" * 5000, b'{"choices": null}', b'{"choices": []}', b'{"choices": [null]}', b'{"choices": {}}',
    b'{"choices": [{}]}',
    b'{"choices": [{"message": "hi"}]}', b'{"choices": [{"message": {"content": null}}]}',
    b'{"choices": [{"message": {"content": 7}, "finish_reason": "stop"}]}',
    b'{"choices": [{"message": {"content": "", "tool_calls": [{"function": "f"}]}}]}',
    b'{"choices": [{"message": {"content": "half"}, "finish_reason": "error"}]}',
    b'{"error": "refused: x"}', b'{"error": {"message": "refused: x", "code": "busy"}}',
]  # fmt: skip


@both
@pytest.mark.parametrize("body", RUBBISH, ids=lambda body: ascii(body[:40]))
async def test_rubbish_is_broken(client, server, how, body):
    server.default = Sends(body=body)
    error = await refused(client, server, how)
    assert error.cause == "broken"
    assert str(error).startswith("The provider near ")


@pytest.mark.parametrize("body", RUBBISH[1:], ids=lambda body: ascii(body[:40]))
async def test_rubbish_in_a_stream_is_broken(client, server, body):
    server.default = streamed(b"data: " + body + b"\n\n", DONE)
    assert (await refused(client, server, STREAMED)).cause == "broken"


async def test_a_page_in_the_place_of_a_stream(client, server):
    server.default = Sends(body=b"<html>\n<p>502</p>\n</html>", content_type="text/html")
    assert (await refused(client, server, STREAMED)).cause == "broken"


@pytest.mark.parametrize(
    ("how", "answer"),
    [
        (WHOLE, Sends(body=b"x" * 10_000_000)),
        (WHOLE, Sends(body=b"[{}," * 2_500_000, in_chunks=True)),
        (STREAMED, streamed(b"x" * 10_000_000)),
        (STREAMED, streamed(b"data: " + b"x" * 10_000_000)),
        (STREAMED, streamed(b": noise\n\n" * 1_000_000)),
        (STREAMED, streamed(b"data: x\n" * 1_000_000)),
        (WHOLE, Fails(status=500, body=b"x" * 10_000_000)),
        (STREAMED, Fails(status=500, body=b'{"error": ' * 1_000_000)),
    ],
)
async def test_ten_megabytes_of_noise_stop_nothing(client, server, how, answer):
    server.default = answer
    await ask_for_nothing(client, server)
    longest = asyncio.ensure_future(longest_pause())
    assert (await refused(client, server, how)).cause == "broken"
    longest.cancel()
    assert await longest < 0.25


async def ask_for_nothing(client, server) -> None:
    """So that what is loaded once is loaded."""
    script, server.default = server.default, "ready"
    await ask(client, server)
    server.default = script


async def longest_pause() -> float:
    """The longest time for which the loop did not come round, until it is cancelled."""
    longest, last = 0.0, time.monotonic()
    try:
        while True:
            await asyncio.sleep(0.001)
            longest, last = max(longest, time.monotonic() - last), time.monotonic()
    except asyncio.CancelledError:
        return longest


async def test_arguments_without_end_are_broken(client, server):
    call = event({"tool_calls": [fragment("x" * 500_000, index=0, id="a", name="f")]})
    server.default = streamed(*[call] * 5)
    assert (await refused(client, server, STREAMED)).cause == "broken"


@both
@pytest.mark.parametrize(
    ("status", "cause", "advice"),
    [
        (400, "refused", "model_id"), (401, "refused", "NEAR_KEY"), (402, "refused", "credit"),
        (403, "refused", "NEAR_KEY"), (404, "refused", "base_url"), (408, "timeout", "later"),
        (413, "refused", "too long"), (422, "refused", "model_id"), (429, "limited", "limit"),
        (500, "broken", "later"), (502, "broken", "later"), (503, "broken", "later"), (504, "timeout", "later"),
    ],
)  # fmt: skip
async def test_a_status_has_a_cause_and_advice(client, server, how, status, cause, advice):
    server.default = Fails(status=status)
    error = await refused(client, server, how)
    assert error.cause == cause
    assert f"answers with HTTP {status}: " in str(error)
    assert advice in str(error)
    assert len(server.requests) == 1


@both
async def test_a_status_told_in_a_body_has_a_cause_too(client, server, how):
    server.default = Sends(body=b'{"error": {"code": 429, "message": "refused: slow down"}}')
    assert (await refused(client, server, how)).cause == "limited"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "0"}, 0),
        ({"retry-after": "-3"}, 0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": format_datetime(START + timedelta(seconds=30), usegmt=True)}, 30),
        ({"retry-after": format_datetime(START - timedelta(days=1), usegmt=True)}, 0),
        ({"retry-after": "Wed, 99 Foo 2024"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({}, None),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
async def test_how_long_it_asks_to_be_left_alone(client, server, status, headers, seconds):
    server.default = Fails(status=status, headers=headers)
    assert (await refused(client, server)).wait_seconds == seconds


@both
async def test_nobody_there_is_unreachable(client, server, how):
    await server.stop()
    error = await refused(client, server, how)
    assert error.cause == "unreachable"
    assert "base_url" in str(error)


@both
@pytest.mark.parametrize("host", ["nowhere.invalid", "999.999.999.999", "-"])
async def test_a_name_that_leads_nowhere_is_not_fatal(client, how, host):
    class Nowhere:
        url = f"http://{host}:1/v1"

    assert (await refused(client, Nowhere, how)).cause in ("unreachable", "refused")


@both
@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (Drops(), "dropped"),
        (Says(breaks=Break(how="drop")), "dropped"),
        (Says(breaks=Break(how="inside")), "dropped"),
        (Says(breaks=Break(how="hang")), "timeout"),
        (Hangs(), "timeout"),
        (Says(after=30), "timeout"),
        (Fails(status=500, after=30), "timeout"),
    ],
    ids=str,
)
async def test_what_breaks_off_or_never_comes(client, server, how, answer, cause):
    server.default = answer
    await ask_for_nothing(client, server)
    begun = time.monotonic()
    assert (await refused(client, server, how, seconds=SOON)).cause == cause
    assert time.monotonic() - begun < SOON + 0.5


async def test_an_answer_that_ends_too_early(client, server):
    server.default = Says(breaks=Break(how="end"))
    assert (await refused(client, server, WHOLE)).cause == "broken"
    assert (await refused(client, server, STREAMED)).cause == "dropped"


async def test_the_time_of_a_whole_answer_counts_from_its_beginning_to_its_end(client, server):
    body = b" " * 60_000 + json.dumps({"choices": []}).encode()
    server.default = Sends(body=body * 30, in_chunks=True, after=SOON * 0.9)
    await ask_for_nothing(client, server)
    begun = time.monotonic()
    await refused(client, server, seconds=SOON)
    assert time.monotonic() - begun < SOON + 0.3


async def test_the_time_of_a_stream_counts_from_piece_to_piece(client, server):
    server.default = Says(pieces=["a"] * 6, between=0.15)
    await ask_for_nothing(client, server)
    assert (await ask(client, server, STREAMED, seconds=0.5)).text == "a" * 6


async def test_thoughts_are_a_sign_of_life_but_comments_are_none(client, server):
    server.default = Says(pieces=["", "", "", "", "a"], extra={"reasoning": "hm"}, between=0.15)
    await ask_for_nothing(client, server)
    assert (await ask(client, server, STREAMED, seconds=0.5)).text == "a"
    server.default = Says(pieces=["", "", "", "", "a"], between=0.15)
    assert (await refused(client, server, STREAMED, seconds=0.5)).cause == "timeout"


async def until_left(server: ModelServer) -> float:
    """When the server saw the client leave."""
    for _ in range(200):
        if server.requests and server.requests[-1].left_at is not None:
            return server.requests[-1].left_at
        await asyncio.sleep(0.005)
    raise AssertionError("the client holds the connection")


@both
@pytest.mark.parametrize("answer", [Hangs(), Says(breaks=Break(how="hang"))], ids=str)
async def test_cancelling_ends_the_request_at_once(client, server, how, answer):
    server.default = answer
    call = asyncio.ensure_future(ask(client, server, how, seconds=60))
    await asyncio.sleep(0.2)
    assert server.requests
    at = asyncio.get_running_loop().time()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await until_left(server) - at < 0.1
    assert server.open_connections == 0


async def test_closing_the_stream_ends_the_request_at_once(client, server):
    server.default = Says(pieces=["a"] * 1000, between=0.01)
    async with aclosing(client.stream(offer(server), ASKED, key=KEY, timeout_seconds=60)) as pieces:
        assert isinstance(await anext(pieces), ChatPiece)
        at = asyncio.get_running_loop().time()
    assert await until_left(server) - at < 0.1


@both
async def test_connections_are_used_again_and_closed_in_the_end(server, how):
    client = open_chat(clock=FrozenClock())
    for _ in range(3):
        await ask(client, server, how)
    assert server.connections == 1
    await client.close()
    await client.close()
    for _ in range(100):
        if not server.open_connections:
            return
        await asyncio.sleep(0.005)
    raise AssertionError("a connection leaks")


async def test_many_at_once(client, server):
    server.answer = lambda asked: asked.prompt
    requests = [ChatRequest(messages=[{"role": "user", "content": f"第 {n} 个"}]) for n in range(40)]
    answers = await asyncio.gather(*(ask(client, server, (WHOLE, STREAMED)[n % 2], r) for n, r in enumerate(requests)))
    assert [answer.text for answer in answers] == [f"第 {n} 个" for n in range(40)]


@pytest.mark.parametrize("key", ["密钥", "sk-1\nHost: elsewhere", "sk-1\x00"])
async def test_a_key_that_fits_no_header_is_refused_before_anything_is_sent(client, server, key):
    with pytest.raises(ModelUnavailable, match="NEAR_KEY must be printable ASCII") as caught:
        await ask(client, server, key=key)
    assert caught.value.cause == "refused"
    assert key not in "".join(traceback.format_exception(caught.value))
    assert server.requests == []


@both
async def test_neither_key_nor_prompt_nor_answer_is_logged(client, server, how, caplog):
    caplog.set_level(logging.DEBUG)
    server.script = [Fails(status=401), Fails(status=500), Drops(), Sends(body=b"refused: x"), Says(text="geheim")]
    for _ in range(4):
        await refused(client, server, how)
    await ask(client, server, how)
    told = caplog.text.replace("\\u79c1\\u4e8b", "私事")
    assert not [secret for secret in (KEY, "private", "私事", "geheim", "refused:") if secret in told]


def test_the_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    assert not can_chat()
    with pytest.raises(InvalidInput, match=r"pip install 'roomlore\[openai\]'"):
        open_chat(clock=FrozenClock())


def test_the_package_is_loaded_late():
    code = (
        "import sys; from roomlore.adapters import chat; chat.open_chat(clock=None); sys.exit('openai' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
