"""Replies in one-to-one rooms: the conversation as a session shows it, whatever pause lies before a question; and other
rooms as they were."""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reply_rig import asks, gathered, replying
from roomlore import Lore, Message, Role
from roomlore_testkit.model_server import ModelServer

NINE = datetime(2026, 5, 4, 9, tzinfo=UTC)
PAUSES = (timedelta(minutes=1), timedelta(minutes=30), timedelta(hours=4), timedelta(days=1), timedelta(days=3))
TRIP = (
    "I want to go away for a weekend in October",
    "Nice. By train or by car?",
    "By train, and my knee is bad, so no stairs at the hotel",
    "Understood: a ground floor or a lift.",
    "What is the weather like by the sea then?",
    "About 15 degrees, and often windy.",
    "Hm, rather the mountains?",
    "There it may rain. The larches are golden, though.",
    "Golden larches sound lovely",
    "Then I would look at the valleys that a railway reaches.",
)
BREAD = (
    "My sourdough does not rise",
    "How old is the starter, and how warm is the kitchen?",
    "Two weeks. The kitchen has 17 degrees",
    "That is cool. Let it stand for longer, say 14 hours.",
    "And how much salt?",
    "Two percent of the flour.",
    "I use rye from the mill in Aldbury",
    "Rye wants more water than wheat.",
    "OK, I baked one with more water",
    "And how is it?",
    "Better, a bit flat",
    "Then bake it in a tin.",
)
JOB = (
    "下周要去面试，有点紧张",
    "是什么岗位？我可以帮你准备。",
    "后端开发，公司在苏州，面试官姓顾",
    "好的。先准备一下自我介绍吧。",
    "他们会考算法吗？",
    "一般会有一两道，链表和二分最常见。",
    "我最怕动态规划",
    "可以每天练一道，从背包问题开始。",
    "好，今天练了一道",
    "不错，明天继续。",
    "穿什么合适？",
    "整洁的衬衫就可以，不用西装。",
    "收到",
)
PLANT = (
    "我家的绿萝叶子发黄了",
    "多久浇一次水？",
    "三天一次，放在朝北的阳台",
    "浇得有点勤，土干了再浇。",
    "要施肥吗？",
    "春秋各一次薄肥就够。",
    "猫会咬叶子，我家猫叫年糕",
    "绿萝对猫有毒，最好挂高一点。",
    "啊，那我挂起来",
    "好的，观察一周再看。",
)
MIXED = (
    "帮我看一下这个 build 为什么失败",
    "把报错贴出来看看。",
    "error: linker `cc` not found，我用的是 Alpine 3.20",
    "装一下 build-base 就有 cc 了。",
    "apk add build-base 可以了",
    "好，再跑一次 cargo build。",
    "现在 test 有一个 flaky",
    "多半和时间有关，先看它用没用 sleep。",
    "用了 sleep(1)",
    "换成等待条件就稳定了。",
    "done, thanks",
)
CHATS = {
    "trip": (TRIP, "Which hotel would you book for me?", "no stairs at the hotel"),
    "bread": (BREAD, "Which flour was it again that I told you about?", "rye from the mill in Aldbury"),
    "job": (JOB, "帮我写一封给他的感谢信，怎么称呼？", "面试官姓顾"),
    "plant": (PLANT, "写个标签提醒家里人，别忘了提到它的名字", "我家猫叫年糕"),
    "mixed": (MIXED, "Dockerfile 第一行 FROM 写什么？", "Alpine 3.20"),
}


