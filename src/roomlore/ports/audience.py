"""Read from storage who heard what, and decide with core what a viewer may know. All services share this."""

import asyncio
from collections import OrderedDict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from roomlore.core.audience import (
    ALWAYS,
    BEGINNING,
    NEVER,
    EvidenceTable,
    RoomPeople,
    RoomStamp,
    Version,
    View,
    Viewer,
    Window,
    check_viewer,
    next_change,
    people_of,
    rooms_named,
    view_of,
    windows_of,
)
from roomlore.core.errors import Deleted, NotFound, unknown_room
from roomlore.core.models import Room
from roomlore.core.search.facts import nobody_has
from roomlore.core.text import alike
from roomlore.core.texts import Phrase

if TYPE_CHECKING:
    from roomlore.storage import Storage, UnitOfWork

_Windows = tuple[Window, ...]


async def gone(work: "UnitOfWork", *, room_id: str, message_id: str) -> NotFound | None:
    """Return the error about a message that was deleted or is archived, None if the room never had it. It is for a
    caller who may see the whole room."""
    if await work.messages.arrival_of(room_id=room_id, message_id=message_id) is None:
        return None
    if await work.archives.of_messages(room_id=room_id, message_ids=[message_id]):
        return NotFound("message_archived", message=f"{message_id!r:.80}", room=repr(room_id))
    return Deleted("message_deleted", message=f"{message_id!r:.80}", room=repr(room_id))


async def has_id(work: "UnitOfWork", *, scope: str) -> bool:
    """Return True if there is a room with the id of a scope, or a person who spoke or is a member."""
    kind, _, name = scope.partition(":")
    if kind == "group":
        return await work.rooms.find(room_id=name) is not None
    return bool(await work.rooms.of_person(person_id=name))


async def view_for(
    work: "UnitOfWork", *, viewer: Viewer, memories: Iterable[Version] = (), rooms: Iterable[str] = (), now: datetime
) -> View:
    """Return what the viewer may know of these memories, and of what was said in these rooms."""
    named = rooms_named(memories) | set(rooms)
    own = await _own_room(work, viewer)
    windows = await _windows(work, named, people_of(viewer, own, now))
    return view_of(viewer, windows, now)


async def _own_room(work: "UnitOfWork", viewer: Viewer) -> RoomPeople | None:
    if viewer.kind == "user":
        return None
    return (await work.rooms.people(room_ids=[viewer.id])).get(viewer.id)


async def _windows(
    work: "UnitOfWork", rooms: Collection[str], people: Collection[str] | None
) -> dict[str, tuple[Window, ...]]:
    """Return when all these people were in each of the rooms, without unknown rooms."""
    people_by_room = await work.rooms.people(room_ids=rooms, persons=people or ()) if rooms else {}
    return {name: windows_of(room, people) for name, room in people_by_room.items()}


class KnownWindows:
    """When all people of an audience were in each room, by the stamp of the room: facts of another person, shown in the
    same room, need no second reading. Of the audiences that asked last."""

    def __init__(self, most: int = 1_000) -> None:
        self._most = most
        self._known: OrderedDict[tuple[str, frozenset[str] | None], dict[str, tuple[RoomStamp, _Windows]]]
        self._known = OrderedDict()

    async def of(
        self, work: "UnitOfWork", *, people: frozenset[str] | None, stamps: Mapping[str, RoomStamp]
    ) -> dict[str, _Windows]:
        """Return the windows in the rooms of these stamps, without unknown rooms."""
        key = work.tenant, people
        known = self._known.setdefault(key, {})
        self._known.move_to_end(key)
        fresh = {name: known[name][1] for name, stamp in stamps.items() if name in known and known[name][0] == stamp}
        read = await _windows(work, stamps.keys() - fresh.keys(), people)
        for name, its in read.items():
            if name not in known or known[name][0] < stamps[name]:
                known[name] = stamps[name], its
        if len(self._known) > self._most:
            self._known.popitem(last=False)
        return fresh | read


