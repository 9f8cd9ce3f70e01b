"""Strategies compared side by side: the messages that each takes and leaves, without leaving a trace."""

from datetime import UTC, datetime, timedelta

import pytest

import roomlore
from roomlore import InvalidInput, Message, NotFound, Settings
from roomlore.core.experiments import UsageSelection

BEGIN = datetime(2024, 5, 1, 12, tzinfo=UTC)
ENGLISH = (
    ("anna", "Who comes for tea on Friday?", None),
    ("ben", "Does the build fail for anyone else?", None),
    ("carla", "I do! At what time?", "m0"),
    ("dan", "@ben yes, the linker step fails since noon", "m1"),
    ("anna", "At three, the usual place", "m2"),
    ("ben", "I think it is the new compiler flag", "m3"),
    ("carla", "Fine, I bring a cake", "m4"),
)
CHINESE = (
    ("anna", "周五谁去喝茶？", None),
    ("ben", "大家好，我这边编译失败了，还有别人也这样吗？", None),
    ("carla", "我去！几点？", "m0"),
    ("dan", "@ben 有，链接那一步从中午开始失败", "m1"),
    ("anna", "下午三点，老地方", "m2"),
    ("ben", "我觉得是新的编译参数", "m3"),
    ("carla", "好的，我带点心", "m4"),
)
both = pytest.mark.parametrize("talk", [ENGLISH, CHINESE], ids=["en", "zh"])


def said(talk) -> list[Message]:
    """Two talks in turn: about tea, and about a build."""
    return [
        Message(
            id=f"m{n}", room_id="tea", sender_id=who, text=text, sent_at=BEGIN + timedelta(minutes=n), reply_to=answered
        )
        for n, (who, text, answered) in enumerate(talk)
    ]


@both
async def test_each_strategy_says_what_it_takes_as_a_context_would(talk):
    async with roomlore.open("sqlite://") as lore:
        await lore.messages.add(said(talk))
        found = await lore.context.compare("tea", "m6")
        assert [one.strategy for one in found] == ["threaded", "weighted", "recent"]
        assert [one.in_force for one in found] == [True, False, False]
        for one in found:
            built = await lore.context.build("tea", "m6", strategy=one.strategy)
            assert [(w.message.id, w.reason) for w in one.taken] == [(c.message.id, c.reason) for c in built.messages]
            assert [w.score or 0.0 for w in one.taken] == [c.score for c in built.messages]
            assert (one.tokens, one.window_tokens) == (built.tokens, built.window_tokens)


@both
async def test_what_was_left_is_there_with_the_reason(talk):
    settings = Settings(relevance_threshold=0.99, min_context_messages=0)
    async with roomlore.open("sqlite://", settings=settings) as lore:
        await lore.messages.add(said(talk))
        threaded, weighted, recent = await lore.context.compare("tea", "m6")
        left = {one.message.id: one.left for one in threaded.weighed}
        assert [left[f"m{n}"] for n in (0, 2, 4)] == ["", "", ""]
        assert {left[f"m{n}"] for n in (1, 3, 5)} <= {"unlikely", "unseen"}
        assert {one.left for one in weighted.weighed} == {"below"}
        assert weighted.threshold == 0.99
        assert all(one.signals is not None and one.score < 0.99 for one in weighted.weighed)
        assert [one.message.id for one in recent.taken] == [f"m{n}" for n in range(6)]


async def test_with_room_for_one_the_next_is_crowded_out():
    async with roomlore.open("sqlite://", settings=Settings(relevance_threshold=0.0)) as lore:
        await lore.messages.add(said(ENGLISH))
        _, weighted, recent = await lore.context.compare("tea", "m6", max_messages=1)
        assert sorted(one.left for one in weighted.weighed) == ["", *["crowded"] * 5]
        assert [one.message.id for one in recent.weighed] == ["m5"]


def counted(lore) -> list[bytes]:
    return [line for line in lore.prometheus().splitlines() if line.startswith(b"roomlore_context")]


async def test_looking_leaves_no_trace():
    async with roomlore.open("sqlite://") as lore:
        await lore.messages.add(said(ENGLISH))
        before = counted(lore)
        await lore.context.compare("tea", "m6")
        assert counted(lore) == before
        async with lore.storage.reading(lore.tenant) as work:
            assert await work.usage.page(selection=UsageSelection(), after=None, limit=5) == []


async def test_what_is_not_there_is_not_found():
    async with roomlore.open("sqlite://") as lore:
        await lore.messages.add(said(ENGLISH))
        for room, message in (("none", None), ("tea", "none")):
            with pytest.raises(NotFound):
                await lore.context.compare(room, message)
        with pytest.raises(InvalidInput):
            await lore.context.compare("tea", "m6", max_messages=0)


ASKED = (
    ("anna", "The spare key of the boat house is under the blue flower pot", None),
    *(
        ("ben", f"{word} for me please", None)
        for word in ["tea", "milk", "rice", "soap", "bread", "salt", "fish", "corn", "oil", "flour"] * 2
    ),
    ("ben", "Where did Anna say the spare key of the boat house is?", None),
)


def asked_later() -> list[Message]:
    return [
        Message(id=f"m{n}", room_id="tea", sender_id=who, text=text, sent_at=BEGIN + timedelta(days=n))
        for n, (who, text, _) in enumerate(ASKED)
    ]


async def test_threaded_is_shown_with_the_past_whatever_is_in_force():
    for settings in (Settings(), Settings(strategy="weighted"), Settings(enable_intelligent_memory=False)):
        async with roomlore.open("sqlite://", settings=settings) as lore:
            await lore.messages.add(asked_later())
            threaded, *_ = await lore.context.compare("tea")
            assert "m0" in [one.message.id for one in threaded.taken]


async def test_what_is_in_force_is_what_a_context_is_without_intelligent_memory():
    async with roomlore.open("sqlite://", settings=Settings(enable_intelligent_memory=False)) as lore:
        await lore.messages.add(asked_later())
        (shown,) = [one for one in await lore.context.compare("tea") if one.in_force]
        built = await lore.context.build("tea")
        assert [one.message.id for one in shown.taken] == [one.message.id for one in built.messages]
