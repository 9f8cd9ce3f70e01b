"""A model that answers once it may."""

import asyncio

from roomlore_testkit.model_server import Asked

MAX_SECONDS = 60
"""For what comes at once, on a busy machine too."""


class Gate:
    """The script of a model server on this loop. `open`: set from the beginning; without it, requests wait."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.open.set()
        self._come = asyncio.Semaphore(0)

    async def __call__(self, _: Asked) -> str:
        self._come.release()
        await self.open.wait()
        return "绿茶 green tea"

    async def until_asked(self, times: int) -> None:
        """That many more requests have come; raises `TimeoutError` where they do not."""
        async with asyncio.timeout(MAX_SECONDS):
            for _ in range(times):
                await self._come.acquire()
