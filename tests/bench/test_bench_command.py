"""How tests run a bench: its output comes back, and an error is told with it."""

import argparse
import sys
from types import SimpleNamespace

import pytest
from bench.__main__ import BENCHES

from bench_command import bench


async def missed(arguments: argparse.Namespace) -> None:
    sys.stdout.write(f"3 of {arguments.most} are slow\n")
    raise SystemExit("too slow")


@pytest.fixture(autouse=True)
def slow(monkeypatch):
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--most", type=int)

    monkeypatch.setitem(BENCHES, "slow", SimpleNamespace(run=missed, add_arguments=add_arguments))


def test_an_error_is_told_with_what_was_printed():
    with pytest.raises(AssertionError, match=r"3 of 5 are slow\n(?s:.)*too slow"):
        bench("slow", "--most", "5")


def test_what_misses_its_goals_may_end_so():
    assert bench("slow", "--most", "4", misses_goals=True) == "3 of 4 are slow\n"


def test_a_word_too_many_is_an_error():
    with pytest.raises(AssertionError):
        bench("slow", "--least", "5")
