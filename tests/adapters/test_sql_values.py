"""Stored values come back as they were."""

import json
from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from roomlore.storage import rows

_ANY_TEXT = st.text(st.characters(codec=None)) | st.text(st.sampled_from("\x00\x1a0u4\ud800a词"))
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _ANY_TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(_ANY_TEXT, inner),
    max_leaves=8,
)


@given(_ANY_TEXT)
def test_escaping_is_reversible_and_holdable(text):
    kept = rows.escape(text)
    assert rows.unescape(kept) == text
    assert "\x00" not in kept
    kept.encode("utf-8")


@given(_ANY_TEXT, _ANY_TEXT)
def test_no_two_texts_share_an_escape(one, other):
    assert (rows.escape(one) == rows.escape(other)) == (one == other)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\x00\x1a")))
def test_ordinary_text_is_kept_readable(text):
    assert rows.escape(text) == text


@given(st.dictionaries(_ANY_TEXT, _JSON))
def test_mappings_come_back(mapping):
    kept = rows.escape(rows.mapping_text(mapping))
    kept.encode("utf-8")
    assert rows.read_mapping(rows.unescape(kept)) == mapping


@given(st.lists(_ANY_TEXT).map(tuple))
def test_lists_come_back(items):
    assert rows.read_list(rows.list_text(items)) == items


@given(st.lists(_ANY_TEXT))
def test_names_are_a_json_list_of_what_the_columns_hold(names):
    assert json.loads(rows.names_text(names)) == [rows.escape(name) for name in names]


@given(st.lists(st.integers()))
def test_numbers_are_a_json_list(numbers):
    assert json.loads(rows.numbers_text(numbers)) == numbers


@given(
    st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30), timezones=st.timezones() | st.just(UTC))
)
def test_times_come_back_to_the_microsecond(at):
    assert rows.from_micros(rows.to_micros(at)) == at.astimezone(UTC)


def test_times_are_microseconds_of_utc():
    at = datetime(1970, 1, 1, 2, 0, 0, 5, tzinfo=timezone(timedelta(hours=2)))
    assert rows.to_micros(at) == 5
