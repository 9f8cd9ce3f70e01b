"""Replies while the database really fails: they are given from what was just said, and stored when it is back."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from reply_rig import asks, chat, counted, gathered, last, replying, until_nothing_waits
from roomlore import Conflict, ModelUnavailable, NotFound, StorageUnavailable, Tool, ToolCall, ToolResult
from roomlore.core.replies.reply import ReplyStarted
from roomlore_server.http import create_app
from roomlore_testkit.model_server import Break, Says

SAID = {
    "en": ("Green or black tea?", "Green.", "Why?", "It is mild."),
    "zh": ("绿茶还是红茶？", "绿茶。", "为什么？", "清淡。"),
}


@asynccontextmanager
async def locked(url: str) -> AsyncIterator[None]:
    """The file of the database, locked for writing by another program. It waits in a thread: work of roomlore that has
    begun a transaction needs the event loop to end it."""
    other = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None, check_same_thread=False)
    try:
        await asyncio.to_thread(other.execute, "BEGIN IMMEDIATE")
        yield
    finally:
        other.close()


async def stored(lore, count: int) -> list[tuple[str, str, str | None]]:
    """The messages of the room, when there are so many."""
    async with asyncio.timeout(30):
        while True:
            try:
                found = await lore.messages.page("r")
            except (NotFound, StorageUnavailable):
                found = []
            if len(found) >= count:
                return [(one.sender_id, one.text, one.reply_to) for one in found]
            await asyncio.sleep(0.1)


@pytest.mark.parametrize("language", SAID)
async def test_a_reply_is_given_while_postgresql_is_down_and_stored_when_it_is_back(own_postgres, language):
    first, green, second, mild = SAID[language]
    async with replying([green, mild], url=own_postgres.url) as (lore, model):
        own_postgres.stop()
        events = await gathered(lore, asks(first, "q1"))
        started, reply = events[0], last(events)
        assert isinstance(started, ReplyStarted)
        assert started.degraded
        assert "stored when it is back" in str(reply.degraded)
        assert (reply.text, reply.repeated) == (green, False)
        again = await lore.replies.reply(asks(first, "q1"))
        assert (again.text, again.repeated, len(model.requests)) == (green, True, 1), "it is not paid for twice"
        with pytest.raises(Conflict):
            await lore.replies.reply(asks("Something else", "q1"))
        assert (await lore.replies.reply(asks(second, "q2"))).text == mild
        known = [text.removeprefix("ann: ") for _, text in chat(model.requests[1])]
        assert known == [first, green, second], "what was said meanwhile is known"
        own_postgres.start()
        assert await stored(lore, 4) == [
            ("ann", first, None),
            ("assistant", green, "q1"),
            ("ann", second, None),
            ("assistant", mild, "q2"),
        ]
        await until_nothing_waits(lore)
        assert counted(lore, 'roomlore_replies_stored_later_total{result="stored"}') == 4
        later = await lore.replies.reply(asks(first, "q1"))
        assert (later.text, later.repeated, later.degraded) == (green, True, None)


async def test_a_database_that_fails_while_the_model_answers_keeps_no_reply_back(own_postgres):
    async with replying([Says(text="Green.", pieces=["Gr", "een."], after=0.2)], url=own_postgres.url) as (lore, _):
        seen = []
        async for event in lore.replies.stream(asks(message_id="q1")):
            seen.append(event)
            if isinstance(event, ReplyStarted):
                assert event.degraded is None
                own_postgres.stop()
        assert (last(seen).text, bool(last(seen).degraded)) == ("Green.", True)
        own_postgres.start()
        assert [one[:2] for one in await stored(lore, 2)] == [("ann", "Green or black tea?"), ("assistant", "Green.")]


async def test_a_question_that_was_stored_and_waits_too_holds_up_nothing(own_postgres):
    async with replying([Says(text="Green.", after=0.2), "Mild."], url=own_postgres.url) as (lore, model):
        async for event in lore.replies.stream(asks(message_id="q1")):
            if isinstance(event, ReplyStarted):
                own_postgres.stop()
        again = await lore.replies.reply(asks(message_id="q1"))
        assert (again.text, again.repeated, len(model.requests)) == ("Green.", True, 1)
        await lore.replies.reply(asks("Why?", "q2"))
        own_postgres.start()
        texts = [one[1] for one in await stored(lore, 4)]
        assert texts == ["Green or black tea?", "Green.", "Why?", "Mild."]
        await until_nothing_waits(lore)
        assert counted(lore, 'roomlore_replies_stored_later_total{result="stored"}') == 4
        assert counted(lore, 'roomlore_replies_stored_later_total{result="refused"}') == 0


async def test_a_locked_sqlite_file_keeps_no_reply_back(sqlite_url):
    async with replying(["Green.", "Mild."], url=sqlite_url) as (lore, _):
        await lore.replies.reply(asks("Green or black tea?", "q1"))
        async with locked(sqlite_url):
            reply = await lore.replies.reply(asks("Why?", "q2"))
            assert (reply.text, bool(reply.degraded)) == ("Mild.", True)
            assert len(await lore.messages.page("r")) == 2
        assert [one[1] for one in await stored(lore, 4)] == ["Green or black tea?", "Green.", "Why?", "Mild."]


async def test_what_a_broken_reply_said_is_stored_too(own_postgres):
    async with replying([Says(pieces=["Gre", "en, ", "I"], breaks=Break(after=2))], url=own_postgres.url) as (lore, _):
        own_postgres.stop()
        with pytest.raises(ModelUnavailable):
            await lore.replies.reply(asks(message_id="q1"))
        own_postgres.start()
        assert [one[:2] for one in await stored(lore, 2)] == [("ann", "Green or black tea?"), ("assistant", "Green, ")]


async def test_tools_that_are_called_here_work_and_those_of_the_caller_are_not_offered(own_postgres):
    async def leaf(_: ToolCall) -> str:
        return "leaf"

    wants = Says(tool_calls=[ToolCall("c", "look", "{}")])
    async with replying([wants, "Green.", "Black."], url=own_postgres.url) as (lore, model):
        own_postgres.stop()
        reply = await lore.replies.reply(asks(message_id="q1"), tools=[Tool("look")], call_tool=leaf)
        assert reply.text == "Green."
        assert (await lore.replies.reply(asks(message_id="q2"), tools=[Tool("look")])).text == "Black."
        assert "tools" not in model.requests[2].body
        with pytest.raises(StorageUnavailable, match="tool calls of these results"):
            await lore.replies.reply(asks(message_id="q3"), tools=[Tool("look")], tool_results=[ToolResult("c", "x")])
        own_postgres.start()
        assert [one[1] for one in await stored(lore, 7)][:4] == ["Green or black tea?", "", "leaf", "Green."]


@pytest.mark.parametrize("with_key", [True, False], ids=["a key", "no key yet"])
async def test_over_http_whoever_was_let_in_is_still_answered(own_postgres, with_key):
    async with replying(["Green."], url=own_postgres.url) as (lore, _):
        secret = (await lore.keys.create("bot"))[1] if with_key else ""
        headers = {"Authorization": f"Bearer {secret}"} if with_key else {}
        here = httpx.ASGITransport(create_app(lore), client=("127.0.0.1", 1))
        away = httpx.ASGITransport(here.app, client=("10.0.0.1", 1))
        body = {"room_id": "r", "message": {"id": "q1", "sender_id": "ann", "text": "Green or black tea?"}}
        async with httpx.AsyncClient(transport=here, base_url="http://127.0.0.1", headers=headers) as client:
            assert (await client.get("/models")).status_code == 200
            own_postgres.stop()
            answer = await client.post("/chat/sse", json=body)
            assert answer.status_code == 200
            done = json.loads(answer.text.rsplit("data: ", 1)[1])
            assert (done["text"], bool(done["degraded"])) == ("Green.", True)
            for other in ({"Authorization": "Bearer rl_other"},) if with_key else ():
                refused = await client.post("/chat/sse", json=body, headers=other)
                assert refused.status_code == 503, "nobody is let in who was not known"
        if not with_key:
            async with httpx.AsyncClient(transport=away, base_url="http://127.0.0.1") as client:
                assert (await client.post("/chat/sse", json=body)).status_code == 403
        own_postgres.start()
        assert len(await stored(lore, 2)) == 2
