"""Adding messages: notes of the work they make due, the cache of rooms, and the transaction that stores a batch."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Literal, TypeVar

from roomlore.core.attachments import counted_text
from roomlore.core.intake import Intake, sort_out
from roomlore.core.linking.model import LinkModel, version_of
from roomlore.core.linking.room import WINDOW, Arrivals, RoomState
from roomlore.core.models import Entry, Message, Room
from roomlore.core.quotas import Quotas
from roomlore.ports.coordination import Clock, Jobs, Telemetry
from roomlore.ports.language import TokenCounter
from roomlore.ports.progress import INDEXING
from roomlore.ports.quotas import QuotaChecks
from roomlore.ports.storage import DueWork, Storage, UnitOfWork
from roomlore.services.messages.joint import Joint, Turn, Turns
from roomlore.services.messages.plans import Batches, Plan, check_conflicts

_Key = tuple[str, str]
T = TypeVar("T")
_INLINE = 6_000
"""Characters that are read on the event loop: a few milliseconds of work."""
_MESSAGE = 600
_ENTRY = 100
"""The cost of a message in characters of work, and of an entry that enters a window."""
_TRIES = 4
_BRIEF = 8
"""The most messages of a batch that may share its transaction with others, or is planned while its rooms are
locked; and the most that come one by one and are added as one batch."""
_ROOMS_AT_ONCE = 16
"""The rooms of a batch that are processed at a time: linking needs a megabyte or more for each."""
_SHARED = 10_000
"""The most rooms that are known to be written to by other processes."""
_STAYS_SHARED = 8
"""Writes without another's between them after which a room counts as written to by this process alone."""
_FOLLOWED = 64
"""The most messages of others that a cached state takes in; after more, the room is read again."""
Along = Callable[[UnitOfWork], Awaitable[None]]


class AllDue:
    """Several of them as one."""

    def __init__(self, *parts: DueWork) -> None:
        self._parts = parts

    async def note(self, work: UnitOfWork, room_id: str, entries: Sequence[Entry]) -> bool:
        return any([await part.note(work, room_id, entries) for part in self._parts])

    def announce(self) -> None:
        for part in self._parts:
            part.announce()


class VectorsDue:
    """Note messages that need vectors. `embedding`: True if this process makes vectors. A process that does not still
    notes the work for others, once they keep vectors here."""

    def __init__(self, *, embedding: bool, jobs: Jobs) -> None:
        self._embedding = embedding
        self._jobs = jobs

    async def note(self, work: UnitOfWork, room_id: str, entries: Sequence[Entry]) -> bool:
        """Put these messages of a locked room into the outbox, in the transaction that changes them."""
        arrivals = [entry.message.arrival for entry in entries]
        await work.progress.outbox.add(scope=room_id, numbers=arrivals, only_if_kept=not self._embedding)
        return self._embedding

    def announce(self) -> None:
        """Request the work once the transaction is committed, if this process does it."""
        if self._embedding:
            self._jobs.ask(INDEXING)


class Held:
    """The states of one batch's rooms, those used last: at most `size_bytes` of them together."""

    def __init__(self, size_bytes: int) -> None:
        self._most = size_bytes
        self._bytes = 0
        self._states: deque[tuple[Room, RoomState, int]] = deque()

    def add(self, room: Room, state: RoomState) -> None:
        state.rest()
        size = state.size_bytes()
        self._states.append((room, state, size))
        self._bytes += size
        while self._bytes > self._most:
            self._bytes -= self._states.popleft()[2]

    def __iter__(self) -> Iterator[tuple[Room, RoomState]]:
        return ((room, state) for room, state, _ in self._states)


