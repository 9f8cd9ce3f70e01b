"""Evolutions as durable work: one of a scope at a time over all processes, by a lease; and the schedule by which groups
and people evolve by themselves."""

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

from roomlore.core.audience import RoomKind
from roomlore.core.errors import Conflict, NotFound, RoomloreError, StorageUnavailable, describe
from roomlore.core.evolution.requests import BegunEvolution, EvolutionResult, Mode
from roomlore.core.memory.reading import own_words
from roomlore.core.models import Role
from roomlore.ports.durable import DurableWork, Json, Steps, Ticks, Times, rooms_behind
from roomlore.ports.shared import Backends, Service
from roomlore.services.evolution.applying import (
    Applying,
    AskingTogether,
    ModelAnswers,
    OwnSteps,
    ScopeChanged,
    find_result,
)
from roomlore.services.evolution.piece import EVOLUTION, Answered, DirectSteps, Piece, PieceSpan, Read, facts_mark
from roomlore.services.evolution.reading import PieceReader
from roomlore.storage import UnitOfWork
from roomlore.storage.values import RoomBehind

log = logging.getLogger(__name__)


_FIRST_LOOK_SECONDS = 0.02
_LONGEST_LOOK_SECONDS = 0.5

_ATTEMPTS = 3

LEASE_SECONDS = 60.0
"""After it others evolve a scope whose process was killed. It is renewed three times in that time, so that a process
that is slow for 20 seconds keeps it."""
LEAST_MESSAGES = 10
"""New messages from which a room evolves by the schedule: fewer seldom tell something that lasts."""
PEOPLE_TOGETHER = 8
"""People a model is asked about in one call, if they said little: their messages still fit one answer."""


class EvolutionLeases(Service):
    """The leases of all tenants. An evolution that starts again after a kill still has its own lease."""

    @asynccontextmanager
    async def hold(self, piece: Piece) -> AsyncIterator[None]:
        """Wait until no one else evolves the scope, and keep others waiting until the block ends."""
        await self._wait(piece)
        renewing = asyncio.create_task(self._renew(piece))
        try:
            yield
        finally:
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)
            await self._free(piece)

    async def _wait(self, piece: Piece) -> None:
        pause = _FIRST_LOOK_SECONDS
        while not await self._take(piece):
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_LOOK_SECONDS)

    async def _renew(self, piece: Piece) -> None:
        """Renew the lease. A failed renewal stops nothing: before a write, the store is compared with what was read."""
        while True:
            await asyncio.sleep(LEASE_SECONDS / 3)
            try:
                await self._take(piece)
            except StorageUnavailable as error:
                log.warning("the lease of an evolution could not be kept up", extra={"why": describe(error)})

    async def _take(self, piece: Piece) -> bool:
        now = self._clock.now()
        async with self._storage.writing(piece.tenant) as work:
            return await work.progress.take_lease(
                name=_name(piece),
                holder=piece.evolution_id,
                now=now,
                until=now + timedelta(seconds=LEASE_SECONDS),
            )

    async def _free(self, piece: Piece) -> None:
        try:
            async with self._storage.writing(piece.tenant) as work:
                await work.progress.free_lease(name=_name(piece), holder=piece.evolution_id)
        except StorageUnavailable as error:
            log.warning("the lease of an evolution runs out by itself", extra={"why": describe(error)})


def _name(piece: Piece) -> str:
    return f"{EVOLUTION}:{piece.scope}"


