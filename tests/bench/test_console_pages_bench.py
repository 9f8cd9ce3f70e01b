"""The bench of the console's pages, small: every page is there, in both stores."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_page_is_timed_in_both_stores(tmp_path):
    sizes = ("--messages", "400", "--small", "200", "--turns", "1", "--store", str(tmp_path))
    command = (sys.executable, "-m", "bench", "console-pages", *sizes)
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    rows = [line.split("|")[1:-1] for line in ended.stdout.splitlines() if line.startswith("| ")][1:]
    assert {row[0].strip() for row in rows} >= {"rooms", "room", "thread", "context", "memory", "sessions", "health"}
    assert all(float(cell) >= 0 for row in rows for cell in row[1:])
