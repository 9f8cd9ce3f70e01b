"""Whatever goes wrong with Redis, as `CacheUnavailable` that says what to do.

redis-py raises its own errors for refusals and broken connections, and plain Python errors where an answer is not in
Redis' protocol. No text of an answer is quoted: Redis repeats arguments in some of its errors.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    NoPermissionError,
    RedisError,
    ResponseError,
)
from redis.exceptions import ConnectionError as ConnectionLost
from redis.exceptions import TimeoutError as RedisTimeout

from roomlore.core.errors import CacheUnavailable

# The last two: a number that is none, and lists in lists in lists.
_TROUBLES = (RedisError, OSError, ValueError, RecursionError)

_CHECK = "Check that it runs, that its address is right, and try again."


@contextmanager
def translated() -> Iterator[None]:
    """Turns what redis-py raises into `CacheUnavailable`."""
    try:
        yield
    except _TROUBLES as exc:
        raise CacheUnavailable(_advice(_told_by_server(exc))) from exc


def is_of_another_type(exc: ResponseError) -> bool:
    """Whether the key holds a list, a set or the like, which somebody else put there."""
    return str(exc).startswith("WRONGTYPE")


def _told_by_server(exc: Exception) -> Exception:
    """On a socket file redis-py hides a refused login behind a lost connection."""
    return exc.__cause__ if isinstance(exc, ConnectionLost) and isinstance(exc.__cause__, RedisError) else exc


def _advice(exc: Exception) -> str:
    kind = type(exc).__name__
    if isinstance(exc, TimeoutError | RedisTimeout):
        return "Redis did not answer in time. Check its load and the time limit in the settings, and try again."
    if isinstance(exc, AuthenticationError | NoPermissionError):
        return f"Redis refuses the login ({kind}). Check user and password in its URL and what they may do."
    if isinstance(exc, BusyLoadingError):
        return "Redis is still loading its data. Try again when it has started."
    if isinstance(exc, ResponseError):
        return f"Redis refuses the command ({kind}). Check its memory, the database in its URL and who may write."
    if isinstance(exc, ConnectionLost | OSError):
        return f"Redis could not be reached ({kind}). {_CHECK}"
    return f"What answers is not Redis ({kind}). {_CHECK}"
