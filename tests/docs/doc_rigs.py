"""Things that a page's readers bring along: a model, a database server, an export. One rig a page, at real ports."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from doc_page import Page

Rig = Callable[[Page], AbstractContextManager[None]]
_RIGS: dict[str, Rig] = {}


def rig(*paths: str) -> Callable[[Callable[[Page], Iterator[None]]], Rig]:
    """Marks the rig of pages. It runs to its `yield` before the first block, and on after the last."""

    def mark(function: Callable[[Page], Iterator[None]]) -> Rig:
        made = contextmanager(function)
        for path in paths:
            assert path not in _RIGS, f"{path} has two rigs"
            _RIGS[path] = made
        return made

    return mark


def rig_of(page: Page) -> AbstractContextManager[None]:
    return _RIGS.get(page.path, lambda _: nullcontext())(page)


def pages_with_rigs() -> list[str]:
    return sorted(_RIGS)
