"""The command line in Chinese."""

import ast
import os
import re
from datetime import UTC, datetime
from pathlib import Path
from subprocess import CompletedProcess
from typing import get_args

import pytest
import typer

import roomlore_importers
from forked_process import run_forked
from roomlore.core import integrity
from roomlore.core.quotas import LIMITS, exceeded, import_stopped
from roomlore.core.texts import catalogue
from roomlore.services.privacy import verify
from roomlore.surfaces.cli import privacy
from roomlore.surfaces.cli.app import app
from roomlore.surfaces.cli.language import BESIDE, _words, interface_language
from roomlore.surfaces.texts import text_of, words
from roomlore_console.frame import tongue

HAN = re.compile("[\u4e00-\u9fff]")


def run(*arguments: str, **environment: str) -> CompletedProcess[str]:
    plain = {name: value for name, value in os.environ.items() if name not in ("LC_ALL", "LC_MESSAGES", "LANG")}
    given = {**plain, "PYTHONUTF8": "1", "COLUMNS": "100", **environment}
    return run_forked("roomlore", *arguments, environment=given)


def texts(command) -> set[str]:
    own = {command.help, *(getattr(parameter, "help", None) for parameter in command.params)} - {None, ""}
    return own.union(*map(texts, getattr(command, "commands", {}).values()))


def test_a_room_a_token_and_recall_have_one_name_in_chinese():
    """A room may be a private chat, so it is no 群, which is the group whose memory evolves."""
    errors = {english: catalogue("zh")[code] for code, english in catalogue("en").items()}
    told = {**words("told"), **errors, **_words("help"), **_words("said")}
    of_rooms = {said: text for said, text in told.items() if re.search("room", said, re.I) and "group" not in said}
    assert [text for text in of_rooms.values() if "群" in text] == []
    assert [
        text for text in (*told.values(), *tongue("zh").words.values()) if re.search("词元|回忆|群里|群 ?id", text)
    ] == []


def test_every_help_text_has_a_translation_and_no_translation_is_left_over():
    assert texts(typer.main.get_command(app)) == _words("help").keys() | BESIDE.keys()


def test_translations_keep_what_is_typed():
    for english, chinese in {**_words("help"), **BESIDE}.items():
        typed = set(re.findall(r"`([^`]+)`", english))
        assert typed - set(re.findall(r"`([^`]+)`", chinese)) <= {
            "3 days ago",
            "'3 days ago'",
            "'last week'",
            "yesterday",
        }, english
        assert HAN.search(chinese)


@pytest.mark.parametrize(
    ("variables", "language"),
    [
        ({"MEMORY_LANGUAGE": "zh"}, "zh"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LC_ALL": "C", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LC_MESSAGES": "zh_TW.UTF-8", "LANG": "en_US.UTF-8"}, "zh"),
        ({"MEMORY_LANGUAGE": "en", "LANG": "zh_CN.UTF-8"}, "en"),
        ({}, "en"),
    ],
)
def test_the_language_is_the_variables_else_the_locales(monkeypatch, variables, language):
    for name in ("MEMORY_LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert interface_language() == language


def test_the_rooms_of_chats_of_one_name_are_named_in_chinese(tmp_path):
    for folder in ("a", "b"):
        path = tmp_path / folder / "WhatsApp Chat with 家.txt"
        path.parent.mkdir()
        path.write_text(f"[21.05.24, 10:00:00] {folder}: 你好\n", "utf-8")
        told = run("--db", f"{tmp_path}/chat.db", "import", str(path), MEMORY_LANGUAGE="zh")
    assert "放进了房间 家 (2)，因为似乎有另一个名为 家 的聊天" in told.stderr


def test_help_and_errors_are_in_chinese(tmp_path):
    told = run("import", "--help", LANG="zh_CN.UTF-8").stdout
    assert "导入聊天记录" in told
    assert "选项" in told
    assert "显示帮助后退出" in told
    assert "Show this message" not in told
    for command in ("serve", "digest", "search", "import"):
        told = run(command, "--help", MEMORY_LANGUAGE="zh", COLUMNS="80").stdout
        assert "…" not in told, "nothing is cut"
        assert "the setting" not in told
    failed = run("--db", f"{tmp_path}/none.db", "rooms", MEMORY_LANGUAGE="zh")
    assert failed.returncode == 1
    assert failed.stderr == (
        f"roomlore: 没有数据库 {tmp_path}/none.db。`roomlore import 文件` 会创建它；"
        "要读取别的数据库，在命令前指定，例如 `roomlore --db chat.db rooms`。\n"
    )
    assert "Import chat exports" in run("import", "--help", LANG="en_US.UTF-8").stdout


def test_a_switch_is_shown_without_a_type():
    told = run("import", "--help", LANG="en_US.UTF-8").stdout
    assert "<int>" in told
    assert "--no-resume" in told
    assert "bool" not in told.lower()


def test_an_error_that_says_where_it_looked_is_translated_whole():
    error = "Room '茶' has no message 'm9': check the id, or add the message first. Looked for in chat.db."
    assert text_of(error, "zh") == "房间 '茶' 里没有消息 'm9'：请检查 id，或先添加这条消息。查找范围：chat.db。"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            "There is no room '茶'; a room appears with its first message. Looked for in a.db; "
            "`roomlore rooms` lists the rooms.",
            "没有房间 '茶'；收到第一条消息时自动创建。查找范围：a.db；`roomlore rooms` 列出所有的房间。",
        ),
        ("There is no room '茶'; nothing like it.", "There is no room '茶'; nothing like it."),
    ],
)
def test_an_error_is_translated_whole_or_not_at_all(error, told):
    assert text_of(error, "zh") == told


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize(("used", "asked"), [(10, 1), (4, 8), (4, 80)])
def test_what_a_quota_refuses_is_said_in_chinese(limit, used, asked):
    now = datetime(2024, 5, 1, 12, tzinfo=UTC)
    refused = exceeded(limit, used=used, wanted=asked, most=10, now=now)
    for error in (refused, import_stopped(refused, added=1234)):
        told = text_of(error, "zh").replace("roomlore tenants limit", "").replace(limit, "")
        assert not re.search("[A-Za-z]{2,}", told.replace("UTC", "").replace("token", "")), told


