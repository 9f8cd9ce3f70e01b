"""Where work lies: the engine to reach it with, and the seat that shows others that this process lives."""

import os
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError

from roomlore.adapters.dbos.seats import PostgresSeat, Seat, SqliteSeat
from roomlore.core.errors import InvalidInput

_FORMS = "use sqlite:///path, postgresql://user@host/name, or a path that ends in .db"
_SQLITE = {"sqlite", "sqlite+aiosqlite"}
_POSTGRES = {"postgres", "postgresql", "postgresql+psycopg"}
_ON_A_FILE = (
    "PRAGMA busy_timeout = 30000",
    "PRAGMA foreign_keys = ON",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
    "PRAGMA case_sensitive_like = ON",
)
"""The first two are what DBOS sets on an engine of its own, the next two what our own database has. The last: what ids
begin with is asked for with LIKE."""


@dataclass(frozen=True, slots=True)
class Place:
    """`url`: of the database that DBOS writes to."""

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

    def seat(self, engine: Engine) -> Seat:
        if self.on_a_file:
            return SqliteSeat(f"{self.url.database}-lock")
        return PostgresSeat(engine, f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}")


def _prepare(connection: Any, _record: Any) -> None:
    """Transactions begin with SQLite's write lock, as DBOS expects of its own connections."""
    connection.isolation_level = "IMMEDIATE"
    for setting in _ON_A_FILE:
        connection.execute(setting)


def place_of(url: str) -> Place:
    """Raises `InvalidInput` where work cannot outlive its process."""
    parsed = _parse(url)
    if parsed.drivername in _POSTGRES:
        return Place(parsed.set(drivername="postgresql+psycopg"))
    if parsed.drivername not in _SQLITE:
        raise InvalidInput(f"Durable work on {parsed.drivername!r} is not supported: {_FORMS}.")
    if parsed.database in (None, "", ":memory:") or str(parsed.database).startswith("file:"):
        raise InvalidInput(f"Durable work needs a database that outlives the process: {_FORMS}.")
    path = Path(str(parsed.database)).resolve()
    return Place(URL.create("sqlite", database=str(path.with_suffix(f".dbos{path.suffix or '.db'}"))))


def _parse(url: str) -> URL:
    if "://" not in url and url.endswith(".db"):
        return URL.create("sqlite", database=url)
    try:
        return make_url(url)
    except ArgumentError as exc:
        raise InvalidInput(f"This is no database address: {_FORMS}.") from exc
