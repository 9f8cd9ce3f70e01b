"""The audience of a room, and the decision if a memory may be shown to a viewer.

A memory carries the rooms in which its evidence was said, with the time. A viewer is a room or a person. For each room
of evidence, `view_of` computes the windows of time in which everybody of the viewer's audience was there; `may_see`
checks that each piece of evidence lies within one of them. What is not known is not allowed.

`RoomFacts` and `TimedMove`: the members of a room as a chat export tells them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from roomlore.core.errors import InvalidInput

MAX_NAME_CHARS = 512
EVERYONE = "everyone"
BEGINNING = datetime.min.replace(tzinfo=UTC)
END = datetime.max.replace(tzinfo=UTC)


class RoomKind(StrEnum):
    """`direct`: one person and agents. `private`: its members. `public`: everybody of the tenant."""

    DIRECT = "direct"
    PRIVATE = "private"
    PUBLIC = "public"


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """The time from `start` to `end`, both included."""

    start: datetime
    end: datetime


_MICROSECOND = timedelta(microseconds=1)
ALWAYS = (Window(BEGINNING, END),)
NEVER: tuple[Window, ...] = ()


@dataclass(frozen=True, slots=True, order=True)
class EvidenceRoom:
    """A room in which evidence of a memory was said, and when the first and the last of it was."""

    room_id: str
    first: datetime
    last: datetime


@dataclass(frozen=True, slots=True)
class Member:
    """A stay of a person in a room. `joined_at`: None if unknown. `left_at`: None if the person is still there."""

    person_id: str
    joined_at: datetime | None = None
    left_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Stay:
    """A stay as stored. `told_at`: when it was told, which counts as its start if `joined_at` is unknown."""

    told_at: datetime
    joined_at: datetime | None = None
    left_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Presence:
    """All that is known of a person in a room: the stays, and when the person first and last spoke there, None for
    never."""

    stays: tuple[Stay, ...] = ()
    spoke: Window | None = None


@dataclass(frozen=True, slots=True)
class PastKind:
    """A kind that a room had until a time, None for unknown."""

    kind: RoomKind | None
    until: datetime


@dataclass(frozen=True, slots=True)
class RoomPeople:
    """The people of a room, without agents. `kind`: None if unknown. `complete`: the platform told all members.
    `past_kinds`: the kinds it had before, the first one first."""

    room_id: str
    kind: RoomKind | None = None
    complete: bool = False
    people: Mapping[str, Presence] = field(default_factory=dict)
    past_kinds: tuple[PastKind, ...] = ()


@dataclass(frozen=True, slots=True)
class Viewer:
    """Whom an answer is shown to: everybody in a room, or one person."""

    kind: Literal["room", "user"]
    id: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.id}"


Stays = Mapping[str, Sequence[Stay]]
RoomStamp = tuple[int, int]
"""When a room was created, and its revision: a room that was removed and created again begins anew."""


class Version(Protocol):
    """A version of a memory: its evidence, and the versions that it replaces."""

    @property
    def memory_id(self) -> str: ...
    @property
    def parents(self) -> tuple[str, ...]: ...
    @property
    def evidence(self) -> tuple[EvidenceRoom, ...]: ...
    @property
    def shared_with(self) -> tuple[str, ...]: ...


KnownVersion = TypeVar("KnownVersion", bound=Version)


@dataclass(frozen=True, slots=True)
class View:
    """The limits of a viewer's knowledge. `windows`: by room, when the whole audience was there; a room that is absent
    gives nothing. `shares`: the targets of shares that reach the viewer."""

    windows: Mapping[str, tuple[Window, ...]] = field(default_factory=dict)
    shares: frozenset[str] = frozenset({EVERYONE})


def check_viewer(given: object) -> Viewer:
    """Return the viewer that a text such as 'room:team' or 'user:anna' names. Raise `InvalidInput`."""
    kind, _, name = given.partition(":") if isinstance(given, str) else ("", "", "")
    if kind not in ("room", "user") or not name or len(name) > MAX_NAME_CHARS:
        raise InvalidInput("viewer_invalid", value=f"{given!r:.60}")
    return Viewer("room" if kind == "room" else "user", name)


def check_share(given: object) -> str:
    """Return the target of a share: 'everyone' or 'room:<id>'. Raise `InvalidInput`."""
    if given == EVERYONE:
        return EVERYONE
    kind, _, name = given.partition(":") if isinstance(given, str) else ("", "", "")
    if kind != "room" or not name or len(name) > MAX_NAME_CHARS:
        raise InvalidInput("share_invalid", word=EVERYONE, value=f"{given!r:.60}")
    return f"room:{name}"


def check_room_kind(given: object) -> RoomKind | None:
    """Return the kind; None is unknown. Raise `InvalidInput`."""
    try:
        return None if given is None else RoomKind(given)  # type: ignore[arg-type]
    except ValueError as error:
        raise InvalidInput("room_kind_invalid", known=", ".join(RoomKind), value=f"{given!r:.60}") from error


def check_members(given: object) -> list[Member]:
    """Return the members; a text is the id of a person. Raise `InvalidInput`."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidInput("members_invalid", value=f"{given!r:.60}")
    return [_member(member) for member in given]


