"""What is new in a room is made once for all open pages that show it alike."""

import asyncio
import re

import pytest
from console_rig import LANGUAGES

from roomlore import Message
from roomlore.surfaces.console import rooms
from roomlore.surfaces.console.live import Live


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


async def test_pages_in_other_languages_zones_and_after_changes_are_their_own(lore, http, make_message, monkeypatch):
    made = []
    new = rooms._new

    async def counted(*arguments):
        made.append(1)
        return await new(*arguments)

    monkeypatch.setattr(rooms, "_new", counted)
    await http.post("/messages", json={"messages": [make_message(n, text=f"said {n}") for n in range(3)]})

    async def since(after: int = 1, language: str = "en", zone: str = "UTC") -> str:
        http.cookies.set("roomlore_zone", zone, path="/console")
        answer = await http.get(f"/console/room/since?id=tea&after={after}", headers=LANGUAGES[language])
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
    answer = await http.get("/console/room/since?id=tea&after=3")
    assert re.findall(r'<li id="m(\d+)"', answer.text) == ["4", "5"]
