"""What the command line prints in Chinese: every text has a translation, and no command leaves English in between."""

import ast
import json
import os
import re
import string
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from rich.cells import cell_len
from typer.testing import CliRunner

import roomlore
from forked_process import run_forked
from roomlore.samples import DEMO_ROOM, demo_path
from roomlore.surfaces import cli
from roomlore.surfaces.cli.app import app
from roomlore.surfaces.cli.language import _words, causes, say, several, translated
from roomlore.surfaces.texts import words

HAN = re.compile(r"[\u4e00-\u9fff]")
PHRASE = re.compile(r"[A-Za-z]{2,}[,;:]? [A-Za-z]{2,}")
STYLE = re.compile(r"(bold|dim|italic|red|green|yellow|cyan| )+")
SOURCES = {
    path.name: ast.parse(path.read_text(encoding="utf-8")) for path in files(cli).iterdir() if path.name.endswith(".py")
}
NOT_PRINTED = {
    *("InvalidInput", "NotFound", "Help", "App"),
    *(f"typer.{name}" for name in ("Typer", "Option", "Argument", "BadParameter")),
}
TYPED = re.compile(
    r"`roomlore [^`]*`|^(--db|pip install|export|roomlore (?:audience|forget|remember)) .*|^httpx cryptography$",
    re.DOTALL,
)
NO_SENTENCE = {
    "The patch",
    "Standard input",
    "what did Anna say about the BOM this week",
    "no setting of roomlore, ignored",
    "; `roomlore rooms` lists the rooms",
    "Value error, ",
    "No such option",
    " goes before the command: roomlore   ",
    "the setting ",
    "env var: ",
    "the same thread",
    "same thread",
    "new message",
    "The message's id, or the beginning or end of that.",
    "With whole ids, each message on a line of its own, to copy them.",
}
"""Of errors, which have their own catalogue, of a search that is English, and nouns that get an s."""


def phrases(node: ast.AST) -> Iterator[str]:
    """The texts of two or more words that a module may print."""
    if isinstance(node, ast.Raise | ast.arguments) or (
        isinstance(node, ast.Call) and ast.unparse(node.func) in NOT_PRINTED
    ):
        return
    if isinstance(node, ast.Assign) and "Annotated[" in ast.unparse(node.value):
        return
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "several":
        node = ast.Call(node.func, [node.args[0], *node.args[2:]], node.keywords)
    if isinstance(node, ast.JoinedStr):
        parts = [part.value for part in node.values if isinstance(part, ast.Constant)]
        if PHRASE.search("".join(parts)):
            yield "".join(parts)
        parts = [part for part in node.values if isinstance(part, ast.FormattedValue)]
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, str) and PHRASE.search(node.value) and not STYLE.fullmatch(node.value):
            yield node.value
        parts = []
    else:
        parts = list(ast.iter_child_nodes(node))
    for part in parts:
        yield from phrases(part)


def texts(given: ast.expr) -> set[str]:
    if isinstance(given, ast.IfExp):
        return texts(given.body) | texts(given.orelse)
    return {given.value} if isinstance(given, ast.Constant) and isinstance(given.value, str) else set()


def given_texts() -> Iterator[str]:
    """The literal texts that are given to what translates them."""
    for node in (node for tree in SOURCES.values() for node in ast.walk(tree)):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func).rpartition(".")[2]
        if name == "say":
            yield from texts(node.args[0])
        elif name == "several":
            yield from texts(node.args[2])
        elif name == "counted":
            yield from (f"{{count:,}} {noun}s" for noun in texts(node.args[1]))
        elif name == "table":
            yield from (head for column in node.args for head in texts(column) if head)


def test_every_text_that_is_given_to_be_said_has_chinese():
    assert sorted(set(given_texts()) - _words("said").keys()) == []


def test_no_module_prints_a_sentence_that_has_no_chinese():
    found = {
        text for name, tree in SOURCES.items() for text in phrases(tree) if "<" not in text and "{font" not in text
    }
    untold = {text for text in found - _words("said").keys() - NO_SENTENCE if not TYPED.search(text)}
    assert sorted(untold) == []


def fields(template: str) -> set[str]:
    return {name.partition("!")[0] for _, name, _, _ in string.Formatter().parse(template) if name}


