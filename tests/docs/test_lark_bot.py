"""The bot of docs/how-to/lark.md: closing, events that come twice, and an answer that fails."""

import asyncio
from collections import Counter

import doc_lark
import pytest
from doc_gate import MAX_SECONDS, Gate
from doc_lark import BOT, CHAT, SECRET, STRANGE, Lark
from doc_program import load_program

import roomlore
from roomlore_testkit.model_server import ModelServer

TEXTS = {"om_1": "@_user_1 喝什么茶？", "om_2": "@_user_1 which tea?", "om_3": "@_user_1 热的 or cold?"}


class Quiet(Lark):
    """Nobody there does anything by themselves."""

    def begin(self) -> None:
        pass


def asks(message_id: str, sender: str = "ou_li", **header: str) -> dict:
    mentions = [doc_lark.mention(1, BOT, "茶")]
    said = doc_lark.message(message_id, sender, {"text": TEXTS[message_id]}, mentions=mentions)
    return {"header": {"event_type": "im.message.receive_v1", **header}, "event": said}


@pytest.fixture
async def there():
    stand_in = Quiet(lambda _: None, "http://127.0.0.1:1/lark")
    runner = await stand_in.start()
    yield stand_in
    await runner.cleanup()


@pytest.fixture
def gate():
    return Gate()


@pytest.fixture
async def bot(there, gate, tmp_path, monkeypatch):
    """The page's module."""
    for name in ("LARK_APP_SECRET", "LARK_VERIFICATION_TOKEN", "LARK_ENCRYPT_KEY"):
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("LARK_APP_ID", "cli_...")
    monkeypatch.setenv("LARK_URL", there.url)
    async with ModelServer(gate) as server:
        yield load_program("docs/how-to/lark.md", "lark_bot.py", tmp_path, monkeypatch, model_url=server.url)


async def stored() -> dict[str, str]:
    async with roomlore.open(background=False) as lore:
        return {one.id: one.sender_name for one in await lore.messages.page(CHAT) if one.id in TEXTS}


async def test_an_answer_that_fails_is_logged_and_keeps_no_other_from_being_sent_at_the_end(bot, there, gate, caplog):
    gate.open.clear()
    there.unanswerable.add("om_2")
    async with bot.life(bot.app):
        bot.app.state.bot.take(asks("om_1", event_id="e1"))
        bot.app.state.bot.take(asks("om_2", STRANGE, event_id="e2"))
        await gate.until_asked(2)
        gate.open.set()
    assert Counter(there.replied) == {"om_1": 1}
    assert await stored() == {"om_1": "李雷", "om_2": ""}
    assert [record.getMessage() for record in caplog.records if record.name == "lark"] == [
        "message om_2 was not answered"
    ]


async def test_what_still_waits_at_the_end_is_stored_and_answered(bot, there):
    async with bot.life(bot.app):
        for message_id in TEXTS:
            bot.app.state.bot.take(asks(message_id, event_id=f"e-{message_id}"))
    assert await stored() == dict.fromkeys(TEXTS, "李雷")
    assert Counter(there.replied) == dict.fromkeys(TEXTS, 1)


async def test_what_takes_too_long_at_the_end_is_given_up_and_said(bot, there, gate, caplog):
    gate.open.clear()
    bot.ENDING_SECONDS = 0.01
    async with bot.life(bot.app):
        bot.app.state.bot.take(asks("om_1", event_id="e1"))
        await gate.until_asked(1)
    assert "not all that waited was done" in caplog.text
    assert await stored() == {"om_1": "李雷"}
    assert not there.replied


async def test_an_event_told_again_is_not_answered_again(bot, there):
    async with bot.life(bot.app):
        bot.app.state.bot.take(asks("om_1", event_id="e1"))
        async with asyncio.timeout(MAX_SECONDS):
            await there.until_answered("om_1")
        bot.app.state.bot.take(asks("om_1", event_id="e1"))
    assert there.replied == ["om_1"]


@pytest.mark.parametrize("header", [{}, {"event_id": ""}], ids=["none", "empty"])
async def test_events_without_an_id_are_each_done(bot, there, header):
    async with bot.life(bot.app):
        for message_id in TEXTS:
            bot.app.state.bot.take(asks(message_id, **header))
    assert await stored() == dict.fromkeys(TEXTS, "李雷")
    assert Counter(there.replied) == dict.fromkeys(TEXTS, 1)
