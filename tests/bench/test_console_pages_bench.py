"""The bench of the console's pages, small: every page is there, in both stores."""

from bench_command import bench


def test_every_page_is_timed_in_both_stores(tmp_path):
    sizes = ("--messages", "400", "--small", "200", "--turns", "1", "--store", str(tmp_path))
    rows = [line.split("|")[1:-1] for line in bench("console-pages", *sizes).splitlines() if line.startswith("| ")][1:]
    assert {row[0].strip() for row in rows} >= {"rooms", "room", "thread", "context", "memory", "sessions", "health"}
    assert all(float(cell) >= 0 for row in rows for cell in row[1:])
