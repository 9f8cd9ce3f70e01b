"""Corrected links over HTTP, on the command line, and in exports."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import roomlore
from console_rig import page
from roomlore.services import links
from roomlore.surfaces.cli.app import app as program
from roomlore_console.frame import FORM_COOKIE, VIEWER_COOKIE

TALK = [
    ("m1", "ann", "服务器挂了，谁看过日志？"),
    ("m2", "bob", "lunch, anyone?"),
    ("m3", "eve", "the log says: out of memory"),
    ("m4", "li", "noodles at twelve"),
]


@pytest.fixture
async def tea(http, make_message):
    batch = [make_message(sender_id=who, text=text) | {"id": name} for name, who, text in TALK]
    await http.post("/messages", json={"messages": batch})
    return http


async def test_correcting_over_http(tea):
    answer = await tea.put("/messages/tea/m4/link", json={"answers": "m2", "by": "王敏"})
    assert answer.status_code == 200
    link = answer.json()["link"]
    assert (link["kind"], link["parent"], link["parent_probability"]) == ("corrected", 2, 1.0)
    built = (await tea.post("/context", json={"room_id": "tea", "message_id": "m4"})).json()
    assert built["parent"] == "m2"
    assert (await tea.put("/messages/tea/m3/link", json={"answers": None})).json()["link"]["parent"] is None
    page = (await tea.get("/rooms/tea/corrections", params={"limit": 1})).json()
    assert page["next"] == 2
    assert (page["corrections"][0]["message_id"], page["corrections"][0]["kind"]) == ("m3", "nothing")
    page = (await tea.get("/rooms/tea/corrections", params={"before": 2})).json()
    (one,) = page["corrections"]
    assert (one["message_id"], one["answers"], one["by"], one["standing"]) == ("m4", "m2", "王敏", True)
    undone = await tea.delete("/messages/tea/m4/link", params={"by": "li"})
    assert undone.json()["link"]["kind"] != "corrected"
    assert (await tea.get("/rooms/tea/corrections")).json()["corrections"][0]["by"] == "li"


@pytest.fixture
async def chain(lore, http, make_message, monkeypatch):
    """A chain of replies, of which one transaction moves two."""
    monkeypatch.setattr(links, "_PIECE", 2)
    monkeypatch.setattr(links, "FOLLOWING", 2)
    monkeypatch.setattr(lore.links._moves, "_background", False)
    batch = [make_message(number, reply_to=f"m{number - 1}" if number > 1 else None) for number in range(1, 13)]
    await http.post("/messages", json={"messages": batch})
    return http


async def test_http_tells_what_is_still_to_follow(lore, chain):
    answer = (await chain.put("/messages/tea/m2/link", json={"answers": None})).json()
    assert (answer["relinked"], answer["left"]) == (4, 6)
    assert (await chain.put("/messages/tea/m2/link", json={"answers": None})).json()["left"] == 6
    await lore.jobs.catch_up()
    assert (await chain.put("/messages/tea/m2/link", json={"answers": None})).json()["left"] == 0
    undone = (await chain.delete("/messages/tea/m2/link")).json()
    assert (undone["relinked"], undone["left"]) == (4, 6)


async def test_the_console_tells_what_is_still_to_follow(lore, chain):
    await page(chain, "/console/context?room=tea&message=m2")
    said = {"said": "nothing", "token": chain.cookies[FORM_COOKIE]}
    answer = await chain.post("/console/link?room=tea&message=m2", data=said)
    for language, told in (("en", "in the background: 6."), ("zh", "还有 6 条消息在后台移到另一话题。")):
        assert told in await page(chain, answer.headers["location"], language=language)
    await lore.jobs.catch_up()
    jobs = await page(chain, "/console/jobs", language="zh")
    assert "更正关联后的话题" in jobs
    assert "已将 6 条消息移到所属话题，剩余 0 条" in jobs


async def test_what_http_refuses(tea):
    for path, body, status in (
        ("/messages/tea/m1/link", {"answers": "m4"}, 409),
        ("/messages/tea/m1/link", {}, 422),
        ("/messages/tea/m1/link", {"answers": 3}, 422),
        ("/messages/tea/m1/link", {"answers": "m1", "why": "x"}, 422),
        ("/messages/tea/m1/link", {"answers": None, "by": ""}, 422),
        ("/messages/tea/none/link", {"answers": None}, 404),
        ("/messages/none/m1/link", {"answers": None}, 404),
    ):
        assert (await tea.put(path, json=body)).status_code == status, (path, body)
    assert (await tea.delete("/messages/tea/none/link")).status_code == 404
    assert (await tea.get("/rooms/none/corrections")).status_code == 404


async def test_a_key_that_may_not_write_or_see(lore, connect, tea):
    await lore.rooms.set_kind("tea", "private")
    _, reading = await lore.keys.create("reads", scopes=["read"])
    _, writing = await lore.keys.create("writes", scopes=["read", "write"])
    async with connect(key=reading) as http:
        asked = {"viewer": "room:tea"}
        assert (await http.put("/messages/tea/m4/link", params=asked, json={"answers": "m2"})).status_code == 403
        assert (await http.get("/rooms/tea/corrections", params=asked)).status_code == 200
        assert (await http.get("/rooms/tea/corrections", params={"viewer": "room:other"})).status_code == 404
    async with connect(key=writing) as http:
        for viewer, status in (("room:other", 404), ("room:tea", 200)):
            answer = await http.put("/messages/tea/m4/link", params={"viewer": viewer}, json={"answers": "m2"})
            assert answer.status_code == status


@pytest.fixture
def run():
    def invoke(*arguments: str, code: int = 0, db: str = "chat.db"):
        result = CliRunner().invoke(program, ["--db", db, *arguments])
        assert result.exit_code == code, (result.output, result.exception)
        return result.output

    return invoke


@pytest.fixture
def chat(run):
    rows = [{"id": name, "room_id": "tea", "sender_id": who, "text": text} for name, who, text in TALK]
    Path("chat.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    run("import", "chat.jsonl")
    return run


def test_correcting_on_the_command_line(chat):
    told = chat("links", "correct", "tea", "m4", "--answers", "m2", "--by", "王敏")
    assert "li: noodles at twelve\n  answers bob: lunch, anyone?" in told
    assert "answers nothing before it" in chat("links", "correct", "tea", "m3", "--nothing")
    assert json.loads(chat("links", "correct", "tea", "m3", "--answers", "m1", "--json"))["link"]["parent"] == 1
    log = chat("links", "log", "tea").splitlines()
    assert [line.split()[0] for line in log[1:]] == ["3", "2", "1"]
    assert "answers nothing (no longer)" in log[2]
    assert "王敏" in log[3]
    assert "no longer" not in chat("links", "undo", "tea", "m3")
    assert json.loads(chat("links", "log", "tea", "--json"))[0]["kind"] == "undone"
    assert "more: --before 4" in chat("links", "log", "tea", "--limit", "1")


def test_the_command_line_tells_what_followed(run, monkeypatch):
    monkeypatch.setattr(links, "_PIECE", 2)
    rows = [
        {"id": f"m{n}", "room_id": "tea", "sender_id": "ann", "text": f"word {n}", "reply_to": f"m{n - 1}"}
        for n in range(1, 13)
    ]
    Path("chat.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    run("import", "chat.jsonl")
    told = run("links", "correct", "tea", "m2", "--nothing")
    assert "other messages with a new link or thread: 10" in told
    assert "still to move" not in told
    told = json.loads(run("links", "undo", "tea", "m2", "--json"))
    assert (told["relinked"], told["left"]) == (10, 0)
    monkeypatch.setattr(links, "FOLLOWING", 2)
    monkeypatch.setattr(links.NotedRooms, "claim", _nothing)
    told = run("links", "correct", "tea", "m2", "--nothing")
    assert "new link or thread: 4\n" in told
    assert "still to move to another thread, by `roomlore serve` or `worker`: 6" in told


async def _nothing(_: object) -> list[object]:
    """Another process has claimed the rooms."""
    return []


def test_what_the_command_line_refuses(chat):
    assert "--answers MESSAGE or --nothing" in chat("links", "correct", "tea", "m4", code=2)
    chat("links", "correct", "tea", "m4", "--answers", "m1", "--nothing", code=2)
    assert "came after" in chat("links", "correct", "tea", "m1", "--answers", "m2", code=1)


def test_an_export_brings_corrections_along(chat):
    """Out, into another store, and out again: the same bytes."""
    chat("links", "correct", "tea", "m4", "--answers", "m2", "--by", "王敏")
    chat("links", "correct", "tea", "m3", "--nothing")
    chat("links", "correct", "tea", "m2", "--answers", "m1")
    chat("links", "undo", "tea", "m2")
    chat("export", "--output", "out.jsonl")
    chat("import", "out.jsonl", db="other.db")
    chat("export", "--output", "again.jsonl", db="other.db")
    assert Path("again.jsonl").read_bytes() == Path("out.jsonl").read_bytes()
    log = json.loads(chat("links", "log", "tea", "--json", db="other.db"))
    assert [(one["message_id"], one["answers"], one["by"]) for one in log] == [
        ("m4", "m2", "王敏"),
        ("m3", None, "caller"),
    ]
    chat("import", "out.jsonl", db="other.db")
    assert len(json.loads(chat("links", "log", "tea", "--json", db="other.db"))) == 2


def test_an_import_keeps_what_was_corrected_since(chat):
    chat("links", "correct", "tea", "m4", "--answers", "m2")
    chat("export", "--output", "out.jsonl")
    for change in (("correct", "tea", "m4", "--answers", "m1"), ("undo", "tea", "m4")):
        chat("links", *change)
        before = chat("links", "log", "tea", "--json")
        assert "0 added" in chat("import", "out.jsonl", "--no-resume")
        assert chat("links", "log", "tea", "--json") == before


def test_an_import_goes_on_after_a_correction_that_cannot_be(chat):
    chat("links", "correct", "tea", "m4", "--answers", "m1")
    chat("export", "--output", "out.jsonl")
    rows = Path("out.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    Path("turned.jsonl").write_text("".join(reversed(rows)), encoding="utf-8")
    assert "4 added" in chat("import", "turned.jsonl", db="other.db")
    assert json.loads(chat("links", "log", "tea", "--json", db="other.db")) == []


def test_a_correction_of_somebody_who_was_forgotten_is_exported_and_imported(chat):
    chat("links", "correct", "tea", "m4", "--answers", "m2", "--by", "u-77")
    chat("forget", "u-77", "--yes")
    chat("export", "--output", "out.jsonl")
    chat("import", "out.jsonl", db="other.db")
    (one,) = json.loads(chat("links", "log", "tea", "--json", db="other.db"))
    assert (one["message_id"], one["answers"], one["by"]) == ("m4", "m2", "somebody")
    chat("export", "--output", "again.jsonl", db="other.db")
    rows = map(json.loads, Path("again.jsonl").read_text(encoding="utf-8").splitlines())
    assert not any(row.get("metadata") for row in rows)


def test_a_correction_whose_answer_was_deleted_is_not_exported(chat):
    with roomlore.open_sync("chat.db", background=False) as lore:
        lore.links.correct("tea", "m4", answers="m2")
        lore.messages.delete("tea", "m2")
    chat("export", "--output", "out.jsonl")
    assert "corrected_link" not in Path("out.jsonl").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "said",
    [5, {}, {"answers": "m1"}, {"answers": 5, "by": "x", "at": "2024-01-01"}, {"answers": None, "by": "x", "at": "?"}],
)
def test_a_damaged_correction_does_not_lose_the_message(run, said):
    row = {"id": "m1", "room_id": "tea", "sender_id": "ann", "text": "hi", "corrected_link": said}
    Path("chat.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    assert "1 added" in run("import", "chat.jsonl")
    (line,) = run("export").splitlines()[:1]
    assert json.loads(line)["metadata"]["corrected_link"] == said


def _forms(text: str) -> list[str]:
    return re.findall(r'<form[^>]*action="(/console/link[^"]*)"', text)


async def _token(http) -> str:
    """The console's own token, once a page has set it."""
    await page(http, "/console/context?room=tea&message=m4")
    return http.cookies[FORM_COOKIE]


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_the_console_says_what_a_message_answers(tea, language):
    await tea.put("/messages/tea/m4/link", json={"answers": "m2"})
    text = await page(tea, "/console/context?room=tea&message=m4", language=language)
    assert {"en": "Undo the correction", "zh": "撤销更正"}[language] in text
    assert {"en": "directly answered (corrected by a person)", "zh": "直接回复（经人工更正）"}[language] in text
    await tea.put("/messages/tea/m4/link", json={"answers": None})
    text = await page(tea, "/console/context?room=tea&message=m4", language=language)
    assert {"en": "Answers nothing before it", "zh": "没有回复前面的任何消息"}[language] in text


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_the_console_says_if_the_answered_message_was_deleted(tea, language):
    await tea.put("/messages/tea/m4/link", json={"answers": "m2"})
    await tea.delete("/messages/tea/m2")
    text = await page(tea, "/console/context?room=tea&message=m4", language=language)
    assert {"en": "Answers a message that was deleted.", "zh": "回复的消息已被删除。"}[language] in text
    assert {"en": "Answers nothing before it", "zh": "没有回复前面的任何消息"}[language] not in text


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_the_console_names_a_guess_in_a_platform_thread(http, make_message, language):
    batch = [make_message(number, root_id="m1" if number > 1 else None) for number in range(1, 6)]
    await http.post("/messages", json={"messages": batch})
    text = await page(http, "/console/context?room=tea&message=m5", language=language)
    assert {"en": "platform reply", "zh": "平台回复"}[language] not in text
    assert re.search({"en": r"\d+ % likely", "zh": r"可能性 \d+ %"}[language], text)


async def test_what_the_form_of_the_console_refuses(lore, tea):
    token = await _token(tea)
    where = "/console/link?room=tea&message=m4"
    for said, status in (
        ({}, 422),
        ({"said": "answers"}, 422),
        ({"said": "answers", "answers": "none"}, 404),
        ({"said": "undo"}, 303),
        ({"said": "nothing"}, 303),
    ):
        assert (await tea.post(where, data={**said, "token": token})).status_code == status, said
    assert (await tea.post(where, data={"said": "nothing", "token": "other"})).status_code == 403
    assert len(await lore.links.corrections("tea")) == 1


async def test_who_may_only_read_sees_no_buttons(lore, connect, tea):
    _, reading = await lore.keys.create("reads", scopes=["read"])
    async with connect(key=reading) as http:
        http.cookies.set(VIEWER_COOKIE, "room%3Atea")
        text = await page(http, "/console/context?room=tea&message=m4")
        assert not _forms(text)
        answer = await http.post(
            "/console/link?room=tea&message=m4", data={"said": "nothing", "token": http.cookies[FORM_COOKIE]}
        )
        assert answer.status_code == 403
    assert await lore.links.corrections("tea") == []
