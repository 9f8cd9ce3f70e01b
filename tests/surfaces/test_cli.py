"""The command line: every command, what it prints for people and for programs, and what it says to bad input."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console
from typer.testing import CliRunner

import roomlore
from forked_process import run_forked
from roomlore.samples import DEMO_QUESTIONS, DEMO_ROOM, DemoQuestion, demo_path
from roomlore.surfaces.cli import show
from roomlore.surfaces.cli.app import app
from roomlore.surfaces.texts import text_of
from roomlore_testkit.case_table import all_cases


def said(name: str, room: str, sender: str, minute: int, text: str, **more: str) -> dict:
    at = f"2024-05-01T12:{minute:02}:00Z"
    return {"id": name, "room_id": room, "sender_id": sender, "sent_at": at, "text": text, **more}


CHAT = [
    said("m1", "tea", "ann", 0, "Green or black?", sender_name="Ann"),
    said("m2", "tea", "bob", 1, "绿茶!", reply_to="m1"),
    said("m3", "café", "cat", 2, "\x1b[2J [red]ping\u202e \0"),
]


@pytest.fixture
def run():
    def invoke(*arguments: str, code: int = 0):
        result = CliRunner().invoke(app, ["--db", "chat.db", *arguments])
        assert result.exit_code == code, (result.output, result.exception)
        return result

    return invoke


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """A folder with the chat as JSON lines and as a store."""
    folder = tmp_path_factory.mktemp("chat")
    lines = "".join(json.dumps(row) + "\n" for row in CHAT)
    (folder / "chat.jsonl").write_text(lines, encoding="utf-8")
    CliRunner().invoke(app, ["--db", str(folder / "chat.db"), "import", str(folder / "chat.jsonl")])
    return folder


@pytest.fixture
def chat(run, imported):
    shutil.copytree(imported, ".", dirs_exist_ok=True)
    return run


def lines(result) -> list[dict]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_import_counts_and_names_what_it_skips(run):
    Path("mixed.jsonl").write_text("".join(json.dumps(row) + "\n" for row in CHAT) + "{broken\n", encoding="utf-8")
    first = run("import", "mixed.jsonl")
    assert "read 3 messages (jsonl) in 2 rooms: 3 added, 1 skipped" in first.stdout
    assert "skipped 4: " in first.stderr
    again = json.loads(run("import", "mixed.jsonl", "--json").stdout)
    assert (again["read"], again["added"], again["duplicates"], again["bad_count"]) == (3, 0, 3, 1)
    assert again["bad"][0]["number"] == 4


def test_import_into_a_room_of_ones_choice(run):
    Path("chat.jsonl").write_text("".join(json.dumps(row) + "\n" for row in CHAT[:2]), encoding="utf-8")
    run("import", "chat.jsonl", "--room", "mine", "--format", "jsonl")
    assert [room["room_id"] for room in json.loads(run("rooms", "--json").stdout)] == ["mine"]


def test_import_into_a_room_by_its_name(run):
    """A regression: a second room was made, whose id was the name of the first."""
    Path("a.jsonl").write_text(json.dumps(said("1", "r1", "ann", 1, "hello")), "utf-8")
    Path("b.jsonl").write_text(json.dumps(said("2", "elsewhere", "ben", 2, "hi")), "utf-8")
    run("import", "a.jsonl")
    run("rename", "r1", "Crew")
    run("import", "b.jsonl", "--room", "Crew")
    assert [room["messages"] for room in json.loads(run("rooms", "--json").stdout)] == [2]
    assert "r1" in run("eval", "Crew").stdout


def test_an_import_says_which_room_a_name_means(run):
    Path("a.jsonl").write_text(json.dumps(said("1", "r1", "ann", 1, "hello")), "utf-8")
    run("import", "a.jsonl")
    run("rename", "r1", "Crew")
    assert "; Crew is the room r1" in run("import", "a.jsonl", "--room", "Crew").stdout
    for room in ("r1", "new"):
        assert "is the room" not in run("import", "a.jsonl", "--room", room).stdout


def test_rooms_that_go_into_one_keep_all_their_messages(run):
    """A regression: equal ids of two rooms were conflicts, and the second message was lost."""
    rows = [
        said("1", "tea", "ann", 1, "who wants tea?"),
        said("1", "gym", "cem", 2, "gym at six"),
        said("2", "gym", "dan", 3, "I come", reply_to="1"),
        {**said("2", "tea", "bob", 4, "me", reply_to="1"), "thread_id": "1", "team": "x"},
    ]
    Path("two.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    for added in (4, 0):
        report = json.loads(run("import", "two.jsonl", "--room", "all", "--json").stdout)
        assert (report["added"], report["conflicts"]) == (added, [])
    found = lines(run("export", "--room", "all"))
    assert [(row["id"], row["text"], row.get("reply_to")) for row in found] == [
        ("tea/1", "who wants tea?", None),
        ("gym/1", "gym at six", None),
        ("gym/2", "I come", "gym/1"),
        ("tea/2", "me", "tea/1"),
    ]
    assert found[3]["root_id"] == "tea/1"


def test_ids_stay_as_they_are_if_all_lines_are_of_one_room(run):
    Path("one.jsonl").write_text(json.dumps(said("1", "tea", "ann", 1, "hello")) + "\n", "utf-8")
    run("import", "one.jsonl", "--room", "all")
    assert [row["id"] for row in lines(run("export"))] == ["1"]


def test_an_import_names_messages_that_are_there_with_another_content(run):
    for name, text in (("a", "hello"), ("b", "something else")):
        rows = [said(str(number), "tea", "ann", number, text) for number in range(1, 8)]
        Path(f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    assert "content" not in run("import", "a.jsonl").stderr
    run("rename", "tea", "Tea 茶")
    told = run("import", "b.jsonl")
    assert "read 7 messages (jsonl) in Tea 茶 (tea): 0 added, 7 conflicts, left as they were" in told.stdout
    why = " ".join(told.stderr.split())
    assert "7 were not imported, since messages with these ids and other contents are there: 1, 2, 3, 4, 5" in why
    assert "are there: 1, 2, 3, 4, 5 in Tea 茶 (tea); …" in why
    assert "--room" in told.stderr
    assert "lore.messages.edit" in told.stderr
    report = json.loads(run("import", "b.jsonl", "--json").stdout)
    assert report["conflicts"][0] == {"room_id": "tea", "title": "Tea 茶", "id": "1"}
    assert (len(report["conflicts"]), report["conflict_count"]) == (7, 7)


def test_an_import_says_what_it_edited_and_what_is_older(run):
    old = said("1", "tea", "ann", 1, "hello")
    Path("a.jsonl").write_text(json.dumps(old), "utf-8")
    Path("b.jsonl").write_text(json.dumps({**old, "text": "你好", "edited_at": "2024-05-02T12:00:00Z"}), "utf-8")
    run("import", "a.jsonl")
    assert "read 1 message (jsonl) in tea: 0 added, 1 edited" in run("import", "b.jsonl").stdout
    told = run("import", "a.jsonl")
    assert "0 added, 1 in an older form, left out" in told.stdout
    assert told.stderr == ""
    report = json.loads(run("import", "a.jsonl", "--json").stdout)
    assert (report["older"], report["edited"], report["read"]) == (1, 0, 1)


def test_an_import_of_nothing_readable_makes_no_database(run):
    Path("odd.txt").write_text("milk\neggs\n", "utf-8")
    Path("all").mkdir()
    Path("lena.txt").write_text("[31.12.23, 21:40:01] Lena: happy new year\n", "utf-8")
    for arguments in (["odd.txt"], ["all"], ["none.json"], ["lena.txt", "--timezone", "Mars"], ["lena.txt", "odd.txt"]):
        assert run("import", *arguments, code=1).stderr.startswith("roomlore: ")
        assert not Path("chat.db").exists()
    run("import", "lena.txt")
    assert Path("chat.db").exists()


def test_an_import_counts_messages_without_a_sender(run):
    lines = [json.dumps({"id": str(n), "text": "hi", "sent_at": "2024-05-01T12:00:00Z"}) for n in range(2)]
    lines += [json.dumps(said("x", "tea", "ann", n, "hello")) for n in range(1)]
    Path("a.jsonl").write_text("\n".join(lines), "utf-8")
    assert "3 added, 2 without a sender" in run("import", "a.jsonl").stdout


def test_an_import_says_that_what_was_deleted_stays_deleted(run):
    rows = [said(str(number), "tea", "ann", number, "hello") for number in range(1, 4)]
    Path("a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    gone = {**rows[0], "text": "", "metadata": {"deleted": True}}
    Path("b.jsonl").write_text(json.dumps(gone) + "\n", "utf-8")
    run("import", "a.jsonl")
    run("import", "b.jsonl")
    told = run("import", "a.jsonl")
    assert "0 added, 2 duplicates, 1 deleted here, left out" in told.stdout
    assert "stays deleted" in told.stderr
    assert "edit" not in told.stderr
    assert json.loads(run("import", "a.jsonl", "--json").stdout)["deleted"] == 1


def test_an_import_of_several_exports_says_what_was_read_of_each_and_what_was_left_out(run):
    Path("all").mkdir()
    rows = [said(str(number), "tea", "ann", number, "hello") for number in range(1, 3)]
    Path("all/a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    Path("all/Lena.txt").write_text("[31.12.23, 21:40:01] Lena: happy new year\n", "utf-8")
    Path("all/odd.txt").write_text("milk\neggs\n", "utf-8")
    told = run("import", "all")
    assert "read 3 messages of 2 exports (whatsapp, jsonl) in 2 rooms: 3 added" in told.stdout
    assert "  all/Lena.txt (whatsapp): 1 message in Lena" in told.stdout
    assert "  all/a.jsonl (jsonl): 2 messages in tea" in told.stdout
    assert "left out all/odd.txt: its format cannot be told by looking" in told.stderr
    run("rename", "tea", "Tea 茶")
    assert "  all/a.jsonl (jsonl): 2 messages in Tea 茶 (tea)" in run("import", "all").stdout
    report = json.loads(run("import", "all", "--json").stdout)
    assert report["left_out"] == [{"name": "all/odd.txt", "reason": "its format cannot be told by looking"}]
    assert [one["name"] for one in report["files"]] == ["all/Lena.txt", "all/a.jsonl"]


def test_an_import_counts_one_as_one(run):
    Path("one.jsonl").write_text(json.dumps(said("1", "tea", "ann", 1, "hello")) + "\n", "utf-8")
    assert "read 1 message (jsonl) in tea: 1 added; 1 room of unknown kind" in run("import", "one.jsonl").stdout
    assert "0 added, 1 duplicate; 1 room of unknown kind" in run("import", "one.jsonl").stdout
    assert "wrote 1 message\n" in run("export").stderr


def test_export_gives_back_what_was_imported(chat):
    exported = lines(chat("export"))
    assert [(row["id"], row["text"]) for row in exported] == [
        ("m3", CHAT[2]["text"]),
        ("m1", CHAT[0]["text"]),
        ("m2", CHAT[1]["text"]),
    ]
    assert [row["id"] for row in lines(chat("export", "--room", "tea"))] == ["m1", "m2"]
    chat("export", "--output", "out.jsonl")
    assert Path("out.jsonl").read_text(encoding="utf-8") == chat("export").stdout
    assert sorted(path.name for path in Path().glob("out*")) == ["out.jsonl"]


def test_export_of_nowhere_leaves_the_file_alone(chat):
    Path("out.jsonl").write_text("precious")
    assert "'nowhere'" in chat("export", "--room", "nowhere", "-o", "out.jsonl", code=1).stderr
    assert Path("out.jsonl").read_text() == "precious"
    assert "cannot be written" in chat("export", "-o", "no/such/folder.jsonl", code=1).stderr


def test_context_for_people(chat):
    shown = chat("context", "tea", "m2").stdout
    assert "bob: 绿茶!" in shown
    assert "→ Green or black?" in shown
    assert "1 message, 4 tokens; the last 1 message would have cost 4: 0% saved" in shown
    (line,) = [line for line in shown.splitlines() if "→" in line]
    assert line.split()[:4] == ["12:00", "█████", "1.00", "Ann"]
    assert line.rstrip().endswith("directly answered (platform reply)")
    assert max(map(len, shown.splitlines())) <= show.PLAIN_WIDTH
    assert "\x1b" not in shown
    explained = chat("context", "tea", "m2", "--explain").stdout
    assert explained.splitlines()[2].split() == ["reply", "user", "time", "@", "words"]
    assert "0.00  0.00 directly answered" in " ".join(explained.splitlines()[3].split(" "))
    assert "answers    m1 (platform, probability 1.00)" in explained
    begins = chat("context", "tea", "m1", "--explain").stdout
    assert "answers    no earlier message\n" in begins
    assert "new topic  probability 1.00" in begins


def test_context_for_programs(chat):
    built = json.loads(chat("context", "tea", "--json", "--strategy", "recent", "--max", "1").stdout)
    assert (built["message_id"], built["strategy"]) == ("m2", "recent")
    assert [one["message"]["text"] for one in built["messages"]] == ["Green or black?"]


def test_context_as_a_prompt(chat):
    shown = chat("context", "tea", "m2", "--prompt").stdout
    first, told, asked = shown.splitlines()
    assert re.fullmatch(r"\[\d{4}-\d\d-\d\d\]", first)
    assert told.endswith(": Green or black?")
    assert asked.endswith("(回复 Ann 12:00): 绿茶!")
    assert chat("context", "tea", "m2", "--prompt", "--max-tokens", "1").stdout.count("\n") == 2
    assert "leave out --json" in chat("context", "tea", "m2", "--prompt", "--json", code=2).stderr


SAYINGS = {
    "zh": "这是一句没有空格的很长的话，",
    "en": "a long sentence that goes on ",
    "both": "部署 the 服务 again 👩‍👩‍👧 ",
}


@pytest.mark.parametrize("language", SAYINGS)
def test_a_message_takes_a_line_of_80_columns(run, monkeypatch, language):
    monkeypatch.setattr(show, "PLAIN_WIDTH", 80)
    rows = [said(f"m{n}", "长", f"person-{n % 2}", n, SAYINGS[language] * 8, sender_name="王" * 9) for n in range(6)]
    Path("long.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    run("import", "long.jsonl")
    for strategy in ("threaded", "weighted", "recent"):
        head, place, *shown, spent = run("context", "长", "m5", "--strategy", strategy).stdout.splitlines()[1:]
        shown = [line for line in (head, place, *shown) if re.match(r"(\d\d-\d\d )?\d\d:\d\d ", line)]
        assert len(shown) >= 2, strategy
        assert max(map(cell_len, [*shown, spent])) <= 80, strategy
        assert all("…" in line and "王" in line for line in shown), strategy
    for command in (("threads", "长"), ("threads", "长", "--thread", "m0")):
        printed = run(*command).stdout.splitlines()
        assert max(map(cell_len, printed)) <= 80
        assert len(printed) <= 7


def test_signals_are_shown_where_there_is_room(chat, monkeypatch):
    assert "reply user time" in " ".join(chat("context", "tea", "m2", "--explain").stdout.split())
    monkeypatch.setattr(show, "PLAIN_WIDTH", show.WIDE - 1)
    told = chat("context", "tea", "m2", "--explain").stdout
    assert "reply user time" not in " ".join(told.split())
    assert "A terminal of 100 columns shows the five signals too." in told


@pytest.mark.parametrize(
    ("share", "wanted"), [(0, "     "), (0.02, "▏    "), (0.5, "██▌  "), (1, "█████"), (9, "█████")]
)
def test_a_bar_has_five_columns(share, wanted):
    assert show.bar(share, Console(file=io.TextIOWrapper(io.BytesIO(), "utf-8"))).plain == wanted
    assert cell_len(show.bar(share, Console(file=io.TextIOWrapper(io.BytesIO(), "ascii"))).plain) == 5


def test_nothing_to_show_says_so(chat):
    assert "Nothing earlier matters" in chat("context", "tea", "m1").stdout


def test_a_text_cannot_steer_the_terminal(chat):
    shown = chat("context", "café", "m3").stdout
    assert "\ufffd[2J [red]ping\ufffd \ufffd" in shown
    assert not {"\x1b", "\u202e", "\0"} & set(shown)


def test_an_id_cannot_steer_the_terminal(run):
    row = said("\x1b[2J1", "\x1b[31m", "ann", 0, "hello?")
    answer = said("2", "\x1b[31m", "bob", 1, "hi", reply_to=row["id"])
    Path("ids.jsonl").write_text(json.dumps(row) + "\n" + json.dumps(answer) + "\n")
    run("import", "ids.jsonl")
    for shown in (run("context", "\x1b[31m", "--explain"), run("rooms"), run("threads", "\x1b[31m")):
        assert "\ufffd[" in shown.stdout
        assert "\x1b" not in shown.stdout


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb\tc", "a b c"),
        ("\x9b31m", "\ufffd31m"),
        ("👩\u200d👧 é", "👩\u200d👧 é"),
        ("\ud800", "\ufffd"),
        ("x" * 500, "x" * 400 + "…"),
    ],
)
def test_inert(text, shown):
    assert show.inert(text) == shown


def test_rooms_and_threads(chat):
    rooms = chat("rooms").stdout
    assert rooms.splitlines()[0].split()[:2] == ["room", "messages"]
    assert [line.split()[:2] for line in rooms.splitlines()[1:]] == [["café", "1"], ["tea", "2"]]
    assert [line.split()[:2] for line in chat("rooms", "EA").stdout.splitlines()[1:]] == [["tea", "2"]]
    assert chat("rooms", "coffee").stdout == "No room has coffee in its id or name.\n"
    assert json.loads(chat("rooms", "coffee", "--json").stdout) == []
    threads = json.loads(chat("threads", "tea", "--json").stdout)
    assert [(thread["thread_id"], thread["messages"], thread["arrival"]) for thread in threads] == [("m1", 2, 1)]
    assert "Green or black?" in chat("threads", "tea").stdout
    thread = chat("threads", "tea", "--thread", "m2").stdout
    assert "begins" in thread
    assert thread.splitlines()[1].split() == ["05-01", "12:01", "bob", "绿茶!", "platform", "m2"]
    assert [row["message"]["id"] for row in json.loads(chat("threads", "tea", "--thread", "m1", "--json").stdout)] == [
        "m1",
        "m2",
    ]


def test_settings_of_all_and_of_a_room(chat):
    everywhere = {row["name"]: row for row in json.loads(chat("settings", "--json").stdout)}
    assert (everywhere["database_url"]["value"], everywhere["database_url"]["source"]) == ("chat.db", "argument")
    changed = chat("settings", "tea", "--set", "strategy=weighted", "--set", "half_life_minutes=2.5", "--json")
    rows = {row["name"]: row for row in json.loads(changed.stdout)}
    assert (rows["strategy"]["value"], rows["strategy"]["source"]) == ("weighted", "room")
    assert (rows["half_life_minutes"]["value"], rows["recent_messages"]["source"]) == ("2.5", "default")
    rows = {row["name"]: row for row in json.loads(chat("settings", "tea", "--unset", "strategy", "--json").stdout)}
    assert (rows["strategy"]["value"], rows["strategy"]["source"]) == ("threaded", "default")
    assert "half_life_minutes=2.5" in chat("rooms").stdout
    printed = chat("settings").stdout
    assert "How a context is chosen" in printed
    assert printed.split()[:5] == ["section", "setting", "value", "source", "meaning"]


def test_settings_know_their_sources(run, monkeypatch):
    Path("mine.yaml").write_text("memory: {port: 1234}")
    monkeypatch.setenv("MEMORY_STRATEGY", "recent")
    result = CliRunner().invoke(app, ["--config", "mine.yaml", "settings", "--json"])
    sources = {row["name"]: row["source"] for row in json.loads(result.stdout)}
    assert (sources["port"], sources["strategy"], sources["host"]) == ("mine.yaml", "MEMORY_STRATEGY", "default")


def test_keys_live_and_die(run):
    made = run("--tenant", "acme", "keys", "create", "bot", "--scope", "read")
    secret = made.stdout.strip()
    assert secret.startswith("rl_")
    assert "tenant acme: read" in made.stderr
    assert json.loads(run("keys", "list", "--json").stdout) == []
    (key,) = json.loads(run("keys", "list", "--all-tenants", "--json").stdout)
    assert (key["tenant"], key["name"], key["scopes"], key["revoked_at"]) == ("acme", "bot", ["read"], None)
    assert secret not in run("keys", "list", "--all-tenants").stdout
    assert secret.encode() not in Path("chat.db").read_bytes()
    assert "There is no key" in run("keys", "revoke", key["key_id"], code=1).stderr
    assert "is revoked" in run("--tenant", "acme", "keys", "revoke", key["key_id"]).stdout
    assert json.loads(run("--tenant", "acme", "keys", "list", "--json").stdout)[0]["revoked_at"]


def test_a_key_is_revoked_by_a_name_that_one_key_has(run):
    for name in ("机器人", "bot", "bot"):
        run("keys", "create", name)
    ids = {}
    for key in json.loads(run("keys", "list", "--json").stdout):
        ids.setdefault(key["name"], []).append(key["key_id"])
    assert ids["机器人"][0] in run("keys", "revoke", "机器人").stdout
    assert ids["机器人"][0] in run("keys", "revoke", "机器人").stdout, "again, as with the id"
    several = run("keys", "revoke", "bot", code=1).stderr
    assert f"2 keys are called 'bot'; give the id of one: {', '.join(ids['bot'])}." in several
    assert "个密钥名为 'bot'" in text_of(several.removeprefix("roomlore: ").strip(), "zh")
    revoked = [key["name"] for key in json.loads(run("keys", "list", "--json").stdout) if key["revoked_at"]]
    assert revoked == ["机器人"]
    run("keys", "revoke", ids["bot"][0])
    assert "2 keys" in run("keys", "revoke", "bot", code=1).stderr, "whoever revokes again does not mean the new one"


def test_a_message_is_deleted_after_asking_and_then_said_to_be(chat):
    asked = CliRunner().invoke(app, ["--db", "chat.db", "messages", "delete", "tea", "m2"], input="n\n")
    assert asked.exit_code == 1
    assert "Delete '绿茶!' of bob?" in asked.stderr
    assert "m2" in chat("export", "--room", "tea").stdout
    assert chat("messages", "delete", "tea", "m2", "--yes").stdout == "Deleted m2\n"
    assert "绿茶" not in chat("export", "--room", "tea").stdout
    assert chat("messages", "delete", "tea", "m2").stdout == "Deleted already, m2\n", "nobody is asked"
    Path("one.jsonl").write_text(json.dumps(said("xm2", "tea", "ann", 9, "kept")) + "\n", "utf-8")
    chat("import", "one.jsonl")
    again = chat("messages", "delete", "tea", "m2", "--json").stdout
    assert json.loads(again) == {"room_id": "tea", "message_id": "m2"}
    assert "kept" in chat("export", "--room", "tea").stdout, "its id ends with m2"
    assert "has no message 'm9'" in chat("messages", "delete", "tea", "m9", code=1).stderr
    deleted = json.loads(chat("messages", "delete", "tea", "m1", "--yes", "--json").stdout)
    assert deleted == {"room_id": "tea", "message_id": "m1"}


def test_tenants_do_not_see_each_other(chat):
    assert json.loads(chat("--tenant", "other", "rooms", "--json").stdout) == []
    assert chat("--tenant", "other", "export").stdout == ""
    assert "'tea'" in chat("--tenant", "other", "context", "tea", "m2", code=1).stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("rooms",), ("search", "tea", "tea"), ("context", "tea"), ("session", "list"), ("facts", "list", "user:ann"),
        ("memory", "log", "tea"), ("keys", "list"), ("jobs",), ("verify",), ("export", "--room", "tea"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_reading_a_database_that_does_not_exist_says_so_and_makes_none(run, arguments):
    result = run(*arguments, code=1)
    assert "There is no database chat.db." in result.stderr
    assert not list(Path().glob("*.db*"))


def test_the_default_database_is_not_made_by_reading_either():
    result = CliRunner().invoke(app, ["rooms"])
    assert (result.exit_code, "no database sqlite:///roomlore.db" in result.stderr) == (1, True)
    assert not Path("roomlore.db").exists()


def test_writing_makes_the_database(run):
    run("facts", "add", "user:ann", "Ann likes tea.")
    assert "Ann likes tea." in run("facts", "list", "user:ann").stdout


@pytest.mark.parametrize(
    ("option", "arguments", "says"),
    [
        ("--db", ["rooms", "--db", "chat.db"], "roomlore --db URL rooms"),
        ("--tenant", ["session", "list", "--tenant", "b"], "roomlore --tenant NAME session list"),
        ("--config", ["rooms", "--config", "a.yaml"], "roomlore --config PATH rooms"),
    ],
)
def test_a_global_option_behind_the_command_is_told_where_it_goes(option, arguments, says):
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert f"{option} goes before the command" in result.stderr
    assert says in result.stderr


def test_labels_are_cut_at_line_feeds_alone(chat):
    Path("labels.jsonl").write_text('{"room_id": "a\u2028b", "message_id": "1", "thread": "x"}\n', encoding="utf-8")
    assert "nothing to learn from" in chat("tune", "labels.jsonl", code=1).stderr


def test_tune_from_labels(run):
    run("import", str(demo_path()))
    room = DEMO_ROOM
    exported = [row["id"] for row in lines(run("export"))]
    rows = [{"room_id": room, "message_id": name, "thread": str(place % 3)} for place, name in enumerate(exported)]
    Path("labels.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    report = json.loads(run("tune", "labels.jsonl", "--folds", "2", "--json").stdout)
    assert report["targets"] > 100
    assert set(report["before"]) >= {"precision", "recall", "f1"}
    told = run("tune", "labels.jsonl", "--folds", "2").stdout
    assert "held-out targets" in told
    assert "reply_chain_weight: " in told or "the present ones stay" in told


def test_ids_of_slack_stand_on_one_line_of_80_columns(run, monkeypatch):
    monkeypatch.setattr(show, "PLAIN_WIDTH", 80)
    said = {
        "room_id": "dev",
        "sender_id": "U0A1B2C3D4",
        "sender_name": "Ann Lee of the harbour",
        "sent_at": "2024-05-01T08:00:00Z",
    }
    rows = [{"id": f"1714550460.00020{n}", "text": f"who took the green umbrella 雨伞 {n}?", **said} for n in range(3)]
    Path("dev.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    run("import", "dev.jsonl")
    for command in (("threads", "dev"), ("threads", "dev", "--thread", rows[0]["id"]), ("search", "dev", "umbrella")):
        lines = run(*command).stdout.splitlines()
        assert max(map(cell_len, lines)) <= 80
        assert any("1714550460.000200" in line for line in lines), command


def demo_tokens() -> int:
    """Return the tokens of the contexts of all messages of people in the demo room, one by one."""
    with roomlore.open_sync("sqlite://") as lore:
        lore.imports.run(demo_path())
        asked = [m.id for m in lore.messages.page(DEMO_ROOM, limit=200) if m.role is roomlore.Role.USER]
        return sum(lore.context.build(DEMO_ROOM, message_id).tokens for message_id in asked)


def test_the_demo_compares_contexts_and_says_what_next():
    result = CliRunner().invoke(app, ["demo"])
    assert result.exit_code == 0, result.output
    told = " ".join(result.stdout.split())
    figures = re.search(r"all 124 messages of people: .* ([\d,]+) tokens in all .* The last 20 messages: 30,564 ", told)
    assert int(figures[1].replace(",", "")) == demo_tokens()
    assert len(result.stdout.splitlines()) < 75
    assert " recent\n" in result.stdout
    assert "answers the question" not in result.stdout, "what most lines have tells nothing of one"
    assert " serve" in result.stdout
    assert " import PATH" in result.stdout
    assert list(Path().iterdir()) == []


def test_the_demo_tells_the_figures_of_eval_where_replies_are_hidden(run):
    told = " ".join(run("demo").stdout.split())
    (room,) = json.loads(run("eval", "--json").stdout)["rooms"]
    found, window = room["found"], room["window"]
    held = f"{found['hits']} of {found['cases']} contexts hold that message."
    assert f"{held} The last 20 messages: {window['hits']}." in told


def asked_after_an_hour(question: DemoQuestion) -> set[str]:
    """Return the ids in the context, with default settings, of a question that is asked in the demo room alone."""
    with roomlore.open_sync("sqlite://") as lore:
        lore.imports.run(demo_path())
        at = lore.messages.get(DEMO_ROOM, "m129").message.at + timedelta(hours=1)
        asked = question._asdict() | {"id": "asked", "room_id": DEMO_ROOM, "sent_at": at}
        del asked["needed"]
        lore.messages.add(roomlore.Message(**asked))
        return {one.message.id for one in lore.context.build(DEMO_ROOM, "asked").messages}


def test_the_demo_shows_right_contexts_of_default_settings_and_names_what_others_lack(run):
    told = run("demo").stdout
    texts = {row["id"]: row["text"] for row in map(json.loads, demo_path().read_text(encoding="utf-8").splitlines())}
    for question in DEMO_QUESTIONS:
        held = asked_after_an_hour(question)
        missing = [one for one in question.needed if one not in held]
        heading = f"\n{question.sender_name}: {question.text}\n"
        assert (heading in told) == (not missing)
        if missing:
            lacking = " ".join(told.split()).split(f"{question.text}” lacks ")[1]
            assert re.findall(r"(m\d+) \(", re.split("Not right|Contexts compared", lacking)[0]) == missing
        else:
            shown = told.split(heading)[1].split("would have cost")[0]
            assert shown.splitlines()[-1].startswith(f"  {len(held)} messages")
            assert [one for one in question.needed if texts[one][:12] not in shown] == []


def test_the_demo_names_what_is_missing_where_only_likely_messages_are_shown(run, monkeypatch):
    monkeypatch.setenv("MEMORY_CONTEXT_RECALL", "false")
    told = " ".join(run("demo").stdout.split())
    assert told.count("Not right: ") == 3
    assert "lacks m043 (刘洋: 让他们先删掉旧路线再重新存，或者等今晚的 2.8.1)" in told
    assert "0 of 3 contexts hold all that the answer needs" in told


def test_the_demo_deletes_its_questions_from_a_chat_that_it_keeps(run):
    def questions(told: str) -> list[str]:
        return re.findall(r"^(.+)\n  2026-06-17 09:36 · ", told, re.MULTILINE)

    first, second = run("demo").stdout, run("demo").stdout
    assert questions(first) == questions(second) != []
    assert [row["id"] for row in lines(run("export"))] == [f"m{n:03}" for n in range(1, 130)]


BAD = [
    (("import", "nowhere.jsonl"), 1, "nowhere.jsonl"),
    (("import", "chat.jsonl", "--format", "clay"), 1, "clay"),
    (("import", "chat.jsonl", "--timezone", "Moon/Far"), 1, "Moon/Far"),
    (("context", "nowhere"), 1, "'nowhere'"),
    (("context", "tea", "m9"), 1, "'m9'"),
    (("context", "tea", "--strategy", "clever"), 1, "threaded, weighted, recent"),
    (("context", "tea", "--max", "0"), 1, "max_context_messages is 0"),
    (
        ("context", "tea", "--max-tokens", "0"),
        1,
        "max_context_tokens is 0; it must be a whole number from 1 to 1000000",
    ),
    (("context",), 2, "Missing argument"),
    (("threads", "nowhere"), 1, "'nowhere'"),
    (("threads", "tea", "--thread", "m9"), 1, "'m9'"),
    (("threads", "tea", "--limit", "0"), 2, "greater than or equal to 1"),
    (("settings", "nowhere"), 1, "'nowhere'"),
    (("settings", "tea", "--set", "port=1"), 1, "'port'"),
    (("settings", "tea", "--set", "strategy"), 1, "NAME=VALUE"),
    (("settings", "tea", "--set", "max_context_messages=0"), 1, "a whole number from 1 to 200"),
    (("settings", "tea", "--set", "strategy=[a"), 1, "strategy"),
    (("settings", "--set", "strategy=recent"), 1, "Name the room"),
    (("keys", "create", "x", "--scope", "root"), 1, "read, write, admin"),
    (("keys", "revoke", "nothing"), 1, "There is no key"),
    (("tune",), 1, "nothing to learn from"),
    (("tune", "nowhere.jsonl"), 1, "cannot be read"),
    (("tune", "chat.jsonl"), 1, "Label 1 needs"),
    (("serve", "--host", "0.0.0.0"), 1, "no API key exists"),
    (("serve", "--port", "70000"), 1, "a whole number from 0 to 65535"),
    (("--config", "nowhere.yaml", "rooms"), 1, "nowhere.yaml cannot be read"),
    (("--db", "mysql://x", "rooms"), 1, "database_url is mysql://x"),
    (("--db", "/nowhere/at/all.db", "rooms"), 1, "There is no database /nowhere/at/all.db"),
    (("--db", "/nowhere/at/all.db", "import", "chat.jsonl"), 1, "folder"),
    (("dance",), 2, "No such command"),
]


def test_bad_input_is_one_sentence_and_a_status(chat):
    with all_cases() as case:
        for arguments, code, says in BAD:
            with case(*arguments):
                result = chat(*arguments, code=code)
                assert says in result.stderr
                assert "Traceback" not in result.stderr
                assert result.stdout == ""
                if code == 1:
                    assert result.stderr.startswith("roomlore: ")


def test_the_real_program_where_the_terminal_knows_only_ascii(chat):
    """One process, which is started anew, and one that is forked: its streams are made as such a process makes them."""
    command = [sys.executable, "-c", "from roomlore.surfaces.cli import main; main()", "--db", "chat.db"]
    ascii_alone = {**os.environ, "PYTHONIOENCODING": "ascii"}
    words = [*command, "context", "tea", "m2"]
    shown = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, env=ascii_alone, timeout=500)
    assert shown.returncode == 0, shown.stderr
    assert b"Green or black?" in shown.stdout
    assert b"\x1b" not in shown.stdout
    ascii_streams = "for stream in (sys.stdout, sys.stderr): stream.reconfigure(encoding='ascii', errors='strict')"
    Path("ascii.py").write_text(f"import sys\n{ascii_streams}\nfrom roomlore.surfaces.cli import main\nmain()\n")
    exported = run_forked(Path("ascii.py").absolute(), "--db", "chat.db", "export", "--room", "tea")
    assert [json.loads(line)["text"] for line in exported.stdout.splitlines()] == ["Green or black?", "绿茶!"]


def test_the_real_program_fails_in_a_sentence(chat):
    failed = run_forked("roomlore", "--db", "chat.db", "context", "nowhere")
    assert failed.returncode == 1
    assert failed.stderr.count("\n") == 1
    assert failed.stderr.startswith("roomlore: ")


def test_a_closed_pipe_is_no_error(chat):
    command = f"{sys.executable} -c 'from roomlore.surfaces.cli import main; main()' --db chat.db export | head -c 1"
    done = subprocess.run(command, shell=True, capture_output=True, timeout=500, check=False)
    assert done.stdout == b"{"
    assert b"Traceback" not in done.stderr


def test_version():
    result = CliRunner().invoke(app, ["--version"])
    assert result.stdout.startswith("roomlore ")


def test_a_variable_of_somebody_else_is_named_in_the_log(run, monkeypatch):
    monkeypatch.setenv("MEMORY_LIMIT", "512")
    assert "MEMORY_LIMIT" in run("settings").stderr
    assert "MEMORY_LIMIT" not in run("settings").stdout


def test_the_module_is_the_program():
    told = subprocess.run([sys.executable, "-m", "roomlore", "--version"], capture_output=True, text=True, check=True)
    assert told.stdout.startswith("roomlore ")


@pytest.mark.parametrize(
    "command", [["rooms"], ["context", "tea", "m2"], ["threads", "tea"], ["search", "tea", "black"]]
)
def test_times_are_those_of_the_setting_time_zone(chat, monkeypatch, command):
    monkeypatch.setenv("MEMORY_TIME_ZONE", "Asia/Shanghai")
    shown = chat(*command).stdout
    assert "20:0" in shown
    assert "12:0" not in shown


def test_an_import_names_the_rooms_of_chats_of_one_name(run):
    line = "[21.05.24, 10:00:00] {}: hello\n"
    for folder, sender in (("a", "Ann"), ("b", "Bo"), ("c", "Cem")):
        Path(folder).mkdir()
        Path(folder, "WhatsApp Chat with Family.txt").write_text(line.format(sender), "utf-8")
    Path("c", "WhatsApp Chat with Family.txt").write_text(line.format("Cem").replace(".24", ".25"), "utf-8")
    first, second, third = (run("import", folder) for folder in "abc")
    assert ("in Family: 1 added" in first.stdout, first.stderr) == (True, "")
    assert "in Family (2): 1 added" in second.stdout
    assert "The room is Family (2), since another chat seems to be called Family" in second.stderr
    assert "in Family: 1 added" in third.stdout
    assert "Family was there with other messages, and few of these people spoke there" in third.stderr
    report = json.loads(run("import", "b", "--json").stdout)
    assert (report["apart"], report["continued"]) == ({"Family (2)": "Family"}, [])
