"""Embeddings from a server with OpenAI's protocol: one at any address, and providers that are known by name."""

from functools import partial
from typing import ClassVar

from roomlore.adapters.embedding import open_openai
from roomlore.core.providers import KNOWN_EMBEDDINGS, KNOWN_PROVIDERS
from roomlore.ports.backends import (
    EMBEDDERS,
    Backend,
    Extra,
    Host,
    Number,
    Section,
    WebAddress,
    Whole,
    setting,
)
from roomlore.ports.language import Embedder


class ServerSettings(Section):
    """Embeddings from a server. What is not set is the provider's own, if `embeddings` names a known one."""

    section: ClassVar[str] = "embedding"
    embedding_model: str = setting("text-embedding-3-small", "The server's model.", form="a model's name")
    embedding_dimensions: Whole = setting(1536, "Length of the server's vectors.", ge=1, le=16_384)
    embedding_url: WebAddress = setting(
        "https://api.openai.com/v1", "The server's address.", form="an http or https URL"
    )
    embedding_api_key: str = setting(
        "",
        "The server's API key; empty: the one for the provider's models, at the provider's own address.",
        form="a secret",
        hidden="secret",
    )
    embedding_batch: Whole = setting(
        64, "Most texts in one request; a smaller number if the server refuses so many.", ge=1, le=2048
    )
    embedding_query_prefix: str = setting("", "What the server's model wants before a question.", form="a text")
    embedding_passage_prefix: str = setting("", "What the server's model wants before a message.", form="a text")
    embedding_timeout_seconds: Number = setting(
        20, "Time the server may take over one request, in seconds.", gt=0, le=600
    )


def _open(name: str, settings: ServerSettings, host: Host) -> Embedder:
    provider = host.providers.get(name, KNOWN_PROVIDERS[name])
    given = settings.model_fields_set
    known = KNOWN_EMBEDDINGS[name] if "embedding_model" not in given else None
    dimensions, batch = settings.embedding_dimensions, settings.embedding_batch
    if known and "embedding_dimensions" not in given:
        dimensions = known.dimensions
    if known and known.batch and "embedding_batch" not in given:
        batch = known.batch
    # A key goes to the provider's own address only.
    elsewhere = "embedding_url" in given and settings.embedding_url.rstrip("/") != provider.base_url
    variable = None if elsewhere else provider.key_variable
    return open_openai(
        url=settings.embedding_url if elsewhere else provider.base_url,
        api_key=settings.embedding_api_key or host.keys.get(variable or "", ""),
        key_name=f"embedding_api_key or {variable}" if variable else "embedding_api_key",
        model=known.model if known else settings.embedding_model,
        dimensions=dimensions,
        batch=batch,
        timeout_seconds=settings.embedding_timeout_seconds,
        query_prefix=settings.embedding_query_prefix,
        passage_prefix=settings.embedding_passage_prefix,
        request_dimensions=known is not None and dimensions in known.lengths and dimensions != known.dimensions,
    )


def _lacks(name: str, settings: ServerSettings) -> str:
    needed = () if KNOWN_EMBEDDINGS[name] else ("embedding_model", "embedding_dimensions")
    missing = [one for one in needed if one not in settings.model_fields_set]
    return f"{' and '.join(missing)} must be set too." if missing else ""


def _backend(name: str) -> Backend[Embedder, ServerSettings]:
    return Backend(
        kind=EMBEDDERS,
        name=name,
        open=partial(_open, name),
        settings=ServerSettings,
        lacks=partial(_lacks, name),
        extra=Extra("openai", "openai"),
    )


OPENAI = _backend("openai")
DASHSCOPE = _backend("dashscope")
SILICONFLOW = _backend("siliconflow")
ZHIPU = _backend("zhipu")
VOLCENGINE = _backend("volcengine")
OLLAMA = _backend("ollama")
