"""Which model made the links of a room."""

from roomlore.core.linking.calibration import COUNTED, UNCALIBRATED, UNLINKED, Linked

KNOWN = UNCALIBRATED.heard([0.1] * COUNTED)


def test_a_new_room_is_of_the_model_that_fills_it():
    made = UNLINKED.grown("m1", newest=0, calibration=KNOWN)
    assert made == Linked(by="m1", calibration=KNOWN)
    assert made.whole("m1", newest=5)
    assert not made.whole("m2", newest=5)
    assert (made.calibrated("m1"), made.calibrated("m2")) == (KNOWN, UNCALIBRATED)


def test_what_another_model_adds_is_where_the_first_has_to_go_on():
    made = Linked(by="m1", calibration=KNOWN)
    mixed = made.grown("m2", newest=7, calibration=UNCALIBRATED)
    assert mixed == Linked(walk="m1", walked=7, calibration=KNOWN)
    assert mixed.begun("m1") == mixed, "m1 goes on after the seventh message"
    assert mixed.begun("m2") == Linked(walk="m2"), "m2 begins with the first"


def test_messages_that_come_during_a_walk_leave_it_where_it_is():
    walk = Linked(walk="m2", walked=3, calibration=KNOWN)
    assert walk.grown("m2", newest=9, calibration=UNCALIBRATED) == walk
    assert walk.grown("m1", newest=9, calibration=UNCALIBRATED) == walk
    assert UNLINKED.grown("m2", newest=9, calibration=KNOWN) == UNLINKED


def test_a_walk_comes_to_its_end():
    walk = Linked(by="m1", calibration=KNOWN).begun("m2")
    assert walk == Linked(walk="m2")
    assert walk.moved(4, KNOWN).done() == Linked(by="m2", calibration=KNOWN)


def test_replies_that_a_walk_has_passed_wait_for_it():
    walk = Linked(walk="m2", walked=3)
    assert [walk.adopts(arrival) for arrival in (3, 4)] == [False, True]
    assert Linked(by="m1").adopts(1)
