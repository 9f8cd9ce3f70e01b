"""The verbs of `lore.memories`."""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Literal

from roomlore.core.errors import InvalidInput, NotFound
from roomlore.core.evolution.result import BegunEvolution, EvolutionResult, Mode, check_days, check_mode
from roomlore.core.memory.foreign import FactImport
from roomlore.core.memory.found import MemoryAnswer
from roomlore.core.memory.intake import KEEP, Edit, Keep, NewMemory, check_kinds, check_moment, scope_of
from roomlore.core.memory.models import Change, Evolution, Memory, MemoryKind, MemoryStatus, Source, check_scope
from roomlore.core.memory.past import Blame, MemoryDiff
from roomlore.core.memory.writing import Remembered
from roomlore.core.paging import check_page
from roomlore.ports.storage import Storage
from roomlore.services.memories.bringing import Foreign, ReadMemories, bring
from roomlore.services.memories.naming import Named, the_only
from roomlore.services.memories.parts import Evolver, Searcher
from roomlore.services.memories.past import Past
from roomlore.services.memories.reviser import Reviser
from roomlore.services.memories.writer import MemoryWriter, OnConflict

Status = Literal["active", "deprecated", "all"]
_STATUSES: dict[str, MemoryStatus | None] = {
    "active": MemoryStatus.ACTIVE,
    "deprecated": MemoryStatus.DEPRECATED,
    "all": None,
}


