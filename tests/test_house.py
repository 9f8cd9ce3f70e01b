"""The rules of the house that no other tool checks."""

import ast
import inspect
import os
import re
import shutil
import subprocess
import sys
import tomllib
from functools import cache, cached_property
from graphlib import TopologicalSorter
from pathlib import Path
from statistics import median
from typing import get_type_hints

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement

import roomlore
from roomlore.core.memory.writing import Edit, MemoryChanges, MemoryFields, NewMemory
from roomlore.core.recall.recollection import OverriddenRecall, RecallArguments, RecallOverrides, RecallRequest
from roomlore.services.replies.request import ReplyArguments, ReplyRequest
from roomlore.sync import SyncLore
from roomlore.wiring import Lore
from roomlore.wiring.resources import Own, OwnBackends
from roomlore_testkit.case_table import all_cases

ROOT = Path(__file__).parent.parent
PACKAGES = sorted(one.parent for one in ROOT.glob("packages/*/pyproject.toml"))
FOLDERS = (ROOT / "src", *(path for path in ROOT.glob("packages/*/src") if "testkit" not in path.parent.name))
SOURCES = sorted(path for folder in FOLDERS for path in folder.rglob("*.py"))
_LONG = 60
"""Characters of a line that no two lines of the changelog begin with."""
VAGUE = {"utils", "helpers", "manager", "base", "common", "misc"}
SERVICES = (
    *("messages", "links", "context", "rooms", "keys", "imports", "tuning", "usage", "evaluation"),
    *("index", "sessions", "models", "memories", "replies", "recall", "jobs", "privacy", "quotas", "archives"),
)


def test_public_names_are_sorted_and_there():
    assert roomlore.__all__ == sorted(roomlore.__all__)
    assert [name for name in roomlore.__all__ if not hasattr(roomlore, name)] == []


def test_an_import_loads_no_service_and_no_database():
    asked = "import sys, roomlore; roomlore.Message; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout.split()
    assert {"sqlalchemy", "pydantic", "structlog", "roomlore.wiring", "roomlore.services"} & set(loaded) == set()


def test_help_loads_no_command_and_no_value():
    asked = (
        "import atexit, sys; sys.argv = ['roomlore', '--help'];"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr)); from roomlore.surfaces.cli import main; main()"
    )
    ran = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert "verify" in ran.stdout
    loaded = set(ran.stderr.split())
    assert {"sqlalchemy", "pydantic", "structlog", "numpy", "asyncio"} & loaded == set()
    own = {name for name in loaded if name.startswith("roomlore.")}
    assert own <= {
        *("roomlore.core", "roomlore.core.errors", "roomlore.core.texts", "roomlore.surfaces", "roomlore.surfaces.cli"),
        "roomlore.surfaces.texts",
        *(f"roomlore.surfaces.cli.{name}" for name in ("app", "frame", "language")),
    }


SPARED = {"alembic", "dbos", "httpx", "psycopg", "pygments", "structlog", "roomlore_importers.opening"} | {
    f"roomlore.services.{name}" for name in ("digest", "evaluation", "imports", "links", "privacy", "recall", "replies")
}
"""What no command needs that reads what is stored and prints it."""
OF_MEMORIES = {"roomlore.services.memories", "roomlore.services.memory_search", "roomlore.services.evolution"}
COMMANDS = [
    ("context tea 1", SPARED | OF_MEMORIES | {"json_repair"}),
    ("search tea green", SPARED | OF_MEMORIES | {"json_repair"}),
    ("rooms", SPARED | OF_MEMORIES | {"json_repair"}),
    ("memory search tea drinks", SPARED),
    ("facts list user:ann", SPARED - {"roomlore.services.privacy"}),  # which knows whose name that is
]


@pytest.fixture(scope="module")
def tea(tmp_path_factory):
    """A database with a room of one message."""
    file = tmp_path_factory.mktemp("commands") / "chat.db"
    with roomlore.open_sync(f"sqlite:///{file}", background=False) as lore:
        lore.messages.add(roomlore.Message(id="1", room_id="tea", sender_id="ann", text="Green or black tea?"))
    return file