def test_chinese_has_the_same_fields_and_is_chinese():
    assert {one: fields(one) ^ fields(told) for one, told in _words("said").items() if fields(one) ^ fields(told)} == {}
    plain = {one for one, told in _words("said").items() if not HAN.search(told)}
    assert {one for one in plain if re.search("[a-z]{2}", re.sub(r"\{.*?\}|tokens?", "", one))} == {
        " and ",
        "id",
        "{tokens:,} of {window:,} tokens ({share:.1f} %)",
    }
    assert {one for one, told in words("told").items() if not HAN.search(told)} == set()


@pytest.mark.parametrize(
    ("language", "one", "two"), [("en", "1 fault.", "2 faults."), ("zh", "发现 1 处", "发现 2 处")]
)
def test_a_number_has_its_noun(monkeypatch, language, one, two):
    monkeypatch.setenv("MEMORY_LANGUAGE", language)
    assert several(1, "{count} fault.", "{count} faults.").startswith(one)
    assert several(2, "{count} fault.", "{count} faults.").startswith(two)
    assert say("no such text {x}", x="{y}") == "no such text {y}"


def test_reasons_are_said_in_chinese_each(monkeypatch):
    monkeypatch.setenv("MEMORY_LANGUAGE", "zh")
    assert causes("has your words: key, 车库; by someone you named") == "含有你的词：key, 车库；是你提到的人说的"
    assert causes("direct parent, 0.67 likely") == "直接回复的对象，可能性 0.67"
    assert causes("3 min apart, something new") == "相隔 3 分钟，something new"


COMMANDS = [
    ["rooms"],
    ["context", DEMO_ROOM, "m104", "--explain"],
    ["threads", DEMO_ROOM],
    ["threads", DEMO_ROOM, "--thread", "m104"],
    ["search", DEMO_ROOM, "午饭谁付的钱"],
    ["search", DEMO_ROOM, "xyzzy", "--sender", "u_anna", "--since", "2026-01-01", "--mode", "lexical"],
    ["digest", DEMO_ROOM],
    ["audience", DEMO_ROOM, "--kind", "private", "--add", "u9"],
    ["audience", DEMO_ROOM, "--remove", "u9"],
    ["facts", "add", "user:小王", "小王对花生过敏", "--valid-until", "2099-01-01"],
    ["facts", "list", "user:小王"],
    ["facts", "list", "user:无"],
    ["memory", "list", "user:小王"],
    ["memory", "log", "user:小王"],
    ["memory", "as-of", "user:小王", "now"],
    ["memory", "diff", "user:小王", "昨天"],
    ["memory", "search", "user:小王", "火星"],
    ["visible", DEMO_ROOM, "--withheld"],
    ["links", "correct", DEMO_ROOM, "m104", "--nothing"],
    ["links", "log", DEMO_ROOM],
    ["links", "undo", DEMO_ROOM, "m104"],
    ["forget", "u_tom", "--dry-run"],
    ["forget", "无", "--dry-run"],
    ["verify"],
    ["keys", "create", "机器人"],
    ["keys", "list"],
    ["keys", "revoke", "机器人"],
    ["messages", "delete", DEMO_ROOM, "m104", "--yes"],
    ["models"],
    ["reindex", "--status"],
    ["reindex", "--words"],
    ["session", "list"],
    ["session", "turn", "c", "--user-query", "你好", "--agent-response", "好的"],
    ["session", "show", "c"],
    ["session", "context", "c"],
    ["session", "checkpoints", "c"],
    ["session", "reset", "c"],
    ["eval", "--sample", "5"],
    ["doctor"],
    ["usage", "list"],
    ["usage", "report"],
    ["new", "bot", "--platform", "slack", "bots"],
]
KNOWN = re.compile(
    r"harbour-team|`roomlore [^`]*`|--mode lexical|"
    r"roomlore\S*|FULL_HISTORY|pip install .*|export .*|python \S+|cd bots|user:|group:|by rules|"
    r"[a-z_]+@\S+|The question .*"
)


def english(told: str) -> list[str]:
    """The English phrases of an output, without what is typed."""
    return [
        found for line in KNOWN.sub(" ", told).splitlines() for found in re.findall("[A-Za-z]{2,} [A-Za-z]{2,}", line)
    ]


@pytest.fixture
def said() -> str:
    """The words of the chat."""
    lines = [json.loads(line) for line in demo_path().read_text(encoding="utf-8").splitlines()]
    words = {word.lower() for line in lines for word in re.findall("[A-Za-z]+", " ".join(map(str, line.values())))}
    return " ".join(["", *words])


