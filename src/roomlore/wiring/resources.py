"""The parts that all tenants of one process share, made from the settings."""

import asyncio
import logging
import sys
import warnings
import weakref
from collections import ChainMap
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from typing import TypedDict

from roomlore.adapters.inprocess import InProcessJobs, SystemClock, TimeOrderedIds
from roomlore.adapters.sql import SqlStorage
from roomlore.adapters.tokens import EncodingTokens
from roomlore.adapters.weights import load_link_model
from roomlore.core.context import ContextOptions
from roomlore.core.intake import Limits
from roomlore.core.linking.model import LinkModel
from roomlore.ports.coordination import SessionCache
from roomlore.ports.durable import DurableWork
from roomlore.ports.language import ChatClient, Describer, Embedder, Summarizer
from roomlore.ports.memories import Recall
from roomlore.ports.storage import FORGETTING, THREADS, DueWork
from roomlore.ports.vectors import VectorIndex
from roomlore.services.archives import RETENTION, Archiver
from roomlore.services.contexts import STRATEGIES, Strategy, UsageRecorder
from roomlore.services.digest import DIGEST, TITLES, Writing
from roomlore.services.evolution import EVOLUTION
from roomlore.services.extraction import EXTRACTION, EXTRACTION_RETRY, ExtractionService, RepliesDue, RepliesImported
from roomlore.services.health import Readiness
from roomlore.services.jobs import Sweep
from roomlore.services.links import ThreadMoves
from roomlore.services.memories import InForceCache
from roomlore.services.memories.memory_service import Evolver, Searcher
from roomlore.services.messages import AllDue, FactsCache, RoomCache
from roomlore.services.models import ModelService
from roomlore.services.privacy import Forgetter, Forgettings, IndexChecks, Verifier
from roomlore.services.quotas import QuotaKeeper
from roomlore.services.recall import RecallParts
from roomlore.services.replies import ReplyParts
from roomlore.services.sessions import SUMMARY, DeferredSummaries, SessionParts
from roomlore.settings import Settings, context_options
from roomlore.wiring.indexing import Indexing, make_indexing, make_memory_search
from roomlore.wiring.models import Common, make_models, make_prompts, make_telemetry, summarizer_of
from roomlore.wiring.replies import make_deferred_summaries, make_recall, make_recalls, make_replies, make_sessions
from roomlore.wiring.work import (
    expire_usage,
    expire_work,
    make_archiver,
    make_durable,
    make_evolutions,
    make_extraction,
    make_forgetter,
    make_forgettings,
    make_moves,
    make_nightly,
    make_retention,
    make_retries,
    make_titles,
    make_writing,
    resume_left_work,
)

_MIB = 1024 * 1024
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpeningCall:
    """The line of the caller's code that opened a client. `block`: the statement that would also close it."""

    file: str
    line: int
    block: str

    @classmethod
    def here(cls, block: str) -> "OpeningCall":
        """Return the line that called into roomlore, seen from where this is called."""
        frame = sys._getframe(1)  # noqa: SLF001 - the one way to a caller's line that costs no traceback
        while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _NOT_THE_CALLER:
            frame = frame.f_back
        return cls(frame.f_code.co_filename, frame.f_lineno, block)


_NOT_THE_CALLER = frozenset(("roomlore", "asyncio", "contextlib"))
_OPENING: ContextVar[OpeningCall] = ContextVar("opening")


@contextmanager
def opening_in(block: str) -> Iterator[None]:
    """Attribute what is opened inside to the line that calls roomlore now, also if another thread opens it."""
    token = _OPENING.set(OpeningCall.here(block))
    try:
        yield
    finally:
        _OPENING.reset(token)


class Closing(AsyncExitStack):
    """Everything that is closed with roomlore: once, in reverse order of opening."""

    def __init__(self) -> None:
        super().__init__()
        self._one_at_a_time = asyncio.Lock()
        opened = _OPENING.get(None) or OpeningCall.here("async with roomlore.open(...)")
        self._warn_at_end = weakref.finalize(self, _warn_of_open_client, opened)

    async def aclose(self) -> None:
        async with self._one_at_a_time:
            self._warn_at_end.detach()
            await super().aclose()


