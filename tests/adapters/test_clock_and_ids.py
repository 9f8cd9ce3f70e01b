"""The system clock and time-ordered ids."""

from datetime import UTC, timedelta
from uuid import UUID

from roomlore.adapters.inprocess import SystemClock, TimeOrderedIds
from roomlore_testkit import START, FrozenClock, SequentialIds


def test_the_clock_is_utc_and_goes_forward():
    clock = SystemClock()
    first, tick = clock.now(), clock.monotonic()
    assert first.tzinfo is UTC
    assert clock.now() >= first
    assert clock.monotonic() >= tick


def test_ids_ascend_even_when_the_clock_stands_still_or_steps_back():
    clock = FrozenClock()
    ids = TimeOrderedIds(clock)
    made = []
    for step in (0, 0.0001, -5, 1, 0):
        clock.advance(step)
        made += [ids.new() for _ in range(500)]
    assert made == sorted(set(made))


def test_ids_are_uuids_of_version_seven_that_tell_the_time():
    made = UUID(TimeOrderedIds(FrozenClock()).new())
    assert (made.version, made.variant) == (7, "specified in RFC 4122")
    assert made.int >> 80 == int(START.timestamp() * 1000)


def test_ids_of_two_processes_at_one_time_differ():
    assert TimeOrderedIds(FrozenClock()).new() != TimeOrderedIds(FrozenClock()).new()


def test_the_frozen_clock_moves_when_told():
    clock = FrozenClock()
    clock.advance(90)
    assert clock.now() == START + timedelta(seconds=90)
    assert clock.monotonic() == 90


def test_sequential_ids_count():
    ids = SequentialIds("ctx")
    assert [ids.new(), ids.new()] == ["ctx-000001", "ctx-000002"]
