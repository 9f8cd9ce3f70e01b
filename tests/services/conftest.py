from collections.abc import AsyncIterator

import pytest

import roomlore
from engines import ENGINES


@pytest.fixture(params=ENGINES)
def storage_url(request: pytest.FixtureRequest) -> str:
    """The address of an empty store, on each engine in turn. A store in memory is what `lore` is; the contracts of the
    storage hold on it too."""
    return str(request.getfixturevalue(request.param))


@pytest.fixture
async def lore() -> AsyncIterator[roomlore.Lore]:
    async with roomlore.open("sqlite://", settings=roomlore.Settings()) as opened:
        yield opened
