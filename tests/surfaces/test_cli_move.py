"""`roomlore move` on the command line: what it says to people and to programs, in both languages."""

import asyncio
import json
import re
import sqlite3
from contextlib import closing

import pytest
from typer.testing import CliRunner

from moved_store import fill
from roomlore.surfaces.cli.app import app


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asyncio.run(fill("sqlite:///chat.db", more=3))

    def invoke(*words: str, code: int = 0, language: str = "en") -> str:
        monkeypatch.setenv("MEMORY_LANGUAGE", language)
        result = CliRunner().invoke(app, ["--db", "chat.db", "move", *words])
        assert result.exit_code == code, (result.output, result.exception)
        return result.output

    return invoke


def test_a_store_is_moved_and_people_and_programs_are_told(run, tmp_path):
    plan = run("--to", "new.db", "--dry-run")
    assert "About 1 MB, and about 1 min." in plan
    assert "running jobs" in plan, "an import has a position"
    assert not re.search("archive_folder|leases|vectors", plan), "the store has nothing of it, or nothing for people"
    assert not (tmp_path / "new.db").exists()
    planned = json.loads(run("--to", "new.db", "--dry-run", "--json"))
    assert planned["rows"]["messages"] == 26
    assert planned["left"]["leases"]

    told = run("--to", "new.db")
    assert re.search(r"messages +26\n", told)
    assert re.search(r"Copied in \d+ s: as the source was at \d{4}-\d\d-\d\d ", told)
    assert "`roomlore verify` finds no fault in either" in told
    assert f"set database_url to sqlite:///{tmp_path}/new.db" in told
    report = json.loads(run("--to", "new.db", "--json"))
    assert report["rows"]["messages"] == [26, 26]
    assert (report["sound"], report["newer"], report["unlike"]) == (True, False, [])
    assert report["faults"] == {side: {"acme": [], "default": []} for side in ("source", "target")}

    chinese = run("--to", "zh.db", language="zh")
    assert "逐行比较" in chinese
    assert not re.search("[a-z]{3,} [a-z]{3,}", chinese.replace("roomlore verify", "")), chinese


_NONE = "DELETE FROM rooms_due; DELETE FROM import_positions;"
LEFT_WITH = {
    "nothing": (_NONE, None),
    "an archive": (
        f"{_NONE} INSERT INTO archives VALUES ('default', 'a', 'tea', '', '', 1, 1, 1, 1, '', 1)",
        "files of",
    ),
    "vectors elsewhere": (f"{_NONE} DELETE FROM vectors", "vectors kept elsewhere"),
}


@pytest.mark.parametrize(("changes", "left"), LEFT_WITH.values(), ids=LEFT_WITH)
def test_only_what_a_store_has_is_listed_as_not_copied(run, tmp_path, changes, left):
    with closing(sqlite3.connect(tmp_path / "chat.db")) as store:
        store.executescript(changes)
    told = run("--to", "new.db", "--dry-run")
    listed = told.partition("not copied")[2].splitlines()[1:]
    assert [line[: len(left or "")] for line in listed] == ([left] if left else [])


def test_bad_input_is_told_what_to_do(run, tmp_path):
    assert "the same database" in run("--to", "chat.db", code=1)
    assert "in memory" in run("--to", "sqlite://", code=1)
    assert "none.db" in run("--from", "none.db", "--to", "new.db", code=1)
    assert "--to" in run(code=2)
    assert "内存中的数据库不能迁移" in run("--to", "sqlite://", code=1, language="zh")
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix == ".db") == ["chat.db"]


def test_a_move_that_ends_with_a_fault_exits_with_one(run, monkeypatch):
    async def faulty(settings: object) -> dict[str, list[str]]:
        return {"acme": [], "default": ["head: scope user:ann: Two versions are the head."]}

    monkeypatch.setattr("roomlore.wiring.moving._faults", faulty)
    told = run("--to", "new.db", code=1)
    assert "the target, default: head: scope user:ann" in told
    assert "finds no fault" not in told


def test_what_was_stopped_says_how_it_goes_on(run, monkeypatch):
    monkeypatch.setattr(
        "roomlore.wiring.moving._Move.catch_up", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt)
    )
    assert "The same command goes on" in run("--to", "new.db", code=130)
    monkeypatch.undo()
