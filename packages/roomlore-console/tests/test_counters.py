"""Readings of counters: bounded, in order, and what they add up to."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roomlore_console.counters import CounterReading, growth, kept, per_minute, quantile, share, thinned

BEGIN = datetime(2026, 1, 5, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)
BOUNDS = (0.01, 0.1, 1.0)


def reading(seconds: float, *numbers: float) -> CounterReading:
    return CounterReading(BEGIN + timedelta(seconds=seconds), {"n": numbers})


def gathered(moments, most: int) -> tuple[CounterReading, ...]:
    found: tuple[CounterReading, ...] = ()
    for moment in moments:
        found = kept(found, reading(moment, moment), within=HOUR, most=most)
    return found


@given(st.lists(st.integers(0, 20_000)), st.integers(1, 400))
def test_readings_are_bounded_in_order_and_of_the_last_hour(moments, most):
    found = gathered(moments, most)
    assert len(found) <= most
    times = [one.at for one in found]
    assert times == sorted(set(times))
    assert not moments or times[-1] == BEGIN + timedelta(seconds=moments[-1])
    assert all(times[-1] - one <= HOUR for one in times)


@given(st.integers(1, 3_000), st.integers(1, 60))
def test_nothing_of_the_last_hour_is_lost_while_there_is_room(count, every):
    found = gathered(range(0, count * every, every)[-400:], 10_000)
    last = found[-1].at
    assert len(found) == min(min(count, 400), int(HOUR.total_seconds()) // every + 1)
    assert {one.at - last for one in found} == {timedelta(seconds=-n * every) for n in range(len(found))}


@given(st.integers(0, 500), st.integers(2, 60))
def test_thinned_readings_keep_both_ends_and_the_whole_growth(count, most):
    whole = [reading(n, n * n) for n in range(count)]
    few = thinned(whole, most)
    assert len(few) == min(count, most)
    assert [one.at for one in few] == sorted({one.at for one in few})
    assert sum(amount for (amount,) in growth(few, "n")) == sum(amount for (amount,) in growth(whole, "n"))
    assert not whole or (few[0], few[-1]) == (whole[0], whole[-1])


def test_what_grows_is_told_per_minute():
    told = [reading(0, 4), reading(30, 10), reading(90, 10), reading(100, 3)]
    grown = growth(told, "n")
    assert grown == [(6.0,), (0.0,), (0.0,)]
    assert per_minute(told, grown) == [12.0, 0.0, 0.0]
    assert per_minute(told[:1], growth(told[:1], "n")) == []


def test_a_share_of_nothing_is_none():
    assert share(0, 0) is None
    assert share(1, 4) == 0.25


@pytest.mark.parametrize(
    ("rank", "counts", "value"),
    [
        (0.5, (0, 0, 0, 0), None),
        (0.5, (10, 10, 10, 10), 0.005),
        (1.0, (10, 10, 10, 10), 0.01),
        (0.5, (0, 10, 10, 10), 0.055),
        (0.95, (0, 0, 0, 10), 1.0),
        (0.75, (5, 10, 10, 10), 0.055),
        (0.0, (0, 4, 4, 4), 0.01),
    ],
)
def test_a_quantile_lies_in_its_bucket(rank, counts, value):
    assert quantile(rank, BOUNDS, counts) == (None if value is None else pytest.approx(value))


@given(st.lists(st.floats(0, 2), min_size=1, max_size=50), st.floats(0, 1))
def test_a_quantile_is_off_by_no_more_than_its_bucket(values, rank):
    counts = [sum(value <= bound for value in values) for bound in BOUNDS] + [len(values)]
    guess = quantile(rank, BOUNDS, counts)
    exact = sorted(values)[max(0, -int(-rank * len(values) // 1) - 1)]
    edges = (0.0, *BOUNDS)
    place = next((n for n, bound in enumerate(BOUNDS) if exact <= bound), None)
    assert edges[place] <= guess <= edges[place + 1] if place is not None else guess == BOUNDS[-1]


@given(st.lists(st.floats(0, 2), min_size=1, max_size=50))
def test_quantiles_grow_with_their_rank(values):
    counts = [sum(value <= bound for value in values) for bound in BOUNDS] + [len(values)]
    found = [quantile(rank / 10, BOUNDS, counts) for rank in range(11)]
    assert found == sorted(found)
