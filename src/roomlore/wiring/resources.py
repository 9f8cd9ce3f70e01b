"""What all tenants of one process share, made from the settings."""

from contextlib import AsyncExitStack
from dataclasses import dataclass

from roomlore.adapters.inprocess.clock import SystemClock
from roomlore.adapters.inprocess.ids import TimeOrderedIds
from roomlore.adapters.inprocess.jobs import InProcessJobs
from roomlore.adapters.inprocess.telemetry import PrometheusTelemetry
from roomlore.adapters.sql import SqlStorage
from roomlore.adapters.tokens import EncodingTokens
from roomlore.adapters.weights import load_link_model
from roomlore.core.context import ContextOptions
from roomlore.core.intake import Limits
from roomlore.core.linking import LinkModel
from roomlore.ports.coordination import Clock, Ids
from roomlore.ports.language import Embedder, Summarizer, TokenCounter
from roomlore.ports.storage import Storage
from roomlore.services.contexts import UsageRecorder
from roomlore.services.messages import FactsCache, RoomCache
from roomlore.services.models import ModelService
from roomlore.services.sessions import SessionParts
from roomlore.settings import Settings, context_options
from roomlore.wiring.indexing import Indexing, make_indexing
from roomlore.wiring.models import make_models, summarizer_of
from roomlore.wiring.sessions import make_sessions

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Resources:
    """What all tenants of one process share."""

    settings: Settings
    options: ContextOptions
    storage: Storage
    tokens: TokenCounter
    model: LinkModel
    clock: Clock
    ids: Ids
    telemetry: PrometheusTelemetry
    rooms: RoomCache
    recorder: UsageRecorder
    facts: FactsCache
    indexing: Indexing
    sessions: SessionParts
    models: ModelService


async def make_resources(
    settings: Settings,
    storage: SqlStorage,
    *,
    embedder: Embedder | None,
    summarizer: Summarizer | None,
    closing: AsyncExitStack,
    background: bool,
) -> Resources:
    """Everything but the storage, closed with `closing`; background work, which uses the rest, is closed first."""
    clock, ids = SystemClock(), TimeOrderedIds()
    telemetry = PrometheusTelemetry(clock)
    tokens = EncodingTokens(settings.token_encoding)
    jobs = InProcessJobs(telemetry=telemetry)
    recorder = UsageRecorder(storage=storage, telemetry=telemetry)
    closing.push_async_callback(recorder.close)
    models = make_models(settings, clock=clock, telemetry=telemetry, closing=closing)
    indexing = await make_indexing(
        settings,
        storage,
        embedder,
        clock=clock,
        ids=ids,
        telemetry=telemetry,
        jobs=jobs,
        closing=closing,
        background=background,
    )
    sessions = make_sessions(
        settings,
        storage,
        summarizer or await summarizer_of(models, settings),
        tokens=tokens,
        clock=clock,
        ids=ids,
        telemetry=telemetry,
        jobs=jobs,
        limits=limits(settings),
        closing=closing,
        background=background,
    )
    closing.push_async_callback(jobs.close)
    return Resources(
        settings=settings,
        options=context_options(settings),
        storage=storage,
        tokens=tokens,
        model=load_link_model(),
        clock=clock,
        ids=ids,
        telemetry=telemetry,
        rooms=RoomCache(size=settings.room_cache_size, telemetry=telemetry),
        recorder=recorder,
        facts=FactsCache(size_bytes=settings.search_cache_mb * _MIB // 4),
        indexing=indexing,
        sessions=sessions,
        models=models,
    )


def limits(settings: Settings) -> Limits:
    return Limits(
        text_chars=settings.max_text_chars,
        batch_messages=settings.max_batch_messages,
        metadata_chars=settings.max_metadata_chars,
    )
