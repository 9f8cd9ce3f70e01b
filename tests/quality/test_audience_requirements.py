"""The table of the specification in decision 0022 names tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_NAMED = re.compile(r"`((?:packages/[\w-]+/)?tests/[\w/]+\.py)::(\w+)`")


def test_each_sentence_of_the_specification_has_its_tests():
    page = (ROOT / "docs/decisions/0022-audience.md").read_text("utf-8")
    rows = [row for row in page.partition("## The specification")[2].splitlines() if row.startswith("| ")][1:]
    assert len(rows) > 12
    for row in rows:
        named = _NAMED.findall(row)
        assert named, row
        for path, name in named:
            assert f"def {name}(" in (ROOT / path).read_text("utf-8"), (path, name)