def command(arguments: str, **environment: str) -> tuple[set[str], str]:
    """Return the modules that a command loaded, and what it wrote to standard error."""
    asked = (
        f"import atexit, gc, sys; sys.argv = ['roomlore', *{arguments.split()!r}];"
        "atexit.register(lambda: print('loaded', gc.isenabled(), *sys.modules, file=sys.stderr));"
        "from roomlore.surfaces.cli import main; main()"
    )
    ran = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, check=True, env=os.environ | environment
    )
    told, _, loaded = ran.stderr.rpartition("loaded True ")
    return set(loaded.split()), told


@pytest.mark.parametrize(("arguments", "spared"), COMMANDS, ids=[arguments for arguments, _ in COMMANDS])
def test_a_command_loads_what_it_uses(tea, arguments, spared):
    loaded, told = command(f"--db {tea} {arguments}")
    assert (loaded & spared, told) == (set(), "")
    assert {"sqlalchemy", "roomlore.services.contexts"} <= loaded


@pytest.mark.parametrize("arguments", ["search --help", "context --help", "memory --help", "settings"])
def test_what_asks_no_database_loads_none(arguments):
    loaded, told = command(arguments)
    assert ({"sqlalchemy", "roomlore.storage.store"} & loaded, told) == (set(), "")


def test_the_log_is_loaded_with_its_first_line(tea):
    loaded, told = command(f"--db {tea} rooms", MEMORY_OF_ANOTHER_PROGRAM="1")
    assert "structlog" in loaded
    assert re.search(r"warning .*no setting of roomlore, ignored.*variable.*MEMORY_OF_ANOTHER_PROGRAM", told)


def test_a_client_that_is_open_has_loaded_every_service():
    asked = "import sys, roomlore\nwith roomlore.open_sync('sqlite://', background=False): print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout.split()
    folder = ROOT / "src" / "roomlore" / "services"
    every = {one.relative_to(folder).with_suffix("").parts for one in folder.rglob("*.py") if one.stem != "__init__"}
    assert {".".join(("roomlore", "services", *parts)) for parts in every} - set(loaded) == set()
    assert {"roomlore_importers.opening", "roomlore_importers.memories", "json_repair"} <= set(loaded)


def test_a_server_starts_without_what_it_loads_when_it_is_asked():
    asked = (
        "import sys; from roomlore import Settings; import roomlore.surfaces.cli; "
        "from roomlore_server.http import create_app; create_app(Settings()); print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout.split()
    assert {"mcp", "openai", "httpx2", "jinja2", "typer.rich_utils"} & set(loaded) == set()


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def test_functions_stay_small():
    lengths = sorted(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for path in SOURCES
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    assert median(lengths) <= 10
    assert lengths[int(len(lengths) * 0.95)] < 45


def test_no_module_has_a_vague_name():
    assert [str(path) for path in SOURCES if VAGUE & {path.stem, path.parent.name}] == []


def imported_when_loaded(path: Path, modules: set[str]) -> set[str]:
    """Return the modules of roomlore that are loaded when this one is."""
    found = [node for node in parsed(path).body if isinstance(node, ast.ImportFrom)]
    names = {f"{node.module}.{one.name}": node.module for node in found for one in node.names}
    return {name if name in modules else module for name, module in names.items()} & modules


def test_no_modules_import_each_other():
    paths = {
        ".".join(path.relative_to(folder).with_suffix("").parts): path
        for folder in FOLDERS
        for path in folder.rglob("*.py")
    }
    modules = {name.removesuffix(".__init__"): path for name, path in paths.items()}
    needed = {name: imported_when_loaded(path, set(modules)) - {name} for name, path in modules.items()}
    assert len(list(TopologicalSorter(needed).static_order())) == len(modules)


ARGUMENTS = [
    (MemoryFields, NewMemory, {"scope", "statement"}),
    (MemoryChanges, Edit, set()),
    (OwnBackends, Own, set()),
    (RecallArguments, RecallRequest, set()),
    (RecallOverrides, OverriddenRecall, set()),
    (ReplyArguments, ReplyRequest, {"message"}),
]


@pytest.mark.parametrize(("arguments", "values", "beside"), ARGUMENTS, ids=lambda one: getattr(one, "__name__", ""))
def test_named_arguments_are_the_fields_of_their_dataclass(arguments, values, beside):
    kinds, hints = get_type_hints(arguments), get_type_hints(values)
    assert kinds == {name: hints[name] for name in hints if name not in beside}


def test_no_f_string_formats_a_constant():
    r"""In an f-string, the pattern `\d{1, 6}` is the text `\d(1, 6)`: braces of a repetition are doubled there."""
    assert slips(r"""re.compile(rf"\d{1, 6}{x}" r"\d{1,6}" rf"\d{{1,6}}|[a-z]{2}")""") == ["{(1, 6)}", "{2}"]
    assert [(str(path), slip) for path in SOURCES for slip in slips(path.read_text())] == []


def slips(source: str) -> list[str]:
    """Return what the f-strings of a source format that is known beforehand: numbers and tuples of them."""
    formatted = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FormattedValue))
    return [
        ast.unparse(node) for node in formatted if not any(isinstance(one, ast.Name) for one in ast.walk(node.value))
    ]


