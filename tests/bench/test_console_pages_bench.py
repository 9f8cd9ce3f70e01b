"""The bench of the console's pages, small: every page is there, in both stores."""

from bench_command import bench


def test_every_page_is_timed_in_both_stores(tmp_path):
    sizes = ("--messages", "400", "--small", "200", "--room", "100", "--memories", "20", "--turns", "1")
    printed = bench("console-pages", *sizes, "--store", str(tmp_path))
    rows = [line.split("|")[1:-1] for line in printed.splitlines() if line.startswith("| ")][1:]
    assert {row[0].strip() for row in rows} >= {"rooms", "room", "thread", "context", "memory", "sessions", "health"}
    assert all(float(cell) >= 0 for row in rows for cell in row[1:])
