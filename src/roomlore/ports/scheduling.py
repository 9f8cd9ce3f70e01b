"""Schedules: each time is handled once, whichever process looks, for the rooms with new messages. All services share
this."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from roomlore.ports.coordination import Clock
from roomlore.ports.storage import RoomBehind, Storage

_NOWHERE = {"tenant": "", "room_id": ""}
_PAGE = 100


class Times(Protocol):
    """The times of the schedule."""

    def last(self, now: datetime) -> datetime:
        """Return the last time at or before `now`, UTC."""


@dataclass(frozen=True, slots=True)
class Due:
    """A scheduled time that was not handled. `tick`: the time, in seconds since 1970. `mark`: the one handled last."""

    tick: int
    mark: int


class Ticks:
    """The times of one schedule. `times`: None if there is no schedule. `mark`: the name of the watermark of the last
    time that was handled."""

    def __init__(self, *, storage: Storage, clock: Clock, times: Times | None, mark: str) -> None:
        self._storage = storage
        self._clock = clock
        self._times = times
        self._mark = mark

    async def due(self) -> Due | None:
        """Return the last scheduled time, unless it was handled. A new database begins with the next one."""
        if self._times is None:
            return None
        async with self._storage.reading() as work:
            mark = (await work.progress.marks(**_NOWHERE, names=[self._mark])).get(self._mark)
        if mark is None:
            await self._move(int(self._clock.now().timestamp()), was=0)
            return None
        tick = int(self._times.last(self._clock.now()).timestamp())
        return Due(tick, mark) if tick > mark else None

    async def handled(self, due: Due) -> None:
        """Move the mark; do nothing if another process moved it."""
        await self._move(due.tick, was=due.mark)

    async def _move(self, tick: int, *, was: int) -> None:
        async with self._storage.writing() as work:
            await work.progress.move_mark(**_NOWHERE, name=self._mark, arrival=tick, was=was, now=self._clock.now())


async def rooms_behind(storage: Storage, name: str, least: int) -> AsyncIterator[RoomBehind]:
    """Yield the rooms of all tenants with so many messages above their mark of this name."""
    after = ("", "")
    while True:
        async with storage.reading() as work:
            page = await work.progress.rooms_behind(name=name, least=least, after=after, limit=_PAGE)
        for room in page:
            yield room
        if len(page) < _PAGE:
            return
        after = (page[-1].tenant, page[-1].room_id)