class RoomCache:
    """A cache of the rooms written to last, by tenant and room id, of `size_bytes`; shared by all tenants of one
    process.

    A state is only used at the stored revision. If another process has added messages, they are taken in; a room that
    was changed in another way, or removed and created again, is read again.
    """

    def __init__(self, *, size_bytes: int, telemetry: Telemetry) -> None:
        self.size_bytes = size_bytes
        self._bytes = 0
        self._telemetry = telemetry
        self._states: OrderedDict[_Key, tuple[datetime, RoomState, int]] = OrderedDict()
        self._shared: dict[_Key, int] = {}
        self._turns: Turns = {}

    def hold(self) -> Held:
        """Return a place for the states of a batch that is not written yet: half as many bytes as the cache."""
        return Held(self.size_bytes // 2)

    def alone(self, tenant: str, room_ids: Iterable[str]) -> Turn:
        """Take the next place among this process's writers to these rooms, at once: they queue instead of colliding,
        and nobody who comes later writes first to one of the rooms."""
        return Turn(self._turns, [(tenant, room_id) for room_id in room_ids])

    def is_taken(self, tenant: str, room_id: str) -> bool:
        """Return True if one of this process's writers has the turn in the room."""
        return (tenant, room_id) in self._turns

    def take(self, room: Room) -> RoomState | None:
        """Return the room's state, which may be of an earlier revision. It leaves the cache: a batch that fails must
        not spoil it."""
        made, state, size = self._states.pop((room.tenant, room.room_id), (None, None, 0))
        self._bytes -= size
        return state if made == room.created_at else None

    def entries(self, room: Room) -> Sequence[Entry]:
        """Return the newest entries of the room as they are stored, in order of arrival; none unless the room is in
        memory at this revision."""
        made, state, _ = self._states.get((room.tenant, room.room_id), (None, None, 0))
        if state is None or made != room.created_at or state.revision != room.revision:
            return ()
        return state.entries

    def tell(self, room: Room, result: Literal["hit", "followed", "miss"]) -> None:
        """Note what became of the state of a room: used as it was, with what others had added, or not at all."""
        self._telemetry.count("roomlore_room_cache_total", labels={"result": result})
        key = (room.tenant, room.room_id)
        if result == "followed":
            self.share(room)
        elif key in self._shared:
            self._shared[key] -= 1
            if not self._shared[key]:
                del self._shared[key]

    def share(self, room: Room) -> None:
        """Note that other processes write to this room."""
        if len(self._shared) >= _SHARED:
            self._shared.clear()
        self._shared[room.tenant, room.room_id] = _STAYS_SHARED

    def are_shared(self, tenant: str, room_ids: Iterable[str]) -> bool:
        """Return True if other processes wrote to one of these rooms lately."""
        return any((tenant, room_id) in self._shared for room_id in room_ids)

    def keep(self, room: Room, state: RoomState) -> None:
        """Put back a state that is now of the room's revision."""
        state.revision = room.revision
        key, size = (room.tenant, room.room_id), state.size_bytes()
        self._bytes += size - self._states.pop(key, (None, None, 0))[2]
        self._states[key] = room.created_at, state, size
        while self._bytes > self.size_bytes:
            _, (_, _, freed) = self._states.popitem(last=False)
            self._bytes -= freed


@dataclass(slots=True)
class _Started:
    """One room's share of a batch, and the state it is planned on."""

    room: Room
    state: RoomState
    intake: Intake
    arrivals: Arrivals


@dataclass(slots=True)
class _Written:
    """The rooms that a transaction has written to, as they are now, by id. `due`: True if work is to be announced."""

    rooms: dict[str, Room] = field(default_factory=dict)
    due: bool = False


class _RoomMovedError(Exception):
    """Another writer was faster."""


class Ingest:
    """Add batches for one tenant.

    `refuses`: if False, messages count for the tenant's quotas and are never refused. `one_writer`: True if the
    database has one writer at a time, and is near: then messages that come at once share their work whatever their
    rooms, and else only those to one room, which have to wait for each other.
    """

    def __init__(
        self,
        *,
        tenant: str,
        storage: Storage,
        model: LinkModel,
        tokens: TokenCounter,
        clock: Clock,
        rooms: RoomCache,
        due: DueWork,
        quotas: QuotaChecks,
        refuses: bool = True,
        one_writer: bool = False,
    ) -> None:
        self._quotas = quotas
        self._refuses = refuses
        self._tenant = tenant
        self._due = due
        self._storage = storage
        self._model = model
        self._version = version_of(model)
        self._tokens = tokens
        self._clock = clock
        self._rooms = rooms
        self._joint = Joint(
            partial(rooms.alone, tenant),
            partial(rooms.is_taken, tenant),
            partial(self._add_now, strict=False),
            most=_BRIEF,
            most_weight=_INLINE,
            across=one_writer,
        )

    async def add(self, batches: Batches, *, strict: bool, along: Along | None = None) -> list[Plan]:
        """Store the batches, all of them or none. `strict`: a conflict raises `Conflict` and nothing is stored.

        `along` writes something of the caller's in the same transaction, after the messages. It is called again if the
        transaction is retried, and not at all if every message existed already.
        """
        messages = [message for batch in batches.values() for message in batch]
        if along is not None or len(messages) != 1:
            self._joint.begin(batches)
            async with self._rooms.alone(self._tenant, batches):
                return await self._add_now(batches, strict=strict, along=along)
        plan = await self._joint.add(messages[0], weight(messages))
        if strict:
            check_conflicts(plan.intake.conflicts)
        return [plan]

    async def _add_now(self, batches: Batches, *, strict: bool, along: Along | None = None) -> list[Plan]:
        """Add batches to rooms whose turn it is."""
        limits = await self._quotas.of(self._tenant)
        few = sum(map(len, batches.values())) <= _BRIEF
        for _ in range(_TRIES):
            if few and self._rooms.are_shared(self._tenant, batches):
                break
            try:
                return await self._try(batches, strict=strict, along=along, limits=limits)
            except _RoomMovedError:
                continue
        return await self._try_locked(batches, strict=strict, along=along, limits=limits)

    async def _try(self, batches: Batches, *, strict: bool, along: Along | None, limits: Quotas) -> list[Plan]:
        states = self._rooms.hold()
        plans = await self._all_planned(None, batches, states, strict=strict)
        written = _Written()
        if any(plan.entries for plan in plans):
            brief = along is None and sum(len(plan.entries) for plan in plans) <= _BRIEF
            async with self._storage.writing(self._tenant, brief=brief) as work:
                written = await self._write(work, plans, along, limits)
        return self._done(plans, states, written)

    async def _try_locked(self, batches: Batches, *, strict: bool, along: Along | None, limits: Quotas) -> list[Plan]:
        """Plan while holding the rooms' locks, so that no plan is in vain if other processes write to the rooms."""
        states = self._rooms.hold()
        async with self._storage.writing(self._tenant) as work:
            for room_id in sorted(batches):
                await work.rooms.lock(room_id=room_id, now=self._clock.now())
            plans = await self._all_planned(work, batches, states, strict=strict)
            written = await self._write(work, plans, along, limits)
        return self._done(plans, states, written)

    async def _all_planned(
        self, work: UnitOfWork | None, batches: Batches, states: Held, *, strict: bool
    ) -> list[Plan]:
        """Plan a few rooms at a time, so that the data for linking is held for a few only. Without `work` each group is
        read in a transaction of its own; the revisions tell later if a room has changed since."""
        plans: list[Plan] = []
        rooms = iter(batches.items())
        conflicts: list[str] = []
        while few := list(islice(rooms, _ROOMS_AT_ONCE)):
            async with nullcontext(work) if work is not None else self._storage.reading(self._tenant) as reading:
                started = [await self._start(reading, room_id, batch) for room_id, batch in few]
            conflicts += [message_id for one in started for message_id in one.intake.conflicts]
            if not (strict and conflicts):
                await self._reckon(started)
            for one in started:
                states.add(one.room, one.state)
                arrivals = one.arrivals
                plans.append(Plan(one.room, one.intake, arrivals.entries, arrivals.relinked, one.state.calibration))
        if strict:
            check_conflicts(conflicts)
        return plans

    async def _start(self, work: UnitOfWork, room_id: str, batch: Sequence[Message]) -> _Started:
        ids = [message.id for message in batch]
        met = await work.messages.met(room_id=room_id, message_ids=ids)
        if met is None:
            room = Room(tenant=self._tenant, room_id=room_id, created_at=self._clock.now())
            state = RoomState(model=self._model, room=room, participants={}, entries=())
            intake = await in_thread_if_large(weight(batch), lambda: sort_out(batch, {}))
            return _Started(room, state, intake, state.begin((), ()))
        room = met.room
        state = await self._current(work, room)
        intake = await in_thread_if_large(weight(batch), lambda: sort_out(batch, met.fingerprints))
        wanted = state.answered_elsewhere(intake.fresh)
        targets = await work.messages.by_id(room_id=room_id, message_ids=wanted)
        fresh = [message.id for message in intake.fresh] if met.awaited else []
        found = await work.messages.waiting(room_id=room_id, message_ids=fresh)
        waiting = [entry for entry in found if room.linked.adopts(entry.message.arrival)]
        return _Started(room, state, intake, state.begin(targets, waiting))

    async def _current(self, work: UnitOfWork, room: Room) -> RoomState:
        """Return the room's state at its revision: from the cache, with what others added since, or read again."""
        state = self._rooms.take(room)
        if state is not None and state.revision == room.revision:
            self._rooms.tell(room, "hit")
            return state
        if state is not None and await self._follow(work, room, state):
            self._rooms.tell(room, "followed")
            return state
        self._rooms.tell(room, "miss")
        return await self._read(work, room)

    async def _follow(self, work: UnitOfWork, room: Room, state: RoomState) -> bool:
        """Take in what other writers appended. Return False if more changed than that."""
        if not 0 < room.revision - state.revision <= _FOLLOWED:
            return False
        entries = await work.messages.appended(
            room_id=room.room_id,
            since=state.revision,
            through=room.revision,
            after=state.next_arrival - 1,
            limit=_FOLLOWED,
        )
        if entries is None:
            return False
        state.follow(
            room,
            entries,
            calibration=room.linked.calibrated(self._version),
            learning=room.linked.whole(self._version, newest=room.next_arrival - 1),
        )
        return True

    async def _read(self, work: UnitOfWork, room: Room) -> RoomState:
        """Read the state at the room's revision. What others have added since is left out."""
        names = await work.rooms.participants(room_id=room.room_id)
        entries = await work.messages.tail(room_id=room.room_id, before=room.next_arrival, limit=WINDOW)
        return await in_thread_if_large(
            _ENTRY * len(entries) + len(names),
            lambda: RoomState(
                model=self._model,
                room=room,
                participants=names,
                entries=entries,
                calibration=room.linked.calibrated(self._version),
                learning=room.linked.whole(self._version, newest=room.next_arrival - 1),
            ).woken(),
        )

    async def _reckon(self, started: Sequence[_Started]) -> None:
        size = weight(message for one in started for message in one.intake.fresh)
        size += sum(_ENTRY * len(one.state.entries) for one in started if one.state.rests)
        await in_thread_if_large(size, lambda: self._link(started))

    def _link(self, started: Sequence[_Started]) -> None:
        now = self._clock.now()
        for one in started:
            counts = self._tokens.count([counted_text(message) for message in one.intake.fresh])
            for message, tokens in zip(one.intake.fresh, counts, strict=True):
                one.arrivals.absorb(message, tokens=tokens, now=now)

    async def _write(self, work: UnitOfWork, plans: Sequence[Plan], along: Along | None, limits: Quotas) -> _Written:
        written = _Written()
        for plan in sorted(plans, key=lambda plan: plan.room.room_id):
            if not plan.entries:
                continue
            room_id = plan.room.room_id
            locked = await work.rooms.lock(room_id=room_id, now=self._clock.now())
            made_again = plan.room.revision > 0 and locked.created_at != plan.room.created_at
            if made_again or locked.revision != plan.room.revision:
                self._rooms.share(plan.room)
                raise _RoomMovedError
            linked = locked.linked.grown(self._version, newest=locked.next_arrival - 1, calibration=plan.calibration)
            stored = await work.messages.append(room_id=room_id, entries=plan.entries, linked=linked)
            written.due |= await self._due.note(work, room_id, plan.entries)
            if plan.relinked:
                relinked = await work.messages.relink(room_id=room_id, links=plan.relinked)
                stored = relinked.room
            written.rooms[room_id] = stored
        if written.rooms:
            added = sum(len(plan.entries) for plan in plans)
            await self._quotas.count_messages(work, limits, added=added, refuses=self._refuses)
        if written.rooms and along is not None:
            await along(work)
        return written

    def _done(self, plans: list[Plan], states: Held, written: _Written) -> list[Plan]:
        """Announce due work once the transaction is committed, and keep the states. One that is not whole is dropped if
        links of older messages changed: the store also moves what answers these by way of messages that are not in
        memory, so the state may be wrong."""
        if written.due:
            self._due.announce()
        moved = {plan.room.room_id for plan in plans if plan.relinked}
        for room, state in states:
            if room.room_id not in moved or state.is_whole:
                self._rooms.keep(written.rooms.get(room.room_id, room), state)
        return plans


async def in_thread_if_large(size: int, work: Callable[[], T]) -> T:
    """Return the result of the work. It runs in a thread unless it is small enough not to delay others. `size` in
    characters."""
    return work() if size <= _INLINE else await asyncio.to_thread(work)


def weight(messages: Iterable[Message], *, texts: bool = True) -> int:
    """Return the amount of text, in characters; each message counts for some besides its own. `texts`: if False, what
    was said does not count.

    It accepts unchecked input.
    """
    size = 0
    for one in messages:
        text, metadata = getattr(one, "text", ""), getattr(one, "metadata", None)
        size += _MESSAGE + (len(text) if texts and isinstance(text, str) else 1)
        if metadata and isinstance(metadata, Mapping):
            size += sum(map(_length, metadata.values()))
    return size


def _length(value: object) -> int:
    """Return the weight of a value; the contents of containers are not counted."""
    return len(value) if isinstance(value, str) else _INLINE if isinstance(value, list | dict) and value else 1
