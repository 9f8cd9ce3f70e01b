"""The severity of findings."""

from dataclasses import replace

import pytest

from roomlore.core.health import DatabaseLook, Finding, judge_database, judge_disk, judge_skew, say, worst

GIB = 1024**3
SOUND = DatabaseLook(engine="SQLite", version="0006", first="0003", head="0006", size_bytes=3 * 1024**2, write_ms=1.5)


def test_the_worst_counts():
    said = say("backend.answers")
    found = [Finding("redis", "ok", said), Finding("disk", "fail", said), Finding("keys", "warn", said)]
    assert (worst(found), worst(found[::2]), worst(found[:1]), worst([])) == ("fail", "warn", "ok", "ok")


@pytest.mark.parametrize(
    ("changes", "verdict", "says"),
    [
        ({}, "ok", "SQLite, schema 0006, 3.0 MiB, a write took 1.5 ms"),
        ({"write_ms": 900.0}, "warn", "Writing is slow"),
        ({"version": None}, "warn", "It is new"),
        ({"version": "0003"}, "warn", "brings it to schema 0006"),
        ({"version": "0002"}, "fail", "before the first release"),
        ({"version": "0042"}, "fail", "upgrade roomlore"),
        ({"version": "moving"}, "fail", "run that command again"),
    ],
    ids=["sound", "slow", "new", "older", "unreleased", "newer", "moving"],
)
def test_a_database(changes, verdict, says):
    found = judge_database(replace(SOUND, **changes))
    assert found.verdict == verdict
    assert says in f"{found.told} {found.advice}"


@pytest.mark.parametrize(
    ("seconds", "verdict", "side"), [(0.2, "ok", "ahead of"), (61.0, "warn", "ahead of"), (-61.0, "warn", "behind")]
)
def test_a_clock(seconds, verdict, side):
    found = judge_skew(seconds)
    assert (found.verdict, side in found.told) == (verdict, True)


@pytest.mark.parametrize(("free", "verdict"), [(50 * GIB, "ok"), (GIB // 2, "warn"), (GIB // 20, "fail")])
def test_a_disk(free, verdict):
    assert judge_disk(free).verdict == verdict
