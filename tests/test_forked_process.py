"""The processes that tests start."""

import os
from concurrent.futures import ThreadPoolExecutor

from forked_process import begin


def test_starting_several_at_once_leaves_the_environment_as_it_was():
    """Tests that run later in this process would find the packages of this environment in any other one."""
    before = dict(os.environ)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: begin(), range(200)))
    assert dict(os.environ) == before
