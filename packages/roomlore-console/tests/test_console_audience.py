"""The audience on the console's pages: locks, the rooms of a memory, and a room's own view."""

import html
import re

import pytest

from audience_rig import heard_in, remember
from console_rig import asking, page

LOCK = 'class="lock"'


@pytest.fixture
async def lore():
    async with heard_in({"dm <1>": "ann", "team": "ann bo", "square": "ann eve"}, direct="dm <1>") as opened:
        yield opened


async def test_a_lock_and_the_rooms_are_beside_what_is_not_for_all(lore):
    await remember(lore, "likes tea")
    await remember(lore, "lives in Kyiv", "square")
    async with asking(lore) as http:
        assert LOCK not in await page(http, "/console/memory?id=user:ann")
        await remember(lore, "wants another job", "dm <1>")
        shown = await page(http, "/console/memory?id=user:ann")
        assert shown.count(LOCK) == 1
        assert "dm &lt;1&gt;</bdi></a></span>" in shown


async def test_a_memory_says_who_can_see_it(lore):
    job, tea = await remember(lore, "wants another job", "dm <1>"), await remember(lore, "likes tea")
    async with asking(lore) as http:
        shown = await page(http, f"/console/memory/one?id={job}")
        assert "Only the people in these rooms:" in shown
        assert "Withheld in 2 rooms" in shown
        withheld = re.findall(r'href="(/console/visible[^"]+withheld=1)"', shown)
        assert len(withheld) == 2
        for address in map(html.unescape, withheld):
            assert "wants another job" in await page(http, address)
        assert "without a source room" in await page(http, f"/console/memory/one?id={tea}")
        assert "手动添加" in await page(http, f"/console/memory/one?id={tea}", language="zh")
        await lore.memories.share(job, "everyone")
        assert "<p>Everybody.</p>" in await page(http, f"/console/memory/one?id={job}")


async def test_a_room_has_a_page_of_what_it_sees(lore):
    await remember(lore, "wants another job", "dm <1>")
    await remember(lore, "allergic to nuts", "team")
    async with asking(lore) as http:
        assert "/console/visible?id=team" in await page(http, "/console/room?id=team")
        assert "/console/visible?id=team" in await page(http, "/console/memory?id=group%3Ateam")
        shown = await page(http, "/console/visible?id=team")
        assert "allergic to nuts" in shown
        assert "wants another job" not in shown
        assert "All members are known" in shown
        hidden = await page(http, "/console/visible?id=team&withheld=1", language="zh")
        assert "wants another job" in hidden
        assert hidden.count("不显示，因为") == 1
        here = await page(http, "/console/visible?id=team&whose=group%3Ateam&withheld=1")
        assert "wants another job" not in here
        assert LOCK in hidden
        await page(http, "/console/visible?id=taem", 404)


@pytest.mark.parametrize(("seen_in", "rooms"), [("", None), ("team", ("dm <1>", "team")), ("dm <1>", ("dm <1>",))])
async def test_who_may_see_a_memory_is_chosen_when_it_is_added(lore, seen_in, rooms):
    async with asking(lore) as http:
        path = "/console/memory/write?scope=user:ann"
        shown = await page(http, path)
        offered = re.findall(r'<option value="([^"]*)"', shown.partition('name="seen_in"')[2].partition("</select>")[0])
        assert list(map(html.unescape, offered)) == ["", "dm <1>", "square", "team"]
        assert '<option value="group"' not in shown, "a person has no memories of a group"
        token = re.search(r'name="token" value="([^"]+)"', shown)[1]
        fields = {"token": token, "statement": "rows on Fridays", "kind": "fact", "seen_in": seen_in}
        assert (await http.post(path, data=fields)).status_code == 303
    (memory,) = await lore.memories.page("user:ann")
    seen = await lore.memories.seen_in(memory.memory_id)
    assert (seen.everyone, seen.rooms) == (rooms is None, rooms or ())


@pytest.mark.parametrize(("room", "chosen"), [("team", ["team"]), ("square", [])])
async def test_a_memory_of_a_room_is_kept_to_it_unless_it_is_public(lore, room, chosen):
    async with asking(lore) as http:
        shown = await page(http, f"/console/memory/write?scope=group:{room}")
    offered = shown.partition('name="seen_in"')[2].partition("</select>")[0]
    assert re.findall(r'<option value="([^"]*)" selected', offered) == chosen


async def test_the_page_of_a_room_looks_at_all_memories_or_at_those_that_are_chosen(lore):
    await remember(lore, "wants another job", "dm <1>")
    await lore.memories.add("user:zoe", "paints boats")
    async with asking(lore) as http:
        for query, shown, withheld in (
            ("", ("paints boats",), ("wants another job",)),
            ("&whose=here", (), ("wants another job",)),
            ("&whose=user:zoe", ("paints boats",), ()),
        ):
            for more, said in (("", shown), ("&withheld=1", withheld)):
                text = await page(http, f"/console/visible?id=team{query}{more}")
                statements = re.findall(r'<p class="statement" dir="auto"><a[^>]*>(.*?)</a>', text)
                assert statements == list(said), (query, more)
        await page(http, "/console/visible?id=team&whose=nonsense", 422)


async def test_only_an_administrator_is_told_what_is_withheld(lore):
    job = await remember(lore, "wants another job", "dm <1>")
    _, key = await lore.keys.create("reader", scopes=["read"])
    async with asking(lore, key, "room:team") as http:
        await page(http, "/console/visible?id=team", 403)
        assert "/console/visible" not in await page(http, "/console/room?id=team")
        await page(http, f"/console/memory/one?id={job}", 404)
        nuts = await remember(lore, "allergic to nuts", "team")
        assert "Who can see this" not in await page(http, f"/console/memory/one?id={nuts}")
