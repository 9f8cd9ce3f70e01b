"""A stand-in of a chat platform at a loopback port, and what happens there while a page's bot runs."""

import asyncio
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from aiohttp import web
from doc_page import Page

_SECONDS = 200
_BOT = """#!/bin/sh
case "$1" in
{programs}
esac
exec {python} "$@"
"""


class StandIn:
    """Of it one platform is made. `happens`: what people do there, from when the bot is there; its end ends the bot.

    `url`: where it answers. `said`: the bot's messages by id, as they are now. `outcome`: of `happens`.
    """

    def __init__(self) -> None:
        self.url = ""
        self.said: dict[str, dict[str, Any]] = {}
        self.outcome: Future[Any] = Future()
        self.app = web.Application()
        self.app.router.add_get("/over", self._over)
        self._ended = asyncio.Event()
        self._happening: asyncio.Task[None] | None = None

    async def happens(self) -> None:
        raise NotImplementedError

    def begin(self) -> None:
        """The bot is there."""
        if self._happening is None:
            self._happening = asyncio.create_task(self._happen())

    async def _happen(self) -> None:
        try:
            async with asyncio.timeout(_SECONDS):
                self.outcome.set_result(await self.happens())
        except TimeoutError:
            self.outcome.set_exception(TimeoutError(f"it did not come to that; the bot said {self.said}"))
        except BaseException as error:  # noqa: BLE001 - it is raised where the page's test waits for it
            self.outcome.set_exception(error)
        finally:
            self._ended.set()

    async def _over(self, _: web.Request) -> web.Response:
        await self._ended.wait()
        return web.Response()

    async def start(self) -> web.AppRunner:
        runner = web.AppRunner(self.app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        return runner


@contextmanager
def beside(stand_in: StandIn) -> Iterator[None]:
    """It answers, on a thread of its own; at the end what went wrong there is raised."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="stand-in", daemon=True)
    thread.start()
    runner = asyncio.run_coroutine_threadsafe(stand_in.start(), loop).result()
    try:
        yield
        stand_in.outcome.result(0)
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def start_bots(page: Page, stand_ins: Mapping[str, StandIn]) -> None:
    """`python PROGRAM` in the page starts each as it stands, and ends it with a signal once all has happened."""
    page.program("doc_bot", page.forked)
    programs = "\n".join(
        f'{program}) STAND_IN={stand_in.url} exec doc_bot "$@" ;;' for program, stand_in in stand_ins.items()
    )
    page.program("python", _BOT.format(programs=programs, python=sys.executable))
