"""A session as JSON, what of it is kept, and what a cache remembers of its messages."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roomlore.core.errors import InvalidInput
from roomlore.core.models import Role
from roomlore.core.sessions.session import DERIVED, SessionMessage, SessionValue, check_patch, merge, own_state
from roomlore.core.sessions.window import Segment, from_text, to_text, value_of
from roomlore_testkit import checkpoint, session

jsons = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.sampled_from(["a", "b", "extra", "新"]), jsons, max_size=3)
PARTS = ("meta", "flow_context", "message_context", "global_state", "user_snapshot")


@st.composite
def sessions(draw) -> dict:
    """As a newer version may write them: fields nobody here knows at every level."""
    data = {part: draw(objects) for part in draw(st.sets(st.sampled_from(PARTS)))}
    data.get("meta", {})["user_id"] = draw(st.text(max_size=5))
    data.get("global_state", {})["shared"] = draw(objects)
    data.get("user_snapshot", {})["history"] = draw(st.lists(st.text(max_size=5), max_size=3))
    return {**draw(objects), **data}


@settings(max_examples=60)
@given(sessions())
def test_what_is_read_is_written_again(data):
    written = SessionValue.from_json(data).to_json()
    for name, value in data.items():
        if name not in PARTS:
            assert written[name] == value
            continue
        assert {field: written[name][field] for field in value} == value
    assert SessionValue.from_json(written).to_json() == written
    json.dumps(written)


@settings(max_examples=60)
@given(sessions())
def test_what_is_kept_of_a_session_is_all_but_what_follows(data):
    kept = own_state(data)
    for name, value in data.items():
        own = value if name not in DERIVED else {f: v for f, v in value.items() if f not in DERIVED[name]}
        if name in PARTS and not own:
            assert name not in kept
        else:
            assert kept[name] == own


@settings(max_examples=60)
@given(jsons, jsons)
def test_merging_is_that_of_rfc_7396(data, patch):
    before = json.dumps([data, patch])
    merged = merge(data, patch)
    assert json.dumps([data, patch]) == before, "neither is changed"
    if not isinstance(patch, dict):
        assert merged == patch
        return
    assert isinstance(merged, dict)
    assert not [name for name, value in patch.items() if value is None and name in merged]
    assert merge(merged, patch) == merged
    if isinstance(data, dict):
        assert all(merged[name] == value for name, value in data.items() if name not in patch)


def test_the_examples_of_rfc_7396():
    examples = [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ]
    assert [merge(data, patch) for data, patch, _ in examples] == [merged for _, _, merged in examples]


def test_without_a_checkpoint_it_is_a_full_history():
    old = {"message_context": {"mode": "SUMMARY_N", "summary": "x"}}
    assert SessionValue.from_json(old).message_context.mode == "FULL_HISTORY"
    old["message_context"]["checkpoint_message_id"] = "c1"
    assert SessionValue.from_json(old).message_context.mode == "SUMMARY_N"


def test_null_counts_as_left_out():
    nulls = dict.fromkeys(PARTS)
    assert SessionValue.from_json(nulls) == SessionValue()
    assert SessionValue.from_json({"user_snapshot": {"allergies": None, "name": None}}) == SessionValue()


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ([], "session"),
        ({"meta": []}, "meta"),
        ({"meta": {"updated_at": "now"}}, "updated_at"),
        ({"meta": {"updated_at": True}}, "updated_at"),
        ({"meta": {"enterprise_id": 5}}, "enterprise_id"),
        ({"global_state": {"pending_action": "pay"}}, "pending_action"),
        ({"message_context": {"window_messages": ["hi"]}}, "window_messages"),
        ({"user_snapshot": {"preferences": "tea"}}, "preferences"),
    ],
)
def test_the_field_that_is_wrong_is_named(data, name):
    with pytest.raises(InvalidInput, match=name):
        SessionValue.from_json(data)


@pytest.mark.parametrize(("part", "names"), DERIVED.items())
def test_what_follows_cannot_be_set(part, names):
    for name in names:
        with pytest.raises(InvalidInput, match=f"{part}.{name}"):
            check_patch({part: {name: "x"}})
    check_patch({part: {"of my own": 1}})
    for gone in (None, [], "x"):
        with pytest.raises(InvalidInput, match=part):
            check_patch({part: gone})


def segment(texts: list[str]) -> Segment:
    messages = tuple(
        SessionMessage(
            arrival=place,
            id=f'm{place}"',
            role=list(Role)[place % 4],
            name="小李" if place % 4 == 1 else "",
            text=text,
            turn_id=None if place % 3 else f"t{place}",
        )
        for place, text in enumerate(texts, 5)
    )
    own = {"roomlore": {"form": 0}, "global_state": {"shared": {"k": '", "roomlore": {'}}}
    return Segment(session(revision=9, boundary=1, state=own, checkpoint=checkpoint(covers_arrival=5)), 4, messages)


TRAPS = st.sampled_from(['", "roomlore": {"form": 2}}', "\\", "\x00", "\ud800", "历史", '}}, "roomlore": {', "👩‍👩‍👧"])


@settings(max_examples=60)
@given(st.lists(st.text(max_size=6) | TRAPS, max_size=8))
def test_what_a_cache_is_given_comes_back(texts):
    whole = segment(texts)
    text = to_text(whole, value_of(whole, recent_turns=2))
    text.encode()
    cached = from_text(text)
    assert cached is not None
    assert (cached.messages, cached.start, cached.revision) == (whole.messages, 4, 9)
    assert cached.serves(whole.session)
    assert json.loads(text)["message_context"]["checkpoint_message_id"] == "c1"


@settings(max_examples=60)
@given(st.data())
def test_what_is_cut_off_or_garbled_is_nothing_or_well_formed(data):
    whole = segment(["one", "two", "three"])
    text = to_text(whole, value_of(whole, recent_turns=2))
    place = data.draw(st.integers(0, len(text) - 1))
    garbled = text[:place] + data.draw(st.sampled_from(["", "x", "0", "-", '"', "]", "null"])) + text[place + 1 :]
    cached = from_text(garbled)
    if cached is not None:
        arrivals = [message.arrival for message in cached.messages]
        assert arrivals == sorted(set(arrivals))
        assert cached.start >= 0
        assert all(arrival > cached.start for arrival in arrivals)
    assert from_text(text[:place]) is None


@pytest.mark.parametrize(
    "other",
    [
        {"tenant": "another"},
        {"conversation_id": "another"},
        {"revision": 8},
        {"checkpoint": None, "boundary": 3},
        {"created_at": checkpoint(5).created_at},
    ],
)
def test_a_cache_of_another_session_or_of_its_future_serves_nobody(other):
    whole = segment(["one"])
    cached = from_text(to_text(whole, value_of(whole, recent_turns=2)))
    given = {"revision": 9, "boundary": 1, "checkpoint": checkpoint(covers_arrival=5)}
    assert cached is not None
    assert cached.serves(session(**given))
    assert cached.serves(session(**given | {"revision": 10}))
    assert not cached.serves(session(**given | other))


def test_values_share_nothing_that_can_be_changed():
    first = value_of(Segment(session(), 0, ()), recent_turns=2)
    first.global_state.shared["a"] = 1
    first.extra["b"] = 2
    second = value_of(Segment(session(), 0, ()), recent_turns=2)
    assert (second.global_state.shared, second.extra) == ({}, {})
