"""The kills of `python -m bench crash`, a few of them: nothing acknowledged is lost, nothing is paid for twice."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("database", "kills"), [("sqlite_new", 6), ("empty_postgres", 3)])
def test_nothing_is_lost_or_paid_twice_by_kills(request: pytest.FixtureRequest, database: str, kills: int) -> None:
    printed = killed("replies", request.getfixturevalue(database), kills)
    assert _number(r"acknowledged: ([\d,]+)", printed) > kills
    assert _number(r"requests for a reply: ([\d,]+)", printed) > kills
    assert _number(r"extractions: ([\d,]+)", printed) > 0


@pytest.mark.parametrize(("database", "kills"), [("sqlite_new", 6), ("empty_postgres", 4)])
def test_no_evolution_is_half_done_or_done_twice_by_kills(
    request: pytest.FixtureRequest, database: str, kills: int
) -> None:
    printed = killed("evolution", request.getfixturevalue(database), kills)
    assert _number(r"acknowledged: ([\d,]+)", printed) > kills
    assert _number(r"requests for an evolution: ([\d,]+)", printed) > 0


def killed(what: str, url: str, kills: int) -> str:
    """What the bench printed."""
    command = (sys.executable, "-m", "bench", "crash", "--what", what, "--kills", str(kills), "--database", url)
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=150)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"kills: {kills}, of lives" in ended.stdout
    assert "violations: 0" in ended.stdout
    return ended.stdout


@pytest.fixture
def sqlite_new(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'roomlore.db'}"


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    assert found, text
    return int(found[1].replace(",", ""))
