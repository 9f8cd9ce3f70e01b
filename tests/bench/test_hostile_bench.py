"""The bench of hostile requests, small: it times the health check beside them, and tells where the goal is missed."""

import argparse
import json
import time

import pytest

from bench import hostile
from bench_command import bench
from roomlore.settings import Settings
from roomlore_server.http.bodies import Bounds, JsonMeter


def test_the_health_check_is_timed_beside_hostile_requests():
    kinds = ("--kind", "half-sent requests", "--kind", "small arrays to /context, 1 MB")
    asked = ("--requests", "3", "--seconds", "2", "--quiet", "1", *kinds)
    printed = bench("hostile", *asked, misses_goals=True)  # where the machine is busy
    rows = [line.split("|")[1:-1] for line in printed.splitlines() if line.startswith("| ")][1:]
    assert [row[0].strip() for row in rows] == ["half-sent requests", "small arrays to /context, 1 MB"]
    assert "x not yet answered" in rows[0][1]
    assert "x 413" in rows[1][1]
    assert all(float(row[place].split()[0]) > 0 for row in rows for place in range(2, 8))


@pytest.mark.parametrize(
    ("took", "refused", "kept"), [([0.01] * 200, 0, True), ([0.3] * 200, 0, False), ([0.01], 1, False)]
)
def test_a_late_or_refused_health_check_misses_the_goal(monkeypatch, capsys, took, refused, kept):
    samples = iter([hostile.Sampled([0.001], 0), hostile.Sampled(took, refused)])
    monkeypatch.setattr(hostile, "sampled", lambda pipe, meanwhile: next(samples))
    assert hostile.fares("x", None, lambda number: "200", argparse.Namespace()) is kept
    assert capsys.readouterr().out.startswith("| x |")


def test_requests_go_on_and_those_that_do_not_end_are_counted():
    came = hostile.attacked(lambda number: time.sleep(2 * number + 0.01) or "200", 2, 0.5)
    assert came.count("200") > 2
    assert came[-1] == "not yet answered"


def test_what_is_sent_is_as_hostile_as_it_may_be():
    meter = JsonMeter(Bounds.bulk(Settings()))
    meter.take(hostile.many_values(190_000))
    assert len(hostile.small_arrays(1_000)) <= 1_000
    assert json.loads(hostile.small_arrays(1_000)) == [[]] * 333
    assert json.loads(hostile.deep(20)) == [[[[[[[[[[]]]]]]]]]]
