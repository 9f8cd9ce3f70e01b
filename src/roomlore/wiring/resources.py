"""The parts that all tenants of one process share, made from the settings."""

from __future__ import annotations

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
from functools import cached_property
from typing import TypedDict

from roomlore import services
from roomlore.adapters.inprocess import InProcessJobs, SystemClock, TimeOrderedIds
from roomlore.adapters.tokens import EncodingTokens
from roomlore.adapters.weights import load_link_model
from roomlore.core import PACKAGES
from roomlore.core.context import ContextOptions
from roomlore.core.intake import Limits
from roomlore.core.linking.model import LinkModel
from roomlore.ports.coordination import SessionCache, Webhook
from roomlore.ports.durable import DurableWork
from roomlore.ports.language import ChatClient, Describer, Embedder, Prompts, Summarizer
from roomlore.ports.memories import Recall
from roomlore.ports.vectors import VectorIndex
from roomlore.ports.verbs import DueWork
from roomlore.services.contexts import STRATEGIES, Strategy, UsageRecorder
from roomlore.services.health import Readiness
from roomlore.services.models import ModelService
from roomlore.services.quotas import QuotaKeeper
from roomlore.services.sessions import SessionParts
from roomlore.settings import Settings, context_options
from roomlore.storage import Storage
from roomlore.storage.values import ATTACHMENTS, DELETING, FORGETTING, THREADS
from roomlore.wiring.indexing import Indexing, make_indexing, make_memory_search
from roomlore.wiring.models import Common, make_models, make_prompts, make_telemetry, summarizer_of
from roomlore.wiring.replies import make_deferred_summaries, make_recall, make_recalls, make_replies, make_sessions
from roomlore.wiring.work import (
    Engine,
    Evolutions,
    expire_usage,
    expire_work,
    make_archiver,
    make_attachments,
    make_durable,
    make_evolutions,
    make_extraction,
    make_forgetter,
    make_forgettings,
    make_moves,
    make_nightly,
    make_retention,
    make_retries,
    make_room_deletions,
    make_titles,
    make_webhook,
    make_writing,
    resume_left_work,
)

_MIB = 1024 * 1024
_FACTS_BYTES = 128 * _MIB
"""For the facts of rooms lately searched: a quarter of what their vectors may take."""
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpeningCall:
    """The line of the caller's code that opened a client. `block`: the statement that would also close it."""

    file: str
    line: int
    block: str

    @classmethod
    def here(cls, block: str) -> OpeningCall:
        """Return the line that called into roomlore, seen from where this is called."""
        frame = sys._getframe(1)  # noqa: SLF001 - the one way to a caller's line that costs no traceback
        while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _NOT_THE_CALLER:
            frame = frame.f_back
        return cls(frame.f_code.co_filename, frame.f_lineno, block)


_NOT_THE_CALLER = PACKAGES | {"asyncio", "contextlib"}
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