def _member(given: object) -> Member:
    member = Member(given) if isinstance(given, str) else given
    if not isinstance(member, Member) or not 0 < len(member.person_id) <= MAX_NAME_CHARS:
        raise InvalidInput("member_invalid", value=f"{given!r:.60}")
    joined, left = _utc(member.joined_at), _utc(member.left_at)
    if joined and left and left < joined:
        raise InvalidInput("member_left_before_joining", person=f"{member.person_id!r:.60}")
    return Member(member.person_id, joined, left)


def _utc(at: datetime | None) -> datetime | None:
    if at is not None and not isinstance(at, datetime):
        raise InvalidInput("member_time_invalid", value=f"{at!r:.60}")
    return at if at is None else at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def all_members(known: Stays, members: Iterable[Member], now: datetime) -> dict[str, tuple[Stay, ...]]:
    """Return the stays after all members of a room were told. Whoever is known (who only spoke has no stay) and not
    among them has left by now."""
    listed = list(members)
    gone = known.keys() - {member.person_id for member in listed}
    return removed(added(known, listed, now), gone, now)


def added(known: Stays, members: Iterable[Member], now: datetime) -> dict[str, tuple[Stay, ...]]:
    """Return the stays after members were told. A stay with times replaces those known of the person that it may be;
    those that ended before it or began after it stay. Without times, a person who is there already stays."""
    stays_by_person = {person: tuple(stays) for person, stays in known.items()}
    timed: dict[str, list[Stay]] = {}
    for member in members:
        new = Stay(now, member.joined_at, member.left_at)
        stays = stays_by_person.get(member.person_id, ())
        if member.joined_at or member.left_at:
            given = timed.setdefault(member.person_id, [])
            stays = tuple(
                stay for stay in stays if stay in given or _ended_before(stay, new) or _ended_before(new, stay)
            )
            given.append(new)
        elif any(stay.left_at is None for stay in stays):
            continue
        later = [stay for stay in stays if _ended_before(new, stay)]
        stays_by_person[member.person_id] = (*(stay for stay in stays if stay not in later), new, *later)
    return stays_by_person


def _ended_before(stay: Stay, other: Stay) -> bool:
    """Return True if the stay ended before the other began, or before that was told if it goes on and nobody knows when
    it began."""
    began = other.joined_at or (other.told_at if other.left_at is None else BEGINNING)
    return stay.left_at is not None and stay.left_at <= began


def removed(known: Stays, people: Collection[str], at: datetime) -> dict[str, tuple[Stay, ...]]:
    """Return the stays after these people left. Somebody who was never told is noted as gone, too."""
    stays_by_person = {person: tuple(stays) for person, stays in known.items()}
    for person in people:
        stays = stays_by_person.get(person, ()) or (Stay(at),)
        stays_by_person[person] = tuple(replace(stay, left_at=at) if stay.left_at is None else stay for stay in stays)
    return stays_by_person


def kinds_before(
    kind: RoomKind | None,
    past: Sequence[PastKind],
    wanted: RoomKind | None,
    since: datetime | None,
    now: datetime,
) -> tuple[PastKind, ...]:
    """Return the past kinds of a room that is `wanted` since a time. `kind`, `past`: what was known of it before.

    Without `since` it is so from now on; if its kind was unknown, for as long as it was.
    """
    if kind is None and since is None:
        begin = past[-1].until if past else BEGINNING
    else:
        begin = now if since is None else since
    kept: list[PastKind] = []
    start = BEGINNING
    for past_kind in (*past, PastKind(kind, END)):
        if start < begin:
            kept.append(PastKind(past_kind.kind, min(past_kind.until, begin)))
        start = past_kind.until
    while kept and kept[-1].kind is wanted:
        kept.pop()
    return tuple(kept)


