"""Completing a batch of messages: missing fields, and the turn of each."""

from datetime import UTC, datetime
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roomlore.core.errors import InvalidInput
from roomlore.core.models import Message, Role
from roomlore.core.sessions.session import Batch, joins_a_turn

NOW = datetime(2026, 5, 4, 9, tzinfo=UTC)
ROLES = {"u": Role.USER, "a": Role.ASSISTANT, "s": Role.SYSTEM, "t": Role.TOOL}


def said(role: str, **fields) -> Message:
    return Message(**{"id": "", "room_id": "", "sender_id": "", "role": ROLES[role], **fields})


def completed(messages, turn_id=None) -> list[Message]:
    numbers = count(1)
    return Batch(
        conversation_id="c",
        messages=messages,
        user_id="ann",
        agent_code="",
        turn_id=turn_id,
        now=NOW,
        new_id=lambda: f"n{next(numbers)}",
    ).completed()


@pytest.mark.parametrize(
    ("roles", "turns"),
    [
        ("ua", "11"),
        ("uaua", "1122"),
        ("uuata", "11111"),
        ("suatasua", "11111222"),
        ("ata", "000"),
        ("aua", "011"),
        ("usa", "111"),
        ("uatsa", "11111"),
        ("s", "0"),
        ("us", "11"),
    ],
)
def test_a_user_begins_a_turn(roles, turns):
    found = [message.turn_id for message in completed([said(role) for role in roles], turn_id="0")]
    names = ["0", *dict.fromkeys(turn for turn in found if turn != "0")]
    assert "".join(str(names.index(turn)) for turn in found) == turns


@pytest.mark.parametrize(("roles", "joins"), [("ua", False), ("sua", False), ("a", True), ("ta", True), ("sa", True)])
def test_whether_a_batch_joins_a_turn_shows_in_its_beginning(roles, joins):
    assert joins_a_turn([said(role) for role in roles]) is joins


@given(st.lists(st.sampled_from("uast"), min_size=1, max_size=12))
def test_only_a_batch_that_joins_a_turn_has_messages_of_it(roles):
    messages = [said(role) for role in roles]
    assert ("before" in {message.turn_id for message in completed(messages, "before")}) is joins_a_turn(messages)


def test_what_is_lacking_is_filled_in_and_what_is_there_stays():
    own = said("a", id="i", room_id="c", sender_id="bob", sent_at=NOW.replace(year=2020), turn_id="t")
    first, second, third = completed([said("u"), own, said("a")])
    assert (first.id, first.room_id, first.sender_id, first.sent_at) == ("n2", "c", "ann", NOW)
    assert second == own
    assert (third.sender_id, third.turn_id) == ("assistant", first.turn_id)


def test_messages_of_elsewhere_and_what_is_no_message_are_refused():
    with pytest.raises(InvalidInput, match="'d'"):
        completed([said("u", room_id="d")])
    with pytest.raises(InvalidInput, match="at least one"):
        joins_a_turn([])
    with pytest.raises(InvalidInput, match="Item 1"):
        joins_a_turn([said("u"), "hello"])
