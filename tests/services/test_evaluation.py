"""Evaluation of one's own rooms: hidden replies, questions, and what leaks."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

import roomlore
from engines import ENGINES
from roomlore.core.errors import InvalidInput, NotFound
from roomlore.core.evaluation import Share, sampled
from roomlore.core.models import Message
from roomlore.wiring import Lore

START = datetime(2026, 3, 2, 9, tzinfo=UTC)


def talk(room_id: str, pairs: int = 12) -> list[Message]:
    """Return questions of people in turn, each with a platform reply, in both languages."""
    found = []
    for n in range(pairs):
        at = START + timedelta(minutes=10 * n)
        subject = ("invoice parser", "登录页面", "coffee machine", "发布计划")[n % 4]
        asked = f"{subject} {n} 怎么样了？" if n % 2 else f"how is the {subject} {n} going?"
        told = f"{subject} {n} 明天修好" if n % 2 else f"the {subject} {n} is fixed now"
        found += [
            Message(id=f"q{n}", room_id=room_id, sender_id=f"a{n % 3}", text=asked, sent_at=at),
            Message(
                id=f"r{n}",
                room_id=room_id,
                sender_id=f"b{n % 2}",
                text=told,
                reply_to=f"q{n}",
                sent_at=at + timedelta(minutes=1),
            ),
        ]
    return found


@pytest.fixture(params=ENGINES)
async def lore(request: pytest.FixtureRequest) -> AsyncIterator[Lore]:
    async with roomlore.open(request.getfixturevalue(request.param), background=False) as opened:
        yield opened


async def test_replies_are_hidden_and_nothing_is_written(lore: Lore) -> None:
    await lore.messages.add([*talk("team"), *talk("other", 3)])
    before = [await lore.messages.get("team", f"r{n}") for n in range(12)]
    report = await lore.evaluation.run(["team"])
    (room,) = report.rooms
    assert (room.room_id, room.messages, room.replies, room.found.cases) == ("team", 24, 12, 12)
    assert room.found.hits >= 10
    assert room.window.hits == 12
    assert 0 < room.tokens < room.window_tokens
    assert [await lore.messages.get("team", f"r{n}") for n in range(12)] == before
    assert [one.room_id for one in (await lore.evaluation.run()).rooms] == ["other", "team"]


async def test_a_hidden_reply_is_not_known(lore: Lore) -> None:
    """A reply to something that nothing but the platform connects with it is not found."""
    lines = [
        Message(
            id=f"n{n}",
            room_id="r",
            sender_id=f"p{n % 9}",
            text=f"topic{n} word{n}",
            sent_at=START + timedelta(minutes=n),
        )
        for n in range(40)
    ]
    far = Message(id="far", room_id="r", sender_id="z", text="ja", reply_to="n0", sent_at=START + timedelta(hours=9))
    await lore.messages.add([*lines, far])
    (room,) = (await lore.evaluation.run(["r"])).rooms
    assert (room.found.hits, room.window.hits, room.found.cases) == (0, 0, 1)


async def test_a_sample_depends_on_the_seed_alone(lore: Lore) -> None:
    await lore.messages.add(talk("team", 30))
    one, again = [await lore.evaluation.run(["team"], sample=5, seed=7) for _ in range(2)]
    assert one.rooms == again.rooms
    assert one.rooms[0].found.cases == 5
    assert sampled(range(1, 100), 5, 1, "team") != sampled(range(1, 100), 5, 2, "team")


async def test_questions_are_answered_by_ids_or_words(lore: Lore) -> None:
    await lore.messages.add(talk("team"))
    report = await lore.evaluation.run(
        ["team"],
        questions=[
            {"question": "invoice parser 4", "room_id": "team", "answers": ["r4"]},
            {"question": "发布计划什么时候修好", "viewer": "room:team", "words": ["发布计划", "明天"]},
            {"question": "who ate the cake?", "room_id": "team", "answers": ["nothing"]},
        ],
    )
    assert report.asked is not None
    assert report.asked.recall["10"] == Share(hits=2, cases=3)
    assert report.asked.missed == ("who ate the cake?",)
    assert report.asked.contexts == Share(hits=0, cases=0)


async def test_questions_that_a_message_asks_are_answered_by_its_context(lore: Lore) -> None:
    await lore.messages.add(talk("team"))
    report = await lore.evaluation.run(
        ["team"],
        questions=[
            {"question": "invoice parser 4", "room_id": "team", "message_id": "r4", "answers": ["q4"]},
            {"question": "invoice parser 4", "room_id": "team", "message_id": "r4", "answers": ["r9"]},
            {"question": "invoice parser 4", "room_id": "team", "answers": ["r4"]},
        ],
    )
    assert report.asked is not None
    assert report.asked.contexts == Share(hits=1, cases=2)
    assert report.asked.context_tokens > 0
    with pytest.raises(NotFound):
        await lore.evaluation.run(
            ["team"], questions=[{"question": "x", "room_id": "team", "message_id": "nowhere", "answers": ["r4"]}]
        )
    with pytest.raises(InvalidInput, match="message_id"):
        await lore.evaluation.run(
            ["team"], questions=[{"question": "x", "viewer": "room:team", "message_id": "r4", "answers": ["r4"]}]
        )


async def test_what_a_viewer_must_not_be_shown(lore: Lore) -> None:
    await lore.messages.add(talk("team"))
    await lore.messages.add(
        [Message(id="1", room_id="den", sender_id="eve", text="the vault code is 4711", sent_at=START)]
    )
    await lore.memories.add("user:eve", "eve keeps the vault code 4711")
    hidden = [{"text": "vault code", "viewer": "room:team"}]
    report = await lore.evaluation.run(["team"], forbidden=hidden)
    assert [leak.where for leak in report.leaks] == ["memories, user:eve"], "a fact without evidence is for all"
    await lore.rooms.set_kind("den", "public")
    report = await lore.evaluation.run(["team"], forbidden=hidden)
    assert {leak.where for leak in report.leaks} == {"memories, user:eve", "search, room den", "digest, room den"}


@pytest.mark.parametrize("scope", ["agent:bot", "user:从没说过话的人"])
async def test_memories_of_agents_and_of_people_who_never_spoke_are_looked_at(lore: Lore, scope: str) -> None:
    await lore.messages.add(talk("team"))
    await lore.memories.add(scope, "保险箱的密码是 4711", kind="short" if scope == "agent:bot" else "fact")
    hidden = [{"text": "密码是 4711", "viewer": "room:team"}]
    report = await lore.evaluation.run(["team"], forbidden=hidden)
    assert [leak.where for leak in report.leaks] == [f"memories, {scope}"]


async def test_bad_input_says_what_to_do(lore: Lore) -> None:
    await lore.messages.add(talk("team", 2))
    with pytest.raises(NotFound):
        await lore.evaluation.run(["nowhere"])
    for given in (
        {"questions": [{"question": "x", "room_id": "team"}]},
        {"questions": [{"question": "x", "answers": ["m"]}]},
        {"questions": [{"question": " ", "room_id": "team", "answers": ["m"]}]},
        {"questions": [{"question": "x", "room_id": "team", "answers": "m"}]},
        {"forbidden": [{"text": "x"}]},
        {"forbidden": [{"text": "x", "viewer": "anna"}]},
        {"sample": 0},
    ):
        with pytest.raises(InvalidInput):
            await lore.evaluation.run(["team"], **given)  # type: ignore[arg-type]


def test_a_share_without_cases_has_no_value() -> None:
    assert (Share(hits=0, cases=0).value, Share(hits=0, cases=0).interval) == (None, None)
    assert Share(hits=90, cases=100).interval == pytest.approx((0.826, 0.945), abs=0.001)
    assert str(Share(hits=90, cases=100)) == "90.0% (83–94)"
    assert str(Share(hits=0, cases=0)) == "–"
