"""Usage records over HTTP, in the command line and in the console."""

import asyncio
import html
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

import roomlore
from console_rig import LANGUAGES, asking, page
from roomlore import Message, Settings
from roomlore.core.experiments import Experiment
from roomlore.surfaces.cli.app import app
from roomlore_console.frame import tongue
from roomlore_server.http.service_routes import JsonLines

in_both = pytest.mark.parametrize("language", LANGUAGES)


async def used(lore, count: int = 3, room: str = "tea") -> list[str]:
    begun = datetime.now(UTC)
    said = [
        Message(id=f"m{n}", room_id=room, sender_id="ann", text=f"茶 {n}?", sent_at=begun + timedelta(seconds=n))
        for n in range(count)
    ]
    await lore.messages.add(said)
    return [(await lore.context.build(room, one.id)).context_id for one in said]


async def test_pages_over_http(http, lore):
    made = await used(lore)
    first = (await http.get("/usage?limit=2")).json()
    rest = (await http.get(f"/usage?limit=2&after={first['next']}")).json()
    assert [one["context_id"] for one in (*first["records"], *rest["records"])] == made
    assert rest["next"] is None
    assert (await http.get("/usage?group_id=coffee")).json()["records"] == []
    await lore.rooms.rename("tea", "茶友")
    assert len((await http.get("/usage", params={"room_id": "茶友"})).json()["records"]) == 3
    assert (await http.get("/usage?days=0")).status_code == 422
    assert (await http.get("/usage?judged=true&arm=b")).json()["records"] == []


async def test_an_export_over_http_is_json_lines(http, lore):
    made = await used(lore)
    await lore.context.feedback(made[1], score=1.0)
    answer = await http.get("/usage/export")
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    assert [json.loads(line)["context_id"] for line in answer.text.splitlines()] == made
    judged = await http.get("/usage/export?judged=true&days=1&room_id=tea")
    assert [json.loads(line)["message"]["text"] for line in judged.text.splitlines()] == ["茶 1?"]
    assert (await http.get("/usage/export?room_id=none")).text == ""


async def test_an_export_that_nobody_reads_ends(lore):
    await used(lore)
    sent = []

    class Hasty(JsonLines):
        patience_seconds = 0.05

    async def lines():
        while True:
            yield b"{}\n"

    async def send(message):
        sent.append(message)
        if len(sent) > 2:
            await never()

    async def never():
        await asyncio.sleep(600)

    await Hasty(lines())({"type": "http", "asgi": {"spec_version": "2.4"}}, never, send)
    assert len(sent) == 3


async def test_the_report_over_http(http, lore):
    await used(lore)
    report = (await http.get("/usage/report?days=7")).json()
    (arm,) = report["arms"]
    assert (arm["arm"], arm["contexts"], arm["rooms"], arm["success"]) == (None, 3, 1, None)


@in_both
async def test_the_page_of_the_console(http, lore, language):
    def says(key: str) -> str:
        return html.escape(tongue(language).say(key), quote=False)

    assert says("usage.begin.serve") in await page(http, "/console/usage", language=language)
    made = await used(lore)
    await lore.context.feedback(made[0], score=0.5)
    shown = await page(http, "/console/usage?days=7", language=language)
    assert says("usage.no_arm") in shown
    assert "<td>0.50</td>" in shown
    await page(http, "/console/usage?days=x", 422, language=language)


@in_both
async def test_the_page_shows_the_arms_and_says_if_their_feedback_differs(language):
    def says(key: str, **values) -> str:
        return html.escape(tongue(language).say(key, **values), quote=False)

    arms = {"软": {"share": 3}, "plain": {"share": 1, "strategy": "recent"}}
    settings = Settings(experiment=arms)
    async with roomlore.open("sqlite://", settings=settings, background=False) as lore, asking(lore) as http:
        shown = await page(http, "/console/usage", language=language)
        assert says("usage.share", percent=75) in shown
        assert "strategy: recent" in shown
        assert says("usage.plain") in shown
        assert "<svg viewBox" not in shown.partition("<main")[2]
        assert says("usage.empty.next") in shown
        for room in (f"room {number}" for number in range(30)):
            in_plain = Experiment(arms).arm_of(lore.tenant, room, given={}).name == "plain"
            for context_id in await used(lore, 2, room):
                await lore.context.feedback(context_id, score=0.1 if in_plain else 0.9)
        shown = await page(http, "/console/usage", language=language)
    assert shown.count("<circle") == 2
    assert says("usage.lower", arm="plain", base="软", by="0.80", margin="0.00") in shown


def run(*arguments: str, code: int = 0):
    result = CliRunner().invoke(app, ["--db", "chat.db", *arguments])
    assert result.exit_code == code, (result.output, result.exception)
    return result


def _filled() -> list[str]:
    arms = {"a": {}, "b": {"strategy": "recent"}}
    with roomlore.open_sync("sqlite:///chat.db", settings=Settings(experiment=arms)) as lore:
        made = []
        for room in ("tea", "coffee", "\x1b[2J"):
            lore.messages.add([Message(id="1", room_id=room, sender_id="ann", text="hi 茶?")])
            made.append(lore.context.build(room, "1").context_id)
        lore.context.feedback(made[0], score=1)
    return made


def test_the_command_line():
    made = _filled()
    assert [one["context_id"] for one in json.loads(run("usage", "list", "--json").stdout)] == made
    listed = run("usage", "list", "--limit", "2")
    assert f"more: --after {made[1]}" in listed.stderr
    assert "\x1b" not in run("usage", "list").stdout
    (judged,) = run("usage", "export", "--judged", "--room", "tea").stdout.splitlines()
    assert json.loads(judged)["context_id"] == made[0]
    run("rename", "tea", "茶友")
    (named,) = json.loads(run("usage", "list", "--room", "茶友", "--json").stdout)
    assert named["context_id"] == made[0]
    assert "wrote 3 contexts" in run("usage", "export", "-o", "rows.jsonl").stderr
    written = Path("rows.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["message"]["text"] for line in written] == ["hi 茶?"] * 3
    report = json.loads(run("usage", "report", "--json").stdout)
    assert sum(arm["contexts"] for arm in report["arms"]) == 3
    shown = run("usage", "report", "--days", "1").stdout
    assert [line.split()[0] for line in shown.splitlines()[1:]] == [arm["arm"] for arm in report["arms"]]
    assert "days is" in run("usage", "report", "--days", "0", code=1).stderr
