"""The locations of durable work, and the process locks that show which processes are alive. Loads no DBOS."""

import os
import secrets
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import URL, Connection, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from roomlore.core.errors import InvalidInput, StorageUnavailable


class ProcessLock(Protocol):
    name: str
    """The name that DBOS stores with the work of this process."""

    def take(self) -> bool:
        """Take the lock. Return False while another process works and no second one may."""

    def keep(self) -> None:
        """Check the lock, called regularly, and take it again if it was lost."""

    def if_dead(self, name: str) -> AbstractContextManager[bool]:
        """Return a context manager that gives True if the process with this name is dead. While it is open, no other
        process takes that name or checks it."""

    def leave(self) -> None: ...


class SqliteLock:
    """One process at a time works on a file, under one name for all, so DBOS itself resumes the work of a dead process
    when the next one takes the lock. The lock is that of an empty SQLite file, which works wherever SQLite does."""

    name = "roomlore"

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock: sqlite3.Connection | None = None

    def take(self) -> bool:
        lock = sqlite3.connect(self._path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as exc:
            lock.close()
            if "locked" in str(exc):
                return False
            raise
        self._lock = lock
        return True

    def keep(self) -> None:
        """Do nothing: the operating system holds the lock."""

    @contextmanager
    def if_dead(self, name: str) -> Iterator[bool]:
        """Yield True: all processes share one name, and the caller holds the lock."""
        yield False

    def leave(self) -> None:
        if self._lock:
            self._lock.close()
        self._lock = None


class PostgresLock:
    """A PostgreSQL session's advisory lock for each process. It needs a session of its own, which a pooler in
    transaction mode does not give."""

    def __init__(self, engine: Engine, name: str) -> None:
        self.name = name
        self._engine = engine
        self._session: Connection | None = None

    def take(self) -> bool:
        self._session = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        try:
            self._check_own(self._session)
            self._session.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _key(self.name)})
        except BaseException:
            self.leave()
            raise
        return True

    @staticmethod
    def _check_own(session: Connection) -> None:
        """Raise an error behind a pooler, which makes up numbers of sessions."""
        info: Any = session.connection.driver_connection
        if session.execute(text("SELECT pg_backend_pid()")).scalar() != info.info.backend_pid:
            raise StorageUnavailable("durable_database_pooled")

    def keep(self) -> None:
        """Take the lock again after a lost connection. Meanwhile others may have taken this process for dead and
        restarted its work. Results of the old run are not stored, as DBOS sees that another process owns the work."""
        try:
            self._connection.execute(text("SELECT 1"))
        except SQLAlchemyError:  # another caller may have met the broken connection first
            self.leave()
            self.take()

    @contextmanager
    def if_dead(self, name: str) -> Iterator[bool]:
        key = {"key": _key(name)}
        dead = bool(self._connection.execute(text("SELECT pg_try_advisory_lock(:key)"), key).scalar())
        try:
            yield dead
        finally:
            if dead:
                self._connection.execute(text("SELECT pg_advisory_unlock(:key)"), key)

    def leave(self) -> None:
        """Release the lock. It is bound to the session, so the connection must not return to the pool."""
        session, self._session = self._session, None
        if session:
            with suppress(SQLAlchemyError):
                session.invalidate()
                session.close()

    @property
    def _connection(self) -> Connection:
        if self._session is None:
            self.take()
        assert self._session is not None
        return self._session


def _key(name: str) -> int:
    return int.from_bytes(blake2b(name.encode(), digest_size=8, person=b"roomlore").digest(), signed=True)


_FORMS = "use sqlite:///path, postgresql://user@host/name, or a path that ends in .db"
_SQLITE = {"sqlite", "sqlite+aiosqlite"}
_POSTGRES = {"postgres", "postgresql", "postgresql+psycopg"}
_FILE_PRAGMAS = (
    "PRAGMA busy_timeout = 30000",
    "PRAGMA foreign_keys = ON",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
    "PRAGMA case_sensitive_like = ON",
)
"""The first two are what DBOS sets on an engine of its own, the next two what roomlore's database has. The last one is
for LIKE, which searches by prefixes of ids."""


@dataclass(frozen=True, slots=True)
class Location:
    """The location of the work. `url`: the database that DBOS writes to."""

    url: URL

    @property
    def on_a_file(self) -> bool:
        return self.url.drivername == "sqlite"

    def engine(self, *, connections: int) -> Engine:
        if self.on_a_file:
            engine = create_engine(self.url, pool_size=connections, max_overflow=0)
            event.listen(engine, "connect", _prepare)
            return engine
        return create_engine(
            self.url,
            pool_size=connections,
            max_overflow=0,
            pool_pre_ping=True,
            connect_args={"connect_timeout": 10, "application_name": "roomlore"},
        )

    def lock(self, engine: Engine) -> ProcessLock:
        if self.on_a_file:
            return SqliteLock(f"{self.url.database}-lock")
        return PostgresLock(engine, f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}")


def retire(engine: Engine) -> None:
    """Close an engine for good. Connections still used by an abandoned thread are closed when they come back, and do
    not stay open in an unused pool."""
    event.listen(engine, "checkin", _close)
    engine.dispose()


def _close(connection: Any, record: Any) -> None:
    if connection is not None:
        record.invalidate()


def _prepare(connection: Any, _record: Any) -> None:
    """Begin transactions with SQLite's write lock, as DBOS expects of its connections."""
    connection.isolation_level = "IMMEDIATE"
    for setting in _FILE_PRAGMAS:
        connection.execute(setting)


def location_of(url: str) -> Location:
    """Return the location of the work. Raises `InvalidInput` if work cannot outlive the process."""
    parsed = _parse(url)
    if parsed.drivername in _POSTGRES:
        return Location(parsed.set(drivername="postgresql+psycopg"))
    if parsed.drivername not in _SQLITE:
        raise InvalidInput("durable_database_unsupported", kind=repr(parsed.drivername), forms=_FORMS)
    if parsed.database in (None, "", ":memory:") or str(parsed.database).startswith("file:"):
        raise InvalidInput("durable_database_in_memory", forms=_FORMS)
    path = Path(str(parsed.database)).resolve()
    return Location(URL.create("sqlite", database=str(path.with_suffix(f".dbos{path.suffix or '.db'}"))))


def _parse(url: str) -> URL:
    if "://" not in url and url.endswith(".db"):
        return URL.create("sqlite", database=url)
    try:
        return make_url(url)
    except ArgumentError as exc:
        raise InvalidInput("database_address_invalid", forms=_FORMS) from exc


_UNFINISHED = "SELECT 1 FROM {table} WHERE status IN ('ENQUEUED', 'DELAYED', 'PENDING') LIMIT 1"


def work_is_left(url: str) -> bool:
    """Return True if unfinished work, waiting or running, in any process, is stored for the database at `url`.

    Blocks. Raises `InvalidInput` for a database in memory, and `StorageUnavailable`.
    """
    location = location_of(url)
    if location.on_a_file and not Path(str(location.url.database)).exists():
        return False
    try:
        return _is_left(location)
    except SQLAlchemyError as error:
        raise StorageUnavailable("durable_database_unchecked") from error


def _is_left(location: Location) -> bool:
    schema = None if location.on_a_file else "dbos"
    engine = location.engine(connections=1)
    try:
        with engine.connect() as connection:
            if not inspect(connection).has_table("workflow_status", schema=schema):
                return False
            table = f"{schema}.workflow_status" if schema else "workflow_status"
            return connection.execute(text(_UNFINISHED.format(table=table))).first() is not None
    finally:
        engine.dispose()
