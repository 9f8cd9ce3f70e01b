"""Follows pages of the documentation, block after block."""

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import mcp  # noqa: F401 - before standard error is held, which its client keeps from the start
import pytest

RIGS = ("doc_rigs_bots", "doc_rigs_groups", "doc_rigs_library", "doc_rigs_shell")
pytest.register_assert_rewrite("doc_list", "doc_output", "doc_page", "doc_settings", *RIGS)

from doc_blocks import blocks_of  # noqa: E402 - rewritten first
from doc_command import Commands  # noqa: E402
from doc_follow import DONE, follow_page  # noqa: E402

for rigs in RIGS:
    import_module(rigs)


@pytest.fixture(scope="session")
def commands() -> Iterator[Commands]:
    running = Commands()
    running.start()
    yield running
    running.close()


@pytest.fixture
def follow(commands: Commands, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch) -> Callable[[str], None]:
    """`follow(path)` runs, compares, parses or checks every block of a page, in a folder of its own."""

    def one(path: str) -> None:
        monkeypatch.chdir(tmp_path)
        done = follow_page(path, tmp_path, commands, request.getfixturevalue)
        assert len(done) == len(blocks_of(path))
        assert set(done) <= DONE

    return one