def test_an_error_that_is_not_translated_stays_as_it_is():
    assert text_of("The flux capacitor is empty.", "zh") == "The flux capacitor is empty."


@pytest.mark.parametrize("hostile", ["There is no memory " * 3000, "{" * 5000, "no format is called " + "a: " * 20000])
def test_reading_an_error_takes_no_long(hostile):
    assert isinstance(text_of(hostile, "zh"), str)


def sentences(path):
    """Return the texts of a module, without docstrings, with a word in place of each field."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inner = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    inner |= {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "x1" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inner:
            yield node.value


IMPORTERS = Path(roomlore_importers.__file__).parent
REASON = re.compile(
    "neither .{5,}|no (?:date|time|talker|such time).{5,}|the (?:row|line|document) .{5,}"
    "|not (?:a message|JSON|readable|CSV|a JSON).*|message x1 has .*"
)
SENTENCE = re.compile("(?:Its?|The|They|What|No|There|Room|Row|Record|Evolution|x1) .{8,}[.]")


def test_reasons_for_skipping_a_record_are_in_chinese():
    found = {text for path in IMPORTERS.glob("*.py") for text in sentences(path) if REASON.fullmatch(text)}
    assert len(found) > 15
    assert {text for text in found if text_of(text, "zh") == text} == set()


def test_what_verify_finds_is_in_chinese():
    texts = {text for module in (integrity, verify) for text in sentences(Path(module.__file__))}
    found = {text.replace("x1 x1 ", "The room's row says x1 ") for text in texts if SENTENCE.fullmatch(text)}
    found -= {text for text in found if "cannot both be right" in text or "x1 run" in text}  # parts of MENDS
    assert len(found) > 30
    assert {text for text in found if text_of(text, "zh") == text} == set()
    labels = {*get_args(integrity.Check), *integrity.MENDS.values()}
    assert {text for text in labels if text_of(text, "zh") == text} == set()


def test_where_verify_finds_a_fault_is_in_chinese(monkeypatch):
    assert privacy._placed("scope group:tea, memory m1") == "scope group:tea, memory m1"
    monkeypatch.setenv("MEMORY_LANGUAGE", "zh")
    assert re.fullmatch("范围 group:tea[，、]记忆 m1", privacy._placed("scope group:tea, memory m1"))
    assert privacy._placed("vectors of messages") == "消息的向量"


@pytest.mark.parametrize("last", ["day", "3 days"])
def test_an_evolution_that_reads_too_little_says_so_in_chinese(last):
    told = text_of(f"There are no messages of the last {last}. Older ones are there: ask for more days.", "zh")
    assert told.endswith("天没有消息，更早的有：请把 days 调大。")