def audience_of(room: RoomPeople, now: datetime) -> frozenset[str] | None:
    """Return the people who see what is shown in the room now; None if they are not all known.

    A room without a known person gives None too: nobody can be checked.
    """
    if room.kind is RoomKind.PUBLIC or not (room.kind is RoomKind.DIRECT or room.complete):
        return None
    return frozenset(name for name, presence in room.people.items() if _is_there(presence, now)) or None


def windows_of(room: RoomPeople, people: Collection[str] | None) -> tuple[Window, ...]:
    """Return when all these people heard what was said in the room: while they were in it, and while it was public.
    None stands for people who are not known."""
    public = public_windows(room)
    if public == ALWAYS or not people or not all(person in room.people for person in people):
        return public
    windows: tuple[Window, ...] = ALWAYS
    for person in people:
        heard = _presence(room, person)
        windows = tuple(_overlaps(windows, _joined(sorted((*heard, *public))) if public else heard))
        if not windows:
            break
    return windows


def public_windows(room: RoomPeople) -> tuple[Window, ...]:
    """Return when the room was public: what was said then, everybody of the tenant heard."""
    return _windows_as(RoomKind.PUBLIC, room)


def _windows_as(kind: RoomKind, room: RoomPeople) -> tuple[Window, ...]:
    """Return when the room was of that kind. What is said at the moment of a change counts to the kind after it."""
    if not room.past_kinds:
        return ALWAYS if room.kind is kind else NEVER
    windows: list[Window] = []
    start = BEGINNING
    for past_kind in room.past_kinds:
        if past_kind.kind is kind:
            windows.append(Window(start, past_kind.until - _MICROSECOND))
        start = past_kind.until
    return (*windows, Window(start, END)) if room.kind is kind else tuple(windows)


def people_of(viewer: Viewer, own: RoomPeople | None, now: datetime) -> frozenset[str] | None:
    """Return the people whom an answer is shown to; None if they are not all known. `own`: the viewer's room, None if
    it has none yet or is a person."""
    if viewer.kind == "user":
        return frozenset({viewer.id})
    return audience_of(own, now) if own else None


def view_of(viewer: Viewer, windows: Mapping[str, tuple[Window, ...]], now: datetime) -> View:
    """Return what the viewer may know. `windows`: by room, when all its people were there (`windows_of`): of the rooms
    of the evidence, and of those that something was shared with."""
    if viewer.kind == "room":
        return View({**windows, viewer.id: ALWAYS}, frozenset({EVERYONE, str(viewer)}))
    reached = (name for name, its in windows.items() if covers(its, now, now))
    return View(windows, frozenset({EVERYONE, *(f"room:{name}" for name in reached)}))


def next_change(viewer: Viewer, own: RoomPeople | None, view: View, now: datetime) -> datetime:
    """Return until when `people_of` and `view_of` stay the same if nobody is told anything; not before `now`."""
    if viewer.kind == "user":
        times = (time for its in view.windows.values() for window in its for time in (window.start, window.end))
    else:
        stays = (stay for presence in (own.people.values() if own else ()) for stay in presence.stays)
        times = (stay.left_at for stay in stays if stay.left_at)
    return min((time for time in times if time >= now), default=END)


def may_see(memory: Version, view: View) -> bool:
    """Return True if the memory may be shown: it was shared with the viewer, or the viewer's audience was there
    whenever its evidence was said. A memory without evidence belongs to the caller who added it, and is for all."""
    if not view.shares.isdisjoint(memory.shared_with):
        return True
    return all(covers(view.windows.get(room.room_id, NEVER), room.first, room.last) for room in memory.evidence)


def shown(memories: Iterable[KnownVersion], view: View) -> tuple[list[KnownVersion], frozenset[str]]:
    """Return the memories that may be shown, and the ids of those among them that another one replaces, which are left
    out."""
    return unreplaced([memory for memory in memories if may_see(memory, view)])


def unreplaced(seen: Sequence[KnownVersion]) -> tuple[list[KnownVersion], frozenset[str]]:
    """Return the memories that no other one of them replaces, and the ids of the others."""
    parents = {parent for memory in seen for parent in memory.parents}
    replaced = frozenset(memory.memory_id for memory in seen if memory.memory_id in parents)
    return [memory for memory in seen if memory.memory_id not in replaced], replaced


