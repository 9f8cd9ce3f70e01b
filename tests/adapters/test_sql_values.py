"""What is stored comes back, whatever it was."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from roomlore.adapters.sql import values

_ANY_TEXT = st.text(st.characters(codec=None)) | st.text(st.sampled_from("\x00\x1a0u4\ud800a词"))
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _ANY_TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(_ANY_TEXT, inner),
    max_leaves=8,
)


@given(_ANY_TEXT)
def test_escaping_is_reversible_and_holdable(text):
    kept = values.escape(text)
    assert values.unescape(kept) == text
    assert "\x00" not in kept
    kept.encode("utf-8")


@given(_ANY_TEXT, _ANY_TEXT)
def test_no_two_texts_share_an_escape(one, other):
    assert (values.escape(one) == values.escape(other)) == (one == other)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\x00\x1a")))
def test_ordinary_text_is_kept_readable(text):
    assert values.escape(text) == text


@given(st.dictionaries(_ANY_TEXT, _JSON))
def test_mappings_come_back(mapping):
    kept = values.mapping_text(mapping)
    kept.encode("utf-8")
    assert values.read_mapping(kept) == mapping


@given(st.lists(_ANY_TEXT).map(tuple))
def test_lists_come_back(items):
    assert values.read_list(values.list_text(items)) == items


@given(
    st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30), timezones=st.timezones() | st.just(UTC))
)
def test_times_come_back_to_the_microsecond(at):
    assert values.from_micros(values.to_micros(at)) == at.astimezone(UTC)


def test_times_are_microseconds_of_utc():
    at = datetime(1970, 1, 1, 2, 0, 0, 5, tzinfo=timezone(timedelta(hours=2)))
    assert values.to_micros(at) == 5
