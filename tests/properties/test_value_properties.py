"""Whatever is said, its values stand in order, inside it, and in whole words."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from roomlore.core.summary.corrections import corrected
from roomlore.core.values import GONE, values_in, without_values

PIECES = (
    "her insulin is ",
    "14 units",
    "half a tablet",
    "an eighth of a tablet",
    " in the morning",
    " and ",
    "8:30pm",
    "Sunday",
    "make it five",
    "now 6",
    "胰岛素",
    "早上",
    "1片半",
    "改成",
    "6点40",
    "周五",
    "4万5",
    "5床",
    "£34",
    "20,000",
    "1" * 50,
    "e\u0301",
    "👩‍👩‍👧",
    " ",
    ", ",
    "，",
    ". ",
    "？",
    "\n",
)
TEXTS = st.one_of(st.text(max_size=80), st.lists(st.sampled_from(PIECES), max_size=10).map("".join))


@given(TEXTS)
@example("İ 5 units")
@settings(deadline=None)
def test_values_stand_in_order_inside_the_text(text):
    values = values_in(text)
    ends = [0, *(value.span[1] for value in values)]
    assert all(
        before <= value.span[0] < value.span[1] <= len(text) for before, value in zip(ends, values, strict=False)
    )
    assert all(0 <= value.covers(other) <= 1 for value in values for other in values)
    assert len(without_values(text, values)) <= len(text) + len(values)


@given(TEXTS)
@settings(deadline=None)
def test_values_are_whole_words(text):
    for value in values_in(text):
        around = text[max(0, value.span[0] - 1) : value.span[0]] + text[value.span[0]]
        assert not (around.isascii() and around.isalpha() and len(around) == 2)
        last = text[value.span[1] - 1 : value.span[1] + 1]
        assert not (last.isascii() and last.isalpha() and len(last) == 2)


@given(st.lists(TEXTS, max_size=6))
@settings(deadline=None)
def test_corrections_only_mark_what_they_take(texts):
    kept = corrected(texts, ["Ann"] * len(texts))
    assert len(kept.texts) == len(texts)
    for text, left in zip(texts, kept.texts, strict=True):
        at = 0
        for part in left.split(GONE) if GONE not in text else []:
            at = text.index(part, at) + len(part)
