"""Forgetting a person: the order of its steps.

Archives that may hold something of the person are brought back first, and their files are deleted. What follows from a
person's messages is removed before the messages: so a run that continues after a kill still finds by them what to look
for. Finished work is removed first of all, and once more at the end, since work that ran meanwhile
may have ended.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable
from datetime import datetime

from roomlore.core.errors import CacheUnavailable, StorageUnavailable, describe
from roomlore.core.privacy import ForgetReport, Left, Traces
from roomlore.ports.archives import ArchivedMessages
from roomlore.ports.durable import DurableWork, owner_prefix
from roomlore.ports.paging import every_room
from roomlore.ports.shared import Backends, Service
from roomlore.services.privacy.forget_memories import (
    MEMORY_VECTORS_LEFT,
    SCOPE_LEFT,
    STILL,
    MemoryEraser,
    RowEraser,
    still,
)
from roomlore.services.privacy.forget_messages import (
    EMPTIED_LEFT,
    VECTORS_LEFT,
    ForgetTally,
    MessageEraser,
    Person,
    gather,
)

_WAIT_SECONDS = 10.0
_ROUNDS = 3
"""The most rounds in which messages that came in meanwhile are handled."""
FREE_PAGES = "free pages"
"""The place of what is left in pages that the database could not give back."""
_RUNNING = "Work that read it runs just now; roomlore tries again."
_CACHE = "The session cache does not answer; its entries go by themselves after half an hour."
_WRITES = "They write just now; roomlore tries again."
PAGES_LEFT = "Free pages and the write-ahead log could not be given back; roomlore tries again."
_NO_OTHER_TRY = frozenset({_CACHE, PAGES_LEFT, VECTORS_LEFT, MEMORY_VECTORS_LEFT, STILL})
"""Why something is left that needs no other try. The cache's entries are older than their rooms, so never shown, and
expire; a try would have to last as long as the cache is down. The index removes vectors by its outbox, which is written
with the data. The databases have a record of their own. Rows of callers change by a caller's hand only; what the person
writes later must not be removed until then."""
_AFTER_ERASING = frozenset({_RUNNING, EMPTIED_LEFT, SCOPE_LEFT})
"""Why something is left that goes without another look at what the person wrote."""

log = logging.getLogger(__name__)


Settle = Callable[[bool], Awaitable[None]]


DropSession = Callable[..., Awaitable[None]]
"""Called with `tenant` and `conversation_id`. Drop the entry of a session from the cache. Raise `CacheUnavailable`."""


class Forgetter(Service):
    """Forget a person, for all tenants. One call at a time in this process; two processes at once do no harm."""

    def __init__(
        self,
        backends: Backends,
        *,
        compact_database: Callable[[], Awaitable[None]],
        durable: DurableWork,
        drop_session: DropSession,
        memories: MemoryEraser,
        messages: MessageEraser,
        rows: RowEraser,
        archives: ArchivedMessages,
    ) -> None:
        super().__init__(backends)
        self._archives = archives
        self._compact_database = compact_database
        self._durable = durable
        self._drop_session = drop_session
        self._memories = memories
        self._messages = messages
        self._rows = rows
        self._one = asyncio.Lock()

    async def forget(
        self,
        *,
        tenant: str,
        user_id: str,
        dry_run: bool,
        same_words: bool = False,
        settle: Settle | None = None,
        own_work: str = "",
        erased: bool = False,
    ) -> ForgetReport:
        """Forget a person. `settle`: called before the database is compacted, with True if nothing is `unfinished`, and
        with False if the next try may be an `erased` one, in which what the person wrote since this one stays.
        `own_work`: a part of the id of the durable work that does this."""
        async with self._one:
            begun, tally = self._clock.now(), ForgetTally(dry=dry_run)
            if dry_run:
                archived = await self._archives.messages_of(tenant=tenant, user_id=user_id)
                tally.places.update({"archived messages": archived} if archived else {})
            if erased:
                nothing = Traces(user_id)
                person = Person(tenant, user_id, said={}, removed=set(), traces=nothing, words=nothing)
            else:
                person = await gather(self._storage, tenant=tenant, user_id=user_id, same_words=same_words)
            while not dry_run and not erased and await self._bring_back(person):
                person = await gather(self._storage, tenant=tenant, user_id=user_id, same_words=same_words)
            if dry_run:
                checked = await self._count(person, tally)
            else:
                checked = await (self._go_on if erased else self._forget)(person, tally, own_work)
                await self._settle(tally, settle)
            report = self._report(person, tally, checked, begun)
        if not dry_run:
            _log_report(tenant, report)
        return report

    async def _bring_back(self, person: Person) -> int:
        """Bring back the archives that may tell of the person, as far as the person is known by now."""
        traces = person.traces

        def tells(text: str) -> bool:
            return traces.repeated(text) or traces.names_them(text)

        return await self._archives.bring_back(
            tenant=person.tenant, user_id=person.user_id, names=traces.names, tells=tells
        )

    async def _count(self, person: Person, tally: ForgetTally) -> dict[str, int]:
        await self._memories.rewrite(person, tally)
        await self._rows.rewrite(person, tally)
        await self._messages.rewrite_others(person, tally)
        await self._messages.erase(person, tally)
        return {}

    async def compact(self) -> None:
        """Compact the databases. Raise `StorageUnavailable`."""
        await self._durable.compact()
        await self._compact_database()

    async def _forget(self, person: Person, tally: ForgetTally, own_work: str) -> dict[str, int]:
        await self._drop_cached(person, tally)
        await self.drop_work(person.tenant, self._tells(person), tally, own_work)
        await self._rewrite(person, tally)
        await self._messages.erase(person, tally)
        person = await self._forget_new(person, tally)
        await self.drop_work(person.tenant, self._tells(person), tally, own_work)
        checked = await self._follow_up(person, tally)
        await self._drop_cached(person, tally)
        return checked

    async def _go_on(self, person: Person, tally: ForgetTally, own_work: str) -> dict[str, int]:
        """Remove what an earlier run left that erased the messages. A scope is renamed before its room is gone."""
        await self.drop_work(person.tenant, self._tells(person), tally, own_work)
        vacant = await self._messages.vacant_rooms(person.tenant)
        person.removed.update(vacant)
        await self._memories.rename(person, tally, vacant=True)
        if "memory_scopes" in tally.left and vacant:
            tally.leave("rooms", len(vacant), EMPTIED_LEFT)
        else:
            await self._messages.remove_vacant(person, vacant, tally)
        return {}

    async def _settle(self, tally: ForgetTally, settle: Settle | None) -> None:
        left = unfinished(tally.left.values())
        finished = not left
        if settle and all(remainder.why in _AFTER_ERASING for remainder in left):
            await settle(finished)
        if finished or tally.places.total():
            await self._compact(tally)

    async def _rewrite(self, person: Person, tally: ForgetTally) -> None:
        await self._memories.rewrite(person, tally)
        await self._rows.rewrite(person, tally)
        await self._messages.rewrite_others(person, tally)

    async def _forget_new(self, person: Person, tally: ForgetTally) -> Person:
        """Handle what the person wrote meanwhile, what others derived from the messages before they were erased, and
        what was archived meanwhile. After the erasure nothing more can be derived from them."""
        for _ in range(_ROUNDS):
            await self._bring_back(person)
            more = await gather(self._storage, tenant=person.tenant, user_id=person.user_id)
            person = await asyncio.to_thread(person.and_also, more)
            await self._rewrite(person, tally)
            if not more.messages:
                return person
            await self._messages.erase(more, tally)
        tally.leave("messages", more.messages, _WRITES)
        return person

    async def _follow_up(self, person: Person, tally: ForgetTally) -> dict[str, int]:
        """Check everything, and handle what was written while the person was being forgotten."""
        before: dict[str, int] = {}
        for _ in range(_ROUNDS):
            checked, telling = await self._rows.look_through(person)
            if not telling:
                return checked
            if "messages" in telling:
                await self._rows.rename_deleted(person, tally)
            await self._rewrite(person, tally)
            before = telling
        checked, telling = await self._rows.look_through(person)
        still(tally, telling, before)
        return checked

    async def drop_work(self, tenant: str, tells: Callable[[str], bool], tally: ForgetTally, own_work: str) -> None:
        """Drop work with a text that tells of what goes, and wait for what runs of it."""
        running = await self._dropped(tenant, tells, tally, own_work)
        if running:
            await asyncio.gather(*(self._durable.wait(work_id, seconds=_WAIT_SECONDS) for work_id in running))
            running = await self._dropped(tenant, tells, tally, own_work)
        tally.left.pop("durable work", None)
        if running:
            tally.leave("durable work", len(running), _RUNNING)

    async def _dropped(self, tenant: str, tells: Callable[[str], bool], tally: ForgetTally, own_work: str) -> list[str]:
        """Drop the work, and return what runs of it."""
        dropped = await self._durable.drop(prefix=owner_prefix(tenant), tells=tells)
        tally.places["durable work"] += dropped.count
        return [work_id for work_id in dropped.running if not own_work or own_work not in work_id]

    def _tells(self, person: Person) -> Callable[[str], bool]:
        """Return the test for finished work: work in a room where the person spoke may hold their words in other
        forms."""
        named = {*person.said, *(f"group:{room_id}" for room_id in person.said)}
        return lambda text: text in named or person.traces.tells(text)

    async def _drop_cached(self, person: Person, tally: ForgetTally) -> None:
        """Drop the sessions of every room, since others may quote the person anywhere."""
        rooms = {room.room_id async for room in every_room(self._storage, person.tenant)}
        await self.drop_cached(person.tenant, rooms.union(person.said), tally)

    async def drop_cached(self, tenant: str, rooms: Collection[str], tally: ForgetTally) -> None:
        """Drop the sessions of these rooms. Whatever a cache still holds is older than its room, and never shown."""
        tally.left.pop("session cache", None)
        try:
            for room_id in rooms:
                await self._drop_session(tenant=tenant, conversation_id=room_id)
        except CacheUnavailable as error:
            log.warning("sessions stay cached that were to be dropped", extra={"why": describe(error)})
            tally.leave("session cache", len(rooms), _CACHE)

    async def _compact(self, tally: ForgetTally) -> None:
        try:
            await self.compact()
        except StorageUnavailable as error:
            log.warning("a database could not be compacted", extra={"why": describe(error)})
            tally.leave(FREE_PAGES, 1, PAGES_LEFT)

    def _report(self, person: Person, tally: ForgetTally, checked: dict[str, int], begun: datetime) -> ForgetReport:
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


def unfinished(left: Iterable[Left]) -> list[Left]:
    """Return what another try may remove."""
    return [remainder for remainder in left if remainder.why not in _NO_OTHER_TRY]


def _log_report(tenant: str, report: ForgetReport) -> None:
    """Write a log line that names nobody."""
    seconds = round((report.finished_at - report.started_at).total_seconds(), 2)
    counts = {"removed": sum(report.places.values()), "rooms_removed": len(report.rooms_removed)}
    log.info(
        "a person was forgotten",
        extra={"tenant": tenant, **counts, "complete": report.complete, "seconds": seconds},
    )
