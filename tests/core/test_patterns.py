"""Patterns that are compiled at their first use."""

import copy
import pickle
import re
import subprocess
import sys

import pytest

from roomlore.core.patterns import lazy_pattern


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
import gc, importlib, pkgutil, roomlore
from roomlore.core.patterns import _LazyPattern

for module in pkgutil.walk_packages(roomlore.__path__, "roomlore."):
    if module.name.startswith(("roomlore.core.", "roomlore.importers.", "roomlore.surfaces.console.")):
        importlib.import_module(module.name)
found = [one for one in gc.get_objects() if type(one) is _LazyPattern]
for lazy in found:
    lazy.search("" if isinstance(lazy.pattern, str) else b"")
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
