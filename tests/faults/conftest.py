"""What the tests of killed processes share: a database of each engine, and servers on it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from served import Servers


@pytest.fixture(params=["sqlite_url", "postgres_url"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


@pytest.fixture
async def servers(url: str, tmp_path: Path) -> AsyncIterator[Servers]:
    started = Servers(url, tmp_path)
    yield started
    await started.close()
