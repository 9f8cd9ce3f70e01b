"""`roomlore memory`, `roomlore forget` and `roomlore verify`."""

import json
import sqlite3
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from rich.cells import cell_len
from typer.testing import CliRunner

import roomlore
from evolution_rig import CHINESE, both, create, delete, keep, lines, talk_of, update
from roomlore.core.dates import moment
from roomlore.core.errors import InvalidInput
from roomlore.core.memory.memory import Action
from roomlore.surfaces.cli import show, show_memories
from roomlore.surfaces.cli.app import app
from roomlore_testkit.builders import change, memory
from roomlore_testkit.model_server import serve_models

NOW = datetime(2026, 11, 22, 12, 5, tzinfo=UTC)
SHANGHAI = ZoneInfo("Asia/Shanghai")
EVIL = "\x1b[31mred\x07 [bold]not bold[/bold]\nnext line"


@pytest.fixture
def model(tmp_path):
    """A scripted model that the configuration names."""
    with serve_models() as server:
        given = {
            "models": {"memory-evolve-model": {"internal": True, "providers": [{"name": "here", "model_id": "tiny"}]}},
            "providers": {"here": {"base_url": server.url}},
        }
        (tmp_path / "roomlore.yaml").write_text(json.dumps({"memory": given}))
        yield server


def run(*arguments: str, code: int = 0, said: str = ""):
    result = CliRunner().invoke(app, ["--db", "m.db", *arguments], input=said)
    assert result.exit_code == code, (result.output, result.exception)
    return result


def asked(*arguments: str):
    return json.loads(run("memory", *arguments, "--json").stdout)


def talked(said, numbers: range) -> None:
    with roomlore.open_sync("m.db", background=False) as lore:
        lore.messages.add(talk_of(said, numbers))


def remembered(*statements: str, scope: str = "group:g") -> list[str]:
    with roomlore.open_sync("m.db", background=False) as lore:
        return [lore.memories.add(scope, one, kind=roomlore.MemoryKind.GROUP).memory_id for one in statements]


# Evolving.


@both
def test_an_evolution_shows_what_it_did_and_what_it_did_not(model, said, monkeypatch):
    monkeypatch.setattr("roomlore.core.evolution.requests.STRENGTH_FLOOR", 1.0)
    known = remembered(*said.known)
    model.script = [
        lines(
            keep("m2"),
            update("m3", said.known[2], "c3"),
            update("m1", said.better[0], "c1"),
            create(said.new[0], "c2"),
            delete("m4", said.why),
            delete("m9"),
        )
    ]
    talked(said, range(1, 4))
    told = run("memory", "evolve", "g").stdout
    assert "3 messages read by here/tiny" in told
    for shown in (said.new[0], "[-", "{+", said.known[3], said.why, "3 kept, 1 updated, 1 created, 1 deleted"):
        assert shown in told
    assert "line 6: m9 was not offered" in told
    assert f"= 1 memory confirmed: {known[2][-8:]}" in told
    assert run("memory", "evolve", "g").stdout == "There are no new messages.\n"


def test_all_that_is_new_is_read(model, monkeypatch):
    monkeypatch.setattr("roomlore.services.evolution.reading.MOST_MESSAGES", 2)
    model.script = [lines(create(one, "c1")) for one in CHINESE.new]
    talked(CHINESE, range(1, 6))
    assert "3 new messages remain; --all reads on." in run("memory", "evolve", "g", "--mode", "llm").stdout
    done = asked("evolve", "g", "--all")
    assert [one["remaining"] for one in done] == [1, 0]
    assert [one["changes"][0]["memory"]["statement"] for one in done] == list(CHINESE.new[1:])


def test_an_answer_of_no_use_changes_nothing_and_ends_with_1(model):
    model.default = "I am sorry."
    talked(CHINESE, range(1, 4))
    told = run("memory", "evolve", "g", "--all", code=1)
    assert "no line that can be used" in told.stdout
    assert len(model.requests) == 2, "it is asked once more, and not again and again"
    assert run("memory", "evolve", "g").stdout == "There are no new messages.\n"
    assert asked("list", "g") == []


def test_without_a_model_it_says_how_to_go_on():
    talked(CHINESE, range(1, 4))
    assert "'rules'" in run("memory", "evolve", "g", "--mode", "llm", code=1).stderr
    assert "rules alone" in run("memory", "evolve", "g").stdout


# Looking.


