"""Patterns that are compiled at their first use."""

import importlib
import pkgutil
import re

import pytest

import roomlore
from roomlore.core import patterns
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


def test_every_pattern_of_the_library_can_be_compiled():
    seen = 0
    for module in pkgutil.walk_packages(roomlore.__path__, "roomlore."):
        if module.name.startswith(("roomlore.core.", "roomlore.importers.", "roomlore.surfaces.console.")):
            for lazy in _patterns(vars(importlib.import_module(module.name)).values()):
                lazy.search("" if isinstance(lazy.pattern, str) else b"")
                seen += 1
    assert seen > 400


def _patterns(values, deep=4):
    for value in values:
        if isinstance(value, patterns._LazyPattern):
            yield value
        elif deep and isinstance(value, dict):
            yield from _patterns(value.values(), deep - 1)
        elif deep and isinstance(value, tuple | list):
            yield from _patterns(value, deep - 1)
