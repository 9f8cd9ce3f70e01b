"""The twelve commands of the first screen, the one way to name rooms and people, and older names that still work."""

import json
import re
import shlex
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.cells import cell_len
from typer.testing import CliRunner

import roomlore
from roomlore.core.evolution.requests import check_mode
from roomlore.surfaces.cli import show
from roomlore.surfaces.cli.app import _FIRST, _LISTED, PLACES, app
from roomlore_testkit.case_table import all_cases


@pytest.fixture
def run():
    def invoke(*arguments: str, code: int = 0):
        result = CliRunner().invoke(app, ["--db", "chat.db", *arguments])
        assert result.exit_code == code, (arguments, result.output, result.exception)
        return result

    return invoke


@pytest.fixture
def crew(run):
    """A room of long ago and a person, both with names of their own."""
    rows = [
        ("m1", "u1", "Ann", "We decided: the deploy is on Friday."),
        ("m2", "u2", "Bob", "ok, agreed"),
        ("m3", "u1", "Ann", "The kettle is broken"),
    ]
    with roomlore.open_sync("chat.db") as lore:
        for minute, (name, sender, called, text) in enumerate(rows):
            at = datetime(2024, 5, 1, 12, minute, tzinfo=UTC)
            lore.messages.add(
                roomlore.Message(id=name, room_id="r1", sender_id=sender, sender_name=called, text=text, sent_at=at)
            )
        lore.rooms.rename("r1", "Crew")
    run("remember", "user:u1", "Likes tea")
    return run


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_first_screen_fits_a_terminal(monkeypatch, language):
    monkeypatch.setenv("MEMORY_LANGUAGE", language)
    monkeypatch.setenv("COLUMNS", "80")
    lines = CliRunner().invoke(app, ["--help"]).output.splitlines()
    assert len(lines) < 40
    assert max(map(cell_len, lines)) <= 80
    named = [match[1] for line in lines if (match := re.match(r"│ ([\w-]+) {2,}\S", line))]
    assert tuple(named[:12]) == _FIRST, "each takes one line"
    assert _FIRST[:5] == ("add", "context", "remember", "recall", "reply")
    assert CliRunner().invoke(app, ["help"]).output == CliRunner().invoke(app, ["--help"]).output


def test_every_command_is_listed_once_or_is_an_older_name():
    shown = CliRunner().invoke(app, ["help", "all"]).output
    listed = re.findall(r"^│ ([\w-]+) {2,}\S", shown, re.MULTILINE)
    assert sorted(listed) == sorted(_LISTED)
    assert PLACES.keys() - _LISTED == {"search", "help"}
    assert "Usage:" in CliRunner().invoke(app, ["help", "memory", "list"]).output
    assert "No such command" in CliRunner().invoke(app, ["help", "nothing"]).output


OLDER = (
    (("search", "r1", "kettle", "--json"), ("ask", "r1", "kettle", "--json")),
    (("ask", "--everywhere", "kettle", "--json"), ("ask", "--all", "kettle", "--json")),
    (("export", "--room", "Crew"), ("export", "Crew")),
    (("archive", "list", "--room", "Crew"), ("archive", "list", "Crew")),
    (("facts", "add", "user:u1", "Likes tea"), ("remember", "user:u1", "Likes tea")),
    (
        ("add", "r1", "x", "--sender=u1", "--id", "m3", "--json"),
        ("add", "r1", "x", "--as", "u1", "--id", "m3", "--json"),
    ),
    (("digest", "Crew", "--mode", "offline"), ("digest", "Crew", "--mode", "rules")),
)


def test_older_names_do_the_same(crew):
    with all_cases() as case:
        for older, newer in OLDER:
            with case(older):
                results = [CliRunner().invoke(app, ["--db", "chat.db", *words]) for words in (older, newer)]
                told = [re.sub(r'"search_ms": [\d.]+', "", each.output) for each in results]
                assert told[0] == told[1]
                assert results[0].exit_code == results[1].exit_code
                assert "No such" not in told[0]
    assert (check_mode("rules"), check_mode("offline")) == ("offline", "offline")


NAMED = (
    (("facts", "list", "Ann"), "Likes tea"),
    (("facts", "list", "u1"), "Likes tea"),
    (("memory", "list", "u1"), "Likes tea"),
    (("recall", "Ann", "what", "to", "drink"), "Likes tea"),
    (("recall", "Crew", "--for", "user:Ann"), "Likes tea"),
    (("recall", "Crew", "user:Ann", "drink"), "Likes tea"),
    (("recall", "Crew", "Ann", "what to drink"), "Likes tea"),
    (("ask", "Crew", "kettle", "--viewer", "Crew"), "kettle"),
    (("ask", "--viewer", "user:Ann", "kettle"), "kettle"),
    (("ask", "Crew", "kettle", "--sender", "Ann"), "kettle"),
    (("visible", "Crew", "--scope", "Ann"), "may be shown in Crew"),
    (("visible", "user:u1"), "1 may be shown to user:u1, 0 not."),
    (("remember", "Ann", "Rows"), "Remembered as"),
    (("recall", "room:Crew"), "0 of 0"),
    (("recall",), "user:u1"),
    (("memory", "list"), "user:u1"),
    (("facts", "list"), "user:u1"),
)
REFUSED = (
    (("recall", "Crew", "Anne", "what to drink"), "did you mean 'u1' ('Ann')?"),
    (("visible", "user:Anne"), "did you mean 'u1' ('Ann')?"),
    (("recall", "Anne"), "did you mean 'u1' ('Ann')?"),
    (("recall", "user:Anne"), "did you mean 'u1' ('Ann')?"),
    (("recall", "Crow"), "There is no room and no person 'Crow'. Did you mean 'r1' ('Crew')?"),
    (("ask", "Crew", "kettle", "--sender", "Anne"), "did you mean 'u1' ('Ann')?"),
    (("ask", "Crow", "kettle"), "Did you mean 'r1' ('Crew')?"),
    (("facts", "list", "Crow"), "Did you mean 'r1' ('Crew')?"),
    (("recall", "Zoe"), "There is no room and no person 'Zoe'."),
    (("forget", "Ann"), "Type `roomlore --db chat.db forget u1`, or"),
    (("audience", "Crew", "--add", "Ann"), "it is the name of u1"),
    (("tune", "--room", "Crow"), "Did you mean 'r1' ('Crew')?"),
)


