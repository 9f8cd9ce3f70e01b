"""`roomlore audience` and `roomlore share`."""

import json

import pytest
from typer.testing import CliRunner

from roomlore.surfaces.cli.app import app


@pytest.fixture
def run(tmp_path):
    def call(*words: str, code: int = 0) -> str:
        done = CliRunner().invoke(app, ["--db", str(tmp_path / "chat.db"), *words])
        assert done.exit_code == code, done.output
        return done.output

    return call


def test_a_room_is_told_and_shown(run):
    shown = run("audience", "团队", "--kind", "private", "--member", "ann", "--member", "小李")
    assert shown.splitlines()[0] == "团队: private, all members are known"
    assert "小李" in shown
    found = json.loads(run("audience", "团队", "--member", "ann", "--json"))
    assert found["people"]["ann"]["stays"][0]["left_at"] is None
    assert found["people"]["小李"]["stays"][0]["left_at"] is not None
    assert run("audience", "团队", "--kind", "unknown").startswith("团队: unknown")
    assert "direct, private, public" in run("audience", "团队", "--kind", "secret", code=1)


def test_a_memory_is_shared_and_no_longer(run):
    run("facts", "add", "user:ann", "likes tea")
    fact = json.loads(run("facts", "list", "user:ann", "--json"))[0]["memory_id"]
    assert run("share", fact, "room:team", "--reason", "she said so").startswith("Shared with room:team: ")
    assert run("share", fact, "room:team", "--end").startswith("Shared with nobody else: ")
    assert "everyone" in run("share", fact, "team", code=1)
