"""Evolutions as durable work: one of a scope at a time over all processes, by a lease."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

from roomlore.core.errors import Conflict, NotFound, RoomloreError, StorageUnavailable, describe
from roomlore.core.evolution.requests import BegunEvolution, EvolutionResult, Mode
from roomlore.ports.coordination import Clock, Ids, Telemetry
from roomlore.ports.durable import DurableWork, Json, Steps
from roomlore.ports.storage import Storage
from roomlore.services.evolution.applying import Applying, Asking, AskingTogether, OwnSteps, ScopeChanged, find_result
from roomlore.services.evolution.piece import EVOLUTION, Answered, DirectSteps, Piece, Read, Span
from roomlore.services.evolution.reading import Reading

log = logging.getLogger(__name__)


_FIRST_LOOK_SECONDS = 0.02
_LONGEST_LOOK_SECONDS = 0.5

_ATTEMPTS = 3


class EvolutionLeases:
    """The leases of all tenants. An evolution that starts again after a kill still has its own lease."""

    def __init__(self, *, storage: Storage, clock: Clock, lease_seconds: float) -> None:
        self._storage = storage
        self._clock = clock
        self._lease_seconds = lease_seconds

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
            await asyncio.sleep(self._lease_seconds / 3)
            try:
                await self._take(piece)
            except StorageUnavailable as error:
                log.warning("the lease of an evolution could not be kept up", extra={"why": describe(error)})

    async def _take(self, piece: Piece) -> bool:
        now = self._clock.now()
        async with self._storage.writing() as work:
            return await work.progress.take_lease(
                tenant=piece.tenant,
                name=_name(piece),
                holder=piece.evolution_id,
                now=now,
                until=now + timedelta(seconds=self._lease_seconds),
            )

    async def _free(self, piece: Piece) -> None:
        try:
            async with self._storage.writing() as work:
                await work.progress.free_lease(tenant=piece.tenant, name=_name(piece), holder=piece.evolution_id)
        except StorageUnavailable as error:
            log.warning("the lease of an evolution runs out by itself", extra={"why": describe(error)})


def _name(piece: Piece) -> str:
    return f"{EVOLUTION}:{piece.scope}"


class EvolutionService:
    """Evolutions of all tenants."""

    def __init__(
        self,
        *,
        storage: Storage,
        durable: DurableWork,
        reading: Reading,
        asking: Asking,
        applying: Applying,
        leases: EvolutionLeases,
        clock: Clock,
        ids: Ids,
        telemetry: Telemetry,
        together: AskingTogether,
    ) -> None:
        self._together = together
        self._storage = storage
        self._durable = durable
        self._reading = reading
        self._asking = asking
        self._applying = applying
        self._leases = leases
        self._clock = clock
        self._ids = ids
        self._telemetry = telemetry

    async def evolve(self, *, tenant: str, scope: str, days: float, mode: Mode) -> EvolutionResult:
        """Evolve a scope in this process, and return when it is done."""
        piece = Piece.of(tenant=tenant, scope=scope, days=days, mode=mode, evolution_id=self._ids.new())
        return await self._evolve(piece, DirectSteps())

    async def begin(self, *, tenant: str, scope: str, days: float, mode: Mode) -> BegunEvolution:
        """Start the same as durable work. If there is nothing to read, the work is done, its progress says so, and
        `result` raises `NotFound`."""
        piece = Piece.of(tenant=tenant, scope=scope, days=days, mode=mode, evolution_id=self._ids.new())
        if mode == "llm":
            await self._asking.check()
        await self.enqueue(piece)
        return BegunEvolution(job_id=piece.job_id, evolution_id=piece.evolution_id)

    async def result(self, *, tenant: str, evolution_id: str) -> EvolutionResult:
        """Return the result. Raise `NotFound` if none was recorded."""
        async with self._storage.reading() as work:
            found = await find_result(work, tenant=tenant, evolution_id=evolution_id)
        if found is None:
            raise NotFound(f"There is no evolution {evolution_id!r:.80}: it is not done, or had nothing to read.")
        return found

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
        pieces = [Piece(**one) for one in (own, *arguments.get("others", ()))]
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
        async with self._storage.reading() as work:
            return await find_result(work, tenant=piece.tenant, evolution_id=piece.evolution_id)

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

        span = Span.from_json(await steps.once(f"span-{read.was}-{read.room_id}", step))
        return read if span == fresh else await self._reading.read(piece, span) or read

    def _count(self, piece: Piece, done: EvolutionResult | None, result: str, seconds: float) -> None:
        mode = done.mode if done else piece.mode
        if done and done.rejected:
            log.log(
                logging.WARNING if done.failed else logging.INFO,
                "an evolution failed" if done.failed else "lines of an evolution's answer were refused",
                extra={
                    "tenant": piece.tenant,
                    "scope": piece.scope,
                    "evolution": piece.evolution_id,
                    "why": done.message,
                    "refused": [f"{one.line}. {one.text}: {one.reason}" for one in done.rejected],
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
    said = [done.message or _counted(done)]
    if done.rejected:
        said.append(f"Not followed of {done.scope!r:.80}:")
        said += [f"line {one.line}, {one.text!r:.90}: {one.reason}" for one in done.rejected]
    return " ".join(said)


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
