"""Contexts are never empty: the newest messages fill them, small rooms are whole, platform threads have no end."""

from datetime import UTC, datetime, timedelta

import pytest

import roomlore
from roomlore import InvalidInput, Message, Settings
from roomlore.adapters.tokens import EncodingTokens

NINE = datetime(2026, 5, 4, 9, tzinfo=UTC)
ENGLISH = ["the lift is slow today", "cake in the kitchen", "my train is late", "heating is off", "the mug is blue"]
CHINESE = ["电梯今天很慢", "厨房里有蛋糕", "我的车晚点了", "暖气没开", "杯子是蓝色的"]
both = pytest.mark.parametrize("texts", [ENGLISH, CHINESE], ids=["en", "zh"])


def said(number: int, text: str, sender: str, **more) -> Message:
    more.setdefault("sent_at", NINE + timedelta(minutes=2 * number))
    return Message(id=f"m{number}", room_id="team", sender_id=sender, text=text, **more)


def talk(texts: list[str], count: int) -> list[Message]:
    return [said(n, texts[n % len(texts)], f"u{n % 7}") for n in range(1, count + 1)]


def late(number: int, text: str = "who brings the cards?", **more) -> Message:
    return said(number, text, "zoe", sent_at=NINE + timedelta(days=3), **more)


def ids(context: roomlore.Context) -> list[str]:
    return [one.message.id for one in context.messages]


@both
@pytest.mark.parametrize("call", ["", "@helper "])
async def test_a_context_after_a_pause_holds_the_newest_messages(lore, texts, call):
    await lore.messages.add([*talk(texts, 40), late(41, call + "who brings the cards?")])
    context = await lore.context.build("team", "m41")
    assert ids(context)[-4:] == ["m37", "m38", "m39", "m40"]
    assert len(context.messages) >= 8
    filled = [one for one in context.messages if one.reason == "recent"]
    assert filled
    likely = [one for one in context.messages if one.reason != "recent"]
    assert all(one.score <= min([other.score for other in likely], default=1.0) for one in filled)
    shares = (await lore.messages.get("team", "m41")).link.thread_candidates.by_arrival()
    assert all(one.score == shares.get(one.message.arrival, 0.0) for one in filled)


@pytest.mark.parametrize(("pause", "joined"), [(timedelta(minutes=5), True), (timedelta(seconds=20), False)])
async def test_the_newest_messages_join_a_long_talk_only_after_a_pause(lore, pause, joined):
    """A talk that holds the floor's number already is all that is shown, unless nothing was said for minutes."""
    about = [f"the boiler pressure valve drops again, step {n}" for n in range(1, 16)]
    boiler = [said(n, text, "bo" if n % 2 else "ann", reply_to=f"m{n - 1}") for n, text in enumerate(about, 1)]
    await lore.messages.add([*boiler, *(said(n, ENGLISH[n % 5], f"u{n % 7}") for n in range(16, 31))])
    goes_on = "@bo the boiler pressure valve drops again, I try the next step"
    await lore.messages.add(said(31, goes_on, "ann", sent_at=NINE + timedelta(minutes=60) + pause))
    shown = ids(await lore.context.build("team", "m31"))
    assert {f"m{n}" for n in range(6, 16)} <= set(shown), "the talk"
    assert ({f"m{n}" for n in range(23, 31)} <= set(shown)) == joined


@both
@pytest.mark.parametrize("count", [1, 2, 8, 11])
async def test_a_small_room_is_shown_whole(lore, texts, count):
    await lore.messages.add([*talk(texts, count), late(count + 1)])
    assert ids(await lore.context.build("team")) == [f"m{n}" for n in range(1, count + 1)]


async def test_the_first_message_of_a_room_has_an_empty_context(lore):
    await lore.messages.add(late(1))
    assert ids(await lore.context.build("team")) == []


async def test_the_least_number_is_set_for_a_call_a_room_and_all_rooms():
    async with roomlore.open("sqlite://", settings=Settings(min_context_messages=5)) as lore:
        await lore.messages.add([*talk(ENGLISH, 40), late(41)])

        async def shown(**limits) -> int:
            return len((await lore.context.build("team", "m41", **limits)).messages)

        without = await shown(min_messages=0)
        assert without < 5
        assert await shown() == 5
        assert await shown(min_messages=15) == 15
        assert await shown(min_messages=15, max_messages=3) == 3
        await lore.rooms.configure("team", {"min_context_messages": 11})
        assert await shown() == 11
        await lore.rooms.configure("team", {"min_context_messages": 0})
        assert await shown() == without
        with pytest.raises(InvalidInput, match="min_context_messages is -1"):
            await shown(min_messages=-1)