class Sight:
    """The memories of a table that one viewer may see, kept while no room changes that has a say in it."""

    def __init__(self, viewer: Viewer, known: KnownWindows) -> None:
        self._viewer = viewer
        self._known = known
        self._here = {viewer.id} if viewer.kind == "room" else set[str]()
        self._stamps: dict[str, RoomStamp] = {}
        self._own: RoomPeople | None = None
        self._view: View | None = None
        self._valid = (BEGINNING, BEGINNING)
        self._table: EvidenceTable | None = None
        self._seen: NDArray[np.bool_] = np.zeros(0, np.bool_)

    async def of(self, work: "UnitOfWork", table: EvidenceTable, now: datetime) -> NDArray[np.bool_]:
        """Return for each memory of the table if the viewer may see it: the same array if that and
        `view.shares` stayed the same."""
        named = table.rooms | self._here
        stamps = await work.rooms.stamps(room_ids=named) if named else {}
        start, end = self._valid
        if table is self._table and stamps == self._stamps and start <= now < end:
            return self._seen
        before, self._view = self._view, await self._renewed(work, stamps, now)
        if table is not self._table or self._view != before:
            seen = table.visible(self._view)
            unchanged = before is not None and before.shares == self._view.shares
            if table is not self._table or not unchanged or not np.array_equal(seen, self._seen):
                self._table, self._seen = table, seen
        return self._seen

    @property
    def view(self) -> View:
        """Return what the viewer may know, as of the last `of`."""
        return self._view or View()

    async def _renewed(self, work: "UnitOfWork", stamps: dict[str, RoomStamp], now: datetime) -> View:
        """Return the view, and read the rooms that changed. The stamps were read before: a change in between is read
        again next time."""
        changed = {name for name, stamp in stamps.items() if self._stamps.get(name) != stamp}
        if not self._here <= stamps.keys() - changed:
            self._own = await _own_room(work, self._viewer)
        people = people_of(self._viewer, self._own, now)
        others = {name: stamp for name, stamp in stamps.items() if name not in self._here}
        windows = await self._known.of(work, people=people, stamps=others)
        self._stamps = stamps
        view = view_of(self._viewer, windows, now)
        self._valid = now, next_change(self._viewer, self._own, view, now)
        return view


@dataclass(slots=True)
class CachedView:
    """Memories in a cache. `ended`: those that hold no more are among them; `until`: when the next of them ends, if
    they are not. For a viewer, `sight`: what it may see, `evidence`: that of all memories, and `seen`: those that the
    viewer might see then. `size`: the cost in the cache."""

    sight: Sight | None = None
    ended: bool = False
    until: datetime | None = None
    evidence: EvidenceTable | None = None
    seen: NDArray[np.bool_] | None = None
    size: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


_Cached = TypeVar("_Cached", bound=CachedView)


class ViewCache(Generic[_Cached]):
    """A cache of what was asked for last. `most`: what it may cost."""

    def __init__(self, kind: type[_Cached], *, most: int) -> None:
        self._kind = kind
        self._most = most
        self._size = 0
        self._windows = KnownWindows()
        self._cached: OrderedDict[Hashable, _Cached] = OrderedDict()

    def entry(self, key: Hashable, viewer: Viewer | None, *, ended: bool) -> _Cached:
        """Return what is cached under the key, or a new entry."""
        cached = self._cached.setdefault(key, self._kind(Sight(viewer, self._windows) if viewer else None, ended))
        self._cached.move_to_end(key)
        return cached

    def weigh(self, key: Hashable, cached: _Cached, size: int) -> None:
        """Note what an entry costs now, and drop those requested longest ago to make room; the last one stays."""
        if self._cached.get(key) is not cached:
            return
        self._size += size - cached.size
        cached.size = size
        while self._size > self._most and len(self._cached) > 1:
            _, dropped = self._cached.popitem(last=False)
            self._size -= dropped.size


@dataclass(frozen=True, slots=True)
class RoomsShown:
    """Rooms of which a viewer may see anything, with the windows of time. `more`: there are more of them."""

    rooms: Sequence[tuple[Room, tuple[Window, ...]]]
    more: bool = False


async def rooms_shown(work: "UnitOfWork", *, viewer: Viewer | None, now: datetime, most: int) -> RoomsShown:
    """Return at most `most` rooms that the viewer may see wholly, None for all rooms, those used last, and as many of
    which it may see a part. Which ones does not depend on what the viewer may not see."""
    if viewer is None:
        every = await work.rooms.used_last(limit=most + 1)
        return RoomsShown([(room, ALWAYS) for room in every[:most]], len(every) > most)
    own = await _own_room(work, viewer)
    people = people_of(viewer, own, now)
    rooms_by_id = {room.room_id: room for room in await work.rooms.used_last(limit=most + 1, public=True)}
    rooms_by_id |= {room.room_id: room for room in await work.rooms.partly_public()}
    if people:
        its = await work.rooms.of_person(person_id=min(people))
        rooms_by_id |= {room.room_id: room for room in its}
    windows = await _windows(work, rooms_by_id, people)
    if own and (here := await work.rooms.find(room_id=viewer.id)):
        rooms_by_id[viewer.id], windows[viewer.id] = here, ALWAYS
    shown = [(room, windows.get(name, NEVER)) for name, room in rooms_by_id.items()]
    whole = sorted((pair for pair in shown if pair[1] == ALWAYS), key=lambda pair: _last_used(pair[0]))
    parts = sorted((pair for pair in shown if pair[1] not in (ALWAYS, NEVER)), key=lambda pair: _last_open(*pair))
    return RoomsShown([*whole[:most], *parts[:most]], max(len(whole), len(parts)) > most)


