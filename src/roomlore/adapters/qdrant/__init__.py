"""Vectors in a Qdrant server. The package `qdrant-client` is loaded when an index is opened."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import ClassVar

from roomlore.core.errors import InvalidInput
from roomlore.core.health import Finding, say
from roomlore.ports.backends import VECTORS, Backend, Extra, Host, Section, WebAddress, setting
from roomlore.ports.vectors import MESSAGES, VectorIndex

TIMEOUT_SECONDS = 2.0
"""Time for a search, before words alone answer: a healthy server takes a hundredth of it."""


def open_qdrant(
    url: str,
    *,
    api_key: str | None = None,
    prefix: str = "",
    timeout_seconds: float = TIMEOUT_SECONDS,
    write_timeout_seconds: float = 30.0,
) -> VectorIndex:
    """Return a vector index in the Qdrant server (1.10 or later) at `url`, over REST; the default port is 6333. No
    request is sent yet.

    `prefix` is put before the names of all collections, so that several roomlores can share a server. `timeout_seconds`
    is for searching and counting, `write_timeout_seconds` for writing. Raises `InvalidInput` for an invalid url or
    prefix, and if the extra is not installed.
    """
    if find_spec("qdrant_client") is None:
        raise InvalidInput("qdrant_not_installed")
    from roomlore.adapters.qdrant.index import QdrantVectors, connect

    return QdrantVectors(
        connect(url, api_key=api_key, timeout_seconds=max(timeout_seconds, write_timeout_seconds)),
        prefix=prefix,
        timeout_seconds=timeout_seconds,
        write_timeout_seconds=write_timeout_seconds,
    )


class QdrantSettings(Section):
    """Vectors in a Qdrant server."""

    section: ClassVar[str] = "qdrant"
    qdrant_url: WebAddress = setting("", "Address of a Qdrant server.", form="a URL such as http://localhost:6333")
    qdrant_api_key: str = setting("", "The Qdrant server's API key.", form="a secret", hidden="secret")
    qdrant_prefix: str = setting(
        "", "What the names of collections begin with, where roomlores share a Qdrant server.", form="a short name"
    )


def _open(settings: QdrantSettings, _: Host) -> VectorIndex:
    return open_qdrant(
        settings.qdrant_url,
        api_key=settings.qdrant_api_key or None,
        prefix=settings.qdrant_prefix,
        timeout_seconds=TIMEOUT_SECONDS,
    )


async def _probe(settings: QdrantSettings, host: Host, _: float) -> Sequence[Finding]:
    vectors = _open(settings, host)
    try:
        held = await vectors.generation(collection=MESSAGES)
    finally:
        await vectors.close()
    return [Finding("qdrant", "ok", say("backend.answers" if held else "vectors.empty"))]


QDRANT = Backend(
    kind=VECTORS,
    name="qdrant",
    open=_open,
    settings=QdrantSettings,
    lacks=lambda settings: "" if settings.qdrant_url else "qdrant_url is not set; give the server's address.",
    probe=_probe,
    slow_ms=200,
    extra=Extra("qdrant", "qdrant_client"),
)
