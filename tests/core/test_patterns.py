"""Patterns that are compiled at their first use."""

import ast
import copy
import pickle
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import regex
from pattern_rows import ROWS

from roomlore import core
from roomlore.core.patterns import LazyPattern, lazy_pattern
from roomlore_testkit.case_table import all_cases


def test_a_pattern_finds_what_a_compiled_one_finds():
    lazy, compiled = lazy_pattern(r"(?P<hour>\d{1,2}) ?(am|pm)", re.IGNORECASE), re.compile(r"(\d{1,2}) ?(am|pm)", re.I)
    for text in ("at 5 PM", "at five", "10am or 11am"):
        assert lazy.findall(text) == compiled.findall(text)
        assert bool(lazy.search(text)) == bool(compiled.search(text))
        assert lazy.sub("-", text) == compiled.sub("-", text)
    assert lazy.search("at 5 PM")["hour"] == "5"
    assert lazy.groupindex == {"hour": 1}
    assert lazy_pattern(rb"\d+").findall(b"a1b22") == [b"1", b"22"]


def test_a_pattern_is_compiled_at_its_first_use():
    wrong = lazy_pattern("(")
    with pytest.raises(re.error):
        wrong.search("x")


COMPILE_ALL = """
import gc, importlib, pkgutil, roomlore, roomlore_console, roomlore_importers
from roomlore.core.patterns import LazyPattern

roots = (roomlore, roomlore_console, roomlore_importers)
packages = [pkgutil.walk_packages(one.__path__, f"{one.__name__}.") for one in roots]
for module in (one for package in packages for one in package):
    if module.name.startswith(("roomlore.core.", "roomlore_importers.", "roomlore_console.")):
        importlib.import_module(module.name)
found = [one for one in gc.get_objects() if isinstance(one, LazyPattern)]
for lazy in found:
    lazy.fullmatch("" if isinstance(lazy.pattern, str) else b"")
print(len(found))
"""


def test_every_pattern_of_the_library_can_be_compiled():
    done = subprocess.run([sys.executable, "-c", COMPILE_ALL], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 600


def test_a_pattern_can_be_copied():
    lazy = lazy_pattern(r"\d+")
    assert copy.copy(lazy).findall("a1") == copy.deepcopy(lazy).findall("a1") == ["1"]
    assert pickle.loads(pickle.dumps(lazy)).findall("a1") == ["1"]


PATTERNS = (LazyPattern, re.Pattern, type(regex.compile("")))


def patterns_in(value: Any) -> Iterator[Any]:
    """Yield the patterns of a value, in the order of its containers."""
    if isinstance(value, PATTERNS):
        yield value
    elif isinstance(value, Mapping):
        yield from patterns_in(list(value.values()))
    elif isinstance(value, tuple | list):
        for one in value:
            yield from patterns_in(one)


def test_each_pattern_of_the_core_finds_what_it_must_and_nothing_that_it_must_not():
    modules = [import_module(one.name) for one in pkgutil.walk_packages(core.__path__, f"{core.__name__}.")]
    left, seen = dict(ROWS), set[int]()
    with all_cases() as case:
        for module in sorted(modules, key=lambda one: one.__name__):
            for name, value in vars(module).items():
                found = [one for one in patterns_in(value) if id(one) not in seen]
                seen.update(map(id, found))
                place = f"{module.__name__}.{name}".removeprefix(f"{core.__name__}.")
                rows = left.pop(place, []) if found else []
                with case(place):
                    assert len(rows) == len(found), "give each pattern a row in pattern_rows.py"
                    for pattern, (must, must_not, *how) in zip(found, rows, strict=True):
                        find = getattr(pattern, *how) if how else pattern.search
                        assert must, "name a text that the pattern must find"
                        assert must_not, "name a text that the pattern must not find"
                        assert [text for text in must if not find(text)] == []
                        assert [text for text in must_not if find(text)] == []
    assert left == {}


def test_each_pattern_of_the_core_says_why():
    """A comment or a docstring beside it says what it finds; an entry of the lexicon says so itself."""
    for path in Path(core.__path__[0]).rglob("*.py"):
        source = path.read_text("utf-8")
        body, lines = ast.parse(source).body, source.splitlines()
        for part, after in pairwise([*body, ast.Pass()]):
            text = ast.get_source_segment(source, part) or ""
            if isinstance(part, ast.Assign | ast.AnnAssign) and re.search(r"(lazy_pattern|\.compile)\(", text):
                told = isinstance(after, ast.Expr) or lines[part.lineno - 2].startswith("#")
                assert told, f"say above {text[:40]!r} of {path.name} what it finds"
