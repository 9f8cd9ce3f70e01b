"""Replies of a room, and the temperature that follows from them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roomlore.core.linking.calibration import (
    ALWAYS,
    SELDOM,
    TEMPERATURES,
    UNCALIBRATED,
    UNIT,
    Calibration,
    errors_of,
    tempered,
)

shares = st.lists(st.floats(0, 1), min_size=1, max_size=30).map(np.array)
errors = st.lists(st.floats(0, 50), min_size=len(TEMPERATURES), max_size=len(TEMPERATURES))
temperatures = st.floats(TEMPERATURES[0], TEMPERATURES[-1])


def heard(*replies):
    known = UNCALIBRATED
    for one in replies:
        known = known.heard(one)
    return known


def favouring(place: int) -> list[float]:
    return [abs(place - here) / 10 for here in range(len(TEMPERATURES))]


def test_without_replies_nothing_is_changed():
    assert UNCALIBRATED.temperature() == 1.0
    assert UNCALIBRATED.passed().temperature() == 1.0
    assert tempered(np.array([0.2, 0.7]), 1.0).tolist() == [0.2, 0.7]


@given(st.lists(errors, max_size=20))
def test_the_temperature_is_bounded_and_does_not_depend_on_the_order(replies):
    known = heard(*replies)
    assert TEMPERATURES[0] <= known.temperature() <= TEMPERATURES[-1]
    assert heard(*reversed(replies)) == known


@given(st.lists(errors, min_size=1, max_size=9), st.integers(0, len(TEMPERATURES) - 1))
def test_a_temperature_whose_error_grows_is_moved_away_from_or_kept(replies, place):
    """More error of the hotter half never makes it hotter, nor of the colder half colder."""
    before = heard(*replies)
    worse = list(before.errors)
    worse[place:] = [error + UNIT for error in worse[place:]]
    after = Calibration(before.replies, before.asked, tuple(worse))
    assert after.temperature() <= before.temperature() + 1e-9 or place == 0


def test_more_replies_that_agree_move_it_further():
    for place, limit in ((0, TEMPERATURES[0]), (len(TEMPERATURES) - 1, TEMPERATURES[-1])):
        moved = [abs(np.log(heard(*[favouring(place)] * count).temperature())) for count in (1, 5, 20, 100, 2000)]
        assert moved == sorted(moved)
        assert moved[2] == pytest.approx(abs(np.log(limit)) / 2)
        assert moved[-1] == pytest.approx(abs(np.log(limit)), rel=0.02)


def test_between_two_temperatures_the_least_error_is_found_by_a_parabola():
    square = [(place - 3.3) ** 2 for place in range(len(TEMPERATURES))]
    assert heard(*[square] * 100_000).temperature() == pytest.approx(2 ** (3.3 / 2 - 1), rel=1e-3)


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
    assert heard(*[right] * 9).temperature() < 1 < heard(*[wrong] * 9).temperature()


def test_told_in_hidden_threads_the_stated_chance_comes_near_the_truth():
    """Candidates are right as often as chances say that are tempered by what is to be found."""
    chance = np.random.default_rng(3)
    for real in (0.6, 1.0, 2.0):
        known = UNCALIBRATED
        for _ in range(600):
            stated = chance.dirichlet([0.5] * 8)
            target = chance.choice(8, p=tempered(stated, real))
            known = known.heard(errors_of(stated, np.eye(8), np.eye(8)[target]))
        assert known.temperature() == pytest.approx(real, rel=0.2)
