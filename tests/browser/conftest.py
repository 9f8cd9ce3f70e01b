"""The browser that all tests of this folder share."""

from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser

from browser_rig import browsing


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """One Chromium for a whole run, since it takes seconds to start. A test opens a context of its own in it, with
    `looking`, which shares no cookie, cache or page with another."""
    async with browsing() as started:
        yield started
