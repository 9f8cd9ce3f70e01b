"""`roomlore facts`."""

import json
import re
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

from typer.testing import CliRunner

import roomlore
from roomlore.surfaces.cli.app import app
from roomlore_testkit.case_table import all_cases

ANNA = "user:anna"


def run(*arguments: str, code: int = 0, said: str = ""):
    result = CliRunner().invoke(app, ["--db", "facts.db", *arguments], input=said)
    assert result.exit_code == code, (result.output, result.exception)
    return result


def asked(*arguments: str):
    return json.loads(run("facts", *arguments, "--json").stdout)


def test_a_fact_from_its_beginning_to_its_end():
    made = asked("add", ANNA, "对花生过敏", "--confidence", "0", "--category", "health", "--tag", "a", "--tag", "b")
    assert (made["outcome"], made["confidence"], made["tags"], made["category"]) == ("added", 0.0, ["a", "b"], "health")
    fact = made["memory_id"]
    assert f"Remembered already, as {fact[-8:]}:" in run("facts", "add", ANNA, " 对花生过敏").stdout
    shown = run("facts", "list", ANNA).stdout
    assert fact[-8:] in shown
    assert fact not in shown, "the end of an id will do"
    assert "0.00" in shown
    assert "对花生过敏" in shown
    kept = asked("update", fact, "--text", "Allergic to peanuts", "--reason", "in English")
    assert (kept["version"], kept["confidence"], kept["tags"]) == (2, 0.0, ["a", "b"])
    bare = asked("update", fact, "--no-confidence", "--category", "", "--tag", "c")
    assert (bare["confidence"], bare["category"], bare["tags"]) == (None, "", ["c"])
    assert "confidence" not in run("facts", "list", ANNA).stdout
    assert asked("update", fact, "--confidence", "0")["confidence"] == 0.0
    assert "is not in force any more" in run("facts", "update", fact, "--text", "x", "--expected", fact, code=1).stderr
    assert "in English" in run("facts", "history", fact).stdout
    assert asked("history", fact) == json.loads(run("memory", "history", fact, "--json").stdout)
    assert len(asked("history", fact)) == 4


def test_adding_says_when_a_fact_ends_and_if_it_has_ended():
    told = run("facts", "add", ANNA, "On leave", "--valid-until", "2999-05-01").stdout
    assert told.endswith(": On leave (until the end of 2999-05-01)\n")
    told = run("facts", "add", ANNA, "In Rome", "--valid-until", "2024-05-01").stdout
    assert "In Rome (until the end of 2024-05-01)\nIt has ended already" in told
    assert "In Rome" not in run("facts", "list", ANNA).stdout
    assert "In Rome" in run("facts", "list", ANNA, "--status", "ended").stdout


def test_an_update_that_changes_nothing_says_so():
    fact = asked("add", ANNA, "Likes tea", "--confidence", "0.5")["memory_id"]
    assert (
        run("facts", "update", fact, "--text", "Likes tea").stdout == f"Unchanged, version 1, {fact[-8:]}: Likes tea\n"
    )
    assert run("facts", "update", fact, "--confidence", "0.5").stdout.startswith("Unchanged")
    assert run("facts", "update", fact, "--text", "Likes black tea").stdout.startswith("Version 2, ")
    assert asked("update", fact, "--text", "Likes black tea")["version"] == 2


def test_a_fact_about_a_group_that_does_not_exist_says_so():
    told = run("facts", "add", "group:nosuch", "They meet on Fridays", "--id", "f9").stderr
    assert "There is no room 'nosuch'" in told
    assert "roomlore facts delete f9" in told
    with roomlore.open_sync("facts.db") as lore:
        lore.messages.add([_said("u1", "Anna")])
        lore.rooms.rename("r1", "Crew")
    assert "Did you mean 'r1' ('Crew')?" in run("remember", "group:Crow", "Row").stderr


