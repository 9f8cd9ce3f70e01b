"""Work that outlives its process: extraction, evolution, forgetting, deleting rooms."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

from roomlore import services
from roomlore.adapters.archive_files import FolderOfArchives
from roomlore.adapters.chat import can_chat
from roomlore.adapters.cron import Cron
from roomlore.adapters.inprocess import LateWork
from roomlore.adapters.prompts import PackagedPrompts
from roomlore.adapters.webhook import HttpWebhook
from roomlore.core.attachments import undescribed
from roomlore.core.chat import SUMMARY_MODEL
from roomlore.core.errors import InvalidInput
from roomlore.core.evolution.requests import Rules
from roomlore.core.linking.model import LinkModel
from roomlore.ports.archives import ArchivedMessages
from roomlore.ports.backends import DURABLE, DurableBackend
from roomlore.ports.coordination import Webhook
from roomlore.ports.durable import DurableWork, Work
from roomlore.ports.language import Prompts
from roomlore.ports.quotas import QuotaChecks
from roomlore.ports.shared import Backends
from roomlore.ports.verbs import DueWork
from roomlore.services.contexts import UsageExpiry
from roomlore.services.models import ModelService
from roomlore.services.sessions import SessionParts
from roomlore.settings import Settings
from roomlore.storage import Storage
from roomlore.storage.inspection import compact_database
from roomlore.storage.values import ATTACHMENTS, DELETING, FORGETTING, THREADS
from roomlore.wiring.indexing import Indexing
from roomlore.wiring.models import Common, define, host_of, opened, usable

LEFT = "left work"
"""The background job that continues work left by an earlier process."""
_SWEEP_SECONDS = 15.0
_RETRY_SECONDS = 60.0
_TOGETHER_SECONDS = 0.05
"""Replies within this time are handled together, and not while the next one is written."""
_EVOLUTION_SWEEP_SECONDS = 30.0
_TITLES_SWEEP_SECONDS = 60.0
_RETENTION_SWEEP_SECONDS = 60.0
EXPIRY = "work_expiry"
"""The background job that deletes finished work after a time."""
USAGE_EXPIRY = "usage_expiry"
"""The background job that deletes usage records after a time."""
_EXPIRY_SWEEP_SECONDS = 3_600.0
_WORK_KEPT = timedelta(days=7)
"""Finished work can be looked at for a week, so that a fault of the weekend is seen on Monday."""
RETENTION_SCHEDULE = "30 3 * * *"
"""When messages and records become too old, in the time zone of the settings: after the evolutions of the night."""


@dataclass(frozen=True, slots=True)
class Engine:
    """The durable work, not opened yet. `is_left`: as in `DurableBackend`, of the best engine that can be used here."""

    durable: LateWork
    is_left: Callable[[str], bool] | None

    @property
    def is_shared(self) -> bool:
        """True if its work can be seen, and continued, by other processes."""
        return self.is_left is not None


async def make_durable(common: Common, url: str, own: DurableWork | None) -> Engine:
    """Return the durable work. `url`: of the database; work on one in memory ends with its process. `own`: the
    caller's own."""
    if own is not None:
        late = LateWork([lambda: own], working=common.background)
        common.closing.push_async_callback(late.close)
        return Engine(late, None)
    host = host_of(common, common.settings.work.work_database_url or url)
    candidates = await usable(DURABLE, common.settings, host)
    late = LateWork(
        [partial(opened, candidate, common.settings, host) for candidate in candidates], working=common.background
    )
    common.closing.push_async_callback(late.close)
    best = candidates[0]
    assert isinstance(best, DurableBackend)
    return Engine(late, best.is_left)


def resume_left_work(common: Common, url: str, engine: Engine) -> None:
    """Open durable work now if an earlier process left some; otherwise it opens when it is first used."""
    durable, is_left, url = engine.durable, engine.is_left, common.settings.work.work_database_url or url
    if is_left is None:
        return

    async def look() -> None:
        if not durable.works() and await asyncio.to_thread(is_left, url):
            await durable.open(working=True)

    common.jobs.handle(LEFT, look, every_seconds=_SWEEP_SECONDS)


