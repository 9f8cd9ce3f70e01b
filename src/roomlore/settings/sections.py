"""The sections of what roomlore does itself. A backend declares its section in its own file."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Annotated, Any, ClassVar, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator
from pydantic_core import PydanticKnownError

from roomlore.adapters.cron import Cron
from roomlore.core.addresses import is_secure_address
from roomlore.core.chat import EVOLVE_MODEL, KNOWN_PROVIDERS
from roomlore.core.context import ContextOptions
from roomlore.core.errors import InvalidInput
from roomlore.core.experiments import Experiment
from roomlore.core.quotas import ATTACHMENT_BYTES, ATTACHMENTS, LIMITS, MOST, Quotas
from roomlore.core.relevance import MAX_WEIGHT, Weights
from roomlore.ports.backends import DURABLE, EMBEDDERS, VECTORS, Kind, Number, Section, WebAddress, Whole, setting
from roomlore.settings import sources
from roomlore.settings.registry import known_strategies, names_of

WEIGHTS = (
    "reply_chain_weight",
    "user_continuity_weight",
    "time_decay_weight",
    "mention_relation_weight",
    "keyword_overlap_weight",
)


def _checked_cron(value: str) -> str:
    if value.strip():
        Cron(value, ZoneInfo("UTC"))
    return value.strip()


_CronTimes = Annotated[str, AfterValidator(_checked_cron)]


def _one_of(name: str, known: Iterable[str]) -> str:
    names = list(known)
    if name in names:
        return name
    *others, last = (f"'{one}'" for one in names)
    raise PydanticKnownError("literal_error", {"expected": f"{', '.join(others)} or {last}"})


def _backend(kind: Kind[Any], default: str, description: str) -> Any:
    return setting(default, description, form=f"one of {', '.join(names_of(kind))}")


def _named(kind: Kind[Any]) -> AfterValidator:
    return AfterValidator(lambda name: _one_of(name, names_of(kind)))


AskedStrategy = Annotated[str, Field(json_schema_extra={"enum": list[str | int](known_strategies())})]
"""The name of a strategy in a request. The service checks it, since it may also be one of the caller's own."""
StrategyName = Annotated[AskedStrategy, AfterValidator(lambda name: _one_of(name, known_strategies()))]
"""The name of a known strategy."""


def _known_zone(value: str) -> str:
    try:
        ZoneInfo(value or "UTC")
    except (KeyError, OSError, ValueError) as error:
        raise ValueError("unknown zone") from error
    return value


def _checked_address(value: str) -> str:
    if value and (not is_secure_address(value) or "?" in value):
        raise ValueError("no secure address")
    return value


class DatabaseSettings(Section):
    """The database."""

    section: ClassVar[str] = "database"
    database_url: Annotated[str, AfterValidator(sources.database)] = setting(
        "sqlite:///roomlore.db",
        "Where everything is stored.",
        form="a path ending in .db, or a URL such as sqlite:///roomlore.db or postgresql://user:password@host/name",
    )


