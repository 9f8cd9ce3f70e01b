"""The list of rooms, what was said last in each and how much lately; and what a search suggests while one types."""

import re
from datetime import timedelta
from urllib.parse import quote

import pytest

from console_rig import LANGUAGES, asking, page
from roomlore import Message
from roomlore.core.memory.memory import Source
from roomlore_console.frame import tongue

both = pytest.mark.parametrize("language", ["en", "zh"])


def listed(shown: str) -> dict[str, str]:
    """Return the rows of the list by the rooms they lead to."""
    rows = shown.partition("<main")[2].split("<li>")[1:]
    return {re.search(r"/room\?id=([\w%-]+)", row)[1]: row for row in rows}


def bars(row: str) -> list[int]:
    """Return the heights of a row's bars, in steps."""
    drawn = {kind: re.search(rf'<path class="{kind}" d="([^"]*)"', row)[1] for kind in ("some", "none")}
    high = {int(x): int(up) // 4 for x, up in re.findall(r"M(\d+) 16v-(\d+)h4", drawn["some"])}
    low = dict.fromkeys(map(int, re.findall(r"M(\d+) 16v-1h4", drawn["none"])), 0)
    assert not high.keys() & low.keys()
    return [height for _, height in sorted((high | low).items())]


SLACK = [
    Message(id="m1", room_id="slack", sender_id="U0A1", sender_name="Ann Lee", text="the umbrella 雨伞 again"),
    Message(id="m2", room_id="slack", sender_id="U0B2", sender_name="陈静", text="<@U0A1> my umbrella? <@U0ZZ>"),
    Message(id="m1", room_id="other", sender_id="U0C3", sender_name="Cy", text="<@U0A1> umbrella? 雨伞呢 a@U0C3.com"),
]


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/search?q=umbrella",
        "/person?id=U0B2",
        "/context?room=slack&message=m2",
        "/room?id=slack",
        "/digest?id=slack",
        "/memory/one?id=f1",
    ],
)
async def test_people_who_are_mentioned_are_shown_by_name_on_every_page(http, lore, path):
    await lore.messages.add(SLACK)
    await lore.memories.add("group:slack", "There is an umbrella", sources=[Source("slack", "m2")], memory_id="f1")
    shown = re.sub(r"</?mark>", "", (await page(http, f"/console{path}")).partition("<main")[2])
    assert "&lt;@U0A1&gt; my" not in shown
    assert "@Ann Lee my umbrella?" in shown
    assert path.startswith("/digest") or "umbrella? &lt;@U0ZZ&gt;" in shown, "nobody is known by that id"
    if path in ("", "/search?q=umbrella"):
        assert "&lt;@U0A1&gt; umbrella? 雨伞呢 a@U0C3.com" in shown, "she never spoke in that room"


@both
async def test_each_room_shows_what_was_said_last_and_by_whom(http, lore, language):
    said = {"sender_id": "u1", "sender_name": "安娜"}
    await lore.messages.add(
        [
            Message(id="m1", room_id="tea", text="the first", **said),
            Message(id="m2", room_id="tea", text="<b>The last</b> 最后一句\u202e", **said),
            Message(id="m1", room_id="long", text="长" * 20_000, **said),
            Message(id="m1", room_id="pictures", text="", metadata={"attachments": [{"type": "picture"}]}, **said),
        ]
    )
    rows = listed(await page(http, "/console/rooms", language=language))
    assert re.search(r'class="who">安娜</bdi> &lt;b&gt;The last&lt;/b&gt; 最后一句⟨U\+202E⟩</p>', rows["tea"])
    assert "the first" not in rows["tea"]
    assert rows["long"].count("长") == 160
    assert {"en": "Picture", "zh": "图片"}[language] in rows["pictures"]


@both
async def test_each_room_shows_how_much_was_said_on_the_last_days(http, lore, language):
    noon = lore.now().replace(hour=0, minute=0) - timedelta(hours=12)
    days = {1: 5, 2: 1, 3: 60, 13: 1, 14: 9}
    for day, count in sorted(days.items(), reverse=True):
        said = {"room_id": "tea", "sender_id": "ann", "text": "tea", "sent_at": noon - timedelta(days=day - 1)}
        for begin in range(0, count, 50):
            await lore.messages.add([Message(id=f"{day}-{n}", **said) for n in range(begin, min(begin + 50, count))])
    http.cookies.set("roomlore_zone", "UTC", domain="127.0.0.1", path="/console")
    row = listed(await page(http, "/console/rooms", language=language))["tea"]
    assert bars(row) == [1, *[0] * 9, 4, 1, 2, 0]
    told = {"en": "57+ messages in the last 14 days", "zh": "最近 14 天 57+ 条消息"}[language]
    assert f'role="img" aria-label="{told}"><title>{told}</title>' in row


PARTS = [("", {"tea-house", "dev", "r9"}), ("HOUSE", {"tea-house"}), ("茶", {"r9"}), ("zzz", set())]


