"""Rooms, their threads and their own settings."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from roomlore.core.audience import (
    ALWAYS,
    BEGINNING,
    NEVER,
    Member,
    RoomKind,
    RoomPeople,
    Stays,
    Viewer,
    added,
    all_members,
    check_members,
    check_room_kind,
    check_viewer,
    kinds_before,
    may_see,
    removed,
)
from roomlore.core.context import ContextOptions, from_json
from roomlore.core.deletion import RoomReport
from roomlore.core.errors import Conflict, InvalidInput, NotFound, unknown_room
from roomlore.core.intake import MAX_ID_CHARS, check_page, check_room_name
from roomlore.core.memory.memory import MemoryKind, MemoryStatus, check_scope
from roomlore.core.memory.writing import check_moment
from roomlore.core.models import Entry, Heading, Room, Thread
from roomlore.ports.audience import check_shown, has_id, rooms_meant, rooms_shown, sees_all_of, view_for
from roomlore.ports.durable import owner_prefix
from roomlore.ports.shared import Backends, Service
from roomlore.ports.titles import headings_of
from roomlore.ports.verbs import RoomDeletions
from roomlore.storage import UnitOfWork

_ROOMS_AT_ONCE = 200
_LISTED = 5
_MAX_HEADINGS = 500

MoveMark = Callable[[str, str, str | None], Awaitable[int]]
"""Called with a room, a person and a message: mark what was said up to the message as read, and return the arrival that
the person has read up to."""


class RoomService(Service):
    """The rooms of one tenant."""

    def __init__(
        self,
        backends: Backends,
        *,
        tenant: str,
        options: ContextOptions,
        move_mark: MoveMark,
        deletions: Callable[[], RoomDeletions],
    ) -> None:
        super().__init__(backends)
        self._deletions = deletions
        self._tenant = tenant
        self._move_mark = move_mark
        self._options = options

    async def get(self, room_id: str) -> Room:
        """Return the room. Raise `NotFound` if no message was ever stored in it."""
        async with self._storage.reading(self._tenant) as work:
            return await work.rooms.get(room_id=room_id)

    async def named(self, name: str, *, viewer: str | None = None, or_new: bool = False) -> str:
        """Return the id of the room with this id, or else of the only room with this name, whatever its case in ASCII.

        `viewer`: among the rooms that 'room:team' or 'user:anna' may see all of, of which a name finds the 200 used
        last. `or_new`: if there is none, return the name, as the id of a room that may come. Raise `NotFound` if there
        is none, `InvalidInput` that lists some ids if several rooms have the name.
        """
        if not isinstance(name, str) or not name:
            raise InvalidInput("room_name_blank", value=f"{name!r:.60}")
        shown_to = None if viewer is None else check_viewer(viewer)
        async with self._storage.reading(self._tenant) as work:
            if await self._is_id(work, name, shown_to):
                return name
            room_ids = await self._called(work, name, shown_to)
        if not room_ids and or_new:
            return name
        return _only(name, room_ids, viewed=shown_to is not None)

    async def scope_named(self, scope: str, *, viewer: str | None = None) -> str:
        """Return a scope such as 'group:Tea party' with the id of the room in place of its name, found as `named` finds
        it; other scopes as they are.

        The scope of an id is never taken for a name: it stays if the room is there or anything is remembered in the
        scope, and if no room has the name. `viewer`: as for `named`; what it may not see does not count. Raise
        `InvalidInput` if it is no scope, or if several rooms have the name.
        """
        kind, _, name = check_scope(scope).partition(":")
        shown_to = None if viewer is None else check_viewer(viewer)
        if kind != "group":
            return scope
        async with self._storage.reading(self._tenant) as work:
            if await self._is_id(work, name, shown_to):
                return scope
            room_ids = await self._called(work, name, shown_to)
            if not room_ids or await self._remembers(work, scope, shown_to):
                return scope
        return f"group:{_only(name, room_ids)}"

    async def check_there(self, scope: str) -> None:
        """Raise `NotFound` if neither a room nor a person has the id of a scope, and nothing was ever remembered in it,
        `InvalidInput` if it is no scope."""
        kind, _, name = check_scope(scope).partition(":")
        async with self._storage.reading(self._tenant) as work:
            if await has_id(work, scope=scope) or await self._remembers(work, scope, None):
                return
        if kind == "group":
            raise unknown_room(name)
        raise NotFound("scope_unknown", scope=f"{scope!r:.80}")

    async def _is_id(self, work: UnitOfWork, name: str, viewer: Viewer | None) -> bool:
        """Return True if there is a room with this id of which the viewer may see anything."""
        if viewer is None:
            return await work.rooms.find(room_id=name) is not None
        if viewer == Viewer("room", name):
            return True
        view = await view_for(work, viewer=viewer, rooms=[name], now=self._clock.now())
        return view.windows.get(name, NEVER) != NEVER

    async def _called(self, work: UnitOfWork, name: str, viewer: Viewer | None) -> list[str]:
        """Return the ids of the rooms with this name of which the viewer may see all."""
        if viewer is None:
            like = await work.rooms.named_like(part=name, limit=_ROOMS_AT_ONCE, whole=True)
        else:
            now = self._clock.now()
            seen = await rooms_shown(work, viewer=viewer, now=now, most=_ROOMS_AT_ONCE)
            like = [room for room, windows in seen.rooms if windows == ALWAYS]
        return [room.room_id for room in like if room.name.casefold() == name.casefold()]

    async def _remembers(self, work: UnitOfWork, scope: str, viewer: Viewer | None) -> bool:
        """Return True if anything was ever remembered in the scope, or holds there that the viewer may see."""
        known = await work.memories.scope(scope=scope)
        if known is None or viewer is None:
            return known is not None and known.changes > 0
        held = await work.memories.page(
            scopes=[scope], kinds=tuple(MemoryKind), status=MemoryStatus.ACTIVE, limit=max(known.active, 1)
        )
        view = await view_for(work, viewer=viewer, memories=held, now=self._clock.now())
        return any(may_see(memory, view) for memory in held)

    async def meant(self, name: str, *, viewer: str | None = None) -> str:
        """Return a sentence that names the rooms which a misspelt id or name may mean, '' if there are none.

        `viewer`: only rooms that 'room:team' or 'user:anna' may see all of. The 100 rooms used last are looked at.
        """
        shown_to = None if viewer is None else check_viewer(viewer)
        now = self._clock.now()
        async with self._storage.reading(self._tenant) as work:
            return await rooms_meant(work, name=name, viewer=shown_to, now=now)

    async def check_shown(self, room_id: str, viewer: str | None) -> None:
        """Raise `NotFound` unless the viewer, 'room:team' or 'user:anna', may see all that was said in the room: it is
        that room, or the room is public, or the person's own with agents. None may see every room."""
        await check_shown(self._storage, tenant=self._tenant, viewer=viewer, room_id=room_id, now=self._clock.now())

    async def page(self, *, after: str | None = None, limit: int = 100, viewer: str | None = None) -> list[Room]:
        """Return up to `limit` rooms by id, those with an id above `after`.

        `viewer`: only rooms that 'room:team' or 'user:anna' may see all of; without one every room is listed, and the
        caller decides who sees it. Raise `InvalidInput` for an invalid viewer.
        """
        check_page(limit=limit)
        shown_to = None if viewer is None else check_viewer(viewer)
        async with self._storage.reading(self._tenant) as work:
            if shown_to is None:
                return await work.rooms.page(after=after, limit=limit)
            return await self._seen(work, shown_to, after, limit)

    async def _seen(self, work: UnitOfWork, viewer: Viewer, after: str | None, limit: int) -> list[Room]:
        """Return the rooms that the viewer may see all of. Those before are read too: limits count what is seen."""
        rooms_seen: list[Room] = []
        while len(rooms_seen) < limit and (page := await work.rooms.page(after=after, limit=_ROOMS_AT_ONCE)):
            after = page[-1].room_id
            named = [room.room_id for room in page]
            view = await view_for(work, viewer=viewer, rooms=named, now=self._clock.now())
            rooms_seen += [room for room in page if view.windows.get(room.room_id) == ALWAYS]
        return rooms_seen[:limit]

    async def threads(self, room_id: str, *, after: int = 0, limit: int = 100) -> list[tuple[int, Thread]]:
        """Return threads in the order they began, those whose first arrival is above `after`, each with that arrival
        its title and its state."""
        check_page(limit=limit, after=after)
        async with self._storage.reading(self._tenant) as work:
            room = await work.rooms.get(room_id=room_id)
            page = await work.messages.threads(room_id=room_id, after=after, limit=limit)
            made = await headings_of(work, room, [arrival for arrival, _ in page])
        named = ((arrival, thread, made.get(arrival)) for arrival, thread in page)
        return [(n, replace(thread, title=its.title, state=its.state) if its else thread) for n, thread, its in named]

    async def headings(
        self, room_id: str, message_ids: Sequence[str], *, viewer: str | None = None
    ) -> dict[str, Heading]:
        """Return the title and the state of the threads of these messages, by message, without unknown messages.

        `viewer`: 'room:team' or 'user:anna'; one who may not see all of the room gets none, since titles are made of
        all messages. Raise `InvalidInput`, `NotFound`.
        """
        if isinstance(message_ids, str) or len(message_ids) > _MAX_HEADINGS:
            raise InvalidInput("headings_invalid", most=_MAX_HEADINGS)
        async with self._storage.reading(self._tenant) as work:
            room = await work.rooms.get(room_id=room_id)
            if not await sees_all_of(work, room_id=room_id, viewer=viewer, now=self._clock.now()):
                return {}
            entries = await work.messages.by_id(room_id=room_id, message_ids=list(dict.fromkeys(message_ids)))
            made = await headings_of(work, room, sorted({entry.link.thread for entry in entries}))
        return {entry.message.id: made[entry.link.thread] for entry in entries if entry.link.thread in made}

    async def mark_read(self, room_id: str, user_id: str, message_id: str | None = None) -> int:
        """Mark what was said in a room up to a message, by default the newest, as read by a person; return the arrival
        that the person has read up to. A mark never moves back. Raise `InvalidInput`, `NotFound`,
        `StorageUnavailable`."""
        return await self._move_mark(room_id, user_id, message_id)

    async def thread(self, room_id: str, message_id: str, *, limit: int = 100) -> list[Entry]:
        """Return the newest `limit` messages of the thread of this message, in order of arrival."""
        check_page(limit=limit)
        async with self._storage.reading(self._tenant) as work:
            await work.rooms.get(room_id=room_id)
            entries = await work.messages.by_id(room_id=room_id, message_ids=[message_id])
            if not entries:
                raise NotFound("message_unknown", room=repr(room_id), message=repr(message_id))
            return await work.messages.thread_members(room_id=room_id, thread=entries[0].link.thread, limit=limit)

    async def settings(self, room_id: str) -> dict[str, tuple[Any, str]]:
        """Return every setting that a room may override: name to (current value, "room" or "default")."""
        room = await self.get(room_id)
        effective = self._options.overridden(room.settings).flat()
        return {name: (value, "room" if name in room.settings else "default") for name, value in effective.items()}

    async def configure(self, room_id: str, changes: Mapping[str, Any]) -> Room:
        """Set the room's own settings; None removes one. Raise `InvalidInput` that names the setting and its range."""
        if not isinstance(changes, Mapping):
            raise InvalidInput("room_settings_invalid", value=f"{changes!r:.60}")
        known = self._options.flat()
        async with self._storage.writing(self._tenant) as work:
            room = await work.rooms.lock_known(room_id=room_id)
            if room is None:
                raise unknown_room(room_id)
            self._options.overridden(
                {name: None for name in changes if name not in known and name not in room.settings}
            )
            merged = {**room.settings, **from_json(changes)}
            settings = {name: value for name, value in merged.items() if value is not None}
            self._options.overridden(settings)
            return await work.rooms.configure(room_id=room_id, settings=settings)

    async def set_kind(self, room_id: str, kind: RoomKind | str | None, *, since: datetime | None = None) -> Room:
        """Set who can see the room: 'direct' (one person and agents), 'private' (its members) or 'public' (everybody of
        the tenant); None is unknown, and counts as private.

        The kind counts for what is said from now on: a room that becomes public does not publish what was said in it
        before. If the kind was unknown, it counts for as long as it was. `since`: the time from which the kind counts,
        for a change of another time or to correct what was told. The room is created if it is new. Raise
        `InvalidInput`, `Conflict` if the room is of that kind since an earlier time, `StorageUnavailable`.
        """
        wanted, begin, now = check_room_kind(kind), check_moment(since, "since"), self._clock.now()
        if begin is not None and begin > now:
            raise InvalidInput("kind_since_future", time=begin.isoformat())
        async with self._storage.writing(self._tenant) as work:
            room = await self._lock(work, room_id)
            past = kinds_before(room.kind, room.past_kinds, wanted, begin, now)
            _check_begin(room, wanted, begin)
            if (begin is None and room.kind == wanted) or (room.kind, room.past_kinds) == (wanted, past):
                return room
            return await work.rooms.set_kind(room_id=room_id, kind=wanted, past=past)

    async def rename(self, room_id: str, name: str) -> Room:
        """Name a room, '' for no name. Imports name rooms that have none. Raise `InvalidInput`, `NotFound`,
        `StorageUnavailable`."""
        wanted = check_room_name(name)
        async with self._storage.writing(self._tenant) as work:
            await work.rooms.get(room_id=room_id)
            room = await self._lock(work, room_id)
            if room.name == wanted:
                return room
            return await work.rooms.rename(room_id=room_id, name=wanted)

    async def delete(self, room_id: str, *, dry_run: bool = False) -> RoomReport:
        """Remove a room with everything that rests on it alone: messages, links, vectors, sessions, summaries,
        settings, members, the memory of its group, and facts whose every message was said in it.

        It cannot be undone: ask first. `dry_run` changes nothing and reports what would be removed, and what stays.
        Facts that rest on other messages too stay, without this room; they are shown to nobody who could not see them
        before. The room is hidden at once, and nothing can be added to it until it is gone; then its id may be used
        anew. If it breaks off, background work of any process continues it within about a minute; the same call
        continues at once, also if something is left (`report.left`). Raise `NotFound`, `Conflict` for a dry run of a
        room that is being deleted, `StorageUnavailable`.
        """
        deletions = self._deletions()
        run = deletions.would_delete if dry_run else deletions.delete
        return await run(tenant=self._tenant, room_id=room_id)

    async def begin_deletion(self, room_id: str) -> RoomReport:
        """Do what `delete` does as a job, and return at once what will be removed, with the id of the job. The room is
        hidden when this returns. Raise as `delete` does."""
        report, work_id = await self._deletions().begin(tenant=self._tenant, room_id=room_id)
        return replace(report, job_id=work_id.removeprefix(owner_prefix(self._tenant)))

    async def people(self, room_id: str) -> RoomPeople:
        """Return the people of a room, without agents: its members with their stays, and when each spoke. Raise
        `NotFound`."""
        async with self._storage.reading(self._tenant) as work:
            await work.rooms.get(room_id=room_id)
            return (await work.rooms.people(room_ids=[room_id]))[room_id]

    async def set_members(self, room_id: str, members: Sequence[Member | str]) -> RoomPeople:
        """Say who all the members of a room are, by id or as `Member` with the times they joined and left.

        Whoever was a member, or spoke, and is not among them has left by now. The room is created if it is new. Raise
        `InvalidInput`, `StorageUnavailable`.
        """
        members_given = check_members(members)
        return await self._tell(room_id, lambda known, now: all_members(known, members_given, now), complete=True)

    async def add_members(self, room_id: str, members: Sequence[Member | str]) -> RoomPeople:
        """Say that people are members of a room, by id or as `Member`. Without `joined_at` they joined at an unknown
        time, and know what is said from now on. A stay with times replaces those known of the person at that time, and
        leaves those that ended before it or began after it. Raise `InvalidInput`, `StorageUnavailable`."""
        members_given = check_members(members)
        return await self._tell(room_id, lambda known, now: added(known, members_given, now))

    async def remove_members(self, room_id: str, people: Sequence[str], *, at: datetime | None = None) -> RoomPeople:
        """Say that people left a room, at `at` or now. Raise `InvalidInput`, `StorageUnavailable`."""
        gone, when = [member.person_id for member in check_members(people)], check_moment(at, "at")
        return await self._tell(room_id, lambda known, now: removed(known, gone, when or now))

    async def _tell(
        self, room_id: str, change: Callable[[Stays, datetime], Stays], *, complete: bool = False
    ) -> RoomPeople:
        """Change the stays. `complete`: all members are known from now on."""
        async with self._storage.writing(self._tenant) as work:
            await self._lock(work, room_id)
            before = (await work.rooms.people(room_ids=[room_id]))[room_id]
            known = {person: presence.stays for person, presence in before.people.items()}
            await work.rooms.set_members(
                room_id=room_id, stays=change(known, self._clock.now()), complete=complete or before.complete
            )
            return (await work.rooms.people(room_ids=[room_id]))[room_id]

    async def _lock(self, work: UnitOfWork, room_id: str) -> Room:
        if not isinstance(room_id, str) or not 0 < len(room_id) <= MAX_ID_CHARS:
            raise InvalidInput("room_id_invalid", value=f"{room_id!r:.60}", most=MAX_ID_CHARS)
        return await work.rooms.lock(room_id=room_id, now=self._clock.now())


def _only(name: str, room_ids: Sequence[str], *, viewed: bool = False) -> str:
    """Return the one id. Raise `NotFound` if there is none, `InvalidInput` that lists some if there are several."""
    if not room_ids:
        raise unknown_room(name, viewed=viewed)
    if len(room_ids) > 1:
        raise InvalidInput("room_name_shared", name=f"{name!r:.80}", known=", ".join(room_ids[:_LISTED]))
    return room_ids[0]


def _check_begin(room: Room, wanted: RoomKind | None, begin: datetime | None) -> None:
    """Raise `Conflict` if the room is of the kind since an earlier time: what it was before is not said."""
    start = room.past_kinds[-1].until if room.past_kinds else BEGINNING
    if begin is not None and wanted is not None and room.kind is wanted and begin > start:
        raise Conflict("room_kind_since_earlier", room=repr(room.room_id), kind=wanted)
