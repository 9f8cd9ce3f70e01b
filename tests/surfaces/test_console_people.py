"""The console's search and its pages of people, without a browser."""

from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest
from console_rig import LANGUAGES, page

from roomlore import Message
from roomlore.surfaces.console.frame import ZONE_COOKIE, ago, tongue
from roomlore.testing import START

both = pytest.mark.parametrize("language", LANGUAGES)


async def fill(lore) -> None:
    await lore.messages.add(
        [
            Message(
                id="m1", room_id="tea-house", sender_id="u1", sender_name="王敏", text="周五去喝乌龙茶吗", sent_at=START
            ),
            Message(
                id="m2", room_id="dev", sender_id="u2", sender_name="王敏", text="the build is green", sent_at=START
            ),
        ]
    )
    await lore.memories.add("user:u1", "王敏喜欢乌龙茶")


@both
async def test_one_search_finds_rooms_people_messages_and_memories(http, lore, language):
    await fill(lore)
    for words, found in (
        ("HOUSE", "/console/room?id=tea-house"),
        ("王敏", "/console/person?id=u2"),
        ("乌龙茶", "around=1#m1"),
        ("喜欢乌龙茶", "/console/memory/one?id="),
    ):
        assert found in (await page(http, f"/console/search?q={words}", language=language)).partition("<main")[2], words
    shown = await page(http, "/console/search?q=zzzz", language=language)
    assert tongue(language).say("search.nothing.next") in shown


@both
async def test_a_person_has_a_page_and_nobody_has_none(http, lore, language):
    await fill(lore)
    shown = (await page(http, "/console/person?id=u1", language=language)).partition("<main")[2]
    for told in ("王敏喜欢乌龙茶", "周五去喝乌龙茶吗", "/console/room?id=tea-house", "what=forget&amp;id=u1"):
        assert told in shown
    assert "the build is green" not in shown
    await page(http, "/console/person?id=nobody", 404, language)
    await page(http, "/console/person", 303, language)


@both
async def test_whom_to_forget_is_asked_if_several_have_a_name(http, lore, language):
    await fill(lore)
    asked = await page(http, "/console/forget?who=王敏", language=language)
    assert tongue(language).say("forget.which") in asked
    assert all(f"id={one}" in asked for one in ("u1", "u2"))
    led = await http.get("/console/forget?who=u1")
    assert (led.status_code, led.headers["location"]) == (303, "/console/memory/change?what=forget&id=u1")
    assert tongue(language).say("forget.nobody") in await page(http, "/console/forget?who=zzz", language=language)
    confirm = await page(http, "/console/memory/change?what=forget&id=王敏", language=language)
    assert tongue(language).say("forget.unknown") in confirm
    assert "what=forget&amp;id=u2" in confirm


async def test_times_are_in_the_zone_that_the_browser_told(http, lore):
    await fill(lore)
    for zone, clock in (("Asia/Tokyo", 9), ("Nowhere/At-all", 0), ("../../etc/passwd", 0)):
        http.cookies.set(ZONE_COOKIE, zone, domain="127.0.0.1", path="/console")
        there = (START + timedelta(hours=clock)).strftime("%H:%M</time>")
        assert there in await page(http, "/console/room?id=dev")
        http.cookies.clear()


@pytest.mark.parametrize(
    ("later", "told"),
    [(0, "just now"), (59, "just now"), (60, "1 min ago"), (7_200, "2 h ago"), (3 * 86_400, "3 d ago")],
)
def test_how_long_ago(later, told):
    now = START + timedelta(seconds=later)
    assert ago(START, now=now, zone=ZoneInfo("UTC"), tongue=tongue("en")) == told


def test_what_is_long_ago_or_to_come_is_told_by_its_day():
    for days in (-1, 8):
        now = START + timedelta(days=days)
        assert ago(START, now=now, zone=ZoneInfo("UTC"), tongue=tongue("zh")) == f"{START:%Y-%m-%d}"
