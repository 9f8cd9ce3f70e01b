"""The checks of `roomlore doctor`: packages, settings, the database, servers, models and their keys."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from functools import partial
from importlib.util import find_spec
from typing import Any, Literal

from roomlore.adapters.chat import can_chat
from roomlore.adapters.cron import Cron
from roomlore.adapters.inprocess import SystemClock
from roomlore.adapters.telemetry import PrometheusTelemetry
from roomlore.adapters.weights import load_link_model
from roomlore.core.access_tokens import TOKEN_SCOPES
from roomlore.core.addresses import is_loopback
from roomlore.core.chat import ModelRegistry, Provider
from roomlore.core.errors import StorageDamaged
from roomlore.core.health import Finding, Verdict, judge_database, judge_disk, judge_integrity, judge_skew, say
from roomlore.ports.backends import (
    CHAT,
    DURABLE,
    EMBEDDERS,
    KINDS,
    VECTORS,
    Backend,
    ChatBackend,
    DurableBackend,
    Host,
    Kind,
)
from roomlore.ports.coordination import Clock
from roomlore.services.health import Probe, examine
from roomlore.services.models import ModelService, ModelTrial
from roomlore.settings import Settings, known_fields
from roomlore.settings.registry import backends_of, registered
from roomlore.storage.inspection import check_pages, folder_of, is_there, look_at
from roomlore.wiring.indexing import make_embedder
from roomlore.wiring.models import make_models, oauth_missing, usable

_SURFACES: Mapping[str, str] = {
    "server": "uvicorn",
    "postgres": "psycopg",
    "openai-agents": "agents",
    "langchain": "langchain",
    "langgraph": "langgraph",
    "llama-index": "llama_index.core",
    "google-adk": "google.adk",
    "agent-framework": "agent_framework",
    "mem0": "roomlore_integrations",
    "kernel": "roomlore_kernel",
    "mcp": "mcp",
}
"""The extras that bring no backend, each with a module that it provides."""
_OWN = {"server": "roomlore_server", "mcp": "roomlore_server"} | dict.fromkeys(
    ("openai-agents", "langchain", "langgraph", "llama-index", "google-adk", "agent-framework"), "roomlore_integrations"
)
"""The packages of this project that these extras bring too."""
Reach = Callable[[Provider, str | None, float], Awaitable[None]]
_SHARE_FOR_PAGES = 0.9
"""The share of a probe's time that the page check may take: a late result is reported as such."""


def external_probes(settings: Settings, *, clock: Clock, ask: bool, embed: bool, timeout_seconds: float) -> list[Probe]:
    """Return the probes of external systems. `ask`: send a short request to every usable model; `embed`: embed a test
    text."""
    probes = [
        Probe(
            "embedder",
            lambda: _embedder(settings, clock, ask=embed),
            slow_ms=1000 if embed and settings.candidates(EMBEDDERS) else None,
        ),
        *_backends(settings, clock, timeout_seconds),
        Probe("oauth", lambda: _issuer(settings, timeout_seconds), slow_ms=2000),
        *_providers(settings, timeout_seconds),
    ]
    return [*probes, Probe("models", lambda: _models(settings, clock))] if ask else probes


async def _embedder(settings: Settings, clock: Clock, *, ask: bool) -> Sequence[Finding]:
    if settings.candidates(EMBEDDERS) and not ask:
        return [Finding("embedder", "ok", say("embedder.quiet", embedder=settings.named(EMBEDDERS)))]
    embedder = make_embedder(settings, clock)
    if embedder is None:
        return [Finding("embedder", "off", say("embedder.off"))]
    try:
        await embedder.embed(["ready 准备好了"], kind="query")
    finally:
        await embedder.close()
    model = embedder.model
    return [Finding("embedder", "ok", say("embedder.answers", name=model.name, dimensions=model.dimensions))]


def _backends(settings: Settings, clock: Clock, seconds: float) -> Iterator[Probe]:
    """Yield the probes that backends bring."""
    host = Host(url=settings.database.database_url, clock=clock)
    for backend in (backend_ for kind in KINDS for backend_ in backends_of(kind).values() if backend_.probe):
        used = _chosen(settings, backend.kind) is backend
        look = partial(_backend, backend, settings, host, seconds=seconds, used=used)
        yield Probe(backend.name, look, slow_ms=backend.slow_ms if used else None)


def _chosen(settings: Settings, kind: Kind[Any]) -> Backend[Any, Any] | None:
    return next(iter(settings.candidates(kind)), None)


