"""The bench of shared work, small: real workers on a real PostgreSQL, and checks that see what is wrong."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

from bench.work_sharing import Part

ROOT = Path(__file__).parents[2]


def test_two_workers_share_the_work(postgres_url: str):
    sizes = ("--rooms", "6", "--answer", "0.1", "--database", postgres_url)
    command = (sys.executable, "-m", "bench", "work-sharing", *sizes)
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.count("6 requests to the model") == 2
    assert ended.stdout.count("6 memories of 6 rooms") == 2
    assert "2 workers are " in ended.stdout
    assert "WRONG" not in ended.stdout


def test_what_is_left_out_or_done_twice_is_seen():
    right = Counter(("a", "b"))
    assert Part(["a", "b"], asked=right, kept=right).wrong() == []
    lost = Part(["a", "b"], asked=right, kept=Counter("a"))
    assert lost.wrong() == ["kept as a memory: 1 rooms never, 0 repeatedly"]
    twice = Part(["a", "b"], asked=Counter("aab"), kept=right)
    assert twice.wrong() == ["asked of the model: 0 rooms never, 1 repeatedly"]
