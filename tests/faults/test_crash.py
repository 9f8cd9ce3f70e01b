"""The kills of `python -m bench crash`, a few of them: nothing acknowledged is lost, nothing is paid for twice."""

import re
from pathlib import Path

import pytest

from bench_command import bench
from worker_processes import kills

KILLS = kills(2)
ON_EACH_ENGINE = pytest.mark.parametrize("database", ["sqlite_new", "empty_postgres"])


@ON_EACH_ENGINE
def test_nothing_is_lost_or_paid_twice_by_kills(request: pytest.FixtureRequest, database: str) -> None:
    printed = killed("replies", request.getfixturevalue(database))
    assert _number(r"acknowledged: ([\d,]+)", printed) > KILLS
    assert _number(r"requests for a reply: ([\d,]+)", printed) > KILLS
    assert _number(r"extractions: ([\d,]+)", printed) > 0


@ON_EACH_ENGINE
def test_no_evolution_is_half_done_or_done_twice_by_kills(request: pytest.FixtureRequest, database: str) -> None:
    printed = killed("evolution", request.getfixturevalue(database))
    assert _number(r"acknowledged: ([\d,]+)", printed) > KILLS
    assert _number(r"requests for an evolution: ([\d,]+)", printed) > 0


@ON_EACH_ENGINE
def test_forgetting_loses_nothing_of_others_by_kills(request: pytest.FixtureRequest, database: str) -> None:
    printed = killed("forgetting", request.getfixturevalue(database))
    assert _number(r"messages of Ben's acknowledged: ([\d,]+)", printed) > KILLS
    assert "lost: 0" in printed


def killed(what: str, url: str) -> str:
    """Run the bench and return what it printed."""
    printed = bench("crash", "--what", what, "--kills", str(KILLS), "--database", url)
    assert f"kills: {KILLS}, of lives" in printed
    assert "violations: 0" in printed
    return printed


@pytest.fixture
def sqlite_new(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'roomlore.db'}"


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    assert found, text
    return int(found[1].replace(",", ""))