def test_no_command_leaves_english_in_between(monkeypatch, said):
    monkeypatch.setenv("MEMORY_LANGUAGE", "zh")
    runner = CliRunner()
    assert runner.invoke(app, ["--db", "a.db", "import", str(demo_path())]).output.startswith("读取 129 条消息")
    evolved = runner.invoke(app, ["--db", "a.db", "memory", "evolve", DEMO_ROOM, "--days", "3000"]).stdout
    assert re.search("读取 128 条消息.*新增 ", evolved, re.DOTALL), evolved
    left = {}
    for command in COMMANDS:
        done = runner.invoke(app, ["--db", "a.db", *command])
        assert done.exit_code == int(command[:2] == ["forget", "无"]), done.output
        told = re.sub(r"^.*\[info.*$", "", done.output, flags=re.MULTILINE)
        assert HAN.search(told), command
        words = [
            phrase
            for phrase in english(told)
            if any(f" {word.lower()}" not in said for word in re.findall("[A-Za-z]+", phrase))
        ]
        if words:
            left[" ".join(command)] = words
    assert left == {}


def test_json_is_the_same_in_every_language(monkeypatch):
    runner = CliRunner()
    runner.invoke(app, ["--db", "a.db", "facts", "add", "user:小王", "小王对花生过敏", "--id", "f1"])
    told = []
    for language in ("en", "zh"):
        monkeypatch.setenv("MEMORY_LANGUAGE", language)
        told.append(runner.invoke(app, ["--db", "a.db", "facts", "list", "user:小王", "--json"]).stdout)
    assert told[0] == told[1]
    assert '"statement": "小王对花生过敏"' in told[0]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["context"], "缺少参数 'ROOM'。"),
        (["serve", "--bad"], "没有选项 --bad"),
        (["serve", "--port"], "选项 '--port' 需要一个值。"),
        (["serve", "--port", "x"], "'--port' 的值无效：应为整数"),
        (["doctor", "--timeout", "0"], "不能小于 0.1"),
        (["contxt"], "没有命令 'contxt'。是否要用 'context'？"),
        (["new", "bot", "--platform", "icq"], "'icq' 不在可选值"),
        (["rooms", "--db", "x.db"], "--db 要写在命令之前"),
    ],
)
def test_errors_of_options_are_in_chinese(arguments, told):
    environment = {**os.environ, "MEMORY_LANGUAGE": "zh", "COLUMNS": "80", "PYTHONUTF8": "1"}
    done = run_forked("roomlore", *arguments, environment=environment)
    assert done.returncode == 2
    assert told in done.stderr
    assert "用法：" in done.stderr or arguments == ["serve", "--port"]
    assert {cell_len(line) for line in done.stderr.splitlines() if line.startswith(("│", "╭", "╰"))} == {80}


_SAID = [(0, "user"), (1, "user"), (2, "system"), (3, "user")]


