"""Asking a provider over the wire: what is sent, and how answers are read."""

import json
import time
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from asking_models import ASKED, DONE, KEY, PROMPT, STREAMED, ask, both, event, fragment, offer, streamed

from roomlore.adapters.chat.client import data
from roomlore.core.chat import ChatAnswer, ChatRequest, ToolCall, Usage
from roomlore.core.errors import InvalidInput
from roomlore_testkit.case_table import all_cases
from roomlore_testkit.model_server import Break, Says, Sends

CALL = ToolCall("call_a", "find_tea", '{"名": "茶", "n": 2}')


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


async def test_the_options_of_an_offer_are_sent_unless_the_request_gives_others(client, server):
    there = replace(offer(server), options={"enable_thinking": False, "top_p": 0.2})
    await client.complete(there, replace(ASKED, options={"top_p": 0.1}), key=KEY, timeout_seconds=5)
    body = server.requests[0].body
    assert (body["enable_thinking"], body["top_p"], body["model"]) == (False, 0.1, "tiny")


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


@pytest.mark.parametrize("value", [float("nan"), object(), b"x"], ids=["nan", "object", "bytes"])
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


REASONS = [
    ("stop", "stop"), ("length", "length"), ("content_filter", "content_filter"), ("max_tokens", "length"),
    ("tool_calls", "tool_calls"), ("function_call", "tool_calls"), ("eos", None), ({}, None), (7, None),
]  # fmt: skip


@both
async def test_why_it_stopped(client, server, how):
    with all_cases() as case:
        for said, understood in REASONS:
            with case(said):
                server.default = Says(finish_reason=said)
                assert (await ask(client, server, how)).finish_reason == understood


@both
@pytest.mark.parametrize("reason", ["length", "content_filter"])
async def test_an_answer_may_be_empty_where_it_says_why(client, server, how, reason):
    server.default = Says(content=None, finish_reason=reason)
    assert (await ask(client, server, how)).finish_reason == reason


USAGES = [
    ({"prompt_tokens": 2, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 1}}, Usage(2, 1)),
    ({"input_tokens": 2, "output_tokens": 1}, Usage(2, 1)),
    ({"prompt_tokens": 2.0}, Usage(2, 0)),
    (None, Usage()),
    ([], Usage()),
    ("many", Usage()),
    ({"prompt_tokens": -1, "completion_tokens": "3"}, Usage()),
    ({"prompt_tokens": True, "completion_tokens": 10**30}, Usage()),
    ({"prompt_tokens": float("nan"), "completion_tokens": float("inf")}, Usage()),
]


@both
async def test_usage_is_read_leniently(client, server, how):
    with all_cases() as case:
        for usage, understood in USAGES:
            with case(usage):
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
    assert time.monotonic() - begun < 10