class ContextSettings(Section):
    """Settings of the content of a context."""

    section: ClassVar[str] = "context"
    enable_intelligent_memory: bool = setting(True, "Choose what matters; off: the plain window of recent_messages.")
    fallback_on_error: bool = setting(
        True, "On an error or time-out answer with the plain window, then with nothing; off: raise."
    )
    strategy: StrategyName = setting(
        "threaded",
        "How a context is chosen where the call does not say.",
        form=f"one of {', '.join(known_strategies())}",
    )
    context_recall: bool = setting(
        True, "Let the threaded strategy also show what was said long ago, where a message needs it."
    )
    max_context_messages: Whole = setting(20, "Maximum number of messages in a context.", ge=1, le=200)
    min_context_messages: Whole = setting(
        8, "The threaded strategy adds the newest messages up to this number; 0: it adds none.", ge=0, le=200
    )
    max_context_tokens: Whole | None = setting(
        None,
        "Maximum number of tokens of a context as text, with names and times; none: any number.",
        form="a whole number from 1 to 1000000, or none",
        ge=1,
        le=1_000_000,
    )
    recent_messages: Whole = setting(10, "Messages in the plain window, the fallback.", ge=1, le=200)
    time_window_hours: Number = setting(24, "How far back candidates may lie, in hours.", gt=0, le=8760)
    candidate_limit: Whole = setting(50, "Maximum number of recent messages scored as candidates.", ge=1, le=400)
    chain_limit: Whole = setting(
        15, "Maximum number of messages of the reply chain among the candidates.", ge=0, le=100
    )
    relevance_threshold: Number = setting(0.3, "Score below which the weighted strategy takes nothing.", ge=0, le=1)
    reply_chain_weight: Number = setting(0.40, "Weight of the reply chain.", ge=0, le=MAX_WEIGHT)
    user_continuity_weight: Number = setting(0.15, "Weight of the same speaker going on.", ge=0, le=MAX_WEIGHT)
    time_decay_weight: Number = setting(0.20, "Weight of nearness in time.", ge=0, le=MAX_WEIGHT)
    mention_relation_weight: Number = setting(0.15, "Weight of mentions.", ge=0, le=MAX_WEIGHT)
    keyword_overlap_weight: Number = setting(0.10, "Weight of shared keywords.", ge=0, le=MAX_WEIGHT)
    half_life_minutes: Number = setting(10, "Time in which nearness in time halves, in minutes.", gt=0, le=525600)
    context_build_timeout_seconds: Number = setting(
        5, "Time a context may take before the fallback answers, in seconds.", gt=0, le=300
    )
    enable_async_data_collection: bool = setting(True, "Record what contexts were used, in the background.")
    experiment: Mapping[str, Mapping[str, Any]] = setting(
        {},
        "Compares settings on live rooms: each arm's own settings and its share of the rooms, by default 1; rooms are "
        "split by hash.",
        form="a mapping of two or more arms to room settings, such as "
        "{a: {share: 9}, b: {share: 1, strategy: weighted}}",
    )
    token_encoding: Literal["cl100k_base", "o200k_base", "o200k_harmony", "qwen3.5"] = setting(
        "cl100k_base", "The encoding in which tokens are counted."
    )

    @field_validator("experiment", mode="before")
    @classmethod
    def _arms(cls, value: Any) -> Any:
        if not isinstance(value, Mapping) or len(value) == 1:
            raise ValueError("not two or more arms")
        return {str(arm): changes or {} for arm, changes in value.items()}

    @model_validator(mode="after")
    def _some_weight(self) -> "ContextSettings":
        if not any(getattr(self, name) for name in WEIGHTS):
            raise ValueError(f"All weights are 0; at least one of {', '.join(WEIGHTS)} must be above 0.")
        return self

    @model_validator(mode="after")
    def _possible_arms(self) -> "ContextSettings":
        for arm in Experiment(self.experiment).arms:
            try:
                self.options().overridden(arm.settings)
            except InvalidInput as error:
                raise InvalidInput("arm_invalid", arm=repr(arm.name), error=error) from error
        return self

    def options(self) -> ContextOptions:
        """Return the context options of these settings; a room may override them."""
        single = {f.name for f in fields(ContextOptions)} - {"weights", "strategies"}
        weights = {name.removesuffix("_weight"): getattr(self, name) for name in WEIGHTS}
        return ContextOptions(
            weights=Weights(**weights),
            strategies=tuple(known_strategies()),
            **{name: getattr(self, name) for name in single},
        )


class SearchSettings(Section):
    """Search, and the indexes behind it."""

    section: ClassVar[str] = "search"
    embeddings: Annotated[str, _named(EMBEDDERS)] = _backend(
        EMBEDDERS,
        "off",
        "What search knows meanings by: off, a model on this machine (offline), a server that speaks OpenAI's protocol"
        " (openai), or a provider by its name.",
    )
    vectors: Annotated[str, _named(VECTORS)] = _backend(
        VECTORS, "auto", "Where vectors lie; auto: a configured server, else the best that the database has."
    )
    room_cache_mb: Whole = setting(
        192, "Memory for the last messages of rooms lately written to, in MiB.", ge=0, le=1_048_576
    )
    time_zone: Annotated[str, AfterValidator(_known_zone)] = setting(
        "",
        "The zone of times shown, of 'yesterday' and 'last week', and of when groups evolve; empty: the machine's own.",
        form="a zone such as Europe/Berlin, or nothing",
    )

    @property
    def zone(self) -> ZoneInfo:
        """The time zone: the one that is set, else the machine's own."""
        return ZoneInfo(self.time_zone or sources.machine_zone())