def test_nothing_is_left_to_do():
    marks = ("TO" + "DO", "FIX" + "ME", "XX" + "X")
    assert [str(path) for path in SOURCES for mark in marks if mark in path.read_text()] == []


def test_the_demo_is_pinned_as_everything_is_and_has_all_that_the_core_needs():
    demo, everything = (_pinned(ROOT / name) for name in ("requirements-demo.lock", "requirements.lock"))
    assert demo.items() <= everything.items()
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    brought = {Requirement(one).name.lower() for one in needed} - {"roomlore-importers"}
    assert brought <= {name.partition("==")[0] for name in demo}


def _pinned(lock: Path) -> dict[str, frozenset[str]]:
    """Return the hashes of each `name==version`."""
    entries = re.findall(r"^(\S+==\S+)[^\\\n]*\\\n((?:    --hash=.+\n)+)", lock.read_text(), re.MULTILINE)
    return {pin: frozenset(re.findall(r"sha256:\w+", hashes)) for pin, hashes in entries}


def test_the_wheel_has_the_types():
    packed = {file.distribution_path for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    assert {"roomlore/py.typed", "roomlore/sync.pyi", "roomlore/sync.py"} <= packed


@pytest.mark.parametrize("source", [ROOT, *PACKAGES], ids=lambda source: source.name if source != ROOT else "roomlore")
def test_a_package_is_the_same_byte_for_byte_wherever_it_is_built(source, tmp_path):
    """Two copies have other paths and times of change, as two clones have."""
    files = list(SdistBuilder(str(source)).recurse_included_files())
    built = {WheelBuilder: [], SdistBuilder: []}
    for copy in ("one", "other"):
        for file in files:
            into = tmp_path / copy / file.distribution_path
            into.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file.path, into)
        for builder, packages in built.items():
            package = next(builder(str(tmp_path / copy)).build(directory=str(tmp_path / f"{copy} built")))
            packages.append(Path(package).read_bytes())
    assert [builder for builder, (one, other) in built.items() if one != other] == []


async def test_the_sync_client_has_the_same_signatures():
    async with roomlore.open("sqlite://") as lore:
        services = {name: inspect.getmembers(getattr(lore, name), inspect.ismethod) for name in SERVICES}
    with roomlore.open_sync("sqlite://") as sync, all_cases() as case:
        for name, methods in services.items():
            mirrored, verbs = vars(getattr(sync, name)), {verb: one for verb, one in methods if verb[0] != "_"}
            with case(name):
                assert set(mirrored) == set(verbs)
            for verb, method in verbs.items():
                with case(name, verb):
                    assert inspect.signature(mirrored[verb]) == inspect.signature(method)
                    assert not inspect.iscoroutinefunction(mirrored[verb])


def test_the_sync_client_has_every_verb_of_the_async_one():
    public = {name for name in vars(Lore) if not name.startswith("_")}
    services = {name for name in public if isinstance(vars(Lore)[name], cached_property)}
    assert services == set(SERVICES)
    assert public - services - set(vars(SyncLore)) == {"storage", "telemetry"}


def test_no_line_of_the_changelog_stands_there_twice():
    lines = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    entries = [line for line in lines if len(line) > _LONG]
    beginnings = [line[:_LONG] for line in entries]
    assert [one for one in sorted(set(beginnings)) if beginnings.count(one) > 1] == []


def test_modules_that_pages_name_are_there():
    named = re.compile(r"`((?:core|storage|services|ports|adapters|surfaces|settings|wiring)/[\w/]+\.py)`")
    pages = [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found = [(page.name, name) for page in pages for name in named.findall(page.read_text(encoding="utf-8"))]
    assert found
    assert [(page, name) for page, name in found if not (ROOT / "src/roomlore" / name).is_file()] == []
