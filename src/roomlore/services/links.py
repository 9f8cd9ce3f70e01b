"""The verbs of `lore.links`: correct what a message answers, take a correction back, and read the log; and the durable
work that moves the messages further below to their threads.

A correction links the next messages anew and moves some of those below them in one transaction. If more may have to
follow, the same transaction notes the room. What is left to do is read from the links themselves: a message that is in
another thread than what it answers. So a piece that is repeated changes nothing, and messages and corrections that come
meanwhile are found as well.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from roomlore.core.analysis import with_answered
from roomlore.core.errors import InvalidInput, NotFound, RoomloreError, describe, unknown_room
from roomlore.core.intake import check_page
from roomlore.core.linking.calibration import Linked
from roomlore.core.linking.corrections import (
    FOLLOWING,
    MAX_BY_CHARS,
    CorrectedPast,
    StandingCorrection,
    Threads,
    check_answer,
    errors_shown,
    links_after,
    out_of_place,
)
from roomlore.core.linking.model import LinkModel, version_of
from roomlore.core.linking.room import WINDOW
from roomlore.core.models import CorrectedEntry, Correction, CorrectionKind, Entry, Link, Room
from roomlore.ports.durable import DurableWork, Json, Steps
from roomlore.ports.noted import NOTED_LEASE, NotedRooms
from roomlore.ports.shared import Backends, Service
from roomlore.storage import UnitOfWork
from roomlore.storage.values import THREADS, DueRoom

log = logging.getLogger(__name__)

_TRIES = 4
_PIECE = 500
"""So many messages follow to other threads in one transaction."""
_READ_AT_ONCE = 5_000
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
    standing: StandingCorrection | None


class ThreadMoves(NotedRooms):
    """Move the messages of noted rooms, of all tenants, to the thread of what each answers, in short transactions.
    `background`: True if this process enqueues the work at once; else others find the rooms."""

    def __init__(self, backends: Backends, *, durable: DurableWork, background: bool) -> None:
        super().__init__(backends, durable=durable, kinds=(THREADS,))
        self._background = background

    async def note(self, work: UnitOfWork, room_id: str) -> None:
        """Note a locked room, in the transaction that leaves messages to move."""
        await work.progress.note_room(room_id=room_id, work=THREADS, now=self._clock.now())

    async def left(self, tenant: str, room_id: str) -> int:
        """Return how many messages of the room are left to move, once the work is enqueued."""
        if not await self.any():
            return 0
        if self._background:
            try:
                await self.sweep()
            except RoomloreError as error:
                log.warning("work on threads could not be enqueued yet", extra={"why": describe(error)})
        return len(await self._out_of_place(tenant, room_id))

    async def catch_up(self) -> None:
        """Do now what is noted and not claimed by another process."""
        while records := await self.claim():
            for noted in records:
                async for _ in self._moved(noted.room):
                    pass

    async def work(self, steps: Steps, arguments: Json) -> None:
        """Move the messages of one room, as durable work, until it is no longer noted."""
        done, here = 0, {"tenant": arguments["tenant"], "room_id": arguments["room_id"]}
        while records := await self.noted(**here):
            async for count, left in self._moved(records[0].room):
                done += count
                await steps.report(f"{done} messages moved to their threads, {left} left")

    async def _moved(self, room: DueRoom) -> AsyncIterator[tuple[int, int]]:
        """Move messages piece by piece, and yield how many a piece moved and how many are left. Read the room again
        until nothing is left to move, as a message may have followed one that had not moved yet."""
        while arrivals := await self._out_of_place(room.tenant, room.room_id):
            for start in range(0, len(arrivals), _PIECE):
                async with self._storage.writing(room.tenant) as work:
                    if await work.rooms.lock_known(room_id=room.room_id) is None:
                        break
                    moved = await work.messages.follow(room_id=room.room_id, arrivals=arrivals[start : start + _PIECE])
                    await work.progress.put_off(room=room, work=THREADS, until=self._clock.now() + NOTED_LEASE)
                yield moved, max(0, len(arrivals) - start - _PIECE)
        async with self._storage.writing() as work:
            await work.progress.done(room=room, work=THREADS)

    async def _out_of_place(self, tenant: str, room_id: str) -> list[int]:
        """Return the arrivals of the messages to move, each after what it answers."""
        pages: list[Threads] = []
        after = 0
        while not pages or len(pages[-1].arrivals) == _READ_AT_ONCE:
            async with self._storage.reading(tenant) as work:
                page = await work.messages.threads_after(room_id=room_id, after=after, limit=_READ_AT_ONCE)
            pages.append(page)
            after = int(page.arrivals[-1]) if len(page.arrivals) else after
        return await asyncio.to_thread(_all_out_of_place, pages)


def _all_out_of_place(pages: Sequence[Threads]) -> list[int]:
    columns = ((page.arrivals, page.parents, page.threads) for page in pages)
    return out_of_place(Threads(*map(np.concatenate, zip(*columns, strict=True))))


class LinkService(Service):
    """The links of one tenant's messages, as people correct them."""

    def __init__(self, backends: Backends, *, tenant: str, model: LinkModel, moves: ThreadMoves) -> None:
        super().__init__(backends)
        self._tenant = tenant
        self._model = model
        self._version = version_of(model)
        self._moves = moves

    async def correct(
        self, room_id: str, message_id: str, *, answers: str | None, by: str = _CALLER, at: datetime | None = None
    ) -> CorrectedEntry:
        """Say which earlier message a message answers, or with `answers=None` that it answers nothing of them.

        The link is certain from then on, whatever the platform or the model says, and the messages after it are linked
        anew: contexts follow at once, and so do threads. Of a very long thread some messages move later, as durable
        work (`left`). The correction is logged under the name `by` (and the time `at`,
        now by default), it can be taken back with `undo`, and it is a label: the room's probabilities are calibrated
        by it, and `tuning.run` learns from it. Return the message with its new link. Saying the same again changes
        nothing. Raise `Conflict` for a later message or a circle, `InvalidInput`, `NotFound`, `StorageUnavailable`.
        """
        if answers is not None and not isinstance(answers, str):
            raise InvalidInput("answered_invalid", value=f"{answers!r:.60}")
        kind = CorrectionKind.NOTHING if answers is None else CorrectionKind.ANSWERS
        return await self._say(_Wish(room_id, message_id, kind, answers, _checked(by), at))

    async def undo(self, room_id: str, message_id: str, *, by: str = _CALLER) -> CorrectedEntry:
        """Take the correction of a message back: it is linked as the platform or the model says. Return the message
        with its new link, as `correct` does. If there is none in force nothing changes. Raise `NotFound`,
        `InvalidInput`, `StorageUnavailable`."""
        return await self._say(_Wish(room_id, message_id, CorrectionKind.UNDONE, None, _checked(by)))

    async def catch_up(self, corrected: CorrectedEntry) -> CorrectedEntry:
        """Move now, piece by piece, the messages that a correction left, in place of durable work. Return what
        `correct` returned, with what followed by now; if another process is at it, some may still be `left`. Raise
        `StorageUnavailable`."""
        if not corrected.left:
            return corrected
        await self._moves.catch_up()
        left = await self._moves.left(self._tenant, corrected.message.room_id)
        return replace(corrected, relinked=corrected.relinked + max(corrected.left - left, 0), left=left)

    async def corrections(self, room_id: str, *, before: int | None = None, limit: int = 100) -> list[Correction]:
        """Return the newest entries of the room's log of corrections, newest first, those with a number below
        `before`. Raise `NotFound` for an unknown room."""
        check_page(limit=limit)
        if before is not None and (isinstance(before, bool) or not isinstance(before, int)):
            raise InvalidInput("before_not_number", value=f"{before!r:.60}")
        async with self._storage.reading(self._tenant) as work:
            await work.rooms.get(room_id=room_id)
            return await work.corrections.page(
                room_id=room_id, before=None if before is None else min(before, _LAST), limit=limit
            )

    async def in_force(self, *, after: tuple[str, int] = ("", 0), limit: int = 100) -> list[Correction]:
        """Return corrections in force of all rooms, by room and number, those after this room id and number."""
        check_page(limit=limit)
        async with self._storage.reading(self._tenant) as work:
            return await work.corrections.in_force(after=after, limit=limit)

    async def _say(self, wish: _Wish) -> CorrectedEntry:
        corrected = await self._statement_of(wish)
        return replace(corrected, left=await self._moves.left(self._tenant, wish.room_id))

    async def _statement_of(self, wish: _Wish) -> CorrectedEntry:
        for _ in range(_TRIES):
            try:
                return await self._try(wish)
            except _RoomMovedError:
                continue
        return await self._try_locked(wish)

    async def _try(self, wish: _Wish) -> CorrectedEntry:
        async with self._storage.reading(self._tenant) as work:
            room = await work.rooms.get(room_id=wish.room_id)
            change = await self._change(work, room, wish)
            if change is None:
                return await self._corrected(work, wish)
        async with self._storage.writing(self._tenant) as work:
            locked = await work.rooms.lock_known(room_id=wish.room_id)
            if locked is None or (locked.created_at, locked.revision) != (room.created_at, room.revision):
                raise _RoomMovedError
            return await self._write(work, wish, change)

    async def _try_locked(self, wish: _Wish) -> CorrectedEntry:
        """Link while holding the room's lock: the last resort in a room that is written to all the time."""
        async with self._storage.writing(self._tenant) as work:
            room = await work.rooms.lock_known(room_id=wish.room_id)
            if room is None:
                raise unknown_room(wish.room_id)
            change = await self._change(work, room, wish)
            if change is None:
                return await self._corrected(work, wish)
            return await self._write(work, wish, change)

    async def _write(self, work: UnitOfWork, wish: _Wish, change: _Change) -> CorrectedEntry:
        relinked = await work.messages.relink(
            room_id=wish.room_id, links=change.links, linked=change.linked, most=_PIECE
        )
        if relinked.left:
            await self._moves.note(work, room_id=wish.room_id)
        await work.corrections.add(
            room_id=wish.room_id,
            arrival=change.arrival,
            kind=wish.kind,
            standing=change.standing,
            by=wish.by,
            at=wish.at or self._clock.now(),
        )
        return await self._corrected(work, wish, relinked=relinked.changed - (change.arrival in change.links))

    async def _corrected(self, work: UnitOfWork, wish: _Wish, *, relinked: int = 0) -> CorrectedEntry:
        entry = await self._entry(work, wish.room_id, wish.message_id)
        replied = [entry.message.reply_to] if entry.message.reply_to else []
        answered = await work.messages.by_id(room_id=wish.room_id, message_ids=replied)
        entry = with_answered(entry, answered)
        return CorrectedEntry(message=entry.message, features=entry.features, link=entry.link, relinked=relinked)

    async def _change(self, work: UnitOfWork, room: Room, wish: _Wish) -> _Change | None:
        """Return what the wish changes; None if it says what is in force already."""
        entry = await self._entry(work, room.room_id, wish.message_id)
        arrival = entry.message.arrival
        known = await self._standing(work, room, [arrival])
        old = known.get(arrival)
        if wish.kind is CorrectionKind.UNDONE:
            if old is None:
                return None
            answered = None
        else:
            answered = await self._answered(work, room, wish, entry)
            if old is not None and old.answers == answered:
                return None
        past = await self._past(
            work, room, entry, None if wish.kind is CorrectionKind.UNDONE else StandingCorrection(answered)
        )
        links, errors, linked = await asyncio.to_thread(self._links, room, past, old)
        standing = StandingCorrection(answered, self._version if errors else "", errors)
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
        target = (await self._entry(work, room.room_id, wish.answers)).message
        above = await work.messages.answered_through(room_id=room.room_id, arrival=target.arrival)
        check_answer(entry.message, target, above)
        return target.arrival

    async def _past(
        self, work: UnitOfWork, room: Room, entry: Entry, standing: StandingCorrection | None
    ) -> CorrectedPast:
        arrival = entry.message.arrival
        before = await work.messages.tail(room_id=room.room_id, before=arrival, limit=WINDOW)
        following = await work.messages.page(room_id=room.room_id, after=arrival - 1, limit=FOLLOWING + 1)
        arrivals = [message.arrival for message in following]
        entries = await work.messages.by_arrival(room_id=room.room_id, arrivals=arrivals)
        if not entries or entries[0].message.arrival != arrival:
            raise _RoomMovedError
        corrected = {at: link.answers for at, link in (await self._standing(work, room, arrivals)).items()}
        corrected.pop(arrival, None)
        if standing is not None:
            corrected[arrival] = standing.answers
        held = {known_entry.message.id for known_entry in (*before, *entries)}
        replied = [
            known_entry.message.reply_to
            for known_entry in entries
            if known_entry.message.reply_to and known_entry.message.reply_to not in held
        ]
        known = {known_entry.message.arrival for known_entry in (*before, *entries)}
        answered = [answers for answers in corrected.values() if answers is not None and answers not in known]
        others = await work.messages.by_id(room_id=room.room_id, message_ids=replied)
        others += await work.messages.by_arrival(room_id=room.room_id, arrivals=answered)
        return CorrectedPast(before, entries, others, corrected)

    def _links(
        self, room: Room, past: CorrectedPast, old: StandingCorrection | None
    ) -> tuple[dict[int, Link], tuple[int, ...], Linked]:
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
        return links_after(self._model, past, linked.calibrated(self._version).habits()), errors, linked

    async def _standing(self, work: UnitOfWork, room: Room, arrivals: Sequence[int]) -> dict[int, StandingCorrection]:
        return await work.corrections.standing(room_id=room.room_id, arrivals=arrivals)

    async def _entry(self, work: UnitOfWork, room_id: str, message_id: str) -> Entry:
        entries = await work.messages.by_id(room_id=room_id, message_ids=[message_id])
        if not entries:
            raise NotFound("message_unknown", room=repr(room_id), message=repr(message_id))
        return entries[0]


def _checked(by: str) -> str:
    if not isinstance(by, str) or not 0 < len(by) <= MAX_BY_CHARS:
        raise InvalidInput("corrector_invalid", value=f"{by!r:.60}", most=MAX_BY_CHARS)
    return by
