"""Forgetting a person: the order of its steps, and the verbs of `lore.privacy`.

Archives that may hold something of the person are brought back first, and their files are deleted. What follows from a
person's messages is removed before the messages: so a run that continues after a kill still finds by them what to look
for. Finished work is removed first of all, and once more at the end, since work that ran meanwhile
may have ended.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from roomlore.core.errors import CacheUnavailable, InvalidInput, NameNotId, NotFound, StorageUnavailable, describe
from roomlore.core.intake import MAX_ID_CHARS
from roomlore.core.integrity import Note, VerifyProgress, VerifyReport
from roomlore.core.memory.memory import check_scope, owner_of
from roomlore.core.privacy import ForgetReport
from roomlore.core.text import fold
from roomlore.ports.archives import ArchivedMessages
from roomlore.ports.coordination import Clock
from roomlore.ports.durable import DurableWork, owner_prefix
from roomlore.ports.maintenance import CompactDatabase
from roomlore.ports.storage import Storage, UnitOfWork
from roomlore.services.privacy.forget_memories import MemoryEraser, RowEraser, still
from roomlore.services.privacy.forget_messages import MessageEraser, Person, Tally, gather
from roomlore.services.privacy.verify import Verifier

_WAIT_SECONDS = 10.0
_NAMED = 8
_LIKE = 200
"""The most people whose names are compared with one that was given in place of an id."""
_ROUNDS = 3
"""The most rounds in which messages that came in meanwhile are handled."""
_RUNNING = "Work that read the person's words runs just now; forget again when it has ended."
_CACHE = "The session cache does not answer; its entries go by themselves after session_ttl_seconds."
_WRITES = "They write just now; forget again when they have ended."
_PAGES = "Free pages and the write-ahead log could not be given back; forget again when no other program is reading."
_NOTHING_CHECKED = "Nothing is remembered in it, so no memory was checked."

log = logging.getLogger(__name__)


class CachedSessions(Protocol):
    """The cache of sessions beside the database."""

    async def drop(self, *, tenant: str, conversation_id: str) -> None:
        """Drop a session's entry. Raise `CacheUnavailable`."""


class Forgetter:
    """Forget a person, for all tenants. One call at a time in this process; two processes at once do no harm."""

    def __init__(
        self,
        *,
        storage: Storage,
        compact_database: CompactDatabase,
        durable: DurableWork,
        sessions: CachedSessions,
        memories: MemoryEraser,
        messages: MessageEraser,
        rows: RowEraser,
        clock: Clock,
        archives: ArchivedMessages,
    ) -> None:
        self._archives = archives
        self._storage = storage
        self._compact_database = compact_database
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
            if dry_run:
                archived = await self._archives.messages_of(tenant=tenant, user_id=user_id)
                tally.places.update({"archived messages": archived} if archived else {})
            person = await gather(self._storage, tenant=tenant, user_id=user_id, same_words=same_words)
            while not dry_run and await self._bring_back(person):
                person = await gather(self._storage, tenant=tenant, user_id=user_id, same_words=same_words)
            checked = await (self._count(person, tally) if dry_run else self._forget(person, tally))
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
        person = await self._forget_new(person, tally)
        await self._drop_work(person, tally)
        checked = await self._follow_up(person, tally)
        await self._drop_cached(person, tally)
        await self._compact(tally)
        return checked

    async def _rewrite(self, person: Person, tally: Tally) -> None:
        await self._memories.rewrite(person, tally)
        await self._rows.rewrite(person, tally)
        await self._messages.rewrite_others(person, tally)

    async def _forget_new(self, person: Person, tally: Tally) -> Person:
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

    async def _follow_up(self, person: Person, tally: Tally) -> dict[str, int]:
        """Check everything, and handle what was written while the person was being forgotten."""
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
        """Return the test for finished work: work in a room where the person spoke may hold their words in other
        forms."""
        named = {*person.said, *(f"group:{room_id}" for room_id in person.said)}
        return lambda text: text in named or person.traces.tells(text)

    async def _let_end(self, work_ids: Sequence[str]) -> None:
        await asyncio.gather(*(self._durable.wait(work_id, seconds=_WAIT_SECONDS) for work_id in work_ids))

    async def _drop_cached(self, person: Person, tally: Tally) -> None:
        """Drop the sessions of every room, since others may quote the person anywhere. Whatever a cache still holds is
        older than its room, and never shown."""
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
            await self._compact_database()
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


def _log_report(tenant: str, report: ForgetReport) -> None:
    """Write a log line that names nobody."""
    seconds = round((report.finished_at - report.started_at).total_seconds(), 2)
    counts = {"removed": sum(report.places.values()), "rooms_removed": len(report.rooms_removed)}
    log.info(
        "a person was forgotten",
        extra={"tenant": tenant, **counts, "complete": report.complete, "seconds": seconds},
    )