class EvidenceTable:
    """The evidence of many memories in arrays, so that `may_see` is answered for all of them at once."""

    def __init__(self, memories: Sequence[Version]) -> None:
        rows = [(place, room) for place, memory in enumerate(memories) for room in memory.evidence]
        names = sorted({room.room_id for _, room in rows})
        codes = {name: code for code, name in enumerate(names)}
        self._names = names
        self._size = len(memories)
        self._owners = np.array([place for place, _ in rows], np.int64)
        self._rooms = np.array([codes[room.room_id] for _, room in rows], np.int64)
        self._first = np.array([_micros(room.first) for _, room in rows], np.int64)
        self._last = np.array([_micros(room.last) for _, room in rows], np.int64)
        self._shared = [(place, memory.shared_with) for place, memory in enumerate(memories) if memory.shared_with]
        self.rooms = rooms_named(memories)

    def visible(self, view: View) -> NDArray[np.bool_]:
        """Return for each memory if it may be shown."""
        windows = [view.windows.get(name, NEVER) for name in self._names]
        covered = np.zeros(self._rooms.size, np.bool_)
        for number in range(max(map(len, windows), default=0)):
            bounds = [_bounds(its[number]) if number < len(its) else _NO_TIME for its in windows]
            start, end = np.array(bounds, np.int64).T
            covered |= (start[self._rooms] <= self._first) & (self._last <= end[self._rooms])
        visible_rows = np.ones(self._size, np.bool_)
        visible_rows[self._owners[~covered]] = False
        for place, targets in self._shared:
            visible_rows[place] |= not view.shares.isdisjoint(targets)
        return visible_rows


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NO_TIME = (1, 0)


def _micros(at: datetime) -> int:
    return (at - _EPOCH) // _MICROSECOND


def _bounds(window: Window) -> tuple[int, int]:
    return _micros(window.start), _micros(window.end)


def covers(windows: Sequence[Window], first: datetime, last: datetime) -> bool:
    """Return True if one of the windows holds the whole time."""
    return any(window.start <= first and last <= window.end for window in windows)


def evidence_of(sayings: Iterable[tuple[str, datetime]], kept: Iterable[EvidenceRoom] = ()) -> tuple[EvidenceRoom, ...]:
    """Return the evidence of what was said, each with room and time, together with earlier evidence; by room."""
    rooms: dict[str, EvidenceRoom] = {}
    for room in (*kept, *(EvidenceRoom(room_id, at, at) for room_id, at in sayings)):
        known = rooms.get(room.room_id, room)
        rooms[room.room_id] = EvidenceRoom(room.room_id, min(known.first, room.first), max(known.last, room.last))
    return tuple(rooms[name] for name in sorted(rooms))


def rooms_named(memories: Iterable[Version]) -> set[str]:
    """Return the rooms that decide about these memories: those of the evidence, and those shared with."""
    shared = {target for memory in memories for target in memory.shared_with if target != EVERYONE}
    return {room.room_id for memory in memories for room in memory.evidence} | {
        target.removeprefix("room:") for target in shared
    }


def _is_there(presence: Presence, now: datetime) -> bool:
    """Return True unless the person is known to have left."""
    stays = presence.stays
    if not stays or any(stay.left_at is None or stay.left_at > now for stay in stays):
        return True
    left = max(stay.left_at for stay in stays if stay.left_at)
    return presence.spoke is not None and presence.spoke.end > left


def _presence(room: RoomPeople, person: str) -> tuple[Window, ...]:
    presence = room.people.get(person)
    if presence is None:
        return NEVER
    spoke = (presence.spoke,) if presence.spoke else NEVER
    there = tuple(_window(stay, presence.spoke) for stay in presence.stays) or spoke
    if not any(stay.left_at for stay in presence.stays):
        alone = _windows_as(RoomKind.DIRECT, room)
        there += tuple(window for window in alone if any(known.start <= window.end for known in there))
    return there if len(there) == 1 else _joined(sorted(there))


def _window(stay: Stay, spoke: Window | None) -> Window:
    """Return the time of a stay. One of unknown start begins when it was told, or when the person first spoke."""
    end = stay.left_at or END
    start = stay.joined_at or min(stay.told_at, spoke.start if spoke else stay.told_at)
    return Window(min(start, end), end)


def _joined(windows: Iterable[Window]) -> tuple[Window, ...]:
    """Return windows that do not touch each other; the given ones are in order. One that begins with the next
    microsecond goes on."""
    joined_windows: list[Window] = []
    for window in windows:
        if joined_windows and window.start - joined_windows[-1].end <= _MICROSECOND:
            joined_windows[-1] = Window(joined_windows[-1].start, max(joined_windows[-1].end, window.end))
        else:
            joined_windows.append(window)
    return tuple(joined_windows)


