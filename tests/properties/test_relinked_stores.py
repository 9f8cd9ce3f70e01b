"""A store whose links were made anew holds what a new store makes of the same messages."""

import asyncio
from datetime import timedelta
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

import roomlore
from relink_rig import EARLIER, ROOM, START, TODAY, exported, fresh, opened, relinked, stored
from roomlore import Message
from roomlore.core.models import Role

WORDS = ["deploy", "nginx", "lunch", "缓存", "发布", "ann:", "@bob", "thanks", "why?", "怎么", "v1.2", ""]
ROLES = [Role.USER, Role.USER, Role.USER, Role.ASSISTANT, Role.SYSTEM]


@st.composite
def rooms(draw: st.DrawFn) -> list[Message]:
    """Rooms with names that change, replies to messages that come later or never, platform threads, missing times."""
    messages = []
    for number in range(draw(st.integers(2, 16))):
        at = draw(st.integers(-20, 600) | st.none()) if number else 0
        messages.append(
            Message(
                id=str(number),
                room_id=ROOM,
                sender_id=draw(st.sampled_from(["ann", "bob", "小李"])),
                sender_name=draw(st.sampled_from(["", "Ann", "Bob", "李雷"])),
                role=draw(st.sampled_from(ROLES)),
                text=" ".join(draw(st.lists(st.sampled_from(WORDS), max_size=5))),
                sent_at=None if at is None else START + timedelta(seconds=60 * number + at),
                reply_to=draw(st.none() | st.integers(0, 18).map(str)),
                root_id=draw(st.none() | st.none() | st.integers(0, 18).map(str)),
            )
        )
    return messages


changes = st.lists(st.tuples(st.integers(0, 15), st.sampled_from(["edit", "delete"])), max_size=4)


async def change(lore: roomlore.Lore, wanted: list[tuple[int, str]]) -> None:
    there = {message.id for message in await exported(lore)}
    for number, what in wanted:
        if str(number) in there and what == "edit":
            await lore.messages.edit(ROOM, str(number), text=f"why {number}? bob: nginx 发布")
        elif str(number) in there and len(there) > 1:
            there.discard(str(number))
            await lore.messages.delete(ROOM, str(number))


@settings(max_examples=10)
@given(rooms(), changes, st.data())
def test_a_relinked_store_is_as_a_new_one(messages, wanted, data):
    """Edited and with gaps where messages were deleted; in any pieces; while further messages arrive."""
    begun = data.draw(st.integers(1, len(messages)))
    piece, steps = data.draw(st.integers(1, 5)), data.draw(st.integers(0, 4))

    async def compare(url: str) -> None:
        async with opened(url, EARLIER) as lore:
            await lore.messages.add(messages[:begun])
            await change(lore, wanted)
        async with opened(url, TODAY, piece=piece) as lore:
            walk = lore.index.relink()
            for _ in range(steps):
                await anext(walk, None)
            for message in messages[begun:]:
                await lore.messages.add(message)
            await walk.aclose()
            await relinked(lore)
            assert (await lore.index.status()).rooms_to_link == 0
            assert await stored(lore) == await fresh(await exported(lore))

    with TemporaryDirectory() as folder:
        asyncio.run(compare(f"sqlite:///{folder}/room.db"))