def said(texts: Sequence[str], *, room_id: str = "r", people: Sequence[str] = ("ann",)) -> list[Message]:
    """People and the bot in turns, a message a minute."""
    roles = (Role.USER, Role.ASSISTANT)
    return [
        Message(
            id=f"{room_id}{number}",
            room_id=room_id,
            sender_id="bot" if number % 2 else people[number // 2 % len(people)],
            role=roles[number % 2],
            text=text,
            sent_at=NINE + timedelta(minutes=number),
        )
        for number, text in enumerate(texts)
    ]


def answering(**more: Any) -> AbstractAsyncContextManager[tuple[Lore, ModelServer]]:
    """A model, and no short memories, which would bring words into the prompt at some time."""
    return replying(lambda _: "OK.", extract_every=0, **more)


async def prompt_of(lore: Lore, server: ModelServer, question: str, *, room_id: str = "r", **more: Any) -> str:
    """Return what the model is sent for a question, by default a day after what was said."""
    sent_at = NINE + timedelta(minutes=12) + more.pop("pause", timedelta(days=1))
    message = asks(question, more.pop("message_id", "q"), room_id=room_id, sent_at=sent_at)
    await gathered(lore, message, agent_id="bot", **more)
    return "\n".join(str(one["content"]) for one in server.requests[-1].body["messages"])


@pytest.mark.parametrize("kind", [None, "direct"])
@pytest.mark.parametrize("pause", PAUSES, ids=str)
async def test_a_question_after_any_pause_is_asked_with_the_conversation_before(pause, kind):
    """By contexts alone the needed text was in 4, 3, 1, 0 and 0 of these five prompts."""
    held = {}
    async with answering() as (lore, server):
        for name, (texts, question, needed) in CHATS.items():
            await lore.messages.add(said(texts, room_id=name))
            if kind:
                await lore.rooms.set_kind(name, kind)
            prompt = await prompt_of(lore, server, question, room_id=name, pause=pause, model_context_window=16_000)
            held[name] = needed in prompt and all(text in prompt for text in texts)
            assert "by search" not in prompt
            assert "由搜索" not in prompt
    assert held == dict.fromkeys(CHATS, True)


async def test_a_conversation_longer_than_the_window_is_summed_up_as_a_session_is():
    """Without a model for summaries, sentences are chosen: an allergy stays."""
    async with answering(auto_checkpoint=True) as (lore, server):
        long = [
            "I am allergic to penicillin",
            "Noted.",
            *(f"{number}. {text}" for number in range(12) for text in TRIP),
        ]
        await lore.messages.add(said(long))
        await prompt_of(lore, server, "And now?", model_context_window=1500, max_tokens=100)
        async with asyncio.timeout(20):
            while not await lore.sessions.checkpoints("r"):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        prompt = await prompt_of(
            lore, server, "May I take this?", message_id="q2", model_context_window=1500, max_tokens=100
        )
    assert "I am allergic to penicillin." in prompt
    assert "And now?" in prompt


GROUPS = {
    "three people": {"people": ("ann", "bo", "cy")},
    "private": {"kind": "private"},
    "two members": {"members": ("ann", "bo")},
    "two agents": {"agent": "other-bot"},
}


@pytest.mark.parametrize("name", GROUPS)
async def test_any_other_room_is_read_by_its_context_as_before(name):
    group = GROUPS[name]
    async with answering(min_context_messages=0, max_context_messages=5) as (lore, server):
        await lore.messages.add(said(TRIP, people=group.get("people", ("ann",))))
        if "agent" in group:
            await lore.messages.add(Message(id="x", room_id="r", sender_id="other-bot", role="assistant", text="Hi"))
        await lore.rooms.set_kind("r", group.get("kind"))
        if "members" in group:
            await lore.rooms.set_members("r", group["members"])
        prompt = await prompt_of(lore, server, CHATS["trip"][1])
        chosen = await lore.context.build("r", "q")
    shown = [one.message.text for one in chosen.messages]
    assert [text for text in TRIP if text in prompt] == [text for text in TRIP if text in shown]
    assert len(shown) < len(TRIP)


async def test_a_direct_room_stays_one_with_whoever_spoke():
    async with answering() as (lore, server):
        await lore.messages.add(said(TRIP, people=tuple("abcdefghij")))
        await lore.rooms.set_kind("r", "direct")
        assert "no stairs at the hotel" in await prompt_of(lore, server, CHATS["trip"][1])


async def test_an_agent_whose_messages_have_no_role_is_no_second_person():
    async with answering() as (lore, server):
        await lore.messages.add([replace(message, role=Role.USER) for message in said(TRIP)])
        assert "no stairs at the hotel" in await prompt_of(lore, server, CHATS["trip"][1])


async def test_what_was_said_before_a_reset_stays_out():
    async with answering() as (lore, server):
        await lore.messages.add(said(TRIP))
        await lore.sessions.reset("r")
        prompt = await prompt_of(lore, server, CHATS["trip"][1])
    assert [text for text in TRIP if text in prompt] == []
