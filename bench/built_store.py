"""Stores of made-up rooms, really ingested and indexed, by several processes at once; what is there already is kept."""

import asyncio
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context

import roomlore
from bench.chatter import chat
from bench.made_up import MadeUpEmbedder
from bench.progress import Progress
from roomlore.core import DEFAULT_TENANT

BATCH = 1_000
_ROOMS_A_TASK = 10


@dataclass(frozen=True, slots=True)
class MadeUpRoom:
    """The room `room-<number>` and how many messages it has."""

    number: int
    messages: int

    @property
    def room_id(self) -> str:
        return f"room-{self.number}"

    def said(self) -> list[roomlore.Message]:
        """Rooms say different things in the same words."""
        return list(chat(self.room_id, self.messages, self.number, words=7))


def settings(vectors: str = "auto") -> roomlore.Settings:
    return roomlore.Settings(enable_async_data_collection=False, vectors=vectors)


async def build(url: str, rooms: Sequence[MadeUpRoom], vectors: str) -> None:
    """Adds what is missing of the rooms, and gives every message its vector."""
    await fill(url, rooms)
    async with roomlore.open(url, settings=settings(vectors), embedder=MadeUpEmbedder(), background=False) as lore:
        total = (await lore.index.status()).waiting
        progress, done = Progress("vectors", total), 0
        async for step in lore.index.drain():
            done = step.done
            progress.at(done)
        progress.end(done)


async def fill(url: str, rooms: Sequence[MadeUpRoom], *, plain: bool = False) -> None:
    """Adds what is missing of the rooms; with `plain` no vectors are owed for them."""
    async with opened(url, plain=plain) as lore:
        missing = [room for room in rooms if await _held(lore, room) < room.messages]
    await asyncio.to_thread(_fill, url, missing, plain)


def opened(url: str, *, plain: bool = False) -> AbstractAsyncContextManager[roomlore.Lore]:
    used = roomlore.Settings(enable_async_data_collection=False, embeddings="off") if plain else settings()
    return roomlore.open(url, settings=used, embedder=None if plain else MadeUpEmbedder(), background=False)


async def _held(lore: roomlore.Lore, room: MadeUpRoom) -> int:
    async with lore.storage.reading(DEFAULT_TENANT) as work:
        found = await work.rooms.find(room_id=room.room_id)
    return found.messages if found else 0


def _fill(url: str, rooms: Sequence[MadeUpRoom], plain: bool) -> None:
    tasks = [rooms[at : at + _ROOMS_A_TASK] for at in range(0, len(rooms), _ROOMS_A_TASK)]
    progress, done = Progress("messages", sum(room.messages for room in rooms)), 0
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as workers:
        for added in workers.map(partial(_add, url, plain), tasks):
            done += added
            progress.at(done)
    progress.end(done)


def _add(url: str, plain: bool, rooms: Sequence[MadeUpRoom]) -> int:
    return asyncio.run(_add_all(url, plain, rooms))


async def _add_all(url: str, plain: bool, rooms: Sequence[MadeUpRoom]) -> int:
    async with opened(url, plain=plain) as lore:
        for room in rooms:
            messages = room.said()
            for at in range(0, len(messages), BATCH):
                await lore.messages.add(messages[at : at + BATCH])
    return sum(room.messages for room in rooms)
