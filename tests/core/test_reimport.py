"""A chat with a name alone goes into the room that holds it, and never into that of another chat."""

from hypothesis import given
from hypothesis import strategies as st

from roomlore.core.reimport import Likeness, room_for

NAMES = st.sampled_from(["Family", "Family (2)", "Family (3)", "Family (anna)", "Family (ben)"])
COUNTS = st.integers(0, 5)
LIKENESSES = st.builds(
    lambda shared, more, meanwhile: Likeness(shared + more, shared, meanwhile), COUNTS, COUNTS, COUNTS
)


@given(wanted=NAMES, stored=st.dictionaries(NAMES, LIKENESSES), taken=st.sets(NAMES))
def test_a_room_is_the_one_with_the_chat_or_has_nothing_of_its_time(wanted, stored, taken):
    chosen = room_for("Family", wanted, stored, taken)
    same = {room_id for room_id, likeness in stored.items() if likeness.is_same}
    if same:
        assert chosen in same
        assert stored[chosen].shared == max(stored[room_id].shared for room_id in same)
    else:
        assert chosen not in taken
        assert chosen not in stored or stored[chosen].meanwhile == 0
        assert chosen == wanted or wanted in taken or stored[wanted].meanwhile > 0


@given(wanted=NAMES, stored=st.dictionaries(NAMES, LIKENESSES), taken=st.sets(NAMES))
def test_what_was_chosen_is_chosen_again_once_it_holds_the_chat(wanted, stored, taken):
    chosen = room_for("Family", wanted, stored, taken)
    after = stored | {chosen: Likeness(6, 6, 6)}
    assert room_for("Family", wanted, after, taken) == chosen


@given(likeness=LIKENESSES)
def test_rooms_that_share_nothing_are_never_the_same(likeness):
    assert not Likeness(likeness.read, 0, likeness.meanwhile).is_same