class SessionSettings(Section):
    """Sessions and their summaries."""

    section: ClassVar[str] = "sessions"
    token_threshold_ratio: Number = setting(
        0.75, "Share of the model's window from which a session asks for a checkpoint.", gt=0, le=1
    )
    recent_turns: Whole = setting(8, "Turns of a session that are shown verbatim at least.", ge=0, le=10_000)
    model_context_window: Whole = setting(16_000, "What the model takes, in tokens.", ge=1, le=100_000_000)
    auto_checkpoint: bool = setting(False, "Summarise a session that asks for a checkpoint, in the background.")


class ModelSettings(Section):
    """Language models."""

    section: ClassVar[str] = "language_models"
    models: Mapping[str, Any] = setting(
        {},
        "Language models by name, each with its providers in order; null takes away one that ships.",
        hidden="in errors",
        form="a mapping such as {chat: {providers: [{name: openai, model_id: gpt-5.4-mini}]}}",
    )
    providers: Mapping[str, Any] = setting(
        {},
        f"Servers of models that speak OpenAI's protocol, beside {', '.join(KNOWN_PROVIDERS)}.",
        hidden="in errors",
        form="a mapping such as {here: {base_url: http://localhost:8000/v1, key_variable: HERE_API_KEY}}",
    )
    model_timeout_seconds: Number = setting(
        60, "Time a provider of models may take over an answer, or over each piece of one, in seconds.", gt=0, le=3600
    )
    summary_timeout_seconds: Number = setting(
        15, "Time each provider may take over a summary or a short memory, in seconds.", gt=0, le=3600
    )


class EvolutionSettings(Section):
    """Memories that are extracted and evolve."""

    section: ClassVar[str] = "evolution"
    extract_every: Whole = setting(
        5,
        "Replies of an agent in a room after which their conversation becomes a memory; 0: never.",
        ge=0,
        le=200,
    )
    evolve_model: str = setting(
        EVOLVE_MODEL, "The model that evolves what is remembered of groups and people.", form="a model's name"
    )
    evolve_schedule: _CronTimes = setting(
        "0 2 * * *",
        "When groups with enough new messages evolve by themselves, in time_zone; empty: never.",
        form="a cron expression of five fields, or nothing",
    )
    evolve_people: bool = setting(
        True, "Evolve the facts of everyone who spoke, by the same schedule and model; off: groups alone."
    )
    evolve_delete_share: Number = setting(
        0.3, "Share of the memories that an evolution may delete; one at least.", ge=0, le=1
    )
    most_memories: Whole = setting(30, "Memories of a group from which an evolution must merge.", ge=1, le=200)


class DigestSettings(Section):
    """Digests of what happened in rooms."""

    section: ClassVar[str] = "digests"
    digest_model: str = setting(
        EVOLVE_MODEL, "The model that writes digests, if one of its providers has a key.", form="a model's name"
    )
    model_titles: bool = setting(
        True,
        "Have digest_model write titles of threads in the background, if one of its providers has a key; off: a title "
        "is made of the thread's own sentences.",
    )
    digest_schedule: _CronTimes = setting(
        "",
        "When the digests of rooms are sent to digest_webhook, in time_zone, such as `0 6 * * *`; empty: never.",
        form="a cron expression of five fields, or nothing",
    )
    digest_rooms: str = setting(
        "",
        "The ids of the rooms whose digests are sent, with commas between them; `*`: every room; empty: public rooms.",
        form="ids with commas between them",
    )
    digest_webhook: WebAddress = setting(
        "", "Where digests are sent by the schedule.", form="an http or https URL, or nothing", hidden="in errors"
    )
    digest_webhook_secret: str = setting(
        "", "Signs what is sent to the webhook; needed with it.", form="a text", hidden="secret"
    )
    digest_webhook_private: bool = setting(
        False, "Allow a webhook at a private address, and http; off: only https on the public internet."
    )

    @model_validator(mode="after")
    def _webhook(self) -> "DigestSettings":
        if self.digest_webhook and not self.digest_webhook_secret:
            raise ValueError("digest_webhook needs digest_webhook_secret, with which the receiver checks requests")
        if self.digest_webhook.startswith("http://") and not self.digest_webhook_private:
            raise ValueError("digest_webhook must be an https URL unless digest_webhook_private is on")
        if self.digest_schedule and not self.digest_webhook:
            raise ValueError("digest_schedule needs digest_webhook, where digests are sent")
        return self