async def _backend(
    backend: Backend[Any, Any], settings: Settings, host: Host, *, seconds: float, used: bool
) -> Sequence[Finding]:
    if not used:
        return [Finding(backend.name, "off", backend.kind.off or say("backend.off"))]
    if backend.kind is VECTORS and not settings.candidates(EMBEDDERS):
        return [Finding(backend.name, "warn", say("vectors.idle"), say("vectors.idle.do"))]
    assert backend.probe is not None
    return await backend.probe(settings.of(backend), host, seconds)


async def _attachments(settings: Settings, clock: Clock, *, wait: bool) -> Finding:
    """Return what is known of attachments. `wait`: True if some are to be described."""
    if not settings.attachments.read:
        return Finding("attachments", "off", say("attachments.off"))
    if not can_chat():
        return Finding("attachments", "fail", say("attachments.extra"), say("attachments.extra.do"))
    async with AsyncExitStack() as closing:
        models = make_models(settings, clock=clock, telemetry=PrometheusTelemetry(clock), closing=closing)
        named = filter(None, (settings.attachments.caption_model, settings.attachments.transcript_model))
        mute = [model for model in named if not await models.has_provider(model)]
    if mute:
        state = say("attachments.mute", models=", ".join(mute))
        return Finding("attachments", "fail", state, say("attachments.mute.do"))
    if wait:
        return Finding("attachments", "ok", say("attachments.wait"), say("attachments.wait.do"))
    return Finding("attachments", "ok", say("attachments.on", kinds=", ".join(settings.attachments.read)))


async def _issuer(settings: Settings, timeout_seconds: float) -> Sequence[Finding]:
    """Return what is found at the authorization server; nothing if none is set. Raise `InvalidInput`, `Unavailable`."""
    server = settings.server
    if not server.oauth_issuer:
        return []
    try:
        from roomlore.adapters.oauth import look_at_issuer
    except ModuleNotFoundError as error:
        raise oauth_missing(error) from error
    look = await look_at_issuer(server.oauth_issuer, scopes=TOKEN_SCOPES, timeout_seconds=timeout_seconds)
    finding_text = say("oauth.answers", issuer=server.oauth_issuer, keys=look.keys, resource=server.oauth_resource)
    if not look.proves_codes:
        return [Finding("oauth", "warn", finding_text, say("oauth.pkce.do"))]
    if look.lacks:
        return [Finding("oauth", "warn", finding_text, say("oauth.scopes.do", scopes=", ".join(look.lacks)))]
    return [Finding("oauth", "ok", finding_text)]


def _providers(settings: Settings, timeout_seconds: float) -> list[Probe]:
    registry = ModelRegistry.read(settings.language_models.models, settings.language_models.providers)
    client = next(iter(settings.candidates(CHAT)), None) or next(iter(backends_of(CHAT).values()))
    assert isinstance(client, ChatBackend)
    keys = settings.environment_keys(registry.key_variables())
    chosen = [offer.provider.name for entry in registry.list_available_models() for offer in entry.offers]
    offered = {offer.provider.name: offer.provider for entry in registry.all() for offer in entry.offers}
    tested_providers = [
        provider
        for provider in offered.values()
        if provider.name in chosen or provider.key_variable is None or provider.key_variable in keys
    ]
    probes = [
        _provider(provider, keys.get(provider.key_variable or ""), reach=client.reach, seconds=timeout_seconds)
        for provider in tested_providers
    ]
    read = (settings.attachments.caption_model, settings.attachments.transcript_model)
    writing = {offer.provider.name for entry in registry.all() if entry.model_id not in read for offer in entry.offers}
    return probes or [Probe("providers", partial(_no_provider, [offered[name] for name in offered if name in writing]))]


async def _no_provider(built_in: Sequence[Provider]) -> Sequence[Finding]:
    """Return what is found if no provider of a model that writes can be asked. roomlore works without one."""
    if not built_in:
        return []
    variables = ", ".join(dict.fromkeys(provider.key_variable for provider in built_in if provider.key_variable))
    todo = say("providers.builtin.do", variables=variables)
    return [Finding("providers", "off", say("providers.builtin"), todo)]


