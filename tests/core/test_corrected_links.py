"""What a person may say of a link, without a store."""

from dataclasses import replace

import numpy as np
import pytest

from roomlore import Conflict, LinkKind
from roomlore.adapters.weights import load_link_model
from roomlore.core.linking.calibration import COUNTED, UNCALIBRATED, USUAL, Calibration, Linked
from roomlore.core.linking.corrections import (
    CorrectedPast,
    Threads,
    check_answer,
    errors_shown,
    links_after,
    out_of_place,
)
from roomlore_testkit.builders import entry

MODEL = load_link_model()
ANY = tuple(range(COUNTED))


def test_a_circle_is_refused():
    """m1 replied to m4, which came later; m2 answers m1, and m4 is to answer m2."""
    said = [entry(number).message for number in range(1, 5)]
    for target, above in ((said[0], [4]), (said[1], [1, 4])):
        with pytest.raises(Conflict, match="answers 'm4' itself"):
            check_answer(said[3], target, above)
    check_answer(said[3], said[2], ())
    check_answer(said[3], None, ())


def _threads(*rows: tuple[int, int, int]) -> Threads:
    return Threads(*np.array(rows, np.int64).reshape(-1, 3).T)


def test_what_follows_goes_to_the_thread_of_the_first_of_its_chain():
    """Rows of arrival, what it answers, thread: 3 to 5 follow 2, of which 4 answers one that came later; 9 answers
    nobody who is there."""
    room = _threads((1, 0, 1), (2, 0, 2), (3, 2, 1), (4, 5, 1), (5, 3, 1), (7, 1, 1), (9, 8, 3))
    assert out_of_place(room) == [3, 5, 4]
    assert out_of_place(_threads((1, 0, 1), (2, 1, 1), (3, 2, 1))) == []
    assert out_of_place(_threads()) == []


def test_a_circle_stays_as_it_is():
    assert out_of_place(_threads((1, 2, 1), (2, 1, 2), (3, 1, 3), (4, 0, 4), (5, 4, 1))) == [5]


def test_a_long_chain_follows_in_order():
    rows = [(arrival, arrival - 1, 1 if arrival > 2 else arrival - 1) for arrival in range(1, 5_001)]
    rows[1] = (2, 0, 2)
    assert out_of_place(_threads(*rows)) == list(range(3, 5_001))


def test_what_is_said_of_a_message_that_is_gone_is_left_to_the_model():
    said = [entry(number) for number in range(1, 6)]
    past = CorrectedPast(before=said[:4], entries=said[4:], others=(), corrected={5: 77})
    assert links_after(MODEL, past, USUAL).get(5, said[4].link).kind is not LinkKind.CORRECTED
    assert errors_shown(MODEL, past) == ()


def test_without_a_correction_links_stay():
    said = [entry(number, text=text) for number, text in enumerate(("谁有空？", "me", "when?", "明天"), 1)]
    fresh: dict[int, object] = {}
    for place in range(4):
        past = CorrectedPast(before=said[:place], entries=said[place : place + 1], others=(), corrected={})
        fresh |= (new := links_after(MODEL, past, USUAL))
        said[place] = replace(said[place], link=new.get(place + 1, said[place].link))
    assert links_after(MODEL, CorrectedPast(before=(), entries=said, others=(), corrected={}), USUAL) == {}


def test_errors_are_counted_and_taken_back_exactly():
    known = Calibration(7, 7, ANY)
    assert known.with_errors(ANY[::-1]).unheard(ANY[::-1]) == known
    assert UNCALIBRATED.unheard(ANY) == UNCALIBRATED


def test_which_links_a_model_made():
    assert Linked(by="a").has_linked(9, "a")
    assert not Linked(by="a").has_linked(9, "b")
    assert Linked(walk="a", walked=9).has_linked(9, "a")
    assert not Linked(walk="a", walked=9).has_linked(10, "a")
    assert not Linked().has_linked(1, "")
