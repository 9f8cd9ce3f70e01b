"""What all tenants of one process share, made from the settings."""

from collections.abc import Mapping
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
from roomlore.ports.durable import DurableWork
from roomlore.ports.language import Embedder, Summarizer, TokenCounter
from roomlore.ports.recall import Recall
from roomlore.ports.storage import Storage
from roomlore.services.contexts import UsageRecorder
from roomlore.services.doctor import Readiness
from roomlore.services.evolution import EVOLUTION
from roomlore.services.extraction import AGAIN, EXTRACTION, ExtractionService, RepliesDue, RepliesImported
from roomlore.services.jobs import Sweep
from roomlore.services.memories import InForceCache
from roomlore.services.memories.parts import Evolver, Searcher
from roomlore.services.messages import AllDue, Due, FactsCache, RoomCache
from roomlore.services.models import ModelService
from roomlore.services.privacy import Forgetter, IndexChecks, Verifier
from roomlore.services.recall import RecallParts
from roomlore.services.replies import ReplyParts
from roomlore.services.sessions import SUMMARY, LaterSummaries, SessionParts
from roomlore.settings import Settings, context_options
from roomlore.wiring.durable import go_on_with_what_is_left, make_again, make_durable, make_extraction, shares_work
from roomlore.wiring.evolution import make_evolutions
from roomlore.wiring.indexing import Indexing, make_indexing
from roomlore.wiring.memory_search import make_memory_search
from roomlore.wiring.models import make_models, summarizer_of
from roomlore.wiring.privacy import expire_work, make_forgetter
from roomlore.wiring.prompts import make_prompts
from roomlore.wiring.recall import make_recall
from roomlore.wiring.replies import make_recalls, make_replies
from roomlore.wiring.sessions import make_later_summaries, make_sessions
from roomlore.wiring.tracing import make_telemetry

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Resources:
    """What all tenants of one process share."""

    settings: Settings
    url: str
    """Of the database that is open."""
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
    in_force: InForceCache
    indexing: Indexing
    sessions: SessionParts
    summaries: LaterSummaries
    models: ModelService
    replies: ReplyParts
    recall: RecallParts
    verifier: Verifier
    forgetter: Forgetter
    recalls: tuple[Recall, ...]
    """What replies ask for memories."""
    durable: DurableWork
    shares_work: bool
    """Whether other processes see the durable work of this one."""
    sweeps: Mapping[str, Sweep]
    """What hands in durable work that is due, by its kind."""
    extraction: ExtractionService
    due: Due
    """What messages make due that are said now."""
    imports_due: Due
    """The same for those that are imported."""
    evolver: Evolver
    searcher: Searcher
    readiness: Readiness


async def make_resources(
    settings: Settings,
    storage: SqlStorage,
    url: str,
    *,
    embedder: Embedder | None,
    summarizer: Summarizer | None,
    closing: AsyncExitStack,
    background: bool,
) -> Resources:
    """Everything but the storage, closed with `closing`; background work, which uses the rest, is closed first."""
    clock, ids, model = SystemClock(), TimeOrderedIds(), load_link_model()
    telemetry = make_telemetry(settings, clock=clock, closing=closing)
    tokens = EncodingTokens(settings.token_encoding)
    jobs = InProcessJobs(telemetry=telemetry)
    readiness = Readiness(storage=storage, clock=clock)
    closing.push_async_callback(readiness.close)
    recorder = UsageRecorder(storage=storage, telemetry=telemetry)
    closing.push_async_callback(recorder.close)
    models = make_models(settings, clock=clock, telemetry=telemetry, closing=closing)
    indexing = await make_indexing(
        settings,
        storage,
        embedder,
        model=model,
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
    durable = make_durable(settings, url, clock=clock, closing=closing, background=background)
    summaries = make_later_summaries(sessions, durable, clock=clock, ids=ids, telemetry=telemetry)
    extraction = make_extraction(
        settings, storage, durable, models, clock=clock, telemetry=telemetry, jobs=jobs, background=background
    )
    again = make_again(
        settings, storage, durable, models, clock=clock, telemetry=telemetry, jobs=jobs, background=background
    )
    evolutions = make_evolutions(
        settings,
        storage,
        durable,
        models,
        make_prompts(settings, clock=clock, telemetry=telemetry, closing=closing),
        clock=clock,
        ids=ids,
        telemetry=telemetry,
        jobs=jobs,
        background=background,
    )
    if background:
        go_on_with_what_is_left(settings, url, durable, jobs)
    replies = make_replies(
        settings,
        storage,
        models,
        tokens=tokens,
        clock=clock,
        ids=ids,
        telemetry=telemetry,
        limits=limits(settings),
        closing=closing,
    )
    if background:
        expire_work(settings, durable, clock=clock, jobs=jobs)
    recall = make_recall(settings, storage, indexing.embedder, tokens=tokens, clock=clock, telemetry=telemetry)
    closing.push_async_callback(jobs.close)
    return Resources(
        settings=settings,
        url=url,
        options=context_options(settings),
        storage=storage,
        tokens=tokens,
        model=model,
        clock=clock,
        ids=ids,
        telemetry=telemetry,
        rooms=RoomCache(size_bytes=_room_cache_mb(settings) * _MIB, telemetry=telemetry),
        recorder=recorder,
        facts=FactsCache(size_bytes=settings.search_cache_mb * _MIB // 4),
        in_force=InForceCache(storage=storage),
        indexing=indexing,
        sessions=sessions,
        summaries=summaries,
        models=models,
        replies=replies,
        recall=recall,
        recalls=make_recalls(settings, recall),
        verifier=Verifier(storage=storage, clock=clock, indexes=IndexChecks(storage=storage, vectors=indexing.vectors)),
        forgetter=make_forgetter(storage, durable, sessions, indexing, tokens=tokens, clock=clock, ids=ids),
        durable=durable,
        shares_work=shares_work(settings, url),
        sweeps={
            **({EXTRACTION: extraction.sweep, AGAIN: again.sweep} if settings.extract_every else {}),
            EVOLUTION: evolutions.schedule.sweep,
            SUMMARY: summaries.sweep,
        },
        extraction=extraction,
        due=AllDue(indexing.due, RepliesDue(clock=clock, jobs=jobs)) if settings.extract_every else indexing.due,
        imports_due=AllDue(indexing.due, RepliesImported(clock=clock)),
        evolver=evolutions.service,
        searcher=make_memory_search(storage, indexing, clock=clock, jobs=jobs, telemetry=telemetry),
        readiness=readiness,
    )


def limits(settings: Settings) -> Limits:
    return Limits(
        text_chars=settings.max_text_chars,
        batch_messages=settings.max_batch_messages,
        metadata_chars=settings.max_metadata_chars,
    )


def _room_cache_mb(settings: Settings) -> int:
    return settings.room_cache_mb if settings.room_cache_size is None else 3 * settings.room_cache_size
