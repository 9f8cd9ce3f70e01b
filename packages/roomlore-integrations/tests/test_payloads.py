"""Another library's message beside the text that is read of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roomlore.core.errors import InvalidInput
from roomlore_integrations.payloads import Readable, call_line, give_back, keep, plain_json, readable

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4) | st.just("text"), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(values, st.dictionaries(st.text(max_size=4), values, max_size=3))
def test_what_is_kept_is_given_back_with_the_text_it_has_by_then(content, beside):
    raw = plain_json({**beside, "content": content}, "It")
    said = readable(raw["content"], ("content",))
    kept = keep(raw, said)
    assert give_back(kept, said.text) == raw
    if said.at is not None:
        assert readable(give_back(kept, "other")["content"], ("content",)) == Readable("other", said.at)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("早", Readable("早", ("content",))),
        ("", Readable("", ("content",))),
        (["a", {"type": "image"}], Readable("a", ("content", 0))),
        ([{"type": "image"}, {"type": "text", "text": "a"}], Readable("a", ("content", 1, "text"))),
        ([{"text": "a"}, "b", {"refusal": "c"}, {"text": 7}, 8], Readable("a\nb\nc")),
        (None, Readable("")),
        ({"text": "a"}, Readable("")),
    ],
)
def test_the_readable_text_is_that_of_every_part(content, said):
    assert readable(content, ("content",)) == said


def test_the_text_is_kept_only_once():
    raw = {"content": "long " * 1_000}
    assert len(str(keep(raw, readable(raw["content"], ("content",))))) < 60
    assert raw["content"].startswith("long")


@pytest.mark.parametrize(
    "kept",
    [
        None,
        7,
        [],
        {},
        {"raw": 7},
        {"raw": {}, "text_at": ["a"]},
        {"raw": {"a": 1}, "text_at": ["a", "b"]},
        {"raw": {"a": 1}, "text_at": []},
        {"raw": {"a": [1]}, "text_at": ["a", 1]},
        {"raw": {"a": 1}, "text_at": 1},
    ],
)
def test_what_was_not_kept_like_this_gives_nothing(kept):
    assert give_back(kept, "text") is None


def test_tuples_become_lists_and_half_characters_stay():
    assert plain_json({"a": (1, "\ud83d\ude00\x00")}, "It") == {"a": [1, "\ud83d\ude00\x00"]}


@pytest.mark.parametrize("raw", ["text", 7, {"a": {1}}, {"a": float("inf")}, {"a": b"x"}, {(1, 2): 3}])
def test_what_is_no_json_is_refused(raw):
    with pytest.raises(InvalidInput, match=r"It (is a|must be plain JSON)"):
        plain_json(raw, "It")


def test_a_circle_is_refused():
    circle: dict = {}
    circle["a"] = circle
    with pytest.raises(InvalidInput):
        plain_json(circle, "It")


def test_a_call_reads_as_a_call():
    assert call_line("weather", {"city": "上海"}) == 'weather({"city": "上海"})'
    assert call_line("weather", '{"x":1}') == 'weather({"x":1})'
