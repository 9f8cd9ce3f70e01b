"""Imported by the process that others are forked from: what each of them would load. No thread and no file is left."""

import asyncio
import logging

import psycopg_pool  # noqa: F401
import pytest  # noqa: F401 - multiprocessing imports the main module of whoever starts a process

import roomlore
import roomlore.adapters.chat.client
import roomlore.adapters.dbos.client
import roomlore.surfaces.cli
from roomlore_console.frame import compile_pages


async def warm() -> None:
    settings = roomlore.Settings(durable_work="process")
    async with roomlore.open("sqlite://", settings=settings, background=False) as lore:
        await lore.messages.add(roomlore.Message(id="m", room_id="r", sender_id="ann", text="What was 周五 like?"))


logging.disable()
asyncio.run(warm())
compile_pages()
logging.disable(logging.NOTSET)