@both
async def test_the_list_of_rooms_is_filtered_by_a_part_of_a_name_or_id(http, lore, language):
    for room in ("tea-house", "dev", "r9"):
        await lore.messages.add(Message(id="m1", room_id=room, sender_id="ann", text="hello"))
    await lore.rooms.rename("r9", "喝茶")
    say = tongue(language).say
    for part, rooms in PARTS:
        shown = await page(http, f"/console/rooms?q={part}", language=language)
        assert set(listed(shown)) == rooms, part
        assert (say("rooms.none") in shown) == (not rooms)
        assert f'value="{part}"' in shown


async def test_a_viewer_reads_the_last_words_of_none_but_their_own_rooms(lore):
    for room, kind in (("tea", "public"), ("secret", "private")):
        await lore.rooms.set_kind(room, kind)
        await lore.messages.add([Message(id="m1", room_id=room, sender_id="ann", text=f"words of {room}")])
    secret = (await lore.keys.create("reader", scopes=["read"]))[1]
    async with asking(lore, secret, viewer="user:bo") as http:
        shown = await page(http, "/console/rooms")
        assert "secret" not in (await page(http, "/console/rooms?q=sec")).partition('class="list')[2]
    assert ("words of tea" in shown, "words of secret" in shown) == (True, False)


def suggested(shown: str) -> list[str]:
    """Return the addresses of the options, which are all there is."""
    assert re.sub(r"<a role=\"option\".*?</a>", "", shown, flags=re.DOTALL).strip() == ""
    return re.findall(r'<a role="option" tabindex="-1" href="/console/([^"]+)"', shown)


async def test_a_search_suggests_rooms_and_people_by_a_part_of_their_names(http, lore):
    await lore.messages.add(
        [
            Message(id="m1", room_id="10086@chatroom", sender_id="wx_1", sender_name="安娜 Anna", text="茶"),
            Message(id="m1", room_id="annex", sender_id="wx_2", sender_name="<b>Hannah", text="tea"),
        ]
    )
    await lore.rooms.rename("10086@chatroom", "产品讨论组")
    for typed, found in {
        "ANN": ["room?id=annex", "person?id=wx_1", "person?id=wx_2"],
        "讨": ["room?id=10086%40chatroom"],
        "安": ["person?id=wx_1"],
        "nobody": [],
        "n": [],
        "%": [],
        "": [],
    }.items():
        assert sorted(suggested(await page(http, f"/console/suggest?q={quote(typed)}"))) == sorted(found), typed
    shown = await page(http, "/console/suggest?q=hannah", language="zh")
    assert "<bdi>&lt;b&gt;Hannah <code" in shown
    assert ">成员</span>" in shown


async def test_a_search_suggests_a_viewer_what_they_may_see(lore):
    for room, kind in (("tea-public", "public"), ("tea-secret", "private")):
        await lore.rooms.set_kind(room, kind)
        await lore.messages.add([Message(id="m1", room_id=room, sender_id=f"of-{room}", text="tea")])
    secret = (await lore.keys.create("reader", scopes=["read"]))[1]
    async with asking(lore, secret, viewer="user:bo") as http:
        found = suggested(await page(http, "/console/suggest?q=tea"))
    assert found == ["room?id=tea-public", "person?id=of-tea-public"]


async def test_without_a_script_a_search_is_a_plain_form(http):
    for path in ("", "/search"):
        shown = await page(http, f"/console{path}")
        for form in re.findall(r'<form[^>]* data-suggest="/console/suggest">.*?</form>', shown, re.DOTALL):
            assert 'method="get" action="/console/search"' in form
            assert 'role="combobox"' not in form
            assert re.search(r'role="listbox" aria-label="[^"]+" hidden></div></(?:form|div)>', form)


@both
async def test_a_room_is_deleted_once_its_id_is_typed(http, lore, language):
    say = tongue(language).say
    await lore.messages.add([*SLACK, Message(id="m9", room_id="other", sender_id="U0A1", text="bye")])
    await lore.memories.add("group:slack", "There is an umbrella", sources=[Source("slack", "m2")])
    assert "/console/room/delete?id=slack" in await page(http, "/console/room?id=slack", language=language)
    asked = await page(http, "/console/room/delete?id=slack", language=language)
    for told in (say("delete_room.means"), say("place.group_memories"), say("forget.typed")):
        assert told in asked
    token = re.search(r'name="token" value="([^"]+)"', asked)[1]
    address = "/console/room/delete?id=slack"
    wrong = await http.post(address, data={"token": token, "typed": "Slack"}, headers=LANGUAGES[language])
    assert (wrong.status_code, say("forget.wrong") in wrong.text) == (422, True)
    assert (await lore.rooms.get("slack")).messages == 2
    going = await http.post(address, data={"token": token, "typed": "slack"}, headers=LANGUAGES[language])
    assert (going.status_code, going.headers["location"]) == (303, "/console/room/delete?id=slack&done=1")
    led = await page(http, going.headers["location"], language=language)
    assert say("delete_room.goes_on") in led
    assert "/room?id=slack" not in led
    assert await lore.memories.page("group:slack") == []
