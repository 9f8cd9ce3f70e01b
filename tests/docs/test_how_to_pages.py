"""Every block of the how-tos runs as it stands, in the order of the page."""

import pytest
from doc_blocks import blocks_of, pages

PATHS = [
    path
    for path in pages()
    if path.startswith("docs/how-to/") and blocks_of(path) and path != "docs/how-to/back-up-and-restore.md"
]
"""But for the one of which `test_restoring` runs every block, twice and amid what people write."""


@pytest.mark.parametrize("path", PATHS)
def test_the_page_goes_as_it_is_written(follow, path):
    follow(path)
