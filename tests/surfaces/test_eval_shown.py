"""`roomlore eval`: its tables, JSON, page, and exit codes."""

import asyncio
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import roomlore
from roomlore.core.models import Message
from roomlore.core.records import parse_time
from roomlore.surfaces.cli.app import app

SAID = [
    ("m1", "ann", "Which database does the invoices service use?", None),
    ("m2", "dee", "咖啡机又坏了 <b>", None),
    ("m3", "bo", "invoices uses postgres", "m1"),
    ("m4", "cy", "咖啡机明天有人来修", "m2"),
]


@pytest.fixture
def run():
    async def fill() -> None:
        async with roomlore.open("chat.db") as lore:
            for at, (name, who, text, reply_to) in enumerate(SAID):
                sent_at = parse_time(f"2024-05-01T1{at}:00Z")
                message = Message(id=name, room_id="a<b>", sender_id=who, text=text, reply_to=reply_to, sent_at=sent_at)
                await lore.messages.add(message)
            await lore.messages.add(Message(id="1", room_id="plain", sender_id="ann", text="hi"))

    asyncio.run(fill())

    def invoke(*arguments: str, code: int = 0) -> str:
        result = CliRunner().invoke(app, ["--db", "chat.db", "eval", *arguments])
        assert result.exit_code == code, (result.output, result.exception)
        return result.output

    return invoke


def lines(name: str, *rows: dict) -> str:
    Path(name).write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return name


def test_it_tells_the_figures(run):
    shown = run("a<b>")
    assert "100.0%" in shown
    assert "contexts hold the answered message" in shown
    made = json.loads(run("--json"))
    assert [room["room_id"] for room in made["rooms"]] == ["a<b>", "plain"]
    assert (made["found"]["hits"], made["found"]["cases"], made["found"]["share"]) == (2, 2, 1.0)
    assert made["window"]["interval"][0] < 1


def test_a_room_without_replies_says_what_to_do(run):
    assert "No platform replies" in run("plain")


def test_the_page_is_inert_and_whole(run):
    row = {"question": "who fixes the <script>?", "room_id": "a<b>", "answers": ["m9"], "message_id": "m4"}
    run("--questions", lines("q.jsonl", row), "--report", "out.html")
    page = Path("out.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 3
    assert "tokens of a context on average" in page
    assert "&lt;script&gt;" in page
    assert "<script" not in page
    assert "a&lt;b&gt;" in page
    assert "http" not in page


def test_exit_codes_are_for_ci(run):
    run("a<b>", "--least", "0.5")
    run("plain", "--least", "0.5", code=1)
    leak = lines("f.jsonl", {"text": "postgres", "viewer": "room:a<b>"})
    shown = run("a<b>", "--forbidden", leak, code=1)
    assert "forbidden texts: 1 looked for, 2 shown" in shown
    assert "room:a<b> is shown 'postgres' (digest, room a<b>)" in shown
    assert "room:a<b> is shown 'postgres' (search, room a<b>)" in shown
    run("a<b>", "--forbidden", lines("g.jsonl", {"text": "postgres", "viewer": "room:plain"}))


def test_bad_files_are_named(run):
    Path("bad.jsonl").write_text("{\n", encoding="utf-8")
    assert "bad.jsonl, line 1 is no JSON" in run("--questions", "bad.jsonl", code=1)
    assert "`answers`" in run("--questions", lines("q.jsonl", {"question": "x", "room_id": "r"}), code=1)
    assert "There is no room" in run("nowhere", code=1)