def _provider(provider: Provider, key: str | None, *, reach: Reach, seconds: float) -> Probe:
    """Return the probe of a provider that a model of the settings names, or that has a key."""
    part = f"provider {provider.name}"

    async def look() -> Sequence[Finding]:
        if provider.key_variable and not key:
            finding_text = say("provider.keyless", variable=provider.key_variable)
            return [Finding(part, "warn", finding_text, say("provider.keyless.do", variable=provider.key_variable))]
        await reach(provider, key, seconds)
        answers = say("provider.keyed" if key else "provider.answers", variable=provider.key_variable)
        return [Finding(part, "ok", answers)]

    return Probe(part, look, slow_ms=2000)


async def _models(settings: Settings, clock: Clock) -> Sequence[Finding]:
    async with AsyncExitStack() as closing:
        models = make_models(settings, clock=clock, telemetry=PrometheusTelemetry(clock), closing=closing)
        return [finding for trials in await _tried(models) for finding in _of_trials(trials)]


async def _tried(models: ModelService) -> list[list[ModelTrial]]:
    standings = await models.list_available_models(internal=True)
    return [await models.test(standing.model_id) for standing in standings if standing.usable]


def _of_trials(trials: Sequence[ModelTrial]) -> list[Finding]:
    """Return the findings for one model: a failing provider is a warning if another one answers."""
    bad: Verdict = "fail" if all(trial.error for trial in trials) else "warn"
    return [_of_trial(trial, bad) for trial in trials]


def _of_trial(trial: ModelTrial, bad: Verdict) -> Finding:
    part = f"model {trial.model_id}"
    if trial.error:
        finding_text = say("model.fails", provider=trial.provider, error=trial.error)
        return Finding(part, bad, finding_text, say("model.fails.do"))
    return Finding(part, "ok", say("model.answers", provider=trial.provider), ms=trial.seconds * 1000)


def is_missing(settings: Settings) -> bool:
    """Return True if the database is a file that does not exist."""
    return folder_of(settings.database.database_url) is not None and not is_there(settings.database.database_url)


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
        Probe("linker", lambda: _at_once(_linker(settings))),
        Probe("work", lambda: _work(settings, clock), slow_ms=2000),
        Probe("schedule", lambda: _at_once(_schedule(settings, clock.now()))),
        *external_probes(settings, clock=clock, ask=ask, embed=embed, timeout_seconds=timeout_seconds),
    ]
    return await examine(probes, clock=clock, timeout_seconds=timeout_seconds)


async def _at_once(*findings: Finding) -> Sequence[Finding]:
    return findings


def _settings(settings: Settings) -> Finding:
    names = [name for name in known_fields() if settings.source(name) != "default"]
    sources = sorted({settings.source(name) for name in names})
    known = {"count": len(names), "sources": ", ".join(sources), "strange": ", ".join(settings.ignored)}
    if settings.ignored:
        finding_text = say("settings.some.strange" if names else "settings.none.strange", **known)
        return Finding("settings", "warn", finding_text, say("settings.strange.do"))
    return Finding("settings", "ok", say("settings.some" if names else "settings.none", **known))


def extras() -> Mapping[str, str]:
    """Return the extras, each with a module that it provides."""
    return {**_SURFACES, **{backend_.extra.name: backend_.extra.module for backend_ in registered() if backend_.extra}}


def _extras(settings: Settings) -> list[Finding]:
    needs = _needed(settings)
    shared = {backend_.extra.name for backend_ in registered() if backend_.extra and backend_.extra.shared}
    there = [
        name
        for name, module in extras().items()
        if _is_there(module) and _is_there(_OWN.get(name, module)) and (name in needs or name not in shared)
    ]
    needed = sorted(needs - set(there))
    used = ", ".join(name for name in there if name in needs) or "–"
    known = {"there": ", ".join(there), "used": used, "missing": ", ".join(needed)}
    if needed:
        finding_text = say("extras.some.missing" if there else "extras.none.missing", **known)
        return [Finding("extras", "fail", finding_text, say("extras.missing.do", extras=",".join(needed)))]
    return [Finding("extras", "ok", say("extras.some" if there else "extras.none", **known))]


def _is_there(module: str) -> bool:
    """Return True if the module can be found. The parent package is checked first: without it the lookup itself would
    fail."""
    return find_spec(module.partition(".")[0]) is not None and find_spec(module) is not None


def _needed(settings: Settings) -> set[str]:
    chosen = [_chosen(settings, kind) for kind in KINDS if kind.setting != "durable_work" or _is_named(settings, kind)]
    backends = {
        backend_.extra.name for backend_ in chosen if backend_ and backend_.extra and _is_at_work(settings, backend_)
    }
    postgres = {"postgres"} if settings.database.database_url.startswith("postgres") else set()
    return backends | postgres | ({"mcp"} if settings.server.oauth_issuer else set())