async def test_max_tokens_bounds_what_is_added(lore):
    await lore.messages.add([*talk(ENGLISH, 40), late(41)])
    context = await lore.context.build("team", "m41", max_tokens=60)
    assert 0 < len(context.messages) < 8
    assert EncodingTokens().count([context.to_prompt()])[0] <= 60


@pytest.mark.parametrize("between", [30, 450])
async def test_a_platform_thread_has_its_root_and_its_newest_messages_however_far(lore, between):
    thread = [said(1, "The nightly export failed with error 42", "ann")]
    thread += [said(n, f"step {n} of the repair", "bo" if n % 2 else "ann", root_id="m1") for n in range(2, 31)]
    await lore.messages.add([*thread, *(said(n, f"chatter {n}", f"u{n % 9}") for n in range(31, 31 + between))])
    await lore.messages.add(late(31 + between, "and is it fixed now?", root_id="m1"))
    context = await lore.context.build("team", f"m{31 + between}")
    assert ids(context) == ["m1", *(f"m{n}" for n in range(12, 31))]
    assert {one.score for one in context.messages} == {1.0}
    assert not any("platform reply" in one.reason for one in context.messages)
    fewer = await lore.context.build("team", f"m{31 + between}", max_messages=4)
    assert "m1" in ids(fewer)


async def test_what_fills_a_context_does_not_lower_the_mean_score(lore):
    await lore.messages.add([*talk(ENGLISH, 40), late(41)])
    await lore.context.build("team", "m41", min_messages=0)
    mean = lore.metrics()["avg_relevance_score"]
    context = await lore.context.build("team", "m41", min_messages=15)
    assert "recent" in {one.reason for one in context.messages}
    assert lore.metrics()["avg_relevance_score"] == pytest.approx(mean)


async def test_messages_that_were_deleted_leave_their_place_to_others(lore):
    await lore.messages.add([*talk(ENGLISH, 40), late(41)])
    await lore.messages.delete("team", [f"m{n}" for n in range(20, 41)])
    for limits in ({}, {"max_messages": 3}, {"min_messages": 15}):
        shown = ids(await lore.context.build("team", "m41", **limits))
        assert len(shown) >= limits.get("max_messages", limits.get("min_messages", 8))
        assert shown[-1] == "m19"


@pytest.mark.parametrize(
    "notice", [{"role": "system", "text": "u9 joined"}, {"text": ""}, {"role": "tool", "text": "{}"}]
)
async def test_notices_and_empty_messages_fill_no_context(lore, notice):
    notices = [
        Message(id=f"n{n}", room_id="team", sender_id="u9", sent_at=NINE + timedelta(hours=9), **notice)
        for n in range(30)
    ]
    await lore.messages.add([*talk(ENGLISH, 30), *notices, late(61)])
    shown = ids(await lore.context.build("team", "m61"))
    assert len(shown) == 8
    assert not [one for one in shown if one.startswith("n")]


@pytest.mark.parametrize("topic", ["exports", None])
async def test_a_topic_has_its_newest_messages_however_long_it_was_silent(lore, topic):
    other = {"topic_id": "lunch" if topic else "exports"}
    talked = [said(n, f"export step {n} failed", "bo" if n % 2 else "ann", topic_id=topic) for n in range(1, 31)]
    await lore.messages.add([*talked, *(said(n, f"export {n}?", f"u{n % 9}", **other) for n in range(31, 931))])
    await lore.messages.add(late(931, "so the export is fixed now", topic_id=topic))
    shown = ids(await lore.context.build("team", "m931"))
    assert len(shown) >= 8
    assert set(shown) <= {f"m{n}" for n in range(1, 31)}


async def test_a_context_is_filled_from_the_topic_first_and_then_from_the_room(lore):
    few = [said(n, f"export step {n}", "ann", topic_id="exports") for n in range(1, 4)]
    await lore.messages.add([*few, *(said(n, f"chatter {n}", f"u{n % 9}") for n in range(4, 100))])
    await lore.messages.add(late(100, "hello", topic_id="exports"))
    assert ids(await lore.context.build("team", "m100")) == ["m1", "m2", "m3", *(f"m{n}" for n in range(95, 100))]


async def test_the_messages_of_another_platform_thread_are_left_out(lore):
    first = [
        said(1, "the export failed", "ann"),
        *(said(n, f"export {n}", f"u{n % 3}", root_id="m1") for n in range(2, 20)),
    ]
    other = [said(20, "lunch at noon?", "cy"), said(21, "the corner place", "u1", root_id="m20")]
    await lore.messages.add([*first, *other, late(22, "is the export fixed?", root_id="m20")])
    shown = ids(await lore.context.build("team", "m22"))
    assert {"m20", "m21"} <= set(shown)
    assert set(shown) <= {"m1", "m20", "m21"}
