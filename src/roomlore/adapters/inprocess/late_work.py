"""Durable work that is opened when it is first needed, so that who has none makes no tables for it."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import datetime

from roomlore.core.errors import Conflict, StorageUnavailable, describe
from roomlore.ports.durable import Dropped, DurableWork, Json, Work, WorkState, WorkStatus

log = logging.getLogger(__name__)


class LateWork:
    """The port `DurableWork` over the first of `choices` that this process can open; one that it cannot work for raises
    `Conflict` and the next one is taken. `working`: whether this process does work when it is opened by being used.
    Closed, it is opened by nothing but `open`."""

    def __init__(self, choices: Sequence[Callable[[], DurableWork]], *, working: bool) -> None:
        self._choices = tuple(choices)
        self._made: dict[int, DurableWork] = {}
        self._working = working
        self._works: dict[str, Work] = {}
        self._opened: DurableWork | None = None
        self._opened_working = False
        self._closed = False
        self._one = asyncio.Lock()

    def define(self, name: str, work: Work) -> None:
        self._works[name] = work

    async def open(self, *, working: bool) -> None:
        self._closed = False
        await self._open_once(working)

    def works(self) -> bool:
        return self._opened is not None and self._opened.works()

    async def start(self, name: str, *, work_id: str, partition: str, arguments: Json) -> bool:
        work = await self._ready()
        return await work.start(name, work_id=work_id, partition=partition, arguments=arguments)

    async def find(self, work_id: str) -> WorkState | None:
        return await (await self._ready()).find(work_id)

    async def page(
        self,
        *,
        names: Sequence[str] = (),
        status: WorkStatus | None = None,
        prefix: str = "",
        limit: int = 100,
        offset: int = 0,
    ) -> list[WorkState]:
        work = await self._ready()
        return await work.page(names=names, status=status, prefix=prefix, limit=limit, offset=offset)

    async def retry(self, work_id: str) -> bool:
        return await (await self._ready()).retry(work_id)

    async def wait(self, work_id: str, *, seconds: float) -> WorkState | None:
        return await (await self._ready()).wait(work_id, seconds=seconds)

    async def drop(self, *, prefix: str, tells: Callable[[str], bool]) -> Dropped:
        return await (await self._ready()).drop(prefix=prefix, tells=tells)

    async def expire(self, *, before: datetime) -> int:
        """Nothing is opened for it: what nobody uses does not grow."""
        return 0 if self._opened is None else await self._opened.expire(before=before)

    async def compact(self) -> None:
        await (await self._ready()).compact()

    async def close(self) -> None:
        self._closed = True
        async with self._one:
            await self._close()

    async def _ready(self) -> DurableWork:
        if self._opened is None:
            await self._open_once(self._working)
        assert self._opened is not None
        return self._opened

    async def _open_once(self, working: bool) -> None:
        async with self._one:
            if self._closed:
                raise StorageUnavailable("Durable work is closed, as is the roomlore that opened it.")
            if self._opened is not None and (self._opened_working or not working):
                return
            await self._close()
            self._opened, self._opened_working = await self._first(working), working

    async def _close(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            await opened.close()

    async def _first(self, working: bool) -> DurableWork:
        last = len(self._choices) - 1
        for place in range(last):
            try:
                return await self._open(place, working)
            except Conflict as error:
                log.warning("work is kept in this process alone", extra={"why": describe(error)})
        return await self._open(last, working)

    async def _open(self, place: int, working: bool) -> DurableWork:
        if place not in self._made:
            self._made[place] = await asyncio.to_thread(self._choices[place])  # it may load a library
        work = self._made[place]
        for name, does in self._works.items():
            work.define(name, does)
        await work.open(working=working)
        return work
