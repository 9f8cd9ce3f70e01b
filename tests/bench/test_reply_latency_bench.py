"""The bench of replies: both servers are asked the same in turn, and only what ended well is counted."""

import json
from argparse import Namespace

import httpx
import pytest
from bench.reply_latency import ROOMS, WAYS, Side, answering, reply, talk, tell, warm

from roomlore_testkit.model_server import Asked, ModelServer

STREAM = b"event: start\ndata: {}\n\nevent: text\ndata: {}\n\nevent: %s\ndata: {}\n\n"


def asked(model: str) -> Asked:
    return Asked(path="", headers={}, body={"model": model}, at=0)


@pytest.fixture
def sides():
    """Servers that note what they are asked in the order of `asks`."""
    asks: list[tuple[str, dict]] = []

    def made(way: str) -> Side:
        def handle(request: httpx.Request) -> httpx.Response:
            asks.append((way, json.loads(request.content)["message"]))
            return httpx.Response(200, content=STREAM % b"done")

        return Side(httpx.Client(transport=httpx.MockTransport(handle), base_url="http://x"))

    found = {way: made(way) for way in WAYS}
    yield found, asks
    for one in found.values():
        one.client.close()


def test_both_are_asked_the_same_in_turn_and_those_that_make_a_memory_due_are_known(sides):
    servers, asks = sides
    talk(servers, 4 * ROOMS, every=2)
    for way in WAYS:
        assert (len(servers[way].first), len(servers[way].due)) == (4 * ROOMS, 2 * ROOMS)
    assert [way for way, _ in asks[:4]] == [*WAYS, *reversed(WAYS)]
    assert all(one[1] == other[1] for one, other in zip(asks[::2], asks[1::2], strict=True))
    assert len({message["room_id"] for _, message in asks}) == ROOMS


def test_it_begins_once_a_summary_hangs(sides, monkeypatch):
    servers, asks = sides
    model = ModelServer()
    monkeypatch.setattr("bench.reply_latency.time.sleep", lambda _: model.requests.append(asked("summary")))
    warm(servers, model, every=3)
    assert (len(asks), len(model.requests)) == (6, 1)


def test_summaries_hang_and_answers_do_not():
    answer = answering(10)
    assert answer(asked("summary")).after == 10
    assert answer(asked("chat")).after == 0


def test_the_table_shows_medians_and_their_ratio(capsys):
    model = ModelServer()
    model.requests += [asked("summary"), asked("chat")]
    servers = {
        way: Side(None, first=[unit] * 4, whole=[2 * unit] * 4, due=[3 * unit] * 4)
        for way, unit in (("hanging", 0.010), ("off", 0.008))
    }
    tell(servers, model, Namespace(replies=4, every=5, hang=10.0))
    told = capsys.readouterr().out
    assert "meanwhile: 1, each of which hangs 10 s" in told
    assert "| to its first words | 10.00 [10.00, 10.00] | 8.00 [8.00, 8.00] | 1.25 |" in told
    assert told.splitlines()[-1].startswith("| to its end, where it makes a memory due | 30.00")


def test_a_reply_that_does_not_end_well_stops_the_bench():
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=STREAM % b"error"))
    with httpx.Client(transport=transport, base_url="http://x") as client, pytest.raises(SystemExit, match="error"):
        reply(client, "tea", 1, "?")
