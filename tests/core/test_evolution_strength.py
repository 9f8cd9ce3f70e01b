"""The strength of a memory."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roomlore.core.audience import EvidenceRoom
from roomlore.core.evolution.requests import (
    decayed,
    is_silent,
    is_silent_in,
    is_stale,
    last_evolutions,
    raised,
    strength_at,
)
from roomlore_testkit import START, change, memory

SHARES = st.floats(0, 1)
DAYS = st.floats(-1e6, 1e6)
HALVES = st.floats(0.01, 1e6)
DAY = timedelta(days=1)


@pytest.mark.parametrize(("days", "left"), [(0, 0.8), (30, 0.4), (60, 0.2), (90, 0.1), (-5, 0.8)])
def test_half_is_left_after_each_half_life(days, left):
    assert decayed(0.8, days, 30) == pytest.approx(left)


@pytest.mark.parametrize(("strength", "by", "then"), [(0, 0.1, 0.1), (0.5, 0.1, 0.55), (1, 0.1, 1), (0.2, 1, 1)])
def test_support_adds_a_share_of_what_is_missing(strength, by, then):
    assert raised(strength, by) == pytest.approx(then)


@pytest.mark.parametrize(("stored", "then"), [(-1, 0), (7, 1)])
def test_what_is_out_of_bounds_is_brought_back(stored, then):
    assert decayed(stored, 0, 30) == raised(stored, 0) == then


@given(SHARES, DAYS, DAYS, HALVES)
def test_it_only_fades(strength, days, other, half):
    sooner, later = sorted((days, other))
    assert 0 <= decayed(strength, later, half) <= decayed(strength, sooner, half) <= strength


@given(SHARES, SHARES, SHARES, DAYS, HALVES)
def test_the_stronger_stays_the_stronger(one, other, by, days, half):
    weak, strong = sorted((one, other))
    assert decayed(weak, days, half) <= decayed(strong, days, half)
    assert raised(weak, by) <= raised(strong, by) + 1e-12
    assert weak <= raised(weak, by) <= 1


@given(SHARES, SHARES, SHARES)
def test_more_support_is_not_less(strength, by, other):
    assert raised(strength, min(by, other)) <= raised(strength, max(by, other)) <= 1


def test_stale_is_what_faded_below_the_floor():
    one = memory(strength=0.8)
    assert not is_stale(one, START + 60 * DAY)
    assert is_stale(one, START + 61 * DAY)
    assert not is_stale(one, START - DAY)
    assert strength_at(one, START + 30 * DAY) == pytest.approx(0.4)


def test_support_is_what_counts_and_not_the_age():
    assert not is_stale(memory(strength=0.8, supported_at=START + 60 * DAY), START + 61 * DAY)


def test_a_memory_is_silent_after_two_weeks_without_support_although_it_has_not_faded():
    one = memory(strength=0.8)
    assert not is_silent(one, START + 14 * DAY - timedelta(seconds=1))
    assert is_silent(one, START + 14 * DAY)
    assert not is_stale(one, START + 14 * DAY)


def test_a_memory_is_silent_in_a_room_two_weeks_after_the_last_message_that_supports_it():
    one = memory(evidence=(EvidenceRoom("g", START - 9 * DAY, START),), supported_at=START + 300 * DAY)
    assert not is_silent_in(one, "g", START + 14 * DAY - timedelta(seconds=1))
    assert is_silent_in(one, "g", START + 14 * DAY)
    assert not is_silent_in(memory(), "g", START + 300 * DAY)


def test_one_room_tells_nothing_of_the_silence_about_what_another_one_supports():
    here, there = EvidenceRoom("g", START, START), EvidenceRoom("h", START - 9 * DAY, START - DAY)
    assert not is_silent_in(memory(evidence=(here, there)), "g", START + 300 * DAY)
    assert not is_silent_in(memory(evidence=(there,)), "g", START + 300 * DAY)


def test_the_last_change_says_which_evolution_made_a_memory_unless_somebody_did_by_hand():
    one, other = memory("f1"), memory("f2")
    evolved = change(1, one, evolution_id="e1")
    assert last_evolutions([]) == {}
    assert last_evolutions([evolved]) == {"f1": "e1"}
    assert last_evolutions([evolved, change(2, one), change(3, other, evolution_id="e2")]) == {"f2": "e2"}
    assert last_evolutions([change(1, one), change(2, one, evolution_id="e1")]) == {"f1": "e1"}
