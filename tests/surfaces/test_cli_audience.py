"""`roomlore audience`, `roomlore visible` and `roomlore share`."""

import json

import pytest
from typer.testing import CliRunner

from roomlore.surfaces.cli.app import app


@pytest.fixture
def run(tmp_path):
    def call(*words: str, code: int = 0) -> str:
        done = CliRunner().invoke(app, ["--db", str(tmp_path / "chat.db"), *words])
        assert done.exit_code == code, done.output
        return " ".join(done.output.split("\n")) if code == 2 else done.output

    return call


@pytest.fixture
def imported(run, tmp_path):
    """Import a team of Ann and 小李, and a square of Ann and Eve."""
    said = [("团队", "ann"), ("团队", "小李"), ("square", "ann"), ("square", "eve")]
    lines = [
        json.dumps(
            {"id": f"m{number}", "room_id": room, "sender_id": who, "text": "hi", "sent_at": "2026-01-01T08:00Z"}
        )
        for number, (room, who) in enumerate(said)
    ]
    path = tmp_path / "chat.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    run("import", str(path))


def test_a_room_is_told_and_shown(run, imported):
    shown = run("audience", "团队", "--kind", "private", "--member", "ann", "--member", "小李")
    assert shown.splitlines()[0] == "团队: private, all members are known"
    assert "小李" in shown
    assert "Marked as left" not in shown
    assert "Marked as left: 小李\n" in run("audience", "团队", "--member", "ann")
    found = json.loads(run("audience", "团队", "--member", "ann", "--json"))
    assert found["people"]["ann"]["stays"][0]["left_at"] is None
    assert found["people"]["小李"]["stays"][0]["left_at"] is not None
    assert "Marked as left: ann\n" in run("audience", "团队", "--remove", "ann", "--add", "eve")
    assert run("audience", "团队", "--kind", "unknown").startswith("团队: unknown")
    assert "not both" in run("audience", "团队", "--member", "ann", "--add", "eve", code=1)


DOUBTS = {
    "a slip of the keys": (("--member", "anm", "--member", "小李"), ("did you mean 'ann'", "marked as left: ann.")),
    "like nobody, in place of a member": (("--member", "ann", "--member", "w8q"), ("'w8q'.", "as left: 小李.")),
    "a slip of the keys in a change": (("--add", "anm"), ("did you mean 'ann'", "Nothing was changed. `--id` takes")),
    "a slip of the keys in who left": (("--remove", "anm"), ("did you mean 'ann'",)),
    "with a kind": (("--kind", "public", "--add", "anm"), ("did you mean 'ann'",)),
}


@pytest.mark.parametrize(("words", "doubts"), DOUBTS.values(), ids=DOUBTS)
def test_a_mistyped_member_changes_nothing_unless_insisted_on(run, imported, words, doubts):
    before = run("audience", "团队", "--json")
    refused = run("audience", "团队", *words, code=1)
    assert [part for part in doubts if part not in refused] == []
    assert run("audience", "团队", "--json") == before
    assert run("audience", "团队", *words, "--id") != before


def test_a_member_whom_nobody_knows_yet_is_noted(run, imported):
    told = run("audience", "团队", "--add", "w8q")
    assert "Nobody who wrote here has the id 'w8q'." in told
    assert "w8q" in json.loads(run("audience", "团队", "--json"))["people"]
    assert "Nobody" not in run("audience", "团队", "--add", "w8q"), "a member is known"


def test_a_wrong_kind_names_the_kinds(run, imported):
    told = run("audience", "团队", "--kind", "privat", code=2)
    assert all(kind in told for kind in ("direct", "private", "public", "unknown"))
    assert "None" not in told


def test_a_kind_counts_from_now_or_from_a_time_before(run, imported):
    for kind in ("private", "public"):
        run("audience", "团队", "--kind", kind)
    past = json.loads(run("audience", "团队", "--json"))["past_kinds"]
    assert [one["kind"] for one in past] == ["private"]
    run("audience", "团队", "--kind", "public", "--since", "2020-01-01")
    past = json.loads(run("audience", "团队", "--json"))["past_kinds"]
    assert [one["until"][:4] for one in past] == ["2020"]
    assert "--kind" in run("audience", "团队", "--since", "2020-01-01", code=1)


def test_a_mistyped_room_or_database_is_not_made(run, tmp_path):
    assert "no database" in run("audience", "team", "--member", "ann", code=1)
    assert not (tmp_path / "chat.db").exists()
    assert run("audience", "team", "--new", "--kind", "direct").startswith("team: direct")
    mistyped = run("audience", "taem", "--member", "ann", code=1)
    assert ("--new" in mistyped, "Did you mean 'team'?" in mistyped) == (True, True)
    assert "no room" in run("audience", "taem", code=1)


def test_the_audience_of_a_room_is_told_by_its_name(run, imported):
    run("rename", "团队", "Crew")
    assert run("audience", "crew", "--kind", "private", "--member", "ann").startswith("团队: private, all members")
    assert json.loads(run("audience", "Crew", "--json"))["room_id"] == "团队"
    assert run("audience", "Crew", "--new", "--kind", "direct").startswith("Crew: direct")
    assert run("audience", "团队").startswith("团队: private")


def test_what_a_room_may_see_is_shown_with_the_reason(run, imported):
    run("facts", "add", "user:ann", "likes tea")
    fact = json.loads(run("facts", "list", "user:ann", "--json"))[0]["memory_id"]
    shown = run("visible", "团队")
    assert "likes tea" in shown
    assert "added by hand: for all" in shown
    assert shown.endswith("1 may be shown in 团队, 0 not.\n")
    found = json.loads(run("visible", "团队", "--json"))
    assert [(one["memory"]["memory_id"], one["shown"], one["reasons"][0]["kind"]) for one in found] == [
        (fact, True, "added")
    ]
    assert json.loads(run("visible", "团队", "--withheld", "--json")) == []
    assert "no room" in run("visible", "taem", code=1)


def test_a_memory_is_shared_and_no_longer(run, imported):
    run("facts", "add", "user:ann", "likes tea")
    fact = json.loads(run("facts", "list", "user:ann", "--json"))[0]["memory_id"]
    told = run("share", fact)
    assert told.startswith("Shared with nobody else: ")
    assert told.endswith("It may be shown to everyone.\n")
    assert run("share", fact, "room:team", "--reason", "she said so").startswith("Shared with room:team: ")
    assert run("share", fact, "room:team", "--end").startswith("Shared with nobody else: ")
    assert "everyone" in run("share", fact, "team", code=1)
    assert "which share" in run("share", fact, "--end", code=1)
    assert "facts list" in " ".join(run("share", "--help").split())


def test_a_memory_is_shared_with_a_room_by_its_name(run, imported):
    run("rename", "团队", "Crew")
    run("facts", "add", "user:ann", "likes tea")
    fact = json.loads(run("facts", "list", "user:ann", "--json"))[0]["memory_id"]
    assert "no room" not in run("share", fact, "room:Crew")
    assert run("share", fact).startswith("Shared with room:团队: ")
    assert "There is no room taem yet" in run("share", fact, "room:taem")
    run("rename", "square", "taem")
    assert run("share", fact, "room:taem", "--end").startswith("Shared with room:团队: ")
    assert run("share", fact, "room:crew", "--end").startswith("Shared with nobody else: ")


def test_a_mistyped_database_is_not_taken_for_a_new_one(run):
    found = {one["part"]: one for one in json.loads(run("doctor", "--json"))["findings"]}
    assert found["database"]["verdict"] == "warn"
    assert "check the name" in found["database"]["advice"]
