"""Checking the integrity of a tenant: memories, their log and sources, messages, and the indexes."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from roomlore.core.errors import VectorsUnavailable, describe
from roomlore.core.integrity import (
    Check,
    Fault,
    Findings,
    ScopeCheck,
    StoredVersion,
    VerifyProgress,
    VerifyReport,
    supported,
)
from roomlore.core.memory.memory import Evolution, Scope
from roomlore.core.models import Room
from roomlore.core.search.query import WORDS_MODEL, passage
from roomlore.ports.archives import ArchivedMessages
from roomlore.ports.paging import every_room, every_scope
from roomlore.ports.shared import Backends, Service
from roomlore.ports.vectors import MEMORIES, MESSAGES, VectorIndex
from roomlore.storage import Storage
from roomlore.storage.values import (
    MEMORY_VECTORS,
    VECTORS,
    WORDS,
    OrphanRow,
    ReadChange,
    ReadMessage,
    ReadSnapshot,
    ReadSupport,
    ReadVersion,
    WordIndexMismatch,
)

_PAGE = 1000
_SHOWN = 20
Progress = Callable[[VerifyProgress], None]
_Read = TypeVar("_Read", ReadChange, ReadVersion)
_EVOLUTIONS = 200
_NO_NUMBER = 2**63 - 1
_TRIES = 5


class SupportChecks:
    """Compare the sources that memories name with the rows by which they are found from messages."""

    def __init__(self, *, storage: Storage) -> None:
        self._storage = storage

    async def check_sources(self, scope: Scope, page: Sequence[StoredVersion], findings: Findings) -> Counter[str]:
        """Check that these versions are found from their messages. Return how many messages are deleted, and
        unknown."""
        missing = Counter[str]()
        pairs_by_room: dict[str, set[tuple[str, int]]] = defaultdict(set)
        for room_id, message_id, number in supported(page):
            pairs_by_room[room_id].add((message_id, number))
        names = {stored.number: stored.memory.memory_id for stored in page}
        for room_id, pairs in pairs_by_room.items():
            message_ids = sorted({message_id for message_id, _ in pairs})
            async with self._storage.reading(scope.tenant) as work:
                prints = await work.messages.fingerprints(room_id=room_id, message_ids=message_ids)
                cited = await work.maintenance.found_from(scope=scope.scope, room_id=room_id, message_ids=message_ids)
            missing["deleted"] += sum(prints.get(message_id_) == "" for message_id_ in message_ids)
            missing["unknown"] += sum(message_id_ not in prints for message_id_ in message_ids)
            findings.saw("sources", len(pairs))
            findings.add(_lost(scope.scope, room_id, pair, names[pair[1]]) for pair in sorted(pairs - cited))
        return +missing

    async def check_rows(self, tenant: str, scope: str | None, findings: Findings) -> None:
        """Check that every row found from messages belongs to a memory that rests on them. A row is compared with the
        memory of the same moment, so that nothing must be read again after a concurrent write."""
        after = ("", "", 0)
        while True:
            async with self._storage.reading(tenant) as work:
                page = await work.maintenance.support_rows(scope=scope, after=after, limit=_PAGE)
            findings.add(fault for row in page if (fault := _surplus(row)) is not None)
            if len(page) < _PAGE:
                return
            after = (page[-1].room_id, page[-1].message_id, page[-1].number)


def _lost(scope: str, room_id: str, pair: tuple[str, int], memory_id: str) -> Fault:
    where = f"scope {scope}, memory {memory_id}"
    return Fault("support", where, f"It is not found from message {pair[0]} of room {room_id}.")


def _surplus(row: ReadSupport) -> Fault | None:
    if row.memory_id is None:
        where = f"message {row.message_id} of room {row.room_id}"
        return Fault("support", where, f"Row {row.number} of the memories is found from it, and is not there.")
    if row.rests is not False:
        return None
    where = f"scope {row.scope}, memory {row.memory_id}"
    return Fault(
        "support", where, f"It is found from message {row.message_id} of room {row.room_id}, and does not rest on it."
    )


@dataclass(slots=True)
class Holds:
    """The vector indexes that are whole, so that they can be counted; and True if the word index is."""

    memories: bool = False
    messages: bool = False
    words: bool = True


class IndexChecks:
    """Count vectors, of indexes that are whole: one that is behind, missing or down is a note, since it recovers by
    itself. `vectors`: None if no embedder is configured."""

    def __init__(self, *, storage: Storage, vectors: VectorIndex | None) -> None:
        self._storage = storage
        self._vectors = vectors

    async def begin(self, findings: Findings) -> Holds:
        """Return the state of the indexes."""
        async with self._storage.reading() as work:
            words = await work.progress.index_state(name=WORDS)
        whole = words is None or (words.cursor is None and words.model == WORDS_MODEL)
        if not whole:
            findings.note("word index", "It is being rebuilt.")
        if self._vectors is None:
            findings.note("vectors", "No embedder is configured: vectors were not counted.")
            return Holds(words=whole)
        memories = await self._whole(self._vectors, MEMORY_VECTORS, MEMORIES, findings)
        return Holds(memories, await self._whole(self._vectors, VECTORS, MESSAGES, findings), whole)

    async def check_memories(self, scope: Scope, holds: Holds, findings: Findings) -> None:
        """Check that there is one vector for each active memory."""
        kept = await self._count(MEMORIES, scope.tenant, scope.scope, holds, findings)
        async with self._storage.reading(scope.tenant) as work:
            now = await work.memories.scope(scope=scope.scope)
            waiting = await work.progress.memory_outbox.waiting()
        if kept is None or now is None or waiting or now.changes != scope.changes:
            return
        findings.add(_vector_faults("memory vectors", f"scope {scope.scope}", kept, now.active))

    async def check_room(self, room: Room, speaking: int, holds: Holds, findings: Findings) -> None:
        """Check that there is one vector for each message with text. `speaking`: how many there were at the given state
        of the room."""
        kept = await self._count(MESSAGES, room.tenant, room.room_id, holds, findings)
        if kept is None or kept == speaking:
            return
        async with self._storage.reading(room.tenant) as work:
            now = await work.rooms.find(room_id=room.room_id)
            waiting = await work.progress.outbox.waiting()
        if now is not None and now.revision == room.revision and not waiting:
            findings.add(_vector_faults("message vectors", f"room {room.room_id}", kept, speaking))

    async def _count(self, collection: str, tenant: str, scope: str, holds: Holds, findings: Findings) -> int | None:
        """Return None, and stop counting, if the vector store became unavailable meanwhile."""
        assert self._vectors is not None
        try:
            kept = await self._vectors.count(collection=collection, tenant=tenant, scope=scope)
        except VectorsUnavailable as error:
            holds.memories = holds.messages = False
            findings.note("vectors", f"They could not be counted any further: {describe(error)}")
            return None
        findings.saw("vectors", kept)
        return kept

    async def _whole(self, vectors: VectorIndex, name: str, collection: str, findings: Findings) -> bool:
        """Return True if the index exists and nothing waits to be put into it."""
        async with self._storage.reading() as work:
            state = await work.progress.index_state(name=name)
            waiting = await (work.progress.memory_outbox if name == MEMORY_VECTORS else work.progress.outbox).waiting()
        try:
            generation = await vectors.generation(collection=collection)
        except VectorsUnavailable as error:
            findings.note(f"vectors of {name}", f"They could not be counted: {describe(error)}")
            return False
        if state is None or generation != state.generation:
            findings.note(f"vectors of {name}", "There is no such index now; it is made when it is next needed.")
            return False
        if state.cursor is not None or waiting:
            findings.note(f"vectors of {name}", f"{waiting} or more wait to be indexed: they were not counted.")
            return False
        return True


def _vector_faults(check: Check, where: str, kept: int, there: int) -> list[Fault]:
    if kept == there:
        return []
    return [Fault(check, where, f"The index has {kept} vectors; SQL has {there} texts to embed.")]


@dataclass(slots=True)
class _Counted:
    """The counts of a room. `messages`: not deleted; `unreadable`: those of them that cannot be read; `speaking`: those
    with something to embed."""

    messages: int = 0
    words: int = 0
    speaking: int = 0
    unreadable: int = 0

    def add(self, message: ReadMessage) -> None:
        self.words += message.length
        self.unreadable += bool(message.why)
        self.messages += message.message is not None or bool(message.why)
        self.speaking += message.message is not None and bool(passage(message.message))


class MessageChecks:
    """Read the messages of a tenant, room by room and page by page."""

    def __init__(self, *, storage: Storage, indexes: IndexChecks) -> None:
        self._storage = storage
        self._indexes = indexes

    async def check(self, tenant: str, holds: Holds, findings: Findings, progress: Callable[[], None]) -> None:
        """Check the messages. `progress`: called after each page."""
        await self._check_orphan_rows(tenant, findings)
        async for room in every_room(self._storage, tenant):
            await self._check_room(room, holds, findings, progress)

    async def check_one(
        self, tenant: str, room_id: str, holds: Holds, findings: Findings, progress: Callable[[], None]
    ) -> None:
        """Check the messages of one room, if it is there."""
        async with self._storage.reading(tenant) as work:
            room = await work.rooms.find(room_id=room_id)
        if room is not None:
            await self._check_room(room, holds, findings, progress)

    async def _check_orphan_rows(self, tenant: str, findings: Findings) -> None:
        page: Sequence[OrphanRow] = ()
        while True:
            async with self._storage.reading(tenant) as work:
                page = await work.maintenance.orphan_rows(after=page[-1] if page else None, limit=_PAGE)
            findings.add(
                Fault(
                    "orphan rows", f"table {row.table}", f"Room {row.room_key} has no message at arrival {row.arrival}."
                )
                for row in page
            )
            if len(page) < _PAGE:
                return

    async def _check_room(self, named: Room, holds: Holds, findings: Findings, progress: Callable[[], None]) -> None:
        """Check the room. Counts are compared if nobody wrote meanwhile."""
        room = await self._room(named)
        if room is None:
            return
        findings.saw("rooms", 1)
        counted = await self._walk(room, holds, findings, progress)
        if holds.words:
            await self._check_index(room, findings)
        now = await self._room(room)
        if now is not None and now.revision == room.revision:
            findings.add(_miscounted(room, counted, holds))
        if holds.messages and not counted.unreadable:
            await self._indexes.check_room(room, counted.speaking, holds, findings)

    async def _room(self, room: Room) -> Room | None:
        async with self._storage.reading(room.tenant) as work:
            return await work.rooms.find(room_id=room.room_id)

    async def _walk(self, room: Room, holds: Holds, findings: Findings, progress: Callable[[], None]) -> _Counted:
        """Walk to the first page that is not full and has the last message that the room had at the start: a room that
        grows as fast as it is read would have no end."""
        counted, after = _Counted(), 0
        while page := await self._page(room, after):
            for message in page:
                counted.add(message)
                findings.add(_faults(room.room_id, message, holds))
            findings.saw("messages", len(page))
            progress()
            after = page[-1].number
            if len(page) < _PAGE and after >= room.next_arrival - 1:
                break
        return counted

    async def _page(self, room: Room, after: int) -> Sequence[ReadMessage]:
        """Read a page. No unit of work is held while messages are checked."""
        async with self._storage.reading(room.tenant) as work:
            read = await work.maintenance.read_messages(room_id=room.room_id, after=after, limit=_PAGE)
        return await asyncio.to_thread(read)

    async def _check_index(self, room: Room, findings: Findings) -> None:
        async with self._storage.reading(room.tenant) as work:
            mismatch = await work.maintenance.word_index_mismatch(room_id=room.room_id)
        if mismatch is not None:
            findings.add([Fault("word index", f"room {room.room_id}", _mismatch_text(mismatch))])


def _faults(room_id: str, message: ReadMessage, holds: Holds) -> Iterator[Fault]:
    where = f"room {room_id}, message {message.message_id}"
    if message.why:
        yield Fault("unreadable", where, message.why)
    if not message.features:
        yield Fault("message features", where, "Its row in `message_features` is not there.")
    if holds.words and message.words == "missing":
        yield Fault("message words", where, "Its row in `message_words` is not there.")
    if holds.words and message.words == "other":
        yield Fault("message words", where, "Its row in `message_words` has other words than it says.")


def _miscounted(room: Room, counted: _Counted, holds: Holds) -> Iterator[Fault]:
    where, rows = f"room {room.room_id}", "The room's row says"
    if room.messages != counted.messages:
        yield Fault("room counters", where, f"{rows} {room.messages} messages; there are {counted.messages}.")
    if holds.words and room.words != counted.words:
        yield Fault("room counters", where, f"{rows} {room.words} words; there are {counted.words}.")


def _mismatch_text(mismatch: WordIndexMismatch) -> str:
    counts = f"The index has {mismatch.indexed} words; the rows of its messages have {mismatch.kept}."
    missing = f" Not indexed are arrivals {_shown(mismatch.missing)}." if mismatch.missing else ""
    surplus = f" Indexed without such a message are arrivals {_shown(mismatch.surplus)}." if mismatch.surplus else ""
    return counts + missing + surplus


def _shown(arrivals: tuple[int, ...]) -> str:
    return ", ".join(map(str, arrivals[:_SHOWN])) + (" ..." if len(arrivals) > _SHOWN else "")


class Verifier(Service):
    """Read everything that is remembered of a tenant, scope by scope, and change nothing. `archives`: None if their
    files are not checked."""

    def __init__(
        self,
        backends: Backends,
        *,
        indexes: IndexChecks,
        archives: ArchivedMessages | None = None,
    ) -> None:
        super().__init__(backends)
        self._indexes = indexes
        self._support = SupportChecks(storage=backends.storage)
        self._messages = MessageChecks(storage=backends.storage, indexes=indexes)
        self._archives = archives

    async def verify(self, *, tenant: str, scope: str | None, progress: Progress | None) -> VerifyReport:
        """Check one scope, and the messages of the room if it is that of a group; or the whole tenant with all rooms.

        Raise `StorageUnavailable`.
        """
        started, findings = self._clock.now(), Findings()
        tell = partial(_tell, progress, findings)
        holds = await self._indexes.begin(findings)
        async for scope_row in self._scopes(tenant, scope):
            await self._check(scope_row, findings)
            if holds.memories:
                await self._indexes.check_memories(scope_row, holds, findings)
            findings.saw("scopes", 1)
            tell()
        await self._support.check_rows(tenant, scope, findings)
        kind, _, name = (scope or "").partition(":")
        if kind == "group":
            await self._messages.check_one(tenant, name, holds, findings, tell)
        if scope is None:
            await self._check_marks(tenant, findings)
            await self._messages.check(tenant, holds, findings, tell)
            await self._check_archives(tenant, findings)
        return findings.report(started, self._clock.now())

    async def _scopes(self, tenant: str, scope: str | None) -> AsyncIterator[Scope]:
        if scope is None:
            async for each in every_scope(self._storage, tenant):
                yield each
        elif (known := await self._scope(tenant, scope)) is not None:
            yield known

    async def _scope(self, tenant: str, scope: str) -> Scope | None:
        async with self._storage.reading(tenant) as work:
            return await work.memories.scope(scope=scope)

    async def _check(self, scope: Scope, findings: Findings) -> None:
        """Check a scope; one with faults once more, and what is found twice counts. A forgetting rewrites the log and
        then the memories, and may add no change: one that runs meanwhile looks like a fault."""
        check = await self._check_at_rest(scope)
        if check is not None and check.faults:
            first, check = check, await self._check_at_rest(scope)
            if check is not None:
                check.keep_found_by(first)
        if check is not None:
            findings.take(check)
        else:
            findings.note(
                f"scope {scope.scope}", "It was written to all the while, and could not be checked: try again."
            )

    async def _check_at_rest(self, scope: Scope) -> Findings | None:
        """Return what is found, None if the scope is never at rest. One that was written to meanwhile is read again:
        two readings of it need not agree."""
        for _ in range(_TRIES):
            before, tried = await self._scope(scope.tenant, scope.scope), Findings()
            if before is None:
                return tried
            await self._check_once(before, tried)
            after = await self._scope(scope.tenant, scope.scope)
            if after is not None and after.changes == before.changes:
                return tried
        return None

    async def _check_once(self, scope: Scope, findings: Findings) -> None:
        check = ScopeCheck(scope.scope)
        await self._read_log(scope, check, findings)
        await self._read_versions(scope, check, findings)
        findings.add(check.finish(scope, elsewhere=await self._elsewhere(scope, check.unknown_parents())))
        await self._check_evolutions(scope, check, findings)
        await self._look_for_changes(scope, check, findings)

    async def _read_log(self, scope: Scope, check: ScopeCheck, findings: Findings) -> None:
        read = 0
        async for page in _pages(partial(self._page_of_log, scope)):
            last = page[-1].number if len(page) == _PAGE else _NO_NUMBER
            kept = await self._snapshots(scope, read, last)
            for row in page:
                if row.change is None:
                    check.skip_change(row.number, row.why)
                else:
                    check.add_change(row.change)
                if snapshot := kept.pop(row.number, None):
                    check.check_snapshot(row.number, snapshot.snapshot, snapshot.why)
            for number, snapshot in kept.items():
                check.check_snapshot(number, snapshot.snapshot, snapshot.why)
            findings.saw("changes", len(page))
            read = last

    async def _snapshots(self, scope: Scope, after: int, until: int) -> dict[int, ReadSnapshot]:
        async with self._storage.reading(scope.tenant) as work:
            snapshots = await work.maintenance.read_snapshots(scope=scope.scope, after=after, until=until, limit=_PAGE)
        return {snapshot.number: snapshot for snapshot in snapshots}

    async def _page_of_log(self, scope: Scope, after: int) -> list[ReadChange]:
        async with self._storage.reading(scope.tenant) as work:
            return await work.maintenance.read_log(scope=scope.scope, after=after, limit=_PAGE)

    async def _read_versions(self, scope: Scope, check: ScopeCheck, findings: Findings) -> None:
        missing = Counter[str]()
        async for page in _pages(partial(self._page_of_versions, scope)):
            for row in page:
                if row.stored is None:
                    check.skip_version(row.memory_id, row.why)
                else:
                    check.add_version(row.stored)
            findings.saw("memories", len(page))
            missing += await self._support.check_sources(
                scope, [stored_row.stored for stored_row in page if stored_row.stored], findings
            )
        for what, count in missing.items():
            findings.note(f"scope {scope.scope}", f"{count} of the messages that its memories rest on are {what}.")

    async def _page_of_versions(self, scope: Scope, after: int) -> list[ReadVersion]:
        async with self._storage.reading(scope.tenant) as work:
            return await work.maintenance.read_versions(scope=scope.scope, after=after, limit=_PAGE)

    async def _elsewhere(self, scope: Scope, memory_ids: Sequence[str]) -> frozenset[str]:
        """Return the ids that another scope has."""
        if not memory_ids:
            return frozenset()
        async with self._storage.reading(scope.tenant) as work:
            memories = await work.memories.by_id(memory_ids=memory_ids)
        return frozenset(memory.memory_id for memory in memories)

    async def _check_evolutions(self, scope: Scope, check: ScopeCheck, findings: Findings) -> None:
        evolution_ids = sorted(check.evolutions)
        for start in range(0, len(evolution_ids), _PAGE):
            ids = evolution_ids[start : start + _PAGE]
            async with self._storage.reading(scope.tenant) as work:
                evolutions = await work.memories.evolutions_by_id(evolution_ids=ids)
            there = {evolution.evolution_id for evolution in evolutions}
            findings.saw("evolutions", len(ids))
            findings.add(
                Fault(
                    "evolutions",
                    f"scope {scope.scope}, {check.evolutions[evolution_id]}",
                    f"Record {evolution_id} is not there.",
                )
                for evolution_id in ids
                if evolution_id not in there
            )

    async def _look_for_changes(self, scope: Scope, check: ScopeCheck, findings: Findings) -> None:
        """Check that a record of an applied evolution has changes in the log, of this scope."""
        before: str | None = None
        while page := await self._page_of_evolutions(scope, before):
            for evolution in page:
                if evolution.status == "applied" and evolution.evolution_id not in check.evolutions:
                    findings.note(
                        f"scope {scope.scope}",
                        f"Evolution {evolution.evolution_id} was applied, and the log has none of it.",
                    )
            before = page[-1].evolution_id

    async def _page_of_evolutions(self, scope: Scope, before: str | None) -> list[Evolution]:
        async with self._storage.reading(scope.tenant) as work:
            return await work.memories.evolutions(scope=scope.scope, before=before, limit=_EVOLUTIONS)

    async def _check_archives(self, tenant: str, findings: Findings) -> None:
        """Check that the file of each archive is there and as it was written."""
        if self._archives is None:
            return
        for archive in await self._archives.kept(tenant):
            if (damage := await self._archives.damage(archive)) and archive in await self._archives.kept(tenant):
                where = f"room {archive.room_id}, archive {archive.archive_id}"
                findings.add([Fault("archives", where, damage)])
            findings.saw("archives", 1)

    async def _check_marks(self, tenant: str, findings: Findings) -> None:
        async with self._storage.reading(tenant) as work:
            ahead = await work.maintenance.marks_ahead()
        findings.add(
            Fault(
                "watermarks",
                f"room {mark.room_id}, mark {mark.name}",
                f"It stands at {mark.arrival}; the room ends at {mark.last}.",
            )
            for mark in ahead
        )


async def _pages(read: Callable[[int], Awaitable[list[_Read]]]) -> AsyncIterator[list[_Read]]:
    """Yield pages by the number of the last row, up to the first page that is not full: a log that grows as fast as it
    is read would have no end."""
    page = await read(0)
    while len(page) == _PAGE:
        yield page
        page = await read(page[-1].number)
    yield page


def _tell(progress: Progress | None, findings: Findings) -> None:
    if progress is not None:
        progress(VerifyProgress(*(findings.checked.get(what, 0) for what in ("scopes", "memories", "messages"))))
