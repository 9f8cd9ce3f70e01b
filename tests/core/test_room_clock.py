"""The clock of a room: it goes slower where messages come seldom, and a silence moves it little."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roomlore.core.linking.clock import BUSY_SECONDS, SILENCE_SECONDS, RoomClock, on_clock, pace_of

MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0
BEGIN = 1.7e9
PACES = st.floats(1e-6, 1)
TIMES = st.lists(st.floats(0, 1e8), min_size=1, max_size=50)


def heard(*gaps: float) -> np.ndarray:
    return np.cumsum([BEGIN, *gaps])


@pytest.mark.parametrize(
    ("gaps", "expected"),
    [
        ((), 1),
        ((HOUR,) * 8, 1),
        ((5, 20, 60) * 10, 1),
        ((MINUTE,) * 29 + (30 * DAY,), 1),
        ((HOUR,) * 20 + (5,) * 5, BUSY_SECONDS / HOUR),
        ((HOUR,) * 18 + (5,) * 12, 1),
        ((-HOUR,) * 20, BUSY_SECONDS / HOUR),
    ],
    ids=["first", "too few to tell", "busy", "one silence", "slow", "hardly slow", "newest first"],
)
def test_the_clock_goes_by_the_usual_gap(gaps, expected):
    assert pace_of(heard(*gaps)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("gap", "pace", "least", "most"),
    [
        (MINUTE, 1, MINUTE, MINUTE),
        (SILENCE_SECONDS, 1, SILENCE_SECONDS, SILENCE_SECONDS),
        (HOUR, 1, 20 * MINUTE, 25 * MINUTE),
        (DAY, 1, 40 * MINUTE, 50 * MINUTE),
        (3 * DAY, 1, 50 * MINUTE, 60 * MINUTE),
        (HOUR, BUSY_SECONDS / HOUR, MINUTE, MINUTE),
        (DAY, BUSY_SECONDS / HOUR, 10 * MINUTE, 20 * MINUTE),
        (-HOUR, 1, 0, 0),
    ],
)
def test_a_silence_counts_little(gap, pace, least, most):
    assert least <= on_clock(gap, pace) <= most


@given(TIMES, st.floats(0, 1e8), PACES)
def test_what_was_said_earlier_lies_further_back(times, now, pace):
    at = np.array(times)
    since = RoomClock.at(now, at, pace).since(at)
    assert (np.diff(since[at.argsort()]) <= 0).all()
    assert (since[at <= now] >= 0).all()
    assert (since[at <= now] <= now - at[at <= now] + 1e-6).all()


@given(st.permutations(range(12)), PACES)
def test_the_order_in_which_messages_came_does_not_matter(order, pace):
    at = heard(5, 20, HOUR, 3, DAY, 60, 60, 2 * HOUR, 7, 7, 7)
    now = float(at[-1]) + HOUR
    mixed = RoomClock.at(now, at[list(order)], pace).since(at)
    assert (mixed == RoomClock.at(now, at, pace).since(at)).all()


def test_talk_of_a_year_ago_that_arrives_now_leaves_the_gaps_of_today_as_they_are():
    today, old = heard(20, 20, 20, 20), heard(9, 9, 9, 9) - 365 * DAY
    now = float(today[-1]) + 20
    mixed = np.ravel([old, today], order="F")
    assert RoomClock.at(now, mixed, 1.0).since(today).tolist() == [100, 80, 60, 40, 20]


@given(st.floats(0, 1e7), PACES)
def test_what_the_clock_counts_adds_up_to_the_same_in_any_order(gap, pace):
    gap = BEGIN + gap - BEGIN
    assert (on_clock(gap, pace) * 2.0**30).is_integer()
    assert on_clock(gap, pace) == pytest.approx(RoomClock.at(gap, np.array([0.0, gap]), pace).counted[-1], abs=1e-8)