class EvolutionService(Service):
    """Evolutions of all tenants."""

    def __init__(
        self,
        backends: Backends,
        *,
        durable: DurableWork,
        reading: PieceReader,
        asking: ModelAnswers,
        applying: Applying,
        leases: EvolutionLeases,
        together: AskingTogether,
    ) -> None:
        super().__init__(backends)
        self._together = together
        self._durable = durable
        self._reading = reading
        self._asking = asking
        self._applying = applying
        self._leases = leases

    async def evolve(self, *, tenant: str, scope: str, days: float, mode: Mode) -> EvolutionResult:
        """Evolve a scope in this process, and return when it is done."""
        piece = Piece.of(tenant=tenant, scope=scope, days=days, mode=mode, evolution_id=self._ids.new())
        return await self._evolve(piece, DirectSteps())

    async def begin(self, *, tenant: str, scope: str, days: float, mode: Mode) -> BegunEvolution:
        """Start the same as durable work. If there is nothing to read, the work is done, its progress says so, and
        `result` raises `NotFound`."""
        piece = Piece.of(tenant=tenant, scope=scope, days=days, mode=mode, evolution_id=self._ids.new())
        if mode == "llm":
            await self._asking.check(of_group=piece.is_group)
        await self.enqueue(piece)
        return BegunEvolution(job_id=piece.job_id, evolution_id=piece.evolution_id)

    async def result(self, *, tenant: str, evolution_id: str) -> EvolutionResult:
        """Return the result. Raise `NotFound` if none was recorded."""
        async with self._storage.reading(tenant) as work:
            result = await find_result(work, evolution_id=evolution_id)
        if result is None:
            raise NotFound("evolution_not_done_or_empty", evolution=f"{evolution_id!r:.80}")
        return result

    async def enqueue(self, piece: Piece, *, others: Sequence[Piece] = ()) -> None:
        """Enqueue a piece; do nothing if it was enqueued before. `others`: of other people, done in the same work, whom
        a model is asked about in the same call."""
        arguments = piece.to_json()
        if others:
            arguments["others"] = [other.to_json() for other in others]
        await self._durable.start(EVOLUTION, work_id=piece.work_id, partition=piece.partition, arguments=arguments)

    async def work(self, steps: Steps, arguments: Json) -> None:
        """Run one evolution, or those of several people, as durable work."""
        own = {name: value for name, value in arguments.items() if name != "others"}
        pieces = [Piece(**fields_of_piece) for fields_of_piece in (own, *arguments.get("others", ()))]
        if len(pieces) == 1:
            await self._work(pieces[0], steps)
            return
        answers = await self._together.answers(pieces, steps)
        failed: RoomloreError | None = None
        for piece in pieces:
            try:
                await self._work(piece, OwnSteps(steps, piece, answers))
            except RoomloreError as error:
                log.warning("a person did not evolve", extra={"scope": piece.scope, "why": describe(error)})
                failed = error
        if failed is not None:
            raise failed

    async def _work(self, piece: Piece, steps: Steps) -> None:
        result = await self._evolve(piece, steps)
        if piece.goes_on and result.remaining >= piece.goes_on:
            await self.enqueue(piece.next())
        await steps.report(_outcome(result))

    async def _evolve(self, piece: Piece, steps: Steps) -> EvolutionResult:
        begun, result = self._clock.monotonic(), "stopped"
        done: EvolutionResult | None = None
        try:
            async with self._leases.hold(piece):
                done = await self._done(piece) or await self._attempt(piece, steps)
            result = _kind(done)
        except RoomloreError:
            result = "error"
            raise
        finally:
            self._count(piece, done, result, self._clock.monotonic() - begun)
        return done

    async def _done(self, piece: Piece) -> EvolutionResult | None:
        """Return the result that was written before a kill, or None."""
        async with self._storage.reading(piece.tenant) as work:
            return await find_result(work, evolution_id=piece.evolution_id)

    async def _attempt(self, piece: Piece, steps: Steps) -> EvolutionResult:
        attempt = 1
        while True:
            read = await self._read(piece, steps)
            if read is None:
                return piece.nothing(await self._reading.why_nothing(piece), self._clock.now())
            count = len(read.handles)
            await steps.report(f"reading {count} message{'' if count == 1 else 's'}")
            answered = await self._answer(piece, read, steps)
            try:
                return await self._applying.apply(piece, read, answered)
            except ScopeChanged as error:
                if attempt == _ATTEMPTS:
                    raise Conflict(str(error)) from error
                attempt += 1

    async def _answer(self, piece: Piece, read: Read, steps: Steps) -> Answered:
        """Return the answer; lines of it that were refused are put to the model once more."""
        answered = await self._asking.answer(piece, read, steps)
        refused = await self._applying.refused(piece, read, answered)
        return await self._asking.again(piece, read, answered, refused, steps) if refused else answered

    async def _read(self, piece: Piece, steps: Steps) -> Read | None:
        """Return the new messages, or after a kill the ones that were new when the evolution began."""
        read = await self._reading.read(piece)
        if read is None:
            return None
        fresh = read.span

        async def step() -> Json:
            return fresh.to_json()

        span = PieceSpan.from_json(await steps.once(f"span-{read.was}-{read.room_id}", step))
        return read if span == fresh else await self._reading.read(piece, span) or read

    def _count(self, piece: Piece, done: EvolutionResult | None, result: str, seconds: float) -> None:
        mode = done.mode if done and done.mode != "none" else piece.mode
        if done and done.rejected:
            log.log(
                logging.WARNING if done.failed else logging.INFO,
                "an evolution failed" if done.failed else "lines of an evolution's answer were refused",
                extra={
                    "tenant": piece.tenant,
                    "scope": piece.scope,
                    "evolution": piece.evolution_id,
                    "why": done.message,
                    "refused": [f"{refusal.line}. {refusal.text}: {refusal.reason}" for refusal in done.rejected],
                },
            )
        self._telemetry.count("roomlore_evolutions_total", labels={"result": result, "mode": mode})
        self._telemetry.observe("roomlore_evolution_seconds", seconds, labels={"mode": mode})
        if done and done.rejected:
            self._telemetry.count("roomlore_evolution_rejected_total", len(done.rejected))
        if done and (doubtful := sum(bool(change.memory.doubtful) for change in done.changes)):
            self._telemetry.count("roomlore_evolution_doubtful_total", doubtful)


