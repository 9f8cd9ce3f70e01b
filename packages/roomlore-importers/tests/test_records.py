"""Messages as JSON objects: nothing is lost on the way, and what is wrong is said clearly."""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roomlore.core.errors import InvalidInput
from roomlore.core.models import Message, Role, StoredMessage
from roomlore.core.records import (
    FIELDS,
    FIRST_UNIX,
    LAST_UNIX,
    ROOM_NAMES,
    Record,
    from_record,
    parse_time,
    to_line,
    to_record,
)
from roomlore_testkit.case_table import all_cases

TEXT = st.text(st.characters(exclude_categories=()), max_size=20)
NAME = TEXT.filter(bool)
MOMENT = st.datetimes(
    min_value=datetime(1, 1, 3),
    max_value=datetime(9999, 12, 29),
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=5))]),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
MESSAGES = st.builds(
    StoredMessage,
    id=NAME,
    room_id=NAME,
    sender_id=NAME,
    sender_name=TEXT,
    text=TEXT,
    sent_at=st.none() | MOMENT,
    role=st.sampled_from(Role),
    reply_to=st.none() | TEXT,
    root_id=st.none() | TEXT,
    topic_id=st.none() | TEXT,
    mentions=st.lists(TEXT, max_size=3).map(tuple),
    has_tool_calls=st.booleans(),
    turn_id=st.none() | TEXT,
    metadata=st.dictionaries(TEXT, JSON, max_size=3),
    arrival=st.just(1),
    sent_at_estimated=st.booleans(),
    edited_at=st.none() | MOMENT,
)
PLAIN = {"id": "m", "room_id": "r", "sender_id": "s"}


def plain(stored):
    return Message(**{name: getattr(stored, name) for name in Message.__dataclass_fields__})


@settings(max_examples=150)
@given(MESSAGES)
def test_a_record_written_as_a_line_comes_back_the_same(stored):
    line = to_line(stored)
    assert line.count(b"\n") == 1
    wanted = Record(message=plain(stored), sent_at_estimated=stored.sent_at_estimated, edited_at=stored.edited_at)
    assert from_record(json.loads(line)) == wanted


@settings(max_examples=50)
@given(MESSAGES)
def test_keys_come_in_one_order(stored):
    keys = list(to_record(stored))
    assert keys == [name for name in FIELDS if name in keys]


def test_only_what_is_not_default_is_written():
    message = Message(id="m", room_id="r", sender_id="s")
    assert to_record(message) == PLAIN
    full = Message(
        id="m", room_id="r", sender_id="s", role=Role.TOOL, reply_to="", has_tool_calls=True, mentions=("a",)
    )
    assert to_record(full) == PLAIN | {"role": "tool", "reply_to": "", "mentions": ["a"], "has_tool_calls": True}


def test_times_are_written_in_utc_and_naive_ones_are_utc():
    east = datetime(2024, 5, 1, 12, tzinfo=timezone(timedelta(hours=8)))
    assert to_record(Message(**PLAIN, sent_at=east))["sent_at"] == "2024-05-01T04:00:00+00:00"
    assert to_record(Message(**PLAIN, sent_at=datetime(2024, 5, 1)))["sent_at"] == "2024-05-01T00:00:00+00:00"


@pytest.mark.parametrize("name", ROOM_NAMES)
def test_a_room_has_four_names(name):
    assert from_record({"id": "m", "sender_id": "s", name: "r"}).message.room_id == "r"


WRONG = [
    ({"id": None}, "id is None: wanted is a non-empty string"),
    ({"id": 7}, "id is 7"),
    ({"sender_id": ""}, "sender_id is ''"),
    ({"text": 5}, "text is 5: wanted is a string"),
    ({"role": "king"}, "one of user, assistant, system, tool"),
    ({"role": ["user"]}, "role is a list"),
    ({"mentions": "ann"}, "a list of sender ids"),
    ({"mentions": [1]}, "a list of sender ids"),
    ({"has_tool_calls": 1}, "true or false"),
    ({"sent_at": {}}, "ISO 8601"),
    ({"sent_at": True}, "ISO 8601"),
    ({"edited_at": []}, "edited_at is a list"),
    ({"reply_to": 5}, "reply_to is 5"),
    ({"metadata": []}, "a JSON object"),
    ({"metadata": {"a": float("nan")}}, "finite numbers"),
    ({"metadata": {"a": [float("inf")]}}, "finite numbers"),
    ({"reply_too": "x"}, "unknown field 'reply_too'"),
    ({"group_id": "other"}, "name different rooms"),
    ({"text": 10**400}, "text is 1000"),
]


