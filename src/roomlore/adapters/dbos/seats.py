"""How processes know of each other which live: a lock that the system lets go of when its holder dies.

DBOS writes beside running work who runs it, and takes up at its start what its own name left unfinished. Whether
another name still lives it does not know without its hosted service; these locks say it, at once and without clocks.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from hashlib import blake2b
from typing import Protocol

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import SQLAlchemyError


class Seat(Protocol):
    name: str
    """What DBOS writes beside the work this process runs."""

    def take(self) -> bool:
        """Makes this process one that works; False while no other may work here beside the one that does."""

    def keep(self) -> None:
        """Called now and then: takes the seat again where it was lost."""

    def if_dead(self, name: str) -> AbstractContextManager[bool]:
        """A context: whether who had this name is gone. Nobody takes that name, or asks the same, until it ends."""

    def leave(self) -> None: ...


class SqliteSeat:
    """One process works on a file at a time, under one name for all, so what a dead one left DBOS itself takes up when
    the next sits down. The lock is that of an empty SQLite file: it works wherever SQLite does."""

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
        """The system keeps it."""

    @contextmanager
    def if_dead(self, name: str) -> Iterator[bool]:
        """All have one name, and who asks has it."""
        yield False

    def leave(self) -> None:
        if self._lock:
            self._lock.close()
        self._lock = None


class PostgresSeat:
    """A session's advisory lock for each process: a proxy that hands sessions round (PgBouncer in transaction mode)
    will not do."""

    def __init__(self, engine: Engine, name: str) -> None:
        self.name = name
        self._engine = engine
        self._session: Connection | None = None

    def take(self) -> bool:
        self._session = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        self._session.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _key(self.name)})
        return True

    def keep(self) -> None:
        """Where the connection broke others may have thought this process dead and begun its work again. What it then
        finishes is not written: DBOS sees that the work is no longer its own."""
        try:
            self._connection.execute(text("SELECT 1"))
        except SQLAlchemyError:  # the first to stumble over a broken connection may have been somebody else
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
        """The lock goes with the session, so the connection must not go back to the pool."""
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
