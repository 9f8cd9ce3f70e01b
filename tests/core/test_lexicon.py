"""The words of each language: what each entry must and must not find."""

import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roomlore.core import lexicon, safety
from roomlore.core.text import fold, has_any

ROWS = {file.stem: tomllib.loads(file.read_text("utf-8")) for file in Path(__file__).parent.glob("lexicon/*.toml")}
ENTRIES = [(language, name) for language, entries in lexicon.languages().items() for name in entries]


@pytest.mark.parametrize(("language", "name"), ENTRIES)
def test_an_entry_finds_what_it_must_and_nothing_that_it_must_not(language, name):
    entry = lexicon.languages()[language][name]
    assert entry["why"].endswith(".")
    if "values" in entry:
        return
    rows = ROWS[language][name]
    assert rows["must"], "name a text that the entry must find"
    assert rows["must_not"], "name a text that the entry must not find"
    held, sign = lexicon.words(name, language), re.compile(lexicon.alternatives(name, language))
    for text in rows["must"]:
        assert text in held if held else sign.search(fold(text)), text
    for text in rows["must_not"]:
        assert text not in held, text
        assert not sign.search(fold(text)), text


@pytest.mark.parametrize("language", lexicon.languages())
def test_the_entries_of_a_language_are_in_order_and_name_only_each_other(language):
    entries = lexicon.languages()[language]
    assert list(entries) == sorted(entries)
    forms = [
        form for entry in entries.values() for key in ("words", "parts") for form in entry.get(key, "").splitlines()
    ]
    assert {name for form in forms for name in re.findall(r"\{([a-z_]+)\}", form)} - entries.keys() == set()
    assert ROWS[language].keys() - entries.keys() == set()


def test_a_language_that_lacks_an_entry_has_no_words_for_it():
    assert not re.search(lexicon.alternatives("anaesthetic"), "anaesthetic")
    assert lexicon.words("anaesthetic") == frozenset()
    assert re.search(lexicon.alternatives("cancel", "en"), "it is cancelled")
    assert not re.search(lexicon.alternatives("cancel", "zh"), "it is cancelled")


def test_whole_words_are_found_in_all_languages():
    texts = ("it is cancelled", "周六取消", "candles")
    assert [bool(lexicon.pattern("cancel").search(text)) for text in texts] == [True, True, False]


@pytest.mark.parametrize(
    ("name", "finds"), [("grave", safety.is_grave), ("taken", safety.is_medication), ("forbidden", safety.forbids)]
)
def test_a_text_has_a_hint_of_what_it_says(name, finds):
    texts = [text for rows in ROWS.values() for text in rows.get(name, {"must": []})["must"]]
    assert [text for text in texts if not finds(fold(text))] == []


@pytest.mark.parametrize(
    ("name", "language"), [("call", "en"), ("question", "zh"), ("thanking", "en"), ("thanking", "zh")]
)
@given(drawn=st.data())
def test_every_text_of_an_entry_has_a_hint(name, language, drawn):
    text = drawn.draw(st.from_regex(lexicon.alternatives(name, language)))
    assert has_any(text, lexicon.words(f"{name}_hint"))
