"""Every block of the how-tos runs as it stands, in the order of the page."""

import pytest
from doc_blocks import pages

PATHS = [path for path in pages() if path.startswith("docs/how-to/")]


@pytest.mark.parametrize("path", PATHS)
def test_the_page_goes_as_it_is_written(follow, path):
    follow(path)
