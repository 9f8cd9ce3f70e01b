"""The console's search and its pages of people, without a browser."""

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from console_rig import LANGUAGES, asking, page
from roomlore import Message, NewMemory, Source
from roomlore_console.frame import ZONE_COOKIE, ago, tongue
from roomlore_testkit import START

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


async def test_a_name_finds_whole_words_and_whom_it_names_exactly(http, lore):
    for number, who in enumerate(("ann", "Anna", "joanna")):
        await lore.messages.add(Message(id=f"a{number}", room_id="den", sender_id=who, text="a weak cup of coffee"))
    await lore.memories.add_all(
        [NewMemory(scope="user:ann", statement=text) for text in ("Cannot stand coriander", "Ann rows", "Likes tea")]
    )
    shown = (await page(http, "/console/search?q=Ann")).partition("s-people")[2]
    people, _, rest = shown.partition("s-memories")
    assert re.findall(r'person\?id=(\w+)"><bdi>', people) == ["ann", "joanna", "Anna"]
    memories = rest.partition("s-messages")[0]
    assert tongue("en").say("search.held", count=3, name="ann") in memories
    assert ("coriander" in memories, "rows" in memories) == (False, True)
    newest = (await page(http, "/console/search?q=Ann&sort=date")).partition("s-messages")[2]
    assert 'sort=date" aria-current="true"' in newest
    nothing = await page(http, "/console/search?q=zzzz+coffee+qqqq&room=den&since=2999-01-01")
    assert '<a href="/console/search?q=zzzz+coffee+qqqq&amp;room=den">' in nothing, "at any time"
    assert '<a href="/console/search?q=coffee">' in nothing, "with fewer words"


FILTERS = [
    ("", {"m1", "m2", "m3"}),
    ("&room=tea", {"m1", "m2"}),
    ("&who=u2", {"m2", "m3"}),
    ("&who=u2&room=tea", {"m2"}),
    ("&since=2024-05-03", {"m2", "m3"}),
    ("&since=2024-05-02&until=2024-05-02", {"m1"}),  # its day in Shanghai
    ("&since=2030-01-01", set()),
]


@both
async def test_a_search_is_limited_to_a_room_a_person_and_days_of_the_readers_zone(http, lore, language):
    say = tongue(language).say
    for name, room, who, day in (("m1", "tea", "u1", 1), ("m2", "tea", "u2", 3), ("m3", "den", "u2", 9)):
        at = datetime(2024, 5, day, 20, tzinfo=UTC)
        await lore.messages.add(
            Message(id=name, room_id=room, sender_id=who, sender_name=f"N{who}", text=f"绿茶 {name}", sent_at=at)
        )
    http.cookies.set(ZONE_COOKIE, "Asia/Shanghai")
    for more, ids in FILTERS:
        shown = (await page(http, f"/console/search?q=绿茶{more}", language=language)).partition("<main")[2]
        assert {one for one in ("m1", "m2", "m3") if f"</mark> {one}</a>" in shown} == ids, more
        assert (say("search.all") in shown) == bool(more)
        wordless = (await page(http, f"/console/search?{more}", language=language)).partition("<main")[2]
        assert {name for name in ("m1", "m2", "m3") if f"绿茶 {name}</a>" in wordless} == (ids if more else set()), more
        assert (say("search.none") in wordless) == (more != "" and not ids)
        assert all(label in shown for label in ('<option value="den"', '<option value="u2"', ">Nu2</option>"))
    assert say("search.no_day", field=say("search.since")) in await page(
        http, "/console/search?q=绿茶&since=soon", language=language
    )
    old = (await page(http, "/console/search?q=绿茶+yesterday", language=language)).partition("s-messages")[2]
    assert f"<h3>{say('search.outside')}</h3>" in old
    assert "2024-05-02 04:00</time>" in old, "one form of dates, in the reader's zone"


async def test_a_viewer_without_words_reads_the_days_of_none_but_their_own_rooms(lore):
    await fill(lore)
    await lore.rooms.set_kind("dev", "public")
    _, key = await lore.keys.create("reader", scopes=["read"])
    async with asking(lore, key, "room:dev") as http:
        shown = (await page(http, "/console/search?since=2020-01-01")).partition("<main")[2]
        assert "the build is green" in shown
        assert "乌龙茶" not in shown
        assert "乌龙茶" not in await page(http, "/console/search?room=tea-house")


@both
async def test_a_person_has_a_page_and_nobody_has_none(http, lore, language):
    await fill(lore)
    shown = (await page(http, "/console/person?id=u1", language=language)).partition("<main")[2]
    for told in ("王敏喜欢乌龙茶", "周五去喝乌龙茶吗", "/console/room?id=tea-house", "what=forget&amp;id=u1"):
        assert told in shown
    assert "the build is green" not in shown
    assert 'id="p-rooms"' in shown
    assert 'id="p-groups"' not in shown
    await lore.memories.add("group:tea-house", "tea on Fridays", kind="group", sources=[Source("tea-house", "m1")])
    assert "tea on Fridays" in await page(http, "/console/person?id=u1", language=language)
    listed = await page(http, "/console/people", language=language)
    assert listed.count("/console/memory?id=user%3Au") == 1, "of the two only one has memories"
    await lore.memories.add("user:u9", "u9 likes tea")
    roomless = await page(http, "/console/person?id=u9", language=language)
    assert 'id="p-rooms"' not in roomless, "no heading without rooms"
    await page(http, "/console/person?id=nobody", 404, language)
    await page(http, "/console/person", 303, language)