def test_the_messages_that_support_a_fact_are_given_by_room_and_id():
    with roomlore.open_sync("facts.db") as lore:
        lore.messages.add([_said("u1", "Anna"), _said("u2", "Bo")])
        lore.rooms.rename("r1", "A/Crew")
    made = asked("add", ANNA, "Says hi", "--source", "A/Crew/of u1", "--source", "r1/of u2")
    assert made["sources"] == [{"room_id": "r1", "message_id": f"of {sender}"} for sender in ("u1", "u2")]
    for given, why in (("u1", "give a message as ROOM/MESSAGE"), ("r1/no", "no message 'no'"), ("x/u1", "no room 'x'")):
        assert why in run("remember", ANNA, "Says hi again", "--source", given, code=1).stderr
    assert len(asked("list", ANNA)) == 1


def test_a_person_may_be_named_if_only_one_has_the_name_but_not_for_more_than_a_fact(tmp_path):
    people = (("u1", "Anna"), ("u2", "Bo"), ("u3", "Bo"), ("u4", "u2"), ("u5", "u9"))
    with roomlore.open_sync("facts.db") as lore:
        lore.messages.add([_said(*one) for one in people])
        lore.rooms.rename("r1", "Crew")
    known = "Give the id of one."
    file = tmp_path / "mem0.json"
    file.write_text('[{"memory": "Likes tea"}]')
    for name, who in (("Anna", "u1"), ("@anna", "u1"), ("u9", "u5"), ("Bo", "u2 (r1), u3 (r1)")):
        told = run("memory", "evolve", f"user:{name}", code=1).stderr
        assert told == f"roomlore: Nobody has the id '{name}'; it is the name of {who}. {known}\n"
        assert known in run("facts", "import", str(file), "--scope", f"user:{name}", code=1).stderr
    assert asked("list", "user:u1") == asked("list", "user:u5") == []
    assert asked("add", "group:crew", "They meet on Fridays")["scope"] == "group:r1"
    asked("add", "user:u1", "Likes tea")
    for read in (("facts", "list", "user:@anna"), ("memory", "list", "user:Anna"), ("memory", "log", "user:Anna")):
        told = run(*read)
        assert "Likes tea" in told.stdout
        assert told.stderr.startswith(f"Taking {read[2][5:]} as the name of user:u1.\n")
    assert run("facts", "list", "user:u1").stderr == ""
    assert run("facts", "list", "user:Bo", code=1).stderr.endswith(f"it is the name of u2 (r1), u3 (r1). {known}\n")
    assert asked("add", "user:u2", "Likes cake")["scope"] == "user:u2", "an id is no name"
    assert "did you mean 'u1' ('Anna')?" in run("facts", "add", "user:Ana", "Likes tea").stderr
    assert asked("list", "user:Ana")[0]["scope"] == "user:Ana"
    assert run("facts", "add", "user:zoe", "Likes tea").stderr.startswith("Nobody who wrote here has the id 'zoe'. ")
    assert "Likes tea" in run("recall", "user:u1", "user:zoe", "what tea?").stdout
    assert "did you mean" in run("recall", "user:u1", "user:ann", "what tea?", code=1).stderr


_TAKEN = "Taking {0} as the name of user:{1}.\n"
_MEANT = "Nobody who wrote here has the id '{0}'; did you mean '{1}' ('{2}')?\n"
NAMED = (
    ("Anna", "user:u1", _TAKEN.format("Anna", "u1")),
    ("@anna", "user:u1", _TAKEN.format("@anna", "u1")),
    ("user:Anna", "user:Anna", _MEANT.format("Anna", "u1", "Anna")),
    ("user:Anan", "user:Anan", _MEANT.format("Anan", "u1", "Anna")),
    ("user:u1", "user:u1", ""),
    ("room:Crew", "group:r1", ""),
)


