"""`roomlore new bot`. The bots themselves run in tests/docs, on the page docs/how-to/small-bots.md."""

import json
import os
from typing import Any

import pytest
from typer.testing import CliRunner

import roomlore
from forked_process import run_forked
from roomlore.surfaces.cli.app import app
from roomlore.surfaces.cli.first_steps import Platform


def run(*arguments: str, code: int = 0):
    done = CliRunner().invoke(app, ["new", "bot", *arguments])
    assert done.exit_code == code, done.output
    return done


@pytest.mark.parametrize("platform", Platform)
def test_a_bot_is_written_with_what_it_needs_next(platform, tmp_path):
    told = run("--platform", platform, str(tmp_path / "new" / "folder")).stdout
    program = tmp_path / "new" / "folder" / f"{platform}_bot.py"
    compile(program.read_text(encoding="utf-8"), program.name, "exec")
    assert "database_url" in program.with_name("roomlore.yaml").read_text(encoding="utf-8")
    read = set(program.read_text(encoding="utf-8").split('os.environ["')[1:])
    assert all(f"{one.split(chr(34))[0]}=..." in told for one in read), "a variable that it needs is not told"
    assert f"python {program.name}" in told


def test_no_file_is_overwritten(tmp_path):
    (tmp_path / "roomlore.yaml").write_text("memory: {database_url: 'sqlite:///mine.db'}", encoding="utf-8")
    run("--platform", "slack", str(tmp_path))
    assert "mine.db" in (tmp_path / "roomlore.yaml").read_text(encoding="utf-8")
    (tmp_path / "slack_bot.py").write_text("# mine", encoding="utf-8")
    assert "is there already" in run("--platform", "slack", str(tmp_path), code=1).stderr
    assert (tmp_path / "slack_bot.py").read_text(encoding="utf-8") == "# mine"


def test_an_unknown_platform_is_refused_with_those_there_are(tmp_path):
    assert "telegram" in run("--platform", "icq", str(tmp_path), code=2).stderr


@pytest.mark.parametrize("platform", ["slack", "telegram", "lark"])
def test_a_bot_without_its_token_says_what_to_set(platform, tmp_path):
    run("--platform", platform, str(tmp_path))
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("SLACK", "TELEGRAM", "LARK"))}
    program = tmp_path / f"{platform}_bot.py"
    assert sum(map(bool, program.read_text(encoding="utf-8").split("\n"))) <= 40
    ended = run_forked(program, environment=plain)
    assert ended.returncode == 1
    assert ended.stderr.startswith("Set ")
    assert "Traceback" not in ended.stderr


@pytest.fixture
def telegram_reads(tmp_path, monkeypatch):
    """Return what the bot for Telegram makes of a message."""
    run("--platform", "telegram", str(tmp_path))
    monkeypatch.setenv("TELEGRAM_TOKEN", "x")
    program = (tmp_path / "telegram_bot.py").read_text(encoding="utf-8").partition("\nwith contextlib")[0]
    names: dict[str, Any] = {}
    exec(program, names)
    return names["read"]


@pytest.mark.parametrize(
    ("kind", "told", "exported"),
    [("private_supergroup", (-1001555000111, "supergroup"), 1555000111), ("private_group", (-4242, "group"), 4242)],
)
def test_an_import_of_telegram_meets_the_room_of_the_bot_and_names_it(telegram_reads, tmp_path, kind, told, exported):
    live = {"message_id": 7, "from": {"id": 11, "first_name": "Ann"}, "date": 1717228860, "text": "Who has the map?"}
    before = {
        "id": 6,
        "type": "message",
        "date_unixtime": "1717228800",
        "from": "李雷",
        "from_id": "user12",
        "text": "hi",
    }
    after = {**before, "id": 7, "date_unixtime": "1717228860", "from": "Ann", "from_id": "user11", "text": live["text"]}
    export = {"name": "Bergfreunde", "type": kind, "id": exported, "messages": [before, after]}
    (tmp_path / "result.json").write_text(json.dumps(export), encoding="utf-8")
    with roomlore.open_sync("sqlite://", background=False) as lore:
        lore.messages.add([telegram_reads({**live, "chat": {"id": told[0], "type": told[1]}})])
        report = lore.imports.run(tmp_path / "result.json")
        [room] = lore.rooms.page()
    assert (report.added, report.duplicates, report.conflict_count) == (1, 1, 0)
    assert (room.room_id, room.name, room.kind, room.messages) == (str(exported), "Bergfreunde", "private", 2)


def test_no_group_of_telegram_is_the_room_of_a_person(telegram_reads):
    """A basic group -1002345678 had the room of the user 2345678. Groups have the ids of Telegram's exports."""
    chats = {
        "1002345678": (-1002345678, "group"),
        "2345678": (-1000002345678, "supergroup"),
        "1234567890": (-1001234567890, "supergroup"),
        "987": (-987, "group"),
        "1100": (-1001100, "channel"),
        "user2345678": (2345678, "private"),
        "user1002345678": (1002345678, "private"),
    }
    who = {"id": 1, "first_name": "Ann"}
    told = {"message_id": 1, "from": who, "date": 1780300000, "text": "hi"}
    found = [telegram_reads({**told, "chat": {"id": own, "type": kind}}).room_id for own, kind in chats.values()]
    assert found == list(chats)


@pytest.mark.parametrize("platform", ["slack", "telegram", "lark", "wecom"])
def test_an_empty_variable_is_none(platform, tmp_path):
    run("--platform", platform, str(tmp_path))
    program = tmp_path / f"{platform}_bot.py"
    read = [one.split('"')[0] for one in program.read_text(encoding="utf-8").split('os.environ["')[1:]]
    read += ["SLACK_BOT_TOKEN", "SLACK_APP_TOKEN"]
    ended = run_forked(program, environment={**os.environ, **dict.fromkeys(read, "")})
    assert (ended.returncode, ended.stderr[:4]) == (1, "Set ")