@both
def test_the_log_shows_evolutions_and_changes_the_newest_first(model, said):
    model.script = [
        lines(create(said.known[0], "c1"), create(said.new[0], "c2")),
        lines(update("m1", said.better[0], "c1")),
    ]
    for numbers in (range(1, 4), range(4, 9)):
        talked(said, numbers)
        run("memory", "evolve", "g")
    known = next(one for one in asked("list", "g") if one["version"] == 2)
    run("memory", "delete", known["memory_id"], "--yes", "--reason", said.why)
    told = [line.rstrip() for line in run("memory", "log", "g").stdout.splitlines()]
    heads = [line for line in told if line and line[0] != " "]
    assert [line.split()[0] for line in heads] == ["change", "evolution", "evolution"]
    assert ["5 messages" in heads[1], "3 messages" in heads[2]] == [True, True]
    assert f"  - {known['memory_id'][-8:]} {said.better[0]}" in told
    assert any(line.startswith("  ~ ") and "{+" in line for line in told)
    assert [line.split()[0] for line in told[-6:]] == ["+", "seen", "doubtful:"] * 2
    assert [one["number"] for one in asked("log", "g", "-n", "2")] == [4, 3]
    assert "Nothing has changed" in run("memory", "log", "g", "--days", "0.0000001").stdout
    for days in ("-1", "0", "nan", "1e12"):
        assert "above 0, at most 3650" in run("memory", "log", "g", "--days", days, code=1).stderr


@both
def test_a_memory_with_its_versions_and_down_to_its_messages(model, said):
    model.script = [lines(create(said.known[0], "c1", "c2")), lines(update("m1", said.better[0], "c2"))]
    for numbers in (range(1, 4), range(4, 6)):
        talked(said, numbers)
        run("memory", "evolve", "g")
    (known,) = asked("list", "g")
    shown = run("memory", "show", known["memory_id"][-8:]).stdout
    for part in (said.better[0], f"{known['memory_id']} (version 2)", "group:g, group", "active", "0.55 now"):
        assert part in shown
    assert shown.index("v2 ") < shown.index("v1 ")
    blamed = run("memory", "blame", known["lineage_id"]).stdout
    for number in (1, 2, 5):
        assert f"{said.people[number % 3]}: {said.says.format(number)}"[:40] in blamed
        assert f"g/c{number}" in blamed
    assert "prompt memory_evolve" in blamed
    assert "in force" in blamed
    assert [one["memory"]["version"] for one in asked("blame", known["memory_id"])["versions"]] == [2, 1]
    assert len(asked("show", known["memory_id"])["versions"]) == 2


def test_what_was_then_and_what_became_of_it():
    known = remembered("Likes green tea", "周五聚餐")
    run("facts", "update", known[0], "--text", "Likes black tea", "--reason", "said so")
    run("memory", "delete", known[1], "--yes")
    remembered("新的")
    then = [one["at"] for one in asked("log", "g")][-2]
    told = run("memory", "diff", "g", then).stdout
    for part in ("~ ", "Likes [-green-]{+black+} tea", "said so", "新的", "周五聚餐", "1 added, 1 changed, 1 removed"):
        assert part in told
    assert [one["statement"] for one in asked("as-of", "g", then)] == ["Likes green tea", "周五聚餐"]
    assert "nothing was remembered" in run("memory", "as-of", "g", "3", "days", "ago").stdout
    assert {one["statement"] for one in asked("as-of", "g", "now")} == {"Likes black tea", "新的"}
    assert "新的" in run("memory", "as-of", "g", "现在").stdout
    assert "2 added" in run("memory", "diff", "g", "昨天").stdout
    for words in (("as-of", "g", "someday"), ("diff", "g", "someday"), ("diff", "g", "yesterday", "from x to y")):
        assert "write one time" in run("memory", *words, code=1).stderr
    assert "before" in run("memory", "diff", "g", "now", "yesterday", code=1).stderr


def test_searching():
    remembered("成员多为前端开发者", "The standup is at ten")
    told = run("memory", "search", "g", "前端", "开发者").stdout
    assert told.split()[2:] == ["成员多为前端开发者"]
    assert asked("search", "g", "standup at ten")["hits"][0]["memory"]["statement"] == "The standup is at ten"
    assert "Nothing found. The best of" in run("memory", "search", "g", "quantum").stdout


# Going back.


