"""What is loaded is not looked through for garbage while requests are served."""

import asyncio
import gc
from collections.abc import Callable
from typing import TypeVar

import httpx
import pytest

from roomlore.settings import Settings
from roomlore_server.http import serve

T = TypeVar("T")


async def while_served(read: Callable[[], T]) -> T:
    """Serve a request, and return what was read meanwhile."""
    at = asyncio.get_running_loop().create_future()
    running = asyncio.ensure_future(serve(Settings(database_url="sqlite://", port=0), listening=at.set_result))
    async with httpx.AsyncClient(base_url=await at) as http:
        assert (await http.get("/health/live")).status_code == 200
        found = read()
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
    assert await while_served(gc.get_freeze_count) > 10_000
    assert gc.get_freeze_count() == 0


async def test_what_a_program_froze_stays_frozen():
    gc.freeze()
    assert await while_served(gc.get_freeze_count) > 10_000
    assert gc.get_freeze_count() > 10_000


@pytest.mark.parametrize(
    ("of_the_program", "meanwhile"),
    [((700, 10, 10), (10_000, 10, 10)), ((50_000, 5, 7), (50_000, 5, 7)), ((0, 10, 10), (0, 10, 10))],
)
async def test_collections_are_rare_while_requests_are_served(of_the_program, meanwhile):
    before = gc.get_threshold()
    try:
        gc.set_threshold(*of_the_program)
        assert await while_served(gc.get_threshold) == meanwhile
        assert gc.get_threshold() == of_the_program
    finally:
        gc.set_threshold(*before)
