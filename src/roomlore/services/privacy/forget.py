"""Forgetting a person, from the first place to the last look.

What follows from a person's messages goes before the messages do: whoever goes on after a kill still knows by them what
to look for. Finished work goes first of all, and once more at the end, since work that ran meanwhile may have ended.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

from roomlore.core.errors import CacheUnavailable, StorageUnavailable, describe
from roomlore.core.privacy.report import ForgetReport
from roomlore.core.work import owner_prefix
from roomlore.ports.coordination import Clock
from roomlore.ports.durable import DurableWork
from roomlore.ports.privacy import Upkeep
from roomlore.ports.storage import Storage
from roomlore.services.privacy.memories import MemoriesWithout
from roomlore.services.privacy.messages import MessagesWithout
from roomlore.services.privacy.person import Person, gather
from roomlore.services.privacy.rows import RowsWithout, still
from roomlore.services.privacy.tally import Tally

_WAIT_SECONDS = 10.0
_ROUNDS = 3
"""How often what came in meanwhile is gone after."""
_RUNNING = "Work that read the person's words runs just now; forget again when it has ended."
_CACHE = "The session cache does not answer; its entries go by themselves after session_ttl_seconds."
_WRITES = "They write just now; forget again when they have ended."
_PAGES = "Free pages and the write-ahead log could not be given back; forget again when no other program is reading."

log = logging.getLogger(__name__)


class CachedSessions(Protocol):
    """What is kept of sessions beside the database."""

    async def drop(self, *, tenant: str, conversation_id: str) -> None:
        """Forgets a session's; raises `CacheUnavailable`."""


class Forgetter:
    """For all tenants. One call at a time in this process; two processes at once do no harm."""

    def __init__(
        self,
        *,
        storage: Storage,
        upkeep: Upkeep,
        durable: DurableWork,
        sessions: CachedSessions,
        memories: MemoriesWithout,
        messages: MessagesWithout,
        rows: RowsWithout,
        clock: Clock,
    ) -> None:
        self._storage = storage
        self._upkeep = upkeep
        self._durable = durable
        self._sessions = sessions
        self._memories = memories
        self._messages = messages
        self._rows = rows
        self._clock = clock
        self._one = asyncio.Lock()

    async def forget(self, *, tenant: str, user_id: str, dry_run: bool, same_words: bool = False) -> ForgetReport:
        async with self._one:
            begun, tally = self._clock.now(), Tally(dry=dry_run)
            person = await gather(self._storage, tenant=tenant, user_id=user_id, same_words=same_words)
            checked = await (self._count(person, tally) if dry_run else self._forget(person, tally))
            report = self._report(person, tally, checked, begun)
        if not dry_run:
            _tell(tenant, report)
        return report

    async def _count(self, person: Person, tally: Tally) -> dict[str, int]:
        await self._memories.rewrite(person, tally)
        await self._rows.rewrite(person, tally)
        await self._messages.rewrite_others(person, tally)
        await self._messages.erase(person, tally)
        return {}

    async def _forget(self, person: Person, tally: Tally) -> dict[str, int]:
        await self._drop_cached(person, tally)
        await self._drop_work(person, tally)
        await self._rewrite(person, tally)
        await self._messages.erase(person, tally)
        person = await self._go_after(person, tally)
        await self._drop_work(person, tally)
        checked = await self._follow_up(person, tally)
        await self._drop_cached(person, tally)
        await self._compact(tally)
        return checked

    async def _rewrite(self, person: Person, tally: Tally) -> None:
        await self._memories.rewrite(person, tally)
        await self._rows.rewrite(person, tally)
        await self._messages.rewrite_others(person, tally)

    async def _go_after(self, person: Person, tally: Tally) -> Person:
        """What they wrote meanwhile; and what others made, before the messages were gone, of what is rewritten already:
        nothing can be made of them any more."""
        for _ in range(_ROUNDS):
            more = await gather(self._storage, tenant=person.tenant, user_id=person.user_id)
            person = person.and_also(more)
            await self._rewrite(person, tally)
            if not more.messages:
                return person
            await self._messages.erase(more, tally)
        tally.leave("messages", more.messages, _WRITES)
        return person

    async def _follow_up(self, person: Person, tally: Tally) -> dict[str, int]:
        """Looks through everything, and goes after what was written while the person was being forgotten."""
        for _ in range(_ROUNDS):
            checked, telling = await self._rows.look_through(person)
            if not telling:
                return checked
            if "messages" in telling:
                await self._rows.rename_deleted(person, tally)
            await self._rewrite(person, tally)
        checked, telling = await self._rows.look_through(person)
        still(tally, telling)
        return checked

    async def _drop_work(self, person: Person, tally: Tally) -> None:
        prefix, tells = owner_prefix(person.tenant), self._tells(person)
        dropped = await self._durable.drop(prefix=prefix, tells=tells)
        tally.places["durable work"] += dropped.count
        if dropped.running:
            await self._let_end(dropped.running)
            dropped = await self._durable.drop(prefix=prefix, tells=tells)
            tally.places["durable work"] += dropped.count
        tally.left.pop("durable work", None)
        if dropped.running:
            tally.leave("durable work", len(dropped.running), _RUNNING)

    def _tells(self, person: Person) -> Callable[[str], bool]:
        """What was done in a room where the person spoke may hold their words in others."""
        named = {*person.said, *(f"group:{room_id}" for room_id in person.said)}
        return lambda text: text in named or person.traces.tells(text)

    async def _let_end(self, work_ids: Sequence[str]) -> None:
        await asyncio.gather(*(self._durable.wait(work_id, seconds=_WAIT_SECONDS) for work_id in work_ids))

    async def _drop_cached(self, person: Person, tally: Tally) -> None:
        """Of every room, since others may quote the person anywhere. Whatever a cache still holds is older than its
        room, and never shown."""
        rooms = {*person.said, *await self._messages.rooms(person.tenant)}
        tally.left.pop("session cache", None)
        try:
            for room_id in rooms:
                await self._sessions.drop(tenant=person.tenant, conversation_id=room_id)
        except CacheUnavailable as error:
            log.warning("sessions of a forgotten person stay cached", extra={"why": describe(error)})
            tally.leave("session cache", len(rooms), _CACHE)

    async def _compact(self, tally: Tally) -> None:
        try:
            await self._durable.compact()
            await self._upkeep.compact()
        except StorageUnavailable as error:
            log.warning("a database could not be compacted", extra={"why": describe(error)})
            tally.leave("free pages", 1, _PAGES)

    def _report(self, person: Person, tally: Tally, checked: dict[str, int], begun: datetime) -> ForgetReport:
        return ForgetReport(
            user_id=person.user_id,
            dry_run=tally.dry,
            places={place: count for place, count in tally.places.items() if count},
            rooms_removed=tuple(sorted(set(tally.rooms_removed))),
            retired=tuple(tally.retired),
            rewritten=tuple(tally.rewritten),
            same_words={place: count for place, count in tally.same_words.items() if count},
            left=tuple(tally.left.values()),
            checked=checked,
            started_at=begun,
            finished_at=self._clock.now(),
        )


def _tell(tenant: str, report: ForgetReport) -> None:
    """Leave a line in the log that names nobody."""
    seconds = round((report.finished_at - report.started_at).total_seconds(), 2)
    counts = {"removed": sum(report.places.values()), "rooms_removed": len(report.rooms_removed)}
    log.info(
        "a person was forgotten",
        extra={"tenant": tenant, **counts, "complete": report.complete, "seconds": seconds},
    )