def test_an_evolution_is_taken_back(model):
    first, *_ = remembered(*CHINESE.known)
    model.script = [lines(update("m1", CHINESE.better[0], "c1"), create(CHINESE.new[0], "c2"))]
    talked(CHINESE, range(1, 4))
    evolution = asked("evolve", "g")["evolution_id"]
    told = run("memory", "revert", evolution[-8:], "--reason", "错了").stdout
    assert "Took back evolution" in told
    assert CHINESE.new[0] in told
    assert {one["statement"] for one in asked("list", "g")} == set(CHINESE.known)
    assert first in {one["memory_id"] for one in asked("list", "g")}
    head = run("memory", "log", "g").stdout.splitlines()[0]
    assert head.startswith(f"revert of {evolution[-8:]}")
    assert "nothing to take back" in run("memory", "revert", evolution).stdout
    assert asked("revert", evolution) == []


def test_deleting_asks_and_restoring_does_not():
    (known,) = remembered("周五聚餐")
    assert "Delete '周五聚餐' of group:g?" in run("memory", "delete", known[-8:], said="n\n", code=1).stderr
    assert len(asked("list", "g")) == 1
    run("memory", "delete", known, said="y\n")
    assert asked("list", "g") == []
    assert f"In force: version 1, {known}: 周五聚餐" in run("memory", "restore", known[-6:]).stdout
    assert asked("strength", known, "0.25", "--reason", "half sure")["strength"] == 0.25
    assert "Strength 0.50" in run("memory", "strength", known, "0.5").stdout
    assert "less than or equal to 1" in run("memory", "strength", known, "2", code=2).stderr


def test_a_part_of_an_id_will_do_where_it_is_of_one_alone():
    with roomlore.open_sync("m.db", background=False) as lore:
        for name in ("tea-a1b2", "tea-c3d4", "tea"):
            lore.memories.add("user:anna", name, memory_id=name)
    assert asked("show", "a1b2")["memory_id"] == "tea-a1b2"
    assert asked("show", "tea-c")["memory_id"] == "tea-c3d4"
    assert asked("show", "tea")["memory_id"] == "tea", "a whole id is itself"
    several = run("memory", "show", "tea-", code=1).stderr
    assert "tea-a1b2, tea-c3d4" in several
    for name in ("c3d", "nowhere", "%"):
        assert "There is no memory" in run("memory", "show", name, code=1).stderr
    assert "There is no evolution" in run("memory", "revert", "nowhere", code=1).stderr
    assert "There is no memory" in run("--tenant", "other", "memory", "show", "a1b2", code=1).stderr
    assert run("facts", "update", "a1b2", "--text", "绿茶").stdout.endswith(": 绿茶\n")


# Forgetting and checking.


@pytest.mark.parametrize("command", [("forget",), ("memory", "forget")], ids="-".join)
def test_forgetting_asks_first(command):
    talked(CHINESE, range(1, 7))
    with roomlore.open_sync("m.db", background=False) as lore:
        lore.memories.add("user:u1", "喜欢绿茶")
    would = run(*command, "u1", said="n\n", code=1).stderr
    assert "Would go of u1" in would
    assert "2  messages of the person\n" in would
    assert "1 memory would be retired\n" in would
    assert "0 " not in would.replace("10 ", "")
    assert "Forget u1 for good?" in would
    dry = json.loads(run(*command, "u1", "--dry-run", "--json").stdout)
    assert (dry["dry_run"], dry["places"]["messages"]) == (True, 2)
    assert len(asked("list", "user:u1")) == 1
    done = run(*command, "u1", "--yes").stdout
    assert "Gone of u1" in done
    assert asked("list", "user:u1") == []
    for options in ((), ("--yes",), ("--dry-run",)):
        assert run(*command, "u1", *options, code=1).stdout.startswith("Nothing of u1 is here"), "nobody is asked"
    assert json.loads(run(*command, "u1", "--yes", "--json", code=1).stdout)["places"] == {}


def test_what_holds_together_is_checked():
    remembered("周五聚餐")
    assert "All of it holds together" in run("verify").stdout
    assert "1 memory," in run("verify").stdout
    assert "memories" not in run("verify").stdout
    assert json.loads(run("verify", "g", "--json").stdout)["sound"] is True
    with sqlite3.connect("m.db") as database:
        database.execute("UPDATE memories SET statement = 'damaged'")
    told = run("verify", code=1).stdout
    assert "log and tables" in told
    assert "backup" in told
    found = json.loads(run("verify", "group:g", "--json", code=1).stdout)
    assert (found["sound"], found["faults"][0]["mend"] != "") == (False, True)