def test_rooms_and_people_are_named_in_one_way(crew):
    with all_cases() as case:
        for words, said in NAMED:
            with case(words):
                assert said in crew(*words).stdout
        for words, said in REFUSED:
            with case(words):
                assert said in crew(*words, code=1).stderr
    noted = "“Ann” is taken as a word of the question; `--for Ann` recalls for it too.\n"
    for words, told in ((("Ann", "drink"), noted), (("Ann",), noted), (("Anyone", "drink"), "")):
        assert crew("recall", "Crew", *words).stderr == told
    crew("rename", "r1", "Ann")
    assert "'Ann' is the name of a room and of a person: write group:r1 or user:u1." in (
        crew("facts", "list", "Ann", code=1).stderr
    )
    assert "u1" in json.dumps(json.loads(crew("recall", "--for", "user:Ann", "--json").stdout))


def test_a_person_who_is_shown_a_part_of_a_room_is_told_so(crew):
    told = crew("ask", "--viewer", "user:u2", "kettle").stderr
    assert "user:u2 is shown r1 only from their first message to their last; `roomlore audience r1 --add u2`" in told
    crew("audience", "r1", "--add", "u2")
    answer = crew("ask", "--viewer", "user:u2", "kettle")
    assert (answer.stderr, "kettle" in answer.stdout) == ("", True)


HELP = (
    (("facts", "list", "--help"), ("STATUS", "deprecated:", "all: any"), "<active"),
    (("ask", "--help"), ("by id or name", "else the first three have a reason"), ""),
    (("audience", "--help"), ("ROOM", "--kind"), "unkn\n"),
    (("threads", "--help"), ("[OPTIONS] ROOM",), ""),
    *((("memory", name, "--help"), ("a group, a person or an agent",), "group's memories") for name in ("log", "diff")),
)


def test_help_is_whole_at_eighty_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with all_cases() as case:
        for words, has, lacks in HELP:
            with case(words):
                shown = " ".join(re.sub("[│╭╮╰╯]", " ", CliRunner().invoke(app, list(words)).output).split())
                assert all(text in shown for text in has)
                assert not lacks or lacks not in shown
    assert "No such command 'serch'. Did you mean 'ask'" in CliRunner().invoke(app, ["serch"]).output


def test_ask_gives_whole_messages_and_at_most_three_reasons(run, monkeypatch):
    monkeypatch.setattr(show, "PLAIN_WIDTH", 80)
    for number in range(5):
        run("add", "tea", f"the kettle {'is broken again and again ' * 4}{number} END", "--as", f"u{number}")
    shown = run("ask", "tea", "kettle").stdout
    assert shown.count("END") == 5
    assert shown.count("has your word: kettle") == 3
    part = re.search(r" ([0-9a-f]{8})\n", shown)[1]
    assert part in run("context", "tea", part).stdout, "an id is short, and accepted so"
    assert max(cell_len(line.rstrip()) for line in shown.splitlines()) <= 80
    assert run("ask", "tea", "kettle", "--explain").stdout.count("has your word: kettle") == 5


def test_a_message_is_added_once(run):
    assert "Added to tea as m1." in run("add", "tea", "who", "wants", "tea?", "--as", "ann", "--id", "m1").stdout
    assert "In tea already, as m1." in run("add", "tea", "who wants tea?", "--as", "ann", "--id", "m1").stdout
    assert "who wants tea?" in run("context", "tea").stdout


def test_what_to_type_next_can_be_typed(run):
    told = run("add", "New Room", "hi").stdout
    typed = shlex.split(re.search("`(.*)`", told)[1])
    assert typed[:3] == ["roomlore", "--db", "chat.db"]
    assert "hi" in run(*typed[3:]).stdout


def test_the_first_evolution_reads_all_of_an_import(crew):
    assert "ask for more days" in crew("memory", "evolve", "Crew", "--mode", "rules", "--days", "1").stdout
    assert "3 messages read by rules alone" in crew("memory", "evolve", "Crew", "--mode", "rules").stdout


def test_eval_is_read_at_80_columns(run, monkeypatch):
    monkeypatch.setattr(show, "PLAIN_WIDTH", 80)
    rows = [
        {"id": f"m{place}", "room_id": "C0123456789", "sender_id": f"u{place % 2}", "text": "text", "sent_at": place}
        | ({"reply_to": f"m{place - 1}"} if place else {})
        for place in range(40)
    ]
    Path("chat.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    run("import", "chat.jsonl")
    shown = run("eval").stdout
    assert max(cell_len(line.rstrip()) for line in shown.splitlines()) <= 80
    assert re.search(r"^C0123456789 .*39/39 .*%.*%", shown, re.MULTILINE)
