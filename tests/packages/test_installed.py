"""The wheels of the workspace, installed into an empty environment with nothing else of the repository."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTKIT = ROOT / "packages/roomlore-testkit"
USE = """
from importlib.metadata import version
from pathlib import Path

import pytest
import roomlore
import roomlore_testkit
from roomlore.adapters.sql import connect
from roomlore_testkit.contracts import MessagesContract

HERE = Path(__file__).parent


def test_both_are_the_installed_ones():
    assert version("roomlore") == version("roomlore-testkit")
    assert [one for one in (roomlore, roomlore_testkit) if "site-packages" not in one.__file__] == []


@pytest.fixture
async def storage():
    opened = await connect("sqlite://")
    yield opened
    await opened.close()


class TestMessages(MessagesContract):
    pass
"""


def _run(*command: object, cwd: Path | None = None) -> str:
    ran = subprocess.run([*map(str, command)], capture_output=True, text=True, cwd=cwd)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def _pins(into: Path) -> Path:
    """Write the versions of the lock file as constraints: pip cannot check hashes beside a wheel that has none."""
    into.write_text(re.sub(r" \\$|^ +--hash.*\n", "", (ROOT / "requirements.lock").read_text(), flags=re.MULTILINE))
    return into


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that has the wheels and what they need."""
    folder = tmp_path_factory.mktemp("wheels")
    for source in (ROOT, TESTKIT):
        _run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder, cwd=source)
    python = folder / "environment/bin/python"
    _run(sys.executable, "-m", "venv", "--without-pip", folder / "environment")
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-compile")
    _run(*pip, "--constraint", _pins(folder / "pins.txt"), *folder.glob("*.whl"))
    return python


def test_a_contract_runs_in_an_empty_environment(installed, tmp_path):
    (tmp_path / "test_use.py").write_text(USE)
    ran = _run(installed, "-m", "pytest", "--override-ini", "asyncio_mode=auto", "-q", "test_use.py", cwd=tmp_path)
    assert int(re.findall(r"(\d+) passed", ran)[0]) > 20


def test_the_library_alone_has_no_testkit(installed):
    listed = _run(installed, "-c", "import importlib.metadata as m; print(*m.files('roomlore'), sep='\\n')")
    assert "roomlore/py.typed" in listed
    assert "testkit" not in listed


def test_the_workspace_has_one_version_and_one_lock():
    library, testkit = (tomllib.loads((path / "pyproject.toml").read_text())["project"] for path in (ROOT, TESTKIT))
    assert testkit["version"] == library["version"]
    assert f"roomlore=={library['version']}" in testkit["dependencies"]
    locked = {line.partition("==")[0] for line in (ROOT / "requirements.lock").read_text().splitlines()}
    others = [re.split("[>=<]", one)[0] for one in testkit["dependencies"] if not one.startswith("roomlore")]
    assert [name for name in others if name not in locked] == []
