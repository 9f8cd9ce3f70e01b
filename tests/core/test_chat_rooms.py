"""A chat that has no id goes into the room that holds it, and never into that of another chat."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roomlore.core.models import Message, Origin
from roomlore.core.reimport import Likeness, is_shared, room_for

NAMES = st.sampled_from(["Family", "Family (2)", "Family (3)", "Family (anna)", "Family (ben)"])
COUNTS = st.integers(0, 5)


@st.composite
def likenesses(draw):
    shared, common = draw(COUNTS), draw(COUNTS)
    return Likeness(
        read=shared + draw(COUNTS),
        shared=shared,
        meanwhile=draw(COUNTS),
        speakers=common + draw(COUNTS),
        common=common,
    )


STORED = st.dictionaries(NAMES, likenesses())


@given(wanted=NAMES, stored=STORED, taken=st.sets(NAMES))
def test_a_room_holds_the_chat_or_has_nothing_of_its_time(wanted, stored, taken):
    chosen = room_for("Family", wanted, stored, taken)
    same = {room_id for room_id, likeness in stored.items() if likeness.is_same}
    if same:
        assert chosen in same
        assert stored[chosen].shared == max(stored[room_id].shared for room_id in same)
        return
    assert chosen not in taken
    assert chosen not in stored or stored[chosen].meanwhile == 0
    if any(likeness.is_known for room_id, likeness in stored.items() if room_id not in taken):
        assert stored[chosen].is_known
    else:
        assert chosen == wanted or wanted in taken or not stored[wanted].may_continue


@given(wanted=NAMES, stored=STORED, taken=st.sets(NAMES))
def test_what_was_chosen_is_chosen_again_once_it_holds_the_chat(wanted, stored, taken):
    chosen = room_for("Family", wanted, stored, taken)
    after = stored | {chosen: Likeness(read=6, shared=6, meanwhile=6)}
    assert room_for("Family", wanted, after, taken) == chosen


@given(likeness=likenesses())
def test_rooms_that_share_no_message_are_never_the_same(likeness):
    assert not Likeness(read=likeness.read, shared=0, meanwhile=likeness.meanwhile).is_same


@pytest.mark.parametrize(
    ("meanwhile", "speakers", "common", "may_continue", "is_known"),
    [
        (1, 9, 9, False, False),
        (0, 9, 0, False, False),
        (0, 2, 0, True, False),
        (0, 9, 1, True, False),
        (0, 9, 5, True, True),
        (0, 1, 1, True, True),
        (0, 2, 1, True, False),
        (0, 0, 0, True, False),
    ],
)
def test_people_tell_if_a_room_of_another_time_is_of_the_chat(meanwhile, speakers, common, may_continue, is_known):
    likeness = Likeness(read=9, shared=0, meanwhile=meanwhile, speakers=speakers, common=common)
    assert (likeness.may_continue, likeness.is_known) == (may_continue, is_known)


AT = datetime(2024, 5, 1, tzinfo=UTC)
DERIVED = "x" + "0a" * 12


@pytest.mark.parametrize(
    ("message_id", "sender_id", "at", "shared"),
    [
        ("7", "ann", AT, True),
        ("7", "ann", None, True),
        ("7", "bo", AT, False),
        ("7", "ann", AT + timedelta(hours=1), False),
        (DERIVED, "ann", AT + timedelta(hours=1), True),
        (f"{DERIVED}-2", "bo", None, True),
    ],
)
def test_ids_that_many_exports_have_tell_nothing_alone(message_id, sender_id, at, shared):
    message = Message(id=message_id, room_id="r", sender_id=sender_id, text="x", sent_at=at)
    assert is_shared(message, Origin(AT, "ann")) is shared
    assert not is_shared(message, None)
