"""What a person may say of a link, without a store."""

from dataclasses import replace

import pytest

from roomlore import Conflict, LinkKind
from roomlore.adapters.weights import load_link_model
from roomlore.core.linking.calibration import UNCALIBRATED, Calibration, Linked
from roomlore.core.linking.corrections import Past, check_answer, errors_shown, links_after
from roomlore_testkit.builders import entry, link

MODEL = load_link_model()
ANY = (5, 4, 3, 2, 1, 0)


def test_a_circle_is_refused():
    """m1 replied to m4, which came later; m2 answers m1, and m4 is to answer m2."""
    late = entry(1, link=link(4, 4, kind=LinkKind.PLATFORM))
    thread = [late, entry(2, link=link(4, 1)), entry(3, link=link(3, None)), entry(4, link=link(4, None))]
    for target in (thread[0], thread[1]):
        with pytest.raises(Conflict, match="answers 'm4' itself"):
            check_answer(thread[3].message, target, thread)
    check_answer(thread[3].message, thread[2], thread)
    check_answer(thread[3].message, None, ())


def test_a_chain_that_is_a_circle_already_ends():
    both = [entry(1, link=link(1, 2, kind=LinkKind.PLATFORM)), entry(2, link=link(1, 1)), entry(3)]
    check_answer(both[2].message, both[1], both)


def test_what_is_said_of_a_message_that_is_gone_is_left_to_the_model():
    said = [entry(number) for number in range(1, 6)]
    past = Past(before=said[:4], entries=said[4:], others=(), corrected={5: 77})
    assert links_after(MODEL, past, 1.0).get(5, said[4].link).kind is not LinkKind.CORRECTED
    assert errors_shown(MODEL, past) == ()


def test_without_a_correction_links_stay():
    said = [entry(number, text=text) for number, text in enumerate(("谁有空？", "me", "when?", "明天"), 1)]
    fresh: dict[int, object] = {}
    for place in range(4):
        past = Past(before=said[:place], entries=said[place : place + 1], others=(), corrected={})
        fresh |= (new := links_after(MODEL, past, 1.0))
        said[place] = replace(said[place], link=new.get(place + 1, said[place].link))
    assert links_after(MODEL, Past(before=(), entries=said, others=(), corrected={}), 1.0) == {}


def test_errors_are_counted_and_taken_back_exactly():
    known = Calibration(7, 7, ANY)
    assert known.with_errors((1, 2, 3, 4, 5, 6)).unheard((1, 2, 3, 4, 5, 6)) == known
    assert UNCALIBRATED.unheard(ANY) == UNCALIBRATED


def test_which_links_a_model_made():
    assert Linked(by="a").has_linked(9, "a")
    assert not Linked(by="a").has_linked(9, "b")
    assert Linked(walk="a", walked=9).has_linked(9, "a")
    assert not Linked(walk="a", walked=9).has_linked(10, "a")
    assert not Linked().has_linked(1, "")
