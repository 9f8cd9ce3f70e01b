"""The bench of two installations, small: this one beside itself."""

import sys

import pytest
from bench.two_builds import lines

from bench_command import bench


def _rows(*words):
    """Return the figures of each work, and check that both sides have each."""
    printed = bench("two-builds", "--before", sys.executable, "--rounds", "1", *words)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in printed.splitlines() if line.startswith("| ")]
    assert all(float(cell.replace(",", "")) > 0 for row in rows[1:] for cell in row[2:5])
    figures = {}
    for work, figure, *_ in rows[1:]:
        figures.setdefault(work, []).append(figure)
    return figures


TIMES = ["processor ms", "median processor ms", "median wall ms"]


def test_each_work_is_done_by_both():
    told = _rows(
        "--what",
        "add",
        "context",
        "search",
        "import",
        "size",
        "--calls",
        "20",
        "--messages",
        "1000",
        "--stored",
        "1000",
    )
    assert told.pop("import") == ["wall s", "processor s"]
    assert {"bytes, as written", "bytes, after VACUUM", "`messages`", "`message_features`"} <= set(told.pop("size"))
    assert told == dict.fromkeys(("add", "context", "search"), TIMES)


def test_both_are_asked_over_http():
    told = _rows("--what", "http", "--stored", "1000", "--requests", "64")
    names = ("add a message", "context", "search")
    assert told == {"http": [f"{name}: {figure}" for name in names for figure in ("processor ms", "requests/s")]}


def test_each_work_is_done_on_a_postgresql_server(postgres_url):
    assert _rows("--what", "batch", "--calls", "100", "--database", postgres_url) == {"batch": TIMES}


@pytest.mark.parametrize(
    ("figure", "line"),
    [
        ("processor ms", "4.00 | 2.00 | 2.00 | 1.50 to 3.00"),
        ("requests/s", "4.00 | 2.00 | 0.50 | 0.33 to 0.67"),
    ],
)
def test_a_ratio_is_of_medians_and_tells_its_rounds(figure, line):
    before, after = ([{figure: number} for number in numbers] for numbers in ((3.0, 6.0, 4.0), (2.0, 2.0, 2.0)))
    assert list(lines({"before": before, "after": after})) == [f"{figure} | {line}"]


def test_what_one_build_does_not_have_is_told_as_nothing():
    assert list(lines({"before": [{"`old`": 3.0}], "after": [{}]})) == ["`old` | 3.00 | 0.00 | nan | nan to nan"]
