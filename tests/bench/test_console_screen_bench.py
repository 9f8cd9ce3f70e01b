"""The bench of the console in Chromium, small: every figure is there."""

import re
import shutil

import pytest

from bench_command import bench

pytestmark = pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium: `make system-packages`")


def test_what_people_wait_for_is_timed_in_chromium(tmp_path):
    sizes = (
        "--messages",
        "700",
        "--room",
        "20",
        "--loaded",
        "100",
        "--pages",
        "3",
        "--drawn",
        "1",
        "--rate",
        "10",
        "--seconds",
        "2",
    )
    printed = bench("console-screen", *sizes, "--long", "50", "--turns", "1", "--store", str(tmp_path / "s.db"))
    assert len(re.findall(r"^\| (?:rooms|a room|a thread|search|health) \|(?: \d+ \|){5}$", printed, re.M)) == 5
    assert len(re.findall(r"^\| [kjtc/?] \| \d+ \| \d+ \| \d+ \|$", printed, re.M)) == 6
    assert re.search(r"20 messages at 10 a second, 3 pages open, 1 drawn\nOn the screen after \d+ ms", printed)
    assert "not shown: 0" in printed
    assert re.search(r"server \d+\.\d ms for all pages, a tab \d+\.\d ms", printed)
    assert re.search(r"^\| 50 \| \d+ \| [\d,]+ \| [\d.]+ \|$", printed, re.M)
