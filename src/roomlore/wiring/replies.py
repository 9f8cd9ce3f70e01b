"""Recall, sessions and replies, made from the settings."""

from __future__ import annotations

from roomlore import services
from roomlore.adapters.prompts import PackagedPrompts
from roomlore.core.recall import recollection
from roomlore.core.recall.recollection import RecallOptions
from roomlore.core.sessions.window import WindowOptions
from roomlore.ports.backends import CACHES
from roomlore.ports.coordination import SESSIONS, SessionCache
from roomlore.ports.durable import DurableWork
from roomlore.ports.language import Embedder, Summarizer
from roomlore.ports.memories import Recall
from roomlore.ports.quotas import QuotaChecks
from roomlore.services.models import ModelService
from roomlore.services.sessions import (
    SUMMARY,
    AutoCheckpoints,
    Checkpointer,
    DeferredSummaries,
    SegmentCache,
    SessionParts,
    SessionReader,
    Summaries,
    signing_key,
)
from roomlore.settings import Settings
from roomlore.wiring.models import Common, define, host_of, open_configured

_SWEEP_SECONDS = 5.0
_SHARE_OF_VECTORS = 0.5
"""The share of the recall time for vectors, so that a slow embedder costs a reply no facts."""


def make_recall(common: Common, embedder: Embedder | None) -> services.recall.RecallParts:
    """Return the parts of recall; nothing is read yet. `embedder`: closed by its maker."""
    return services.recall.RecallParts(
        backends=common,
        enabled=common.settings.recall.enabled,
        options=recall_options(common.settings, embedded=embedder is not None),
        cache=services.recall.RecallCache(storage=common.storage, tokens=common.tokens, clock=common.clock),
        vectors=services.recall.FactVectors(embedder, timeout_seconds=recollection.RECALL_SECONDS),
        shown=services.recall.ShownBefore(),
    )


def recall_options(settings: Settings, *, embedded: bool) -> RecallOptions:
    """Return the settings of recall. `embedded`: an embedder is configured."""
    similarity = settings.recall.similarity
    if similarity == "auto":
        similarity = "hybrid" if embedded else "tfidf"
    return RecallOptions(
        max_tokens=settings.recall.max_injection_tokens,
        max_context_turns=settings.recall.max_context_turns,
        similarity_weight=settings.recall.similarity_weight,
        confidence_weight=settings.recall.confidence_weight,
        similarity=similarity,
        scale=settings.recall.similarity_scale,
    )


async def make_sessions(common: Common, summarizer: Summarizer | None, own: SessionCache | None = None) -> SessionParts:
    """Return the parts that all sessions share. The cache is not contacted yet. `own`: the caller's own cache. Raise
    `StorageUnavailable`."""
    settings = common.settings.sessions
    options = WindowOptions(
        threshold=settings.token_threshold_ratio,
        recent_turns=settings.recent_turns,
        window=settings.model_context_window,
    )
    if own is None:
        remote = open_configured(CACHES, common.settings, host_of(common), common.closing)
    else:
        remote = own
        common.closing.push_async_callback(own.close)
    cache = SegmentCache(
        cache=remote,
        key=await signing_key(common.storage) if remote else b"",
        clock=common.clock,
        telemetry=common.telemetry,
        recent_turns=options.recent_turns,
    )
    if summarizer is not None:
        common.closing.push_async_callback(summarizer.close)
    reader = SessionReader(common, cache=cache)
    checkpointer = Checkpointer(common, summary_chars=common.limits.text_chars)
    automatic = AutoCheckpoints(
        common,
        on=settings.auto_checkpoint,
        reader=reader,
        checkpointer=checkpointer,
        summaries=Summaries(summarizer=summarizer, tokens=common.tokens),
        options=options,
    )
    if common.background and settings.auto_checkpoint:
        common.jobs.handle(SESSIONS, automatic.run, every_seconds=_SWEEP_SECONDS)
    return SessionParts(
        backends=common,
        cache=cache,
        reader=reader,
        checkpointer=checkpointer,
        automatic=automatic,
        limits=common.limits,
        options=options,
    )


def make_deferred_summaries(common: Common, sessions: SessionParts, durable: DurableWork) -> DeferredSummaries:
    """Return the summaries as durable work."""
    later = DeferredSummaries(automatic=sessions.automatic, durable=durable, ids=common.ids)
    define(common, durable, SUMMARY, later.work)
    return later


def make_replies(common: Common, models: ModelService, quotas: QuotaChecks) -> services.replies.ReplyParts:
    """Closed before what it uses: replies that are being stored come to their end."""
    background = services.replies.BackgroundTasks()
    common.closing.push_async_callback(background.close)
    return services.replies.ReplyParts(
        backends=common,
        models=models,
        prompts=PackagedPrompts(),
        background=background,
        later=services.replies.DeferredMessages(start=background.start, telemetry=common.telemetry),
        limits=common.limits,
        quotas=quotas,
        options=reply_options(common.settings),
    )


def make_recalls(common: Common, recall: services.recall.RecallParts) -> tuple[Recall, ...]:
    """Return the sources of memories for replies; none if recall is off."""
    if not common.settings.recall.enabled:
        return ()
    wait = recollection.RECALL_SECONDS * _SHARE_OF_VECTORS
    return (services.recall.KnownForReplies(recall, wait_seconds=wait),)


def reply_options(settings: Settings) -> services.replies.ReplyOptions:
    """Return the settings of replies."""
    return services.replies.ReplyOptions(
        model=settings.replies.reply_model,
        window=settings.sessions.model_context_window,
        content_filter_text=settings.replies.content_filter_text,
        length_text=settings.replies.length_text,
        zone=settings.search.zone,
    )