def test_what_forgetting_does_to_others_and_to_rooms_is_said_before():
    with roomlore.open_sync("m.db", background=False) as lore:
        said = (
            ("1", "g", "u1", "the key lies under the third flower pot"),
            ("2", "g", "u2", "@u1 > the key lies under"),
            ("3", "own", "u1", "a note to myself"),
        )
        lore.messages.add([roomlore.Message(id=n, room_id=r, sender_id=s, text=t) for n, r, s, t in said])
        lore.rooms.rename("own", "Notes")
    told = run("forget", "u1", "--dry-run").stdout
    assert "1  messages of others, which stay without what they quote or name of the person\n" in told
    assert "the whole room own (Notes)" in told
    assert "memor" not in told
    refused = run("forget", "x" * 600, code=1).stderr
    assert refused.startswith("roomlore: The sender id has 600 characters; at most 512.")
    assert "--id" not in refused
    assert json.loads(run("forget", "eve", "--yes", "--json", code=1).stdout)["found"] is False


# What is shown is inert, and fits.


def test_texts_of_chats_steer_no_terminal(model):
    (known,) = remembered(EVIL)
    model.script = [lines(update("m1", f"{EVIL} more", "c1", change_reason=EVIL))]
    with roomlore.open_sync("m.db", background=False) as lore:
        message = roomlore.Message(id="c1", room_id="g", sender_id="x", sender_name=EVIL, text=EVIL)
        lore.messages.add([message])
    commands = [("evolve", "g"), ("list", "g"), ("log", "g"), ("history", known), ("show", known), ("blame", known)]
    for command in (*commands, ("diff", "g", "yesterday"), ("as-of", "g", "now"), ("search", "g", "bold")):
        told = run("memory", *command).stdout
        assert "[bold]not bold[/bold]" in " ".join(told.split()).replace("bold[- ", "bold"), command
        assert not {"\x1b", "\x07"} & set(told), command


@pytest.mark.parametrize("width", [40, 80, 120])
def test_nothing_is_wider_than_the_terminal(width, capsys, monkeypatch):
    monkeypatch.setattr(show, "PLAIN_WIDTH", width)
    first = memory("0" * 24 + "a1b2c3d4", scope="group:茶", statement="每周五晚上讨论新番动漫 every Friday " * 4)
    later = memory("0" * 24 + "e5f6a7b8", scope="group:茶", statement="偏好科幻题材 science fiction " * 4, version=2)
    changes = [
        change(
            2, later, action=Action.UPDATE, closes=(first.memory_id,), old_statement=first.statement, reason="因为" * 30
        ),
        change(1, first, reason="seen " * 30),
    ]
    out = show.console()
    show_memories.log(changes, {}, out, SHANGHAI)
    show_memories.as_of([first, later], out, SHANGHAI)
    show_memories.memory(first, first.updated_at, out, SHANGHAI)
    told = capsys.readouterr().out
    for line in told.splitlines():
        assert cell_len(line.rstrip()) <= width
    assert "".join(told.split()).count("science") >= 4


# What is done a second time, and what is brought back.


def test_the_log_tells_what_was_brought_back_from_what_is_new():
    (known,) = remembered("周五聚餐")
    run("memory", "delete", known, "--yes")
    run("memory", "restore", known, "--reason", "又有了")
    newest = run("memory", "log", "group:g").stdout.splitlines()[1]
    assert newest.split("  ", 1)[1].strip().startswith("+ ")
    assert "周五聚餐  (restored)" in newest
    run("facts", "update", known, "--text", "周六聚餐")
    run("memory", "restore", known)
    newest = run("memory", "log", "group:g").stdout.splitlines()[1]
    assert "~ " in newest
    assert newest.endswith("  (restored)")
    assert run("memory", "log", "group:g").stdout.count("(restored)") == 2


def test_the_past_of_a_group_that_is_not_there_is_an_error():
    remembered("周五聚餐")
    for command in (("log", "%"), ("as-of", "%", "today"), ("diff", "%", "yesterday")):
        for group, says in (("nix", "There is no room 'nix'"), ("user:nix", "nobody has this id")):
            told = run("memory", *(group if part == "%" else part for part in command), code=1)
            assert says in told.stderr, command
        run("memory", *("g" if part == "%" else part for part in command))


