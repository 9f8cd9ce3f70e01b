"""The schedule: at the times of a cron expression every group with enough new messages is evolved.

Which time was last seen to is stored, so a time that nobody was there for is made up on the next start, and every
worker may look: the ids of what is handed in follow from the scope and the time.
"""

import hashlib
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Protocol

from roomlore.ports.coordination import Clock
from roomlore.ports.memories import RoomBehind
from roomlore.ports.storage import Storage
from roomlore.services.evolution.piece import EVOLUTION, Piece
from roomlore.services.evolution.service import EvolutionService

MARK = "schedule:evolution"
_NOWHERE = {"tenant": "", "room_id": ""}
_FIRST_DAYS = 7.0
"""How far back a group begins: far enough for one that talks little, and not with all that was imported."""
_PAGE = 100


class Times(Protocol):
    """When it is time."""

    def last(self, now: datetime) -> datetime:
        """The last time at or before `now`, UTC."""


class Schedule:
    """The schedule of all tenants. `times`: None where nothing is evolved by itself. `least`: new messages that make a
    group evolve."""

    def __init__(
        self, *, storage: Storage, evolutions: EvolutionService, clock: Clock, times: Times | None, least: int
    ) -> None:
        self._storage = storage
        self._evolutions = evolutions
        self._clock = clock
        self._times = times
        self._least = least

    async def sweep(self) -> list[str]:
        """Hands in what the last time asks for, unless that was done, and says the ids of that work."""
        if self._times is None:
            return []
        mark = await self._mark()
        if mark is None:
            await self._move(int(self._clock.now().timestamp()), was=0)
            return []
        tick = int(self._times.last(self._clock.now()).timestamp())
        if tick <= mark:
            return []
        handed_in = [await self._hand_in(room, tick) async for room in self._behind()]
        await self._move(tick, was=mark)
        return handed_in

    async def _mark(self) -> int | None:
        """Up to when it was seen to; None in a database that is new to it."""
        async with self._storage.reading() as work:
            return (await work.watermarks.find(**_NOWHERE, names=[MARK])).get(MARK)

    async def _move(self, tick: int, *, was: int) -> None:
        """Nothing happens where another worker did."""
        async with self._storage.writing() as work:
            await work.watermarks.move(**_NOWHERE, name=MARK, arrival=tick, was=was, now=self._clock.now())

    async def _behind(self) -> AsyncIterator[RoomBehind]:
        after = ("", "")
        while True:
            async with self._storage.reading() as work:
                page = await work.watermarks.behind(name=EVOLUTION, least=self._least, after=after, limit=_PAGE)
            for room in page:
                if room.mark or await self._has_said_enough(room):
                    yield room
            if len(page) < _PAGE:
                return
            after = (page[-1].tenant, page[-1].room_id)

    async def _has_said_enough(self, room: RoomBehind) -> bool:
        """Whether a room that never evolved said so much lately: what lies before is history."""
        here = {"tenant": room.tenant, "room_id": room.room_id}
        async with self._storage.reading() as work:
            first = await work.messages.first_since(**here, since=self._clock.now() - timedelta(days=_FIRST_DAYS))
            return first is not None and await work.messages.count(**here, after=first - 1) >= self._least

    async def _hand_in(self, room: RoomBehind, tick: int) -> str:
        scope = f"group:{room.room_id}"
        piece = Piece.of(
            tenant=room.tenant,
            scope=scope,
            days=_FIRST_DAYS,
            mode="auto",
            evolution_id=scheduled_id(room.tenant, scope, tick),
            goes_on=max(self._least, 1),
        )
        await self._evolutions.hand_in(piece)
        return piece.work_id


def scheduled_id(tenant: str, scope: str, tick: int) -> str:
    """The id of the evolution of a scope that a time asks for, which sorts by that time among other ids."""
    own = hashlib.sha256("\0".join((tenant, scope)).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{tick * 1000:012x}8{own[:19]}"
