"""The verbs of `lore.memories`, the search for an id by a part of it, and the import of another system's memories."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any, Literal, Protocol, Unpack, cast, get_args

from roomlore.core.audience import check_share, check_viewer, may_see, unreplaced
from roomlore.core.errors import MOST_LISTED, Conflict, Forbidden, InvalidInput, NotFound, several_ids
from roomlore.core.evolution.requests import BegunEvolution, EvolutionResult, Mode, check_days, check_mode
from roomlore.core.intake import check_page
from roomlore.core.memory.memory import (
    Blame,
    Change,
    Evolution,
    Memory,
    MemoryAnswer,
    MemoryDiff,
    MemoryKind,
    MemoryStatus,
    Source,
    Status,
    check_scope,
)
from roomlore.core.memory.versions import AddedFact, FactImport, ImportedMemories, Remembered, Skipped, said_there_now
from roomlore.core.memory.writing import (
    MAX_BATCH,
    Edit,
    MemoryChanges,
    MemoryFields,
    NewMemory,
    check_kinds,
    check_moment,
    checked,
    scope_of,
)
from roomlore.core.search.facts import nobody_has
from roomlore.core.visibility import SeenIn, Visibility, as_shown_to, is_heard
from roomlore.ports.audience import view_for
from roomlore.ports.exports import MemoryExport, ReadMemories
from roomlore.ports.people import all_meant
from roomlore.ports.shared import Backends, Service
from roomlore.services.memories.history import MemoryPast, scopes_of, seen_in, visible_to
from roomlore.services.memories.writer import MemoryWriter, OnConflict, Reviser
from roomlore.storage import UnitOfWork

Named = Literal["memory", "evolution"]
_SHORTEST = 4
_ALL = 2**31 - 1
_EXCERPT = 80
_NOTED = 20
"""The most scopes of one call that are compared with the people who are known."""
_STATUSES: dict[str, MemoryStatus | None] = {
    "active": MemoryStatus.ACTIVE,
    "ended": MemoryStatus.ACTIVE,
    "deprecated": MemoryStatus.DEPRECATED,
    "all": None,
}


async def the_only(work: UnitOfWork, *, part: str, what: Named) -> str:
    """Return the id that is `part`, or the only one that begins or ends with it; `part` needs four characters.

    Raise `NotFound`, and `InvalidInput` if there are several.
    """
    if what not in get_args(Named):
        raise InvalidInput("choice_unknown", name="what", value=f"{what!r:.60}", known=", ".join(get_args(Named)))
    if not isinstance(part, str) or not part:
        raise InvalidInput("id_blank_of_kind", value=f"{part!r:.60}", what=what)
    if await _is_there(work, part, what):
        return part
    candidates = await _like(work, part, what) if len(part) >= _SHORTEST else []
    if not candidates:
        raise NotFound("id_unknown_of_kind", what=what, id=f"{part!r:.80}")
    if len(candidates) > 1:
        raise several_ids(part, candidates)
    return candidates[0]


async def _is_there(work: UnitOfWork, known: str, what: Named) -> bool:
    if what == "memory":
        return bool(await work.memories.by_id(memory_ids=[known]))
    return bool(await work.memories.evolutions_by_id(evolution_ids=[known]))


async def _like(work: UnitOfWork, part: str, what: Named) -> list[str]:
    like = work.memories.ids_like if what == "memory" else work.memories.evolution_ids_like
    return await like(part=part, limit=MOST_LISTED + 1)


class Evolver(Protocol):
    """A service that evolves scopes, of any tenant."""

    async def evolve(self, *, tenant: str, scope: str, days: float, mode: Mode) -> EvolutionResult:
        """Evolve a scope in this process, and return when it is done."""

    async def begin(self, *, tenant: str, scope: str, days: float, mode: Mode) -> BegunEvolution:
        """Start the same as durable work."""

    async def result(self, *, tenant: str, evolution_id: str) -> EvolutionResult:
        """Return the result. Raise `NotFound` if none was recorded."""


Searcher = Callable[..., Awaitable[MemoryAnswer]]
"""A search of the active memories of a scope, of any tenant, called with `tenant`, `scope`, `query`, `limit`,
`threshold`, `include_ended` and `viewer`."""


async def bring(writer: MemoryWriter, imported: ImportedMemories, *, dry_run: bool) -> FactImport:
    """Write the memories that were read, in as few transactions as possible."""
    good: list[tuple[str, NewMemory]] = []
    skipped = list(imported.skipped)
    for place, memory in imported.memories:
        try:
            good.append((place, checked(memory, writer.zone)))
        except InvalidInput as error:
            skipped.append(Skipped(place, str(error), memory.statement[:_EXCERPT]))
    counts: Counter[str] = Counter()
    for start in range(0, len(good), MAX_BATCH):
        part = good[start : start + MAX_BATCH]
        done = await writer.add([memory for _, memory in part], on_conflict="report", refresh=True, dry_run=dry_run)
        counts.update(outcome.outcome for outcome in done)
        skipped += [
            _left(*entry, outcome) for entry, outcome in zip(part, done, strict=True) if outcome.outcome == "conflict"
        ]
    return FactImport(
        form=imported.form,
        added=counts["added"],
        updated=counts["updated"],
        unchanged=counts["unchanged"],
        skipped=tuple(skipped),
        scopes=tuple(dict.fromkeys(memory.scope for _, memory in good)),
        dry_run=dry_run,
    )


def _left(place: str, new: NewMemory, done: Remembered) -> Skipped:
    there = done.memory
    what = "deleted" if there.status is not MemoryStatus.ACTIVE else "changed here, or is newer,"
    return Skipped(place, f"memory {there.memory_id!r:.80} was {what} and stays as it is", new.statement[:_EXCERPT])


class MemoryService(Service):
    """The memories of one tenant."""

    def __init__(
        self,
        backends: Backends,
        *,
        tenant: str,
        writer: MemoryWriter,
        past: MemoryPast,
        reviser: Reviser,
        read_memories: ReadMemories,
        evolver: Evolver,
        searcher: Searcher,
    ) -> None:
        super().__init__(backends)
        self._tenant = tenant
        self._writer = writer
        self._past = past
        self._reviser = reviser
        self._read_memories = read_memories
        self._evolver = evolver
        self._searcher = searcher

    async def add(self, scope: str, statement: str, **fields: Unpack[MemoryFields]) -> Memory:
        """Add a memory to a scope ('user:anna', 'agent:bot', 'group:team') and return the stored one.

        `fields`: those of `NewMemory`; each may be left out. If the scope already has a memory in the same words
        (letter case and white space apart) that holds and that those who heard this one may know, that one is returned
        unchanged. `memory_id`: an id of your own makes the call safe to repeat; the same id with the same content
        changes nothing, even after it was changed or deleted. Raise `Conflict` if the id exists with other content,
        `InvalidInput`, `StorageUnavailable`.
        """
        new = NewMemory(scope=scope, statement=statement, **fields)
        return (await self._writer.add([new], on_conflict="raise"))[0].memory

    async def add_all(self, memories: Sequence[NewMemory], *, on_conflict: OnConflict = "raise") -> list[Remembered]:
        """Add up to 10,000 memories of any scopes in one transaction, as `add` does; return the outcomes in the same
        order.

        `on_conflict`: 'raise' adds nothing and raises `Conflict`, 'report' adds the others. Raise `InvalidInput`,
        `StorageUnavailable`.
        """
        if not isinstance(memories, Iterable) or isinstance(memories, str):
            raise InvalidInput("memories_not_list", value=f"{memories!r:.60}")
        if on_conflict not in ("raise", "report"):
            raise InvalidInput("on_conflict_invalid", value=f"{on_conflict!r:.60}")
        return await self._writer.add(list(memories), on_conflict=on_conflict)

    async def add_told(self, memories: Sequence[NewMemory], *, viewer: str | None = None) -> list[AddedFact]:
        """Add memories in one transaction, as `viewer` may add them (`check_new`); return the current one for each as
        it is told them, in the same order, with notes on scopes of people of whom nothing is known. Raise as `add_all`
        and `check_new` do."""
        scopes = dict.fromkeys(new.scope for new in memories if isinstance(new.scope, str))
        doubts = await self._doubts([scope for scope in scopes if scope.startswith("user:")][:_NOTED], viewer)
        done = await self.add_all(await self.check_new(memories, viewer))
        current = await self.as_told([outcome.memory for outcome in done], viewer)
        names = [field.name for field in fields(Memory)]
        return [
            AddedFact(
                **{name: getattr(memory, name) for name in names},
                outcome=cast(Any, outcome.outcome),
                **doubts.get(new.scope, {}),
            )
            for new, memory, outcome in zip(memories, current, done, strict=True)
        ]

    async def _doubts(self, scopes: Sequence[str], viewer: str | None) -> dict[str, dict[str, Any]]:
        """Return notes, and who may be meant, of those of these people of whom nothing is known."""
        names = [scope.removeprefix("user:") for scope in scopes]
        async with self._storage.reading(self._tenant) as work:
            meant = await all_meant(work, names, viewer=viewer, now=self._clock.now())
        return {
            f"user:{name}": {"notes": (nobody_has(name, people),), "people_meant": tuple(people)}
            for name, people in meant.items()
            if people
        }

    async def update(
        self,
        memory_id: str,
        *,
        expected: str | None = None,
        reason: str = "",
        viewer: str | None = None,
        **changes: Unpack[MemoryChanges],
    ) -> Memory:
        """Make a new version of a memory, under a new id; the old one is deprecated. Any version's id works.

        `changes`: the fields of `Edit`. Arguments left out keep their values; a `confidence`, `valid_from` or
        `valid_until` of None removes it. A `valid_until` that is past ends the memory: it is shown only to those who
        ask for the past. If nothing changes there is no new version. If new `sources` were not heard by everybody who
        may see the memory, the result is a memory beside it, shown in its place to those who heard them. `expected`:
        the id of the version that you saw; without it the change applies to the current version. `viewer`: who makes
        the change: what 'room:team' says otherwise, without a new source, was said there now. Raise `Conflict` if
        another version than `expected` is active, if the memory was deleted, or if another memory of the scope says the
        same; `NotFound`, `InvalidInput`, `StorageUnavailable`.
        """
        shown_to = None if viewer is None else check_viewer(viewer)
        return await self._writer.update(memory_id, Edit(**changes), expected=expected, reason=reason, viewer=shown_to)

    async def delete(self, memory_id: str, reason: str = "", *, expected: str | None = None) -> Memory:
        """Delete a memory: it is deprecated, stays in the history and is no longer recalled. Any version's id works.

        Deleting it again changes nothing. Raise `Conflict` if another version than `expected` is active, `NotFound`,
        `InvalidInput`, `StorageUnavailable`.
        """
        return await self._writer.delete(memory_id, expected=expected, reason=reason)

    async def import_facts(
        self,
        source: MemoryExport,
        *,
        form: str | None = None,
        scope: str | None = None,
        dry_run: bool = False,
    ) -> FactImport:
        """Import what another system remembers: a path, the file's bytes, or its JSON as Python values.

        `form`: 'deerflow' or 'mem0'; None detects it. `scope`: of entries that do not name one. Importing the same
        again changes nothing. An entry that changed there becomes a new version, unless the memory was changed or
        deleted here. Entries that cannot be read are listed and skipped. `dry_run`: report what would happen. Raise
        `InvalidInput` if nothing of it can be read, `StorageUnavailable`.
        """
        imported = await asyncio.to_thread(self._read_memories, source, form=form, scope=scope)
        return await bring(self._writer, imported, dry_run=dry_run)

    async def head(self, memory_id: str, *, viewer: str | None = None) -> Memory:
        """Return the active version of the memory that this id is a version of, or its last one. Raise `NotFound`, also
        if the viewer may not see it, or not what this id leads over to it."""
        newest = await self._writer.head(memory_id)
        if viewer is None:
            return newest
        if memory_id != newest.memory_id:
            await self._check_led(memory_id, newest, viewer)
        seen = await self._visible([newest], viewer)
        if not seen:
            raise NotFound("memory_unknown", memory=f"{memory_id!r:.80}")
        return seen[0]

    async def _check_led(self, memory_id: str, head: Memory, viewer: str) -> None:
        """Raise `NotFound` unless the viewer may see the version with this id and be led from it to the head."""
        version = await self.get(memory_id)
        if not (await self._visible([version], viewer) and await self._leads(version, head, viewer)):
            raise NotFound("memory_unknown", memory=f"{memory_id!r:.80}")

    async def _leads(self, version: Memory, head: Memory, viewer: str) -> bool:
        """Return True if the version is one of the head's own memory, or if the viewer may see all versions of its
        memory: a hidden one gives way to another that says the same, which would tell what it said."""
        if version.lineage_id == head.lineage_id:
            return True
        async with self._storage.reading(self._tenant) as work:
            every = await work.memories.lineage(lineage_id=version.lineage_id)
        return len(await self._visible(every, viewer)) == len(every)

    async def check_shown(self, memory_id: str, viewer: str | None) -> None:
        """Raise `NotFound` unless the viewer, 'room:team' or 'user:anna', may see this version of a memory and the one
        in force. None may see every memory."""
        if viewer is not None:
            await self.head(memory_id, viewer=viewer)

    async def check_changeable(self, memory_id: str, viewer: str | None, *, citing: Sequence[Source] = ()) -> None:
        """Raise `NotFound` as `check_shown` does, `Forbidden` if the memory was only shared with the viewer, who did
        not hear all that it rests on, and `InvalidInput` as `check_cited` does for sources that the memory does not
        have."""
        if viewer is None:
            return
        await self.check_shown(memory_id, viewer)
        head = await self._writer.head(memory_id)
        async with self._storage.reading(self._tenant) as work:
            shown_to, now = check_viewer(viewer), self._clock.now()
            view = await view_for(work, viewer=shown_to, memories=[head], now=now)
        if not is_heard(head, view):
            raise Forbidden("memory_only_shared", memory=f"{memory_id!r:.80}", viewer=f"{viewer:.80}")
        await self.check_cited([source for source in citing if source not in head.sources], viewer)

    async def as_told(self, memories: Sequence[Memory], viewer: str | None) -> list[Memory]:
        """Return memories as the viewer is told them, such as the answer to a change that they made: without what they
        may not know of them. None is told everything."""
        if viewer is None:
            return list(memories)
        shown_to, now = check_viewer(viewer), self._clock.now()
        async with self._storage.reading(self._tenant) as work:
            view = await view_for(work, viewer=shown_to, memories=memories, now=now)
        return [as_shown_to(memory, view) for memory in memories]

    async def check_cited(self, sources: Sequence[Source], viewer: str | None) -> None:
        """Raise `InvalidInput` if the viewer may not see one of these messages, as if it were not there. None may see
        every message."""
        if viewer is not None:
            await self._writer.check_cited(sources, check_viewer(viewer))

    async def check_new(self, memories: Sequence[NewMemory], viewer: str | None) -> list[NewMemory]:
        """Return new memories as a viewer may add them: one that a room adds without a message was said in that room
        now. Those of a person and of None, without a message, are for all.

        Raise as `check_cited` does for the sources, and `Conflict` if an id of one is that of a memory which the viewer
        may not see, whatever it says.
        """
        if viewer is None:
            return list(memories)
        await self.check_cited([source for new in memories for source in new.sources], viewer)
        ids = [new.memory_id for new in memories if new.memory_id is not None]
        async with self._storage.reading(self._tenant) as work:
            stored = {one.memory_id: one for one in await work.memories.by_id(memory_ids=ids)}
            heads = await work.memories.heads(memory_ids=list(stored))
        seen = {memory.memory_id for memory in await self._visible([*stored.values(), *heads.values()], viewer)}
        for name in stored:
            known = name in seen and heads[name].memory_id in seen
            if not known or not await self._leads(stored[name], heads[name], viewer):
                raise Conflict("memory_exists", memory=f"{name!r:.80}")
        now = self._clock.now()
        return [said_there_now(new, check_viewer(viewer), now) for new in memories]

    async def count(
        self,
        scope: str,
        *,
        kinds: Sequence[MemoryKind] = tuple(MemoryKind),
        status: Status = "active",
        viewer: str | None = None,
    ) -> int:
        """Return the total number of memories that `page` lists."""
        if viewer is not None:
            return len(await self._listed(scope, kinds, status, viewer))
        async with self._storage.reading(self._tenant) as work:
            return await work.memories.count(
                scopes=[check_scope(scope)], kinds=check_kinds(kinds), **_standing(status, self._clock.now())
            )

    async def page(
        self,
        scope: str,
        *,
        kinds: Sequence[MemoryKind] = tuple(MemoryKind),
        status: Status = "active",
        limit: int = 100,
        offset: int = 0,
        viewer: str | None = None,
    ) -> list[Memory]:
        """Return the newest version of each memory of a scope, such as 'agent:bot', the last changed first.

        `status`: 'active' is valid now or will be, 'ended' is no longer valid because its `valid_until` is past,
        'deprecated' what was deleted or merged. `viewer`: to whom it is shown, 'room:team' or 'user:anna'; without one
        everything is listed, and the caller decides who sees it. Raise `InvalidInput` for an invalid scope, kind,
        status or viewer.
        """
        check_page(limit=limit, after=offset)
        if viewer is not None:
            return (await self._listed(scope, kinds, status, viewer))[offset : offset + limit]
        async with self._storage.reading(self._tenant) as work:
            return await work.memories.page(
                scopes=[check_scope(scope)],
                kinds=check_kinds(kinds),
                **_standing(status, self._clock.now()),
                limit=limit,
                offset=offset,
            )

    async def _listed(self, scope: str, kinds: Sequence[MemoryKind], status: Status, viewer: str) -> list[Memory]:
        """Return the memories of `page` that the viewer may see. All are read, as limits count what is seen, and what
        has ended replaces what others are still shown."""
        now = self._clock.now()
        async with self._storage.reading(self._tenant) as work:
            every = await work.memories.page(
                scopes=[check_scope(scope)],
                kinds=check_kinds(kinds),
                status=_standing(status, now)["status"],
                limit=_ALL,
            )
        seen = await self._visible(every, viewer)
        _, replaced = unreplaced([memory for memory in seen if memory.status is MemoryStatus.ACTIVE])
        wanted = {"active": (True,), "ended": (False,)}.get(status, (True, False))
        return [memory for memory in seen if memory.memory_id not in replaced and memory.holds(now) in wanted]

    async def _visible(self, memories: Sequence[Memory], viewer: str) -> list[Memory]:
        shown_to, now = check_viewer(viewer), self._clock.now()
        async with self._storage.reading(self._tenant) as work:
            view = await view_for(work, viewer=shown_to, memories=memories, now=now)
            seen = {memory.memory_id: memory for memory in memories if may_see(memory, view)}
            others = {
                name
                for memory in seen.values()
                if not is_heard(memory, view)
                for name in (memory.lineage_id, *memory.parents)
                if name not in seen
            }
            ids = set(seen)
            if others:
                before = await work.memories.by_id(memory_ids=sorted(others))
                limits = await view_for(work, viewer=shown_to, memories=before, now=now)
                ids |= {memory.memory_id for memory in before if may_see(memory, limits)}
        return [as_shown_to(memory, view, ids) for memory in seen.values()]

    async def visible(self, viewer: str, *, scope: str | None = None) -> list[Visibility]:
        """Return every active memory that concerns the viewer, 'room:team' or 'user:anna', with the reasons why it is
        shown there or not.

        `scope`: the memories of this scope; without one those of the room and of everybody who is or was in it, or
        those of the person. It names what is withheld, so it is for administrators. Raise `InvalidInput`.
        """
        shown_to = check_viewer(viewer)
        async with self._storage.reading(self._tenant) as work:
            scopes = [check_scope(scope)] if scope is not None else await scopes_of(work, viewer=shown_to)
            return await visible_to(work, viewer=shown_to, scopes=scopes, now=self._clock.now())

    async def seen_in(self, memory_id: str) -> SeenIn:
        """Return in which rooms this version of a memory may be shown now. It is for administrators. Raise
        `NotFound`."""
        memory = await self.get(memory_id)
        async with self._storage.reading(self._tenant) as work:
            return await seen_in(work, memory=memory, now=self._clock.now())

    async def get(self, memory_id: str, *, viewer: str | None = None) -> Memory:
        """Return the version with this id. Raise `NotFound` if there is none, or none that the viewer may see."""
        async with self._storage.reading(self._tenant) as work:
            memories = await work.memories.by_id(memory_ids=[memory_id])
        if viewer is not None:
            memories = await self._visible(memories, viewer)
        if not memories:
            raise NotFound("memory_unknown", memory=f"{memory_id!r:.80}")
        return memories[0]

    async def named(self, part: str, what: Named = "memory") -> str:
        """Return the id of a version, or of an evolution, that is `part`, or the only one that begins or ends with it.

        Raise `NotFound` if there is none, `InvalidInput` if several match.
        """
        async with self._storage.reading(self._tenant) as work:
            return await the_only(work, part=part, what=what)

    async def history(self, memory_id: str, *, viewer: str | None = None) -> list[Memory]:
        """Return every version of the memory that this id is a version of, the first one first; for a viewer those that
        they may see. Raise `NotFound`.

        A memory that was merged into another has the versions until then: `head` returns what it became, and `blame`
        goes back over everything that was merged.
        """
        if viewer is not None:
            await self.get(memory_id, viewer=viewer)
        known = await self.get(memory_id)
        async with self._storage.reading(self._tenant) as work:
            every = await work.memories.lineage(lineage_id=known.lineage_id)
        return every if viewer is None else await self._visible(every, viewer)

    async def changes(
        self, scope: str, *, after: int = 0, limit: int = 100, since: datetime | None = None
    ) -> list[Change]:
        """Return the log of a scope in the order of the changes: entries with a number above `after`, made at `since`
        or later."""
        check_page(limit=limit, after=after)
        async with self._storage.reading(self._tenant) as work:
            return await work.memories.changes(
                scope=check_scope(scope), after=after, limit=limit, since=check_moment(since)
            )

    async def latest_changes(
        self, scope: str, *, before: int | None = None, limit: int = 100, since: datetime | None = None
    ) -> list[Change]:
        """Return the log of a scope, the newest entry first: entries with a number below `before`, by default all, made
        at `since` or later."""
        check_page(limit=limit, after=before or 0)
        async with self._storage.reading(self._tenant) as work:
            return await work.memories.latest_changes(
                scope=check_scope(scope), limit=limit, before=before, since=check_moment(since)
            )

    async def as_of(self, scope: str, at: datetime) -> list[Memory]:
        """Return what the scope remembered at a time, the oldest lineage first, without what had ended by then. Raise
        `InvalidInput`."""
        return await self._past.as_of(check_scope(scope), at)

    async def diff(self, scope: str, start: datetime, end: datetime | None = None) -> MemoryDiff:
        """Return what the scope remembers at `end` (by default now) and did not at `start`, and the reverse.

        Raise `InvalidInput` if the end is before the start.
        """
        return await self._past.diff(check_scope(scope), start, end)

    async def blame(self, memory_id: str) -> Blame:
        """Return the messages and evolutions that made the memory that this id is a version of. Raise `NotFound`."""
        return await self._past.blame(memory_id)

    async def revert(self, evolution_id: str, reason: str = "") -> list[Change]:
        """Undo an evolution, by new changes of the log: memories it made are removed, memories it replaced are active
        again, with the same words and ids.

        If others changed such a memory since, or another memory now says the same as one to come back, nothing is
        reverted and `Conflict` names the memories. Evolutions that build on each other are reverted from the last to
        the first. One that was reverted already, or that changed nothing, gives an empty list. Raise `NotFound`,
        `StorageUnavailable`.
        """
        return await self._reviser.revert(evolution_id, reason)

    async def restore(self, memory_id: str, reason: str = "") -> Memory:
        """Make the version with this id active again, in place of the active version of its lineage.

        A memory that was merged into another one becomes active beside it; `revert` undoes a merge. Restoring an active
        version changes nothing. Raise `Conflict` if another memory of the scope says the same, `InvalidInput` if it was
        redacted, `NotFound`, `StorageUnavailable`.
        """
        return await self._reviser.restore(memory_id, reason)

    async def strength(self, memory_id: str, value: float, reason: str = "") -> Memory:
        """Set the strength of a memory now, in [0, 1]; it fades from there. Any version's id works.

        Raise `Conflict` if the memory was deleted, `NotFound`, `InvalidInput`, `StorageUnavailable`.
        """
        return await self._reviser.strength(memory_id, value, reason)

    async def share(self, memory_id: str, with_: str, *, by: str | None = None, reason: str = "") -> Memory:
        """Share a memory with a room ('room:team') or with 'everyone', beside those who heard it. Any version's id
        works.

        The share is of the present version: the next one begins without it if it says or rests on anything new. `by`:
        the id of the person who asks; None if an administrator does. The change is logged, and `unshare` reverts it.
        Raise `Forbidden` if the memory is not about that person, `Conflict` if it was deleted, `NotFound`,
        `InvalidInput`, `StorageUnavailable`.
        """
        return await self._reviser.share(memory_id, check_share(with_), by=by, ends=False, reason=reason)

    async def unshare(self, memory_id: str, with_: str, *, by: str | None = None, reason: str = "") -> Memory:
        """End a share. If there is none nothing changes. Raise as `share` does."""
        return await self._reviser.share(memory_id, check_share(with_), by=by, ends=True, reason=reason)

    async def search(
        self,
        group_id: str,
        q: str,
        *,
        limit: int = 5,
        threshold: float = 0.7,
        include_ended: bool = False,
        viewer: str | None = None,
    ) -> MemoryAnswer:
        """Return the memories of a group that answer a question, best first, those with a score of `threshold` or
        above. `group_id` may also be a scope, such as 'user:anna'.

        Scores are in [0, 1] and mean the same for every embedder. Without an embedder, or while it cannot be used, the
        search uses words alone and says so. `include_ended`: also what is no longer valid, for questions about the
        past. `viewer`: to whom it is shown, 'room:team' or 'user:anna'; without one everything
        is searched, and the caller decides who sees it. Raise `InvalidInput`, `StorageUnavailable`.
        """
        return await self._searcher(
            tenant=self._tenant,
            scope=scope_of(group_id),
            query=q,
            limit=limit,
            threshold=threshold,
            include_ended=include_ended,
            viewer=None if viewer is None else check_viewer(viewer),
        )

    async def evolve(self, group_id: str, *, days: float = 1, mode: Mode = "auto") -> EvolutionResult:
        """Read the new messages of a group and let its memories evolve.

        The oldest 200 new messages are read; `remaining` is the number left for the next call. `days`: how far back the
        first evolution of a group reads. `mode`: 'llm' asks a model once, 'offline' uses rules alone, 'auto' is 'llm'
        if a provider is set up. Only one evolution of a group runs at a time, over all processes: this call waits for
        another one. `group_id` may also be a scope such as 'user:anna': then what that person said becomes facts, one
        room at a time, and a model is needed, because the rules find nothing about one person.

        Raise `ModelUnavailable` if 'llm' is requested and no provider answers; nothing is changed then. Raise
        `Conflict` if others kept changing the same memories meanwhile, `InvalidInput`, `StorageUnavailable`.
        """
        return await self._evolver.evolve(
            tenant=self._tenant, scope=scope_of(group_id), days=check_days(days), mode=check_mode(mode)
        )

    async def begin_evolution(self, group_id: str, *, days: float = 1, mode: Mode = "auto") -> BegunEvolution:
        """Start `evolve` as durable work and return at once. `lore.jobs.wait` waits for it, `evolved` returns the
        result. Raise `ModelUnavailable` if 'llm' is requested and no provider has a key, `InvalidInput`,
        `StorageUnavailable`."""
        return await self._evolver.begin(
            tenant=self._tenant, scope=scope_of(group_id), days=check_days(days), mode=check_mode(mode)
        )

    async def evolved(self, evolution_id: str) -> EvolutionResult:
        """Return the result of an evolution. Raise `NotFound` if it is not done, or if there was nothing to read."""
        return await self._evolver.result(tenant=self._tenant, evolution_id=evolution_id)

    async def evolution(self, evolution_id: str) -> Evolution:
        """Return the record of an evolution: the messages it read, the model and its answer. Raise `NotFound`."""
        async with self._storage.reading(self._tenant) as work:
            evolutions = await work.memories.evolutions_by_id(evolution_ids=[evolution_id])
        if not evolutions:
            raise NotFound("memory_origin_unknown", evolution=f"{evolution_id!r:.80}")
        return evolutions[0]

    async def evolutions(self, scope: str, *, before: str | None = None, limit: int = 20) -> list[Evolution]:
        """Return the records of evolutions of a scope, the newest first; `before`: an id to continue from."""
        check_page(limit=limit, after=0)
        async with self._storage.reading(self._tenant) as work:
            return await work.memories.evolutions(scope=check_scope(scope), before=before, limit=limit)


def _standing(status: Status, now: datetime) -> dict[str, Any]:
    """Return the filters of a list."""
    if not isinstance(status, str) or status not in _STATUSES:
        raise InvalidInput("choice_unknown", name="status", value=f"{status!r:.60}", known=", ".join(_STATUSES))
    held = {"active": {"held_at": now}, "ended": {"ended_by": now}}
    return {"status": _STATUSES[status], **held.get(status, {})}
