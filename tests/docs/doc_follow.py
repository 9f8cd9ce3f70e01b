"""A page from its first block to its last, with its rig. No block is passed over."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from doc_blocks import Block, blocks_of
from doc_command import Commands
from doc_list import CHECKED, SHOWN, check_unrun
from doc_page import Page
from doc_rigs import rig_of

DONE = {"run", "saved", "parsed", "compared", "checked", "shown"}


def follow_page(path: str, place: Path, commands: Commands, fixture: Callable[[str], Any]) -> list[str]:
    """Run each block, and return what was done with it. Raise at the first that is not as the page says."""
    page = Page(path, place, commands, fixture)
    try:
        with rig_of(page):
            return [does(page, block) for block in blocks_of(path)]
    finally:
        page.close()


def does(page: Page, block: Block) -> str:
    """One of `DONE`, once it is done."""
    if any(listed.means(block) for listed in SHOWN):
        return "shown"
    if any(listed.means(block) for listed in CHECKED):
        check_unrun(block)
        return "checked"
    return page.run(block)
