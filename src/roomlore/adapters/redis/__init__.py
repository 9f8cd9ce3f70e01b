"""The session cache in a Redis server. The package `redis` is loaded when a cache is opened."""

from importlib.util import find_spec

from roomlore.core.errors import InvalidInput
from roomlore.ports.coordination import SessionCache


def open_redis(url: str, *, timeout_seconds: float) -> SessionCache:
    """Return a cache in the Redis server (or a compatible one) at `url`: `redis://`, `rediss://` (TLS) or `unix://`.

    No request is sent yet. Each call ends within `timeout_seconds`, connecting included. Raises `InvalidInput` for an
    invalid url, and if the extra is not installed.
    """
    if find_spec("redis") is None:
        raise InvalidInput("Redis needs the extra: pip install 'roomlore[redis]'.")
    from roomlore.adapters.redis.cache import CONNECTIONS, RedisSessions, connections_to

    return RedisSessions(connections_to(url, most=CONNECTIONS), timeout_seconds=timeout_seconds)
