"""When a room changes, what may be shown in it and what of it may be shown elsewhere follows at once, as
docs/explanation/audience.md says."""

from datetime import timedelta

import pytest

import roomlore
from roomlore import Conflict, EvidenceRoom, InvalidInput, Member, MemoryKind, Message, Source
from roomlore.wiring import resources
from roomlore_testkit import START, FrozenClock

HOUR = timedelta(hours=1)


@pytest.fixture
def clock():
    return FrozenClock(START)


@pytest.fixture
async def lore(clock, monkeypatch):
    """A club and a team of Ann and Bo, told at the beginning, and a new room of unknown kind in which Ann speaks to a
    bot."""
    monkeypatch.setattr(resources, "SystemClock", lambda: clock)
    async with roomlore.open("sqlite://", settings=roomlore.Settings(), background=False) as opened:
        for room in ("club", "team"):
            await opened.rooms.set_kind(room, "private")
            await opened.rooms.set_members(room, [Member("ann", START), Member("bo", START)])
        await opened.messages.add([Message(id="hi", room_id="new", sender_id="ann", text="hi", sent_at=START)])
        clock.advance(HOUR.total_seconds())
        yield opened


async def said(lore, clock, room: str) -> str:
    """A fact of Ann said in a room now; an hour passes."""
    now = lore.now()
    fact = await lore.memories.add("user:ann", f"{room} {now:%H}", evidence=[EvidenceRoom(room, now, now)])
    clock.advance(HOUR.total_seconds())
    return fact.statement


async def seen(lore, viewer: str) -> set[str]:
    return {one.statement for one in await lore.memories.page("user:ann", viewer=viewer)}


async def test_somebody_joins(lore, clock):
    before, here = await said(lore, clock, "club"), await said(lore, clock, "team")
    assert await seen(lore, "room:team") == {before, here}
    await lore.rooms.add_members("team", ["eve"])
    assert await seen(lore, "room:team") == {here}
    clock.advance(1)
    after = await said(lore, clock, "team")
    assert await seen(lore, "user:eve") == {after}


async def test_somebody_leaves_and_comes_back(lore, clock):
    await lore.rooms.remove_members("club", ["bo"])
    clock.advance(1)
    without = await said(lore, clock, "club")
    assert await seen(lore, "room:team") == set()
    await lore.rooms.remove_members("team", ["bo"])
    assert await seen(lore, "room:team") == {without}
    clock.advance(1)
    await lore.rooms.add_members("club", ["bo"])
    again = await said(lore, clock, "club")
    assert await seen(lore, "user:bo") == {again}


async def test_a_room_that_becomes_public_does_not_publish_what_was_said_before(lore, clock):
    club, team = await said(lore, clock, "club"), await said(lore, clock, "team")
    await lore.rooms.set_kind("club", "public")
    opened = await said(lore, clock, "club")
    assert await seen(lore, "room:new") == {opened}
    assert await seen(lore, "user:eve") == {opened}
    assert await seen(lore, "user:bo") == {club, team, opened}, "who heard it still knows it"
    assert await seen(lore, "room:club") == {club, opened}


async def test_a_room_that_becomes_private_does_not_withdraw_what_was_said_before(lore, clock):
    club, team = await said(lore, clock, "club"), await said(lore, clock, "team")
    await lore.rooms.set_kind("club", "public")
    opened = await said(lore, clock, "club")
    await lore.rooms.set_kind("club", "private")
    closed = await said(lore, clock, "club")
    assert await seen(lore, "room:new") == {opened}
    assert await seen(lore, "room:team") == {club, team, opened, closed}
    await lore.rooms.set_kind("club", "public")
    assert await seen(lore, "room:new") == {opened}
    assert [one.kind for one in (await lore.rooms.get("club")).past_kinds] == ["private", "public", "private"]


async def test_a_kind_is_corrected_for_a_time_before(lore, clock):
    first, second = await said(lore, clock, "club"), await said(lore, clock, "club")
    await lore.rooms.set_kind("club", "public", since=START + 1.5 * HOUR)
    assert await seen(lore, "room:new") == {second}
    await lore.rooms.set_kind("club", "public", since=START)
    assert await seen(lore, "room:new") == {first, second}
    await lore.rooms.set_kind("club", "private", since=START)
    assert await seen(lore, "room:new") == set()
    assert (await lore.rooms.get("club")).past_kinds == ()
    with pytest.raises(InvalidInput, match="to come"):
        await lore.rooms.set_kind("club", "public", since=lore.now() + HOUR)


async def test_a_kind_does_not_begin_later_before_it_is_said_what_it_was(lore, clock):
    first, second = await said(lore, clock, "club"), await said(lore, clock, "club")
    await lore.rooms.set_kind("club", "public", since=START)
    with pytest.raises(Conflict, match="what it was in between"):
        await lore.rooms.set_kind("club", "public", since=START + 1.5 * HOUR)
    assert await seen(lore, "room:new") == {first, second}
    await lore.rooms.set_kind("club", "private", since=START)
    await lore.rooms.set_kind("club", "public", since=START + 1.5 * HOUR)
    assert await seen(lore, "room:new") == {second}


