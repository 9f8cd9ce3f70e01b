"""Recall, sessions and replies, made from the settings."""

from contextlib import AsyncExitStack

from roomlore.adapters.prompts import PackagedPrompts
from roomlore.adapters.redis import open_redis
from roomlore.core.recall.options import RecallOptions
from roomlore.core.sessions.window import WindowOptions
from roomlore.ports.coordination import SessionCache
from roomlore.ports.durable import DurableWork
from roomlore.ports.language import Embedder, Summarizer
from roomlore.ports.recall import Recall
from roomlore.ports.storage import SESSIONS
from roomlore.services.jobs import counted
from roomlore.services.models import ModelService
from roomlore.services.recall import FactVectors, KnownForReplies, RecallCache, RecallParts, ShownBefore
from roomlore.services.replies import Background, ReplyOptions, ReplyParts
from roomlore.services.sessions import (
    SUMMARY,
    AutoCheckpoints,
    Checkpointer,
    LaterSummaries,
    Offers,
    SegmentCache,
    SessionParts,
    SessionReader,
    Summaries,
    signing_key,
)
from roomlore.settings import Settings
from roomlore.wiring.models import Common

_SWEEP_SECONDS = 5.0
_SHARE_OF_VECTORS = 0.5
"""The share of the recall time for vectors, so that a slow embedder costs a reply no facts."""


def make_recall(common: Common, embedder: Embedder | None) -> RecallParts:
    """Return the parts of recall; nothing is read yet. `embedder`: closed by its maker."""
    return RecallParts(
        enabled=common.settings.enabled,
        options=recall_options(common.settings),
        cache=RecallCache(storage=common.storage, tokens=common.tokens, clock=common.clock),
        vectors=FactVectors(embedder, timeout_seconds=common.settings.recall_timeout_seconds),
        shown=ShownBefore(),
        tokens=common.tokens,
        clock=common.clock,
        telemetry=common.telemetry,
    )


def recall_options(settings: Settings) -> RecallOptions:
    """Return the settings of recall."""
    return RecallOptions(
        max_tokens=settings.max_injection_tokens,
        max_context_turns=settings.max_context_turns,
        similarity_weight=settings.similarity_weight,
        confidence_weight=settings.confidence_weight,
        similarity=settings.similarity,
        scale=settings.similarity_scale,
        sticky=settings.sticky_facts,
        half_life_days=settings.strength_half_life_days,
    )


_SWEEP_SECONDS = 5.0


async def make_sessions(common: Common, summarizer: Summarizer | None) -> SessionParts:
    """Return the parts that all sessions share. Redis is not contacted yet. Raise `StorageUnavailable`."""
    options = WindowOptions(
        threshold=common.settings.token_threshold_ratio,
        recent_turns=common.settings.recent_turns,
        window=common.settings.model_context_window,
    )
    remote = _cache(common.settings, common.closing)
    cache = SegmentCache(
        cache=remote,
        key=await signing_key(common.storage) if remote else b"",
        clock=common.clock,
        telemetry=common.telemetry,
        seconds=common.settings.session_ttl_seconds,
        recent_turns=options.recent_turns,
    )
    if summarizer is not None:
        common.closing.push_async_callback(summarizer.close)
    offers = Offers()
    reader = SessionReader(storage=common.storage, cache=cache, clock=common.clock, telemetry=common.telemetry)
    checkpointer = Checkpointer(
        storage=common.storage,
        tokens=common.tokens,
        offers=offers,
        clock=common.clock,
        ids=common.ids,
        telemetry=common.telemetry,
        summary_chars=common.limits.text_chars,
    )
    automatic = AutoCheckpoints(
        on=common.settings.auto_checkpoint,
        storage=common.storage,
        reader=reader,
        checkpointer=checkpointer,
        summaries=Summaries(summarizer=summarizer, tokens=common.tokens, max_tokens=common.settings.summary_max_tokens),
        jobs=common.jobs,
        clock=common.clock,
        telemetry=common.telemetry,
        options=options,
    )
    if common.background and common.settings.auto_checkpoint:
        common.jobs.handle(SESSIONS, automatic.run, every_seconds=_SWEEP_SECONDS)
    return SessionParts(
        storage=common.storage,
        cache=cache,
        reader=reader,
        checkpointer=checkpointer,
        automatic=automatic,
        offers=offers,
        tokens=common.tokens,
        clock=common.clock,
        ids=common.ids,
        telemetry=common.telemetry,
        limits=common.limits,
        options=options,
    )


def make_later_summaries(common: Common, sessions: SessionParts, durable: DurableWork) -> LaterSummaries:
    """Return the summaries as durable work."""
    later = LaterSummaries(automatic=sessions.automatic, durable=durable, ids=common.ids)
    durable.define(SUMMARY, counted(SUMMARY, later.work, clock=common.clock, telemetry=common.telemetry))
    return later


def _cache(settings: Settings, closing: AsyncExitStack) -> SessionCache | None:
    if not settings.redis_url:
        return None
    cache = open_redis(settings.redis_url, timeout_seconds=settings.redis_timeout_seconds)
    closing.push_async_callback(cache.close)
    return cache


_SHARE_OF_VECTORS = 0.5
"""Of the time recalling may take, so that a slow embedder costs a reply no facts."""


def make_replies(common: Common, models: ModelService) -> ReplyParts:
    """Closed before what it uses: replies that are being stored come to their end."""
    background = Background()
    common.closing.push_async_callback(background.close)
    return ReplyParts(
        storage=common.storage,
        models=models,
        prompts=PackagedPrompts(),
        tokens=common.tokens,
        clock=common.clock,
        ids=common.ids,
        telemetry=common.telemetry,
        background=background,
        limits=common.limits,
        options=reply_options(common.settings),
    )


def make_recalls(settings: Settings, recall: RecallParts) -> tuple[Recall, ...]:
    """Return the sources of memories for replies; none if recall is off."""
    wait = settings.recall_timeout_seconds * _SHARE_OF_VECTORS
    return (KnownForReplies(recall, wait_seconds=wait),) if settings.enabled else ()


def reply_options(settings: Settings) -> ReplyOptions:
    """Return the settings of replies."""
    return ReplyOptions(
        model=settings.reply_model,
        max_tokens=settings.reply_max_tokens,
        window=settings.model_context_window,
        max_tool_iterations=settings.max_tool_iterations,
        content_filter_text=settings.content_filter_text,
        length_text=settings.length_text,
        recall_max_tokens=settings.recall_max_tokens,
        recall_timeout_seconds=settings.recall_timeout_seconds,
    )
