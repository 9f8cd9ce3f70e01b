"""mem0's configuration as roomlore's settings: what has a counterpart is taken, anything else is refused by name."""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from roomlore import InvalidInput, Settings
from roomlore.core.chat.registry import EVOLVE_MODEL

Given = Mapping[str, Any]
_QUIET: Given = {"evolve_schedule": "", "extract_every": 0}
"""Facts change when `add` is called, and at no other time."""
_WHAT_INSTEAD = {
    "history_db_path": "the history lies in the database; name that with url='sqlite:///memories.db'",
    "custom_instructions": "the prompt of facts is a file; see docs/how-to/prompts.md",
    "custom_fact_extraction_prompt": "the prompt of facts is a file; see docs/how-to/prompts.md",
    "custom_update_memory_prompt": "the prompt of facts is a file; see docs/how-to/prompts.md",
    "reranker": "results are ordered by words and meaning together",
    "graph_store": "there is none",
    "api_key": "put the key into the environment: OPENAI_API_KEY for openai, OPENROUTER_API_KEY for openrouter",
    "path": "vectors lie in the database; leave vector_store out and name the database with "
    "url='sqlite:///memories.db'",
    "collection_name": "roomlore names its tables and collections itself",
    "embedding_model_dims": "the length of the vectors is the embedder's: embedding_dims",
}
_LOCAL = "leave it out and give settings=roomlore.Settings(embeddings='offline') for a model on this machine"


def read_config(config: Given | None, settings: Settings | None) -> tuple[str | None, Settings]:
    """The database's URL, None for that of the settings, and the settings. Raises `InvalidInput`."""
    if not isinstance(config, Mapping | None):
        raise InvalidInput(f"config is a {type(config).__name__}; give mem0's configuration as a mapping.")
    given = _present(config or {})
    if settings is not None:
        if given:
            raise InvalidInput("Give either mem0's config or settings=roomlore.Settings(...), not both.")
        return None, settings
    found: dict[str, Any] = {**_QUIET}
    for name, value in given.items():
        if name == "version":
            _check_version(value)
        elif name in _PARTS:
            found |= _part(name, value)
        else:
            raise _stranger(name, "config")
    return found.pop("database_url", None), Settings(**found)


def _part(name: str, part: Any) -> Given:
    """A part such as `llm`: a provider with a configuration of its own."""
    readers = _PARTS[name]
    provider = part.get("provider") if isinstance(part, Mapping) else None
    if not isinstance(provider, str) or provider not in readers:
        hint = f"; {_LOCAL}" if name == "embedder" else ""
        raise InvalidInput(f"The provider of {name} is {provider!r:.60}; there are {', '.join(readers)}{hint}.")
    if strangers := sorted(part.keys() - {"provider", "config"}):
        raise _stranger(strangers[0], name)
    return readers[provider](_Fields(f"the config of {name}", part.get("config")))


class _Fields:
    """The fields of a part's configuration, each taken once."""

    def __init__(self, what: str, given: Any) -> None:
        if not isinstance(given, Mapping | None):
            raise InvalidInput(f"{what} is {given!r:.60}; give a mapping.")
        self._what = what
        self._left = dict(_present(given or {}))

    def take(self, name: str, default: Any = None) -> Any:
        return self._left.pop(name, default)

    def need(self, name: str) -> Any:
        if name not in self._left:
            raise InvalidInput(f"{self._what} needs {name}.")
        return self._left.pop(name)

    def done(self) -> None:
        """Raises `InvalidInput` for what nobody took."""
        if self._left:
            raise _stranger(min(self._left), self._what)


def _model(provider: str, url_field: str, path: str = "") -> Callable[[_Fields], Given]:
    """Reads `llm`. `path`: what the address lacks."""

    def read(fields: _Fields) -> Given:
        model_id, url = fields.need("model"), fields.take(url_field)
        fields.done()
        servers = {provider: {"base_url": f"{str(url).rstrip('/')}{path}"}} if url else {}
        return {"models": {EVOLVE_MODEL: _entry(provider, model_id)}, "providers": servers}

    return read


def _entry(provider: str, model_id: Any) -> Given:
    return {"internal": True, "providers": [{"name": provider, "model_id": model_id}]}


def _openai_vectors(fields: _Fields) -> Given:
    """Reads `embedder`."""
    taken = {
        "embedding_model": fields.take("model"),
        "embedding_dimensions": fields.take("embedding_dims"),
        "embedding_url": fields.take("openai_base_url"),
        "embedding_api_key": fields.take("api_key"),
    }
    fields.done()
    return {"embeddings": "openai", **_present(taken)}


def _ollama_vectors(fields: _Fields) -> Given:
    url = str(fields.take("ollama_base_url", "http://127.0.0.1:11434")).rstrip("/")
    taken = {"embedding_model": fields.need("model"), "embedding_dimensions": fields.need("embedding_dims")}
    fields.done()
    return {"embeddings": "openai", "embedding_url": f"{url}/v1", **taken}


def _qdrant(fields: _Fields) -> Given:
    """Reads `vector_store`."""
    url, host, port = fields.take("url"), fields.take("host"), fields.take("port", 6333)
    key = fields.take("api_key", "")
    fields.done()
    if not url and not host:
        raise InvalidInput("The config of vector_store needs the url, or the host, of a Qdrant server.")
    return {"vectors": "qdrant", "qdrant_url": url or f"http://{host}:{port}", "qdrant_api_key": key}


def _pgvector(fields: _Fields) -> Given:
    url = fields.take("connection_string")
    if url is None:
        who = ":".join(quote(str(fields.need(name)), safe="") for name in ("user", "password"))
        where = f"{fields.take('host', '127.0.0.1')}:{fields.take('port', 5432)}"
        url = f"postgresql://{who}@{where}/{fields.take('dbname', 'postgres')}"
    fields.done()
    return {"database_url": url, "vectors": "pgvector"}


def _present(given: Given) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def _check_version(version: Any) -> None:
    if version != "v1.1":
        raise InvalidInput(f"version is {version!r:.60}; answers are those of 'v1.1'.")


def _stranger(name: str, where: str) -> InvalidInput:
    instead = _WHAT_INSTEAD.get(name, "it has no counterpart here")
    return InvalidInput(f"{where} has {name!r:.60}; leave it out: {instead}.")


_PARTS: Mapping[str, Mapping[str, Callable[[_Fields], Given]]] = {
    "llm": {
        "openai": _model("openai", "openai_base_url"),
        "openrouter": _model("openrouter", "openrouter_base_url"),
        "ollama": _model("ollama", "ollama_base_url", "/v1"),
    },
    "embedder": {"openai": _openai_vectors, "ollama": _ollama_vectors},
    "vector_store": {"qdrant": _qdrant, "pgvector": _pgvector},
}
