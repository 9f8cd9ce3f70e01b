"""Addresses of databases, and engines of PostgreSQL."""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, event, make_url
from sqlalchemy.exc import ArgumentError

from roomlore.adapters.sql.engine import WAIT_SECONDS
from roomlore.core.errors import InvalidInput

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

_FORMS = "use sqlite:///path, sqlite:// (memory), postgresql://user@host/name, or a path that ends in .db"
_POSTGRES_NAMES = {"postgres", "postgresql", "postgresql+psycopg"}
SQLITE_NAMES = {"sqlite", "sqlite+aiosqlite"}
POSTGRES_POOL = 10
ALONG_INDEXES = (
    *(
        f"SET {setting} = off"
        for setting in ("jit", "enable_seqscan", "enable_bitmapscan", "enable_hashjoin", "enable_mergejoin")
    ),
    "SET plan_cache_mode = force_generic_plan",
)
"""Every query is written for an index; these settings make PostgreSQL use one before it has statistics. So no parameter
needs its own plan, and planning, most of a short query's time, is done once."""


def parse(url: str) -> URL:
    """Return the URL. Raises `InvalidInput` if it names no supported database."""
    if not isinstance(url, str):
        raise InvalidInput("database_address_not_text", value=f"{url!r:.60}", forms=_FORMS)
    if "://" not in url and url.endswith(".db"):
        return URL.create("sqlite", database=url)
    try:
        parsed = make_url(url)
    except ArgumentError as exc:
        raise InvalidInput("database_address_invalid", forms=_FORMS) from exc
    if parsed.drivername not in SQLITE_NAMES | _POSTGRES_NAMES:
        raise InvalidInput("database_kind_unsupported", kind=repr(parsed.drivername), forms=_FORMS)
    return parsed


def _prepared(connection: Any, _record: Any) -> None:
    """Prepare a new connection. Behind a pooler that lends its sessions for single transactions, statements are not
    prepared and settings are not changed: both would stay in a session of others."""
    try:
        cursor = connection.cursor()
        if _is_pooled(connection, cursor):
            connection.driver_connection.prepare_threshold = None
        else:
            for setting in ALONG_INDEXES:
                cursor.execute(setting)
        cursor.close()
        connection.commit()
    except BaseException:
        connection.close()
        raise


def _is_pooled(connection: Any, cursor: Any) -> bool:
    """Return True if the session is not the one that answered the connection: PgBouncer makes numbers of its own up."""
    cursor.execute("SELECT pg_backend_pid()")
    return bool(cursor.fetchone()[0] != connection.driver_connection.info.backend_pid)


def postgres_engine(url: URL) -> "AsyncEngine":
    """Return an engine in autocommit mode. Raises `InvalidInput` if the extra is missing."""
    if find_spec("psycopg") is None:
        raise InvalidInput("postgres_not_installed")
    from sqlalchemy.ext.asyncio import create_async_engine

    from roomlore.adapters.sql import halves

    halves.register()
    engine = create_async_engine(
        url.set(drivername="postgresql+psycopg"),
        isolation_level="AUTOCOMMIT",
        paramstyle="format",
        pool_size=POSTGRES_POOL,
        pool_timeout=WAIT_SECONDS,
        pool_reset_on_return=None,
        connect_args={"connect_timeout": 10},
    )
    event.listen(engine.sync_engine, "connect", _prepared)
    return engine
