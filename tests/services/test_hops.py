"""Hops from the event loop to a thread, counted for each call: on a busy processor each costs more than the work."""

import asyncio

import pytest
from bench.work import counted

import roomlore
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


def said(text, room_id="room-1"):
    return roomlore.Message(
        id=text, room_id=room_id, sender_id="ann", text=f"Who deploys the server? 谁来部署？ {text}"
    )


@pytest.mark.parametrize("lore", [None, HashEmbedder()], ids=["words", "words and vectors"], indirect=True)
async def test_a_message_is_added_with_one(lore, hops):
    await lore.messages.add(said("one"))
    assert len(hops) == 1, "only the commit, which may wait for the disk"


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
