"""The rules of the house that no other tool checks."""

import ast
import inspect
from pathlib import Path
from statistics import median

import pytest

import roomlore
from roomlore.sync import SyncLore
from roomlore.wiring import Lore

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
VAGUE = {"utils", "helpers", "manager", "base", "common", "misc"}
SERVICES = (
    *("messages", "context", "rooms", "keys", "imports", "tuning"),
    *("index", "sessions", "models", "memories", "replies", "recall", "jobs", "privacy"),
)


def test_public_names_are_sorted_and_there():
    assert roomlore.__all__ == sorted(roomlore.__all__)
    assert [name for name in roomlore.__all__ if not hasattr(roomlore, name)] == []


def test_functions_stay_small():
    lengths = sorted(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    assert median(lengths) <= 10
    assert lengths[int(len(lengths) * 0.95)] < 45


def test_no_module_has_a_vague_name():
    assert [str(path) for path in SOURCES if VAGUE & {path.stem, path.parent.name}] == []


def test_nothing_is_left_to_do():
    marks = ("TO" + "DO", "FIX" + "ME", "XX" + "X")
    assert [str(path) for path in SOURCES for mark in marks if mark in path.read_text()] == []


@pytest.mark.parametrize("name", SERVICES)
async def test_the_sync_client_has_the_same_signatures(name):
    async with roomlore.open("sqlite://") as lore:
        service = getattr(lore, name)
        verbs = {verb: method for verb, method in inspect.getmembers(service, inspect.ismethod) if verb[0] != "_"}
    with roomlore.open_sync("sqlite://") as sync:
        mirrored = vars(getattr(sync, name))
        assert set(mirrored) == set(verbs)
        for verb, method in verbs.items():
            assert inspect.signature(mirrored[verb]) == inspect.signature(method)
            assert not inspect.iscoroutinefunction(mirrored[verb])


def test_the_sync_client_has_every_verb_of_the_async_one():
    public = {name for name in vars(Lore) if not name.startswith("_")}
    assert public - set(vars(SyncLore)) == {"storage", "telemetry"}
