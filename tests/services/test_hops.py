"""Hops from the event loop to a thread and statements, counted for each call: each costs more than most of the work."""

import asyncio

import pytest
from bench.work import counted

import roomlore
from roomlore.storage.sqlite import SqliteConnection
from roomlore_testkit.embedding import HashEmbedder


@pytest.fixture
async def lore(tmp_path, request):
    """A store whose rooms are in memory, with the embedder that a test gives."""
    url, embedder = f"sqlite:///{tmp_path}/a.db", getattr(request, "param", None)
    async with roomlore.open(url, settings=roomlore.Settings(), embedder=embedder, background=False) as opened:
        for number in range(30):
            await opened.messages.add(said(f"warm {number}", room_id=f"room-{number % 16}"))
        await opened.messages.search("room-1", "deploy")
        await opened.context.build("room-1")
        yield opened


@pytest.fixture
async def hops(lore):
    """The jobs that the event loop gave to a thread."""
    await asyncio.sleep(0.2)  # the records of the contexts are written
    with counted() as work:
        yield work.hops


@pytest.fixture
async def statements(lore, monkeypatch):
    """The statements that were run on any connection."""
    run, fetch = [], SqliteConnection.fetch

    async def counted(connection, statement, **params):
        run.append(statement)
        return await fetch(connection, statement, **params)

    await asyncio.sleep(0.2)  # the records of the contexts are written
    monkeypatch.setattr(SqliteConnection, "fetch", counted)
    return run


def said(text, room_id="room-1"):
    return roomlore.Message(
        id=text, room_id=room_id, sender_id="ann", text=f"Who deploys the server? 谁来部署？ {text}"
    )


@pytest.mark.parametrize("lore", [None, HashEmbedder()], ids=["words", "words and vectors"], indirect=True)
async def test_a_message_is_added_with_none(lore, hops):
    await lore.messages.add(said("one"))
    assert hops == []


async def test_a_context_is_built_with_none(lore, hops):
    built = lore.context.build("room-1")
    assert (await built).messages
    assert hops == []


@pytest.mark.parametrize("asked", ["who deploys the server", "谁来部署"])
async def test_a_search_is_answered_with_none(lore, hops, asked):
    assert (await lore.messages.search("room-1", asked)).hits
    assert hops == []


async def test_messages_that_come_at_once_share_their_commits(lore, hops):
    """Three or four commits for 16 messages, and a few more on a busy machine, since none waits long for others."""
    for turn in ("opens the connections", "finds them open"):
        hops.clear()
        adds = (lore.messages.add(said(f"{turn} {number}", room_id=f"room-{number}")) for number in range(16))
        await asyncio.gather(*adds)
    assert len(hops) <= 8


def shown(context):
    return [(candidate.message.text, candidate.reason) for candidate in context.messages]


@pytest.fixture
async def other(lore, tmp_path):
    """Another process that has the same database open."""
    async with roomlore.open(f"sqlite:///{tmp_path}/a.db", settings=roomlore.Settings(), background=False) as opened:
        yield opened


async def test_a_context_of_a_room_just_written_runs_no_statement(lore, statements):
    await lore.messages.add(said("asked"))
    await lore.messages.add(said("elsewhere", room_id="room-2"))
    statements.clear()
    assert len((await lore.context.build("room-1", "asked")).messages) == 2
    assert statements == []
    await asyncio.sleep(0.2)  # the record of the context is written, which changes no room
    statements.clear()
    assert len((await lore.context.build("room-1")).messages) == 2
    assert statements == []


async def test_a_search_of_a_room_that_is_the_same_runs_no_statement(lore, statements):
    statements.clear()
    assert (await lore.messages.search("room-1", "who deploys the server")).hits
    assert statements == []
    await lore.messages.add(said("another"))
    statements.clear()
    hits = (await lore.messages.search("room-1", "who deploys the server")).hits
    assert "another" in {hit.message.id for hit in hits}
    assert len(statements) == 1


CHANGES = {
    "a message": lambda by: by.messages.add(said("from elsewhere")),
    "an edit": lambda by: by.messages.edit("room-1", "warm 1", text="nothing to deploy on the server"),
    "a deletion": lambda by: by.messages.delete("room-1", "warm 1"),
    "a link": lambda by: by.links.correct("room-1", "asked", answers="warm 1"),
    "settings": lambda by: by.rooms.configure("room-1", {"max_context_messages": 1}),
    "a person forgotten": lambda by: by.privacy.forget("eve"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("elsewhere", [True, False], ids=["another process", "this process"])
async def test_what_is_written_to_a_room_is_seen_at_once(lore, other, change, elsewhere):
    """The writer of the last message has the room in memory, and shows what another process does, which reads it."""
    eve = roomlore.Message(id="eve", room_id="room-1", sender_id="eve", text="Eve deploys the server")
    await lore.messages.add([eve, said("asked")])
    before = shown(await lore.context.build("room-1", "asked"))
    found = await lore.messages.search("room-1", "who deploys")
    await change(other if elsewhere else lore)
    here, there = [shown(await by.context.build("room-1")) for by in (lore, other)]
    assert here == there
    asked = [shown(await by.context.build("room-1", "asked")) for by in (lore, other)]
    assert asked[0] == asked[1]
    hits, read = [(await by.messages.search("room-1", "who deploys")).hits for by in (lore, other)]
    assert hits == read
    assert (here, asked[0], hits) != (before, before, found.hits)