def _is_named(settings: Settings, kind: Kind[Any]) -> bool:
    return settings.named(kind) in backends_of(kind)


def _is_at_work(settings: Settings, backend: Backend[Any, Any]) -> bool:
    if backend.kind is VECTORS:
        return bool(settings.candidates(EMBEDDERS))
    return backend.kind is not CHAT or bool(settings.language_models.models)


async def _database(settings: Settings, clock: Clock) -> list[Finding]:
    look = await look_at(settings.database.database_url, now=clock.now)
    if look.engine == "SQLite" and folder_of(settings.database.database_url) is None:
        return [Finding("database", "warn", say("database.memory"), say("database.memory.do"))]
    findings = [judge_database(look)]
    findings += [] if look.skew_seconds is None else [judge_skew(look.skew_seconds)]
    store = settings.named(VECTORS)
    named = backends_of(VECTORS).get(store)
    if named is not None and named.in_database and store not in look.offers:
        findings.append(Finding("vectors", "fail", say("vectors.none", name=store), say("vectors.none.do", name=store)))
    findings.append(await _attachments(settings, clock, wait=look.attachments_wait))
    if not is_loopback(settings.server.host) and not look.has_keys:
        findings.append(Finding("keys", "fail", say("keys.none", host=settings.server.host), say("keys.none.do")))
    return findings


async def _integrity(settings: Settings, how: str, seconds: float) -> list[Finding]:
    """Check the database's pages; return nothing if there is no database yet, or one in memory. A large one may take
    longer than the time limit."""
    on_sqlite = not settings.database.database_url.startswith("postgres")
    if how == "off" or (on_sqlite and not is_there(settings.database.database_url)):
        return []
    try:
        async with asyncio.timeout(seconds * _SHARE_FOR_PAGES):
            return [judge_integrity(*await check_pages(settings.database.database_url, thorough=how == "thorough"))]
    except StorageDamaged as error:
        return [judge_integrity("sqlite", [str(error)])]
    except TimeoutError:
        return [Finding("integrity", "warn", say("integrity.late", seconds=seconds), say("integrity.late.do"))]


def _disk(settings: Settings) -> list[Finding]:
    folder = folder_of(settings.database.database_url)
    if folder is None or not folder.is_dir():
        return []
    return [judge_disk(shutil.disk_usage(folder).free)]


def _linker(settings: Settings) -> Finding:
    if not settings.work.link_kernel:
        return Finding("linker", "ok", say("linker.off"))
    kernel = load_link_model(compiled=True).kernel
    if kernel is not None:
        return Finding("linker", "ok", say("linker.compiled", form=kernel.form))
    if find_spec("roomlore_kernel") is None:
        return Finding("linker", "ok", say("linker.numpy"), say("linker.numpy.do"))
    return Finding("linker", "warn", say("linker.other"), say("linker.other.do"))


async def _work(settings: Settings, clock: Clock) -> list[Finding]:
    url = settings.work.work_database_url or settings.database.database_url
    engine = (await usable(DURABLE, settings, Host(url=url, clock=clock)))[0]
    assert isinstance(engine, DurableBackend)
    if engine.is_left is None:
        return [_work_in_process(settings)]
    left = await asyncio.to_thread(engine.is_left, url)
    finding_text = say("work.left" if left else "work.none", engine=engine.name)
    if left and not settings.work.work_in_server:
        return [Finding("work", "warn", finding_text, say("work.left.do"))]
    return [Finding("work", "ok", finding_text)]


def _work_in_process(settings: Settings) -> Finding:
    if settings.database.database_url.startswith("postgres"):
        return Finding("work", "warn", say("work.process"), say("work.process.do"))
    return Finding("work", "ok", say("work.process"))


def _schedule(settings: Settings, now: datetime) -> Finding:
    if not settings.evolution.evolve_schedule:
        return Finding("schedule", "off", say("schedule.off"))
    zone = settings.search.zone
    coming = Cron(settings.evolution.evolve_schedule, zone).next(now).astimezone(zone)
    finding_text = say("schedule.next", at=f"{coming:%Y-%m-%d %H:%M}", zone=settings.search.zone.key)
    return Finding("schedule", "ok", finding_text)
