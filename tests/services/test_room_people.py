"""The kinds of rooms and their members, as callers tell them."""

from datetime import UTC, datetime, timedelta

import pytest

import roomlore
from roomlore import Member, Message, RoomKind
from roomlore.core.errors import InvalidInput, NotFound
from roomlore_testkit import FrozenClock

START = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def clock(monkeypatch) -> FrozenClock:
    clock = FrozenClock(START)
    monkeypatch.setattr("roomlore.wiring.resources.SystemClock", lambda: clock)
    return clock


@pytest.fixture
async def lore(clock):
    async with roomlore.open("sqlite://", settings=roomlore.Settings(), background=False) as opened:
        yield opened


async def test_a_kind_is_set_and_kept(lore):
    assert (await lore.rooms.set_kind("团队", "public")).kind is RoomKind.PUBLIC
    assert (await lore.rooms.get("团队")).kind is RoomKind.PUBLIC
    revision = (await lore.rooms.get("团队")).revision
    assert (await lore.rooms.set_kind("团队", RoomKind.PUBLIC)).revision == revision
    assert (await lore.rooms.set_kind("团队", None)).kind is None


async def test_messages_leave_the_kind(lore):
    await lore.rooms.set_kind("tea", "direct")
    await lore.messages.add(Message(id="1", room_id="tea", sender_id="ann", text="Green?"))
    assert (await lore.rooms.get("tea")).kind is RoomKind.DIRECT


async def test_all_members_are_told_and_who_is_missing_has_left(lore, clock):
    first = await lore.rooms.set_members("tea", ["ann", Member("小李", joined_at=START - timedelta(days=9))])
    assert (sorted(first.people), first.complete) == (["ann", "小李"], True)
    clock.advance(3600)
    later = await lore.rooms.set_members("tea", ["小李", "bo"])
    left = {name: presence.stays[-1].left_at for name, presence in later.people.items()}
    assert left == {"ann": START + timedelta(hours=1), "小李": None, "bo": None}
    assert later == await lore.rooms.people("tea")


async def test_members_told_one_by_one_are_not_all(lore, clock):
    await lore.rooms.add_members("tea", ["ann"])
    clock.advance(60)
    found = await lore.rooms.remove_members("tea", ["ann", "bo"], at=START + timedelta(seconds=30))
    assert not found.complete
    assert {presence.stays[0].left_at for presence in found.people.values()} == {START + timedelta(seconds=30)}


async def test_somebody_comes_back(lore, clock):
    await lore.rooms.set_members("tea", ["ann", "bo"])
    clock.advance(60)
    await lore.rooms.remove_members("tea", ["ann"])
    clock.advance(60)
    found = await lore.rooms.add_members("tea", ["ann"])
    assert [stay.left_at is None for stay in found.people["ann"].stays] == [False, True]
    assert found.complete


async def test_a_stay_of_another_time_stays(lore, clock):
    """A regression: a stay with times replaced all others, so that its person was gone, and the room was shown more."""

    def day(number: int) -> datetime:
        return START + timedelta(days=number)

    async def told(*stays: tuple[int | None, int | None]) -> list[tuple[int | None, int | None]]:
        times = [Member("ann", *(None if at is None else day(at) for at in one)) for one in stays]
        found = await lore.rooms.add_members("tea", times)
        return [
            tuple(None if at is None else (at - START).days for at in (one.joined_at, one.left_at))
            for one in found.people["ann"].stays
        ]

    clock.advance(86_400 * 9)
    assert await told((5, None)) == [(5, None)]
    assert await told((1, 2)) == [(1, 2), (5, None)]
    assert await told((3, 4)) == [(1, 2), (3, 4), (5, None)]
    assert await told((3, 4)) == [(1, 2), (3, 4), (5, None)], "the same again changes nothing"
    assert await told((4, 6)) == [(1, 2), (3, 4), (4, 6)], "a stay at the same time is corrected"
    assert await told((None, 4)) == [(None, 4), (4, 6)], "it may be any of those before"
    assert await told((2, None)) == [(2, None)]
    assert await told((0, 1), (7, 8)) == [(0, 1), (7, 8)]


async def test_agents_are_not_people(lore):
    said = Message(id="1", room_id="tea", sender_id="bot", text="Hello", role=roomlore.Role.ASSISTANT)
    await lore.messages.add([said, Message(id="2", room_id="tea", sender_id="ann", text="Hi")])
    assert list((await lore.rooms.set_members("tea", ["ann", "bot"])).people) == ["ann"]


async def test_a_forgotten_member_stays_without_a_name(lore):
    await lore.messages.add(
        [Message(id=name, room_id="tea", sender_id=name, text="Hello there") for name in ("ann", "bo")]
    )
    await lore.rooms.set_members("tea", ["ann", "bo"])
    report = await lore.privacy.forget("ann")
    people = (await lore.rooms.people("tea")).people
    assert len(people) == 2
    assert "ann" not in people
    assert report.complete


@pytest.mark.parametrize("given", ["ann", 3, [3], [""], [Member("x" * 513)]])
async def test_members_are_ids_or_members(lore, given):
    with pytest.raises(InvalidInput):
        await lore.rooms.set_members("tea", given)


async def test_what_cannot_be(lore):
    with pytest.raises(InvalidInput, match="before joining"):
        await lore.rooms.add_members("tea", [Member("ann", START, START - timedelta(days=1))])
    with pytest.raises(InvalidInput, match="direct, private, public"):
        await lore.rooms.set_kind("tea", "secret")
    with pytest.raises(InvalidInput, match="room_id"):
        await lore.rooms.set_kind("", "public")
    with pytest.raises(NotFound):
        await lore.rooms.people("nowhere")


async def test_a_room_is_found_by_its_id_or_by_a_name_that_no_other_has(lore):
    for room_id, name in (("r1", "Allotment 7"), ("r2", "茶"), ("r3", "茶"), ("r4", "r1"), ("r5", "Allotment")):
        await lore.messages.add(Message(id="1", room_id=room_id, sender_id="ann", text="Hello"))
        await lore.rooms.rename(room_id, name)
    assert [await lore.rooms.named(one) for one in ("r1", "allotment 7", "Allotment", "r3")] == ["r1", "r1", "r5", "r3"]
    with pytest.raises(InvalidInput, match=r"Several rooms are called '茶': r[23], r[23]"):
        await lore.rooms.named("茶")
    for number in range(201):
        await lore.messages.add(Message(id="1", room_id=f"plot {number}", sender_id="ann", text="Hello"))
        await lore.rooms.rename(f"plot {number}", f"Allotment {number + 10}")
    assert await lore.rooms.named("Allotment") == "r5"
    for nobody in ("llotment", "%", "none"):
        with pytest.raises(NotFound):
            await lore.rooms.named(nobody)
    for nothing in ("", None, 7):
        with pytest.raises(InvalidInput, match="give its id or its name"):
            await lore.rooms.named(nothing)
