"""What would be wrong in a soak is seen; `make soak` runs it, since it kills processes for minutes."""

from datetime import UTC, datetime

import pytest
from bench.soak import compared
from bench.soak_load import BROKEN, NOT_STORED, PAUSES_SECONDS, SETTLES_SECONDS, Load, Outage, outcome_of_reply

from roomlore.core.models import Role, StoredMessage
from roomlore.core.replies.reply import BROKEN_OFF, REPLY


def stored(number: int, *, text: str = "x", reply_to: str | None = None, broken: str = "") -> StoredMessage:
    kept = {REPLY: {"finish_reason": "stop", BROKEN_OFF: broken}} if reply_to else {}
    return StoredMessage(
        id=str(number),
        room_id="tea",
        sender_id="ann",
        text=text,
        role=Role.ASSISTANT if reply_to else Role.USER,
        sent_at=datetime(2026, 3, 2, tzinfo=UTC),
        reply_to=reply_to,
        metadata=kept,
        arrival=number + 1,
    )


def test_what_is_lost_doubled_or_different_is_seen():
    expected = {("tea", "1"): "x", ("tea", "2"): "x"}
    assert compared([stored(1), stored(2)], expected, set()) == []
    assert compared([stored(1)], expected, set()) == ["('tea', '2') is lost"]
    assert compared([stored(1), stored(2), stored(2)], expected, set()) == ["('tea', '2') is there 2 times"]
    assert compared([stored(1), stored(2, text="y")], expected, set()) == ["('tea', '2') has another text"]
    assert compared([stored(1), stored(2), stored(3)], expected, set()) == ["('tea', '3') was never acknowledged"]


def test_a_message_has_one_whole_reply():
    expected, asked = {("tea", "1"): "x"}, {"1"}
    broken, whole, again = (stored(number, reply_to="1", broken=why) for number, why in ((2, "left"), (3, ""), (4, "")))
    assert compared([stored(1), broken, whole], expected, asked) == []
    assert compared([stored(1), whole, again], expected, asked) == ["1 has 2 replies"]


@pytest.mark.parametrize(
    ("part", "told", "since", "is_error"),
    [
        ("PostgreSQL", "503", 0.0, False),
        ("PostgreSQL", "500", 0.0, True),
        ("PostgreSQL", BROKEN, 0.0, True),
        ("server", BROKEN, 0.0, False),
        ("server", "timed out", 0.0, True),
        ("model", "503 in a reply", 0.0, False),
        ("model", "500 in a reply", 0.0, True),
        ("Redis", "503", SETTLES_SECONDS + 1, True),
        ("model", "503 in a reply", SETTLES_SECONDS + 1, False),
        ("model", "503 in a reply", SETTLES_SECONDS + PAUSES_SECONDS + 1, True),
    ],
)
def test_only_what_an_outage_explains_is_no_error(part, told, since, is_error):
    load = Load(0)
    load.outages.append(Outage(part, 0.0, back=100.0))
    load.refused("add", told, 100.0 + since)
    assert bool(load.errors) is is_error
    assert load.outages[0].told.total() == (not is_error)


@pytest.mark.parametrize(
    "body", [b'{"detail":"it is full"}', b'event: error\ndata: {"status":503,"detail":"it is full"}\n\n']
)
def test_an_error_is_told_with_its_reason(body):
    load = Load(0)
    load.refused("reply", "503", 1.0, body)
    load.refused("reply", "503", 1.0, b"<html>")
    assert (load.errors, load.reasons) == (["reply: 503"] * 2, {"reply: 503": "it is full"})


def test_a_reply_is_acknowledged_by_its_last_event():
    start = b'event: start\ndata: {}\n\n: the model is at work\n\nevent: text\ndata: {"text":"x"}\n\n'
    done = b'event: done\ndata: {"reply_id":"r","text":"x","degraded":%s}\n\n'
    assert outcome_of_reply(start + done % b"null")[0] == "200"
    assert outcome_of_reply(start + done % b'"later"') == (NOT_STORED, {})
    assert outcome_of_reply(start + b'event: error\ndata: {"status":503}\n\n') == ("503 in a reply", {})
    assert outcome_of_reply(start)[0] == BROKEN
