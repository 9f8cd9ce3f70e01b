"""Replies of a room, and the ways of it that follow from them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roomlore.core.linking.calibration import (
    ALWAYS,
    COUNTED,
    PRIOR,
    SELDOM,
    TEMPERATURES,
    UNCALIBRATED,
    UNIT,
    USUAL,
    Calibration,
    errors_of,
    losses_of,
    tempered,
    weighted,
)

shares = st.lists(st.floats(0, 1), min_size=1, max_size=30).map(np.array)
errors = st.lists(st.floats(0, 50), min_size=COUNTED, max_size=COUNTED)
temperatures = st.floats(TEMPERATURES[0], TEMPERATURES[-1])


def heard(*replies):
    known = UNCALIBRATED
    for one in replies:
        known = heard_more(known, one)
    return known


def heard_more(known, one):
    return known.heard([*one, *[0.0] * (COUNTED - len(one))])


def favouring(place: int) -> list[float]:
    return [abs(place - here) / 10 for here in range(len(TEMPERATURES))]


def test_without_replies_nothing_is_changed():
    assert UNCALIBRATED.habits() == USUAL
    assert UNCALIBRATED.passed().habits() == USUAL
    assert tempered(np.array([0.2, 0.7]), 1.0).tolist() == [0.2, 0.7]


@given(st.lists(errors, max_size=20))
def test_the_temperature_is_bounded_and_does_not_depend_on_the_order(replies):
    known = heard(*replies)
    assert TEMPERATURES[0] <= known.habits().temperature <= TEMPERATURES[-1]
    assert heard(*reversed(replies)) == known


@given(st.lists(errors, min_size=1, max_size=9), st.integers(0, len(TEMPERATURES) - 1))
def test_a_temperature_whose_error_grows_is_moved_away_from_or_kept(replies, place):
    """More error of the hotter half never makes it hotter, nor of the colder half colder."""
    before = heard(*replies)
    worse = list(before.errors)
    worse[place:] = [error + UNIT for error in worse[place:]]
    after = Calibration(before.replies, before.asked, tuple(worse))
    assert after.habits().temperature <= before.habits().temperature + 1e-9 or place == 0


def test_more_replies_that_agree_move_it_further():
    for place, limit in ((0, TEMPERATURES[0]), (len(TEMPERATURES) - 1, TEMPERATURES[-1])):
        moved = [
            abs(np.log(heard(*[favouring(place)] * count).habits().temperature)) for count in (1, 5, 20, 100, 2000)
        ]
        assert moved == sorted(moved)
        assert moved[2] == pytest.approx(abs(np.log(limit)) / 2)
        assert moved[-1] == pytest.approx(abs(np.log(limit)), rel=0.02)


def test_between_two_temperatures_the_least_error_is_found_by_a_parabola():
    square = [(place - 3.3) ** 2 for place in range(len(TEMPERATURES))]
    assert heard(*[square] * 100_000).habits().temperature == pytest.approx(2 ** (3.3 / 2 - 1), rel=1e-3)


@given(shares, temperatures)
def test_tempering_keeps_order_and_sum(chances, temperature):
    drawn = tempered(chances, temperature)
    assert drawn.sum() == pytest.approx(chances.sum())
    order = chances.argsort()
    assert (np.diff(drawn[order]) >= -1e-12).all()
    assert (drawn >= 0).all()


@given(shares, temperatures, temperatures)
def test_a_higher_temperature_evens_out(chances, one, other):
    low, high = sorted((one, other))
    assert tempered(chances, high).max() <= tempered(chances, low).max() + 1e-12


def test_the_first_replies_are_asked_and_then_one_in_a_few():
    known, asked = UNCALIBRATED, 0
    for _ in range(ALWAYS + 10 * SELDOM):
        asked += known.due
        known = known.passed()
    assert asked == ALWAYS + 10


def test_the_model_that_is_right_and_sure_is_sharpened_and_one_that_is_wrong_is_not():
    kin = np.eye(3)
    right, wrong = errors_of(np.array([0.6, 0.3, 0.1]), kin, kin[0]), errors_of(np.array([0.6, 0.3, 0.1]), kin, kin[2])
    assert heard(*[right] * 9).habits().temperature < 1 < heard(*[wrong] * 9).habits().temperature


def test_told_in_hidden_threads_the_stated_chance_comes_near_the_truth():
    """Candidates are right as often as chances say that are tempered by what is to be found."""
    chance = np.random.default_rng(3)
    for real in (0.6, 1.0, 2.0):
        known = UNCALIBRATED
        for _ in range(600):
            stated = chance.dirichlet([0.5] * 8)
            target = chance.choice(8, p=tempered(stated, real))
            known = heard_more(known, errors_of(stated, np.eye(8), np.eye(8)[target]))
        assert known.habits().temperature == pytest.approx(real, rel=0.2)


MINE = np.array([0.0, 1.0, 0.0, 1.0])
ASIDE = np.array([0.0, 1.0, 0.0, 0.0])
AWAY = np.log([4.0, 3.0, 2.0, 1.0])
EVEN = np.full(4, 0.25)


def ways_after(answered, count=200):
    """Return the habits after so many replies to this candidate of four that are as likely as each other."""
    losses = losses_of(EVEN, AWAY, MINE, ASIDE, answered)
    return heard(*[[*[0.0] * len(TEMPERATURES), *losses]] * count).habits()


def test_replies_to_what_stands_near_and_to_others_are_learned():
    near, far, own = ways_after(2), ways_after(0), ways_after(3)
    assert near.distance < 0 < far.distance
    assert far.own < 1 < own.own
    assert far.own_aside < USUAL.own_aside < ways_after(1).own_aside
    assert far.temperature == USUAL.temperature, "nothing speaks for another one"


def test_what_no_reply_can_tell_stays_usual():
    losses = losses_of(EVEN, np.zeros(4), np.zeros(4), np.zeros(4), 0)
    assert heard(*[[*[0.0] * len(TEMPERATURES), *losses]] * 99).habits() == pytest.approx(USUAL)


@given(st.lists(errors, max_size=20))
def test_habits_are_bounded_and_few_replies_move_them_little(replies):
    ways = heard(*replies).habits()
    assert -1 <= ways.distance <= 0.5
    assert 1 / 8 <= ways.own <= 4
    assert 1 / 16 <= ways.own_aside <= 2
    share = len(replies) / (len(replies) + PRIOR)
    assert abs(np.log2(ways.own)) <= 3 * share + 1e-9


def test_weights_are_the_chances_where_habits_are_neutral():
    told = np.array([0.1, 0.2, 0.3, 0.4])
    neutral = USUAL._replace(own_aside=1.0)
    assert weighted(told, AWAY, MINE, ASIDE, neutral) == pytest.approx(told)
    assert weighted(told, AWAY, MINE, ASIDE, USUAL) == pytest.approx([0.1, 0.1, 0.3, 0.4])


def test_the_loss_of_what_is_answered_is_that_of_the_weights():
    told = np.array([0.1, 0.2, 0.3, 0.4])
    losses = losses_of(told, AWAY, MINE, ASIDE, 1)
    usual = weighted(told, AWAY, MINE, ASIDE, USUAL)
    assert losses.min() >= 0
    assert losses[4] == pytest.approx(-np.log(usual[1] / usual.sum())), "the usual distance, 0"