@pytest.mark.parametrize("command", ["facts", "memory"])
def test_deleting_again_says_that_it_was_deleted_already(command):
    (known,) = remembered("周五聚餐")
    assert run(command, "delete", known, "--yes").stdout == f"Deleted {known}: 周五聚餐\n"
    assert run(command, "delete", known).stdout == f"Deleted already, {known}: 周五聚餐\n", "nobody is asked"
    assert json.loads(run(command, "delete", known, "--yes", "--json").stdout)["status"] == "deprecated"
    assert len(asked("log", "group:g")) == 2


# Times.


@pytest.mark.parametrize(
    ("words", "edge", "expected"),
    [
        ("2024-05-01", "end", "2024-05-01T16:00"),
        ("2024-05-01T12:30", "start", "2024-05-01T04:30"),
        ("2024-05-01T12:30Z", "start", "2024-05-01T12:30"),
        ("yesterday", "start", "2026-11-20T16:00"),
        ("yesterday", "end", "2026-11-21T16:00"),
        ("昨天", "end", "2026-11-21T16:00"),
        ("3 days ago", "end", "2026-11-19T16:00"),
        ("三天前", "start", "2026-11-18T16:00"),
        ("two hours ago", "start", "2026-11-22T10:05"),
        ("两个小时前", "end", "2026-11-22T10:05"),
        ("today", "end", "2026-11-22T12:05"),
        ("今天", "start", "2026-11-21T16:00"),
        ("now", "end", "2026-11-22T12:05"),
        ("现在", "start", "2026-11-22T12:05"),
        ("2026-11-21", "start", "2026-11-20T16:00"),
        ("2026-11-21", "end", "2026-11-21T16:00"),
        ("2026/11/21", "end", "2026-11-21T16:00"),
        ("2026-11-22", "end", "2026-11-22T12:05"),
        ("2026-11-24", "end", "2026-11-24T16:00"),
    ],
)
def test_times_as_people_write_them(words, edge, expected):
    read = moment("WHEN", words, now=NOW, zone=SHANGHAI, edge=edge)
    assert read == datetime.fromisoformat(f"{expected}+00:00")


@pytest.mark.parametrize("words", ["", "someday", "某天", "yesterday or today", "2024-13-01", "\x00"])
def test_what_is_no_time_says_what_is(words):
    with pytest.raises(InvalidInput, match="上周五"):
        moment("WHEN", words, now=NOW, zone=SHANGHAI, edge="end")


def test_a_moment_shown_is_of_the_zone():
    assert show.clock(NOW, SHANGHAI) == "2026-11-22 20:05"
    assert show.clock(datetime.max.replace(tzinfo=UTC) - timedelta(hours=1), SHANGHAI) == "9999-12-31 22:59"


def test_a_day_is_shown_as_itself_not_as_the_midnight_after_it(monkeypatch):
    monkeypatch.setenv("MEMORY_TIME_ZONE", "Asia/Shanghai")
    remembered("周五聚餐")
    assert "as of the end of 2024-05-01 (Asia/Shanghai)" in run("memory", "as-of", "g", "2024-05-01").stdout
    assert "as of 2024-05-02 00:00 (Asia/Shanghai)" in run("memory", "as-of", "g", "2024-05-02T00:00").stdout
    told = run("memory", "diff", "g", "2024-04-30", "2024-05-01").stdout
    assert "2024-04-30 00:00 to the end of 2024-05-01 (Asia/Shanghai)" in told
    monkeypatch.setenv("MEMORY_LANGUAGE", "zh")
    assert "2024-05-01（含当天）" in run("memory", "as-of", "g", "2024-05-01").stdout


def test_times_that_are_not_in_order_are_named_as_they_were_given():
    remembered("周五聚餐")
    told = run("memory", "diff", "g", "2024-05-02", "2024-05-01", code=1).stderr
    assert told.startswith("roomlore: TO, '2024-05-01', is before FROM, '2024-05-02'; swap them.")


def test_restoring_again_says_that_it_is_in_force_already():
    (known,) = remembered("周五聚餐")
    run("memory", "delete", known, "--yes")
    assert run("memory", "restore", known).stdout == f"In force: version 1, {known}: 周五聚餐\n"
    assert run("memory", "restore", known).stdout == f"In force already: version 1, {known}: 周五聚餐\n"


def test_checking_who_has_no_memories_claims_nothing():
    talked(CHINESE, range(3))
    told = run("verify", "user:u0").stdout
    assert "scope user:u0: Nothing is remembered in it, so no memory was checked." in told
    assert "Looked at nothing." in told
    assert "holds together" not in told
    assert "3 messages" in run("verify", "g").stdout
    assert "3 messages" in run("verify").stdout
