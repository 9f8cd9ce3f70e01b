"""Asking a provider that fails: causes, advice, when calls end, and that nothing is told."""

import asyncio
import json
import logging
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import aclosing
from datetime import timedelta
from email.utils import format_datetime

import pytest
from asking_models import (
    ASKED,
    DONE,
    KEY,
    STREAMED,
    WHOLE,
    ask,
    ask_for_nothing,
    both,
    event,
    fragment,
    offer,
    refused,
    streamed,
)

from roomlore.adapters.chat import can_chat, open_chat
from roomlore.core.chat import ChatPiece, ChatRequest
from roomlore.core.errors import InvalidInput, ModelUnavailable
from roomlore_testkit import START, FrozenClock
from roomlore_testkit.case_table import all_cases
from roomlore_testkit.model_server import Break, Drops, Fails, Hangs, ModelServer, Says, Sends

SOON = 0.2
LATER = 5.0
"""More than a busy machine needs to see a connection break off."""


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
async def test_rubbish_is_broken(client, server, how):
    with all_cases() as case:
        for body in RUBBISH:
            with case(body[:40]):
                server.default = Sends(body=body)
                error = await refused(client, server, how)
                assert error.cause == "broken"
                assert str(error).startswith("The provider near ")


async def test_rubbish_in_a_stream_is_broken(client, server):
    with all_cases() as case:
        for body in RUBBISH[1:]:
            with case(body[:40]):
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


async def longest_pause() -> float:
    """The longest time of the processor for which the loop did not come round, until it is cancelled."""
    longest, last = 0.0, time.thread_time()
    try:
        while True:
            await asyncio.sleep(0.001)
            longest, last = max(longest, time.thread_time() - last), time.thread_time()
    except asyncio.CancelledError:
        return longest


async def test_thoughts_without_end_are_broken(client, server):
    server.default = streamed(*[event({"reasoning_content": "x" * 900_000})] * 20)
    assert (await refused(client, server, STREAMED)).cause == "broken"


async def test_calls_without_end_are_broken(client, server):
    server.default = streamed(
        *(event({"tool_calls": [fragment("", index=n, id=f"{n}", name="f")]}) for n in range(1200))
    )
    assert (await refused(client, server, STREAMED)).cause == "broken"


@pytest.mark.parametrize("how", [WHOLE, STREAMED])
async def test_blanks_are_no_answer(client, server, how):
    server.default = Says(pieces=[" ", "\n", "\u3000"], text=" \n\u3000")
    assert (await refused(client, server, how)).cause == "broken"


async def test_arguments_without_end_are_broken(client, server):
    call = event({"tool_calls": [fragment("x" * 500_000, index=0, id="a", name="f")]})
    server.default = streamed(*[call] * 5)
    assert (await refused(client, server, STREAMED)).cause == "broken"


STATUSES = [
    (400, "refused", "model_id"), (401, "refused", "NEAR_KEY"), (402, "refused", "credit"),
    (403, "refused", "NEAR_KEY"), (404, "refused", "base_url"), (408, "timeout", "later"),
    (413, "refused", "too long"), (422, "refused", "model_id"), (429, "limited", "limit"),
    (500, "broken", "later"), (502, "broken", "later"), (503, "broken", "later"), (504, "timeout", "later"),
]  # fmt: skip


@both
async def test_a_status_has_a_cause_and_advice(client, server, how):
    with all_cases() as case:
        for status, cause, advice in STATUSES:
            with case(status):
                asked = len(server.requests)
                server.default = Fails(status=status)
                error = await refused(client, server, how)
                assert error.cause == cause
                assert f"answers with HTTP {status}: " in str(error)
                assert advice in str(error)
                assert len(server.requests) == asked + 1


@both
async def test_a_status_told_in_a_body_has_a_cause_too(client, server, how):
    server.default = Sends(body=b'{"error": {"code": 429, "message": "refused: slow down"}}')
    assert (await refused(client, server, how)).cause == "limited"


WAITS = [
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
]


async def test_how_long_it_asks_to_be_left_alone(client, server):
    with all_cases() as case:
        for status in (429, 503):
            for headers, seconds in WAITS:
                with case(status, headers):
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
    seconds = SOON if cause == "timeout" else LATER
    begun = time.monotonic()
    assert (await refused(client, server, how, seconds=seconds)).cause == cause
    assert time.monotonic() - begun < seconds + 10


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
    assert time.monotonic() - begun < SOON + 5


async def test_the_time_of_a_stream_counts_from_piece_to_piece(client, server):
    server.default = Says(pieces=["a"] * 10, between=0.2)
    await ask_for_nothing(client, server)
    assert (await ask(client, server, STREAMED, seconds=1.5)).text == "a" * 10


async def test_thoughts_are_a_sign_of_life_but_comments_are_none(client, server):
    server.default = Says(pieces=[*[""] * 9, "a"], extra={"reasoning": "hm"}, between=0.2)
    await ask_for_nothing(client, server)
    assert (await ask(client, server, STREAMED, seconds=1.5)).text == "a"
    server.default = Says(pieces=[*[""] * 99, "a"], between=0.2)
    assert (await refused(client, server, STREAMED, seconds=1.5)).cause == "timeout"


async def soon(met: Callable[[], bool]) -> None:
    """Waits for what a server notices in its own time."""
    async with asyncio.timeout(60):
        while not met():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.005)


async def until_left(server: ModelServer) -> float:
    """When the server saw the client leave."""
    await soon(lambda: server.requests[-1].left_at is not None)
    return server.requests[-1].left_at


@both
@pytest.mark.parametrize("amid", [0, 0.2])
@pytest.mark.parametrize("answer", [Hangs(), Says(breaks=Break(how="hang"))], ids=str)
async def test_cancelling_ends_the_request_at_once(client, server, how, answer, amid):
    """Before the answer begins, or amid it."""
    server.default = answer
    call = asyncio.ensure_future(ask(client, server, how, seconds=600))
    await soon(lambda: bool(server.requests))
    await asyncio.sleep(amid)
    at = asyncio.get_running_loop().time()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await until_left(server) - at < 30
    await soon(lambda: server.open_connections == 0)


async def test_closing_the_stream_ends_the_request_at_once(client, server):
    server.default = Says(pieces=["a"] * 60_000, between=0.01)
    async with aclosing(client.stream(offer(server), ASKED, key=KEY, timeout_seconds=60)) as pieces:
        assert isinstance(await anext(pieces), ChatPiece)
        at = asyncio.get_running_loop().time()
    assert await until_left(server) - at < 30


@both
async def test_connections_are_used_again_and_closed_in_the_end(server, how):
    client = open_chat(clock=FrozenClock())
    for _ in range(3):
        await ask(client, server, how)
    assert server.connections == 1
    await client.close()
    await client.close()
    await soon(lambda: server.open_connections == 0)


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


async def test_the_server_tells_who_left_it_also_where_it_learns_that_in_writing(server):
    server.default = Says(pieces=["a" * 100_000] * 1000)
    reader, writer = await asyncio.open_connection("127.0.0.1", server._port)
    body = json.dumps({"stream": True, "messages": []}).encode()
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
    await reader.read(1)
    writer.transport.abort()
    await until_left(server)
    assert server.requests[-1].answered_at is None
