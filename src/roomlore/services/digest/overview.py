"""What matters in all rooms that a viewer may see, for one person or for everybody."""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from roomlore.core.audience import ALWAYS, Window, check_viewer
from roomlore.core.digest.digest import Why
from roomlore.core.digest.overview import MOST_PARTS, Overview, Point, settled_and_open, waiting_of
from roomlore.core.errors import InvalidInput
from roomlore.core.linking.model import LinkModel
from roomlore.core.linking.room import is_seen, linked_alone, told_alone
from roomlore.core.models import Entry, Room, StoredMessage
from roomlore.ports.audience import rooms_shown
from roomlore.ports.shared import Backends, Service
from roomlore.storage import UnitOfWork

_ROOMS = 1_000
_AT_ONCE = 1_000
"""The messages that one part looks at: to tell a decision takes a third of a millisecond for each."""
_CONTEXT = 200
"""The messages before these that are read too: a decision may follow from them."""
_NAMING, _NAMING_ROOMS = 500, 4_000
"""The messages that may ask something of a person, and all those of their rooms, by which it is known what was
answered."""
_SEEN_EACH, _SEEN = 200, 1_000
"""The messages of one room and of all rooms of which a viewer may see a part only."""
_Rooms = Mapping[str, list[Entry]]


@dataclass(frozen=True, slots=True)
class _Read:
    """What was read. `rooms`: by id. `latest`: the newest entries of rooms that may be seen wholly, of which those with
    the places in `looked_at` count. `naming`: entries of the rooms that may ask something of the person. `seen`: of
    rooms of which a part may be seen, by room."""

    rooms: Mapping[str, Room]
    latest: Sequence[Entry]
    looked_at: slice
    naming: Sequence[Entry]
    seen: _Rooms


class OverviewService(Service):
    """The overview of one tenant."""

    def __init__(self, backends: Backends, *, tenant: str, model: LinkModel) -> None:
        super().__init__(backends)
        self._tenant = tenant
        self._model = model

    async def make(self, *, since: datetime, person: str | None, viewer: str | None, part: int) -> Overview:
        """Return the overview; arguments as in `Lore.overview`."""
        if not isinstance(part, int) or not 1 <= part <= MOST_PARTS:
            raise InvalidInput("number_from_one_to_outside", name="part", value=f"{part!r:.60}", most=MOST_PARTS)
        shown_to = None if viewer is None else check_viewer(viewer)
        async with self._storage.reading(self._tenant) as work:
            shown = await rooms_shown(work, viewer=shown_to, now=self._clock.now(), most=_ROOMS)
            rooms = {room.room_id: room for room, _ in shown.rooms}
            whole = [room.room_id for room, windows in shown.rooms if windows == ALWAYS]
            end = part * _AT_ONCE
            its, most = await _with_person(work, person, whole), end + _CONTEXT
            latest = await work.messages.latest_in(room_ids=its, since=since, limit=most, each=most)
            naming = await _naming(work, person, whole, since) if part == 1 else []
            partly = [(room, windows) for room, windows in shown.rooms if windows != ALWAYS]
            seen = await self._seen(work, partly, since) if part == 1 else {}
        read = _Read(rooms, latest, slice(end - _AT_ONCE, end), naming, seen)
        points = await asyncio.to_thread(_points, read, person)
        last = [room.last_sent_at for room in map(rooms.__getitem__, its) if room.last_sent_at]
        last += [entry.message.dated_at for entries in seen.values() for entry in entries[-1:]]
        back_to = latest[end - 1].message.dated_at if len(latest) > end else None
        return Overview(points, min(len(latest), end), back_to, max(last, default=None))

    async def _seen(
        self, work: UnitOfWork, partly: Iterable[tuple[Room, Sequence[Window]]], since: datetime
    ) -> dict[str, list[Entry]]:
        """Return the entries that may be seen of rooms, with links that follow from them alone."""
        seen: dict[str, list[Entry]] = {}
        left = _SEEN
        for room, windows in partly:
            if left <= 0:
                break
            messages = await _within(work, room.room_id, windows, since, most=min(_SEEN_EACH, left))
            left -= len(messages)
            if messages:
                seen[room.room_id] = await asyncio.to_thread(linked_alone, self._model, messages)
        return seen


async def _within(
    work: UnitOfWork, room_id: str, windows: Sequence[Window], since: datetime, *, most: int
) -> list[StoredMessage]:
    """Return the newest messages of a room since a time that may be seen, in order of arrival, as in a room without the
    others."""
    by_arrival: dict[int, StoredMessage] = {}
    for window in reversed(windows):
        if window.end < since or len(by_arrival) >= most:
            break
        begin = max(since, window.start)
        tail = await work.messages.tail(room_id=room_id, limit=most, since=begin, until=window.end)
        by_arrival |= {entry.message.arrival: entry.message for entry in tail if is_seen(entry.message, windows)}
    shown = [by_arrival[arrival] for arrival in sorted(by_arrival)][-most:]
    seen = {message.id for message in shown}
    return [told_alone(message, place, seen) for place, message in enumerate(shown, start=1)]


async def _with_person(work: UnitOfWork, person: str | None, whole: Collection[str]) -> Collection[str]:
    """Return those of the rooms in which a person spoke or is a member; all without a person."""
    if person is None:
        return whole
    return {room.room_id for room in await work.rooms.of_person(person_id=person)}.intersection(whole)


async def _naming(work: UnitOfWork, person: str | None, whole: Collection[str], since: datetime) -> list[Entry]:
    """Return the entries of the rooms that may ask something of the person since a time."""
    if person is None:
        return []
    latest_in = partial(work.messages.latest_in, since=since, each=_NAMING_ROOMS)
    naming = await latest_in(room_ids=whole, limit=_NAMING, naming=person)
    return await latest_in(room_ids={entry.message.room_id for entry in naming}, limit=_NAMING_ROOMS)


def _points(read: _Read, person: str | None) -> tuple[Point, ...]:
    """Return what matters of the entries, the newest first. What waits for the person is told once."""
    asking = {**_by_room(read.naming), **read.seen} if person is not None else {}
    waiting = [entry for entries in asking.values() for entry in waiting_of(entries, person or "")]
    whys: dict[tuple[str, str], tuple[Entry, Why]] = {_id(entry): (entry, "waits") for entry in waiting}
    places: defaultdict[str, set[int]] = defaultdict(set)
    for entry in (*read.latest[read.looked_at], *(entry for entries in read.seen.values() for entry in entries)):
        places[entry.message.room_id].add(entry.message.arrival)
    for room_id, entries in {**_by_room(read.latest), **read.seen}.items():
        for entry, why in settled_and_open(entries, places[room_id]):
            if why == "decision" or person is None:
                whys.setdefault(_id(entry), (entry, why))
    points = (
        Point(read.rooms[entry.message.room_id].title, entry.message, why, entry.message.room_id not in read.seen)
        for entry, why in whys.values()
    )
    return tuple(sorted(points, key=lambda point: (point.message.dated_at, point.message.arrival), reverse=True))


def _id(entry: Entry) -> tuple[str, str]:
    return entry.message.room_id, entry.message.id


def _by_room(entries: Iterable[Entry]) -> _Rooms:
    rooms: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        rooms[entry.message.room_id].append(entry)
    return {room_id: sorted(its, key=lambda entry: entry.message.arrival) for room_id, its in rooms.items()}
