"""Remove a person from memories, their log, and all other rows."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from roomlore.core.memory.memory import Action, Change, Evolution, Memory, MemoryKind, MemoryStatus, Scope, Source
from roomlore.core.models import Role
from roomlore.core.privacy import Redaction, record_without
from roomlore.ports.paging import every_scope, evolution_pages
from roomlore.ports.shared import Backends, Service
from roomlore.ports.vectors import MEMORIES
from roomlore.services.privacy.forget_messages import ForgetTally, Person, VectorEraser, is_removed_room
from roomlore.storage import UnitOfWork
from roomlore.storage.values import DELETING, OF_EMPTIED, OF_PEOPLE, Sought, StoredRow

T = TypeVar("T")

_PAGE = 500
_AT_ONCE = 100
_ALL = 2**31 - 1
_WHY = "The person whose words this rested on was forgotten."
MEMORY_VECTORS_LEFT = "Vectors of memories could not be removed; the index removes them when their store answers."
SCOPE_LEFT = "Memories keep their scope until their vectors could be removed; roomlore tries again."
_DROPPED = ("context_usage_records", "watermarks", "rooms_due", "leases", "import_positions", "thread_titles")
_REDACTED: Mapping[str, tuple[str, ...]] = {
    "sessions": ("user_id", "enterprise_id", "patient_id", "agent_key", "state"),
    "checkpoints": ("summary",),
    "rooms": ("settings", "room_name"),
    "api_keys": ("name",),
    "link_corrections": ("corrected_by",),
}
_TELLS_NOTHING = frozenset(
    {
        "action", "archive_id", "checksum", "content_hash", "errors", "file", "in_force", "keyword", "keywords", "kind",
        "language", "limits", "link_kind", "message_type", "model", "phase", "prompt_hash", "prompt_name", "role",
        "secret_hash", "status", "strategy", "words", "work",
    }
)  # fmt: skip
"""Columns with roomlore's own words, since a person may have the id 'user'; and values derived from the texts beside
them, where 'users' becomes 'user'."""
_NAMES = frozenset(
    {
        "addressed", "agent_key", "checkpoint_id", "closes", "context_id", "context_message_ids", "covers_through",
        "enterprise_id", "evidence", "evolution_id", "holder", "key_id", "lineage_id", "memory_id", "mentions",
        "merged_into", "message_id", "owner", "parents", "partners", "patient_id", "person_id", "reply", "reply_to",
        "room_id", "root_id", "said_by", "scope", "sender_id", "shared_with", "sources", "topic_id",
        "trigger_message_id", "turn_id", "undoes", "user_id",
    }
)  # fmt: skip
"""Columns with ids, which are case sensitive."""
_LABELS = frozenset({"name", "corrected_by"})
"""Columns with names in the caller's own words."""
_ROOM_NAMES = frozenset({"room_name"})
"""Columns with names of rooms: a chat of two often has the name of the other, and then it goes whole."""
_ONLY_NAMES = frozenset({"link_corrections", "message_features", "messages", "participants", "room_members"})
"""Tables with a row for each message or person of a room, in which only the id tells of a person: the words of messages
are handled when these are rewritten."""
_WRITTEN = "Rows that name the person are written just now; roomlore tries again."
STILL = "Rows that name the person: ids or names that callers chose, which others rest on. Change them, forget again."


class _OvertakenError(Exception):
    """Raised if another process redacted or renamed what was read."""


