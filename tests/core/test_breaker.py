"""The circuit breaker: when a provider is left alone, for how long, and how it comes back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roomlore.core.chat import FAILURES, FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, Breaker


def failed(times: int, *, now: float = 0.0) -> Breaker:
    breaker = Breaker()
    for _ in range(times):
        breaker = breaker.failed(now)
    return breaker


def test_it_opens_after_three_failures_in_a_row():
    assert failed(FAILURES - 1).allows(0)
    assert not failed(FAILURES).allows(0)
    assert not failed(FAILURES - 1).succeeded().failed(0).is_open


def test_after_its_pause_one_call_may_try_and_the_others_wait():
    breaker = failed(FAILURES)
    assert not breaker.allows(FIRST_PAUSE_SECONDS - 0.01)
    assert breaker.allows(FIRST_PAUSE_SECONDS)
    trying = breaker.tried(FIRST_PAUSE_SECONDS, seconds=10)
    assert not trying.allows(FIRST_PAUSE_SECONDS + 9)
    assert trying.succeeded().allows(FIRST_PAUSE_SECONDS)
    assert trying.abandoned().allows(FIRST_PAUSE_SECONDS)


def test_once_an_answer_begins_the_others_need_not_wait_for_its_end():
    trying = failed(FAILURES).tried(FIRST_PAUSE_SECONDS, seconds=10)
    begun = trying.begun(FIRST_PAUSE_SECONDS + 1)
    assert begun.allows(FIRST_PAUSE_SECONDS + 1)
    assert begun.succeeded() == Breaker()
    assert not failed(FAILURES).begun(1).allows(1), "a call from before the pause says little"
    limited = Breaker().failed(0, wait_seconds=60)
    assert limited.begun(1) == limited


def test_answers_that_begin_and_break_off_lengthen_the_pause():
    breaker, now, pauses = failed(FAILURES), 0.0, []
    for _ in range(4):
        pauses.append(breaker.open_until - now)
        now = breaker.open_until
        breaker = breaker.tried(now, seconds=10).begun(now).failed(now).failed(now)
    assert pauses == [15, 30, 60, 120]


def test_a_try_that_is_never_heard_of_again_keeps_others_off_no_longer_than_it_may_last():
    trying = failed(FAILURES).tried(FIRST_PAUSE_SECONDS, seconds=10)
    assert trying.allows(FIRST_PAUSE_SECONDS + 10)


def test_each_failed_try_doubles_the_pause_up_to_the_longest():
    breaker, now, pauses = failed(FAILURES), 0.0, []
    for _ in range(8):
        pauses.append(breaker.open_until - now)
        now = breaker.open_until
        breaker = breaker.tried(now, seconds=1).failed(now)
    assert pauses == [15, 30, 60, 120, 240, 300, 300, 300]


def test_calls_that_fail_together_count_as_far_as_it_takes_to_open():
    assert failed(50).open_until == FIRST_PAUSE_SECONDS


def test_a_call_that_was_allowed_before_the_pause_blocks_no_probe_after_it():
    opened = failed(FAILURES)
    begun = opened.tried(0, seconds=60)
    for state in (begun, begun.failed(1), begun.failed(1).tried(1, seconds=60)):
        assert state.allows(opened.open_until)


@pytest.mark.parametrize(("asked", "pause"), [(None, 0), (0, 0), (1.5, 1.5), (20, 20), (86_400, LONGEST_PAUSE_SECONDS)])
def test_it_is_left_alone_as_long_as_it_asks_within_reason(asked, pause):
    assert Breaker().failed(100.0, wait_seconds=asked).open_until == 100.0 + pause


def test_a_short_wait_asked_for_does_not_shorten_the_pause():
    breaker = failed(FAILURES - 1).failed(0, wait_seconds=1)
    assert breaker.open_until == FIRST_PAUSE_SECONDS


def test_a_provider_that_is_down_for_weeks_breaks_nothing():
    breaker, now = Breaker(), 0.0
    for _ in range(5000):
        breaker = breaker.failed(now)
        now = max(now, breaker.open_until)
    assert breaker.allows(now)
    assert breaker.failed(now).open_until == now + LONGEST_PAUSE_SECONDS


@given(st.lists(st.tuples(st.sampled_from(["tried", "failed", "succeeded", "abandoned"]), st.floats(0, 1000))))
def test_whatever_happens_it_lets_a_call_through_in_the_end(steps):
    breaker, now = Breaker(), 0.0
    for step, seconds in steps:
        now += seconds
        if step == "tried":
            breaker = breaker.tried(now, seconds=60)
        elif step == "failed":
            breaker = breaker.failed(now, wait_seconds=seconds)
        else:
            breaker = getattr(breaker, step)()
        assert breaker.allows(now + LONGEST_PAUSE_SECONDS)