def _last_used(room: Room) -> tuple[float, str]:
    return -(room.last_sent_at or BEGINNING).timestamp(), room.room_id


def _last_open(room: Room, windows: Sequence[Window]) -> tuple[float, str]:
    """Order by the end of the last window: when the room was used last may be hidden."""
    return -windows[-1].end.timestamp(), room.room_id


async def room_shown(
    work: "UnitOfWork", *, viewer: Viewer | None, room_id: str, now: datetime
) -> tuple[Room, tuple[Window, ...]]:
    """Return a room with the windows of time in which the viewer may see it; None always may. Raise `NotFound` if it
    may see none of it, as for an unknown room."""
    room = await work.rooms.find(room_id=room_id)
    windows: tuple[Window, ...] = ALWAYS
    if viewer is not None and viewer != Viewer("room", room_id):
        view = await view_for(work, viewer=viewer, rooms=[room_id], now=now)
        windows = view.windows.get(room_id, NEVER)
    if room is None or windows == NEVER:
        raise unknown_room(room_id, viewed=viewer is not None)
    return room, windows


async def sees_all_of(work: "UnitOfWork", *, viewer: str | None, room_id: str, now: datetime) -> bool:
    """Return True if the viewer, 'room:team' or 'user:anna', may see all that was ever said in the room: it is that
    room, or the room is public, or the person's own with agents. None may see every room."""
    whom = None if viewer is None else check_viewer(viewer)
    if whom is None or whom == Viewer("room", room_id):
        return True
    view = await view_for(work, viewer=whom, rooms=[room_id], now=now)
    return view.windows.get(room_id) == ALWAYS


async def check_shown(storage: "Storage", *, tenant: str, viewer: str | None, room_id: str, now: datetime) -> None:
    """Raise `NotFound` unless the viewer may see all that was ever said in the room, as for an unknown room."""
    if viewer is None:
        return
    async with storage.reading(tenant) as work:
        if not await sees_all_of(work, viewer=viewer, room_id=room_id, now=now):
            raise unknown_room(room_id, viewed=True)


_COMPARED = 100
_LISTED = 5


async def rooms_meant(work: "UnitOfWork", *, name: str, viewer: Viewer | None, now: datetime) -> str:
    """Return a sentence that names the rooms which a misspelt id or name may mean, of those that the viewer may see all
    of; '' if there are none. The 100 rooms used last are looked at."""
    shown = await rooms_shown(work, viewer=viewer, now=now, most=_COMPARED)
    known: dict[str, list[Room]] = {}
    for room in (room for room, windows in shown.rooms if windows == ALWAYS and room.room_id != name):
        for called in {room.room_id, room.name} - {""}:
            known.setdefault(called, []).append(room)
    near = {room.room_id: room for called in alike(name, known) for room in known[called]}
    listed = [_listed(room) for room in list(near.values())[:_LISTED]]
    return Phrase("did_you_mean", known=", ".join(listed)) if listed else ""


def _listed(room: Room) -> str:
    """Return the id of a room, with its name if that differs."""
    return f"{room.room_id!r:.80}" + (f" ({room.name!r:.80})" if room.name not in ("", room.room_id) else "")


async def unknown_viewer(work: "UnitOfWork", *, viewer: Viewer, now: datetime) -> str:
    """Return a sentence which says that there is no room, or nobody, with the id of a viewer, and which it may mean of
    what the viewer may see; '' if there is."""
    if viewer.kind == "room":
        if await work.rooms.find(room_id=viewer.id) is not None:
            return ""
        meant = await rooms_meant(work, name=viewer.id, viewer=viewer, now=now)
        return f"The viewer is unknown: there is no room {viewer.id!r:.80}. {meant}".rstrip()
    if await work.rooms.of_person(person_id=viewer.id):
        return ""
    shown = await rooms_shown(work, viewer=viewer, now=now, most=_COMPARED)
    seen = [room.room_id for room, windows in shown.rooms if windows == ALWAYS]
    speakers = await work.rooms.speakers(part="", room_ids=seen, limit=2 * _COMPARED) if seen else []
    return f"The viewer is unknown. {nobody_has(viewer.id, {speaker.sender_id: speaker.name for speaker in speakers})}"
