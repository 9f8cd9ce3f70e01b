"""What a person is told of a room in which they were for some of the time: that part, whatever was said in the rest."""

from datetime import timedelta

import httpx
import pytest

import roomlore
from roomlore import Lore, Member, Message, NotFound
from roomlore.wiring import resources
from roomlore_server.http import create_app
from roomlore_testkit import START, FrozenClock
from roomlore_testkit.embedding import HashEmbedder

HOUR = timedelta(hours=1)
SAID = (
    "The pump is broken. 水泵坏了",
    "Who can mend the pump on Friday? 谁周五能修水泵？",
    "I can, I have the parts. 我可以，我有零件",
    "Thanks! Then we decide: Friday at nine. 那就定周五九点",
    "Shall we paint the fence too? 栅栏也刷一下吗？",
)
HIDDEN = ("Bo must not know: we sell the house 卖房子", "For 400k 四十万", "Who tells Bo about the pump? 谁告诉小博？")


async def told(lore: Lore, clock: FrozenClock, hidden: int) -> None:
    """Bo is in the house from the second hour to the eighth. Before and after, so many secrets are said."""
    await lore.rooms.set_kind("house", "private")
    stays = [Member("ann", START), Member("bo", START + 2 * HOUR, START + 8 * HOUR)]
    await lore.rooms.set_members("house", stays)
    for begin in (0, 20):
        for number in range(hidden):
            await say(lore, f"h{begin + number}", "ann", HIDDEN[number], START + (begin + number / 9) * HOUR)
        if not begin:
            await say(lore, "root", "ann", "About the pump 关于水泵" if hidden else "x", START + HOUR)
            for place, text in enumerate(SAID):
                who, answers = ("ann", "bo")[place % 2], {0: "root", 2: "m1"}.get(place)
                await say(lore, f"m{place}", who, text, START + (3 + place / 9) * HOUR, answers)
            await say(lore, "edited", "ann", "The key is here 钥匙", START + 4 * HOUR)
    if hidden:
        clock.advance(10 * HOUR.total_seconds())
        await lore.messages.edit("house", "edited", text="The key is under the stone 石头下")
    else:
        await lore.messages.delete("house", "edited")


async def say(lore, name: str, who: str, text: str, at, answers: str | None = None) -> None:
    await lore.messages.add(
        Message(id=name, room_id="house", sender_id=who, text=text, sent_at=at, reply_to=answers, root_id=answers)
    )


async def read(lore: Lore, viewer: str) -> list[object]:
    """Return all that a viewer is told of the house, in the library and over HTTP."""
    messages, found = lore.messages, []
    page = await messages.page("house", viewer=viewer)
    found += [page, await messages.page("house", viewer=viewer, after=1, limit=2)]
    found += [await messages.get("house", one.id, viewer=viewer) for one in page]
    for query in ("pump on Friday 水泵", "house 卖房子 key 钥匙", "who decides 谁"):
        for room in ("house", None):
            for mode in ("hybrid", "lexical"):
                answer = await messages.search(room, query, viewer=viewer, mode=mode, conversation=True)
                found.append([answer.hits, answer.degraded])
    for asked in ({}, {"for_user": "bo"}, {"since": START}):
        found.append(await lore.digest("house", viewer=viewer, max_tokens=400, **asked))
    transport = httpx.ASGITransport(create_app(lore), client=("127.0.0.1", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", params={"viewer": viewer}) as web:
        for path in ("/messages/house/h0", "/messages/house/h20", "/messages/house/edited", "/messages/house/no"):
            answer = await web.get(path)
            found.append((answer.status_code, answer.json()["detail"].replace(path.rpartition("/")[2], "ID")))
        found.append((await web.get("/messages", params={"room_id": "house"})).json())
        found.append((await web.get("/messages/house/m2")).json())
    return found


@pytest.mark.parametrize("embedder", [None, HashEmbedder()], ids=["words", "meaning"])
async def test_what_was_said_before_and_after_changes_nothing(embedder, monkeypatch):
    found = []
    for hidden in (0, 3):
        clock = FrozenClock(START + 24 * HOUR)
        monkeypatch.setattr(resources, "SystemClock", lambda clock=clock: clock)
        async with roomlore.open(
            "sqlite://", settings=roomlore.Settings(), embedder=embedder, background=False
        ) as lore:
            await told(lore, clock, hidden)
            found.append(await read(lore, "user:bo"))
            everything = await lore.messages.page("house", viewer="room:house")
            assert len(everything) == len(SAID) + 1 + 2 * hidden + bool(hidden)
            assert [one.id for one in await lore.messages.page("house", viewer="user:ann")] == [
                one.id for one in everything
            ]
    for without, with_secrets in zip(*found, strict=True):
        assert without == with_secrets
    page = found[1][0]
    assert [(one.id, one.arrival, one.reply_to) for one in page] == [
        ("m0", 1, None),
        ("m1", 2, None),
        ("m2", 3, "m1"),
        ("m3", 4, None),
        ("m4", 5, None),
    ]
    assert found[1][4].link.kind == "platform"
    assert "那就定周五九点" in str(found[1][-9:-6]), "the digests"


async def test_where_a_reader_stopped_is_not_told_to_others_who_see_a_part(monkeypatch):
    found = []
    for hidden in (False, True):
        clock = FrozenClock(START + 24 * HOUR)
        monkeypatch.setattr(resources, "SystemClock", lambda clock=clock: clock)
        async with roomlore.open("sqlite://", settings=roomlore.Settings(), background=False) as lore:
            await lore.rooms.set_kind("house", "private")
            await lore.rooms.set_kind("yard", "private")
            stays = [Member("ann", START), Member("bo", START), Member("carol", START, START + 3 * HOUR)]
            await lore.rooms.set_members("house", stays)
            await lore.rooms.set_members("yard", [Member("bo", START), Member("carol", START)])
            await say(lore, "m0", "bo", SAID[0], START + HOUR)
            await say(lore, "m1", "ann", SAID[1], START + 2 * HOUR)
            if hidden:
                await say(lore, "h1", "bo", HIDDEN[0], START + 5 * HOUR)
                await lore.rooms.mark_read("house", "bo")
            found.append(await lore.digest("house", viewer="room:yard", for_user="bo"))
            assert (await lore.digest("house", viewer="user:bo", for_user="bo")).messages == (not hidden)
    assert found[0] == found[1]
    assert found[0].messages == 1


async def test_of_a_room_of_others_nothing_is_there(monkeypatch):
    clock = FrozenClock(START + 24 * HOUR)
    monkeypatch.setattr(resources, "SystemClock", lambda: clock)
    async with roomlore.open("sqlite://", settings=roomlore.Settings(), background=False) as lore:
        await told(lore, clock, 1)
        for viewer in ("user:eve", "room:other"):
            with pytest.raises(NotFound, match="no room"):
                await lore.messages.page("house", viewer=viewer)
            with pytest.raises(NotFound, match="no room"):
                await lore.messages.get("house", "m1", viewer=viewer)
            with pytest.raises(NotFound, match="no room"):
                await lore.messages.search("house", "pump", viewer=viewer)
            with pytest.raises(NotFound, match="no room"):
                await lore.digest("house", viewer=viewer)