def test_a_fact_for_a_name_is_stored_and_says_of_whom_or_who_may_be_meant(monkeypatch):
    with roomlore.open_sync("facts.db") as lore:
        lore.messages.add([_said("u1", "Anna"), _said("u2", "Bo")])
        lore.rooms.rename("r1", "Crew")
    with all_cases() as case:
        for given, scope, notice in NAMED:
            with case(given):
                told = run("remember", given, "It's", "tea")
                fact = told.stdout.split()[2][:-1]
                undo = f"If so: `roomlore remember user:u1 'It'\"'\"'s tea'`, and `roomlore facts delete {fact}` takes"
                assert told.stderr == notice or told.stderr.startswith(notice + undo)
                assert (undo in told.stderr) == (scope in ("user:Anna", "user:Anan"))
                assert json.loads(run("facts", "list", scope, "--json").stdout)[0]["statement"] == "It's tea"
    monkeypatch.setattr("roomlore.surfaces.cli.frame.sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True)))
    for given, answer, scope in (("user:Ann", "y\n", "user:u1"), ("user:Annna", "n\n", "user:Annna")):
        told = run("remember", given, "Rows", said=answer)
        assert f"Nobody has the id {given[5:]}. Is user:u1 meant (Anna)?" in told.stderr
        assert asked("list", scope)[0]["statement"] == "Rows"
    assert "Is user" not in run("remember", "user:Annna", "Sails").stderr, "it is known now"


def _said(sender: str, name: str) -> roomlore.Message:
    return roomlore.Message(id=f"of {sender}", room_id="r1", sender_id=sender, sender_name=name, text="Hi")


def test_deleting_asks_first():
    fact = asked("add", ANNA, "Likes tea", "--id", "f1")["memory_id"]
    assert fact == "f1"
    for answer in ("n\n", ""):
        assert "Delete 'Likes tea' of user:anna?" in run("facts", "delete", "f1", said=answer, code=1).stderr
        assert len(asked("list", ANNA)) == 1
    run("facts", "delete", "f1", said="y\n")
    assert asked("list", ANNA) == []
    assert "No fact is known of user:anna" in run("facts", "list", ANNA).stdout
    asked("add", ANNA, "Likes coffee", "--id", "f2")
    assert asked("delete", "f2", "--yes", "--reason", "stale")["change_summary"] == "stale"
    assert [one["memory_id"] for one in asked("list", ANNA, "--status", "deprecated")] == ["f2", "f1"]
    asked("add", ANNA, "Likes water")
    shown = run("facts", "list", ANNA, "--status", "all").stdout
    assert "Likes coffee  (deprecated)" in shown
    assert "Likes water  (" not in shown


def test_facts_alone_are_listed():
    asked("add", "agent:bot", "is polite")
    assert len(asked("list", "agent:bot")) == len(json.loads(run("memory", "list", "agent:bot", "--json").stdout)) == 1


def test_importing(tmp_path):
    file = tmp_path / "memory.json"
    facts = [{"id": str(n), "content": f"事实 {n}", "confidence": 0} for n in range(3)]
    file.write_text(json.dumps({"facts": [*facts, *[{"id": "x", "content": "\x1b[31mred", "confidence": 5}] * 25]}))
    told = run("facts", "import", str(file), "--scope", ANNA, "--dry-run")
    assert told.stdout == "would come: 3 added, 25 skipped (deerflow of user:anna)\n"
    assert told.stderr.count("skipped facts[") == 20
    assert "skipped 5 more" in told.stderr
    assert "\x1b" not in told.stderr
    assert asked("list", ANNA) == []
    assert asked("import", str(file), "--scope", ANNA, "--from", "deerflow")["added"] == 3
    again = run("facts", "import", str(file), "--scope", ANNA)
    assert again.stdout == "0 added, 3 unchanged, 25 skipped (deerflow of user:anna)\n"
    assert {one["confidence"] for one in asked("list", ANNA)} == {0.0}


WRONG = [
    (("add", "zed", "x"), "user:<id>"),
    (("add", ANNA, " "), "empty"),
    (("list", "allotment"), "There is no room and no person 'allotment'."),
    (("list", "rom:tea"), "not 'rom:tea'."),
    (("list", "usr:anna"), "A scope is group:<id>, user:<id> or agent:<id>, not 'usr:anna'."),
    (("update", "nowhere", "--text", "x"), "There is no memory"),
    (("delete", "nowhere", "--yes"), "There is no memory"),
    (("delete", "nowhere"), "There is no memory"),
    (("import", "nowhere.json"), "cannot be read"),
    (("update", "f1"), "Say what to change"),
    (("update", "f1", "--confidence", "1", "--no-confidence"), "not both"),
]


def test_what_goes_wrong_is_said_in_a_sentence():
    run("facts", "add", ANNA, "Likes tea")
    with all_cases() as case:
        for arguments, said in WRONG:
            with case(arguments):
                assert said in run("facts", *arguments, code=1).stderr
    for value in ("1.5", "nan"):
        assert "or equal to" in run("facts", "add", ANNA, "x", "--confidence", value, code=2).stderr


def test_another_tenant_sees_nothing():
    asked("add", ANNA, "Likes tea", "--id", "f1")
    other = ("--tenant", "other", "facts")
    assert "No fact is known" in run(*other, "list", ANNA).stdout
    assert "There is no memory" in run(*other, "delete", "f1", "--yes", code=1).stderr


def test_a_fact_that_has_ended_is_listed_when_asked_for():
    made = asked("add", ANNA, "Is in Rome", "--owner", "anna", "--said-by", "ben", "--valid-until", "2024-05-01")
    assert (made["owner"], made["said_by"]) == ("anna", ["ben"])
    assert made["valid_until"] == "2024-05-02T00:00:00+00:00", "a day counts to its end"
    assert "No fact is known" in run("facts", "list", ANNA).stdout
    assert [one["statement"] for one in asked("list", ANNA, "--status", "ended")] == ["Is in Rome"]
    search = ("memory", "search", ANNA, "Rome", "--threshold", "0", "--json")
    assert json.loads(run(*search).stdout)["hits"] == []
    assert len(json.loads(run(*search, "--ended").stdout)["hits"]) == 1
    assert run("recall", ANNA, "--ended").stdout.splitlines()[0].endswith("(ended)")
    assert "the end of 2024-05-01" in run("memory", "show", made["memory_id"]).stdout
    for words, days in (
        ("tomorrow", 1),
        ("明天", 1),
        ("friday", 0),
        ("周五", 0),
        ("el viernes", 0),
        ("December 25", 0),
    ):
        later = asked("update", made["memory_id"], "--valid-until", words)["valid_until"]
        assert datetime.fromisoformat(later) > datetime.now(UTC) + timedelta(days=days)
    assert asked("update", made["memory_id"], "--valid-until", "")["valid_until"] is None
    assert "Is in Rome" in run("facts", "list", ANNA).stdout
    told = run("facts", "update", made["memory_id"], "--valid-until", "now").stdout
    assert re.search(r": [^\n]* \(until \d{4}-\d\d-\d\d \d\d:\d\d\)\nIt has ended already", told)
    assert "status      ended" in run("memory", "show", made["memory_id"]).stdout
    assert "No fact is known" in run("facts", "list", ANNA).stdout


def test_since_when_a_fact_holds_and_when_it_ends_is_shown():
    known = asked("add", ANNA, "Is in Rome 在罗马", "--valid-from", "2030-05-01", "--valid-until", "2030-06-01")[
        "memory_id"
    ]
    timed = asked("add", "group:tea", "Tea is free", "--valid-until", "2030-06-01T12:30Z")["memory_id"]
    span = "Is in Rome 在罗马 (from 2030-05-01 until the end of 2030-06-01)"
    for command in (("facts", "list", ANNA), ("facts", "history", known), ("memory", "list", ANNA)):
        assert span in " ".join(run(*command).stdout.split()), command
    assert "until 2030-06-01 12:30" in run("memory", "search", "tea", "free tea", "--threshold", "0.1").stdout
    assert "holds until 2030-06-01 12:30" in run("memory", "show", timed).stdout


def test_a_span_that_is_not_in_order_is_refused_in_the_words_that_were_given():
    told = ("--valid-from", "2027-02-01", "--valid-until", "2027-01-01")
    refused = run("facts", "add", ANNA, "Is away", *told, code=1).stderr
    assert "--valid-until '2027-01-01' is not after --valid-from '2027-02-01'" in refused


def test_an_unknown_status_is_named_without_the_words_of_a_validator():
    refused = run("facts", "list", ANNA, "--status", "foo", code=2).stderr
    assert "'foo' is not one of 'active'" in refused
    assert "Value error" not in refused
