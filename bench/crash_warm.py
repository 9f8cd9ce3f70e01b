"""Imported by the server that the processes of `crash` are forked from: what a process loads when it is first used is
loaded here, since it would be most of their lives. All of it is closed again, and no thread is left.
"""

import asyncio
import logging
from contextlib import suppress

import psycopg  # noqa: F401

import roomlore
import roomlore.adapters.dbos.client
from bench.crash_items import ROOMS, item
from bench.crash_victim import settings
from roomlore import ModelUnavailable

_NOBODY = "http://127.0.0.1:9/v1"


async def warm() -> None:
    """A little of everything, on a database in memory and with a model that is not there."""
    given = settings(_NOBODY).changed(durable_work="process")
    async with roomlore.open("sqlite://", settings=given, background=False) as lore:
        for room in ROOMS:
            await lore.messages.add(item(room, 0).messages)
        with suppress(ModelUnavailable):
            await lore.replies.reply(item(ROOMS[-1], 1).messages[0], model_id="chat")


logging.disable()
asyncio.run(warm())
logging.disable(logging.NOTSET)
