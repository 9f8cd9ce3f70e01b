"""The overview of all rooms for a viewer who may see a part of them, and its parts."""

from datetime import timedelta

import pytest

from roomlore import InvalidInput, Member, Message

MINUTE = timedelta(minutes=1)


async def test_a_viewer_who_left_is_told_what_was_said_before_and_nothing_about_the_rest(lore):
    begin = lore.now() - timedelta(days=1)
    left = begin + 15 * MINUTE
    texts = {5: "secret", 10: "Decision: the launch moves to Tuesday.", 11: "Fine."}
    await lore.messages.add(
        [
            Message(
                id=f"m{n}", room_id="team", sender_id="bo", text=texts.get(n, f"note {n}"), sent_at=begin + n * MINUTE
            )
            for n in range(300)
        ]
    )
    await lore.rooms.set_members("team", ["bo", Member("ann", joined_at=begin + 8 * MINUTE, left_at=left)])
    overview = await lore.overview(since=begin, viewer="user:ann")
    (point,) = overview.points
    assert (point.message.text, point.title, point.whole) == (texts[10], "team", False)
    assert point.message.arrival == 3, "its place among those that she may see"
    assert not hasattr(point, "room"), "a room counts messages and words, and has the time of its last message"
    assert overview.last_at == left


@pytest.mark.parametrize("part", [0, -1, 101, 10**16, 1.5, "2", None])
async def test_a_part_is_a_number_from_1_to_100(lore, part):
    with pytest.raises(InvalidInput, match=r"part is .*; it must be a whole number from 1 to 100"):
        await lore.overview(since=lore.now(), part=part)
    assert (await lore.overview(since=lore.now(), part=100)).points == ()
