"""Plans of what is stored of a batch, room by room, and reports of what became of its messages."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from roomlore.core.attachments import counted_text
from roomlore.core.errors import Conflict
from roomlore.core.intake import Intake, IntakeResult, sort_out
from roomlore.core.linking.calibration import Calibration
from roomlore.core.linking.model import LinkModel, version_of
from roomlore.core.linking.room import WINDOW, Arrivals, RoomState
from roomlore.core.models import AddReport, Entry, Link, Message, Room
from roomlore.ports.shared import Backends, Service
from roomlore.services.messages.room_states import BatchStates, RoomCache

if TYPE_CHECKING:
    from roomlore.storage import UnitOfWork

T = TypeVar("T")
Batches = Mapping[str, Sequence[Message]]
INLINE = 6_000
"""Characters that are read on the event loop: a few milliseconds of work."""
_MESSAGE = 600
_ENTRY = 100
"""The cost of a message in characters of work, and of an entry that enters a window."""
_ROOMS_AT_ONCE = 16
"""The rooms of a batch that are processed at a time: linking needs a megabyte or more for each."""
_FOLLOWED = 64
"""The most messages of others that a cached state takes in; after more, the room is read again."""


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """The plan for one room's share of a batch: entries to append, the links of older messages that changed, and what
    the room's replies have shown about the link model."""

    room: Room
    intake: Intake
    entries: Sequence[Entry]
    relinked: Mapping[int, Link]
    calibration: Calibration

    def share(self, message_id: str, *, made: bool) -> "BatchPlan":
        """Return what is about one message. `made`: False if another message has made the room."""
        its = self.intake
        return replace(
            self,
            room=self.room if made else replace(self.room, revision=max(self.room.revision, 1)),
            intake=Intake(
                fresh=[message for message in its.fresh if message.id == message_id],
                duplicates=[duplicate for duplicate in its.duplicates if duplicate == message_id],
                gone=[gone_id for gone_id in its.gone if gone_id == message_id],
                conflicts=[conflict for conflict in its.conflicts if conflict == message_id],
            ),
            entries=[entry for entry in self.entries if entry.message.id == message_id],
        )


def check_conflicts(message_ids: Sequence[str]) -> None:
    """Raise `Conflict` if there are ids of messages that are stored, or earlier in the batch, with other content."""
    if message_ids:
        raise Conflict("messages_conflict", count=len(message_ids), example=repr(message_ids[0]))


def by_room(messages: Iterable[Message]) -> dict[str, list[Message]]:
    """Return the messages of each room, in their order."""
    rooms: dict[str, list[Message]] = {}
    for message in messages:
        rooms.setdefault(message.room_id, []).append(message)
    return rooms


def results_of(plans: Sequence[BatchPlan]) -> dict[str, IntakeResult]:
    """Return what became of the batches that were planned so, by room."""
    return {plan.room.room_id: plan.intake.result for plan in plans}


def report_of(plans: Sequence[BatchPlan]) -> AddReport:
    """Return what became of the batches that were planned so."""
    return AddReport(
        added=tuple(message.id for plan in plans for message in plan.intake.fresh),
        duplicates=tuple(message_id for plan in plans for message_id in (*plan.intake.duplicates, *plan.intake.gone)),
        conflicts=tuple(message_id for plan in plans for message_id in plan.intake.conflicts),
        new_rooms={plan.room.room_id: () for plan in plans if plan.entries and plan.room.revision == 0},
    )


@dataclass(slots=True)
class _Started:
    """One room's share of a batch, and the state it is planned on."""

    room: Room
    state: RoomState
    intake: Intake
    arrivals: Arrivals


