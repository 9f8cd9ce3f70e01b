"""Adding a batch: read what is there, reckon features and links, write all of it if nobody was faster.

Reckoning is processor work and holds no lock. The room's revision, compared under the room's row lock, is the guard:
if another writer moved it, the batch is reckoned again on what is stored now. So the order of arrival alone decides the
links.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from roomlore.core.calibration import Calibration
from roomlore.core.errors import Conflict
from roomlore.core.intake import Intake, sort_out
from roomlore.core.linking import LinkModel, version_of
from roomlore.core.models import Entry, Link, Message, Room
from roomlore.core.room_state import WINDOW, Arrivals, RoomState
from roomlore.ports.coordination import Clock
from roomlore.ports.language import TokenCounter
from roomlore.ports.storage import Storage, UnitOfWork
from roomlore.services.messages.due import Due
from roomlore.services.messages.room_cache import Held, RoomCache

T = TypeVar("T")

_INLINE = 6_000
"""Characters that are read on the event loop: a few milliseconds of work."""
_MESSAGE = 600
_ENTRY = 100
"""A message is worked on as long as so many characters are read; an entry is taken into a window."""
_TRIES = 4
_ROOMS_AT_ONCE = 16
"""So many rooms of a batch are worked on at a time: what linking needs of a room takes a megabyte and more."""

Batches = Mapping[str, Sequence[Message]]
Along = Callable[[UnitOfWork], Awaitable[None]]


@dataclass(slots=True)
class _Started:
    """One room's share of a batch, and the state it is reckoned on."""

    room: Room
    state: RoomState
    intake: Intake
    arrivals: Arrivals


@dataclass(frozen=True, slots=True)
class Plan:
    """What one room's share of a batch comes to: entries to append, the links of older messages that changed, and what
    the room's replies have shown of the link model."""

    room: Room
    intake: Intake
    entries: Sequence[Entry]
    relinked: Mapping[int, Link]
    calibration: Calibration


class _RoomMovedError(Exception):
    """Another writer was faster."""


