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


async def test_only_an_administrator_is_told_what_is_withheld(lore):
    job = await remember(lore, "wants another job", "dm <1>")
    _, key = await lore.keys.create("reader", scopes=["read"])
    async with asking(lore, key, "room:team") as http:
        await page(http, "/console/visible?id=team", 403)
        assert "/console/visible" not in await page(http, "/console/room?id=team")
        await page(http, f"/console/memory/one?id={job}", 404)
        nuts = await remember(lore, "allergic to nuts", "team")
        assert "Who can see this" not in await page(http, f"/console/memory/one?id={nuts}")
