"""Sessions kept in a Redis server. The package `redis` is loaded when one is opened, and not before."""

from importlib.util import find_spec

from roomlore.core.errors import InvalidInput
from roomlore.ports.coordination import SessionCache


def open_redis(url: str, *, timeout_seconds: float) -> SessionCache:
    """A cache in the Redis server (or one that speaks as it does) at `url`: `redis://`, `rediss://` (TLS) or `unix://`.

    Nothing is asked of the server yet. Each call ends within `timeout_seconds`, connecting included. Raises
    `InvalidInput` for a url that cannot be used, and where the extra is not installed.
    """
    if find_spec("redis") is None:
        raise InvalidInput("Redis needs the extra: pip install 'roomlore[redis]'.")
    from roomlore.adapters.redis.addresses import connections_to
    from roomlore.adapters.redis.cache import CONNECTIONS, RedisSessions

    return RedisSessions(connections_to(url, most=CONNECTIONS), timeout_seconds=timeout_seconds)
