"""What `roomlore doctor` looks at outside this process and its database: servers, models and their keys."""

from collections.abc import Sequence
from contextlib import AsyncExitStack

from roomlore.adapters.chat import reach_provider
from roomlore.adapters.inprocess.telemetry import PrometheusTelemetry
from roomlore.adapters.langfuse import ask_langfuse
from roomlore.adapters.redis import open_redis
from roomlore.adapters.sentry import reach_sentry
from roomlore.core.chat.registry import ModelRegistry, Provider
from roomlore.core.health import Finding, Verdict
from roomlore.core.health_words import say
from roomlore.core.models import DEFAULT_TENANT
from roomlore.ports.coordination import Clock
from roomlore.ports.vectors import MESSAGES
from roomlore.services.doctor import Probe
from roomlore.services.models import ModelService, ModelTrial
from roomlore.settings import Settings
from roomlore.wiring.indexing import make_embedder, make_qdrant, uses_qdrant
from roomlore.wiring.models import make_models
from roomlore.wiring.prompts import KEPT_ELSEWHERE

_NO_SESSION = "roomlore-doctor"
"""A conversation that nobody has."""


def outside_probes(settings: Settings, *, clock: Clock, ask: bool, embed: bool, timeout_seconds: float) -> list[Probe]:
    """`ask`: asks every model that can be asked for a word; `embed`: asks the embedder for a vector."""
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
    """`chosen`: a model of the settings names it; the others are for what ships, which goes without models too."""
    part = f"provider {provider.name}"

    async def look() -> Sequence[Finding]:
        if provider.key_variable and not key:
            said = say("provider.keyless", variable=provider.key_variable)
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
    """Of one model: a provider that fails is a warning where another answers."""
    bad: Verdict = "fail" if all(trial.error for trial in trials) else "warn"
    return [_of_trial(trial, bad) for trial in trials]


def _of_trial(trial: ModelTrial, bad: Verdict) -> Finding:
    part = f"model {trial.model_id}"
    if trial.error:
        said = say("model.fails", provider=trial.provider, error=trial.error)
        return Finding(part, bad, said, say("model.fails.do"))
    return Finding(part, "ok", say("model.answers", provider=trial.provider), ms=trial.seconds * 1000)
