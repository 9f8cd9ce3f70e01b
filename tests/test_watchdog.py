"""A test that hangs is ended, and no thread is started for each test."""

import threading
from types import SimpleNamespace

import pytest

from watchdog import Watchdog


@pytest.fixture
def late() -> list[str]:
    return []


@pytest.fixture
def time() -> list[float]:
    return [100.0]


@pytest.fixture
def watchdog(late, time, monkeypatch) -> Watchdog:
    made = Watchdog(lambda item, settings: late.append(f"{item} {settings.timeout}"), 2, lambda: time[0])
    monkeypatch.setattr(made, "_watch", lambda seconds: None)
    return made


def test_a_test_is_ended_when_its_time_is_over(watchdog, late, time):
    watchdog.begin("one", SimpleNamespace(timeout=600))
    time[0] += 599
    watchdog.look()
    assert late == []
    time[0] += 1
    watchdog.look()
    assert late == ["one 600"]


def test_each_test_has_its_own_time(watchdog, late, time):
    watchdog.begin("one", SimpleNamespace(timeout=600))
    time[0] += 500
    watchdog.end()
    time[0] += 500
    watchdog.look()
    watchdog.begin("two", SimpleNamespace(timeout=300))
    time[0] += 299
    watchdog.look()
    assert late == []
    time[0] += 1
    watchdog.look()
    assert late == ["two 300"]


def test_this_test_is_watched_by_no_thread_of_its_own():
    names = {one.name for one in threading.enumerate()}
    assert "watchdog" in names
    assert [name for name in names if name.startswith("pytest_timeout")] == []
