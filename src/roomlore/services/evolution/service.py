"""Evolution: what was said since the last time, and what is remembered, become what is remembered now.

What was read is asked about outside any lock, and the answer is applied in one transaction that compares what it
touches with what was read. An evolution is known by its id: done again after a kill, it finds its own record, or the
answer that was paid for.
"""

import logging

from roomlore.core.errors import Conflict, NotFound, RoomloreError
from roomlore.core.evolution.result import BegunEvolution, EvolutionResult, Mode
from roomlore.ports.coordination import Clock, Ids, Telemetry
from roomlore.ports.durable import DurableWork, Json, Steps
from roomlore.ports.storage import Storage
from roomlore.services.evolution.applying import Applying, Overtaken, find_result
from roomlore.services.evolution.asking import Asking
from roomlore.services.evolution.direct import Direct
from roomlore.services.evolution.piece import EVOLUTION, Piece, Read, Span
from roomlore.services.evolution.reading import Reading
from roomlore.services.evolution.turns import Turns

_ATTEMPTS = 3

log = logging.getLogger(__name__)


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
        turns: Turns,
        clock: Clock,
        ids: Ids,
        telemetry: Telemetry,
    ) -> None:
        self._storage = storage
        self._durable = durable
        self._reading = reading
        self._asking = asking
        self._applying = applying
        self._turns = turns
        self._clock = clock
        self._ids = ids
        self._telemetry = telemetry

    async def evolve(self, *, tenant: str, scope: str, days: float, mode: Mode) -> EvolutionResult:
        """Evolves a scope here and now, and comes back when it is done."""
        piece = Piece.of(tenant=tenant, scope=scope, days=days, mode=mode, evolution_id=self._ids.new())
        return await self._evolve(piece, Direct())

    async def begin(self, *, tenant: str, scope: str, days: float, mode: Mode) -> BegunEvolution:
        """Hands the same in as durable work. Where there is nothing to read the work is done, its progress says so, and
        `result` finds nothing."""
        piece = Piece.of(tenant=tenant, scope=scope, days=days, mode=mode, evolution_id=self._ids.new())
        if mode == "llm":
            await self._asking.check()
        await self.hand_in(piece)
        return BegunEvolution(job_id=piece.job_id, evolution_id=piece.evolution_id)

    async def result(self, *, tenant: str, evolution_id: str) -> EvolutionResult:
        """What came of it; `NotFound` where nothing was recorded."""
        async with self._storage.reading() as work:
            found = await find_result(work, tenant=tenant, evolution_id=evolution_id)
        if found is None:
            raise NotFound(f"There is no evolution {evolution_id!r:.80}: it is not done, or had nothing to read.")
        return found

    async def hand_in(self, piece: Piece) -> None:
        """Hands a piece in; nothing happens where it was handed in before."""
        await self._durable.start(
            EVOLUTION, work_id=piece.work_id, partition=piece.partition, arguments=piece.to_json()
        )

    async def work(self, steps: Steps, arguments: Json) -> None:
        """One evolution, as durable work."""
        piece = Piece(**arguments)
        result = await self._evolve(piece, steps)
        if piece.goes_on and result.remaining >= piece.goes_on and not result.failed:
            await self.hand_in(piece.next())
        if result.failed:
            log.warning("an evolution's answer could not be used", extra={"evolution": piece.evolution_id})
        if result.message:
            await steps.report(result.message)

    async def _evolve(self, piece: Piece, steps: Steps) -> EvolutionResult:
        begun, result = self._clock.monotonic(), "stopped"
        done: EvolutionResult | None = None
        try:
            async with self._turns.turn(piece):
                done = await self._done(piece) or await self._attempt(piece, steps)
            result = _kind(done)
        except RoomloreError:
            result = "error"
            raise
        finally:
            self._count(piece, done, result, self._clock.monotonic() - begun)
        return done

    async def _done(self, piece: Piece) -> EvolutionResult | None:
        """What came of it before a kill."""
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
            answered = await self._asking.answer(piece, read, steps)
            try:
                return await self._applying.apply(piece, read, answered)
            except Overtaken as error:
                if attempt == _ATTEMPTS:
                    raise Conflict(str(error)) from error
                attempt += 1

    async def _read(self, piece: Piece, steps: Steps) -> Read | None:
        """What is new or, where a kill broke this off, what was new when it began."""
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
        self._telemetry.count("roomlore_evolutions_total", labels={"result": result, "mode": mode})
        self._telemetry.observe("roomlore_evolution_seconds", seconds, labels={"mode": mode})
        if done and done.rejected:
            self._telemetry.count("roomlore_evolution_rejected_total", len(done.rejected))


def _kind(done: EvolutionResult) -> str:
    if done.changes:
        return "applied"
    if done.failed:
        return "failed"
    return "nothing" if done.messages else "empty"
