"""The findings of `roomlore doctor` in every language of the console: a finding without Chinese fails here."""

import ast
import re
import string
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

import roomlore
from roomlore.core.health import Finding, say
from roomlore.core.texts import catalogue
from roomlore.settings.registry import registered
from roomlore.surfaces import doctor_words
from roomlore_console.frame import LANGUAGES
from roomlore_testkit.case_table import all_cases

ENGLISH, CHINESE = catalogue("en", "doctor"), catalogue("zh", "doctor")
PARTS = {key.removeprefix("part.") for key in ENGLISH if key.startswith("part.")}
SAYINGS = {key: text for key, text in ENGLISH.items() if not key.startswith("part.")}
HAN = re.compile(r"[\u4e00-\u9fff]")
SOURCES = [
    ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted(Path(roomlore.__file__).parent.rglob("*.py"))
    if path.parts[-2:] == ("core", "health.py")
    or (
        path.parent.name not in ("cli", "console")
        and "from roomlore.core.health import" in path.read_text(encoding="utf-8")
    )
]


def fields(template: str) -> dict[str, str]:
    """The names of its fields, each with its format."""
    return {name: spec or "" for _, name, spec, _ in string.Formatter().parse(template) if name is not None}


def first_arguments(*functions: str) -> Iterator[ast.expr]:
    for node in (node for tree in SOURCES for node in ast.walk(tree)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in functions:
            yield node.args[0]


def texts(given: ast.expr) -> set[str]:
    """Those it may be; a choice has two."""
    if isinstance(given, ast.IfExp):
        return texts(given.body) | texts(given.orelse)
    return {given.value} if isinstance(given, ast.Constant) else set()


def test_what_is_said_anywhere_is_known_and_everything_known_is_said():
    said = list(first_arguments("say"))
    assert [ast.unparse(one) for one in said if not texts(one)] == [], "a key stands where it is said"
    assert {key for one in said for key in texts(one)} == set(SAYINGS)


def test_every_part_that_is_looked_at_is_known():
    named = {part for one in first_arguments("Finding", "Probe") for part in texts(one)}
    begun = {
        node.value.values[0].value.strip()
        for tree in SOURCES
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.JoinedStr) and node.targets[0].id == "part"
    }
    assert begun == {"model", "provider"}
    backends = {backend.name for backend in registered() if backend.probe}
    assert named - backends | begun | {"models"} == PARTS


def test_chinese_has_every_saying_and_every_part_with_the_same_fields():
    assert {key: fields(text) for key, text in CHINESE.items()} == {key: fields(text) for key, text in ENGLISH.items()}
    assert [key for key, text in CHINESE.items() if not HAN.search(text)] == []


def test_every_saying_can_be_said():
    with all_cases() as case:
        for key, language in product(SAYINGS, LANGUAGES):
            with case(key, language):
                values = {name: 12.5 if spec else f"茶 {{{name}}}" for name, spec in fields(SAYINGS[key]).items()}
                shown = doctor_words.phrase(say(key, **values), language=language)
                assert all(str(value) in shown for value in values.values())
                assert not shown.endswith("。。")


@pytest.mark.parametrize("language", LANGUAGES)
def test_nothing_to_do_is_said_as_nothing(language):
    finding = Finding("redis", "ok", say("backend.answers"))
    assert (finding.advice, doctor_words.phrase(finding.todo, language=language)) == ("", "")


@pytest.mark.parametrize(
    ("part", "english", "chinese"),
    [
        ("disk", "disk", "磁盘"),
        ("provider near", "provider near", "服务商 near"),
        ("model 聊天", "model 聊天", "模型 聊天"),
    ],
)
def test_a_part_keeps_the_name_that_follows(part, english, chinese):
    assert doctor_words.part(part, language="en") == english
    assert doctor_words.part(part, language="zh") == chinese
