"""The settings: their names, types, defaults and ranges, and the options of contexts made from them."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PrivateAttr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticKnownError
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from roomlore.adapters.cron import Cron
from roomlore.core.chat import EVOLVE_MODEL, ModelRegistry
from roomlore.core.context import ContextOptions
from roomlore.core.errors import InvalidInput
from roomlore.core.relevance import MAX_WEIGHT, Weights
from roomlore.services.contexts import STRATEGIES
from roomlore.settings import sources
from roomlore.settings.sources import PREFIX, from_environment, gather, sentences, strangers

WEIGHTS = (
    "reply_chain_weight",
    "user_continuity_weight",
    "time_decay_weight",
    "mention_relation_weight",
    "keyword_overlap_weight",
)
SECRETS = frozenset({"embedding_api_key", "qdrant_api_key", "langfuse_public_key", "langfuse_secret_key", "sentry_dsn"})
_MAYBE_SECRET = SECRETS | {"models", "providers"}
"""A user may have put a key where only the name of its variable belongs."""


def _known_strategy(name: str) -> str:
    if name in STRATEGIES:
        return name
    *others, last = (f"'{known}'" for known in STRATEGIES)
    raise PydanticKnownError("literal_error", {"expected": f"{', '.join(others)} or {last}"})


StrategyName = Annotated[
    str, AfterValidator(_known_strategy), Field(json_schema_extra={"enum": list[str | int](STRATEGIES)})
]
"""The name of a known strategy."""


def context_options(settings: "Settings") -> ContextOptions:
    """Return the context options of these settings; a room may override them."""
    single = {f.name for f in fields(ContextOptions)} - {"weights", "strategies"}
    weights = {name.removesuffix("_weight"): getattr(settings, name) for name in WEIGHTS}
    return ContextOptions(
        weights=Weights(**weights),
        strategies=tuple(STRATEGIES),
        **{name: getattr(settings, name) for name in single},
    )


def _setting(default: Any, description: str, *, form: str | None = None, **bounds: float) -> Any:
    """Return a setting; `form`: the form of its values, if the type does not say."""
    return Field(default, description=description, json_schema_extra={"form": form}, **bounds)  # type: ignore[call-overload]


def _no_truth(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("a truth value is no number")
    return value


Whole = Annotated[int, BeforeValidator(_no_truth)]
Number = Annotated[float, BeforeValidator(_no_truth)]


class Settings(BaseSettings):
    """The settings of roomlore. Raise `InvalidInput` that names the setting, the value, its source and the range."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, frozen=True, extra="forbid", allow_inf_nan=False
    )

    database_url: str = _setting(
        "sqlite:///roomlore.db",
        "Where everything is stored.",
        form="a path ending in .db, or a URL such as sqlite:///roomlore.db or postgresql://user:password@host/name",
    )
    enable_intelligent_memory: bool = _setting(True, "Choose what matters; off: the plain window of recent_messages.")
    fallback_on_error: bool = _setting(
        True, "On an error or time-out answer with the plain window, then with nothing; off: raise."
    )
    strategy: StrategyName = _setting(
        "threaded", "How a context is chosen where the call does not say.", form=f"one of {', '.join(STRATEGIES)}"
    )
    context_recall: bool = _setting(
        True, "Let the threaded strategy also show what was said long ago, where a message needs it."
    )
    max_context_messages: Whole = _setting(20, "Most messages in a context.", ge=1, le=200)
    max_context_tokens: Whole | None = _setting(
        None,
        "Most tokens that the texts of a context take together; none: any number.",
        form="a whole number from 1 to 1000000, or none",
        ge=1,
        le=1_000_000,
    )
    recent_messages: Whole = _setting(10, "Messages in the plain window, the fallback.", ge=1, le=200)
    time_window_hours: Number = _setting(24, "How far back candidates may lie, in hours.", gt=0, le=8760)
    candidate_limit: Whole = _setting(50, "Most recent messages scored as candidates.", ge=1, le=400)
    chain_limit: Whole = _setting(15, "Most messages of the reply chain among the candidates.", ge=0, le=100)
    relevance_threshold: Number = _setting(0.3, "Score below which the weighted strategy takes nothing.", ge=0, le=1)
    reply_chain_weight: Number = _setting(0.40, "Weight of the reply chain.", ge=0, le=MAX_WEIGHT)
    user_continuity_weight: Number = _setting(0.15, "Weight of the same speaker going on.", ge=0, le=MAX_WEIGHT)
    time_decay_weight: Number = _setting(0.20, "Weight of nearness in time.", ge=0, le=MAX_WEIGHT)
    mention_relation_weight: Number = _setting(0.15, "Weight of mentions.", ge=0, le=MAX_WEIGHT)
    keyword_overlap_weight: Number = _setting(0.10, "Weight of shared keywords.", ge=0, le=MAX_WEIGHT)
    half_life_minutes: Number = _setting(10, "Time in which nearness in time halves, in minutes.", gt=0, le=525600)
    context_build_timeout_seconds: Number = _setting(
        5, "Time a context may take before the fallback answers, in seconds.", gt=0, le=300
    )
    enable_async_data_collection: bool = _setting(True, "Record what contexts were used, in the background.")
    experiment: Mapping[str, Mapping[str, Any]] = _setting(
        {},
        "Compares settings on live rooms: each arm's own settings; rooms are split by hash.",
        form="a mapping of two or more arms to room settings, such as {a: {}, b: {strategy: weighted}}",
    )
    token_encoding: Literal["cl100k_base", "o200k_base"] = _setting(
        "cl100k_base", "The encoding in which tokens are counted."
    )
    embeddings: Literal["off", "offline", "openai"] = _setting(
        "off",
        "What search knows meanings by: nothing, a model on this machine, or a server that speaks OpenAI's protocol.",
    )
    embedding_model: str = _setting(
        "text-embedding-3-small", "The server's model (embeddings: openai).", form="a model's name"
    )
    embedding_dimensions: Whole = _setting(
        1536, "Length of the server's vectors (embeddings: openai).", ge=1, le=16_384
    )
    embedding_url: str = _setting(
        "https://api.openai.com/v1", "The server's address (embeddings: openai).", form="an http or https URL"
    )
    embedding_api_key: str = _setting("", "The server's API key (embeddings: openai).", form="a secret")
    embedding_query_prefix: str = _setting(
        "", "What the server's model wants before a question (embeddings: openai).", form="a text"
    )
    embedding_passage_prefix: str = _setting(
        "", "What the server's model wants before a message (embeddings: openai).", form="a text"
    )
    embedding_timeout_seconds: Number = _setting(
        20, "Time the server may take over one request, in seconds.", gt=0, le=600
    )
    vectors: Literal["auto", "sql", "pgvector", "qdrant"] = _setting(
        "auto",
        "Where vectors lie; auto: Qdrant if qdrant_url is set, else pgvector if the database has it, else in SQL.",
    )
    qdrant_url: str = _setting("", "Address of a Qdrant server.", form="a URL such as http://localhost:6333")
    qdrant_api_key: str = _setting("", "The Qdrant server's API key.", form="a secret")
    qdrant_prefix: str = _setting(
        "", "What the names of collections begin with, where roomlores share a Qdrant server.", form="a short name"
    )
    qdrant_timeout_seconds: Number = _setting(2, "Time Qdrant may take over a search, in seconds.", gt=0, le=600)
    index_lease_seconds: Number = _setting(
        60, "Time after which work on vectors that a killed process held is done by another, in seconds.", gt=0, le=3600
    )
    search_cache_mb: Whole = _setting(
        512, "Memory for the vectors and facts of rooms lately searched, in MiB.", ge=1, le=1_048_576
    )
    time_zone: str = _setting(
        "UTC", "Where 'yesterday' and 'last week' in a question begin.", form="a zone such as Europe/Berlin"
    )
    redis_url: str = _setting(
        "",
        "A Redis that keeps sessions at hand; without one the database is asked alone.",
        form="a URL such as redis://localhost:6379/0",
    )
    redis_timeout_seconds: Number = _setting(
        0.25, "Time Redis may take before a call goes on without it, in seconds.", gt=0, le=60
    )
    session_ttl_seconds: Whole = _setting(1800, "Time Redis keeps a session, in seconds.", ge=1, le=31_536_000)
    token_threshold_ratio: Number = _setting(
        0.75, "Share of the model's window from which a session asks for a checkpoint.", gt=0, le=1
    )
    recent_turns: Whole = _setting(8, "Turns of a session that are shown verbatim at least.", ge=0, le=10_000)
    model_context_window: Whole = _setting(16_000, "What the model takes, in tokens.", ge=1, le=100_000_000)
    auto_checkpoint: bool = _setting(False, "Summarise a session that asks for a checkpoint, in the background.")
    summary_max_tokens: Whole = _setting(
        512,
        "Longest summary that roomlore itself makes, in tokens; never more than a quarter of the window.",
        ge=16,
        le=100_000,
    )
    models: Mapping[str, Any] = _setting(
        {},
        "Language models by name, each with its providers in order; null takes away one that ships.",
        form="a mapping such as {chat: {providers: [{name: openai, model_id: gpt-5-mini}]}}",
    )
    providers: Mapping[str, Any] = _setting(
        {},
        "Servers of models that speak OpenAI's protocol, beside openrouter, siliconflow, openai and ollama.",
        form="a mapping such as {here: {base_url: http://localhost:8000/v1, key_variable: HERE_API_KEY}}",
    )
    model_timeout_seconds: Number = _setting(
        60, "Time a provider of models may take over an answer, or over each piece of one, in seconds.", gt=0, le=3600
    )
    summary_timeout_seconds: Number = _setting(
        15, "Time each provider may take over a summary or a short memory, in seconds.", gt=0, le=3600
    )
    extract_every: Whole = _setting(
        5, "Replies of an agent in a room after which the last messages become a short memory; 0: never.", ge=0, le=200
    )
    evolve_model: str = _setting(
        EVOLVE_MODEL, "The model that evolves what is remembered of groups and people.", form="a model's name"
    )
    evolve_timeout_seconds: Number = _setting(
        60, "Time each provider may take over an evolution, in seconds.", gt=0, le=3600
    )
    evolve_schedule: str = _setting(
        "0 2 * * *",
        "When groups with enough new messages evolve by themselves, in time_zone; empty: never.",
        form="a cron expression of five fields, or nothing",
    )
    evolve_least: Whole = _setting(10, "New messages from which a group evolves by the schedule.", ge=1, le=1_000_000)
    evolve_messages: Whole = _setting(200, "Most new messages that an evolution reads.", ge=1, le=1000)
    evolve_memories: Whole = _setting(50, "Most memories that an evolution is shown.", ge=1, le=200)
    evolve_delete_share: Number = _setting(
        0.3, "Share of the memories that an evolution may delete; one at least.", ge=0, le=1
    )
    evolve_lease_seconds: Number = _setting(
        60, "Time after which others evolve a group that a killed process was at, in seconds.", gt=0, le=3600
    )
    most_memories: Whole = _setting(30, "Memories of a group from which an evolution must merge.", ge=1, le=200)
    strength_half_life_days: Number = _setting(
        30, "Days without support in which a memory's strength halves.", gt=0, le=3650
    )
    strength_floor: Number = _setting(
        0.2, "Strength below which a memory is offered to the model as stale.", ge=0, le=1
    )
    durable_work: Literal["auto", "dbos", "process"] = _setting(
        "auto",
        "What keeps work that calls models: DBOS beside the database, or this process; auto: DBOS where it can be had.",
    )
    work_at_once: Whole = _setting(4, "Pieces of durable work that a process does at a time.", ge=1, le=64)
    work_kept_days: Whole = _setting(7, "Days for which finished durable work is kept to be looked at.", ge=1, le=365)
    work_in_server: bool = _setting(True, "Do the work behind the calls in the server; off: `roomlore worker` does it.")
    langfuse_host: str = _setting("", "A Langfuse to take the prompts of evolutions from.", form="an http or https URL")
    langfuse_public_key: str = _setting("", "The public key of its project.", form="a secret")
    langfuse_secret_key: str = _setting("", "The secret key of its project.", form="a secret")
    langfuse_label: str = _setting("production", "Which version of a prompt is taken.", form="a label of Langfuse's")
    langfuse_cache_seconds: Number = _setting(
        60, "Time a prompt is used before it is asked for again.", ge=1, le=86_400
    )
    langfuse_timeout_seconds: Number = _setting(2, "Time Langfuse may take before it goes without.", gt=0, le=60)
    reply_model: str = _setting(
        "", "The model that replies where the call names none; empty: the only one there is.", form="a model's name"
    )
    reply_max_tokens: Whole = _setting(
        1024,
        "Tokens of the window kept free for a reply where the call does not say, half the window at most.",
        ge=1,
        le=1_000_000,
    )
    max_tool_iterations: Whole = _setting(
        10, "How often a model may ask for tools in one reply where the call does not say.", ge=0, le=100
    )
    content_filter_text: str = _setting(
        "", "What ends a reply that the provider's filter cut; empty: a sentence that ships.", form="a text"
    )
    length_text: str = _setting(
        "", "What ends a reply that grew too long; empty: a sentence that ships.", form="a text"
    )
    enabled: bool = _setting(True, "Recall facts; off: nothing is recalled.")
    max_injection_tokens: Whole = _setting(
        2000, "Most tokens of the block of facts where the call does not say.", ge=0, le=1_000_000
    )
    max_context_turns: Whole = _setting(
        3, "The user's last messages, with the answers between them, that facts are recalled for.", ge=0, le=100
    )
    similarity_weight: Number = _setting(0.6, "Weight of a fact's similarity to what was said.", ge=0, le=1)
    confidence_weight: Number = _setting(0.4, "Weight of a fact's confidence.", ge=0, le=1)
    similarity: Literal["tfidf", "embedding", "hybrid"] = _setting(
        "tfidf", "How similarity is found: by words, by vectors (which need embeddings), or by both."
    )
    similarity_scale: Literal["fit", "literal"] = _setting(
        "fit", "Similarity as it counts: scaled to what fits the block, or the cosine as it is."
    )
    sticky_facts: bool = _setting(
        True, "Keep a conversation's block of facts byte for byte while relevance has not clearly changed."
    )
    recall_max_tokens: Whole = _setting(
        2000, "Most tokens of what a reply recalls; never more than a quarter of its window.", ge=0, le=1_000_000
    )
    recall_timeout_seconds: Number = _setting(
        2, "Time recalling may take before a reply goes without, in seconds.", gt=0, le=300
    )
    room_cache_mb: Whole = _setting(
        192, "Memory for the last messages of rooms lately written to, in MiB.", ge=0, le=1_048_576
    )
    room_cache_size: Whole | None = _setting(
        None, "The older name of room_cache_mb, in rooms of 3 MiB; counts instead of it where given.", ge=0, le=100_000
    )
    max_text_chars: Whole = _setting(1_048_576, "Longest text of a message, in characters.", ge=1, le=16_777_216)
    max_metadata_chars: Whole = _setting(
        262_144, "Longest metadata of a message and state of a session, in characters of JSON.", ge=1024, le=16_777_216
    )
    max_batch_messages: Whole = _setting(10_000, "Most messages in one call.", ge=1, le=100_000)
    max_body_bytes: Whole = _setting(
        16_777_216,
        "Largest HTTP body of a request that writes messages, facts or sessions, in bytes.",
        ge=1024,
        le=1_073_741_824,
    )
    max_small_body_bytes: Whole = _setting(
        1_048_576, "Largest HTTP body of any other request, in bytes.", ge=1024, le=1_073_741_824
    )
    max_json_values: Whole = _setting(
        400_000,
        "Most values in a JSON body that writes messages, facts or sessions; any other has at most 20,000.",
        ge=1000,
        le=100_000_000,
    )
    max_json_depth: Whole = _setting(32, "Deepest nesting of a JSON request body.", ge=4, le=200)
    max_page: Whole = _setting(1000, "Most items in one page.", ge=1, le=10_000)
    host: str = _setting(
        "127.0.0.1", "Address to serve on; a public one needs an API key.", form="a host name or IP address"
    )
    port: Whole = _setting(8765, "Port to serve on; 0 takes a free one.", ge=0, le=65535)
    max_connections: Whole = _setting(1000, "Most HTTP connections at a time.", ge=1, le=100_000)
    idle_connection_seconds: Whole = _setting(75, "Seconds an idle HTTP connection is kept.", ge=1, le=3600)
    request_timeout_seconds: Number = _setting(
        30,
        "Seconds for the head of a request, its body (1 more for every 1,000 bytes), and an answer to move on.",
        ge=1,
        le=3600,
    )
    allowed_hosts: Annotated[tuple[str, ...], NoDecode] = _setting(
        (),
        "Further Host headers accepted from clients without a key.",
        form="host names, as a list or separated by commas",
    )
    otlp_endpoint: str = _setting(
        "",
        "Where OpenTelemetry spans are sent, without texts; empty: nowhere.",
        form="an http or https URL such as http://localhost:4318",
    )
    sentry_dsn: str = _setting(
        "",
        "The Sentry that is told of errors nobody foresaw, without texts; empty: none is.",
        form="a Sentry DSN such as https://PUBLIC_KEY@HOST/PROJECT_NUMBER; a secret",
    )
    log_format: Literal["console", "json"] = _setting("console", "How log lines look.")
    log_level: Literal["debug", "info", "warning", "error"] = _setting("info", "The least serious log line written.")

    _sources: Mapping[str, str] = PrivateAttr(default_factory=dict)
    _ignored: tuple[str, ...] = PrivateAttr(default=())
    _keys: Mapping[str, str] = PrivateAttr(default_factory=dict)

    def __init__(self, config: str | Path | None = None, /, **arguments: Any) -> None:
        found = gather(type(self), config, arguments)
        try:
            super().__init__(**{name: value for name, (value, _) in found.items()})
        except ValidationError as error:
            raise InvalidInput(sentences(error, found, type(self).model_fields, hidden=_MAYBE_SECRET)) from error
        self._sources = {name: source for name, (_, source) in found.items()}
        self._ignored = tuple(strangers(type(self)))

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings,)

    _known_database = field_validator("database_url")(sources.database)
    _web_address = field_validator("embedding_url", "qdrant_url", "langfuse_host", "otlp_endpoint")(sources.web)
    _redis_address = field_validator("redis_url")(sources.redis)
    _sentry_address = field_validator("sentry_dsn")(sources.sentry)

    @field_validator("time_zone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (KeyError, OSError, ValueError) as error:
            raise ValueError("unknown zone") from error
        return value

    @model_validator(mode="after")
    def _qdrant_has_an_address(self) -> "Settings":
        if self.vectors == "qdrant" and not self.qdrant_url:
            raise ValueError("vectors is qdrant, but qdrant_url is not set; give the server's address.")
        return self

    @model_validator(mode="after")
    def _langfuse_has_keys(self) -> "Settings":
        if self.langfuse_host and not (self.langfuse_public_key and self.langfuse_secret_key):
            raise ValueError("langfuse_host is set; set langfuse_public_key and langfuse_secret_key too.")
        return self

    @field_validator("allowed_hosts", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @field_validator("experiment", mode="before")
    @classmethod
    def _arms(cls, value: Any) -> Any:
        if not isinstance(value, Mapping) or len(value) == 1:
            raise ValueError("not two or more arms")
        return {str(arm): changes or {} for arm, changes in value.items()}

    @model_validator(mode="after")
    def _some_weight(self) -> "Settings":
        if not any(getattr(self, name) for name in WEIGHTS):
            raise ValueError(f"All weights are 0; at least one of {', '.join(WEIGHTS)} must be above 0.")
        return self

    @model_validator(mode="after")
    def _possible_arms(self) -> "Settings":
        for arm, changes in self.experiment.items():
            try:
                context_options(self).overridden(changes)
            except InvalidInput as error:
                raise InvalidInput(f"experiment, arm {arm!r}: {error}") from error
        return self

    @model_validator(mode="after")
    def _sound_models(self) -> "Settings":
        registry = ModelRegistry.read(self.models, self.providers)
        if self.evolve_model != EVOLVE_MODEL and registry.find(self.evolve_model) is None:
            raise ValueError(f"evolve_model is {self.evolve_model!r:.80}, which is none of the models.")
        return self

    @field_validator("evolve_schedule")
    @classmethod
    def _cron(cls, value: str) -> str:
        if value.strip():
            Cron(value, ZoneInfo("UTC"))
        return value.strip()

    def with_keys(self, keys: Mapping[str, str]) -> "Settings":
        """Return the same settings with API keys by environment variable, which override those that are there."""
        keyed = self.model_copy()
        keyed._keys = {**self._keys, **keys}  # noqa: SLF001
        return keyed

    def environment_keys(self, variables: Iterable[str]) -> dict[str, str]:
        """Return the API keys in the environment, by variable. Only for code that sends them: never show them."""
        names = set(variables)
        return {**from_environment(names), **{name: key for name, key in self._keys.items() if name in names}}

    @property
    def ignored(self) -> tuple[str, ...]:
        """Environment variables that begin with MEMORY_ but resemble no setting: most likely of other programs."""
        return self._ignored

    def source(self, name: str) -> str:
        """Return the source of the setting's value: `default`, `argument`, the variable's name or the file's path."""
        return self._sources.get(name, "default")
