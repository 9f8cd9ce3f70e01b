"""A store with something in nearly every table for tests that move it, and what it answers."""

import asyncio
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta

from bench.moved_answers import Answers, asked
from sqlalchemy import BigInteger, Text, create_engine, insert, make_url

import roomlore
from migrations.record_built import converse, remember, said, talk
from roomlore.storage.schema import metadata
from roomlore_testkit.embedding import HashEmbedder

OFTEN = "kettle " * 300 + "tea " * 3
"""One word more often than PostgreSQL counts in a message."""
QUESTIONS = ("deploy 部署", "内存", "noon bar", "kettle", "who fixed it?", "budget 预算", "stand-up on Monday")
SCOPES = ("user:ann", "group:tea", "group:den")
_NOW = datetime.now(UTC) + timedelta(days=1)
SETTINGS = roomlore.Settings(enable_async_data_collection=False)


def opened(url: str, settings: roomlore.Settings = SETTINGS) -> AbstractAsyncContextManager[roomlore.Lore]:
    return roomlore.open(url, settings=settings, embedder=HashEmbedder(), background=False)


async def fill(url: str, *, more: int = 30) -> None:
    """`more`: how many messages one of the rooms has."""
    async with opened(url, roomlore.Settings()) as lore:
        await talk(lore)
        await remember(lore)
        await converse(lore)
        await lore.messages.add(said("tea", 40, "Ann", OFTEN))
        await lore.messages.add(
            [said("den", number, "Bo", f"Message {number} 消息 of the den") for number in range(more)]
        )
        await lore.keys.create("console", scopes=["read"])
        await lore.quotas.set(messages_a_day=1000)
        await lore.for_tenant("acme").messages.add(said("tea", 1, "Zed", "another tenant 别的租户"))
        for number in range(6):
            await lore.memories.add("group:den", f"Memory {number} of the kettle 茶壶", kind="group")
        await index(lore)
        await lore.messages.add(said("tea", 41, "Bo", "this one has no vector yet"))
        await lore.memories.add("user:bo", "Bo's memory has no vector yet")
    await asyncio.to_thread(_fill_rest, url)


def _fill_rest(url: str) -> None:
    """Put a row into tables that stay empty else, and that `verify` does not look at."""
    place = make_url(url)
    engine = create_engine(place if place.drivername == "sqlite" else place.set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        for name in ("signing_keys", "import_positions", "thread_titles", "rooms_due"):
            values = {column.name: _MADE_UP[type(column.type)] for column in metadata.tables[name].c}
            connection.execute(insert(metadata.tables[name]).values(values))
    engine.dispose()


_MADE_UP = {Text: "茶\u00e9 \U0001f375", BigInteger: 1}


async def index(lore: roomlore.Lore) -> None:
    async for _ in lore.index.drain():
        pass


async def answers(url: str) -> Answers:
    async with opened(url) as lore:
        rooms = [room.room_id for room in await lore.rooms.page()]
        contexts = [(room, entry.id) for room in rooms async for entry in lore.messages.export(room)]
        return await asked(
            lore,
            contexts=contexts[::3],
            searches=[(room, question) for room in rooms for question in QUESTIONS],
            recalls=[(scope, question) for scope in SCOPES for question in QUESTIONS],
            past=[(scope, at) for scope in SCOPES for at in (_NOW, _NOW - timedelta(days=2))],
        )