def _outcome(done: EvolutionResult) -> str:
    """Return the progress to report at the end, with every refused line."""
    lines = [done.message or _counted(done)]
    if done.rejected:
        lines.append(f"Not followed of {done.scope!r:.80}:")
        lines += [f"line {refusal.line}, {refusal.text!r:.90}: {refusal.reason}" for refusal in done.rejected]
    return " ".join(lines)


def _counted(done: EvolutionResult) -> str:
    stats, read = done.stats, f"{done.messages} message{'' if done.messages == 1 else 's'} read"
    return (
        f"{read}; memories: {stats.created} new, {stats.updated} changed, {stats.deleted} removed, {stats.kept} kept."
    )


def _kind(done: EvolutionResult) -> str:
    if done.changes:
        return "applied"
    if done.failed:
        return "failed"
    return "nothing" if done.messages else "empty"


MARK = "schedule:evolution"
PEOPLE = "schedule:people"
"""The watermark of a room up to which everything that people said was read for their facts."""
_FIRST_DAYS = 7.0
"""The days that a first evolution reads: enough for a quiet group, without all of an import."""
_MESSAGES = 500


class Schedule(Service):
    """The schedule of all tenants. `times`: None if nothing evolves by schedule. `people`: returns True if the facts of
    people evolve now, which needs a model."""

    def __init__(
        self,
        backends: Backends,
        *,
        evolutions: EvolutionService,
        times: Times | None,
        people: Callable[[], Awaitable[bool]],
    ) -> None:
        super().__init__(backends)
        self._evolutions = evolutions
        self._ticks = Ticks(storage=backends.storage, clock=backends.clock, times=times, mark=MARK)
        self._people = people

    async def sweep(self) -> list[str]:
        """Enqueue the work of the last scheduled time, unless that was done, and return the ids of the work."""
        due = await self._ticks.due()
        if due is None:
            return []
        enqueued = [await self._enqueue_group(room, due.tick) async for room in self._groups()]
        if await self._people():
            enqueued += [await self._enqueue_people(*people, due.tick) async for people in self._unread_people()]
        await self._ticks.handled(due)
        return enqueued

    async def _groups(self) -> AsyncIterator[RoomBehind]:
        async for room in rooms_behind(self._storage, EVOLUTION, LEAST_MESSAGES):
            if (room.mark or await self._has_enough_messages(room)) and not await self._is_one_person(room):
                yield room

    async def _is_one_person(self, room: RoomBehind) -> bool:
        """Return True for a room of one person and agents: it has no group whose memory could evolve."""
        async with self._storage.reading(room.tenant) as work:
            rooms = await work.rooms.people(room_ids=[room.room_id])
            spoke = await work.rooms.participants(room_id=room.room_id)
        people = rooms.get(room.room_id)
        if people is None or len(people.people) > 1:
            return False
        return people.kind is RoomKind.DIRECT or bool(spoke.keys() - people.people.keys())

    async def _unread_people(self) -> AsyncIterator[tuple[str, Sequence[str]]]:
        """Yield tenant and ids of everyone who spoke and was not read: together those of a room who spoke in no
        other."""
        rooms: dict[tuple[str, str], list[str]] = {}
        async for room in rooms_behind(self._storage, PEOPLE, 1):
            for person in await self._unread(room):
                rooms.setdefault((room.tenant, person), []).append(room.room_id)
        groups: dict[tuple[str, str, str], list[str]] = {}
        for (tenant, person), room_ids in sorted(rooms.items()):
            where = ("room", room_ids[0]) if len(room_ids) == 1 and PEOPLE_TOGETHER > 1 else ("person", person)
            groups.setdefault((tenant, *where), []).append(person)
        for (tenant, *_), people in groups.items():
            for at in range(0, len(people), PEOPLE_TOGETHER):
                yield tenant, people[at : at + PEOPLE_TOGETHER]

    async def _unread(self, room: RoomBehind) -> Collection[str]:
        """Return the people with messages of the last days in the room that were not read for their facts. If there
        are none, the room is done up to here."""
        async with self._storage.reading(room.tenant) as work:
            first = await work.messages.first_since(
                room_id=room.room_id, since=self._clock.now() - timedelta(days=_FIRST_DAYS)
            )
            if first is None:
                return ()
            last, end = await _last_said(work, room, after=max(room.mark, first - 1))
            marks = await work.progress.marks(room_id=room.room_id, names=[facts_mark(person) for person in last])
        unread = [person for person, arrival in last.items() if marks.get(facts_mark(person), 0) < arrival]
        if not unread and end > room.mark:
            async with self._storage.writing(room.tenant) as work:
                await work.progress.move_mark(
                    room_id=room.room_id, name=PEOPLE, arrival=end, was=room.mark, now=self._clock.now()
                )
        return unread

    async def _has_enough_messages(self, room: RoomBehind) -> bool:
        """Return True if a room that never evolved has enough recent messages: older ones are history."""
        async with self._storage.reading(room.tenant) as work:
            first = await work.messages.first_since(
                room_id=room.room_id, since=self._clock.now() - timedelta(days=_FIRST_DAYS)
            )
            return (
                first is not None and await work.messages.count(room_id=room.room_id, after=first - 1) >= LEAST_MESSAGES
            )

    async def _enqueue_group(self, room: RoomBehind, tick: int) -> str:
        return await self._enqueue(room.tenant, f"group:{room.room_id}", tick, goes_on=LEAST_MESSAGES)

    async def _enqueue_people(self, tenant: str, people: Sequence[str], tick: int) -> str:
        """Enqueue all of these people's rooms, one after the other."""
        first, *others = [_piece(tenant, f"user:{person}", tick, goes_on=1) for person in people]
        await self._evolutions.enqueue(first, others=others)
        return first.work_id

    async def _enqueue(self, tenant: str, scope: str, tick: int, *, goes_on: int) -> str:
        piece = _piece(tenant, scope, tick, goes_on=goes_on)
        await self._evolutions.enqueue(piece)
        return piece.work_id


def _piece(tenant: str, scope: str, tick: int, *, goes_on: int) -> Piece:
    return Piece.of(
        tenant=tenant,
        scope=scope,
        days=_FIRST_DAYS,
        mode="auto",
        evolution_id=scheduled_id(tenant, scope, tick),
        goes_on=goes_on,
    )


async def _last_said(work: UnitOfWork, room: RoomBehind, *, after: int) -> tuple[dict[str, int], int]:
    """Return the arrival of each person's last message with words after this one, and of the last message of all."""
    last: dict[str, int] = {}
    while page := await work.messages.page(room_id=room.room_id, after=after, limit=_MESSAGES):
        last |= {
            message.sender_id: message.arrival for message in page if message.role is Role.USER and own_words(message)
        }
        after = page[-1].arrival
    return last, after


def scheduled_id(tenant: str, scope: str, tick: int) -> str:
    """Return the id of the evolution of a scope at a scheduled time. It sorts by that time among other ids."""
    own = hashlib.sha256("\0".join((tenant, scope)).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{tick * 1000:012x}8{own[:19]}"
