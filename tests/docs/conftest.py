"""Follows pages of the documentation, block after block."""

from collections.abc import Callable, Iterator
from pathlib import Path

import doc_rigs_bots  # noqa: F401 - marks rigs
import doc_rigs_library  # noqa: F401 - marks rigs
import doc_rigs_shell  # noqa: F401 - marks rigs
import mcp  # noqa: F401 - before standard error is held, which its client keeps from the start
import pytest
from doc_blocks import blocks_of
from doc_command import Commands
from doc_list import CHECKED, SHOWN, check_unrun
from doc_page import Page
from doc_rigs import rig_of


@pytest.fixture(scope="session")
def commands() -> Iterator[Commands]:
    running = Commands()
    running.start()
    yield running
    running.close()


@pytest.fixture
def follow(commands: Commands, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch) -> Callable[[str], None]:
    """Runs, compares, parses or checks every block of a page; `follow(path)` fails at the first that is not as told."""

    def one(path: str) -> None:
        page, done = Page(path, tmp_path, commands, request.getfixturevalue), []
        monkeypatch.chdir(page.folder)
        blocks = blocks_of(path)
        try:
            with rig_of(page):
                done.extend(_does(page, block) for block in blocks)
        finally:
            page.close()
        assert len(done) == len(blocks)
        assert all(done)

    return one


def _does(page: Page, block) -> str:
    if any(listed.means(block) for listed in SHOWN):
        return "shown"
    if any(listed.means(block) for listed in CHECKED):
        check_unrun(block)
        return "checked"
    return page.run(block)
