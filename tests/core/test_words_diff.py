"""The difference between two statements, word by word."""

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roomlore.core.memory.log import TextPiece, words_diff
from roomlore_testkit.case_table import all_cases

_MARKS = {"same": "{}", "gone": "[-{}-]", "new": "{{+{}+}}"}
WORDS = st.sampled_from(
    [
        "喜欢",
        "绿茶",
        "红茶",
        "，",
        " ",
        "likes",
        "green",
        "tea",
        "TEA",
        "👨‍👩‍👧‍👦",
        "e\u0301",
        "é",
        "カフェ",
        "차",
        "3.5",
        "\n",
        "\ud800",
        "\x00",
    ]
)
TEXTS = st.one_of(st.text(max_size=60), st.lists(WORDS, max_size=30).map("".join))


def old_text(pieces) -> str:
    return "".join(piece.text for piece in pieces if piece.became != "new")


def new_text(pieces) -> str:
    return "".join(piece.text for piece in pieces if piece.became != "gone")


def shown(old: str, new: str) -> str:
    return "".join(_MARKS[piece.became].format(piece.text) for piece in words_diff(old, new))


SEEN = [
    ("", "", ""),
    ("茶", "茶", "茶"),
    ("", "茶", "{+茶+}"),
    ("tea", "", "[-tea-]"),
    ("每周五晚上讨论新番动漫", "每周五晚上讨论新番动漫，偏好科幻题材", "每周五晚上讨论新番动漫{+，偏好科幻题材+}"),
    ("Anna likes green tea", "Anna likes black tea", "Anna likes [-green-]{+black+} tea"),
    ("群组喜欢绿茶", "群组喜欢红茶", "群组喜欢[-绿茶-]{+红茶+}"),
    ("Meets on Friday evening", "Meets on Saturday morning", "Meets on [-Friday evening-]{+Saturday morning+}"),
    ("用 React 开发", "用 Vue 开发", "用 [-React-]{+Vue+} 开发"),
    ("Bob, Ann and Eve", "Bob and Eve", "Bob[-, Ann-] and Eve"),
    ("family 👨‍👩‍👧", "family 👨‍👩‍👧‍👦", "family [-👨‍👩‍👧-]{+👨‍👩‍👧‍👦+}"),
    ("cafe", "cafe\u0301", "[-cafe-]{+cafe\u0301+}"),
    ("green, tea", "black, milk", "[-green, tea-]{+black, milk+}"),
    ("红茶", "black tea", "[-红茶-]{+black tea+}"),
]


def test_a_reader_sees_words():
    with all_cases() as case:
        for old, new, expected in SEEN:
            with case(repr(old), repr(new)):
                assert shown(old, new) == expected


@given(TEXTS, TEXTS)
@settings(max_examples=150)
def test_both_texts_are_in_it(old, new):
    pieces = words_diff(old, new)
    assert (old_text(pieces), new_text(pieces)) == (old, new)
    assert all(piece.text for piece in pieces)
    sorts = [piece.became for piece in pieces]
    assert all(one != other for one, other in pairwise(sorts))
    assert ("new", "gone") not in pairwise(sorts)


@given(TEXTS)
@settings(max_examples=100)
def test_nothing_became_of_what_stayed(text):
    assert words_diff(text, text) == ((TextPiece("same", text),) if text else ())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("茶好 " * 8_000, "好茶 " * 8_000),
        ("a b " * 8_000, "b a " * 8_001),
        ("a " * 950 + "x", "y" + "b a " * 500),
        ("e" + "\u0301" * 32_000, "e" + "\u0301" * 31_000),
        ("👨‍👩‍👧" * 6_000, "👨‍👩‍👧" * 5_999 + "x"),
    ],
    ids=["chinese", "english", "at the limit", "marks", "emoji"],
)
def test_long_statements_are_compared_in_a_bounded_time(old, new):
    begun = time.process_time()
    pieces = words_diff(old, new)
    assert time.process_time() - begun < 5
    assert (old_text(pieces), new_text(pieces)) == (old, new)
