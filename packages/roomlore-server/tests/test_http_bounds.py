"""Bounds of a body: bytes, values and levels, counted while it streams in, by what the path needs."""

import asyncio
import gc
import json
import time
from collections import Counter
from itertools import product

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import roomlore
from roomlore.core.errors import InvalidInput
from roomlore_server.http import bodies, create_app
from roomlore_server.http.bodies import Bounds, JsonMeter
from roomlore_server.http.problems import Refused
from roomlore_testkit.case_table import all_cases

JSON = {"Content-Type": "application/json"}
ACCEPT = {"Accept": "application/json, text/event-stream", **JSON}
WIDE = Bounds(size=10**9, named="max_body_bytes", values=10**9, depth=10**9)

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('"\\[]{},:a茶\n', max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('"\\[]{},:茶', max_size=4), inner, max_size=4),
    max_leaves=12,
)


def depth(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth, inner), default=0)


def count(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(count, inner))


def measure(bounds: Bounds, body: bytes, cuts: list[int]) -> None:
    meter, ends = JsonMeter(bounds), sorted(cut % (len(body) + 1) for cut in cuts)
    for start, end in zip([0, *ends], [*ends, len(body)], strict=True):
        meter.take(body[start:end])


@settings(max_examples=300, deadline=None)
@given(values, st.lists(st.integers(0, 10_000), max_size=6), st.booleans())
def test_what_is_counted_is_what_a_parser_would_build(value, cuts, ascii_only):
    body = json.dumps(value, ensure_ascii=ascii_only).encode()
    measure(Bounds(len(body), "max_body_bytes", 2 * count(value), depth(value)), body, cuts)
    if depth(value):
        with pytest.raises(InvalidInput):
            measure(Bounds(len(body), "max_body_bytes", 10**9, depth(value) - 1), body, cuts)
    flat = json.dumps([1] * count(value)).encode()
    with pytest.raises(Refused):
        measure(Bounds(len(flat), "max_body_bytes", count(value) - 1, 1), flat, cuts)


@pytest.mark.parametrize("unit", [b'"', b'\\"', b'""', b'"\\', b"[", b"]", b"[],", b'{"":', b"\\", b",", b"a", b'"a,'])
def test_measuring_is_linear(unit):
    def seconds(size: int) -> float:
        began = time.process_time()
        JsonMeter(WIDE).take(unit * (size // len(unit)))
        return time.process_time() - began

    large = min(seconds(1 << 20) for _ in range(2))
    assert large < 0.1 or large < 40 * min(seconds(1 << 16) for _ in range(3))


@pytest.fixture
async def client(monkeypatch):
    monkeypatch.setattr(bodies, "SMALL_BODY_BYTES", 50_000)
    async with (
        roomlore.open("sqlite://") as lore,
        httpx.AsyncClient(transport=httpx.ASGITransport(create_app(lore)), base_url="http://localhost") as client,
    ):
        yield client


async def test_a_path_that_writes_no_messages_takes_a_small_body(client, make_message):
    text = "茶" * 30_000
    asked = await client.post("/context", json={"room_id": text})
    assert asked.status_code == 413
    assert "50000 bytes;" in asked.json()["detail"]
    assert asked.json()["type"] == "urn:roomlore:too-large"
    assert (await client.post("/messages", json=make_message(1, text=text))).status_code == 200
    assert (await client.patch("/messages/tea/m1", json={"text": text + "!"})).status_code == 200
    called = await client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": text}, headers=ACCEPT)
    assert called.status_code == 413


TOO_MANY_VALUES = [
    ("/context", b"[" + b"0," * 20_001, "more than 20000 values"),
    ("/mcp", b"[" + b"0," * 20_001, "more than 20000 values"),
    ("/messages", b"[" + b"[]," * 400_001, "more than 400000 values"),
    ("/messages", b'""' * 800_002, "more than 400000 values"),
]


async def test_values_are_counted(client):
    with all_cases() as case:
        for path, body, says in TOO_MANY_VALUES:
            with case(path, says):
                answer = await client.post(path, content=body, headers=ACCEPT)
                assert answer.status_code == 413
                assert says in answer.json()["detail"]


async def test_depth_is_known_before_the_body_is_whole(client):
    async def endless(unit: bytes, sent: list[bytes]):
        while True:
            sent.append(unit)
            yield unit

    with all_cases() as case:
        for path, unit in product(["/context", "/messages", "/mcp"], [b"[", b'{"a":', b"[[],", b'{"[": ']):
            with case(path, unit):
                sent = []
                answer = await client.post(path, content=endless(unit, sent), headers=ACCEPT)
                assert answer.status_code == 422
                assert "deeper than 32 levels" in answer.json()["detail"]
                assert len(sent) <= 40


@pytest.mark.parametrize("path", ["/context", "/messages"])
@pytest.mark.parametrize("unit", [b"[],", b"[[[1]]],", b'{"a":1},', b'"\\"",', b"1,"])
async def test_others_are_served_while_a_hostile_body_is_read(client, path, unit):
    body = b"[" + unit * (15_000_000 // len(unit)) + b"1]"
    longest = 0.0

    async def beat():
        nonlocal longest
        while True:
            began = time.process_time()
            await asyncio.sleep(0)
            longest = max(longest, time.process_time() - began)

    gc.collect()
    gc.freeze()  # what earlier tests left is not looked through again
    heart = asyncio.create_task(beat())
    answer = await client.post(path, content=body, headers=JSON)
    heart.cancel()
    assert answer.status_code == 413
    assert longest < 0.25


async def test_many_bodies_at_once_are_measured_a_piece_at_a_time(client, monkeypatch):
    """A regression: a piece of each of fifty bodies between two looks at other requests held those up for long."""
    turn, measured = 0, Counter()
    take = JsonMeter.take

    def counted(its, piece):
        measured[turn] += 1
        take(its, piece)

    async def turns():
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    monkeypatch.setattr(JsonMeter, "take", counted)
    beside = asyncio.ensure_future(turns())
    body = b'"' + b"x" * 4_000_000 + b'"'
    answers = await asyncio.gather(*(client.post("/messages", content=body, headers=JSON) for _ in range(10)))
    beside.cancel()
    assert {answer.status_code for answer in answers} == {422}
    assert measured.total() >= 600
    assert max(measured.values()) <= 2


async def test_no_garbage_is_looked_for_while_a_large_body_is_parsed(client):
    """A regression: 190,000 empty lists had Python look through all there is again and again, and held everybody up."""
    body = b'{"messages": [' + b"[]," * 190_000 + b"[]]}"
    longest = 0

    def looked(phase, info):
        nonlocal longest
        longest = max(longest, len(gc.get_objects(generation=0))) if phase == "start" else longest

    gc.callbacks.append(looked)
    try:
        answer = await client.post("/messages", content=body, headers=JSON)
        gc.collect()
    finally:
        gc.callbacks.remove(looked)
    assert answer.status_code == 422
    assert gc.isenabled()
    assert longest > 100_000
