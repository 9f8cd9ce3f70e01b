"""The session cache in a Redis server. The package `redis` is loaded when a cache is opened."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator

from roomlore.core import DEFAULT_TENANT
from roomlore.core.errors import InvalidInput
from roomlore.core.health import Finding, say
from roomlore.ports.backends import CACHES, Backend, Extra, Host, Section, setting
from roomlore.ports.coordination import SessionCache

TIMEOUT_SECONDS = 0.25
"""After it a call goes on without Redis, as the database answers sooner than that."""


def open_redis(url: str, *, timeout_seconds: float) -> SessionCache:
    """Return a cache in the Redis server (or a compatible one) at `url`: `redis://`, `rediss://` (TLS) or `unix://`.

    No request is sent yet. Each call ends within `timeout_seconds`, connecting included. Raises `InvalidInput` for an
    invalid url, and if the extra is not installed.
    """
    if find_spec("redis") is None:
        raise InvalidInput("redis_not_installed")
    from roomlore.adapters.redis.cache import CONNECTIONS, RedisSessions, connections_to

    return RedisSessions(connections_to(url, most=CONNECTIONS), timeout_seconds=timeout_seconds)


def _address(value: Any) -> Any:
    if isinstance(value, str) and value and not value.startswith(("redis://", "rediss://", "unix://")):
        raise ValueError("no address of a Redis")
    return value


class RedisSettings(Section):
    """Sessions in a Redis."""

    section: ClassVar[str] = "redis"
    redis_url: Annotated[str, BeforeValidator(_address)] = setting(
        "",
        "A Redis that keeps sessions at hand; without one the database is asked alone.",
        form="a URL such as redis://localhost:6379/0",
    )


def _open(settings: RedisSettings, _: Host) -> SessionCache:
    return open_redis(settings.redis_url, timeout_seconds=TIMEOUT_SECONDS)


async def _probe(settings: RedisSettings, host: Host, _: float) -> Sequence[Finding]:
    cache = _open(settings, host)
    try:
        await cache.get(tenant=DEFAULT_TENANT, conversation_id=_NO_SESSION)
    finally:
        await cache.close()
    return [Finding("redis", "ok", say("backend.answers"))]


_NO_SESSION = "roomlore-doctor"
"""A conversation that no session has."""
REDIS = Backend(
    kind=CACHES,
    name="redis",
    open=_open,
    settings=RedisSettings,
    lacks=lambda settings: "" if settings.redis_url else "redis_url is not set; give the server's address.",
    probe=_probe,
    slow_ms=50,
    extra=Extra("redis", "redis"),
)