class Planner(Service):
    """Plan batches for one tenant: read the rooms, sort out what is stored already, and link what is new."""

    def __init__(self, backends: Backends, *, tenant: str, model: LinkModel, rooms: RoomCache) -> None:
        super().__init__(backends)
        self._tenant = tenant
        self._model = model
        self.version = version_of(model)
        self._rooms = rooms

    async def plan(
        self, work: "UnitOfWork | None", batches: Batches, states: BatchStates, *, strict: bool
    ) -> list[BatchPlan]:
        """Plan a few rooms at a time, so that the data for linking is held for a few only. With `work` the rooms are
        locked. Without it each group is read in a transaction of its own; the revisions tell later if a room has
        changed since."""
        plans: list[BatchPlan] = []
        rooms = iter(batches.items())
        conflicts: list[str] = []
        while few := list(islice(rooms, _ROOMS_AT_ONCE)):
            async with nullcontext(work) if work is not None else self._storage.reading(self._tenant) as reading:
                started = [await self._start(reading, room_id, batch, lock=work is not None) for room_id, batch in few]
            conflicts += [message_id for part in started for message_id in part.intake.conflicts]
            if not (strict and conflicts):
                await self._reckon(started)
            for part in started:
                states.add(part.room, part.state)
                arrivals = part.arrivals
                plans.append(
                    BatchPlan(part.room, part.intake, arrivals.entries, arrivals.relinked, part.state.calibration)
                )
        if strict:
            check_conflicts(conflicts)
        return plans

    async def _start(self, work: "UnitOfWork", room_id: str, batch: Sequence[Message], *, lock: bool) -> _Started:
        ids = [message.id for message in batch]
        met = await work.messages.met(room_id=room_id, message_ids=ids, lock=lock)
        if met is None:
            now = self._clock.now()
            room = Room(tenant=self._tenant, room_id=room_id, created_at=now)
            if lock:
                room = await work.rooms.lock(room_id=room_id, now=now)
            state = RoomState(model=self._model, room=room, participants={}, entries=())
            intake = await in_thread_if_large(weight(batch), lambda: sort_out(batch, {}))
            return _Started(room, state, intake, state.begin((), ()))
        room = met.room
        state = await self._current(work, room)
        intake = await in_thread_if_large(weight(batch), lambda: sort_out(batch, met.fingerprints))
        wanted = state.answered_elsewhere(intake.fresh)
        targets = await work.messages.by_id(room_id=room_id, message_ids=wanted)
        fresh = [message.id for message in intake.fresh] if met.awaited else []
        waiters = await work.messages.waiting(room_id=room_id, message_ids=fresh)
        waiting = [entry for entry in waiters if room.linked.adopts(entry.message.arrival)]
        return _Started(room, state, intake, state.begin(targets, waiting))

    async def _current(self, work: "UnitOfWork", room: Room) -> RoomState:
        """Return the room's state at its revision: from the cache, with what others added since, or read again."""
        state = self._rooms.take(room)
        if state is not None and state.revision == room.revision:
            self._rooms.tell("hit")
            return state
        if state is not None and await self._follow(work, room, state):
            self._rooms.tell("followed")
            return state
        self._rooms.tell("miss")
        return await self._read(work, room)

    async def _follow(self, work: "UnitOfWork", room: Room, state: RoomState) -> bool:
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
            calibration=room.linked.calibrated(self.version),
            learning=room.linked.whole(self.version, newest=room.next_arrival - 1),
        )
        return True

    async def _read(self, work: "UnitOfWork", room: Room) -> RoomState:
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
                calibration=room.linked.calibrated(self.version),
                learning=room.linked.whole(self.version, newest=room.next_arrival - 1),
            ).woken(),
        )

    async def _reckon(self, started: Sequence[_Started]) -> None:
        size = weight(message for part in started for message in part.intake.fresh)
        size += sum(_ENTRY * len(part.state.entries) for part in started if part.state.rests)
        await in_thread_if_large(size, lambda: self._link(started))

    def _link(self, started: Sequence[_Started]) -> None:
        now = self._clock.now()
        for part in started:
            counts = self._tokens.count([counted_text(message) for message in part.intake.fresh])
            part.arrivals.absorb(part.intake.fresh, tokens=counts, now=now)


async def in_thread_if_large(size: int, work: Callable[[], T]) -> T:
    """Return the result of the work. It runs in a thread unless it is small enough not to delay others. `size` in
    characters."""
    return work() if size <= INLINE else await asyncio.to_thread(work)


def weight(messages: Iterable[Message], *, texts: bool = True) -> int:
    """Return the amount of text, in characters; each message counts for some besides its own. `texts`: if False, what
    was said does not count.

    It accepts unchecked input.
    """
    size = 0
    for message in messages:
        text, metadata = getattr(message, "text", ""), getattr(message, "metadata", None)
        size += _MESSAGE + (len(text) if texts and isinstance(text, str) else 1)
        if metadata and isinstance(metadata, Mapping):
            size += sum(map(_length, metadata.values()))
    return size


def _length(value: object) -> int:
    """Return the weight of a value; the contents of containers are not counted."""
    return len(value) if isinstance(value, str) else INLINE if isinstance(value, list | dict) and value else 1
