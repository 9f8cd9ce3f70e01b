"""However messages are split into batches, and whoever holds the room in memory, the store comes out the same."""

import asyncio
import itertools
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import roomlore
from roomlore import Entry, Message
from roomlore.core.linking.calibration import Linked
from roomlore.wiring import resources
from roomlore_testkit import FrozenClock

START = datetime(2026, 1, 5, 8, tzinfo=UTC)
WORDS = ["deploy", "nginx", "lunch", "缓存", "发布", "ann:", "@bob", "thanks", "why?", "怎么", "v1.2", ""]


@st.composite
def rooms(draw: st.DrawFn) -> list[Message]:
    messages = []
    for number in range(draw(st.integers(1, 14))):
        at = draw(st.integers(-20, 600) | st.none()) if number else 0
        messages.append(
            Message(
                id=str(number),
                room_id="r",
                sender_id=draw(st.sampled_from(["ann", "bob", "小李"])),
                text=" ".join(draw(st.lists(st.sampled_from(WORDS), max_size=5))),
                sent_at=None if at is None else START + timedelta(seconds=60 * number + at),
                reply_to=draw(st.none() | st.integers(0, 16).map(str)),
            )
        )
    return messages


async def stored(messages: list[Message], cuts: list[int], remembered_rooms: int) -> tuple[list[Entry], Linked]:
    """Return what is stored. A message without a time is sent at the same moment however they are split."""
    own = roomlore.Settings(room_cache_mb=3 * remembered_rooms)
    with patch.object(resources, "SystemClock", lambda: FrozenClock(START + timedelta(minutes=7))):
        async with roomlore.open("sqlite://", settings=own, background=False) as lore:
            bounds = [0, *sorted(cuts), len(messages)]
            for first, last in itertools.pairwise(bounds):
                await lore.messages.add(messages[first:last])
            entries = [await lore.messages.get("r", message.id) for message in messages]
            return entries, (await lore.rooms.get("r")).linked


@settings(max_examples=25)
@given(rooms(), st.data())
def test_any_split_and_any_rereading_give_the_same_entries(messages, data):
    cuts = data.draw(st.lists(st.integers(0, len(messages)), max_size=4))

    async def compare() -> None:
        whole = await stored(messages, [], remembered_rooms=8)
        assert await stored(messages, cuts, remembered_rooms=8) == whole
        assert await stored(messages, cuts, remembered_rooms=0) == whole

    asyncio.run(compare())


CHAIN = [("e", "d"), ("d", "c"), ("c", "b"), ("b", "a"), ("a", None), ("f", "e")]


@pytest.mark.parametrize("cuts", [[1, 2, 3, 4, 5], [1], [3], [1, 3], [2, 5]])
async def test_a_chain_of_replies_that_arrives_backwards_moves_as_one(cuts):
    messages = [Message(id=own, room_id="r", sender_id=own, sent_at=START, reply_to=to) for own, to in CHAIN]
    whole = await stored(messages, [], remembered_rooms=8)
    assert len({entry.link.thread for entry in whole[0]}) == 1
    assert await stored(messages, cuts, remembered_rooms=8) == whole
    assert await stored(messages, cuts, remembered_rooms=0) == whole
