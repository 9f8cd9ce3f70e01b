"""Every block of the how-tos runs as it stands, in the order of the page."""

from pathlib import Path

import pytest
from doc_blocks import ROOT, blocks_of, pages


def is_of_framework(path: str) -> bool:
    """Return True for a page whose framework is in an environment of its own; its program runs there."""
    return (ROOT / f"tests/frameworks/test_{Path(path).stem.replace('-', '_')}.py").exists()


PATHS = [
    path
    for path in pages()
    if path.startswith("docs/how-to/")
    and blocks_of(path)
    and path != "docs/how-to/back-up-and-restore.md"
    and not is_of_framework(path)
]
"""But for the one of which `test_restoring` runs every block, twice and amid what people write."""


@pytest.mark.parametrize("path", PATHS)
def test_the_page_goes_as_it_is_written(follow, path):
    follow(path)
