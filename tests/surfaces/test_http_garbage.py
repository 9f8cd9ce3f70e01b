"""What is loaded is not looked through for garbage while requests are served."""

import asyncio
import gc

import httpx
import pytest

from roomlore.settings import Settings
from roomlore.surfaces.http import serve


async def frozen_while_served() -> int:
    """Serve a request, and return how many objects were frozen meanwhile."""
    at = asyncio.get_running_loop().create_future()
    running = asyncio.ensure_future(serve(Settings(database_url="sqlite://", port=0), listening=at.set_result))
    async with httpx.AsyncClient(base_url=await at) as http:
        assert (await http.get("/health/live")).status_code == 200
        found = gc.get_freeze_count()
    running.cancel()
    await asyncio.wait([running])
    return found


@pytest.fixture
def nothing_frozen():
    """As most programs are. These tests freeze what they have collected (see `conftest.py`)."""
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.mark.usefixtures("nothing_frozen")
async def test_what_is_loaded_is_frozen_while_requests_are_served():
    assert await frozen_while_served() > 10_000
    assert gc.get_freeze_count() == 0


async def test_what_a_program_froze_stays_frozen():
    gc.freeze()
    assert await frozen_while_served() > 10_000
    assert gc.get_freeze_count() > 10_000
