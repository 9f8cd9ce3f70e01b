"""Work that outlives its process: extraction, evolution, forgetting."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from zoneinfo import ZoneInfo

from roomlore.adapters.cron import Cron
from roomlore.adapters.dbos import can_keep_work, is_work_left, open_dbos
from roomlore.adapters.inprocess.durable import InProcessWork, LateWork
from roomlore.adapters.json_repair import repaired
from roomlore.adapters.prompts import PackagedPrompts
from roomlore.adapters.sql import SqlStorage
from roomlore.adapters.sql.inspection import SqlUpkeep
from roomlore.core.chat import SUMMARY_MODEL
from roomlore.core.evolution.requests import Rules
from roomlore.ports.coordination import Clock, Ids
from roomlore.ports.durable import DurableWork
from roomlore.ports.language import Prompts, TokenCounter
from roomlore.ports.storage import Storage
from roomlore.services.evolution import (
    EVOLUTION,
    Applying,
    Asking,
    EvolutionLeases,
    EvolutionOptions,
    EvolutionService,
    Reading,
    Schedule,
)
from roomlore.services.extraction import (
    EXTRACTION,
    EXTRACTION_RETRY,
    ExtractionService,
    FallbackRetries,
    MemorySummaries,
)
from roomlore.services.jobs import counted
from roomlore.services.models import ModelService
from roomlore.services.privacy import Forgetter, MemoryEraser, MessageEraser, RowEraser, VectorEraser
from roomlore.services.sessions import SessionParts
from roomlore.settings import Settings
from roomlore.wiring.indexing import Indexing
from roomlore.wiring.models import Common

LEFT = "left work"
"""The background job that continues work left by an earlier process."""
_SWEEP_SECONDS = 15.0
_RETRY_SECONDS = 60.0
_TOGETHER_SECONDS = 0.05
"""Replies within this time are handled together, and not while the next one is written."""
_EVOLUTION_SWEEP_SECONDS = 30.0
EXPIRY = "work_expiry"
"""The background job that deletes finished work after a time."""
_EXPIRY_SWEEP_SECONDS = 3_600.0


def make_durable(common: Common, url: str) -> LateWork:
    """Return the durable work, not opened yet. `url`: of the database; work on one in memory ends with its process."""
    durable = LateWork(_choices(common.settings, url, common.clock), working=common.background)
    common.closing.push_async_callback(durable.close)
    return durable


def shares_work(settings: Settings, url: str) -> bool:
    """Return True if work on the database at `url` can be seen, and continued, by other processes."""
    return settings.durable_work == "dbos" or (settings.durable_work == "auto" and can_keep_work(url))


def resume_left_work(common: Common, url: str, durable: LateWork) -> None:
    """Open durable work now if an earlier process left some; otherwise it opens when it is first used."""
    if not shares_work(common.settings, url):
        return

    async def look() -> None:
        if not durable.works() and await asyncio.to_thread(is_work_left, url):
            await durable.open(working=True)

    common.jobs.handle(LEFT, look, every_seconds=_SWEEP_SECONDS)


def make_extraction(common: Common, durable: DurableWork, models: ModelService) -> ExtractionService:
    extraction = ExtractionService(
        storage=common.storage,
        durable=durable,
        summaries=_summaries(common.settings, models),
        jobs=common.jobs,
        clock=common.clock,
        telemetry=common.telemetry,
        every=common.settings.extract_every,
    )
    durable.define(EXTRACTION, counted(EXTRACTION, extraction.extract, clock=common.clock, telemetry=common.telemetry))
    if common.background and common.settings.extract_every:

        async def sweep() -> None:
            await asyncio.sleep(_TOGETHER_SECONDS)
            await extraction.sweep()

        common.jobs.handle(EXTRACTION, sweep, every_seconds=_SWEEP_SECONDS)
    return extraction


def make_retries(common: Common, durable: DurableWork, models: ModelService) -> FallbackRetries:
    """Return the retries of memories that were kept without a model; they use half of this process's work slots."""
    retries = FallbackRetries(
        storage=common.storage,
        durable=durable,
        can_ask=lambda: models.can_ask(SUMMARY_MODEL),
        summaries=_summaries(common.settings, models),
        jobs=common.jobs,
        clock=common.clock,
        telemetry=common.telemetry,
        at_once=max(common.settings.work_at_once // 2, 1),
    )
    durable.define(
        EXTRACTION_RETRY, counted(EXTRACTION_RETRY, retries.retry, clock=common.clock, telemetry=common.telemetry)
    )
    if common.background and common.settings.extract_every:
        common.jobs.handle(EXTRACTION_RETRY, retries.sweep, every_seconds=_RETRY_SECONDS)
    return retries


def _summaries(settings: Settings, models: ModelService) -> MemorySummaries:
    return MemorySummaries(models=models, prompts=PackagedPrompts(), timeout_seconds=settings.summary_timeout_seconds)


def _choices(settings: Settings, url: str, clock: Clock) -> list[Callable[[], DurableWork]]:
    def in_process() -> DurableWork:
        return InProcessWork(clock=clock, at_once=settings.work_at_once)

    def on_dbos() -> DurableWork:
        return open_dbos(url, at_once=settings.work_at_once)

    if settings.durable_work == "dbos":
        on_dbos()  # It raises at once what is missing.
        return [on_dbos]
    return [on_dbos, in_process] if shares_work(settings, url) else [in_process]


@dataclass(frozen=True, slots=True)
class Evolutions:
    """The evolutions, and the schedule that enqueues them."""

    service: EvolutionService
    schedule: Schedule


def make_evolutions(common: Common, durable: DurableWork, models: ModelService, prompts: Prompts) -> Evolutions:
    """Nothing is read yet."""
    settings = common.settings
    options = evolution_options(settings)
    reading = Reading(
        storage=common.storage,
        clock=common.clock,
        most_messages=options.messages,
        most_memories=options.memories,
        zone=options.zone,
    )
    service = EvolutionService(
        storage=common.storage,
        durable=durable,
        reading=reading,
        asking=Asking(models=models, prompts=prompts, clock=common.clock, options=options),
        applying=Applying(
            storage=common.storage,
            reading=reading,
            clock=common.clock,
            ids=common.ids,
            options=options,
            repair=repaired,
        ),
        leases=EvolutionLeases(storage=common.storage, clock=common.clock, lease_seconds=options.lease_seconds),
        clock=common.clock,
        ids=common.ids,
        telemetry=common.telemetry,
    )
    durable.define(EVOLUTION, counted(EVOLUTION, service.work, clock=common.clock, telemetry=common.telemetry))
    times = Cron(settings.evolve_schedule, ZoneInfo(settings.time_zone)) if settings.evolve_schedule else None
    schedule = Schedule(
        storage=common.storage, evolutions=service, clock=common.clock, times=times, least=options.least
    )
    if common.background and times:
        common.jobs.handle(EVOLUTION, schedule.sweep, every_seconds=_EVOLUTION_SWEEP_SECONDS)
    return Evolutions(service, schedule)


def evolution_options(settings: Settings) -> EvolutionOptions:
    """Return the settings of evolutions."""
    return EvolutionOptions(
        model=settings.evolve_model,
        timeout_seconds=settings.evolve_timeout_seconds,
        zone=ZoneInfo(settings.time_zone),
        rules=Rules(
            delete_share=settings.evolve_delete_share,
            most_active=settings.most_memories,
            half_life_days=settings.strength_half_life_days,
        ),
        messages=settings.evolve_messages,
        memories=settings.evolve_memories,
        strength_floor=settings.strength_floor,
        lease_seconds=settings.evolve_lease_seconds,
        least=settings.evolve_least,
    )


def make_forgetter(
    storage: SqlStorage,
    durable: DurableWork,
    sessions: SessionParts,
    indexing: Indexing,
    *,
    tokens: TokenCounter,
    clock: Clock,
    ids: Ids,
    over: Storage | None = None,
) -> Forgetter:
    """Return the forgetter. `over`: a storage to read and write through, in place of the storage itself."""
    through = over or storage
    vectors = VectorEraser(storage=through, index=indexing.vectors)
    return Forgetter(
        storage=through,
        upkeep=SqlUpkeep(storage),
        durable=durable,
        sessions=sessions.cache,
        memories=MemoryEraser(storage=through, vectors=vectors, clock=clock, ids=ids),
        messages=MessageEraser(
            storage=through,
            vectors=vectors,
            tokens=tokens,
            clock=clock,
            ids=ids,
            embedding=indexing.embedder is not None,
        ),
        rows=RowEraser(storage=through, ids=ids),
        clock=clock,
    )


def expire_work(common: Common, durable: DurableWork) -> None:
    """Declare the job."""

    async def expire() -> None:
        await durable.expire(before=common.clock.now() - timedelta(days=common.settings.work_kept_days))

    common.jobs.handle(EXPIRY, expire, every_seconds=_EXPIRY_SWEEP_SECONDS)
