"""Every block of the README, the quickstart, the references and the explanations runs as it stands."""

import pytest
from doc_blocks import blocks_of, pages

PATHS = [path for path in pages() if blocks_of(path) and not path.startswith("docs/how-to/")]


@pytest.mark.parametrize("path", PATHS)
def test_the_page_goes_as_it_is_written(follow, path):
    follow(path)