def _overlaps(windows: Sequence[Window], other: Sequence[Window]) -> Iterator[Window]:
    """Yield the time that is in both, in order. Both are in order and do not overlap in themselves."""
    i = j = 0
    while i < len(windows) and j < len(other):
        start, end = max(windows[i].start, other[j].start), min(windows[i].end, other[j].end)
        if start <= end:
            yield Window(start, end)
        if windows[i].end < other[j].end:
            i += 1
        else:
            j += 1


@dataclass(frozen=True, slots=True)
class RoomFacts:
    """The kind and members of a room by an export. `kind`: None if it does not say. `members`: all people who are in
    it, None if the export does not list them. `since`: when they came, in a chat whose people never change. `name`:
    what the platform calls it, '' if the export does not say."""

    kind: RoomKind | None = None
    members: tuple[str, ...] | None = None
    since: datetime | None = None
    name: str = ""


NOTHING_TOLD = RoomFacts()


@dataclass(frozen=True, slots=True)
class Move:
    """A person came or went. `by_name`: `person` is a display name, since the export gives no id there."""

    person: str
    came: bool
    by_name: bool = False


@dataclass(frozen=True, slots=True)
class TimedMove:
    """A move with its time."""

    person: str
    came: bool
    at: datetime


def kind_learned(known: RoomKind | None, new_kind: RoomKind | None) -> RoomKind | None:
    """Return the kind of a room after an export told one. An export never opens a room: what is known stays, unless it
    is `public` and the export says otherwise; then it counts for all times."""
    return new_kind or known if known in (None, RoomKind.PUBLIC) else known


def moves_by_id(move: Move, at: datetime, names: Mapping[str, str]) -> list[TimedMove]:
    """Return the move with the id of the person. `names`: display names by id. If several have the name, all of them
    went, and none came; if nobody has it, the name is the id."""
    if not move.by_name or move.person in names:
        return [TimedMove(move.person, move.came, at)]
    people = [person for person, name in names.items() if name == move.person] or [move.person]
    return [] if move.came and len(people) > 1 else [TimedMove(person, move.came, at) for person in people]


def stays_learned(
    known: Stays,
    facts: RoomFacts,
    moves: Iterable[TimedMove],
    now: datetime,
) -> dict[str, tuple[Stay, ...]]:
    """Return the stays after an export was read. `known`: of all who are known, without a stay for those who only
    spoke. If the export lists the members, whoever is not among them is gone."""
    stays_by_person = {person: tuple(stays) for person, stays in known.items()}
    for move in sorted(moves, key=lambda move: move.at):
        stays = stays_by_person.get(move.person, ())
        stays_by_person[move.person] = _came(stays, move.at, now) if move.came else _went(stays, move.at, now)
    if facts.members is None:
        return {person: stays for person, stays in stays_by_person.items() if stays}
    return all_members(stays_by_person, [Member(person, facts.since) for person in facts.members], now)


def _came(stays: tuple[Stay, ...], at: datetime, now: datetime) -> tuple[Stay, ...]:
    """Return the stays with one from `at`. An open stay of unknown start began then."""
    if any(stay.joined_at == at or _holds(stay, at) for stay in stays if stay.joined_at):
        return stays
    unknown = next((stay for stay in stays if stay.left_at is None), None)
    if unknown is None or unknown.joined_at is not None:
        return (*stays, Stay(now, at))
    return tuple(replace(stay, joined_at=at) if stay is unknown else stay for stay in stays)


def _went(stays: tuple[Stay, ...], at: datetime, now: datetime) -> tuple[Stay, ...]:
    """Return the stays with the one that holds `at` ended then."""
    over = [stay for stay in stays if _holds(stay, at)]
    if not over and not any(stay.left_at == at for stay in stays):
        return (*stays, Stay(now, None, at))
    return tuple(replace(stay, left_at=at) if stay in over else stay for stay in stays)


def _holds(stay: Stay, at: datetime) -> bool:
    """Return True if the stay is known to have gone on at that time. Of one that ended nobody knows if its start is
    unknown."""
    if stay.left_at is None:
        return stay.joined_at is None or stay.joined_at <= at
    return stay.joined_at is not None and stay.joined_at <= at < stay.left_at