@both
async def test_whom_to_forget_is_asked_if_several_have_a_name(http, lore, language):
    await fill(lore)
    asked = await page(http, "/console/forget?who=王敏", language=language)
    assert tongue(language).say("pick.several", name="王敏") in asked
    assert all(f"id={one}" in asked for one in ("u1", "u2"))
    await lore.messages.add(Message(id="m9", room_id="dev", sender_id="u22", text="like u2", sent_at=START))
    similar = await page(http, "/console/forget?who=u2", language=language)
    assert tongue(language).say("forget.similar") in similar
    assert all(f"id={one}" in similar for one in ("u2", "u22"))
    led = await http.get("/console/forget?who=u1")
    assert (led.status_code, led.headers["location"]) == (303, "/console/memory/change?what=forget&id=u1")
    assert tongue(language).say("forget.nobody") in await page(http, "/console/forget?who=zzz", language=language)
    confirm = await page(http, "/console/memory/change?what=forget&id=王敏", language=language)
    assert tongue(language).say("forget.unknown") in confirm
    assert "what=forget&amp;id=u2" in confirm


@both
async def test_a_name_in_an_address_leads_to_the_only_one_that_has_it(http, lore, language):
    await fill(lore)
    await lore.rooms.rename("dev", "Build Team")
    for asked, to in (
        ("/rooms/build team", "/console/room?id=dev"),
        ("/room?id=BUILD TEAM&limit=9", "/console/room?id=dev&limit=9"),
        ("/digest?id=Build Team", "/console/digest?id=dev"),
        ("/visible?id=Build Team", "/console/visible?id=dev"),
        ("/context?room=Build Team&message=m2", "/console/context?room=dev&message=m2"),
        ("/memory?id=group:Build Team", "/console/memory?id=group%3Adev"),
        ("/rooms/tea-house", "/console/room?id=tea-house"),
        ("/people/u1", "/console/person?id=u1"),
    ):
        answer = await http.get(f"/console{asked}", headers=LANGUAGES[language])
        assert (answer.status_code, answer.headers.get("location")) == (303, to), asked
    await lore.messages.add(Message(id="m9", room_id="dev", sender_id="u3", sender_name="Åsa", text="hej"))
    for asked in ("/people/Åsa", "/person?id=Åsa"):
        assert (await http.get(f"/console{asked}")).headers["location"] == "/console/person?id=u3"
    for asked in ("/room?id=nowhere", "/person?id=nobody", "/thread?id=dev&message=none"):
        await page(http, f"/console{asked}", 404, language)
    assert (await http.get("/console/rooms/")).headers["location"] == "/console/rooms"
    assert (await http.get("/console/rooms/nowhere")).headers["location"] == "/console/room?id=nowhere"


@both
async def test_a_name_that_several_have_gives_a_choice(http, lore, language):
    await fill(lore)
    for one in ("dev", "tea-house"):
        await lore.rooms.rename(one, "茶与代码")
    say = tongue(language).say
    shown = await page(http, "/console/digest?id=茶与代码&since=2024-05-01", language=language)
    assert say("choose.rooms", name="茶与代码") in shown
    for one in ("dev", "tea-house"):
        assert f'href="/console/digest?id={one}&amp;since=2024-05-01"' in shown
    for asked in ("/people/王敏", "/person?id=王敏"):
        shown = await page(http, f"/console{asked}", language=language)
        assert say("choose.people", name="王敏") in shown
        assert all(f'href="/console/person?id={one}"' in shown for one in ("u1", "u2"))


async def test_a_name_finds_only_what_the_viewer_sees(lore):
    await fill(lore)
    await lore.rooms.set_kind("tea-house", "public")
    for one in ("dev", "tea-house"):
        await lore.rooms.rename(one, "茶与代码")
    _, secret = await lore.keys.create("reader", scopes=["read"])
    async with asking(lore, secret, "user:eve") as http:
        assert (await http.get("/console/rooms/茶与代码")).headers["location"] == "/console/room?id=tea-house"
        assert (await http.get("/console/people/王敏")).headers["location"] == "/console/person?id=u1"
        await page(http, "/console/room?id=dev", 404)
        await lore.messages.add(Message(id="m9", room_id="dev", sender_id="u1", sender_name="敏", text="hej"))
        found = await http.get("/console/people/敏")
        assert found.headers.get("location") != "/console/person?id=u1", "a name of a room that the viewer does not see"


@both
async def test_rooms_with_one_name_are_told_apart(http, lore, language):
    await fill(lore)
    for one in ("dev", "tea-house"):
        await lore.rooms.rename(one, "Lounge")
    side = (await page(http, "/console/health", language=language)).partition('id="beside"')[2].partition("</nav>")[0]
    assert re.findall(r"Lounge <code class=.soft.>([\w-]+)</code>", side) == ["dev", "tea-house"]
    typed = await page(http, "/console/suggest?q=loun", language=language)
    assert re.findall(r"Lounge <code class=.soft.>([\w-]+)</code>", typed) == ["dev", "tea-house"]
    assert "Lounge (tea-house)" in await page(http, "/console/person?id=u1", language=language)
    await lore.rooms.rename("dev", "Build")
    assert "Lounge (tea-house)" not in await page(http, "/console/person?id=u1", language=language)


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