def test_what_is_wrong_is_named():
    with all_cases() as case:
        for change, words in WRONG:
            with case(change):
                with pytest.raises(InvalidInput, match=words) as caught:
                    from_record(PLAIN | change)
                assert len(str(caught.value)) < 400


@pytest.mark.parametrize("field", ["id", "room_id", "sender_id"])
def test_what_is_missing_is_named(field):
    with pytest.raises(InvalidInput, match=f"{field} is missing"):
        from_record({key: value for key, value in PLAIN.items() if key != field})


def test_something_else_than_an_object_is_refused():
    with pytest.raises(InvalidInput, match="a list"):
        from_record([PLAIN])


def nested(levels):
    value = {}
    for _ in range(levels - 1):
        value = {"in": value}
    return value


def test_metadata_may_be_32_levels_deep():
    assert from_record(PLAIN | {"metadata": nested(32)})
    with pytest.raises(InvalidInput, match="32 levels"):
        from_record(PLAIN | {"metadata": nested(33)})


@given(
    st.datetimes(datetime(1970, 4, 27), datetime(2286, 11, 20), timezones=st.just(UTC)),
    st.sampled_from((1, 10**3, 10**6, 10**9)),
    st.booleans(),
)
def test_every_moment_of_chats_is_read_from_a_number_in_any_unit(moment, per_second, as_text):
    moment = moment.replace(microsecond=0)
    number = round(moment.timestamp()) * per_second
    is_day = len(str(number)) == len("20240501")
    assert parse_time(str(number) if as_text and not is_day else number) == moment


@given(st.integers(10**10, 10**11))
def test_no_number_is_read_as_a_year_after_2286(number):
    assert parse_time(number).year in range(1970, 1974), "in milliseconds"


@given(st.integers(FIRST_UNIX, LAST_UNIX) | st.floats(FIRST_UNIX, 2.5e20))
def test_every_number_of_the_allowed_ones_is_a_time(number):
    assert parse_time(number) is not None


TIMES = [
    (-62_135_596_800, datetime(1, 1, 1, tzinfo=UTC)),
    ("2024-05-01T08:00:00Z", datetime(2024, 5, 1, 8, tzinfo=UTC)),
    ("2024-05-01T10:00:00+02:00", datetime(2024, 5, 1, 8, tzinfo=UTC)),
    ("2024-05-01 08:00", datetime(2024, 5, 1, 8, tzinfo=UTC)),
    ("2024/05/01 08:00:00 UTC", datetime(2024, 5, 1, 8, tzinfo=UTC)),
    ("20240501", datetime(2024, 5, 1, tzinfo=UTC)),
    (1714550400, datetime(2024, 5, 1, 8, tzinfo=UTC)),
    ("1714550400", datetime(2024, 5, 1, 8, tzinfo=UTC)),
    (1714550400123, datetime(2024, 5, 1, 8, 0, 0, 123000, tzinfo=UTC)),
    (1714550400123456, datetime(2024, 5, 1, 8, 0, 0, 123456, tzinfo=UTC)),
    (1714550400123456789, datetime(2024, 5, 1, 8, 0, 0, 123456, tzinfo=UTC)),
    ("1714550400.000100", datetime(2024, 5, 1, 8, 0, 0, 100, tzinfo=UTC)),
    ("123456.7", datetime(1970, 1, 2, 10, 17, 36, 700000, tzinfo=UTC)),
    ("-1234567", datetime(1969, 12, 17, 17, 3, 53, tzinfo=UTC)),
    (0, datetime(1970, 1, 1, tzinfo=UTC)),
    (-1, datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)),
]


def test_times_are_read_in_many_forms():
    with all_cases() as case:
        for value, wanted in TIMES:
            with case(value):
                assert parse_time(value) == wanted


NO_TIMES = [
    "",
    "soon",
    "2024-13-01",
    "0001-01-01T00:00:00+14:00",
    float("nan"),
    float("inf"),
    10**30,
    "9" * 5000,
    True,
    None,
    [],
    {},
]


def test_unreadable_times_are_none():
    with all_cases() as case:
        for value in NO_TIMES:
            with case(repr(value)):
                assert parse_time(value) is None


def test_an_unreadable_time_is_no_error():
    assert from_record(PLAIN | {"sent_at": "last Tuesday"}).message.sent_at is None