class WorkSettings(Section):
    """Work that outlives its process."""

    section: ClassVar[str] = "work"
    durable_work: Annotated[str, _named(DURABLE)] = _backend(
        DURABLE,
        "auto",
        "What keeps work that calls models: an engine beside the database, or this process; auto: the former if it can"
        " be had.",
    )
    work_database_url: Annotated[str | None, AfterValidator(sources.database_or_none)] = setting(
        None,
        "The address of PostgreSQL itself for durable work, if `database_url` is that of a pooler such as PgBouncer.",
        form="none, or a URL such as postgresql://user:password@host/name of the same database",
    )
    work_at_once: Whole = setting(4, "Pieces of durable work that a process does at a time.", ge=1, le=64)
    work_in_server: bool = setting(True, "Do the work behind the calls in the server; off: `roomlore worker` does it.")
    link_kernel: bool = setting(True, "Use the compiled link model if `roomlore-kernel` is installed; off: numpy.")


class ReplySettings(Section):
    """Replies of an agent."""

    section: ClassVar[str] = "replies"
    reply_model: str = setting(
        "", "The model that replies where the call names none; empty: the only one there is.", form="a model's name"
    )
    content_filter_text: str = setting(
        "", "What ends a reply that the provider's filter cut; empty: a sentence that ships.", form="a text"
    )
    length_text: str = setting("", "What ends a reply that grew too long; empty: a sentence that ships.", form="a text")


class RecallSettings(Section):
    """Facts that are recalled."""

    section: ClassVar[str] = "recall"
    enabled: bool = setting(True, "Recall facts; off: nothing is recalled.")
    max_injection_tokens: Whole = setting(
        2000, "Maximum number of tokens of the block of facts where the call does not say.", ge=0, le=1_000_000
    )
    max_context_turns: Whole = setting(
        3, "The user's last messages, with the answers between them, that facts are recalled for.", ge=0, le=100
    )
    similarity_weight: Number = setting(0.6, "Weight of a fact's similarity to what was said.", ge=0, le=1)
    confidence_weight: Number = setting(0.4, "Weight of a fact's confidence.", ge=0, le=1)
    similarity: Literal["auto", "tfidf", "embedding", "hybrid"] = setting(
        "auto", "How similarity is found: by words, by vectors, or by both; auto: by both if embeddings are configured."
    )
    similarity_scale: Literal["fit", "literal"] = setting(
        "fit", "Similarity as it counts: scaled to what fits the block, or the cosine as it is."
    )


class LimitSettings(Section):
    """The most that is accepted."""

    section: ClassVar[str] = "limits"
    max_text_chars: Whole = setting(1_048_576, "Longest text of a message, in characters.", ge=1, le=16_777_216)
    max_batch_messages: Whole = setting(10_000, "Maximum number of messages in one call.", ge=1, le=100_000)
    max_body_bytes: Whole = setting(
        16_777_216,
        "Largest HTTP body of a request that writes messages, facts or sessions, in bytes.",
        ge=1024,
        le=1_073_741_824,
    )
    max_page: Whole = setting(1000, "Maximum number of items in one page.", ge=1, le=10_000)


def _split(value: Any) -> Any:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


_ReadKind = Literal["picture", "sticker", "voice", "video"]


class AttachmentSettings(Section):
    """What models say of the attachments of messages that are added; imports have a describer of their own."""

    section: ClassVar[str] = "attachments"
    caption_model: str = setting(
        "",
        "The model of `models` that says what pictures show; empty: pictures are left as they are.",
        form="a model's name",
    )
    transcript_model: str = setting(
        "",
        "The model of `models` that writes down what is said in voice messages; empty: they are left as they are.",
        form="a model's name",
    )
    attachment_kinds: Annotated[tuple[_ReadKind, ...], BeforeValidator(_split)] = setting(
        ("picture", "voice"),
        "The kinds of attachments that are read.",
        form="some of picture, sticker, voice and video, as a list or separated by commas",
    )
    attachment_folder: str = setting(
        "",
        "Folder of attached files; of a tenant NAME its `tenants/NAME`; empty: none is read.",
        form="a path, or nothing",
    )
    attachment_private: bool = setting(
        False, "Also fetch attachments from private addresses; off: only from the public internet."
    )
    max_attachment_bytes: Whole = setting(
        10_485_760, "Longest attachment that is read, in bytes.", ge=1024, le=67_108_864
    )

    @property
    def read(self) -> tuple[_ReadKind, ...]:
        """The kinds of attachments that a model reads."""
        models = {"picture": self.caption_model, "sticker": self.caption_model}
        return tuple(kind for kind in self.attachment_kinds if models.get(kind, self.transcript_model))


