"""The wheels of the workspace, installed into an empty environment with nothing else of the repository."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.request import urlopen

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PACKAGES = {one.parent.name: one.parent for one in sorted(ROOT.glob("packages/*/pyproject.toml"))}
USE = """
from importlib.metadata import version
from pathlib import Path

import pytest
import roomlore
import roomlore_console
import roomlore_importers
import roomlore_integrations
import roomlore_kernel
import roomlore_server
import roomlore_testkit
from roomlore_testkit import FrozenClock, InMemorySessionCache
from roomlore_testkit.contracts import SessionCacheContract

HERE = Path(__file__).parent


def test_all_are_the_installed_ones():
    built = (roomlore_console, roomlore_importers, roomlore_integrations, roomlore_kernel, roomlore_server)
    packages = (roomlore, roomlore_testkit, *built)
    assert len({version(one.__name__) for one in packages}) == 1
    assert [one for one in packages if "site-packages" not in one.__file__] == []


class TestCache(SessionCacheContract):
    @pytest.fixture
    def clock(self):
        return FrozenClock()

    @pytest.fixture
    def cache(self, clock):
        return InMemorySessionCache(clock)

    @pytest.fixture
    def let_pass(self, clock):
        async def advance(seconds):
            clock.advance(seconds)

        return advance
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
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel of each package."""
    folder = tmp_path_factory.mktemp("wheels")
    for source in (ROOT, *PACKAGES.values()):
        _run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder, cwd=source)
    return folder


def environment(wheels: Path, folder: Path, *wanted: str) -> Path:
    """Return the interpreter of an empty environment in which pip has installed this."""
    python = folder / "environment/bin/python"
    _run(sys.executable, "-m", "venv", "--without-pip", folder / "environment")
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-compile")
    _run(*pip, "--constraint", _pins(folder / "pins.txt"), "--find-links", wheels, *wanted)
    return python


@pytest.fixture(scope="module")
def installed(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that has everything."""
    return environment(wheels, tmp_path_factory.mktemp("all"), "roomlore[all]", "roomlore-testkit")


@pytest.fixture(scope="module")
def library(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that has what `pip install roomlore` brings."""
    return environment(wheels, tmp_path_factory.mktemp("library"), "roomlore")


def test_a_contract_runs_in_an_empty_environment(installed, tmp_path):
    (tmp_path / "test_use.py").write_text(USE)
    ran = _run(installed, "-m", "pytest", "--override-ini", "asyncio_mode=auto", "-q", "test_use.py", cwd=tmp_path)
    assert int(re.findall(r"(\d+) passed", ran)[0]) > 10


IMPORT_ALL = """
import importlib, pkgutil, sys
package = importlib.import_module(sys.argv[1])
for found in pkgutil.walk_packages(package.__path__, sys.argv[1] + "."):
    if found.name not in sys.argv[2:]:
        print(importlib.import_module(found.name).__name__)
"""
APART = {f"roomlore_integrations.{name}" for name in ("agent_framework", "google_adk", "llama_index")}
"""Modules of frameworks that the extra `all` does not bring, since frameworks pin versions against each other."""


@pytest.mark.parametrize("name", PACKAGES)
def test_every_module_needs_only_what_its_package_brings(installed, name):
    source, package = PACKAGES[name] / "src", name.replace("-", "_")
    files = [path.relative_to(source).with_suffix("").parts for path in (source / package).rglob("*.py")]
    modules = {".".join(parts).removesuffix(".__init__") for parts in files} - {package, *APART}
    assert set(_run(installed, "-c", IMPORT_ALL, package, *APART).split()) == modules


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_comes_with_its_licence(installed, name):
    program = f"import importlib.metadata as m; print(m.distribution('{name}').read_text('licenses/LICENSE'))"
    assert _run(installed, "-c", program).strip() == (ROOT / "LICENSE").read_text(encoding="utf-8").strip()


def test_the_library_brings_the_importers_and_nothing_that_serves(library, tmp_path):
    (tmp_path / "chat.jsonl").write_text('{"id": "1", "room_id": "tea", "sender_id": "ann", "text": "Green?"}\n')
    ran = _run(library, "-m", "roomlore", "--db", "chat.db", "import", "chat.jsonl", "--json", cwd=tmp_path)
    assert '"added": 1' in ran
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"roomlore-importers=={project['version']}" in project["dependencies"]
    listed = _run(library, "-c", "import importlib.metadata as m; print(*(one.name for one in m.distributions()))")
    assert {one for one in listed.split() if one.startswith("roomlore")} == {"roomlore", "roomlore-importers"}
    for command, extra in (("serve", "server"), ("mcp", "mcp"), ("mcp --http", "mcp,server")):
        words = [library, "-m", "roomlore", *command.split()]
        refused = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
        assert (refused.returncode, f"pip install 'roomlore[{extra}]'" in refused.stderr) == (1, True), refused.stderr


LINKED = """
import roomlore
with roomlore.open_sync("sqlite://") as lore:
    for number in range(30):
        sender, text = f"p{number % 3}", f"Tea {number % 7}?"
        lore.messages.add([roomlore.Message(id=str(number), room_id="r", sender_id=sender, text=text)])
    print(*(lore.context.build("r", str(number)).parent for number in range(2, 30)))
"""


def test_the_extra_kernel_links_as_the_library_does_without_it(wheels, library, tmp_path):
    compiled = environment(wheels, tmp_path, "roomlore[kernel]")
    assert _run(compiled, "-c", LINKED, cwd=tmp_path) == _run(library, "-c", LINKED, cwd=tmp_path)
    for python, form in ((compiled, r"compiled \(\w+\)"), (library, "in numpy")):
        told = json.loads(_run(python, "-m", "roomlore", "--db", "chat.db", "doctor", "--json", cwd=tmp_path))
        (linker,) = (one for one in told["findings"] if one["part"] == "linker")
        assert re.fullmatch(form, linker["told"])


def test_the_extra_server_brings_what_serves(wheels, tmp_path):
    python = environment(wheels, tmp_path, "roomlore[server]")
    command = [python, "-m", "roomlore", "--db", "chat.db", "serve", "--port", "0"]
    with subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, text=True, cwd=tmp_path) as server:
        try:
            url = re.findall(r"http://[\w.:]+", server.stdout.readline())[0]
            for path in ("/health/live", "/openapi.json", "/console", "/v1/ping/"):
                with urlopen(url + path, timeout=60) as answer:
                    assert answer.status == 200
        finally:
            server.terminate()


@pytest.mark.parametrize("name", PACKAGES)
def test_the_workspace_has_one_version_and_one_lock(name):
    folders = (ROOT, PACKAGES[name])
    library, package = (tomllib.loads((folder / "pyproject.toml").read_text())["project"] for folder in folders)
    assert package["version"] == library["version"]
    assert f"roomlore=={library['version']}" in package["dependencies"]
    locked = dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "requirements.lock").read_text(), flags=re.MULTILINE))
    wanted = [Requirement(one) for one in package["dependencies"]]
    others = {one.name: one.specifier for one in wanted if not one.name.startswith("roomlore")}
    assert {name: locked.get(name) for name, versions in others.items() if locked.get(name, "0") not in versions} == {}
