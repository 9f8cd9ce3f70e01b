"""The memories of a scope at a time, the origin of a memory, which memories a viewer is shown and why, and the rooms in
which a memory is shown."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from roomlore.core.audience import Viewer, may_see, people_of, public_windows, rooms_named, view_of, windows_of
from roomlore.core.errors import InvalidInput, NotFound
from roomlore.core.memory import log
from roomlore.core.memory.log import Walk
from roomlore.core.memory.memory import (
    Blame,
    BlamedVersion,
    Change,
    Evidence,
    Evolution,
    Memory,
    MemoryDiff,
    MemoryKind,
    MemoryStatus,
    Source,
)
from roomlore.core.memory.writing import check_moment
from roomlore.core.models import StoredMessage
from roomlore.core.visibility import SeenIn, Visibility, is_for_all, visibilities
from roomlore.ports.audience import view_for
from roomlore.ports.shared import Backends, Service
from roomlore.storage import UnitOfWork

_ROOMS_AT_ONCE = 200
_ALL = 2**31 - 1


async def scopes_of(work: UnitOfWork, *, viewer: Viewer) -> list[str]:
    """Return whom a viewer is shown memories about: a room its own and those of everybody who is or was there, a person
    their own."""
    if viewer.kind == "user":
        return [f"user:{viewer.id}"]
    rooms = await work.rooms.people(room_ids=[viewer.id])
    people = rooms[viewer.id].people if viewer.id in rooms else {}
    senders = await work.rooms.participants(room_id=viewer.id)
    agents = [f"agent:{sender}" for sender in sorted(senders.keys() - people.keys())]
    return [f"group:{viewer.id}", *(f"user:{person}" for person in sorted(people)), *agents]


async def visible_to(work: UnitOfWork, *, viewer: Viewer, scopes: list[str], now: datetime) -> list[Visibility]:
    """Return every memory of these scopes that is in force with the reasons why the viewer is shown it or not."""
    kinds = list(MemoryKind)
    memories = await work.memories.page(scopes=scopes, kinds=kinds, status=MemoryStatus.ACTIVE, limit=_ALL)
    view = await view_for(work, viewer=viewer, memories=memories, now=now)
    named = await work.rooms.people(room_ids=rooms_named(memories), persons=[])
    public = {room_id: public_windows(room) for room_id, room in named.items()}
    return [visibility for visibility in visibilities(memories, viewer, view, public) if visibility.memory.holds(now)]


async def seen_in(work: UnitOfWork, *, memory: Memory, now: datetime) -> SeenIn:
    """Return in which rooms a memory may be shown now. All rooms of the tenant are read, some at a time."""
    sources = await work.rooms.people(room_ids=rooms_named([memory]))
    if is_for_all(memory, {room_id: public_windows(room) for room_id, room in sources.items()}):
        return SeenIn(True)
    rooms: list[str] = []
    hidden, after = 0, None
    while page := await work.rooms.page(after=after, limit=_ROOMS_AT_ONCE):
        after = page[-1].room_id
        people = await work.rooms.people(room_ids=[room.room_id for room in page])
        for room_id, own in people.items():
            viewer = Viewer("room", room_id)
            audience = people_of(viewer, own, now)
            view = view_of(viewer, {name: windows_of(room, audience) for name, room in sources.items()}, now)
            if may_see(memory, view):
                rooms.append(room_id)
            else:
                hidden += 1
    return SeenIn(False, tuple(sorted(rooms)), hidden)


_TOUCHES = 1000


class MemoryPast(Service):
    """The past of one tenant's memories."""

    def __init__(self, backends: Backends, *, tenant: str) -> None:
        super().__init__(backends)
        self._tenant = tenant

    async def as_of(self, scope: str, at: datetime) -> list[Memory]:
        """Return what the scope remembered at a time, the oldest lineage first, without what had ended by then. The
        time is that of storing, not the one since when the fact is said to be known. Raise `InvalidInput`."""
        return await self._chosen(scope, await self._walk(scope, _moment(at, "at")))

    async def diff(self, scope: str, start: datetime, end: datetime | None = None) -> MemoryDiff:
        """Return the changes between `start` and `end`; `end` is now by default. Raise `InvalidInput`."""
        begins, ends = _moment(start, "start"), self._clock.now() if end is None else _moment(end, "end")
        if ends < begins:
            raise InvalidInput("end_before_start", end=ends.isoformat(), start=begins.isoformat())
        before, after = await self._walk(scope, begins), await self._walk(scope, ends)
        was, now = await self._chosen(scope, before), await self._chosen(scope, after)
        async with self._storage.reading(self._tenant) as work:
            changes = await work.memories.changes_of_lineages(
                scope=scope,
                lineage_ids=[old.lineage_id for old, _ in log.revised(was, now)],
                after=before.number,
                until=after.number,
            )
        return log.diff(scope, begins, ends, before=was, after=now, changes=changes)

    async def blame(self, memory_id: str) -> Blame:
        """Return what made a memory: every version that its current version goes back to, the newest first. Raise
        `NotFound`."""
        async with self._storage.reading(self._tenant) as work:
            heads = await work.memories.heads(memory_ids=[memory_id])
            if memory_id not in heads:
                raise NotFound("memory_unknown", memory=f"{memory_id!r:.80}")
            head = heads[memory_id]
            versions = await self._origins(work, head)
            logged = await work.memories.changes_of_memories(memory_ids=list(versions))
            made_by = await self._evolutions(work, versions.values())
            messages = await self._messages(work, versions.values())
            gone = {source for version in versions.values() for source in version.sources}.difference(messages)
            archived = await self._archived(work, gone)
        makers = log.makers(logged)
        ordered = sorted(versions, key=lambda name: makers[name].number if name in makers else 0, reverse=True)
        blamed = [_blamed(versions[name], versions, makers, made_by, messages, archived) for name in ordered]
        return Blame(memory=head, versions=tuple(blamed))

    async def _walk(self, scope: str, at: datetime) -> Walk:
        """Walk from the last snapshot that serves this moment. The changes are read without their contents, which are
        the larger part of the work."""
        async with self._storage.reading(self._tenant) as work:
            walk = Walk(at, start=await work.memories.snapshot(scope=scope, at=at))
        while not walk.done:
            async with self._storage.reading(self._tenant) as work:
                page = await work.memories.touches(scope=scope, after=walk.read, limit=_TOUCHES)
            walk.take(page)
            if len(page) < _TOUCHES:
                break
        return walk

    async def _chosen(self, scope: str, walk: Walk) -> list[Memory]:
        numbers = sorted(walk.in_force.values())
        async with self._storage.reading(self._tenant) as work:
            changes = await work.memories.changes_by_number(scope=scope, numbers=numbers)
        return [memory for memory in walk.chosen(changes) if memory.holds(walk.at)]

    async def _origins(self, work: UnitOfWork, head: Memory) -> dict[str, Memory]:
        """Read lineage by lineage: the number of reads follows the merges, not the versions."""
        known: dict[str, Memory] = {}
        lineages = {head.lineage_id}
        while lineages:
            for lineage_id in sorted(lineages):
                ancestors = await work.memories.lineage(lineage_id=lineage_id)
                known |= {memory.memory_id: memory for memory in ancestors}
            reached, missing = log.origins(head.memory_id, known)
            others = await work.memories.by_id(memory_ids=sorted(missing))
            lineages = {memory.lineage_id for memory in others}
        return reached

    async def _evolutions(self, work: UnitOfWork, versions: Iterable[Memory]) -> dict[str, Evolution]:
        names = sorted({memory.evolution_id for memory in versions if memory.evolution_id is not None})
        evolutions = await work.memories.evolutions_by_id(evolution_ids=names)
        return {evolution_.evolution_id: evolution_ for evolution_ in evolutions}

    async def _messages(self, work: UnitOfWork, versions: Iterable[Memory]) -> dict[Source, StoredMessage]:
        by_room: dict[str, set[str]] = {}
        for source in (source for memory in versions for source in memory.sources):
            by_room.setdefault(source.room_id, set()).add(source.message_id)
        messages_by_source: dict[Source, StoredMessage] = {}
        for room_id, ids in sorted(by_room.items()):
            entries = await work.messages.by_id(room_id=room_id, message_ids=sorted(ids))
            messages_by_source |= {Source(room_id, entry.message.id): entry.message for entry in entries}
        return messages_by_source

    async def _archived(self, work: UnitOfWork, gone: Iterable[Source]) -> dict[Source, str]:
        """Return the archives that hold these messages."""
        by_room: dict[str, set[str]] = {}
        for source in gone:
            by_room.setdefault(source.room_id, set()).add(source.message_id)
        archives_by_source: dict[Source, str] = {}
        for room_id, ids in sorted(by_room.items()):
            held = await work.archives.of_messages(room_id=room_id, message_ids=sorted(ids))
            archives_by_source |= {Source(room_id, message_id): archive_id for message_id, archive_id in held.items()}
        return archives_by_source


def _blamed(
    version: Memory,
    versions: Mapping[str, Memory],
    makers: Mapping[str, Change],
    made_by: Mapping[str, Evolution],
    messages: Mapping[Source, StoredMessage],
    archived: Mapping[Source, str],
) -> BlamedVersion:
    return BlamedVersion(
        memory=version,
        change=makers.get(version.memory_id),
        evolution=made_by.get(version.evolution_id or ""),
        evidence=tuple(
            Evidence(source, messages.get(source), archived.get(source)) for source in _added(version, versions)
        ),
    )


def _added(version: Memory, versions: Mapping[str, Memory]) -> Sequence[Source]:
    """Return the messages that support it and none of its parents."""
    before = {source for name in version.parents if name in versions for source in versions[name].sources}
    return [source for source in version.sources if source not in before]


def _moment(given: datetime, name: str) -> datetime:
    """Return the time in UTC. Raise `InvalidInput` if it is no time."""
    moment = check_moment(given, name)
    if moment is None:
        raise InvalidInput("time_is_none", name=name)
    return moment
