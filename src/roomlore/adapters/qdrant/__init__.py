"""Vectors in a Qdrant server. The package `qdrant-client` is loaded when one is opened, and not before."""

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
    """A vector index in the Qdrant server (1.10 or later) at `url`, spoken to over REST; without a port in the url,
    6333 is meant. Nothing is asked of the server yet.

    `prefix` begins the names of all collections, so that several roomlores can share a server. `timeout_seconds` is for
    searching and counting, the other for writing. Raises `InvalidInput` for a bad url or prefix, and where the extra is
    not installed.
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