class Ingest:
    """Adds batches for one tenant."""

    def __init__(
        self,
        *,
        tenant: str,
        storage: Storage,
        model: LinkModel,
        tokens: TokenCounter,
        clock: Clock,
        rooms: RoomCache,
        due: Due,
    ) -> None:
        self._tenant = tenant
        self._due = due
        self._storage = storage
        self._model = model
        self._version = version_of(model)
        self._tokens = tokens
        self._clock = clock
        self._rooms = rooms

    async def add(self, batches: Batches, *, strict: bool, along: Along | None = None) -> list[Plan]:
        """Stores the batches, all of them or none. `strict`: a conflict raises `Conflict` and nothing is stored.

        `along` writes something of the caller's into the same transaction, after the messages; it is called again where
        that had to be tried again, and not at all where every message was there already.
        """
        async with self._rooms.alone(self._tenant, batches):
            for _ in range(_TRIES):
                try:
                    return await self._try(batches, strict=strict, along=along)
                except _RoomMovedError:
                    continue
            return await self._insist(batches, strict=strict, along=along)

    async def _try(self, batches: Batches, *, strict: bool, along: Along | None) -> list[Plan]:
        states = self._rooms.hold()
        plans = await self._all_planned(None, batches, states, strict=strict)
        written: dict[str, Room] = {}
        if any(plan.entries for plan in plans):
            async with self._storage.writing() as work:
                written = await self._write(work, plans, along)
            self._due.announce()
        return self._remember(plans, states, written)

    async def _insist(self, batches: Batches, *, strict: bool, along: Along | None) -> list[Plan]:
        """Reckon while holding the rooms' locks: the last resort under heavy contention."""
        states = self._rooms.hold()
        async with self._storage.writing() as work:
            for room_id in sorted(batches):
                await work.rooms.lock(tenant=self._tenant, room_id=room_id, now=self._clock.now())
            plans = await self._all_planned(work, batches, states, strict=strict)
            written = await self._write(work, plans, along)
        self._due.announce()
        return self._remember(plans, states, written)

    async def _all_planned(
        self, work: UnitOfWork | None, batches: Batches, states: Held, *, strict: bool
    ) -> list[Plan]:
        """Plan a few rooms at a time, so that what linking needs of a room is held for a few only. Without `work` each
        few are read in a transaction of their own; the revisions tell later whether a room has moved since."""
        plans: list[Plan] = []
        rooms = iter(batches.items())
        conflicts: list[str] = []
        while few := list(islice(rooms, _ROOMS_AT_ONCE)):
            async with nullcontext(work) if work is not None else self._storage.reading() as reading:
                started = [await self._start(reading, room_id, batch) for room_id, batch in few]
            conflicts += [message_id for one in started for message_id in one.intake.conflicts]
            if not (strict and conflicts):
                await self._reckon(started)
            for one in started:
                states.add(one.room, one.state)
                arrivals = one.arrivals
                plans.append(Plan(one.room, one.intake, arrivals.entries, arrivals.relinked, one.state.calibration))
        if strict and conflicts:
            raise Conflict(
                f"{len(conflicts)} message(s) are stored already with other content, {conflicts[0]!r} for one; nothing "
                "was added. Use edit to change a message, or on_conflict='report' to add the others."
            )
        return plans

    async def _start(self, work: UnitOfWork, room_id: str, batch: Sequence[Message]) -> _Started:
        room = await work.rooms.find(tenant=self._tenant, room_id=room_id)
        if room is None:
            room = Room(tenant=self._tenant, room_id=room_id, created_at=self._clock.now())
            state = RoomState(model=self._model, room=room, participants={}, entries=())
            intake = await aside(weight(batch), lambda: sort_out(batch, {}))
            return _Started(room, state, intake, state.begin((), ()))
        state = self._rooms.take(room) or await self._read(work, room)
        ids = [message.id for message in batch]
        known = await work.messages.fingerprints(tenant=self._tenant, room_id=room_id, message_ids=ids)
        intake = await aside(weight(batch), lambda: sort_out(batch, known))
        held = state.ids()
        wanted = [m.reply_to for m in intake.fresh if m.reply_to and m.reply_to not in held]
        targets = await work.messages.by_id(tenant=self._tenant, room_id=room_id, message_ids=wanted)
        fresh = [message.id for message in intake.fresh]
        found = await work.threads.waiting(tenant=self._tenant, room_id=room_id, message_ids=fresh)
        waiting = [entry for entry in found if room.linked.adopts(entry.message.arrival)]
        return _Started(room, state, intake, state.begin(targets, waiting))

    async def _read(self, work: UnitOfWork, room: Room) -> RoomState:
        names = await work.rooms.participants(tenant=self._tenant, room_id=room.room_id)
        entries = await work.messages.tail(tenant=self._tenant, room_id=room.room_id, limit=WINDOW)
        return await aside(
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
        await aside(size, lambda: self._link(started))

    def _link(self, started: Sequence[_Started]) -> None:
        now = self._clock.now()
        for one in started:
            counts = self._tokens.count([message.text for message in one.intake.fresh])
            for message, tokens in zip(one.intake.fresh, counts, strict=True):
                one.arrivals.absorb(message, tokens=tokens, now=now)

    async def _write(self, work: UnitOfWork, plans: Sequence[Plan], along: Along | None) -> dict[str, Room]:
        written: dict[str, Room] = {}
        for plan in sorted(plans, key=lambda plan: plan.room.room_id):
            if not plan.entries:
                continue
            room_id = plan.room.room_id
            locked = await work.rooms.lock(tenant=self._tenant, room_id=room_id, now=self._clock.now())
            if locked.revision != plan.room.revision:
                raise _RoomMovedError
            linked = locked.linked.grown(self._version, newest=locked.next_arrival - 1, calibration=plan.calibration)
            written[room_id] = await work.writer.append(
                tenant=self._tenant, room_id=room_id, entries=plan.entries, linked=linked
            )
            await self._due.note(work, self._tenant, room_id, plan.entries)
            if plan.relinked:
                written[room_id] = await work.writer.relink(tenant=self._tenant, room_id=room_id, links=plan.relinked)
        if written and along is not None:
            await along(work)
        return written

    def _remember(self, plans: list[Plan], states: Held, written: Mapping[str, Room]) -> list[Plan]:
        for room, state in states:
            self._rooms.keep(written.get(room.room_id, room), state)
        return plans


async def aside(size: int, work: Callable[[], T]) -> T:
    """Return what the work gives, done in a thread unless it is so small that others can wait. `size` in characters."""
    return work() if size <= _INLINE else await asyncio.to_thread(work)


def weight(messages: Iterable[Message]) -> int:
    """Return how much there is to read, in characters; each message counts for some besides its own.

    It takes what nobody has checked yet."""
    return sum(_MESSAGE + _length(getattr(one, "text", "")) + _length_beside(one) for one in messages)


def _length_beside(message: Message) -> int:
    metadata = getattr(message, "metadata", None)
    return sum(map(_length, metadata.values())) if isinstance(metadata, Mapping) else 1


def _length(value: object) -> int:
    """Return what a value weighs; what holds others is not looked into."""
    return len(value) if isinstance(value, str) else _INLINE if isinstance(value, list | dict) and value else 1
