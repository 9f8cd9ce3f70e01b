"""The verbs of `lore.links`: correct what a message answers, take a correction back, and read the log."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from roomlore.core.errors import InvalidInput, NotFound, unknown_room
from roomlore.core.intake import check_page
from roomlore.core.linking.calibration import Linked
from roomlore.core.linking.corrections import (
    FOLLOWING,
    MAX_BY_CHARS,
    Past,
    Standing,
    check_answer,
    errors_shown,
    links_after,
)
from roomlore.core.linking.model import LinkModel, version_of
from roomlore.core.linking.room import WINDOW
from roomlore.core.models import Correction, CorrectionKind, Entry, Link, Room
from roomlore.ports.coordination import Clock
from roomlore.ports.storage import Storage, UnitOfWork

_TRIES = 4
_THREAD = 1_000
"""So many messages of a thread are looked at for a circle."""
_LAST = 2**62
_CALLER = "caller"


class _RoomMovedError(Exception):
    """Another writer was faster."""


@dataclass(frozen=True, slots=True)
class _Wish:
    """The correction that a person asks for. `answers`: the id of the message it answers, None for nothing."""

    room_id: str
    message_id: str
    kind: CorrectionKind
    answers: str | None
    by: str
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class _Change:
    """The effect of a correction: the new links, the room's calibration, the entry of the log."""

    room: Room
    arrival: int
    links: dict[int, Link]
    linked: Linked
    standing: Standing | None


