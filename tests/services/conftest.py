from collections.abc import AsyncIterator

import pytest

import roomlore


@pytest.fixture
async def lore() -> AsyncIterator[roomlore.Lore]:
    async with roomlore.open("sqlite://", settings=roomlore.Settings()) as opened:
        yield opened
