"""The port `DurableWork` on DBOS: the desk for handing work in and looking at it, the runtime for doing it."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime

from roomlore.adapters.dbos.desk import Desk
from roomlore.adapters.dbos.places import Place
from roomlore.adapters.dbos.runtime import Member, Rules, Runtime, join, leave
from roomlore.adapters.dbos.troubles import quieten
from roomlore.core.errors import InvalidInput, StorageUnavailable
from roomlore.core.plain import plain
from roomlore.ports.durable import ENDED, Dropped, Json, Work, WorkState, WorkStatus

_FIRST_LOOK_SECONDS = 0.02
_LONGEST_LOOK_SECONDS = 0.25
_BREAK_OFF_SECONDS = 2.0
"""What does not end by then waits for a database that is down."""


class DbosWork:
    """Made by `open_dbos`; belongs to the event loop on which it is opened. Closed, it can be opened again."""

    def __init__(self, place: Place, rules: Rules) -> None:
        self._place, self._rules = place, rules
        self._works: dict[str, Work] = {}
        self._open_desk: Desk | None = None
        self._member: Member | None = None
        self._runtime: Runtime | None = None

    def define(self, name: str, work: Work) -> None:
        self._works[name] = work

    async def open(self, *, working: bool) -> None:
        """Broken off, it comes to its end all the same, and is closed: the threads it waits on cannot be broken off."""
        opening = asyncio.ensure_future(self._begin(working))
        try:
            await asyncio.shield(opening)
        except asyncio.CancelledError:
            await _whatever_comes(asyncio.ensure_future(self._undo(opening)))
            raise

    async def _begin(self, working: bool) -> None:
        quieten()
        desk = self._open_desk = Desk(self._place)
        try:
            await asyncio.to_thread(desk.prepare)
            if working:
                member = Member(dict(self._works), asyncio.get_running_loop(), desk, self._rules.pauses_seconds)
                self._runtime = await asyncio.to_thread(join, self._place, self._rules, member)
                self._member = member
        except BaseException:
            await self.close()
            raise

    async def _undo(self, opening: asyncio.Future[None]) -> None:
        await asyncio.wait([opening])
        await self.close()

    def works(self) -> bool:
        return self._runtime is not None and self._runtime.seated

    async def start(self, name: str, *, work_id: str, partition: str, arguments: Json) -> bool:
        if not work_id.strip() or not partition:
            raise InvalidInput("Work needs an id and a partition that are not empty.")
        given = plain(arguments, what="The arguments of work")
        return await asyncio.to_thread(self._desk.enqueue, name, work_id, partition, given)

    async def find(self, work_id: str) -> WorkState | None:
        return await asyncio.to_thread(self._desk.find, work_id)

    async def page(
        self,
        *,
        names: Sequence[str] = (),
        status: WorkStatus | None = None,
        prefix: str = "",
        limit: int = 100,
        offset: int = 0,
    ) -> list[WorkState]:
        if limit < 1:
            return []
        return await asyncio.to_thread(self._desk.page, names, status, prefix, limit, offset)

    async def retry(self, work_id: str) -> bool:
        return await asyncio.to_thread(self._desk.begin_again, work_id)

    async def wait(self, work_id: str, *, seconds: float) -> WorkState | None:
        loop = asyncio.get_running_loop()
        until, pause = loop.time() + seconds, _FIRST_LOOK_SECONDS
        while (state := await self.find(work_id)) and state.status not in ENDED and loop.time() < until:
            await asyncio.sleep(max(min(pause, until - loop.time()), 0))
            pause = min(pause * 1.5, _LONGEST_LOOK_SECONDS)
        return state

    async def drop(self, *, prefix: str, tells: Callable[[str], bool]) -> Dropped:
        return await asyncio.to_thread(self._desk.drop, prefix, tells)

    async def expire(self, *, before: datetime) -> int:
        return await asyncio.to_thread(self._desk.expire, before)

    async def compact(self) -> None:
        await asyncio.to_thread(self._desk.compact)

    async def close(self) -> None:
        member, self._member, self._runtime = self._member, None, None
        if member:
            await self._let_end(member)
            await asyncio.to_thread(leave, member)
        desk, self._open_desk = self._open_desk, None
        if desk:
            await asyncio.to_thread(desk.close)

    async def _let_end(self, member: Member) -> None:
        member.leaving = True
        loop = asyncio.get_running_loop()
        until = loop.time() + self._rules.grace_seconds
        while member.runs and loop.time() < until + _BREAK_OFF_SECONDS:
            for run in list(member.runs):
                run.stop(at_once=loop.time() > until)
            await asyncio.sleep(_FIRST_LOOK_SECONDS)

    @property
    def _desk(self) -> Desk:
        if self._open_desk is None:
            raise StorageUnavailable("Durable work is not open; open it first.")
        return self._open_desk


async def _whatever_comes(task: asyncio.Future[None]) -> None:
    """Waits for it, however often who waits is told to stop."""
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([task])
