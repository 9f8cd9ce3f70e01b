"""Streams of events: they begin with a proper answer, go no faster than the client, and end with it."""

import asyncio
import json
import time
from collections.abc import Callable

import pytest

from roomlore.core.errors import NotFound
from roomlore_server.http.event_stream import PING, EventStream, event

SECONDS = 30
SCOPE = {"type": "http", "asgi": {"spec_version": "2.3"}}


class Client:
    """One who takes what is sent, as fast as it may, until it leaves."""

    def __init__(self, *, stalls_at: int | None = None) -> None:
        self.taken: list[bytes] = []
        self.sent = 0
        self.ended = False
        self.leaves = asyncio.Event()
        self._stalls_at = stalls_at

    async def receive(self) -> dict:
        await self.leaves.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict) -> None:
        self.sent += 1
        if self._stalls_at is not None and len(self.taken) >= self._stalls_at:
            await asyncio.Event().wait()
        if message["type"] == "http.response.body" and message["body"]:
            self.taken.append(message["body"])
        self.ended |= message["type"] == "http.response.body" and not message["more_body"]


class Source:
    """More events than anyone takes, and whether their maker could put its things in order."""

    def __init__(self, *, pause: float = 0.0) -> None:
        self.made = 0
        self.in_order = False
        self._pause = pause

    async def events(self):
        try:
            while self.made < 20_000:
                self.made += 1
                yield b"%d" % self.made
                await asyncio.sleep(self._pause)
        finally:
            await asyncio.sleep(0.02)
            self.in_order = True


async def soon(met: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not met():  # noqa: ASYNC110 - the client tells nobody
            await asyncio.sleep(0.001)


def explain(error: Exception) -> bytes:
    return f"broke off: {error}".encode()


async def send(events, client: Client) -> None:
    await EventStream(events, last=explain)(SCOPE, client.receive, client.send)


async def several(*parts, breaks: Exception | None = None):
    for part in parts:
        yield part
    if breaks is not None:
        raise breaks


async def test_no_events_end_at_once(monkeypatch):
    monkeypatch.setattr(EventStream, "moment_seconds", 2 * SECONDS)
    client = Client()
    await asyncio.wait_for(send(several(), client), SECONDS)
    assert (client.taken, client.ended) == ([], True)


async def test_events_then_the_end():
    client = Client()
    await send(several(b"a", b"b", b"c"), client)
    assert (client.taken, client.ended) == ([b"a", b"b", b"c"], True)


@pytest.mark.parametrize("before", [(), (b"start",)])
async def test_what_comes_in_the_place_of_the_first_events_is_raised_before_anything_is_sent(before):
    client = Client()
    with pytest.raises(NotFound, match="no such model"):
        await send(several(*before, breaks=NotFound("no such model")), client)
    assert client.sent == 0


async def test_what_comes_later_is_the_last_event():
    client = Client()
    await send(several(b"a", b"b", breaks=NotFound("gone")), client)
    assert (client.taken, client.ended) == ([b"a", b"b", b"broke off: gone"], True)


async def test_a_client_that_takes_nothing_lets_nothing_pile_up():
    source, client = Source(), Client(stalls_at=3)
    answering = asyncio.ensure_future(send(source.events(), client))
    await asyncio.sleep(0.1)
    assert source.made <= 7
    client.leaves.set()
    await asyncio.wait_for(answering, SECONDS)
    assert source.in_order


@pytest.mark.parametrize("pause", [0.0, 60.0])
async def test_a_client_that_leaves_ends_the_work_and_its_end_is_waited_for(pause):
    source, client = Source(pause=pause), Client()
    answering = asyncio.ensure_future(send(source.events(), client))
    await asyncio.sleep(0.05)
    made = source.made
    client.leaves.set()
    await asyncio.wait_for(answering, SECONDS)
    assert source.in_order
    await asyncio.sleep(0.02)
    assert source.made <= made + 9


async def test_a_client_that_stalls_for_long_is_taken_for_gone(monkeypatch):
    monkeypatch.setattr(EventStream, "patience_seconds", 0.05)
    source, client = Source(), Client(stalls_at=1)
    await asyncio.wait_for(send(source.events(), client), SECONDS)
    assert source.in_order


async def test_a_request_that_is_cancelled_ends_the_work_too():
    source, client = Source(), Client()
    answering = asyncio.ensure_future(send(source.events(), client))
    await soon(lambda: bool(client.taken))
    answering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await answering
    assert source.in_order


async def test_the_first_event_goes_out_though_the_second_takes_long(monkeypatch):
    assert EventStream.moment_seconds <= 2, "a client waits no longer for the headers while a model thinks"
    monkeypatch.setattr(EventStream, "moment_seconds", 0.01)
    source, client = Source(pause=60), Client()
    answering = asyncio.ensure_future(send(source.events(), client))
    await soon(lambda: client.taken == [b"1"])
    client.leaves.set()
    await answering


@pytest.mark.parametrize("before", [(), (b"start",)])
@pytest.mark.parametrize("how", ["cancelled", "left"])
async def test_to_wait_in_vain_for_the_first_events_can_be_broken_off(before, how):
    begun, ended, client = asyncio.Event(), asyncio.Event(), Client()

    async def silent():
        for part in before:
            yield part
        try:
            begun.set()
            await asyncio.sleep(60)
            yield b""
        finally:
            ended.set()

    waiting = asyncio.ensure_future(send(silent(), client))
    await begun.wait()
    if how == "left":
        client.leaves.set()
        await asyncio.wait_for(waiting, SECONDS)
    else:
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert ended.is_set()
    assert client.sent == 0


async def test_silence_is_filled_with_comments(monkeypatch):
    monkeypatch.setattr(EventStream, "moment_seconds", 0.01)
    monkeypatch.setattr(EventStream, "ping_seconds", 0.03)

    async def slow():
        yield b"a"
        await soon(lambda: client.taken.count(PING) >= 4)
        yield b"b"

    client, begun = Client(), time.monotonic()
    await send(slow(), client)
    assert [part for part in client.taken if part != PING] == [b"a", b"b"]
    assert client.taken.count(PING) <= (time.monotonic() - begun) / 0.03 + 1
    assert PING.startswith(b":")
    assert PING.endswith(b"\n\n")


def test_an_event_is_two_lines_whatever_its_text_holds():
    text = "".join(map(chr, (*range(0x20), 0x7F, 0x85, 0x2028, 0x2029))) + '你好 "\\ event: done 👍\ud83d'
    told = event("text", {"text": text}).decode()
    name, data, *rest = told.splitlines()
    assert (name, rest, told[-2:]) == ("event: text", [""], "\n\n")
    assert json.loads(data.removeprefix("data: ")) == {"text": text}


def test_chinese_goes_out_as_it_is():
    assert event("text", {"text": "你好"}) == 'event: text\ndata: {"text":"你好"}\n\n'.encode()
