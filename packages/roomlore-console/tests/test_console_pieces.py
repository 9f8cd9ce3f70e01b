"""What is new in a room is made once for all open pages that show it alike."""

import asyncio
import re

import pytest

from console_rig import LANGUAGES
from roomlore import Message
from roomlore.core.errors import StorageUnavailable
from roomlore_console import live as live_rooms
from roomlore_console import rooms
from roomlore_console.live import Live


async def test_one_rendering_for_all_who_ask_at_once():
    live, made = Live(), []

    async def make() -> str:
        made.append(1)
        await asyncio.sleep(0.01)
        return f"piece {len(made)}"

    assert await asyncio.gather(*(live.piece("a", make) for _ in range(20))) == ["piece 1"] * 20
    assert await live.piece("a", make) == "piece 1"
    assert await live.piece("b", make) == "piece 2"
    for number in range(100):
        await live.piece(number, make)
    assert await live.piece("a", make) == "piece 103", "only the last ones are kept"


async def test_whoever_leaves_does_not_stop_the_others_and_a_failure_is_not_kept():
    live, tries = Live(), []

    async def make() -> str:
        tries.append(1)
        await asyncio.sleep(0.01)
        if len(tries) == 1:
            raise ValueError("down")
        return "up"

    first, second = (asyncio.ensure_future(live.piece("a", make)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(ValueError, match="down"):
        await second
    assert await live.piece("a", make) == "up"


@pytest.fixture
def once(monkeypatch):
    """Let a stream tell what is new now, and end."""
    monkeypatch.setattr(live_rooms, "STREAM_SECONDS", 0.0)


@pytest.mark.usefixtures("once")
async def test_pages_in_other_languages_zones_and_after_changes_are_their_own(lore, http, make_message, monkeypatch):
    made = []
    new = rooms._new_messages

    async def counted(*arguments):
        made.append(1)
        return await new(*arguments)

    monkeypatch.setattr(rooms, "_new_messages", counted)
    await http.post("/messages", json={"messages": [make_message(n, text=f"said {n}") for n in range(3)]})

    async def since(after: int = 1, language: str = "en", zone: str = "UTC") -> str:
        http.cookies.set("roomlore_zone", zone, path="/console")
        answer = await http.get(f"/console/room/live?id=tea&after={after}", headers=LANGUAGES[language])
        assert answer.status_code == 200
        return answer.text

    english = await since()
    assert await since() == english
    assert len(made) == 1
    assert "said 1" in english
    assert await since(language="zh") != english
    assert await since(zone="Asia%2FShanghai") != english
    assert "said 1" not in await since(after=2)
    assert len(made) == 4
    await lore.messages.edit("tea", "m1", text="edited")
    assert "edited" in await since()


@pytest.mark.usefixtures("once")
async def test_messages_that_come_while_the_piece_is_made_push_none_out_of_it(lore, app, http):
    def said(numbers) -> list[Message]:
        return [Message(id=f"m{n}", room_id="tea", sender_id="ann", text=f"said {n} 说过") for n in numbers]

    class Slow(Live):
        """A server so busy that messages come between its look at the room and its reading of them."""

        async def piece(self, key, make):
            await lore.messages.add(said(range(5, 25)))
            return await super().piece(key, make)

    await lore.messages.add(said(range(5)))
    app.state.live = Slow()
    answer = await http.get("/console/room/live?id=tea&after=3")
    assert re.findall(r'<li id="m(\d+)"', answer.text) == ["4", "5"]


def talk(numbers) -> list[Message]:
    return [Message(id=f"m{n}", room_id="tea", sender_id="ann", text=f"said {n} 说过") for n in numbers]


@pytest.mark.usefixtures("once")
async def test_a_browser_that_asks_again_says_what_it_has_by_a_header(lore, http):
    await lore.messages.add(talk(range(5)))
    for header, shown in {"4": ["5"], "5": [], "x": ["3", "4", "5"], "9" * 30: ["3", "4", "5"]}.items():
        answer = await http.get("/console/room/live?id=tea&after=2", headers={"Last-Event-ID": header})
        assert re.findall(r'<li id="m(\d+)"', answer.text) == shown, header
        assert re.findall(r"^id: (\d+)$", answer.text, re.M) == (["5"] if shown else [])


@pytest.mark.usefixtures("once")
async def test_a_page_that_is_far_behind_is_shown_the_newest_and_a_link(lore, http):
    await lore.messages.add(talk(range(50)))
    await lore.messages.add(talk(range(50, 100)))
    text = (await http.get("/console/room/live?id=tea&after=10", headers=LANGUAGES["en"])).text
    assert re.findall(r'<li id="m(\d+)"', text) == [str(n) for n in range(41, 101)]
    assert "30 more" in text
    assert "100 messages</li>" in text, "the heading of the page counts all of the room"


async def test_the_threads_beside_a_room_are_read_anew_as_a_piece(lore, http):
    await lore.messages.add(talk(range(3)))
    whole = (await http.get("/console/room?id=tea", headers=LANGUAGES["en"])).text
    piece = (await http.get("/console/room/threads?id=tea", headers=LANGUAGES["en"])).text
    assert 'data-live="/console/room/threads?id=tea"' in whole
    assert "<html" not in piece
    assert piece.count("<li data-thread=") >= 1
    assert piece.strip() in whole
    assert 'data-live="/console/room/threads' not in (await http.get("/console/room?id=tea&limit=500")).text
    assert (await http.get("/console/room/threads?id=none")).status_code == 404


async def test_all_pages_of_a_room_share_one_look_and_one_rendering(lore, http, monkeypatch):
    monkeypatch.setattr(live_rooms, "STREAM_SECONDS", 1.0)
    made = []
    new = rooms._new_messages

    async def counted(*arguments):
        made.append(1)
        return await new(*arguments)

    monkeypatch.setattr(rooms, "_new_messages", counted)
    await lore.messages.add(talk(range(2)))
    asking = [asyncio.create_task(http.get("/console/room/live?id=tea&after=2")) for _ in range(20)]
    await asyncio.sleep(0.3)
    await lore.messages.add(talk(range(2, 5)))
    pages = [answer.text for answer in await asyncio.gather(*asking)]
    assert [re.findall(r'<li id="m(\d+)"', text) for text in pages] == [["3", "4", "5"]] * 20
    assert len(made) == 1


async def test_a_revoked_key_is_told_nothing_more_by_a_stream_that_is_open(lore, connect, monkeypatch):
    monkeypatch.setattr(live_rooms, "STREAM_SECONDS", 1.0)
    await lore.messages.add(talk(range(2)))
    key, secret = await lore.keys.create("console", scopes=("admin",))
    async with connect(key=secret) as http:
        asking = asyncio.create_task(http.get("/console/room/live?id=tea&after=2"))
        await asyncio.sleep(0.3)
        await lore.keys.revoke(key.key_id)
        await lore.messages.add(talk(range(2, 5)))
        assert "<li" not in (await asking).text


async def test_a_key_made_meanwhile_ends_the_streams_that_have_none(lore, http, monkeypatch):
    monkeypatch.setattr(live_rooms, "STREAM_SECONDS", 1.0)
    await lore.messages.add(talk(range(2)))
    asking = asyncio.create_task(http.get("/console/room/live?id=tea&after=2"))
    await asyncio.sleep(0.3)
    await lore.keys.create("console", scopes=("admin",))
    await lore.messages.add(talk(range(2, 5)))
    assert "<li" not in (await asking).text


async def test_a_stream_ends_while_the_store_cannot_be_read(lore, http, monkeypatch):
    await lore.messages.add(talk(range(2)))
    asking = asyncio.create_task(http.get("/console/room/live?id=tea&after=2"))
    await asyncio.sleep(0.3)

    def down(_):
        raise StorageUnavailable("The database is down.")

    monkeypatch.setattr(lore.storage, "reading", down)
    assert (await asyncio.wait_for(asking, 10)).status_code == 200
