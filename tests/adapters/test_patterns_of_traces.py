"""The patterns by which the database looks for texts that may tell of a person."""

import re
import sqlite3
import sys
from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from roomlore.storage.every_row import any_case, as_it_is
from roomlore.storage.rows import escape, mapping_text

SIGNS = "aAkKiIsSxZ0_-%\\\"'/\n\t\x00\x1a\ud800 İıſKẞßŉΣσςÉé\u0301\u0307林王子🙂👩‍👧ＡａＫ"
texts = st.text(st.sampled_from(SIGNS), max_size=12)


@pytest.fixture(scope="module")
def database() -> Iterator[sqlite3.Connection]:
    with sqlite3.connect(":memory:") as opened:
        yield opened
    opened.close()


def fits(database: sqlite3.Connection, text: str, pattern: str) -> bool:
    return bool(database.execute("SELECT ? LIKE ? ESCAPE '\\'", [text, pattern]).fetchone()[0])


def like(text: str, pattern: str) -> bool:
    """LIKE as PostgreSQL compares: letter by letter."""
    signs = re.findall(r"\\(.)|(.)", pattern, re.DOTALL)
    parts = (re.escape(kept) if kept else {"%": ".*", "_": "."}.get(sign, re.escape(sign)) for kept, sign in signs)
    return re.fullmatch("".join(parts), text, re.DOTALL) is not None


def lower_ascii(text: str) -> str:
    return "".join(sign.lower() if sign.isascii() else sign for sign in text)


@given(name=texts.filter(bool), before=texts, after=texts, change=st.sampled_from([str, str.upper, str.lower]))
@example("mike", "", "", lambda name: "Mİ\u212ae")
@example("ΑΣ", "", "Α", str)
@settings(max_examples=300)
def test_a_text_with_the_name_in_any_case_fits(database, name, before, after, change):
    text = before + change(name) + after
    if name.lower() not in text.lower():
        return
    for stored in map(escape, (text, mapping_text({"said": text}), mapping_text({text: 1}))):
        assert fits(database, stored, any_case(name))
        assert like(lower_ascii(stored), any_case(name))


@given(said=texts.filter(bool), before=texts, after=texts)
@settings(max_examples=300)
def test_a_text_with_the_passage_fits(database, said, before, after):
    text = before + said + after
    for stored in map(escape, (text, mapping_text({"said": text}))):
        assert fits(database, stored, as_it_is(said))
        assert like(stored, as_it_is(said))


def test_no_character_of_another_case_is_taken_for_itself():
    """The lower-case form of every character, compared with what its place in a pattern allows."""
    for sign in map(chr, range(sys.maxunicode + 1)):
        for place, lower in enumerate(sign.lower()):
            if lower != sign:
                allowed = any_case(lower)[1:-1]
                own = allowed == lower and sign.isascii()
                assert own or (allowed == "_" and place == 0) or allowed == "%", (sign, lower, allowed)


@pytest.mark.parametrize("name", ["maria-7f3a9c", "小林", "mike", "🙂", "ab_c%d"])
def test_a_text_without_the_name_does_not_fit(database, name):
    for text in ("who waters the garden on Sundays?", "星期天谁来给花园浇水？", "abxcxd"):
        assert not fits(database, text, any_case(name))
        assert not like(text, any_case(name))


def test_a_long_passage_makes_a_short_pattern(database):
    said = "所以我们星期天去河边" * 20_000
    assert len(as_it_is(said)) < 200
    assert fits(database, f"> {said}", as_it_is(said))