def _limit(default: int | None, description: str) -> Any:
    return setting(
        default, f"{description}; none: any number.", form=f"a whole number from 0 to {MOST}, or none", ge=0, le=MOST
    )


class QuotaSettings(Section):
    """Limits of a tenant. `roomlore tenants limit` gives one tenant other limits."""

    section: ClassVar[str] = "quotas"
    quota_messages_a_day: Whole | None = _limit(
        None, "Maximum number of messages that a tenant may add in a day of UTC"
    )
    quota_model_tokens_a_day: Whole | None = _limit(
        None, "Maximum number of model tokens, sent and received, that a tenant may use in a day of UTC"
    )
    quota_messages_kept: Whole | None = _limit(None, "Maximum number of messages that a tenant may keep")
    quota_requests_a_minute: Whole | None = _limit(None, "Most HTTP requests that a tenant may send in a minute")
    quota_attachments_a_day: Whole | None = _limit(
        500, "Most attachments that models describe for a tenant in a day of UTC, if they do"
    )
    quota_attachment_bytes_a_day: Whole | None = _limit(
        536_870_912, "Most bytes of attachments that models read for a tenant in a day of UTC, if they do"
    )

    def limits(self, *, attachments: bool = False) -> Quotas:
        """Return the limits of a tenant that has none of its own. `attachments`: True if models describe them."""
        given = {name: getattr(self, f"quota_{name}") for name in LIMITS}
        return Quotas(**given if attachments else {**given, ATTACHMENTS: None, ATTACHMENT_BYTES: None})


def _days(what: str) -> Any:
    form = "a whole number from 1 to 36500, or none"
    return setting(None, f"Days after which {what}; none: never.", form=form, ge=1, le=36_500)


class RetentionSettings(Section):
    """Days after which messages and records are archived or deleted."""

    section: ClassVar[str] = "retention"
    retain_messages_days: Whole | None = _days("messages are archived: written to a file, and erased in the database")
    retain_answers_days: Whole | None = _days("the raw answers of models are removed from the records of evolutions")
    archive_folder: str = setting(
        "roomlore-archives", "The folder of the archives; back it up with the database.", form="a path"
    )


class ServerSettings(Section):
    """The HTTP service, and the log."""

    section: ClassVar[str] = "server"
    host: str = setting(
        "127.0.0.1", "Address to serve on; a public one needs an API key.", form="a host name or IP address"
    )
    port: Whole = setting(8765, "Port to serve on; 0 takes a free one.", ge=0, le=65535)
    allowed_hosts: Annotated[tuple[str, ...], BeforeValidator(_split)] = setting(
        (),
        "Further Host headers accepted from clients without a key.",
        form="host names, as a list or separated by commas",
    )
    oauth_issuer: Annotated[str, AfterValidator(_checked_address)] = setting(
        "",
        "The issuer of an OAuth 2 authorization server: MCP takes its access tokens too, and tells clients of it.",
        form="an https URL without a query, exactly as the server's metadata has it",
    )
    oauth_resource: Annotated[str, AfterValidator(_checked_address)] = setting(
        "",
        "The address of MCP as clients use it, which is the audience that access tokens must have.",
        form="an https URL without a query, such as https://memory.example.com/mcp",
    )
    oauth_user_claim: str = setting(
        "sub",
        "The claim of an access token with the person's id as rooms know it; take none that people can change.",
        form="the name of a claim",
        min_length=1,
    )
    log_format: Literal["console", "json"] = setting("console", "How log lines look.")
    log_level: Literal["debug", "info", "warning", "error"] = setting("info", "The least serious log line written.")

    @model_validator(mode="after")
    def _names_issuer_and_resource(self) -> "ServerSettings":
        if bool(self.oauth_issuer) is not bool(self.oauth_resource):
            raise ValueError("oauth_issuer and oauth_resource belong together; set both or neither.")
        return self