def _warn_of_open_client(opened: OpeningCall) -> None:
    """Warn when an open client is collected, or when the program ends. Python hides a `ResourceWarning` unless it is
    asked for, so the log says it too."""
    advice = f"roomlore was not closed: call `close()`, or open it in `{opened.block}`."
    log.warning("%s Opened at %s:%d.", advice, opened.file, opened.line)
    warnings.warn_explicit(advice, ResourceWarning, opened.file, opened.line)


class OwnBackends(TypedDict, total=False):
    """The caller's own backends, as `roomlore.open` and `roomlore.connect` take them. They take the place of the
    configured ones and are closed with roomlore.

    `embedder`: turns texts into vectors. `vectors`: an index of them, used with an embedder. `durable`: keeps work that
    calls models. `chat`: calls models. `cache`: of sessions. `summarizer`: writes the summaries of sessions; without
    one sentences are chosen. `strategies`: further ways to choose a context, by the names that calls and rooms give.
    `describer`: puts the pictures, voice messages and files of imports into words.
    """

    embedder: Embedder | None
    summarizer: Summarizer | None
    vectors: VectorIndex | None
    durable: DurableWork | None
    chat: ChatClient | None
    cache: SessionCache | None
    strategies: Mapping[str, Strategy] | None
    describer: Describer | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """The `OwnBackends` with their defaults."""

    embedder: Embedder | None = None
    summarizer: Summarizer | None = None
    vectors: VectorIndex | None = None
    durable: DurableWork | None = None
    chat: ChatClient | None = None
    cache: SessionCache | None = None
    strategies: Mapping[str, Strategy] | None = None
    describer: Describer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources(Common):
    """The parts that all tenants of one process share."""

    url: str
    """The URL of the open database."""
    options: ContextOptions
    strategies: Mapping[str, Strategy]
    model: LinkModel
    moves: ThreadMoves
    rooms: RoomCache
    one_writer: bool
    """True on SQLite: the database has one writer at a time."""
    describer: Describer | None
    recorder: UsageRecorder
    facts: FactsCache
    in_force: InForceCache
    indexing: Indexing
    sessions: SessionParts
    summaries: DeferredSummaries
    models: ModelService
    replies: ReplyParts
    recall: RecallParts
    verifier: Verifier
    forgetter: Forgetter
    forgettings: Forgettings
    recalls: tuple[Recall, ...]
    """The sources of memories for replies."""
    durable: DurableWork
    shares_work: bool
    """True if other processes see the durable work of this one."""
    sweeps: Mapping[str, Sweep]
    """The sweeps that enqueue due durable work, by its kind."""
    extraction: ExtractionService
    due: DueWork
    """The work that new messages make due."""
    imports_due: DueWork
    """The same for imported messages."""
    evolver: Evolver
    writing: Writing
    searcher: Searcher
    readiness: Readiness
    quotas: QuotaKeeper
    archiver: Archiver


