"""What `make test-frameworks` runs, and what the page says of it. The tests themselves are in tests/frameworks."""

import importlib.util
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "tests/frameworks"


def _load():
    spec = importlib.util.spec_from_file_location("matrix", FOLDER / "matrix.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["matrix"] = module
    spec.loader.exec_module(module)
    return module


matrix = _load()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
every = pytest.mark.parametrize("framework", matrix.FRAMEWORKS, ids=lambda one: one.name)


def test_every_module_of_tests_is_run_by_ci():
    assert {one.tests for one in matrix.FRAMEWORKS} == set(FOLDER.glob("test_*.py"))
    ci = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\nci:")[2]
    assert "$(MAKE) test-frameworks" in ci


@every
def test_the_lowest_version_is_the_floor_that_is_declared(framework):
    project = PROJECT["project"]["optional-dependencies"] if framework.extra else PROJECT["dependency-groups"]
    (floor,) = [one for one in project[framework.name] if re.match(rf"{framework.package}\b(?!-)", one)]
    assert re.search(r">=([\d.]+)", floor)[1] == ".".join(
        framework.version("lowest").split(".")[: floor.count(".") + 1]
    )


@every
def test_no_test_of_a_framework_is_skipped(framework):
    assert not re.search(r"importorskip|mark\.skip|pytest\.skip", framework.tests.read_text(encoding="utf-8"))


def test_the_page_names_the_versions_of_the_lock_files():
    text = matrix.PAGE.read_text(encoding="utf-8")
    weights = dict(re.findall(r"^\| \[.+?\]\(([\w-]+)\.md\) \| `.*?\| (\d+) MB \|$", text, re.MULTILINE))
    table = matrix.table({name: int(weight) for name, weight in weights.items()})
    assert f"{matrix.BEGIN}\n\n{table}\n\n{matrix.END}" in text, "make frameworks"


@every
def test_the_page_of_a_framework_names_its_extra_and_the_versions(framework):
    text = (ROOT / f"docs/how-to/{framework.name}.md").read_text(encoding="utf-8")
    assert "(frameworks.md#versions)" in text
    assert (f"roomlore[{framework.name}]" in text) is framework.extra
