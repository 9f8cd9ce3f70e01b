"""The session window: its cache, its checkpoints, and what makes them."""

from contextlib import AsyncExitStack

from roomlore.adapters.redis import open_redis
from roomlore.core.intake import Limits
from roomlore.core.sessions.window import WindowOptions
from roomlore.ports.coordination import Clock, Ids, Jobs, SessionCache, Telemetry
from roomlore.ports.durable import DurableWork
from roomlore.ports.language import Summarizer, TokenCounter
from roomlore.ports.sessions import SESSIONS
from roomlore.ports.storage import Storage
from roomlore.services.jobs import counted
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
)
from roomlore.settings import Settings

_SWEEP_SECONDS = 5.0


def make_sessions(
    settings: Settings,
    storage: Storage,
    summarizer: Summarizer | None,
    *,
    tokens: TokenCounter,
    clock: Clock,
    ids: Ids,
    telemetry: Telemetry,
    jobs: Jobs,
    limits: Limits,
    closing: AsyncExitStack,
    background: bool,
) -> SessionParts:
    """What the sessions of all tenants share. Redis is not asked for anything yet."""
    options = WindowOptions(
        threshold=settings.token_threshold_ratio,
        recent_turns=settings.recent_turns,
        window=settings.model_context_window,
    )
    cache = SegmentCache(
        cache=_cache(settings, closing),
        clock=clock,
        telemetry=telemetry,
        seconds=settings.session_ttl_seconds,
        recent_turns=options.recent_turns,
    )
    if summarizer is not None:
        closing.push_async_callback(summarizer.close)
    offers = Offers()
    reader = SessionReader(storage=storage, cache=cache, clock=clock, telemetry=telemetry)
    checkpointer = Checkpointer(
        storage=storage,
        tokens=tokens,
        offers=offers,
        clock=clock,
        ids=ids,
        telemetry=telemetry,
        summary_chars=limits.text_chars,
    )
    automatic = AutoCheckpoints(
        on=settings.auto_checkpoint,
        storage=storage,
        reader=reader,
        checkpointer=checkpointer,
        summaries=Summaries(summarizer=summarizer, tokens=tokens, max_tokens=settings.summary_max_tokens),
        jobs=jobs,
        clock=clock,
        telemetry=telemetry,
        options=options,
    )
    if background and settings.auto_checkpoint:
        jobs.handle(SESSIONS, automatic.run, every_seconds=_SWEEP_SECONDS)
    return SessionParts(
        storage=storage,
        cache=cache,
        reader=reader,
        checkpointer=checkpointer,
        automatic=automatic,
        offers=offers,
        tokens=tokens,
        clock=clock,
        ids=ids,
        telemetry=telemetry,
        limits=limits,
        options=options,
    )


def make_later_summaries(
    sessions: SessionParts, durable: DurableWork, *, clock: Clock, ids: Ids, telemetry: Telemetry
) -> LaterSummaries:
    """Summaries as durable work."""
    later = LaterSummaries(automatic=sessions.automatic, durable=durable, ids=ids)
    durable.define(SUMMARY, counted(SUMMARY, later.work, clock=clock, telemetry=telemetry))
    return later


def _cache(settings: Settings, closing: AsyncExitStack) -> SessionCache | None:
    if not settings.redis_url:
        return None
    cache = open_redis(settings.redis_url, timeout_seconds=settings.redis_timeout_seconds)
    closing.push_async_callback(cache.close)
    return cache
