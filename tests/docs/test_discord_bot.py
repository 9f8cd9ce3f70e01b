"""The bot of docs/how-to/discord.md: closing, messages that come twice, and an answer that fails."""

import asyncio
import contextlib
import warnings
from collections import Counter
from functools import partial

import pytest
from doc_discord import ANN, BOT, CHANNEL, LI, Discord, message
from doc_gate import MAX_SECONDS, Gate
from doc_program import load_program

import roomlore
from roomlore_testkit.model_server import ModelServer

with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # it imports audioop
    import discord

FIRST = message("101", ANN, f"<@{BOT}> 喝什么茶？ which tea?")
SECOND = message("102", LI, f"<@{BOT}> 热的 or cold?")


@pytest.fixture
async def there(monkeypatch):
    stand_in = Discord(_nothing)
    runner = await stand_in.start()
    monkeypatch.setattr(discord.http.Route, "BASE", f"{stand_in.url}/api/v10")
    monkeypatch.setattr(
        discord.gateway.DiscordWebSocket, "DEFAULT_GATEWAY", discord.gateway.yarl.URL(f"{stand_in.url}/gateway")
    )
    yield stand_in
    await runner.cleanup()


async def _nothing(_: Discord) -> None:
    """Nobody does anything by themselves."""


@pytest.fixture
def gate():
    return Gate()


@pytest.fixture
async def program(gate, tmp_path, monkeypatch):
    """The page's module."""
    async with ModelServer(gate) as server:
        yield load_program("docs/how-to/discord.md", "bot.py", tmp_path, monkeypatch, model_url=server.url)


@contextlib.asynccontextmanager
async def running(program):
    """The bot, connected; at the end it is told to stop in the way in which Ctrl-C tells it."""
    async with roomlore.open() as lore, program.Bot(lore) as bot:
        listening = asyncio.create_task(bot.start("..."))
        try:
            async with asyncio.timeout(MAX_SECONDS):
                await bot.wait_until_ready()
            yield bot
        finally:
            listening.cancel()
            await asyncio.wait({listening})


async def tell(there: Discord, bot, *told: dict) -> None:
    """Returns when the bot has them all, and has done nothing yet about the last."""
    for one in told:
        heard = bot.wait_for("message", check=partial(_is, one))
        await there.tell("MESSAGE_CREATE", **one)
        async with asyncio.timeout(MAX_SECONDS):
            await heard


def _is(told: dict, found: discord.Message) -> bool:
    return str(found.id) == told["id"]


def answered(there: Discord) -> dict[str, int]:
    return Counter(said["message_reference"]["message_id"] for said in there.said.values())


async def stored() -> set[str]:
    async with roomlore.open(background=False) as lore:
        return {one.id for one in await lore.messages.page(CHANNEL)} & {"101", "102"}


async def test_an_answer_that_fails_is_logged_and_keeps_no_other_from_being_sent_at_the_end(
    program, there, gate, caplog
):
    gate.open.clear()
    there.unanswerable.add("102")
    async with running(program) as bot:
        await tell(there, bot, FIRST, SECOND)
        await gate.until_asked(2)
        gate.open.set()
    assert answered(there) == {"101": 1}
    assert await stored() == {"101", "102"}
    assert [record.getMessage() for record in caplog.records if record.name == "bot"] == [
        "message 102 was not answered"
    ]


async def test_what_still_waits_at_the_end_is_stored_and_answered(program, there):
    async with running(program) as bot:
        await tell(there, bot, FIRST, SECOND)
    assert await stored() == {"101", "102"}
    assert answered(there) == {"101": 1, "102": 1}


async def test_what_takes_too_long_at_the_end_is_given_up_and_said(program, there, gate, caplog):
    gate.open.clear()
    program.ENDING_SECONDS = 0.01
    async with running(program) as bot:
        await tell(there, bot, FIRST)
        await gate.until_asked(1)
    assert "not all that waited was done" in caplog.text
    assert await stored() == {"101"}
    assert not there.said


async def test_a_message_told_again_is_not_answered_again(program, there, gate):
    gate.open.clear()
    async with running(program) as bot:
        await tell(there, bot, FIRST, FIRST)
        await gate.until_asked(1)
        gate.open.set()
        async with asyncio.timeout(MAX_SECONDS):
            await there.until_answered("101")
        await tell(there, bot, FIRST)
    assert [said["content"] for said in there.said.values()] == ["绿茶 green tea"]
