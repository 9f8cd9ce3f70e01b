"""Which two hand-ins are the same message."""

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from roomlore.core.errors import InvalidInput
from roomlore.core.intake import content_hash
from roomlore.core.models import Message, Role, StoredMessage
from roomlore_testkit import START, message

_PLAIN = Message(id="m1", room_id="r", sender_id="u", text="hello", sent_at=START)
_OTHER = {
    "id": "m2",
    "room_id": "s",
    "sender_id": "v",
    "text": "hullo",
    "sent_at": START + timedelta(microseconds=1),
    "sender_name": "U",
    "role": Role.SYSTEM,
    "reply_to": "m0",
    "root_id": "m0",
    "topic_id": "m0",
    "mentions": ("v",),
    "has_tool_calls": True,
    "turn_id": "t",
    "metadata": {"a": 1},
}


@pytest.mark.parametrize("field", [field.name for field in fields(Message)])
def test_every_field_of_the_caller_counts(field):
    assert content_hash(replace(_PLAIN, **{field: _OTHER[field]})) != content_hash(_PLAIN)


def test_without_a_topic_the_hash_is_what_it_was_before_there_were_topics():
    assert content_hash(_PLAIN) == "d5c3e3ae2f85ac9ea395e457d7169aa6"


def test_what_the_store_adds_does_not_count():
    stored = message(1, sent_at=START)
    added = {"arrival": 9, "tokens": 99, "edited_at": START}
    assert content_hash(replace(stored, **added)) == content_hash(stored)


def test_a_stored_message_hashes_as_the_one_handed_in():
    handed = Message(id="m1", room_id="r", sender_id="u")
    stored = StoredMessage(id="m1", room_id="r", sender_id="u", sent_at=START, sent_at_estimated=True, arrival=1)
    assert content_hash(stored) == content_hash(handed)


@pytest.mark.parametrize("at", [START.replace(tzinfo=None), START.astimezone(timezone(timedelta(hours=8)))])
def test_the_same_instant_is_the_same(at):
    assert content_hash(replace(_PLAIN, sent_at=at)) == content_hash(_PLAIN)


def test_the_order_of_metadata_and_the_kind_of_sequence_do_not_count():
    one = replace(_PLAIN, metadata={"a": (1, 2), "b": {"x": 1, "y": 2}})
    other = replace(_PLAIN, metadata={"b": {"y": 2, "x": 1}, "a": [1, 2]})
    assert content_hash(one) == content_hash(other)


@pytest.mark.parametrize("text", ["\x00", "\ud800", "部署 👋🏽", ""])
def test_any_text_has_a_hash(text):
    found = content_hash(replace(_PLAIN, text=text))
    assert len(found) == 32
    assert int(found, 16) >= 0


def test_texts_do_not_run_into_each_other():
    one = replace(_PLAIN, sender_id="a", sender_name="bc")
    assert content_hash(one) != content_hash(replace(_PLAIN, sender_id="ab", sender_name="c"))


@pytest.mark.parametrize("metadata", [{"at": datetime(2024, 1, 1, tzinfo=UTC)}, {"a": {1, 2}}, {1: "a", "b": 2}])
def test_metadata_must_be_json(metadata):
    with pytest.raises(InvalidInput, match="m1"):
        content_hash(replace(_PLAIN, metadata=metadata))


def test_the_hash_never_changes_between_releases():
    """A changed hash would turn every stored message into a conflict."""
    assert content_hash(_PLAIN) == "d5c3e3ae2f85ac9ea395e457d7169aa6"