class MemoryEraser(Service):
    """Remove a person from memories. Entries of the log go first, from the last one back, and versions after them: so a
    run that continues after a kill still finds what an earlier statement said."""

    def __init__(self, backends: Backends, *, vectors: VectorEraser) -> None:
        super().__init__(backends)
        self._vectors = vectors

    async def rewrite(self, person: Person, tally: ForgetTally) -> None:
        for scope in [scope async for scope in every_scope(self._storage, person.tenant)]:
            await self._rewrite_log(person, scope, tally)
        await self._rewrite_versions(person, tally)
        await self._rewrite_records(person, tally)
        await self.rename(person, tally)

    async def rename(self, person: Person, tally: ForgetTally, *, vacant: bool = False) -> None:
        """Rename the scopes of the person. `vacant`: only those that no memory is active in."""
        tally.left.pop("memory_scopes", None)
        for scope in [scope async for scope in every_scope(self._storage, person.tenant)]:
            if person.owns(scope.scope) and not (vacant and scope.active):
                await self._rename(person, scope.scope, tally)

    async def _rewrite_log(self, person: Person, scope: Scope, tally: ForgetTally) -> None:
        """Rewrite the log; once more from its end if another process changed an entry after it was read, since the
        statements that entries repeat are no longer the same."""
        while True:
            try:
                return await self._rewrite_entries(person, scope, tally)
            except _OvertakenError:
                continue

    async def _rewrite_entries(self, person: Person, scope: Scope, tally: ForgetTally) -> None:
        statements, any_changed = await self._statements(person, scope)
        if not any_changed:
            return
        for start in range((scope.changes - 1) // _PAGE * _PAGE, -1, -_PAGE):
            async with self._storage.reading(person.tenant) as work:
                page = await work.memories.changes(scope=scope.scope, after=start, limit=_PAGE)
                redaction = await self._redaction(work, person, scope.scope, [entry.memory for entry in page])
            changed = (await asyncio.to_thread(_changed, redaction, page, statements))[::-1]
            for first in range(0, len(changed), _AT_ONCE):
                some = changed[first : first + _AT_ONCE]
                if not tally.dry:
                    await self._write_entries(person.tenant, scope.scope, some)
                tally.places["memory_changes"] += len(some)

    async def _statements(self, person: Person, scope: Scope) -> tuple[dict[str, str], bool]:
        """Return the new statements, and True if anything of the log changes."""
        statements: dict[str, str] = {}
        changed = False
        for start in range(0, scope.changes, _PAGE):
            async with self._storage.reading(person.tenant) as work:
                page = await work.memories.changes(scope=scope.scope, after=start, limit=_PAGE)
                redaction = await self._redaction(work, person, scope.scope, [entry.memory for entry in page])
            statements |= await asyncio.to_thread(redaction.statements, [change.memory for change in page])
            changed = changed or bool(await asyncio.to_thread(_changed, redaction, page, statements))
        return statements, changed

    async def _write_entries(self, tenant: str, scope: str, changed: Sequence[tuple[Change, Change]]) -> None:
        """Write new entries in the place of old ones, given with the last one first. Raise `_OvertakenError` if an old
        one is no longer there, also where the scope has another name by now."""
        first, last = changed[-1][0].number, changed[0][0].number
        async with self._storage.writing(tenant) as work:
            await work.memories.lock(scope=scope, now=self._clock.now())
            page = await work.memories.changes(scope=scope, after=first - 1, limit=last - first + 1)
            stored = {change.number: change for change in page}
            if any(stored.get(old.number) != old for old, _ in changed):
                raise _OvertakenError
            await work.maintenance.rewrite_changes(scope=scope, changes=[new for _, new in changed])

    async def _rewrite_versions(self, person: Person, tally: ForgetTally) -> None:
        after, alike = 0, 0
        while True:
            async with self._storage.reading(person.tenant) as work:
                page = await work.maintenance.versions(after=after, limit=_PAGE)
                versions_by_scope, same = await self._telling(work, person, page)
            alike += same
            for scope, versions in versions_by_scope.items():
                tally.places["memories"] += len(versions)
                for start in range(0, len(versions), _AT_ONCE):
                    with suppress(_OvertakenError):  # the next round reads them under their new name
                        await self._rewrite_some(person, scope, versions[start : start + _AT_ONCE], tally)
            if len(page) < _PAGE:
                tally.same_words["memories"] = alike
                return
            after = page[-1][0]

    async def _telling(
        self, work: UnitOfWork, person: Person, page: Sequence[tuple[int, Memory]]
    ) -> tuple[dict[str, list[tuple[str, int]]], int]:
        """Return the memories to rewrite, by scope, with their row numbers; and how many active ones have the same
        words afterwards."""
        versions_by_scope: dict[str, list[tuple[str, int]]] = {}
        alike = 0
        for scope in dict.fromkeys(memory.scope for _, memory in page):
            here = [(number, memory) for number, memory in page if memory.scope == scope]
            redaction = await self._redaction(work, person, scope, [memory for _, memory in here])
            changed, same = await asyncio.to_thread(_changed_versions, redaction, here, person)
            alike += same
            if changed:
                versions_by_scope[scope] = changed
        return versions_by_scope, alike

    async def _rewrite_some(
        self, person: Person, scope: str, versions: Sequence[tuple[str, int]], tally: ForgetTally
    ) -> None:
        ids = [memory_id for memory_id, _ in versions]
        async with self._storage.reading(person.tenant) as work:
            before = await work.memories.by_id(memory_ids=ids)
            redaction = await self._redaction(work, person, scope, before)
        self._note(redaction, before, tally)
        if tally.dry:
            return
        async with self._storage.writing(person.tenant) as work:
            stored = await work.memories.lock(scope=scope, now=self._clock.now())
            before = await work.memories.by_id(memory_ids=ids)
            if any(memory.scope != scope for memory in before):
                raise _OvertakenError
            after = await asyncio.to_thread(lambda: list(map(redaction.version, before)))
            await work.maintenance.rewrite_versions(scope=scope, memories=after)
            active = [version for version in before if version.status is MemoryStatus.ACTIVE]
            changes = await asyncio.to_thread(self._changes, stored, redaction, active)
            await work.memories.apply(scope=scope, changes=changes)
        numbers = [number for _, number in versions]
        if not await self._vectors.remove(collection=MEMORIES, tenant=person.tenant, scope=scope, numbers=numbers):
            tally.leave("vectors of memories", len(numbers), MEMORY_VECTORS_LEFT)

    def _note(self, redaction: Redaction, before: Iterable[Memory], tally: ForgetTally) -> None:
        for memory in before:
            if memory.status is MemoryStatus.ACTIVE:
                alone = redaction.rests_on_them_alone(memory)
                (tally.retired if alone else tally.rewritten)[memory.memory_id] = None

    def _changes(self, scope: Scope, redaction: Redaction, active: Sequence[Memory]) -> list[Change]:
        """Return the changes to active memories for the log, so that its readers see them."""
        now, reason = self._clock.now(), "" if redaction.whole or redaction.emptied else _WHY
        return [
            redacted(
                redaction.version(memory),
                alone=redaction.rests_on_them_alone(memory),
                number=number,
                reason=reason,
                now=now,
            )
            for number, memory in enumerate(active, start=scope.changes + 1)
        ]

    async def _redaction(self, work: UnitOfWork, person: Person, scope: str, memories: Sequence[Memory]) -> Redaction:
        room_id = _room_of(scope)
        redaction = Redaction(
            person.traces,
            person.said_in,
            whole=room_id is None and person.owns(scope),
            emptied=room_id is not None and await is_removed_room(work, person, room_id),
            shared=room_id in person.said,
            edited_at=person.edited_at,
        )
        for gone in {source.room_id for memory in memories for source in memory.sources} & person.removed:
            await is_removed_room(work, person, gone)
        if redaction.whole:
            return redaction
        redaction = replace(redaction, deleted=await _deleted(work, person, scope, memories))
        sources = await asyncio.to_thread(_supported_by_others, redaction, memories)
        return replace(redaction, others=await _of_others(work, person, sources)) if sources else redaction

    async def _rewrite_records(self, person: Person, tally: ForgetTally) -> None:
        async for page in evolution_pages(self._storage, person.tenant):
            async with self._storage.reading(person.tenant) as work:
                affected = [record.evolution_id for record in page if await _has_read(work, person, record)]
                for room_id in {record.room_id for record in page} & person.removed:
                    await is_removed_room(work, person, room_id)
            touched = {
                record.evolution_id: record.room_id in person.removed
                or record.evolution_id in affected
                or person.owns(record.scope)
                for record in page
            }
            changed = await asyncio.to_thread(_changed_records, person, page, touched)
            tally.places["evolutions"] += len(changed)
            if changed and not tally.dry:
                await self._write_records(person, changed, touched)

    async def _write_records(self, person: Person, evolution_ids: Sequence[str], touched: Mapping[str, bool]) -> None:
        """Redact the records as they are now: another process may have redacted them after they were read."""
        async with self._storage.writing(person.tenant) as work:
            stored = await work.maintenance.lock_evolutions(evolution_ids=evolution_ids)
            records = await asyncio.to_thread(lambda: [_record(person, record, touched) for record in stored])
            for record in records:
                await work.maintenance.rewrite_evolution(evolution=record)

    async def _rename(self, person: Person, scope: str, tally: ForgetTally) -> None:
        """Rename the scope: last, and only if no vector is left under the old name, and the room is still to be
        removed. A scope with a memory that others support elsewhere stays."""
        if await self._stays(person, scope):
            return
        if tally.dry:
            tally.places["memory_scopes"] += 1
            return
        async with self._storage.reading(person.tenant) as work:
            numbers = await work.maintenance.numbers_in(scope=scope)
        its = {"collection": MEMORIES, "tenant": person.tenant, "scope": scope}
        if not await self._vectors.remove_for_good(**its, numbers=numbers):
            tally.leave("memory_scopes", 1, SCOPE_LEFT)
            return
        async with self._storage.writing(person.tenant) as work:
            stored = await work.memories.lock(scope=scope, now=self._clock.now())
            room_id = _room_of(scope)
            if room_id is not None and not await is_removed_room(work, person, room_id):
                return
            if stored.active:
                tally.leave("memory_scopes", 1, "Something was remembered there meanwhile; roomlore tries again.")
                return
            await work.maintenance.drop_vector_scope(scope=scope)
            name = f"{scope.partition(':')[0]}:forgotten-{self._ids.new()}"
            await work.maintenance.rename_scope(scope=scope, name=name)
        tally.places["memory_scopes"] += 1

    async def _stays(self, person: Person, scope: str) -> bool:
        async with self._storage.reading(person.tenant) as work:
            active = await work.memories.page(
                scopes=[scope], kinds=list(MemoryKind), status=MemoryStatus.ACTIVE, limit=_ALL
            )
            redaction = await self._redaction(work, person, scope, active)
        return any(not redaction.rests_on_them_alone(memory) for memory in active)


def _changed(
    redaction: Redaction, page: Sequence[Change], statements: Mapping[str, str]
) -> list[tuple[Change, Change]]:
    """Return the entries of the log that change, old and new."""
    pairs = ((old, redaction.entry(old, statements)) for old in page)
    return [(old, new) for old, new in pairs if new != old]


def _changed_versions(
    redaction: Redaction, page: Sequence[tuple[int, Memory]], person: Person
) -> tuple[list[tuple[str, int]], int]:
    """Return the memories that change, with their row numbers, and how many active ones have the same words
    afterwards."""
    left = [(redaction.version(memory), number, memory) for number, memory in page]
    alike = sum(
        version.status is MemoryStatus.ACTIVE and person.words.repeated(version.statement) for version, *_ in left
    )
    return [(memory.memory_id, number) for version, number, memory in left if version != memory], alike


def _supported_by_others(redaction: Redaction, memories: Iterable[Memory]) -> set[Source]:
    theirs = (memory for memory in memories if redaction.emptied or redaction.theirs(memory))
    return {source for memory in theirs for source in memory.sources if not redaction.supports(source)}


def _changed_records(person: Person, page: Iterable[Evolution], touched: Mapping[str, bool]) -> list[str]:
    return [record.evolution_id for record in page if _record(person, record, touched) != record]


def _room_of(scope: str) -> str | None:
    """Return the room of a group's scope, None for any other scope."""
    kind, _, name = scope.partition(":")
    return name if kind == "group" else None


def _record(person: Person, record: Evolution, touched: Mapping[str, bool]) -> Evolution:
    new = record_without(record, person.traces, touched=touched[record.evolution_id])
    gone = record.room_id in person.removed or person.traces.is_named(record.room_id)
    return replace(new, room_id="") if gone else new


def redacted(new: Memory, *, alone: bool, number: int, reason: str, now: datetime) -> Change:
    """Return the change for the log: a memory that rests on what goes alone is deleted, any other is redacted."""
    return Change(
        number=number,
        scope=new.scope,
        action=Action.DELETE if alone else Action.REDACT,
        memory=replace(new, status=MemoryStatus.DEPRECATED) if alone else new,
        old_statement=new.statement,
        reason=reason,
        actor="roomlore",
        at=now,
    )


async def _has_read(work: UnitOfWork, person: Person, record: Evolution) -> bool:
    """Return True if it read what the person said, or something that was deleted since and may have been theirs."""
    first, last = record.first_arrival, record.last_arrival
    if record.room_id not in person.said or person.in_room(record.room_id).within(first, last):
        return record.room_id in person.said
    there = await work.messages.count(room_id=record.room_id, after=first - 1) - await work.messages.count(
        room_id=record.room_id, after=last
    )
    return there < last - first + 1


async def _deleted(work: UnitOfWork, person: Person, scope: str, memories: Iterable[Memory]) -> frozenset[Source]:
    """Return the deleted sources that have the person's id, or lie in a room with messages of the person: their
    authors are no longer known. For a fact about another person only the id counts, because it rests on that
    person's messages."""
    of_another = scope.startswith("user:")
    ids_by_room: dict[str, set[str]] = {}
    for source in {source for memory in memories for source in memory.sources}:
        doubtful = not of_another and source.room_id in person.said
        if person.said_in(source) is None and (doubtful or person.traces.named_in(source.message_id)):
            ids_by_room.setdefault(source.room_id, set()).add(source.message_id)
    deleted: set[Source] = set()
    for room_id, ids in ids_by_room.items():
        prints = await work.messages.fingerprints(room_id=room_id, message_ids=sorted(ids))
        deleted |= {Source(room_id, message_id) for message_id, print_ in prints.items() if not print_}
    return frozenset(deleted)


async def _of_others(work: UnitOfWork, person: Person, sources: Iterable[Source]) -> frozenset[Source]:
    """Return the sources that are existing messages of other people."""
    by_room: dict[str, list[str]] = {}
    for source in sources:
        by_room.setdefault(source.room_id, []).append(source.message_id)
    of_others: set[Source] = set()
    for room_id, ids in by_room.items():
        entries = await work.messages.by_id(room_id=room_id, message_ids=ids)
        messages = (entry.message for entry in entries)
        of_others |= {
            Source(room_id, message.id)
            for message in messages
            if message.role is Role.USER and message.sender_id != person.user_id
        }
    return frozenset(of_others)


class RowEraser(Service):
    """Remove a person from the other rows: rows without further use are deleted, others are redacted."""

    def __init__(self, backends: Backends) -> None:
        super().__init__(backends)

    async def rewrite(self, person: Person, tally: ForgetTally) -> None:
        shared = await self._shared(person)
        for table in _DROPPED:

            def goes(row: StoredRow, table: str = table) -> bool:
                return _tells(table, row, person, shared) or _rests_on(table, row, person)

            async for row, _ in self._rows(person, table, goes):
                tally.places[table] += 1
                if not tally.dry:
                    async with self._storage.writing(person.tenant) as work:
                        await work.maintenance.drop_row(table=table, key=row.key)
        await self._leave_rooms(person, tally)
        for table, columns in _REDACTED.items():

            def told_in(row: StoredRow, table: str = table, columns: tuple[str, ...] = columns) -> list[str]:
                return [name for name in columns if _tells_in(name, row, person, words=_is_in(table, row, shared))]

            async for row, telling_columns in self._rows(person, table, told_in):
                tally.places[table] += 1
                if not tally.dry:
                    await self._redact(person, table, row, telling_columns)

    async def _leave_rooms(self, person: Person, tally: ForgetTally) -> None:
        """Give the person another id among the members of rooms. They are still there: a room that lost a member would
        show what its other members alone may know."""
        async for row, _ in self._rows(
            person, "room_members", lambda row: _tells_in("person_id", row, person, words=False)
        ):
            tally.places["room_members"] += 1
            if not tally.dry:
                name = f"forgotten-{self._ids.new()}"
                async with self._storage.writing(person.tenant) as work:
                    await work.maintenance.redact_row(
                        table="room_members",
                        key=row.key,
                        columns=["person_id"],
                        change=lambda _, name=name: name,  # type: ignore[misc]
                    )

    async def _redact(self, person: Person, table: str, row: StoredRow, telling_columns: Sequence[str]) -> None:
        traces = person.traces
        names = [column for column in telling_columns if column in _NAMES or column in _LABELS]
        called = [column for column in telling_columns if column in _ROOM_NAMES]
        texts = [column for column in telling_columns if column not in (*names, *called)]
        async with self._storage.writing(person.tenant) as work:
            for columns, redact in ((names, traces.redact_name), (texts, traces.redact), (called, lambda _: "")):
                if columns:
                    await work.maintenance.redact_row(
                        table=table,
                        key=row.key,
                        columns=columns,
                        change=lambda text, redact=redact: "" if traces.is_named(text) else redact(text),  # type: ignore[misc]
                    )

    async def rename_deleted(self, person: Person, tally: ForgetTally) -> None:
        """Rename messages that were deleted before and have the person's id in their own."""

        def is_theirs(row: StoredRow) -> bool:
            return row.texts["sender_id"] == ("",) and _tells_in("message_id", row, person, words=False)

        async for row, _ in self._rows(person, "messages", is_theirs):
            tally.places["messages"] += 1
            async with self._storage.writing(person.tenant) as work:
                await work.maintenance.redact_row(
                    table="messages",
                    key=row.key,
                    columns=["message_id"],
                    change=lambda _: f"forgotten-{self._ids.new()}",
                )

    async def look_through(self, person: Person) -> tuple[dict[str, int], dict[str, int]]:
        """Return how many rows each table has, and how many of them still contain the person."""
        shared = await self._shared(person)
        seen: dict[str, int] = {}
        telling: dict[str, int] = {}
        for table in await self._tables():
            async with self._storage.reading(person.tenant) as work:
                seen[table] = await work.maintenance.count_rows(table=table)

            def tells(row: StoredRow, table: str = table) -> bool:
                return _tells(table, row, person, shared)

            async for _ in self._rows(person, table, tells):
                telling[table] = telling.get(table, 0) + 1
        return seen, telling

    async def _shared(self, person: Person) -> set[object]:
        """Return the ids, and the keys, of the rooms in which the person spoke."""
        shared: set[object] = set(person.said)
        sought = Sought(texts=frozenset(person.said))
        async for row, _ in self._rows(person, "rooms", lambda row: row.texts["room_id"][0] in person.said, sought):
            shared.add(row.key[0])
        return shared

    async def _tables(self) -> Mapping[str, Sequence[str]]:
        """Return the tables, with those of their columns that may tell of a person."""
        async with self._storage.reading() as work:
            tables = await work.maintenance.tables()
        return {
            table: [column for column in columns if column not in _TELLS_NOTHING] for table, columns in tables.items()
        }

    async def _rows(
        self, person: Person, table: str, look: Callable[[StoredRow], T], sought: Sought | None = None
    ) -> AsyncIterator[tuple[StoredRow, T]]:
        """Yield the rows of which `look`, called in a thread, returns anything, with what it returns; room by room in
        the tables that have rooms. `sought`: what the rows have, by default what may tell of the person."""
        tenant, sought = person.tenant, sought or _sought(table, person)
        columns = (await self._tables())[table]
        if not columns:
            return
        async with self._storage.reading(tenant) as work:
            room_keys = await work.maintenance.rooms_with(table=table, columns=columns, sought=sought)
        for room_key in [None] if room_keys is None else room_keys:
            after = None
            while True:
                async with self._storage.reading(tenant) as work:
                    page = await work.maintenance.rows(
                        table=table, after=after, limit=_PAGE, columns=columns, sought=sought, room_key=room_key
                    )
                for columns_of_row in await asyncio.to_thread(_looked_at, page, look):
                    yield columns_of_row
                if len(page) < _PAGE:
                    break
                after = page[-1].key


def _looked_at(page: Sequence[StoredRow], look: Callable[[StoredRow], T]) -> list[tuple[StoredRow, T]]:
    return [(row, columns) for row in page if (columns := look(row))]


def _sought(table: str, person: Person) -> Sought:
    """Return what a row of the table has that tells of the person, or rests on what they said."""
    if table in _ONLY_NAMES:
        return Sought(person.sought.names)
    texts = person.sought.texts | person.traces.names
    return replace(person.sought, texts=texts | person.said.keys() if table == "context_usage_records" else texts)


def still(tally: ForgetTally, telling: Mapping[str, int], before: Mapping[str, int]) -> None:
    """Note the rows that tell of the person. `before`: those before the last rewriting. What it left as it was, no
    other try removes."""
    for table, count in telling.items():
        if table not in tally.left:
            tally.leave(table, count, STILL if before.get(table) == count else _WRITTEN)


def _tells(table: str, row: StoredRow, person: Person, shared: set[object]) -> bool:
    words = _is_in(table, row, shared)
    if table == "rooms_due" and row.texts["work"][0] in (*OF_PEOPLE, *OF_EMPTIED, DELETING):
        return False  # the request itself goes last, and these with their room
    if table == "messages":
        return any(_names(column, row, person) for column in row.texts)
    return any(_tells_in(column, row, person, words=words) for column in row.texts)


def _is_in(table: str, row: StoredRow, shared: set[object]) -> bool:
    """Return True if the row was made from a room in which the person spoke: then the same words are theirs."""
    if table == "context_usage_records":
        return row.texts["room_id"][0] in shared
    return table in ("sessions", "checkpoints", "thread_titles") and row.key[0] in shared


def _names(column: str, row: StoredRow, person: Person) -> bool:
    """Return True if a column of a message has the id: the words are handled when messages are rewritten."""
    if column in _TELLS_NOTHING:
        return False
    if column == "text":
        return any(next(person.traces.ids(text), None) for text in row.texts.get(column, ()))
    named = person.traces.named_in if column in _NAMES else person.traces.has_id
    return any(map(named, row.texts.get(column, ())))


def _tells_in(column: str, row: StoredRow, person: Person, *, words: bool) -> bool:
    """Return True if the column contains the person. `words`: True if a passage alone counts."""
    if column in _TELLS_NOTHING:
        return False
    traces, texts = person.traces, row.texts.get(column, ())
    if column in _NAMES or column == "memory":
        return any(map(traces.named_in, texts))
    if column in _ROOM_NAMES:
        return any(map(traces.names_them, texts))
    if column in _LABELS:
        return any(map(traces.in_label, texts))
    return any(map(traces.mentioned if words else traces.tells, texts))


def _rests_on(table: str, row: StoredRow, person: Person) -> bool:
    """Return True if a context was chosen for, or from, what the person said, or an import is of a file named after
    them."""
    if table == "import_positions":
        return any(person.traces.in_path(source) for source in row.texts["source"])
    if table != "context_usage_records":
        return False
    texts = person.in_room(row.texts["room_id"][0]).texts
    chosen = (*row.texts["trigger_message_id"], *row.texts["context_message_ids"])
    return any(text in texts for text in chosen)