def test_errors_of_corrections_are_in_chinese(monkeypatch):
    lines = [{"id": f"q{n}", "room_id": "茶", "sender_id": "a", "text": "好", "role": role} for n, role in _SAID]
    Path("a.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    run = lambda *given: CliRunner().invoke(app, ["--db", "a.db", *given])  # noqa: E731
    run("import", "a.jsonl")
    monkeypatch.setenv("MEMORY_LANGUAGE", "zh")
    assert "消息 'q1' 晚于 'q0'" in run("links", "correct", "茶", "q0", "--answers", "q1").stderr
    assert "消息 'q2' 的角色是 system" in run("links", "correct", "茶", "q2", "--answers", "q0").stderr


def test_a_message_is_named_by_a_part_of_its_id_that_is_its_own():
    runner = CliRunner()
    lines = [{"id": f"qq-2026-{n}", "room_id": "茶", "sender_id": "a", "text": f"第 {n} 条"} for n in range(3)]
    Path("a.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    run = lambda *given: runner.invoke(app, ["--db", "a.db", *given])  # noqa: E731
    run("import", "a.jsonl")
    assert json.loads(run("context", "茶", "--json", "26-1").stdout)["message_id"] == "qq-2026-1"
    several_fit = run("context", "茶", "qq-2026-")
    assert several_fit.exit_code == 1
    assert "qq-2026-0, qq-2026-1, qq-2026-2" in several_fit.stderr
    assert "has no message 'nope'" in run("threads", "茶", "--thread", "nope").stderr
    for shown in (run("threads", "茶", "--ids"), run("threads", "茶", "--thread", "26-2", "--ids")):
        assert re.search(r"^qq-2026-\d  ", shown.stdout, re.MULTILINE)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_forgetting_by_a_name_says_which_id_bears_it(monkeypatch, language):
    monkeypatch.setenv("MEMORY_LANGUAGE", language)
    runner = CliRunner()
    runner.invoke(app, ["--db", "a.db", "import", str(demo_path())])
    refused = runner.invoke(app, ["--db", "a.db", "forget", "Tom", "--yes"])
    assert refused.exit_code == 1
    assert "`roomlore --db a.db forget u_tom`" in refused.stderr
    assert runner.invoke(app, ["--db", "a.db", "forget", "u_tom", "--yes"]).exit_code == 0
    again = runner.invoke(app, ["--db", "a.db", "forget", "u_tom", "--yes"])
    assert (again.exit_code, again.stdout.splitlines()[0]) == (
        1,
        "这里没有 u_tom 的内容。" if language == "zh" else "Nothing of u_tom is here.",
    )


def test_who_is_a_member_is_marked():
    runner = CliRunner()
    runner.invoke(app, ["--db", "a.db", "import", str(demo_path())])
    told = runner.invoke(app, ["--db", "a.db", "audience", DEMO_ROOM, "--add", "u9"]).stdout
    assert re.search(r"^u9 +yes", told, re.MULTILINE)
    assert re.search(r"^u_tom +not known", told, re.MULTILINE)
    told = runner.invoke(app, ["--db", "a.db", "audience", DEMO_ROOM, "--remove", "u9"]).stdout
    assert re.search(r"^u9 +no, left", told, re.MULTILINE)


def test_what_each_setting_means_is_in_chinese(monkeypatch):
    monkeypatch.setenv("MEMORY_LANGUAGE", "zh")
    rows = json.loads(CliRunner().invoke(app, ["settings", "--json"]).stdout)
    assert [one["name"] for one in rows if not HAN.search(translated(one["description"]))] == []
    assert "所有数据保存在哪里" in CliRunner().invoke(app, ["settings"], env={"COLUMNS": "200"}).stdout


GOES = """Would be removed with the room Teahouse (tea):
  messages: 1
  memories elsewhere that rest on it alone: 2
Stays:
  people who wrote in other rooms too: 1
  memories that also rest on something else: 1
  backups, exports and the totals of usage
"""


def test_a_dry_run_names_what_goes_and_what_stays_once():
    with roomlore.open_sync("a.db") as lore:
        for room in ("tea", "den"):
            lore.messages.add(roomlore.Message(id="1", room_id=room, sender_id="ann", text="I moved to Berlin."))
        lore.rooms.rename("tea", "Teahouse")
        for number, rooms in enumerate((("tea",), ("tea",), ("tea", "den"))):
            lore.remember("user:ann", f"Fact {number}", sources=[roomlore.Source(room, "1") for room in rooms])
    run = lambda *given: CliRunner().invoke(app, ["--db", "a.db", "delete-room", *given])  # noqa: E731
    assert run("teahouse", "--dry-run").stdout == GOES
    assert run("tea", "--yes").stdout == GOES.replace("Would be removed", "Removed")
    again = run("Teahouse", "--yes")
    assert (again.exit_code, again.stdout) == (1, "")
    assert "There is no room 'Teahouse', so nothing was deleted; `roomlore rooms` lists the rooms." in again.stderr


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_room_is_deleted_after_asking(monkeypatch, language):
    monkeypatch.setenv("MEMORY_LANGUAGE", language)
    runner = CliRunner()
    run = lambda *given, **more: runner.invoke(app, ["--db", "a.db", *given], **more)  # noqa: E731
    run("import", str(demo_path()))
    told = "房间" if language == "zh" else "Would be removed with the room"
    would = run("delete-room", DEMO_ROOM, "--dry-run")
    assert (would.exit_code, told in would.stdout) == (0, True)
    counted = json.loads(run("delete-room", DEMO_ROOM, "--dry-run", "--json").stdout)
    refused = run("delete-room", DEMO_ROOM, input="n\n")
    assert (refused.exit_code, told in refused.stderr) == (1, True)
    assert run("threads", DEMO_ROOM).exit_code == 0
    done = json.loads(run("delete-room", DEMO_ROOM, "--json", "--yes").stdout)
    assert (done["complete"], done["dry_run"], done["places"]) == (True, False, counted["places"])
    assert run("delete-room", DEMO_ROOM, "--yes").exit_code == 1
    assert "'cocoa'" in run("delete-room", "cocoa", "--dry-run").stderr
