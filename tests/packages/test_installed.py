"""The wheels of the workspace, installed into an empty environment with nothing else of the repository."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

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


IMPORT_ALL = """
import importlib, pkgutil, roomlore_testkit
for found in pkgutil.walk_packages(roomlore_testkit.__path__, "roomlore_testkit."):
    print(importlib.import_module(found.name).__name__)
"""


def test_every_module_of_the_testkit_needs_only_what_it_brings(installed):
    source = TESTKIT / "src"
    files = [path.relative_to(source).with_suffix("").parts for path in (source / "roomlore_testkit").rglob("*.py")]
    modules = {".".join(parts).removesuffix(".__init__") for parts in files} - {"roomlore_testkit"}
    assert set(_run(installed, "-c", IMPORT_ALL).split()) == modules


def test_the_testkit_comes_with_its_licence(installed):
    program = "import importlib.metadata as m; print(m.distribution('roomlore-testkit').read_text('licenses/LICENSE'))"
    assert _run(installed, "-c", program).strip() == (ROOT / "LICENSE").read_text(encoding="utf-8").strip()


def test_the_library_alone_has_no_testkit(installed):
    listed = _run(installed, "-c", "import importlib.metadata as m; print(*m.files('roomlore'), sep='\\n')")
    assert "roomlore/py.typed" in listed
    assert "testkit" not in listed


def test_the_workspace_has_one_version_and_one_lock():
    library, testkit = (tomllib.loads((path / "pyproject.toml").read_text())["project"] for path in (ROOT, TESTKIT))
    assert testkit["version"] == library["version"]
    assert f"roomlore=={library['version']}" in testkit["dependencies"]
    locked = dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "requirements.lock").read_text(), flags=re.MULTILINE))
    wanted = [Requirement(one) for one in testkit["dependencies"]]
    others = {one.name: one.specifier for one in wanted if one.name != "roomlore"}
    assert others
    assert {name: locked.get(name) for name, versions in others.items() if locked.get(name, "0") not in versions} == {}
