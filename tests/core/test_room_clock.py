"""The clock of a room: it goes slower where messages come seldom, and a silence moves it little."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roomlore.core.linking.clock import BUSY_SECONDS, SILENCE_SECONDS, elapsed, rate

MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0
GAPS = st.floats(0, 1e8)
RATES = st.floats(1e-6, 1)


def heard(*gaps: float) -> np.ndarray:
    return np.cumsum([1.7e9, *gaps])


@pytest.mark.parametrize(
    ("gaps", "expected"),
    [
        ((), 1),
        ((HOUR, HOUR), 1),
        ((5, 20, 60, 30), 1),
        ((MINUTE, MINUTE, MINUTE, 30 * DAY), 1),
        ((HOUR, HOUR, HOUR, 5), BUSY_SECONDS / HOUR),
        ((-5, HOUR, HOUR, HOUR), BUSY_SECONDS / HOUR),
    ],
    ids=["first", "too few to tell", "busy", "one silence", "slow", "late"],
)
def test_the_clock_goes_by_the_usual_gap(gaps, expected):
    assert rate(heard(*gaps)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("seconds", "rate", "least", "most"),
    [
        (MINUTE, 1, MINUTE, MINUTE),
        (SILENCE_SECONDS, 1, SILENCE_SECONDS, SILENCE_SECONDS),
        (DAY, 1, 30 * MINUTE, 60 * MINUTE),
        (3 * DAY, 1, 35 * MINUTE, 60 * MINUTE),
        (HOUR, BUSY_SECONDS / HOUR, MINUTE, MINUTE),
        (DAY, BUSY_SECONDS / HOUR, 10 * MINUTE, 20 * MINUTE),
    ],
)
def test_a_silence_counts_little(seconds, rate, least, most):
    assert least <= elapsed(seconds, rate) <= most


@given(GAPS, GAPS, RATES)
def test_more_time_is_more_time_on_the_clock(one, other, rate):
    less, more = sorted((one, other))
    assert 0 <= elapsed(less, rate) <= elapsed(more, rate) <= more + 0.001


@given(GAPS, RATES)
def test_a_message_that_came_late_lies_as_far_back(seconds, rate):
    assert elapsed(-seconds, rate) == -elapsed(seconds, rate)


@given(st.lists(st.tuples(GAPS, RATES), max_size=50), st.floats(0, 1e9))
def test_sums_are_exact_wherever_they_begin(gaps, begin):
    steps, first = [elapsed(*gap) for gap in gaps], elapsed(begin, 1.0)
    at = first
    for step in steps:
        at += step
    assert at - first == sum(steps)