class PrivacyService:
    """The verbs of `lore.privacy`, for one tenant."""

    def __init__(self, *, tenant: str, storage: Storage, forgetter: Forgetter, verifier: Verifier) -> None:
        self._tenant = tenant
        self._storage = storage
        self._forgetter = forgetter
        self._verifier = verifier

    async def check_person(self, user_id: str) -> None:
        """Raise `NameNotId` if nobody has this id, and it is the name of people who spoke, in any room, or the scope
        of a person; the error names their ids.

        Whoever spoke, is or was a member of a room, or has memories is known by an id, even if it is also a name of
        others. An id of which nothing is known is no error.
        """
        given = _checked(user_id)
        async with self._storage.reading() as work:
            if await self._is_known(work, given):
                return
            person = owner_of(given)
            if person and await self._is_known(work, person):
                raise NameNotId(f"{given!r:.80} is a scope; the id of the person is {person!r:.80}.")
            known = await self._called(work, given)
        if known:
            more = f" and {len(known) - _NAMED} more" if len(known) > _NAMED else ""
            named = ", ".join(f"{one:.80}" for one in known[:_NAMED])
            raise NameNotId(f"Nobody has the id {given!r:.80}; it is the name of {named}{more}. Give the id of one.")

    async def _is_known(self, work: UnitOfWork, user_id: str) -> bool:
        return bool(
            await work.rooms.of_person(tenant=self._tenant, person_id=user_id)
            or await work.memories.scope(tenant=self._tenant, scope=f"user:{user_id}")
        )

    async def _called(self, work: UnitOfWork, name: str) -> list[str]:
        """Return the ids of those whose name it is in a room, those who spoke last first."""
        part = name.removeprefix("@")
        like = await work.rooms.speakers(tenant=self._tenant, part=part, room_ids=None, limit=_LIKE) if part else []
        called = []
        for one in like:
            voices = await work.rooms.voices(tenant=self._tenant, sender_id=one.sender_id)
            if any(fold(voice.name) == fold(part) for voice in voices):
                called.append(one.sender_id)
        return called

    async def forget(
        self, user_id: str, *, dry_run: bool = False, same_words: bool = False, is_id: bool = False
    ) -> ForgetReport:
        """Remove what a person said and what follows from it: messages, features, vectors, sessions, facts, raw answers
        of models, finished work. Memories that rest on the person alone are retired, others lose their part.

        It cannot be undone: ask first. `dry_run` changes nothing and reports what would be removed. Messages of others
        are redacted only if they are linked to the person: quotes, replies, mentions. Messages that merely have the
        same words are counted (`report.same_words`) and stay; `same_words` redacts them too, in rooms that both spoke
        in, if they came later. If it breaks off, or something is left (`report.left`), the same call continues.
        A name in place of an id is refused, as by `check_person`, unless you say that it `is_id`. `report.found`
        is False if nothing of the id was here. Raise `InvalidInput`, `StorageUnavailable`.
        """
        given = _checked(user_id)
        if not is_id:
            await self.check_person(given)
        return await self._forgetter.forget(tenant=self._tenant, user_id=given, dry_run=dry_run, same_words=same_words)

    async def verify(
        self, scope: str | None = None, *, progress: Callable[[VerifyProgress], None] | None = None
    ) -> VerifyReport:
        """Read everything that is remembered of the tenant, or of one scope, and report inconsistencies: in the logs,
        the memories, what made them, what they rest on and the indexes; of a tenant, and in the room of a group's
        scope, also in what is derived from messages: features, words, counters; of a tenant also in the watermarks.
        Change nothing.

        It may run beside writers. `progress`: called after each scope and each page of messages. `report.sound` is
        False if there is a fault: then the command line exits with 1. If nothing is remembered in the scope, nothing is
        checked, and a note says so. Raise `NotFound` if nobody has its id either, `InvalidInput`, `StorageUnavailable`.
        """
        if scope is not None:
            check_scope(scope)
        report = await self._verifier.verify(tenant=self._tenant, scope=scope, progress=progress)
        if scope is not None and not report.checked and report.sound:
            await self._check_there(scope)
            return replace(report, notes=(Note(f"scope {scope}", _NOTHING_CHECKED), *report.notes))
        return report

    async def _check_there(self, scope: str) -> None:
        """Raise `NotFound` if neither a room nor a person has the id of a scope in which nothing is remembered."""
        kind, _, name = scope.partition(":")
        async with self._storage.reading() as work:
            if kind == "group":
                there = await work.rooms.find(tenant=self._tenant, room_id=name) is not None
            else:
                there = bool(await work.rooms.of_person(tenant=self._tenant, person_id=name))
        if not there:
            raise NotFound(
                f"There is nothing to check in {scope!r:.80}: nothing is remembered, and nobody has this id."
            )


def _checked(user_id: object) -> str:
    if not isinstance(user_id, str) or not user_id.strip():
        raise InvalidInput(f"The person is {user_id!r:.60}; give the sender id that the messages have.")
    if len(user_id) > MAX_ID_CHARS:
        raise InvalidInput(f"The sender id has {len(user_id)} characters; at most {MAX_ID_CHARS}.")
    return user_id