class LinkService:
    """The links of one tenant's messages, as people correct them."""

    def __init__(self, *, tenant: str, storage: Storage, model: LinkModel, clock: Clock) -> None:
        self._tenant = tenant
        self._storage = storage
        self._model = model
        self._version = version_of(model)
        self._clock = clock

    async def correct(
        self, room_id: str, message_id: str, *, answers: str | None, by: str = _CALLER, at: datetime | None = None
    ) -> Entry:
        """Say which earlier message a message answers, or with `answers=None` that it answers nothing of them.

        The link is certain from then on, whatever the platform or the model says, and the messages after it are linked
        anew: threads and contexts follow at once. The correction is logged under the name `by` (and the time `at`, now
        by default), it can be taken back with `undo`, and it is a label: the room's probabilities are calibrated by
        it, and `tuning.run` learns from it. Return the message with its new link. Saying the same again changes
        nothing. Raise `Conflict` for a later message or a circle, `InvalidInput`, `NotFound`,
        `StorageUnavailable`.
        """
        if answers is not None and not isinstance(answers, str):
            raise InvalidInput(f"answers is {answers!r:.60}; give the id of an earlier message, or None for nothing.")
        kind = CorrectionKind.NOTHING if answers is None else CorrectionKind.ANSWERS
        return await self._say(_Wish(room_id, message_id, kind, answers, _checked(by), at))

    async def undo(self, room_id: str, message_id: str, *, by: str = _CALLER) -> Entry:
        """Take the correction of a message back: it is linked as the platform or the model says. Return the message
        with its new link. Raise `NotFound` if there is none in force, `InvalidInput`, `StorageUnavailable`."""
        return await self._say(_Wish(room_id, message_id, CorrectionKind.UNDONE, None, _checked(by)))

    async def corrections(self, room_id: str, *, before: int | None = None, limit: int = 100) -> list[Correction]:
        """Return the newest entries of the room's log of corrections, newest first, those with a number below
        `before`. Raise `NotFound` for an unknown room."""
        check_page(limit=limit)
        if before is not None and (isinstance(before, bool) or not isinstance(before, int)):
            raise InvalidInput(f"before is {before!r:.60}; it must be a whole number.")
        async with self._storage.reading() as work:
            await self._room(work, room_id)
            return await work.corrections.page(
                tenant=self._tenant, room_id=room_id, before=None if before is None else min(before, _LAST), limit=limit
            )

    async def in_force(self, *, after: tuple[str, int] = ("", 0), limit: int = 100) -> list[Correction]:
        """Return corrections in force of all rooms, by room and number, those after this room id and number."""
        check_page(limit=limit)
        async with self._storage.reading() as work:
            return await work.corrections.in_force(tenant=self._tenant, after=after, limit=limit)

    async def _say(self, wish: _Wish) -> Entry:
        for _ in range(_TRIES):
            try:
                return await self._try(wish)
            except _RoomMovedError:
                continue
        return await self._try_locked(wish)

    async def _try(self, wish: _Wish) -> Entry:
        async with self._storage.reading() as work:
            room = await self._room(work, wish.room_id)
            change = await self._change(work, room, wish)
            if change is None:
                return await self._entry(work, wish.room_id, wish.message_id)
        async with self._storage.writing() as work:
            locked = await work.rooms.lock_known(tenant=self._tenant, room_id=wish.room_id)
            if locked is None or (locked.created_at, locked.revision) != (room.created_at, room.revision):
                raise _RoomMovedError
            return await self._write(work, wish, change)

    async def _try_locked(self, wish: _Wish) -> Entry:
        """Link while holding the room's lock: the last resort in a room that is written to all the time."""
        async with self._storage.writing() as work:
            room = await work.rooms.lock_known(tenant=self._tenant, room_id=wish.room_id)
            if room is None:
                raise unknown_room(wish.room_id)
            change = await self._change(work, room, wish)
            if change is None:
                return await self._entry(work, wish.room_id, wish.message_id)
            return await self._write(work, wish, change)

    async def _write(self, work: UnitOfWork, wish: _Wish, change: _Change) -> Entry:
        here = {"tenant": self._tenant, "room_id": wish.room_id}
        await work.messages.relink(**here, links=change.links, linked=change.linked)
        await work.corrections.add(
            **here,
            arrival=change.arrival,
            kind=wish.kind,
            standing=change.standing,
            by=wish.by,
            at=wish.at or self._clock.now(),
        )
        return await self._entry(work, wish.room_id, wish.message_id)

    async def _change(self, work: UnitOfWork, room: Room, wish: _Wish) -> _Change | None:
        """Return what the wish changes; None if it says what is in force already."""
        entry = await self._entry(work, room.room_id, wish.message_id)
        arrival = entry.message.arrival
        known = await self._standing(work, room, [arrival])
        old = known.get(arrival)
        if wish.kind is CorrectionKind.UNDONE:
            if old is None:
                raise NotFound(f"The link of message {wish.message_id!r} is not corrected: there is nothing to undo.")
            answered = None
        else:
            answered = await self._answered(work, room, wish, entry)
            if old is not None and old.answers == answered:
                return None
        past = await self._past(work, room, entry, None if wish.kind is CorrectionKind.UNDONE else Standing(answered))
        links, errors, linked = await asyncio.to_thread(self._links, room, past, old)
        standing = Standing(answered, self._version if errors else "", errors)
        return _Change(
            room=room,
            arrival=arrival,
            links=links,
            linked=linked,
            standing=None if wish.kind is CorrectionKind.UNDONE else standing,
        )

    async def _answered(self, work: UnitOfWork, room: Room, wish: _Wish, entry: Entry) -> int | None:
        """Return the arrival of the message that is answered, once it is checked."""
        if wish.answers is None:
            check_answer(entry.message, None, ())
            return None
        target = await self._entry(work, room.room_id, wish.answers)
        thread: Sequence[Entry] = ()
        if target.link.thread == entry.link.thread:
            thread = await work.messages.thread_members(
                tenant=self._tenant, room_id=room.room_id, thread=target.link.thread, limit=_THREAD
            )
        check_answer(entry.message, target, thread)
        return target.message.arrival

    async def _past(self, work: UnitOfWork, room: Room, entry: Entry, standing: Standing | None) -> Past:
        here = {"tenant": self._tenant, "room_id": room.room_id}
        arrival = entry.message.arrival
        before = await work.messages.tail(tenant=self._tenant, room_id=room.room_id, before=arrival, limit=WINDOW)
        following = await work.messages.page(**here, after=arrival - 1, limit=FOLLOWING + 1)
        arrivals = [message.arrival for message in following]
        entries = await work.messages.by_arrival(**here, arrivals=arrivals)
        if not entries or entries[0].message.arrival != arrival:
            raise _RoomMovedError
        corrected = {at: one.answers for at, one in (await self._standing(work, room, arrivals)).items()}
        corrected.pop(arrival, None)
        if standing is not None:
            corrected[arrival] = standing.answers
        held = {one.message.id for one in (*before, *entries)}
        replied = [one.message.reply_to for one in entries if one.message.reply_to and one.message.reply_to not in held]
        known = {one.message.arrival for one in (*before, *entries)}
        answered = [answers for answers in corrected.values() if answers is not None and answers not in known]
        others = await work.messages.by_id(**here, message_ids=replied)
        others += await work.messages.by_arrival(**here, arrivals=answered)
        return Past(before, entries, others, corrected)

    def _links(self, room: Room, past: Past, old: Standing | None) -> tuple[dict[int, Link], tuple[int, ...], Linked]:
        """Return the new links, what the correction adds to the calibration, and the room's state with it.

        A message that this model did not link is heard when the model comes to it (`LinkIndexing`).
        """
        linked, arrival = room.linked, past.entries[0].message.arrival
        errors: tuple[int, ...] = ()
        if linked.has_linked(arrival, self._version):
            calibration = linked.calibration
            if old is not None and old.errors and old.model == self._version:
                calibration = calibration.unheard(old.errors)
            errors = errors_shown(self._model, past)
            linked = replace(linked, calibration=calibration.with_errors(errors) if errors else calibration)
        return links_after(self._model, past, linked.calibrated(self._version).temperature()), errors, linked

    async def _standing(self, work: UnitOfWork, room: Room, arrivals: Sequence[int]) -> dict[int, Standing]:
        return await work.corrections.standing(tenant=self._tenant, room_id=room.room_id, arrivals=arrivals)

    async def _entry(self, work: UnitOfWork, room_id: str, message_id: str) -> Entry:
        found = await work.messages.by_id(tenant=self._tenant, room_id=room_id, message_ids=[message_id])
        if not found:
            raise NotFound(f"Room {room_id!r} has no message {message_id!r}.")
        return found[0]

    async def _room(self, work: UnitOfWork, room_id: str) -> Room:
        room = await work.rooms.find(tenant=self._tenant, room_id=room_id)
        if room is None:
            raise unknown_room(room_id)
        return room


def _checked(by: str) -> str:
    if not isinstance(by, str) or not 0 < len(by) <= MAX_BY_CHARS:
        raise InvalidInput(f"by is {by!r:.60}; it is the name of who corrects, of 1 to {MAX_BY_CHARS} characters.")
    return by
