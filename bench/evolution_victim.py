"""The process that `crash --what evolution` kills: it adds messages and evolves groups until it is ended."""

from contextlib import AbstractAsyncContextManager, suppress
from multiprocessing.connection import Connection
from typing import Any

import roomlore
from bench.crash_victim import Task, Victim
from bench.evolution_items import ROOMS, Room, act, edited, messages, report_of
from bench.evolution_model import EVOLUTIONS
from roomlore import Conflict, Settings
from roomlore.core.chat import EVOLVE_MODEL
from roomlore.services.evolution import evolution_service
from roomlore.services.indexing import index_state
from roomlore_testkit.embedding import HashEmbedder

LEASE_SECONDS = 2.0
_DAYS = 3_650
_EVERY_MINUTE = "* * * * *"
_BY_NAME = {room.name: room for room in ROOMS}


def settings(model_url: str, *, schedule: str = _EVERY_MINUTE) -> Settings:
    """Every minute the schedule evolves what has two new messages or more."""
    models: dict[str, Any] = {
        EVOLVE_MODEL: {"internal": True, "providers": [{"name": "scripted", "model_id": EVOLUTIONS}]}
    }
    return Settings(
        models=models,
        providers={"scripted": {"base_url": model_url}},
        durable_work="dbos",
        evolve_schedule=schedule,
        evolve_people=False,
    )


def live(pipe: Connection, task: Task) -> None:
    """Until 'end' comes on the pipe, or SIGKILL."""
    Evolving(pipe, task).live()


class Evolving(Victim):
    """It talks, and memories evolve. What evolves is no part of what is handed in again: a call makes another one."""

    rooms = tuple(room.name for room in ROOMS)

    def opened(self) -> AbstractAsyncContextManager[roomlore.Lore]:
        """The last life hands in what is left, and no schedule makes more of it."""
        index_state.LEASE_SECONDS = evolution_service.LEASE_SECONDS = LEASE_SECONDS
        evolution_service.LEAST_MESSAGES = 2
        schedule = "" if self._task.last else _EVERY_MINUTE
        given = settings(self._task.model_url, schedule=schedule)
        return roomlore.open(self._task.url, settings=given, embedder=HashEmbedder())

    async def hand_in(self, lore: roomlore.Lore, room: str, number: int) -> tuple[str, str] | None:
        here = _BY_NAME[room]
        does = act(here, number)
        if not does:
            await lore.messages.add(messages(here, number))
            return None
        if number < self._task.first[room]:
            return None
        if does == "begin":
            begun = await lore.memories.begin_evolution(here.scope, days=_DAYS, mode="llm")
            return begun.job_id, begun.evolution_id
        return await (_evolve(lore, here) if does == "evolve" else _edit(lore, here, number))


async def _evolve(lore: roomlore.Lore, room: Room) -> tuple[str, str]:
    """Its id and what it told; nothing where there was nothing to read, or where somebody was quicker three times."""
    try:
        result = await lore.memories.evolve(room.scope, days=_DAYS, mode="llm")
    except Conflict:
        return "", ""
    return (result.evolution_id, report_of(result)) if result.messages else ("", "")


async def _edit(lore: roomlore.Lore, room: Room, number: int) -> tuple[str, str]:
    """The id of the version that it made and its statement; nothing where there was none to change."""
    for memory in await lore.memories.page(room.scope, limit=1):
        statement = edited(f"{room.name}/{number}")
        with suppress(Conflict):
            return (await lore.memories.update(memory.memory_id, statement=statement)).memory_id, statement
    return "", ""
