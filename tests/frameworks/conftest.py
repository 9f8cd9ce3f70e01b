"""Tests inside real frameworks, each in an environment of its own: `make test-frameworks`."""

from pathlib import Path

import pytest

import roomlore

HERE = Path(__file__).parent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Only whoever names this folder means it: `make tests` has none of these frameworks."""
    named = (Path(argument.split("::")[0]).resolve() for argument in config.args)
    return None if any(HERE in (path, *path.parents) for path in named) else True


@pytest.fixture
async def lore():
    async with roomlore.open("sqlite://", background=False) as opened:
        yield opened