@dataclass(frozen=True, kw_only=True)
class Resources(Common):
    """The parts that all tenants of one process share. The fields are there when roomlore is open; each other part is
    made, and its modules are imported, when it is first used."""

    storage: Storage
    url: str
    """The URL of the open database."""
    own: Own
    model: LinkModel
    readiness: Readiness
    recorder: UsageRecorder
    quotas: QuotaKeeper
    models: ModelService
    indexing: Indexing
    sessions: SessionParts
    engine: Engine
    prompts: Prompts
    webhook: Webhook | None
    """The receiver of digests."""

    def make_all(self) -> None:
        """Make every part now, in the order in which they stand here: what is made last is closed first."""
        for name, part in vars(Resources).items():
            if isinstance(part, cached_property):
                getattr(self, name)

    @property
    def one_writer(self) -> bool:
        """True on SQLite: the database has one writer at a time."""
        return not self.url.startswith("postgres")

    @property
    def describer(self) -> Describer | None:
        return self.own.describer

    @property
    def durable(self) -> DurableWork:
        return self.engine.durable

    @property
    def shares_work(self) -> bool:
        """True if other processes see the durable work of this one."""
        return self.engine.is_shared

    @cached_property
    def strategies(self) -> Mapping[str, Strategy]:
        return ChainMap(dict(self.own.strategies or {}), STRATEGIES)

    @cached_property
    def options(self) -> ContextOptions:
        return replace(context_options(self.settings), strategies=tuple(self.strategies))

    @cached_property
    def rooms(self) -> services.messages.RoomCache:
        size_bytes = self.settings.search.room_cache_mb * _MIB
        stamp_of = self.storage.stamp
        return services.messages.RoomCache(size_bytes=size_bytes, telemetry=self.telemetry, stamp_of=stamp_of)

    @cached_property
    def facts(self) -> services.messages.FactsCache:
        return services.messages.FactsCache(size_bytes=_FACTS_BYTES)

    @cached_property
    def in_force(self) -> services.memories.InForceCache:
        return services.memories.InForceCache(storage=self.storage)

    @cached_property
    def summaries(self) -> services.sessions.DeferredSummaries:
        return make_deferred_summaries(self, self.sessions, self.durable)

    @cached_property
    def extraction(self) -> services.extraction.ExtractionService:
        return make_extraction(self, self.durable, self.models)

    @cached_property
    def retries(self) -> services.extraction.FallbackRetries:
        return make_retries(self, self.durable, self.models)

    @cached_property
    def moves(self) -> services.links.ThreadMoves:
        return make_moves(self, self.durable)

    @cached_property
    def evolutions(self) -> Evolutions:
        return make_evolutions(self, self.durable, self.models, self.prompts)

    @property
    def evolver(self) -> services.evolution.EvolutionService:
        return self.evolutions.service

    @cached_property
    def writing(self) -> services.digest.Writing:
        return make_writing(self, self.models)

    @cached_property
    def nightly(self) -> services.digest.NightlyDigests:
        return make_nightly(self, self.durable, self.writing, self.model, self.webhook)

    @cached_property
    def titles(self) -> services.digest.ThreadTitler:
        return make_titles(self, self.durable, self.models)

    @cached_property
    def archiver(self) -> services.archives.Archiver:
        return make_archiver(self, self.model, self.indexing.due)

    @cached_property
    def retention(self) -> services.archives.Retention:
        return make_retention(self, self.durable, self.archiver)

    @cached_property
    def forgetter(self) -> services.privacy.Forgetter:
        return make_forgetter(self, self.storage, self.durable, self.sessions, self.indexing, self.archiver)

    @cached_property
    def forgettings(self) -> services.privacy.Forgettings:
        return make_forgettings(self, self.engine, self.forgetter)

    @cached_property
    def room_deletions(self) -> services.privacy.RoomDeletions:
        return make_room_deletions(self, self.engine, self.forgettings, self.forgetter, self.indexing, self.archiver)

    @cached_property
    def verifier(self) -> services.privacy.Verifier:
        return services.privacy.Verifier(
            self,
            indexes=services.privacy.IndexChecks(storage=self.storage, vectors=self.indexing.vectors),
            archives=self.archiver,
        )

    @cached_property
    def replies(self) -> services.replies.ReplyParts:
        return make_replies(self, self.models, self.quotas)

    @cached_property
    def recall(self) -> services.recall.RecallParts:
        return make_recall(self, self.indexing.embedder)

    @cached_property
    def recalls(self) -> tuple[Recall, ...]:
        """The sources of memories for replies."""
        return make_recalls(self, self.recall)

    @cached_property
    def searcher(self) -> services.memory_search.MemorySearch:
        return make_memory_search(self, self.indexing)

    @cached_property
    def attachments(self) -> services.attachments.Attachments | None:
        return make_attachments(self, self.durable, self.models, self.quotas, self.indexing.due)

    @cached_property
    def edits_due(self) -> DueWork:
        """The work that edited messages make due."""
        if self.attachments is None:
            return self.indexing.due
        return services.messages.AllDue(self.indexing.due, self.attachments)

    @cached_property
    def due(self) -> DueWork:
        """The work that new messages make due."""
        if not self.settings.evolution.extract_every:
            return self.edits_due
        replies = services.extraction.RepliesDue(clock=self.clock, jobs=self.jobs)
        return services.messages.AllDue(self.edits_due, replies)

    @cached_property
    def imports_due(self) -> DueWork:
        """The same for imported messages."""
        return services.messages.AllDue(self.indexing.due, services.extraction.RepliesImported(clock=self.clock))

    @cached_property
    def sweeps(self) -> Mapping[str, services.jobs.Sweep]:
        """The sweeps that enqueue due durable work, by its kind."""
        extraction, digest = services.extraction, services.digest
        return {
            **(
                {extraction.EXTRACTION: self.extraction.sweep, extraction.EXTRACTION_RETRY: self.retries.sweep}
                if self.settings.evolution.extract_every
                else {}
            ),
            THREADS: self.moves.sweep,
            **({ATTACHMENTS: self.attachments.sweep} if self.attachments is not None else {}),
            services.evolution.EVOLUTION: self.evolutions.schedule.sweep,
            services.sessions.SUMMARY: self.summaries.sweep,
            **({digest.DIGEST: self.nightly.sweep} if self.settings.digests.digest_schedule else {}),
            services.archives.RETENTION: self.retention.sweep,
            FORGETTING: self.forgettings.sweep,
            DELETING: self.room_deletions.sweep,
            **({digest.TITLES: self.titles.sweep} if self.settings.digests.model_titles else {}),
        }


async def make_resources(
    settings: Settings,
    storage: Storage,
    url: str,
    *,
    own: Own,
    closing: Closing,
    background: bool,
    whole: bool,
) -> Resources:
    """Return everything but the storage, closed with `closing`; background work, which uses it, is closed first.
    `whole`: make every part now, else each when it is first used; with background work all are made."""
    clock, model = SystemClock(), load_link_model(compiled=settings.work.link_kernel)
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
    quotas = QuotaKeeper(common, usual=settings.quotas.limits(attachments=bool(settings.attachments.read)))
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
    resources = Resources(
        **{field.name: getattr(common, field.name) for field in fields(common)} | {"storage": storage},
        url=url,
        own=own,
        model=model,
        readiness=readiness,
        recorder=recorder,
        quotas=quotas,
        models=models,
        indexing=indexing,
        sessions=sessions,
        engine=engine,
        prompts=make_prompts(common),
        webhook=make_webhook(common),
    )
    engine.durable.before_opening(resources.make_all)
    if whole or background:
        resources.make_all()
    if background:
        resume_left_work(common, url, engine)
        expire_work(common, engine.durable)
        expire_usage(common)
    closing.push_async_callback(jobs.close)
    return resources


def _limits(settings: Settings) -> Limits:
    return Limits(
        text_chars=settings.limits.max_text_chars,
        batch_messages=settings.limits.max_batch_messages,
    )
