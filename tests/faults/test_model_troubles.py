"""Providers that do anything at all: whatever one sends, the next answers, in time, and nothing is left behind."""

import asyncio
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable

import pytest

import roomlore
from roomlore.adapters.chat import open_chat
from roomlore.core.chat import LONGEST_PAUSE_SECONDS, ChatRequest, Offer, Provider, ToolCall
from roomlore.core.errors import ModelUnavailable
from roomlore_testkit import FrozenClock
from roomlore_testkit.model_server import (
    Break,
    Drops,
    Fails,
    Hangs,
    ModelServer,
    Says,
    Sends,
    pieces,
    serve_models,
    whole,
)

ASKED = ChatRequest(messages=({"role": "user", "content": "在吗？"},))
GOOD = Says(text="我在。 I am here.", tool_calls=[ToolCall("c1", "茶", '{"n": [1, 2]}')])
TROUBLES = (
    Hangs(),
    Drops(),
    Says(breaks=Break(after=0, how="drop")),
    Says(breaks=Break(after=0, how="inside")),
    Says(breaks=Break(after=0, how="hang")),
    Says(content=None),
    Fails(status=429, headers={"retry-after": "0.05"}),
    Fails(status=503),
    Sends(body=b"\xff" * 3_000_000),
)
MINUTE = 60.0


async def soon(met: Callable[[], bool]) -> None:
    async with asyncio.timeout(MINUTE):
        while not met():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.005)


@pytest.fixture
def clock(monkeypatch) -> FrozenClock:
    """That of the roomlore opened: who is left alone stays so until the test lets time pass."""
    stands = FrozenClock()
    monkeypatch.setattr("roomlore.wiring.resources.SystemClock", lambda: stands)
    return stands


@pytest.fixture
async def servers() -> AsyncIterator[tuple[ModelServer, ModelServer]]:
    async with ModelServer() as bad, ModelServer() as good:
        yield bad, good


def settings(*servers: ModelServer, timeout_seconds: float = MINUTE) -> roomlore.Settings:
    """A model `m` at these servers in order, none of which wants a key."""
    names = [f"at{n}" for n in range(len(servers))]
    return roomlore.Settings(
        models={"m": {"providers": [{"name": name, "model_id": "tiny"} for name in names]}},
        providers={name: {"base_url": server.url} for name, server in zip(names, servers, strict=True)},
        model_timeout_seconds=timeout_seconds,
    )


async def test_the_second_answers_whatever_the_first_does(servers, clock):
    bad, good = servers
    choice = random.Random(5)
    bad.answer = lambda _: choice.choice(TROUBLES)
    good.default = "还在 still here"
    async with roomlore.open("sqlite://", settings=settings(bad, good, timeout_seconds=5)) as lore:
        calls = [lore.models.complete("m", ASKED) for _ in range(30)]
        assert {answer.provider for answer in await asyncio.gather(*calls)} == {"at1"}
        for _ in range(10):
            texts = [piece.text async for piece in lore.models.stream("m", ASKED)]
            assert "".join(texts) == "还在 still here"
        assert len(bad.requests) <= 30 + 2, "after three failures none is repeated, and no more are asked"
        told = lore.prometheus().decode()
    assert 'roomlore_model_calls_total{provider="at1",result="answered"} 40.0' in told
    await soon(lambda: (bad.open_connections, good.open_connections) == (0, 0))


async def test_a_first_provider_that_comes_and_goes_loses_no_call(servers, clock):
    flapping, good = servers
    answers = []
    async with roomlore.open("sqlite://", settings=settings(flapping, good)) as lore:

        async def flap() -> None:
            for change in (flapping.stop, flapping.start) * 6:
                await change()
                clock.advance(LONGEST_PAUSE_SECONDS)
                told = len(answers)
                await soon(lambda told=told: len(answers) > told + 1)

        flaps = asyncio.ensure_future(flap())
        while not flaps.done():
            answers.append(await lore.models.complete("m", ASKED))
        await flaps
    assert {answer.provider for answer in answers} == {"at0", "at1"}


def garbled(body: bytes, dice: random.Random) -> bytes:
    """The body with a few bytes changed, cut out, doubled or put in."""
    made = bytearray(body)
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(len(made))
        length = dice.randint(1, 40)
        change = dice.randrange(4)
        if change == 0:
            made[at] = dice.randrange(256)
        elif change == 1:
            del made[at : at + length]
        elif change == 2:
            made[at:at] = made[at : at + length]
        else:
            made[at:at] = dice.randbytes(length)
        made = made or bytearray(b"x")
    return bytes(made)


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("seed", range(3))
async def test_a_garbled_answer_is_an_answer_or_an_error_and_nothing_else(servers, streaming, seed):
    server, _ = servers
    dice = random.Random(seed)
    kind = "text/event-stream" if streaming else "application/json"
    body = b"".join(pieces(GOOD, with_usage=True)) if streaming else whole(GOOD)
    server.answer = lambda _: Sends(body=garbled(body, dice), content_type=kind, in_chunks=streaming)
    client = open_chat(clock=FrozenClock())
    there = Offer(Provider("near", server.url), "tiny")
    ends = set()
    for _ in range(150):
        try:
            if streaming:
                _ = [piece async for piece in client.stream(there, ASKED, key=None, timeout_seconds=MINUTE)]
            else:
                await client.complete(there, ASKED, key=None, timeout_seconds=MINUTE)
            ends.add("answered")
        except ModelUnavailable as error:
            ends.add(error.cause)
    await client.close()
    assert ends <= {"answered", "broken", "dropped", "limited", "refused"}
    assert {"answered", "broken"} <= ends


async def test_a_burst_of_cancelled_calls_leaves_nothing_behind(servers):
    slow, good = servers
    slow.default = Hangs()
    async with roomlore.open("sqlite://", settings=settings(slow, good)) as lore:
        calls = [asyncio.ensure_future(lore.models.complete("m", ASKED)) for _ in range(30)]
        await soon(lambda: len(slow.requests) == len(calls))
        for call in calls:
            call.cancel()
        assert all(
            isinstance(end, asyncio.CancelledError) for end in await asyncio.gather(*calls, return_exceptions=True)
        )
        await soon(lambda: slow.open_connections == 0)
        slow.default = "awake"
        assert (await lore.models.complete("m", ASKED)).text == "awake"


_ELSEWHERE = """
import asyncio, sys
import roomlore
from roomlore.core.chat import ChatRequest

async def ask(url):
    models = {"m": {"providers": [{"name": "up", "model_id": "tiny"}]}}
    settings = roomlore.Settings(models=models, providers={"up": {"base_url": url}})
    async with roomlore.open("sqlite://", settings=settings) as lore:
        request = ChatRequest(messages=[{"role": "user", "content": "谁？"}])
        print((await lore.models.complete("m", request)).text, flush=True)
        await lore.models.complete("m", request)

asyncio.run(ask(sys.argv[1]))
"""


def test_another_process_may_ask_and_be_killed_in_the_middle():
    with serve_models(["a", Hangs()]) as server:
        child = subprocess.Popen([sys.executable, "-c", _ELSEWHERE, server.url], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        assert child.stdout.readline() == "a\n"
        until(lambda: len(server.requests) == 2)
        child.kill()
        child.wait()
        child.stdout.close()
        until(lambda: server.requests[1].left_at is not None)
        assert server.requests[0].prompt == "谁？"


def until(true) -> None:
    ends = time.monotonic() + MINUTE
    while not true():
        assert time.monotonic() < ends, "it never came to that"
        time.sleep(0.005)