async def make_resources(
    settings: Settings,
    storage: SqlStorage,
    url: str,
    *,
    own: Own,
    closing: Closing,
    background: bool,
) -> Resources:
    """Return everything but the storage, closed with `closing`; background work, which uses it, is closed first."""
    clock, model = SystemClock(), load_link_model()
    telemetry = make_telemetry(settings, clock=clock, closing=closing)
    jobs = InProcessJobs(telemetry=telemetry)
    common = Common(
        settings=settings,
        storage=storage,
        tokens=EncodingTokens(settings.context.token_encoding),
        clock=clock,
        ids=TimeOrderedIds(),
        telemetry=telemetry,
        jobs=jobs,
        limits=_limits(settings),
        closing=closing,
        background=background,
    )
    readiness = Readiness(storage=storage, clock=clock)
    closing.push_async_callback(readiness.close)
    recorder = UsageRecorder(storage=storage, telemetry=telemetry)
    closing.push_async_callback(recorder.close)
    quotas = QuotaKeeper(storage=storage, clock=clock, telemetry=telemetry, usual=settings.quotas.limits())
    models = make_models(
        settings,
        clock=clock,
        telemetry=telemetry,
        closing=closing,
        client=own.chat,
        quotas=quotas,
        tokens=common.tokens,
    )
    indexing = await make_indexing(common, model, embedder=own.embedder, vectors=own.vectors)
    sessions = await make_sessions(common, own.summarizer or await summarizer_of(models, settings), own.cache)
    engine = await make_durable(common, url, own.durable)
    durable = engine.durable
    summaries = make_deferred_summaries(common, sessions, durable)
    extraction = make_extraction(common, durable, models)
    retries = make_retries(common, durable, models)
    moves = make_moves(common, durable)
    evolutions = make_evolutions(common, durable, models, make_prompts(common))
    writing = make_writing(common, models)
    nightly = make_nightly(common, durable, writing, model)
    titles = make_titles(common, durable, models)
    if background:
        resume_left_work(common, url, engine)
    archiver = make_archiver(common, model, indexing.due)
    retention = make_retention(common, durable, archiver)
    forgetter = make_forgetter(
        storage,
        durable,
        sessions,
        indexing,
        tokens=common.tokens,
        clock=clock,
        ids=common.ids,
        archives=archiver,
    )
    forgettings = make_forgettings(common, engine, forgetter)
    replies = make_replies(common, models, quotas)
    if background:
        expire_work(common, durable)
        expire_usage(common)
    recall = make_recall(common, indexing.embedder)
    closing.push_async_callback(jobs.close)
    strategies: Mapping[str, Strategy] = ChainMap(dict(own.strategies or {}), STRATEGIES)
    options = replace(context_options(settings), strategies=tuple(strategies))
    return Resources(
        **{field.name: getattr(common, field.name) for field in fields(common)},
        url=url,
        options=options,
        strategies=strategies,
        model=model,
        moves=moves,
        rooms=RoomCache(size_bytes=settings.search.room_cache_mb * _MIB, telemetry=telemetry),
        one_writer=not url.startswith("postgres"),
        describer=own.describer,
        recorder=recorder,
        facts=FactsCache(size_bytes=settings.search.search_cache_mb * _MIB // 4),
        in_force=InForceCache(storage=storage),
        indexing=indexing,
        sessions=sessions,
        summaries=summaries,
        models=models,
        replies=replies,
        recall=recall,
        recalls=make_recalls(common, recall),
        verifier=Verifier(
            storage=storage,
            clock=clock,
            indexes=IndexChecks(storage=storage, vectors=indexing.vectors),
            archives=archiver,
        ),
        forgetter=forgetter,
        forgettings=forgettings,
        durable=durable,
        shares_work=engine.is_shared,
        sweeps={
            **(
                {EXTRACTION: extraction.sweep, EXTRACTION_RETRY: retries.sweep}
                if settings.evolution.extract_every
                else {}
            ),
            THREADS: moves.sweep,
            EVOLUTION: evolutions.schedule.sweep,
            SUMMARY: summaries.sweep,
            **({DIGEST: nightly.sweep} if settings.digests.digest_schedule else {}),
            RETENTION: retention.sweep,
            FORGETTING: forgettings.sweep,
            **({TITLES: titles.sweep} if settings.digests.model_titles else {}),
        },
        extraction=extraction,
        due=AllDue(indexing.due, RepliesDue(clock=clock, jobs=jobs))
        if settings.evolution.extract_every
        else indexing.due,
        imports_due=AllDue(indexing.due, RepliesImported(clock=clock)),
        evolver=evolutions.service,
        writing=writing,
        searcher=make_memory_search(common, indexing),
        readiness=readiness,
        quotas=quotas,
        archiver=archiver,
    )


def _limits(settings: Settings) -> Limits:
    return Limits(
        text_chars=settings.limits.max_text_chars,
        batch_messages=settings.limits.max_batch_messages,
        metadata_chars=settings.limits.max_metadata_chars,
    )
