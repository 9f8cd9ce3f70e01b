"""Messages of a context from long ago are shown with their reason, by every surface."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from typer.testing import CliRunner

import roomlore
from console_rig import LANGUAGES, page
from mcp_rig import ask, on_a_port, over_http
from roomlore.core.far import _FOUND, _REASONS
from roomlore.core.models import StoredMessage, Weighed
from roomlore.surfaces.cli.app import app
from roomlore_console.contexts import reason
from roomlore_console.frame import tongue
from roomlore_server.http import create_mcp_app

MAY = datetime(2026, 5, 4, 9, tzinfo=UTC)
SAID = (
    ("a1", "ilse", "The spare key hangs in the bicycle shed.", MAY),
    ("a2", "marek", "Thanks, I will need it on Sunday.", MAY + timedelta(minutes=1)),
    ("a3", "ilse", "Nice weather today.", MAY + timedelta(days=2)),
    ("q", "marek", "Where did Ilse say the spare key is?", MAY + timedelta(days=9)),
)
TALK = [roomlore.Message(id=i, room_id="house", sender_id=who, text=text, sent_at=at) for i, who, text, at in SAID]


@pytest.fixture
async def house(lore):
    await lore.messages.add(TALK)
    return lore


async def test_over_http(http, house):
    built = (await http.post("/context", json={"room_id": "house", "message_id": "q"})).json()
    assert {one["message"]["id"]: one["reason"] for one in built["messages"]}["a1"] == _FOUND


async def test_in_the_console(http, house):
    path = "/console/context?room=house&message=q&strategy=threaded"
    assert _FOUND in await page(http, path)
    assert "回答了这个问题" in await page(http, path, language="zh")


async def test_over_mcp(house):
    async with on_a_port(create_mcp_app(house)) as url, over_http(url) as client:
        shown = await ask(client, "room_context", room_id="house", message_id="q")
        assert {one["message_id"]: one["reason"] for one in shown["messages"]}["a1"] == _FOUND


def test_on_the_command_line():
    with roomlore.open_sync("house.db") as lore:
        lore.messages.add(TALK)
    shown = CliRunner().invoke(app, ["--db", "house.db", "context", "house", "q", "--json"])
    assert shown.exit_code == 0, shown.output
    assert {one["message"]["id"]: one["reason"] for one in json.loads(shown.stdout)["messages"]}["a1"] == _FOUND
    assert "answers the" in CliRunner().invoke(app, ["--db", "house.db", "context", "house", "q", "--explain"]).stdout


@pytest.mark.parametrize("said", [_FOUND, *_REASONS.values()])
def test_every_such_reason_is_said_in_both_languages(said):
    message = StoredMessage(id="a", room_id="house", sender_id="ilse", sent_at=MAY, arrival=1)
    one = Weighed(message=message, score=0.4, reason=said)
    told = {name: reason(one, tongue(name)) for name in LANGUAGES}
    assert told["en"] == said
    assert told["zh"].startswith("回答了这个问题")
    assert not any(letter.isascii() and letter.isalpha() for letter in told["zh"])
