"""The vector stores in the database itself. SQLAlchemy is loaded when one is opened."""

from roomlore.core.errors import RoomloreError
from roomlore.ports.backends import VECTORS, Backend, Host, NoSettings
from roomlore.ports.vectors import VectorIndex

_LATE_SECONDS = 1.0
"""Vectors are made in the background anyway; the words of a message are found at once."""


def _open_blobs(_: NoSettings, host: Host) -> VectorIndex:
    from roomlore.adapters.vectors.sql import SqlVectors

    assert host.storage is not None
    return SqlVectors(host.storage, late_seconds=_LATE_SECONDS)


def _open_pgvector(_: NoSettings, host: Host) -> VectorIndex:
    from roomlore.adapters.vectors.pgvector import PgVectors  # needs the extra `postgres`

    assert host.storage is not None
    return PgVectors(host.storage)


async def _refuses(_: NoSettings, host: Host) -> RoomloreError | None:
    from roomlore.adapters.vectors.sql import pgvector_error

    assert host.storage is not None
    return await pgvector_error(host.storage)


PGVECTOR = Backend(
    kind=VECTORS, name="pgvector", open=_open_pgvector, settings=NoSettings, refuses=_refuses, in_database=True
)
SQL = Backend(kind=VECTORS, name="sql", open=_open_blobs, settings=NoSettings, in_database=True)
