"""Which words of a text are marked, and which part of a long one is shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roomlore.core.text import truncate
from roomlore.surfaces.excerpts import TextSpan, excerpt, matches

CASES = [
    ("Deployed twice, deploys again", "deploy", ["Deployed", "deploys"]),
    ("the tea is ready", "is the tea ready", ["tea", "ready"]),
    ("端午的值班表", "端午谁值班", ["端午", "值班"]),
    ("花生过敏的人", "过敏", ["过敏"]),
    ("我过来了", "过敏", []),
    ("猫和狗", "猫", ["猫"]),
    ("猫和狗", "大猫", []),
    ("发群收款了 CSV", "csv 收款", ["收款", "CSV"]),
    ("这是什么？什么都行", "是什么", ["是什么", "什么"]),
    ("ICE cream", "ıce", ["ICE"]),
    ("ｃｓｖ", "csv", ["ｃｓｖ"]),
    ("おはようございます", "おはよう", ["おはよう"]),
    ("", "tea", []),
    ("tea", "", []),
]


@pytest.mark.parametrize(("text", "query", "marked"), CASES)
def test_words_are_found_in_their_forms(text, query, marked):
    assert [text[at:to] for at, to in matches(text, query)] == marked


MIXED = st.text(st.sampled_from("ab tea茶过敏的 .'é👍\u0301"), max_size=60)


@given(MIXED, MIXED)
def test_marks_are_in_order_and_apart(text, query):
    edges = [edge for mark in matches(text, query) for edge in mark]
    assert edges == sorted(edges)
    assert all(0 <= at < to <= len(text) for at, to in matches(text, query))


def test_a_short_text_is_shown_whole():
    assert excerpt("green tea", [TextSpan(6, 9)], 9) == ("green tea", [TextSpan(6, 9)])


def test_of_a_long_text_the_part_with_most_marks_is_shown():
    text = "tea " + "word " * 200 + "green tea and black tea here " + "word " * 200
    shown, marks = excerpt(text, matches(text, "green black tea"), 80)
    assert shown.startswith("…word ")
    assert shown.endswith("…")
    assert [shown[at:to] for at, to in marks] == ["green", "tea", "black", "tea"]


def test_without_marks_the_beginning_is_shown():
    shown, marks = excerpt("茶" * 500, [], 80)
    assert (shown, marks) == ("茶" * 80 + "…", [])


def test_the_end_is_shown_whole():
    text = "word " * 100 + "green tea"
    shown, marks = excerpt(text, matches(text, "tea"), 40)
    assert shown.startswith("…")
    assert shown.endswith("green tea")
    assert [shown[at:to] for at, to in marks] == ["tea"]


def test_no_character_is_cut():
    family = "👨\u200d👩\u200d👧"
    shown, _ = excerpt(family * 20, [], 7)
    assert shown == family * 7 + "…"


@given(MIXED, MIXED, st.integers(8, 40))
def test_an_excerpt_is_a_part_of_the_text(text, query, longest):
    found = matches(text, query)
    shown, marks = excerpt(text, found, longest)
    assert shown.strip("…") in text
    assert truncate(shown.strip("…"), longest) == shown.strip("…")
    words = {text[at:to] for at, to in found}
    assert {shown[at:to] for at, to in marks} <= words