class MemoryService:
    """The memories of one tenant."""

    def __init__(
        self,
        *,
        tenant: str,
        storage: Storage,
        writer: MemoryWriter,
        past: Past,
        reviser: Reviser,
        read_memories: ReadMemories,
        evolver: Evolver,
        searcher: Searcher,
    ) -> None:
        self._tenant = tenant
        self._storage = storage
        self._writer = writer
        self._past = past
        self._reviser = reviser
        self._read_memories = read_memories
        self._evolver = evolver
        self._searcher = searcher

    async def add(
        self,
        scope: str,
        statement: str,
        *,
        kind: MemoryKind = MemoryKind.FACT,
        confidence: float | None = None,
        category: str = "",
        tags: Sequence[str] = (),
        sources: Sequence[Source] = (),
        memory_id: str | None = None,
    ) -> Memory:
        """Remembers something of a scope ('user:anna', 'agent:bot', 'group:team') and gives what is there now.

        `confidence`: in [0, 1]; None where nobody said. `sources`: the messages that support it. What the scope
        remembers already in the same words (letter case and white space apart) is not added again: that memory comes
        back as it is. `memory_id`: an id of your own makes the call safe to repeat; the same id with the same content
        changes nothing, even after it was changed or deleted. Raises `Conflict` where the id is there with other
        content, `InvalidInput`, `StorageUnavailable`.
        """
        new = NewMemory(
            scope=scope,
            statement=statement,
            kind=kind,
            confidence=confidence,
            category=category,
            tags=tags,
            sources=sources,
            memory_id=memory_id,
        )
        return (await self._writer.add([new], on_conflict="raise"))[0].memory

    async def add_all(self, memories: Sequence[NewMemory], *, on_conflict: OnConflict = "raise") -> list[Remembered]:
        """As `add`, for up to 10,000 memories of any scopes in one transaction; what became of each, in their order.

        `on_conflict`: 'raise' adds nothing and raises `Conflict`, 'report' adds the others. Raises `InvalidInput`,
        `StorageUnavailable`.
        """
        if not isinstance(memories, Iterable) or isinstance(memories, str):
            raise InvalidInput(f"Give a list of roomlore.NewMemory, not {memories!r:.60}.")
        if on_conflict not in ("raise", "report"):
            raise InvalidInput(f"on_conflict is 'raise' or 'report', not {on_conflict!r:.60}.")
        return await self._writer.add(list(memories), on_conflict=on_conflict)

    async def update(
        self,
        memory_id: str,
        *,
        statement: str | None = None,
        confidence: float | Keep | None = KEEP,
        category: str | None = None,
        tags: Sequence[str] | None = None,
        sources: Sequence[Source] | None = None,
        expected: str | None = None,
        reason: str = "",
    ) -> Memory:
        """A new version of a memory, under a new id; the one before is deprecated. Any version's id will do.

        What is left out stays; a `confidence` of None takes it away. Where nothing changes there is no new version.
        `expected`: the id of the version that you saw. Without it the change is made of whatever is there now.
        Raises `Conflict` where another version than `expected` is in force, where it was deleted, or where another
        memory of the scope says the same; `NotFound`, `InvalidInput`, `StorageUnavailable`.
        """
        edit = Edit(
            statement=statement,
            confidence=confidence,
            category=category,
            tags=tags,
            sources=sources,
        )
        return await self._writer.update(memory_id, edit, expected=expected, reason=reason)

    async def delete(self, memory_id: str, reason: str = "", *, expected: str | None = None) -> Memory:
        """Deprecates a memory: it stays in the history and is not recalled any more. Any version's id will do.

        Deleting it again changes nothing. Raises `Conflict` where another version than `expected` is in force,
        `NotFound`, `InvalidInput`, `StorageUnavailable`.
        """
        return await self._writer.delete(memory_id, expected=expected, reason=reason)

    async def import_facts(
        self,
        source: Foreign,
        *,
        form: str | None = None,
        scope: str | None = None,
        dry_run: bool = False,
    ) -> FactImport:
        """Brings over what another system remembers: a path, the file's bytes, or its JSON as Python values.

        `form`: 'deerflow' or 'mem0'; None finds it out by looking. `scope`: of entries that do not say whom they are
        about. The same again changes nothing. What has changed there since becomes a new version, unless it was changed
        or deleted here. Entries that cannot be read are named and skipped. `dry_run`: says what would come of it.
        Raises `InvalidInput` where nothing of it can be read, `StorageUnavailable`.
        """
        found = await asyncio.to_thread(self._read_memories, source, form=form, scope=scope)
        return await bring(self._writer, found, dry_run=dry_run)

    async def head(self, memory_id: str) -> Memory:
        """The version in force of the memory that this id is a version of, or its last one; `NotFound`."""
        return await self._writer.head(memory_id)

    async def count(
        self, scope: str, *, kinds: Sequence[MemoryKind] = tuple(MemoryKind), status: Status = "active"
    ) -> int:
        """How many `page` has in all."""
        async with self._storage.reading() as work:
            return await work.memories.count(
                tenant=self._tenant, scopes=[check_scope(scope)], kinds=check_kinds(kinds), status=_status(status)
            )

    async def page(
        self,
        scope: str,
        *,
        kinds: Sequence[MemoryKind] = tuple(MemoryKind),
        status: Status = "active",
        limit: int = 100,
        offset: int = 0,
    ) -> list[Memory]:
        """The newest version of each memory of a scope, such as 'agent:bot', the last changed first.

        Raises `InvalidInput` for what is no scope, kind or status.
        """
        check_page(limit=limit, after=offset)
        async with self._storage.reading() as work:
            return await work.memories.page(
                tenant=self._tenant,
                scopes=[check_scope(scope)],
                kinds=check_kinds(kinds),
                status=_status(status),
                limit=limit,
                offset=offset,
            )

    async def get(self, memory_id: str) -> Memory:
        """The version with this id; `NotFound` where there is none."""
        async with self._storage.reading() as work:
            found = await work.memories.by_id(tenant=self._tenant, memory_ids=[memory_id])
        if not found:
            raise NotFound(f"There is no memory {memory_id!r:.80}.")
        return found[0]

    async def named(self, part: str, what: Named = "memory") -> str:
        """The id of a version, or of an evolution, that is `part`, or the only one that begins or ends with it.

        Raises `NotFound` where there is none, `InvalidInput` where several begin or end so.
        """
        async with self._storage.reading() as work:
            return await the_only(work, tenant=self._tenant, part=part, what=what)

    async def history(self, memory_id: str) -> list[Memory]:
        """Every version of the memory that this id is a version of, the first one first; `NotFound`.

        One that was merged into another memory has the versions that it had until then: `head` says what it became, and
        `blame` goes back over all that was merged.
        """
        known = await self.get(memory_id)
        async with self._storage.reading() as work:
            return await work.memories.lineage(tenant=self._tenant, lineage_id=known.lineage_id)

    async def changes(
        self, scope: str, *, after: int = 0, limit: int = 100, since: datetime | None = None
    ) -> list[Change]:
        """The log of a scope in the order things happened: entries with a number above `after`, made at `since` or
        later."""
        check_page(limit=limit, after=after)
        async with self._storage.reading() as work:
            return await work.memory_log.changes(
                tenant=self._tenant, scope=check_scope(scope), after=after, limit=limit, since=check_moment(since)
            )

    async def latest_changes(
        self, scope: str, *, before: int | None = None, limit: int = 100, since: datetime | None = None
    ) -> list[Change]:
        """The log of a scope, the newest entry first: those with a number below `before`, by default all, made at
        `since` or later."""
        check_page(limit=limit, after=before or 0)
        async with self._storage.reading() as work:
            return await work.memory_log.latest(
                tenant=self._tenant, scope=check_scope(scope), limit=limit, before=before, since=check_moment(since)
            )

    async def as_of(self, scope: str, at: datetime) -> list[Memory]:
        """What the scope remembered at a time, the oldest lineage first. Raises `InvalidInput`."""
        return await self._past.as_of(check_scope(scope), at)

    async def diff(self, scope: str, start: datetime, end: datetime | None = None) -> MemoryDiff:
        """What the scope remembers at `end` (by default now) that it did not at `start`, and the other way round.

        Raises `InvalidInput` where the end is before the start.
        """
        return await self._past.diff(check_scope(scope), start, end)

    async def blame(self, memory_id: str) -> Blame:
        """Which messages and which evolutions made the memory that this id is a version of; `NotFound`."""
        return await self._past.blame(memory_id)

    async def revert(self, evolution_id: str, reason: str = "") -> list[Change]:
        """Takes back what an evolution did, as new changes of the log: what it made goes, what it replaced is in force
        again, the same words under the same ids.

        What was changed since by somebody else is left as that made it: nothing is reverted then and `Conflict` names
        the memories, also where another one says by now what would come back. Evolutions that built on each other are
        taken back from the last to the first. One that was taken back already, or that changed nothing, gives an empty
        list. Raises `NotFound`, `StorageUnavailable`.
        """
        return await self._reviser.revert(evolution_id, reason)

    async def restore(self, memory_id: str, reason: str = "") -> Memory:
        """Brings the version with this id back into force, in the place of what is in force of its lineage.

        A memory that was merged into another one lives again beside that; `revert` takes a merge apart. Restoring what
        is in force changes nothing. Raises `Conflict` where another memory of the scope says the same, `InvalidInput`
        where it was redacted, `NotFound`, `StorageUnavailable`.
        """
        return await self._reviser.restore(memory_id, reason)

    async def strength(self, memory_id: str, value: float, reason: str = "") -> Memory:
        """Sets how strong a memory is, in [0, 1], as of now; it fades from there. Any version's id will do.

        Raises `Conflict` where the memory was deleted, `NotFound`, `InvalidInput`, `StorageUnavailable`.
        """
        return await self._reviser.strength(memory_id, value, reason)

    async def search(self, group_id: str, q: str, *, limit: int = 5, threshold: float = 0.7) -> MemoryAnswer:
        """The memories of a group that say something about a question, best first, those with a score of `threshold` or
        above. `group_id` may be a scope too, such as 'user:anna'.

        Scores are in [0, 1]; what they mean is the same for every embedder. Without one, or while it cannot be used, it
        goes by words alone and says so. Raises `InvalidInput`, `StorageUnavailable`.
        """
        return await self._searcher.search(
            tenant=self._tenant, scope=scope_of(group_id), query=q, limit=limit, threshold=threshold
        )

    async def evolve(self, group_id: str, *, days: float = 1, mode: Mode = "auto") -> EvolutionResult:
        """Reads what was said in a group since the last time and lets what is remembered of it evolve.

        The oldest 200 new messages are read; `remaining` says how many are left for the next call. `days`: how far back
        the first evolution of a group reads. `mode`: 'llm' asks a model once, 'offline' goes by rules alone, 'auto' is
        'llm' where a provider is set up. One evolution of a group at a time, over all processes: this waits for
        another one that is under way. A scope such as 'user:anna' will do for `group_id`: then what that person said
        becomes facts, one room at a time, and a model is needed: rules find nothing about one person.

        Raises `ModelUnavailable` where 'llm' is asked for and no provider answers; nothing is changed then. Raises
        `Conflict` where others kept changing the same memories meanwhile, `InvalidInput`, `StorageUnavailable`.
        """
        return await self._evolver.evolve(
            tenant=self._tenant, scope=scope_of(group_id), days=check_days(days), mode=check_mode(mode)
        )

    async def begin_evolution(self, group_id: str, *, days: float = 1, mode: Mode = "auto") -> BegunEvolution:
        """As `evolve`, as durable work: comes back at once. `lore.jobs.wait` waits for it, `evolved` says what came of
        it. Raises `ModelUnavailable` where 'llm' is asked for and no provider has a key, `InvalidInput`,
        `StorageUnavailable`."""
        return await self._evolver.begin(
            tenant=self._tenant, scope=scope_of(group_id), days=check_days(days), mode=check_mode(mode)
        )

    async def evolved(self, evolution_id: str) -> EvolutionResult:
        """What came of an evolution; `NotFound` where it is not done, or where there was nothing to read."""
        return await self._evolver.result(tenant=self._tenant, evolution_id=evolution_id)

    async def evolution(self, evolution_id: str) -> Evolution:
        """What made a memory: the messages it read, the model and its answer; `NotFound`."""
        async with self._storage.reading() as work:
            found = await work.evolutions.by_id(tenant=self._tenant, evolution_ids=[evolution_id])
        if not found:
            raise NotFound(f"There is no record {evolution_id!r:.80} of what made memories.")
        return found[0]

    async def evolutions(self, scope: str, *, before: str | None = None, limit: int = 20) -> list[Evolution]:
        """The records of what made memories of a scope, the newest first; `before`: an id to go on from."""
        check_page(limit=limit, after=0)
        async with self._storage.reading() as work:
            return await work.evolutions.page(tenant=self._tenant, scope=check_scope(scope), before=before, limit=limit)


def _status(status: Status) -> MemoryStatus | None:
    if not isinstance(status, str) or status not in _STATUSES:
        raise InvalidInput(f"status is {status!r:.60}; it is one of {', '.join(_STATUSES)}.")
    return _STATUSES[status]
