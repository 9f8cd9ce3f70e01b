"""Why a memory is shown in a room or not, and in which rooms it is shown."""

import pytest

from audience_rig import heard_in, remember
from roomlore import Message
from roomlore.core.errors import InvalidInput, NotFound
from roomlore.core.visibility import SeenIn


@pytest.fixture
async def lore():
    """Ann alone with an agent, Ann and Bo in two teams of which one is told, and a public square with Eve."""
    rooms = {"dm": "ann", "team": "ann bo", "crew": "ann bo", "square": "ann eve"}
    async with heard_in(rooms, direct="dm") as opened:
        await opened.messages.add([Message(id="hello", room_id="dm", sender_id="bot", role="assistant", text="Hello")])
        yield opened


async def reasons(lore, viewer: str) -> dict[str, tuple[bool, str]]:
    found = await lore.memories.visible(viewer)
    return {one.memory.statement: (one.shown, " ".join(reason.kind for reason in one.reasons)) for one in found}


async def test_each_memory_says_why_it_is_shown_or_not(lore):
    for statement, rooms in {"tea": (), "nuts": ("team",), "job": ("dm",), "city": ("square",)}.items():
        await remember(lore, statement, *rooms)
    await remember(lore, "flat", "crew", "dm")
    kept = {"tea": (True, "added"), "city": (True, "public")}
    team = {"nuts": (True, "here"), "job": (False, "unheard"), "flat": (False, "heard unheard")}
    assert await reasons(lore, "room:team") == {**kept, **team}
    crew = {"nuts": (False, "unheard"), "job": (False, "unheard"), "flat": (False, "here unheard")}
    assert await reasons(lore, "room:crew") == {**kept, **crew}
    own = {"nuts": (True, "heard"), "job": (True, "heard"), "flat": (True, "heard heard")}
    assert await reasons(lore, "user:ann") == {**kept, **own}


async def test_a_share_is_the_reason_and_where_a_memory_is_seen_follows(lore):
    fact = await remember(lore, "job", "dm")
    assert await lore.memories.seen_in(fact) == SeenIn(False, ("dm",), 3)
    await lore.memories.share(fact, "room:crew")
    assert await reasons(lore, "room:crew") == {"job": (True, "shared")}
    assert await lore.memories.seen_in(fact) == SeenIn(False, ("crew", "dm"), 2)
    await lore.memories.share(fact, "everyone")
    assert await lore.memories.seen_in(fact) == SeenIn(True)
    assert await lore.memories.seen_in(await remember(lore, "city", "square")) == SeenIn(True)
    assert await lore.memories.seen_in(await remember(lore, "tea")) == SeenIn(True)


async def test_an_agents_memories_and_another_scope_are_seen_too(lore):
    await lore.memories.add("agent:bot", "answers briefly")
    await lore.memories.add("group:team", "ships on Fridays")
    assert "answers briefly" in await reasons(lore, "room:dm")
    assert await reasons(lore, "room:square") == {}
    found = await lore.memories.visible("room:square", scope="group:team")
    assert [one.memory.statement for one in found] == ["ships on Fridays"]
    with pytest.raises(InvalidInput):
        await lore.memories.visible("square")
    with pytest.raises(NotFound):
        await lore.memories.seen_in("nothing")


async def test_a_new_version_has_the_reasons_of_the_one_before(lore):
    old = await remember(lore, "lives in Paris", "square")
    changed = await lore.memories.update(old, statement="lives in Berlin")
    assert await reasons(lore, "room:team") == {"lives in Berlin": (True, "public")}
    assert changed.memory_id != old