async def test_what_was_said_publicly_is_not_replaced_by_what_was_said_since(lore, clock):
    await lore.rooms.set_kind("club", "public", since=START)
    for name, text in (("open", "Ann moves to 巴黎"), ("closed", "Ann moves to Lyon 里昂")):
        if name == "closed":
            await lore.rooms.set_kind("club", "private")
        await lore.messages.add(Message(id=name, room_id="club", sender_id="ann", text=text, sent_at=lore.now()))
        clock.advance(1)
    sources = [Source("club", "open")]
    old = await lore.memories.add("user:ann", "moves to 巴黎", sources=sources)
    both = [*sources, Source("club", "closed")]
    await lore.memories.update(old.memory_id, statement="moves to Lyon 里昂", sources=both)
    assert await seen(lore, "room:new") == {"moves to 巴黎"}
    assert await seen(lore, "user:bo") == {"moves to Lyon 里昂"}


async def test_a_search_finds_only_what_was_said_while_the_room_was_public(lore, clock):
    for number, kind in enumerate(("private", "public", "private", "public")):
        await lore.rooms.set_kind("club", kind)
        text, at = f"the lantern 灯笼 {number}", lore.now()
        await lore.messages.add(Message(id=f"l{number}", room_id="club", sender_id="ann", text=text, sent_at=at))
        clock.advance(60)
    for viewer, numbers in (("user:eve", "13"), ("room:new", "13"), ("user:bo", "0123")):
        hits = (await lore.messages.search(query="灯笼 lantern", viewer=viewer)).hits
        assert {hit.message.id for hit in hits} == {f"l{one}" for one in numbers}, viewer
    await lore.rooms.set_kind("club", "private")
    hits = (await lore.messages.search(query="灯笼 lantern", viewer="user:eve")).hits
    assert {hit.message.id for hit in hits} == {"l1", "l3"}


async def test_an_unknown_kind_becomes_known(lore, clock):
    club = await said(lore, clock, "club")
    hello = await said(lore, clock, "new")
    assert await seen(lore, "room:team") == {club}
    for kind, here in (("private", {hello}), ("direct", {club, hello}), ("public", {hello})):
        await lore.rooms.set_kind("new", None, since=START)
        await lore.rooms.set_kind("new", kind)
        assert await seen(lore, "room:new") == here
    assert await seen(lore, "room:team") == {club, hello}, "it was public all the time"


async def test_all_members_are_told(lore, clock):
    club = await said(lore, clock, "club")
    assert await seen(lore, "room:new") == set()
    await lore.rooms.set_members("new", ["ann", "bo"])
    assert await seen(lore, "room:new") == {club}


async def test_a_share_ends(lore, clock):
    await said(lore, clock, "club")
    fact = (await lore.memories.page("user:ann"))[0].memory_id
    shared = await lore.memories.share(fact, "room:new")
    assert len(await seen(lore, "room:new")) == 1
    await lore.memories.unshare(shared.memory_id, "room:new")
    assert await seen(lore, "room:new") == set()


@pytest.mark.parametrize("text", ["the draft cuts Bo's budget", "草案砍掉了小博的预算"])
@pytest.mark.parametrize("cited", ["in a new memory", "in an update", "in a short memory"])
async def test_who_left_before_a_message_was_edited_is_not_told_its_new_words(lore, clock, text, cited):
    await lore.messages.add(Message(id="m", room_id="club", sender_id="ann", text="the draft 草案", sent_at=lore.now()))
    clock.advance(1)
    known = await lore.memories.add("user:ann", "a draft", sources=[Source("club", "m")])
    clock.advance(1)
    await lore.rooms.remove_members("club", ["bo"])
    clock.advance(1)
    await lore.messages.edit("club", "m", text=text)
    if cited == "in an update":
        await lore.memories.update(known.memory_id, statement=text, sources=[Source("club", "m")])
    else:
        kind = MemoryKind.SHORT if cited == "in a short memory" else MemoryKind.FACT
        await lore.memories.add("user:ann", text, kind=kind, sources=[Source("club", "m")])
    assert text not in await seen(lore, "user:bo")
    assert text in await seen(lore, "user:ann")


async def test_nor_may_they_cite_it(lore, clock):
    await lore.messages.add(Message(id="m", room_id="club", sender_id="ann", text="a draft", sent_at=lore.now()))
    await lore.memories.check_cited([Source("club", "m")], "user:bo")
    clock.advance(1)
    await lore.rooms.remove_members("club", ["bo"])
    clock.advance(1)
    await lore.messages.edit("club", "m", text="Bo's budget is cut")
    await lore.memories.check_cited([Source("club", "m")], "user:ann")
    with pytest.raises(InvalidInput):
        await lore.memories.check_cited([Source("club", "m")], "user:bo")
