"""The texts of errors: their codes, fields and catalogues."""

import ast
import pickle
import re
from collections.abc import Iterator
from importlib.resources import files
from itertools import product
from pathlib import Path
from string import Formatter

import pytest
from babel.messages.pofile import read_po

from roomlore.core import errors, texts
from roomlore.core.errors import ModelUnavailable, NotFound, QuotaExceeded, RoomloreError
from roomlore.core.texts import LANGUAGES, Phrase, also, catalogue, sentences
from roomlore.surfaces.texts import text_of

ROOT = Path(__file__).parents[2]
SOURCES = [path for path in sorted(ROOT.glob("**/src/**/*.py")) if "roomlore_testkit" not in path.parts]
ERRORS = {name for name, one in vars(errors).items() if isinstance(one, type) and issubclass(one, RoomloreError)}
ATTRIBUTES = {"room_id", "limit", "used", "most", "resets_at", "cause", "wait_seconds"}
HAN = re.compile("[\u4e00-\u9fff]")


def places(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def raised() -> Iterator[tuple[Path, ast.Call, str]]:
    """Yield the errors and phrases of all modules that name their code, with it."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in {*ERRORS, "Phrase"}:
                for code in node.args[:1]:
                    if isinstance(code, ast.Constant):
                        yield path, node, code.value


def test_a_code_that_is_raised_is_in_the_catalogue_with_its_fields():
    wrong = []
    for path, node, code in raised():
        given = {one.arg for one in node.keywords}
        text = catalogue("en").get(code)
        if text is None or not (None in given or places(text) <= given <= places(text) | ATTRIBUTES):
            wrong.append(f"{path.name}:{node.lineno} {code} {given}")
    assert wrong == []


def test_no_error_is_raised_with_a_sentence_in_place_of_a_code():
    calls = (
        (path, node)
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ERRORS and node.args
    )
    texts = [(path.name, node.lineno) for path, node in calls if isinstance(node.args[0], ast.JoinedStr | ast.BinOp)]
    assert texts == []


def test_no_code_is_left_over():
    words = set().union(*(re.findall(r'"(\w+)"', path.read_text(encoding="utf-8")) for path in SOURCES))
    assert catalogue("en").keys() - {""} - words == set()


def test_both_catalogues_have_the_same_codes_and_fields():
    english, chinese = map(catalogue, LANGUAGES)
    assert english.keys() == chinese.keys()
    assert [code for code, text in english.items() if places(text) != places(chinese[code])] == []
    assert [code for code, text in chinese.items() if places(text) == set() and not HAN.search(text) and code] == []


@pytest.mark.parametrize(("language", "name"), [*product(LANGUAGES, ("errors", "doctor"))])
def test_a_catalogue_is_one_of_gettext(language, name):
    place = files("roomlore").joinpath("locale", language, "LC_MESSAGES", f"{name}.po")
    with place.open("rb") as file:
        read = {entry.id: entry.string for entry in read_po(file, locale=language) if entry.id}
    assert read == {code: text for code, text in catalogue(language, name).items() if code}


def test_english_wording_changes_without_the_chinese(monkeypatch):
    english = {**catalogue("en"), "memory_unknown": "No memory is called {memory}."}
    error = NotFound("memory_unknown", memory="'m1'")
    before = text_of(error, "zh")
    monkeypatch.setattr(texts, "catalogue", lambda language: english if language == "en" else catalogue(language))
    error = NotFound("memory_unknown", memory="'m1'")
    assert (str(error), text_of(error, "zh")) == ("No memory is called 'm1'.", before)


def test_an_error_in_an_error_is_said_in_the_same_language():
    inner = NotFound("memory_unknown", memory="'m1'")
    error = NotFound("looked_for_in", error=inner, place="a.db")
    assert str(error) == "There is no memory 'm1'. Looked for in a.db."
    assert text_of(error, "zh") == "没有记忆 'm1'。查找范围：a.db。"
    assert error.code == "looked_for_in"
    assert error.fields["error"].code == "memory_unknown"


def test_an_error_of_others_is_shown_as_it_is():
    error = NotFound("No {such} thing.")
    assert (str(error), error.code, error.fields) == ("No {such} thing.", "", {})
    assert text_of(error, "zh") == "No {such} thing."


@pytest.mark.parametrize(
    "error",
    [
        NotFound("memory_unknown", memory="'m1'"),
        ModelUnavailable("model_late", cause="timeout", seconds=3),
        QuotaExceeded("tag_empty", limit="messages_kept", used=3),
        NotFound("any text"),
        NotFound(),
    ],
)
def test_a_pickled_error_keeps_its_text_its_fields_and_what_else_it_has(error):
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.args, vars(again)) == (str(error), error.args, vars(error))
    assert (again.code, again.fields, type(again)) == (error.code, error.fields, type(error))
    assert text_of(again, "zh") == text_of(error, "zh")


def test_sentences_and_several_errors_are_joined_as_each_language_does():
    empty, missing = Phrase("statement_missing"), Phrase("tag_empty")
    assert sentences("", empty, "", missing) == f"{empty} {missing}"
    assert text_of(sentences(empty, missing), "zh") == text_of(empty, "zh") + text_of(missing, "zh")
    assert also([empty, missing]) == f"{empty}; also {missing}"
    assert "；另外，" in text_of(also([empty, missing]), "zh")