def make_extraction(
    common: Common, durable: DurableWork, models: ModelService
) -> services.extraction.ExtractionService:
    extraction = services.extraction.ExtractionService(
        common,
        durable=durable,
        summaries=_summaries(common.settings, models),
        every=common.settings.evolution.extract_every,
        zone=common.settings.search.zone,
    )
    define(common, durable, services.extraction.EXTRACTION, extraction.extract)
    if common.background and common.settings.evolution.extract_every:

        async def sweep() -> None:
            await asyncio.sleep(_TOGETHER_SECONDS)
            await extraction.sweep()

        common.jobs.handle(services.extraction.EXTRACTION, sweep, every_seconds=_SWEEP_SECONDS)
    return extraction


def make_retries(common: Common, durable: DurableWork, models: ModelService) -> services.extraction.FallbackRetries:
    """Return the retries of memories that were kept without a model; they use half of this process's work slots."""
    retries = services.extraction.FallbackRetries(
        common,
        durable=durable,
        can_ask=lambda: models.can_ask(SUMMARY_MODEL),
        summaries=_summaries(common.settings, models),
        at_once=max(common.settings.work.work_at_once // 2, 1),
        zone=common.settings.search.zone,
    )
    define(common, durable, services.extraction.EXTRACTION_RETRY, retries.retry)
    if common.background and common.settings.evolution.extract_every:
        common.jobs.handle(services.extraction.EXTRACTION_RETRY, retries.sweep, every_seconds=_RETRY_SECONDS)
    return retries


def _summaries(settings: Settings, models: ModelService) -> services.extraction.MemorySummaries:
    return services.extraction.MemorySummaries(
        models=models, prompts=PackagedPrompts(), timeout_seconds=settings.language_models.summary_timeout_seconds
    )


def define_swept(
    common: Common, durable: DurableWork, kind: str, work: Work, sweep: Callable[[], Awaitable[object]]
) -> None:
    """Define durable work, and the background job that submits it."""
    define(common, durable, kind, work)
    if common.background:
        common.jobs.handle(kind, sweep, every_seconds=_SWEEP_SECONDS)


def make_moves(common: Common, durable: DurableWork) -> services.links.ThreadMoves:
    """Return what moves messages to other threads after corrections. Nothing is read yet."""
    moves = services.links.ThreadMoves(common, durable=durable, background=common.background)
    define_swept(common, durable, THREADS, moves.work, moves.sweep)
    return moves


@dataclass(frozen=True, slots=True)
class Evolutions:
    """The evolutions, and the schedule that enqueues them."""

    service: services.evolution.EvolutionService
    schedule: services.evolution.Schedule


def make_writing(common: Common, models: ModelService) -> services.digest.Writing:
    """Return what has a model write digests. No request is sent yet."""
    settings = common.settings
    options = services.digest.WritingOptions(
        model=settings.digests.digest_model,
        zone=settings.search.zone,
    )
    return services.digest.Writing(models=models, prompts=PackagedPrompts(), options=options)


def make_webhook(common: Common) -> Webhook | None:
    """Return the receiver of digests, None if there is none. Raise `InvalidInput` for an invalid URL."""
    settings = common.settings.digests
    if not settings.digest_webhook:
        return None
    return HttpWebhook(
        settings.digest_webhook,
        secret=settings.digest_webhook_secret,
        private=settings.digest_webhook_private,
        clock=common.clock,
    ).send


def make_nightly(
    common: Common,
    durable: DurableWork,
    writing: services.digest.Writing,
    model: LinkModel,
    webhook: Webhook | None,
) -> services.digest.NightlyDigests:
    """Return the digests that are sent by a schedule. Nothing is read yet."""
    settings = common.settings.digests
    rooms = frozenset(name for part in settings.digest_rooms.split(",") if (name := part.strip()))
    times = Cron(settings.digest_schedule, common.settings.search.zone).last if settings.digest_schedule else None
    nightly = services.digest.NightlyDigests(
        common,
        durable=durable,
        times=times,
        webhook=webhook,
        digests=lambda tenant: services.digest.DigestService(common, tenant=tenant, model=model, writing=writing),
        rooms=rooms,
    )
    define(common, durable, services.digest.DIGEST, nightly.work)
    if common.background and times:
        common.jobs.handle(services.digest.DIGEST, nightly.sweep, every_seconds=_EVOLUTION_SWEEP_SECONDS)
    return nightly


def make_titles(common: Common, durable: DurableWork, models: ModelService) -> services.digest.ThreadTitler:
    """Return what has a model write the titles of threads. Nothing is read yet."""
    settings = common.settings
    titles = services.digest.ThreadTitler(
        common,
        durable=durable,
        models=models,
        prompts=PackagedPrompts(),
        options=services.digest.WritingOptions(model=settings.digests.digest_model, zone=settings.search.zone),
    )
    define(common, durable, services.digest.TITLES, titles.work)
    if common.background and settings.digests.model_titles:
        common.jobs.handle(services.digest.TITLES, titles.sweep, every_seconds=_TITLES_SWEEP_SECONDS)
    return titles


def make_attachments(
    common: Common, durable: DurableWork, models: ModelService, quotas: QuotaChecks, vectors: DueWork
) -> services.attachments.Attachments | None:
    """Return what describes the attachments of messages; None if none are. Nothing is read yet."""
    settings = common.settings.attachments
    if not settings.read:
        return None
    if not can_chat():
        raise InvalidInput("openai_not_installed")
    from roomlore.adapters.attached import AttachedFiles  # for attachments alone

    folder = Path(settings.attachment_folder) if settings.attachment_folder else None
    files = AttachedFiles(folder=folder, private=settings.attachment_private, most=settings.max_attachment_bytes)
    attachments = services.attachments.Attachments(
        common,
        durable=durable,
        left=partial(undescribed, kinds=settings.read, files=folder is not None),
        read=files.read,
        describer=services.attachments.ModelDescriber(
            models=models,
            prompts=PackagedPrompts(),
            captions=settings.caption_model,
            transcripts=settings.transcript_model,
        ),
        quotas=quotas,
        vectors=vectors,
    )
    define_swept(common, durable, ATTACHMENTS, attachments.work, attachments.sweep)
    return attachments


def make_evolutions(common: Common, durable: DurableWork, models: ModelService, prompts: Prompts) -> Evolutions:
    """Return the evolutions and their schedule. Nothing is read yet."""
    from roomlore.adapters.json_repair import repaired  # for evolutions alone

    settings = common.settings
    options = evolution_options(settings)
    reading = services.evolution.PieceReader(common, zone=options.zone)
    asking = services.evolution.ModelAnswers(models=models, prompts=prompts, clock=common.clock, options=options)
    applying = services.evolution.Applying(common, reading=reading, options=options, repair=repaired)
    service = services.evolution.EvolutionService(
        common,
        durable=durable,
        reading=reading,
        asking=asking,
        applying=applying,
        together=services.evolution.AskingTogether(reading=reading, asking=asking, applying=applying, repair=repaired),
        leases=services.evolution.EvolutionLeases(common),
    )
    define(common, durable, services.evolution.EVOLUTION, service.work)
    times = (
        Cron(settings.evolution.evolve_schedule, settings.search.zone).last
        if settings.evolution.evolve_schedule
        else None
    )
    schedule = services.evolution.Schedule(
        common,
        evolutions=service,
        times=times,
        people=_people_evolve(settings, models),
    )
    if common.background and times:
        common.jobs.handle(services.evolution.EVOLUTION, schedule.sweep, every_seconds=_EVOLUTION_SWEEP_SECONDS)
    return Evolutions(service, schedule)


def _people_evolve(settings: Settings, models: ModelService) -> Callable[[], Awaitable[bool]]:
    async def evolve() -> bool:
        return settings.evolution.evolve_people and await models.has_provider(settings.evolution.evolve_model)

    return evolve


def evolution_options(settings: Settings) -> services.evolution.EvolutionOptions:
    """Return the settings of evolutions."""
    return services.evolution.EvolutionOptions(
        model=settings.evolution.evolve_model,
        timeout_seconds=settings.language_models.model_timeout_seconds,
        zone=settings.search.zone,
        rules=Rules(
            delete_share=settings.evolution.evolve_delete_share,
            most_active=settings.evolution.most_memories,
        ),
    )


def make_forgetter(
    backends: Backends,
    storage: Storage,
    durable: DurableWork,
    sessions: SessionParts,
    indexing: Indexing,
    archives: ArchivedMessages,
) -> services.privacy.Forgetter:
    """Return the forgetter. It reads and writes through the storage of the backends, which `storage` is behind."""
    vectors = services.privacy.VectorEraser(backends, index=indexing.vectors)
    return services.privacy.Forgetter(
        backends,
        compact_database=partial(compact_database, storage),
        durable=durable,
        drop_session=sessions.cache.drop,
        memories=services.privacy.MemoryEraser(backends, vectors=vectors),
        messages=services.privacy.MessageEraser(backends, vectors=vectors, embedding=indexing.embedder is not None),
        rows=services.privacy.RowEraser(backends),
        archives=archives,
    )


def make_forgettings(
    common: Common, engine: Engine, forgetter: services.privacy.Forgetter
) -> services.privacy.Forgettings:
    """Return the requests to forget somebody, and the job that continues those that were left."""
    durable = engine.durable
    forgettings = services.privacy.Forgettings(common, durable=durable, forgetter=forgetter, shared=engine.is_shared)
    define_swept(common, durable, FORGETTING, forgettings.work, forgettings.sweep)
    return forgettings


def make_room_deletions(
    common: Common,
    engine: Engine,
    forgettings: services.privacy.Forgettings,
    forgetter: services.privacy.Forgetter,
    indexing: Indexing,
    archives: ArchivedMessages,
) -> services.privacy.RoomDeletions:
    """Return the requests to delete rooms, and the job that continues those that were left."""
    vectors = services.privacy.VectorEraser(common, index=indexing.vectors)
    deletions = services.privacy.RoomDeletions(
        common,
        durable=engine.durable,
        forgetter=forgetter,
        forgettings=forgettings,
        memories=services.privacy.RoomMemories(common),
        vectors=vectors,
        archives=archives,
    )
    define_swept(common, engine.durable, DELETING, deletions.work, deletions.sweep)
    return deletions


def make_archiver(common: Common, model: LinkModel, due: DueWork) -> services.archives.Archiver:
    """Return what archives messages and brings them back. No file is opened yet."""
    return services.archives.Archiver(
        common, files=FolderOfArchives(Path(common.settings.retention.archive_folder)), model=model, due=due
    )


def make_retention(
    common: Common, durable: DurableWork, archiver: services.archives.Archiver
) -> services.archives.Retention:
    """Return the retention by the schedule. Nothing is read yet."""
    settings = common.settings.retention
    wanted = settings.retain_messages_days is not None or settings.retain_answers_days is not None
    schedule = RETENTION_SCHEDULE if wanted else ""
    retention = services.archives.Retention(
        common,
        durable=durable,
        archiver=archiver,
        times=Cron(schedule, common.settings.search.zone).last if schedule else None,
        days=settings.retain_messages_days,
        record_days=settings.retain_answers_days,
    )
    define(common, durable, services.archives.RETENTION, retention.work)
    if common.background and schedule:
        common.jobs.handle(services.archives.RETENTION, retention.sweep, every_seconds=_RETENTION_SWEEP_SECONDS)
    return retention


def expire_work(common: Common, durable: DurableWork) -> None:
    """Declare the job."""

    async def expire() -> None:
        await durable.expire(before=common.clock.now() - _WORK_KEPT)

    common.jobs.handle(EXPIRY, expire, every_seconds=_EXPIRY_SWEEP_SECONDS)


def expire_usage(common: Common) -> None:
    """Declare the job."""
    expiry = UsageExpiry(common)
    common.jobs.handle(USAGE_EXPIRY, expiry.run, every_seconds=_EXPIRY_SWEEP_SECONDS)
