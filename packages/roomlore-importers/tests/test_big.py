"""Memory stays flat however big the export is."""

import sys

import big
import pytest

MOST = 40_000_000


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the process' size is read from /proc")
@pytest.mark.parametrize("form", ["jsonl", "telegram", "line", "meta"])
def test_reading_60_megabytes_takes_no_40(tmp_path, form):
    path, wanted = big.write(tmp_path, form, 60_000_000, repeat=True)
    count, most = big.growth(path, form)
    assert count == wanted
    assert most < MOST
