"""Vectors in a Qdrant server. The package `qdrant-client` is loaded when an index is opened."""

from importlib.util import find_spec

from roomlore.core.errors import InvalidInput
from roomlore.ports.vectors import VectorIndex


def open_qdrant(
    url: str,
    *,
    api_key: str | None = None,
    prefix: str = "",
    timeout_seconds: float = 2.0,
    write_timeout_seconds: float = 30.0,
) -> VectorIndex:
    """Return a vector index in the Qdrant server (1.10 or later) at `url`, over REST; the default port is 6333. No
    request is sent yet.

    `prefix` is put before the names of all collections, so that several roomlores can share a server. `timeout_seconds`
    is for searching and counting, `write_timeout_seconds` for writing. Raises `InvalidInput` for an invalid url or
    prefix, and if the extra is not installed.
    """
    if find_spec("qdrant_client") is None:
        raise InvalidInput("Qdrant needs the extra: pip install 'roomlore[qdrant]'.")
    from roomlore.adapters.qdrant.index import QdrantVectors, connect

    return QdrantVectors(
        connect(url, api_key=api_key, timeout_seconds=max(timeout_seconds, write_timeout_seconds)),
        prefix=prefix,
        timeout_seconds=timeout_seconds,
        write_timeout_seconds=write_timeout_seconds,
    )
