"""The process that `crash` kills: it adds messages, asks for replies and extracts memories until it is ended.

It says on its pipe what it begins and what it was told is done. Nothing is kept in it from one life to the next.
"""

import asyncio
import logging
import os
import random
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal

import roomlore
from bench.crash_items import ROOMS, item
from bench.crash_model import MEMORIES, REPLIES
from roomlore import Settings
from roomlore.core.chat import SUMMARY_MODEL

_NEVER = 1 << 40
_BY_NAME = {room.name: room for room in ROOMS}


@dataclass(frozen=True, slots=True)
class Task:
    """One life. `first`: where each room goes on. `last`: before which number it stops, for a life that only hands in
    what is open. `again`: numbers that were acknowledged and are handed in once more. `log`: where stderr goes."""

    url: str
    model_url: str
    seed: str
    log: str
    first: Mapping[str, int]
    again: Mapping[str, Sequence[int]]
    last: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """A message of a victim. `what`: 'begun' (it runs), 'open', 'handing in' (a number of a room), 'done' (it was told
    so), 'idle' (all numbers up to the last are done), 'closing'. `gave`: what it was told that is to be checked,
    such as a reply's id and text."""

    what: Literal["begun", "open", "handing in", "done", "idle", "closing"]
    room: str = ""
    number: int = 0
    gave: tuple[str, str] | None = None


def settings(model_url: str) -> Settings:
    models: dict[str, Any] = {
        "chat": {"providers": [{"name": "scripted", "model_id": REPLIES}]},
        SUMMARY_MODEL: {"internal": True, "providers": [{"name": "scripted", "model_id": MEMORIES}]},
    }
    return Settings(models=models, providers={"scripted": {"base_url": model_url}}, durable_work="dbos")


def live(pipe: Connection, task: Task) -> None:
    """Until 'end' comes on the pipe, or SIGKILL."""
    Replying(pipe, task).live()


class Victim(ABC):
    """One life. `rooms`: by name, where something is handed in; `most_pause_seconds`: between two things there."""

    rooms: Sequence[str]
    most_pause_seconds = 0.12

    def __init__(self, pipe: Connection, task: Task) -> None:
        self._pipe = pipe
        self._task = task
        self._chance = random.Random(task.seed)

    def live(self) -> None:
        """Until 'end' comes on the pipe, or SIGKILL."""
        os.setsid()
        with Path(self._task.log).open("ab", buffering=0) as log:
            os.dup2(log.fileno(), sys.stderr.fileno())
        _tell_why()
        self._pipe.send(Said("begun"))
        asyncio.run(self._live())

    @abstractmethod
    def opened(self) -> AbstractAsyncContextManager[roomlore.Lore]:
        """roomlore on the task's database."""

    @abstractmethod
    async def hand_in(self, lore: roomlore.Lore, room: str, number: int) -> tuple[str, str] | None:
        """Does what a number of a room stands for; what it gave, where that is to be checked."""

    def last(self, room: str) -> int | None:
        """Return before which number the room ends in this life, None where it goes on until the kill."""
        return self._task.last[room] if self._task.last else None

    async def ready(self, room: str, number: int) -> None:  # noqa: B027
        """Wait until the number may be handed in: at once, but where a life says otherwise."""

    async def _live(self) -> None:
        ended = asyncio.Event()
        asyncio.get_running_loop().add_reader(self._pipe.fileno(), ended.set)
        async with self.opened() as lore:
            self._pipe.send(Said("open"))
            talks = [asyncio.ensure_future(self._talk(lore, room)) for room in self.rooms]
            await self._until(ended, talks)
            self._pipe.send(Said("closing"))
            for talk in talks:
                talk.cancel()
            await asyncio.gather(*talks, return_exceptions=True)

    async def _until(self, ended: asyncio.Event, talks: Sequence["asyncio.Future[None]"]) -> None:
        """Raises what a room's talk raised."""
        waiting: asyncio.Future[Any] = asyncio.ensure_future(ended.wait())
        pending: set[asyncio.Future[Any]] = {waiting, *talks}
        while waiting in pending:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            if pending == {waiting}:
                self._pipe.send(Said("idle"))

    async def _talk(self, lore: roomlore.Lore, room: str) -> None:
        first, last = self._task.first[room], self.last(room)
        for number in self._task.again[room]:
            await self._tell(lore, room, number)
        for number in range(first, _NEVER if last is None else last):
            await asyncio.sleep(self._chance.uniform(0, self.most_pause_seconds))
            await self._tell(lore, room, number)

    async def _tell(self, lore: roomlore.Lore, room: str, number: int) -> None:
        await self.ready(room, number)
        self._pipe.send(Said("handing in", room, number))
        gave = await self.hand_in(lore, room, number)
        self._pipe.send(Said("done", room, number, gave))


def _tell_why() -> None:
    telling = logging.StreamHandler()
    telling.setLevel(logging.WARNING)
    telling.setFormatter(logging.Formatter("%(message)s %(job)s %(why)s", defaults={"job": "", "why": ""}))
    logging.getLogger().addHandler(telling)


class Replying(Victim):
    """It talks, and replies are asked for."""

    rooms = tuple(room.name for room in ROOMS)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[roomlore.Lore]:
        async with roomlore.open(self._task.url, settings=settings(self._task.model_url)) as lore:
            for room in ROOMS:
                if room.session:
                    await lore.sessions.create_session(room.name, "person-0")
            yield lore

    async def hand_in(self, lore: roomlore.Lore, room: str, number: int) -> tuple[str, str] | None:
        given = item(_BY_NAME[room], number)
        if not given.agent:
            await lore.messages.add(given.messages)
            return None
        reply = await lore.replies.reply(given.messages[0], agent_id=given.agent, model_id="chat")
        return reply.reply_id, reply.text
