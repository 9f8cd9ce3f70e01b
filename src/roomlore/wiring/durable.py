"""Work that outlives its process, where it can, and what is derived from stored data."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

from roomlore.adapters.dbos import can_keep_work, is_work_left, open_dbos
from roomlore.adapters.inprocess.durable import InProcessWork
from roomlore.adapters.inprocess.late_work import LateWork
from roomlore.adapters.prompts import PackagedPrompts
from roomlore.core.chat.registry import SUMMARY_MODEL
from roomlore.ports.coordination import Clock, Jobs, Telemetry
from roomlore.ports.durable import DurableWork
from roomlore.ports.storage import Storage
from roomlore.services.extraction import AGAIN, EXTRACTION, ExtractionService, FallbacksAgain, MemorySummaries
from roomlore.services.jobs import counted
from roomlore.services.models import ModelService
from roomlore.settings import Settings

LEFT = "left work"
"""The background job that goes on with what a process before this one left."""
_SWEEP_SECONDS = 15.0
_AGAIN_SECONDS = 60.0
_TOGETHER_SECONDS = 0.05
"""Replies of a moment are looked at together, and not while the next one is written."""


def make_durable(settings: Settings, url: str, *, clock: Clock, closing: AsyncExitStack, background: bool) -> LateWork:
    """Nothing is opened yet. `url`: of the database; one in memory has nothing to outlive its process for."""
    durable = LateWork(_choices(settings, url, clock), working=background)
    closing.push_async_callback(durable.close)
    return durable


def shares_work(settings: Settings, url: str) -> bool:
    """Whether work on the database at `url` can be seen, and gone on with, by other processes."""
    return settings.durable_work == "dbos" or (settings.durable_work == "auto" and can_keep_work(url))


def go_on_with_what_is_left(settings: Settings, url: str, durable: LateWork, jobs: Jobs) -> None:
    """Durable work is opened when it is first used; where there is some already, that is now."""
    if not shares_work(settings, url):
        return

    async def look() -> None:
        if not durable.works() and await asyncio.to_thread(is_work_left, url):
            await durable.open(working=True)

    jobs.handle(LEFT, look, every_seconds=_SWEEP_SECONDS)


def make_extraction(
    settings: Settings,
    storage: Storage,
    durable: DurableWork,
    models: ModelService,
    *,
    clock: Clock,
    telemetry: Telemetry,
    jobs: Jobs,
    background: bool,
) -> ExtractionService:
    extraction = ExtractionService(
        storage=storage,
        durable=durable,
        summaries=_summaries(settings, models),
        jobs=jobs,
        clock=clock,
        telemetry=telemetry,
        every=settings.extract_every,
    )
    durable.define(EXTRACTION, counted(EXTRACTION, extraction.extract, clock=clock, telemetry=telemetry))
    if background and settings.extract_every:

        async def sweep() -> None:
            await asyncio.sleep(_TOGETHER_SECONDS)
            await extraction.sweep()

        jobs.handle(EXTRACTION, sweep, every_seconds=_SWEEP_SECONDS)
    return extraction


def make_again(
    settings: Settings,
    storage: Storage,
    durable: DurableWork,
    models: ModelService,
    *,
    clock: Clock,
    telemetry: Telemetry,
    jobs: Jobs,
    background: bool,
) -> FallbacksAgain:
    """What makes memories again that were kept without a model, with half of this process's hands at most."""
    again = FallbacksAgain(
        storage=storage,
        durable=durable,
        can_ask=lambda: models.can_ask(SUMMARY_MODEL),
        summaries=_summaries(settings, models),
        jobs=jobs,
        clock=clock,
        telemetry=telemetry,
        at_once=max(settings.work_at_once // 2, 1),
    )
    durable.define(AGAIN, counted(AGAIN, again.make_again, clock=clock, telemetry=telemetry))
    if background and settings.extract_every:
        jobs.handle(AGAIN, again.sweep, every_seconds=_AGAIN_SECONDS)
    return again


def _summaries(settings: Settings, models: ModelService) -> MemorySummaries:
    return MemorySummaries(models=models, prompts=PackagedPrompts(), timeout_seconds=settings.summary_timeout_seconds)


def _choices(settings: Settings, url: str, clock: Clock) -> list[Callable[[], DurableWork]]:
    def in_process() -> DurableWork:
        return InProcessWork(clock=clock, at_once=settings.work_at_once)

    def on_dbos() -> DurableWork:
        return open_dbos(url, at_once=settings.work_at_once)

    if settings.durable_work == "dbos":
        on_dbos()  # says at once what it lacks
        return [on_dbos]
    return [on_dbos, in_process] if shares_work(settings, url) else [in_process]
