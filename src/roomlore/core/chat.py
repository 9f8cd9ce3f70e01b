"""Requests to language models, their answers, and the providers that are known by name.

Addresses and models of providers are those of their own documentation, read in November 2026.
"""

import base64
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import urlsplit

from roomlore.core.errors import BadModelOutput, InvalidInput, ModelUnavailable, NotFound
from roomlore.core.patterns import lazy_pattern
from roomlore.core.texts import Phrase, sentences

SUMMARY_MODEL = "memory-summary-model"
EVOLVE_MODEL = "memory-evolve-model"


@dataclass(frozen=True, slots=True)
class Provider:
    """A server that speaks OpenAI's protocol. `key_variable`: the environment variable with its API key, None if it
    needs none. `limit_field`: the provider's name for the maximum of answer tokens."""

    name: str
    base_url: str
    key_variable: str | None = None
    limit_field: str = "max_tokens"


KNOWN_PROVIDERS: Mapping[str, Provider] = {
    provider.name: provider
    for provider in (
        Provider("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
        Provider("siliconflow", "https://api.siliconflow.cn/v1", "SILICONFLOW_API_KEY"),
        Provider("deepseek", "https://api.deepseek.com", "DEEPSEEK_API_KEY"),
        Provider("dashscope", "https://dashscope.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY"),
        Provider("zhipu", "https://open.bigmodel.cn/api/paas/v4", "ZAI_API_KEY"),
        Provider("moonshot", "https://api.moonshot.cn/v1", "MOONSHOT_API_KEY"),
        Provider("volcengine", "https://ark.cn-beijing.volces.com/api/v3", "ARK_API_KEY"),
        Provider("openai", "https://api.openai.com/v1", "OPENAI_API_KEY", "max_completion_tokens"),
        Provider("ollama", "http://127.0.0.1:11434/v1"),
    )
}

_UNTHINKING = {"thinking": {"type": "disabled"}}
_UNTHINKING_QWEN = {"enable_thinking": False}

SHIPPED: Mapping[str, Any] = {
    SUMMARY_MODEL: {
        "display_name": "Memory summary",
        "internal": True,
        "providers": [
            {"name": "openrouter", "model_id": "google/gemma-3-12b-it"},
            {"name": "siliconflow", "model_id": "Qwen/Qwen2.5-7B-Instruct"},
            {"name": "deepseek", "model_id": "deepseek-v4-flash", "options": _UNTHINKING},
            {"name": "dashscope", "model_id": "qwen-flash", "options": _UNTHINKING_QWEN},
            {"name": "zhipu", "model_id": "glm-4-flash"},
            {"name": "moonshot", "model_id": "moonshot-v1-auto"},
            {"name": "volcengine", "model_id": "doubao-seed-1-6-flash-250828", "options": _UNTHINKING},
        ],
    },
    EVOLVE_MODEL: {
        "display_name": "Memory evolution",
        "internal": True,
        "providers": [
            {"name": "openrouter", "model_id": "google/gemini-2.5-flash"},
            {"name": "siliconflow", "model_id": "Qwen/Qwen2.5-72B-Instruct"},
            {"name": "deepseek", "model_id": "deepseek-v4-flash", "options": _UNTHINKING},
            {"name": "dashscope", "model_id": "qwen-plus", "options": _UNTHINKING_QWEN},
            {"name": "zhipu", "model_id": "glm-4-plus"},
            {"name": "moonshot", "model_id": "moonshot-v1-auto"},
            {"name": "volcengine", "model_id": "doubao-seed-1-6-251015", "options": _UNTHINKING},
        ],
    },
}
"""The models that roomlore itself uses. Providers without a key are skipped."""


ChatMessage = Mapping[str, Any]
"""A message of OpenAI's protocol: role, content, and for tools tool_calls or tool_call_id."""

NO_MODELS = "none; name some under `models:` in the section `memory:` of roomlore.yaml, or in MEMORY_MODELS"

FinishReason = Literal["stop", "length", "content_filter", "tool_calls"]


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens of a call, as counted by the provider."""

    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call requested by the model. `arguments`: JSON text as the model wrote it, which may be incomplete."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Recording:
    """Speech that a model writes down. `name`: of the file; its ending tells the format. `media_type`: such as
    `audio/ogg`."""

    name: str
    media_type: str
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """A request. None leaves a value to the provider. `recording`: what is to be written down, in place of messages.
    `tenant`: whose quota it counts for, '' for nobody's; it is not sent."""

    messages: Sequence[ChatMessage] = ()
    recording: Recording | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    tools: Sequence[Mapping[str, Any]] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    tenant: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatAnswer:
    """The answer of a model. `model`: the model that answered. `finish_reason`: None if the provider gives none."""

    text: str
    finish_reason: FinishReason | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    provider: str = ""
    model_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatPiece:
    """A piece of a streamed answer. The last one has `finish_reason`, complete `tool_calls` and the usage."""

    text: str = ""
    finish_reason: FinishReason | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    provider: str = ""
    model_id: str = ""


def words_in(message: ChatMessage) -> ChatMessage:
    """Return the message without its pictures, which are no words."""
    parts = message.get("content")
    if not isinstance(parts, list):
        return message
    words = [part for part in parts if not (isinstance(part, Mapping) and part.get("type") == "image_url")]
    return {**message, "content": words}


def about_picture(prompt: str, media_type: str, content: bytes, *, tenant: str = "") -> ChatRequest:
    """Return the request that shows a picture to a model."""
    address = f"data:{media_type};base64,{base64.b64encode(content).decode()}"
    parts = [{"type": "text", "text": prompt}, {"type": "image_url", "image_url": {"url": address}}]
    return ChatRequest(messages=({"role": "user", "content": parts},), max_tokens=_CAPTION_TOKENS, tenant=tenant)


_CAPTION_TOKENS = 1_024
_SILENCE = b"RIFF\xa4\x0c\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x80>\0\0\0}\0\0\2\0\x10\0data\x80\x0c\0\0" + bytes(3_200)
_STRIPES = "iVBORw0KGgoAAAANSUhEUgAAAEAAAABAAQAAAACCEkxzAAAAEklEQVR42mP4AAUMo4xRBukMACHk4BB9bzJSAAAAAElFTkSuQmCC"
"""A tenth of a second of silence, and a picture in base64, with which models are tested."""


def trials(captions: str, transcripts: str) -> Mapping[str, ChatRequest]:
    """Return the test requests of the models that read attachments, by their names."""
    silence = Recording("test.wav", "audio/wav", _SILENCE)
    stripes = about_picture("Say in three words what you see.", "image/png", base64.b64decode(_STRIPES))
    return {transcripts: ChatRequest(recording=silence), captions: stripes}


Failure = ModelUnavailable | BadModelOutput


def all_failed(model_id: str, failures: Sequence[tuple[str, Failure]]) -> Failure:
    """Return one error for all failures. `failures`: provider name and error, in the order of the calls; at least one.
    Kind, cause and wait are those of the last; a single failure keeps its text."""
    last = failures[-1][1]
    if len(failures) == 1:
        return last
    named = [_named_text(*failure) for failure in failures]
    why = sentences(*(Phrase("numbered", number=place, text=text) for place, text in enumerate(named, start=1)))
    text = Phrase("model_providers_failed", count=len(failures), model=repr(model_id), why=why)
    if isinstance(last, ModelUnavailable):
        return ModelUnavailable(text, cause=last.cause, wait_seconds=last.wait_seconds)
    return BadModelOutput(text)


def _named_text(name: str, error: Failure) -> str:
    """Return the error's text with the provider's name."""
    return str(error) if f"provider {name} " in str(error) else Phrase("provider_said", provider=name, error=error)


FAILURES = 3
FIRST_PAUSE_SECONDS = 15.0
LONGEST_PAUSE_SECONDS = 300.0
_DOUBLINGS = 10


@dataclass(frozen=True, slots=True)
class Breaker:
    """The circuit-breaker state of one provider's model. Times are seconds of a monotonic clock.

    `failures`: consecutive failures; `cause`: of the last one. No call is made before `open_until`. After too many
    failures one call may then probe; `trying_until` blocks others while it runs, until it is `answering`.
    """

    failures: int = 0
    cause: str = ""
    open_until: float = float("-inf")
    trying_until: float = float("-inf")
    answering: bool = False

    @property
    def is_open(self) -> bool:
        """True if calls are blocked, except one probe after each pause."""
        return self.failures >= FAILURES

    def allows(self, now: float) -> bool:
        """Return True if a call may be made now."""
        return now >= self.open_until and (not self.is_open or self.answering or now >= self.trying_until)

    def tried(self, now: float, *, seconds: float) -> "Breaker":
        """Return the state after a call begins that may last this many seconds. Only one after the pause is a probe."""
        return replace(self, trying_until=now + seconds) if self.is_open and now >= self.open_until else self

    def begun(self, now: float) -> "Breaker":
        """Return the state when an answer begins. If it is that of a probe, others may call at once, since the answer
        may take a minute. If it breaks off, the next pause is longer all the same."""
        return replace(self, answering=True) if self.is_open and now >= self.open_until else self

    def succeeded(self) -> "Breaker":
        return Breaker()

    def failed(self, now: float, *, wait_seconds: float | None = None, cause: str = "") -> "Breaker":
        """Return the state after a failed call. `wait_seconds`: the pause that the provider asks for. Concurrent calls
        that fail together count only until the breaker opens."""
        if self.is_open and now < self.open_until:
            return self
        failures = self.failures + 1
        pause = max(wait_seconds or 0.0, _pause(failures))
        return Breaker(failures=failures, cause=cause, open_until=now + min(pause, LONGEST_PAUSE_SECONDS))

    def abandoned(self) -> "Breaker":
        """Return the state after a call that ended without a result because the caller stopped waiting. Another may
        probe."""
        return replace(self, trying_until=float("-inf"))


def _pause(failures: int) -> float:
    """Return the pause in seconds; it doubles with each failure after the one that opened the breaker."""
    if failures < FAILURES:
        return 0.0
    return FIRST_PAUSE_SECONDS * 2.0 ** min(failures - FAILURES, _DOUBLINGS)


@dataclass(frozen=True, slots=True)
class Offer:
    """A model at a provider, under the provider's id for it. `options`: fields that every request for it has, unless
    the request gives others."""

    provider: Provider
    model_id: str
    options: Mapping[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A model by the id that callers use. `internal`: hidden from callers. `offers`: its providers, in order."""

    model_id: str
    display_name: str
    internal: bool
    offers: tuple[Offer, ...]


@dataclass(frozen=True, slots=True)
class ProviderStatus:
    """The state of a provider of a model. `model_id`: the model's id there. `usable`: it has a key, or needs none.
    `resting`: it is paused after failures. `key_variable`: the environment variable of its key, None if it needs
    none."""

    name: str
    model_id: str
    usable: bool
    resting: bool
    key_variable: str | None


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """A model of the registry. `usable`: one of its providers can be asked. `providers`: in the order in which they are
    tried."""

    model_id: str
    display_name: str
    internal: bool
    usable: bool
    providers: tuple[ProviderStatus, ...]


class ModelRegistry:
    """Every configured model, including the built-in ones."""

    def __init__(self, entries: Iterable[ModelEntry]) -> None:
        self._entries = {entry.model_id: entry for entry in entries}

    @classmethod
    def read(cls, models: Mapping[str, Any], providers: Mapping[str, Any]) -> "ModelRegistry":
        """Read the settings `models` and `providers`.

        An entry replaces a built-in one of the same name; null removes it. A built-in one tries first the providers
        that the given ones name. A known provider keeps the fields that its entry omits. Raises `InvalidInput` that
        names the entry and the fix. The error never contains the given value, which may be a misplaced key.
        """
        known = read_providers(providers)
        own = {name: _entry(name, form, known) for name, form in _named("models", models).items() if form is not None}
        named = {offer.provider.name for entry in own.values() for offer in entry.offers}
        shipped = (_entry(name, form, known) for name, form in SHIPPED.items() if name not in models)
        entries = {**dict.fromkeys(SHIPPED), **{entry.model_id: _preferring(entry, named) for entry in shipped}, **own}
        return cls(entry for entry in entries.values() if entry is not None)

    def list_available_models(self) -> list[ModelEntry]:
        """Return the models that callers may choose, in configuration order, without internal ones."""
        return [entry for entry in self._entries.values() if not entry.internal]

    def all(self) -> list[ModelEntry]:
        """Return all models, including internal ones."""
        return list(self._entries.values())

    def find(self, model_id: str) -> ModelEntry | None:
        return self._entries.get(model_id)

    def require(self, model_id: str) -> ModelEntry:
        """Return the entry. Raises `NotFound` that names the known models."""
        entry = self._entries.get(model_id)
        if entry is None:
            names = ", ".join(e.model_id for e in self.list_available_models()) or NO_MODELS
            raise NotFound("model_unknown", model=f"{model_id!r:.80}", known=names)
        return entry

    def key_variables(self) -> frozenset[str]:
        """Return the environment variables that hold API keys."""
        offers = (offer for entry in self._entries.values() for offer in entry.offers)
        return frozenset(o.provider.key_variable for o in offers if o.provider.key_variable)


def read_providers(providers: Mapping[str, Any]) -> Mapping[str, Provider]:
    """Read the setting `providers`. Return the known providers as it changes them, and those that it adds. Raises
    `InvalidInput` that names the entry and the fix."""
    known = {**KNOWN_PROVIDERS}
    for name, form in _named("providers", providers).items():
        known[name] = _provider(name, form, KNOWN_PROVIDERS.get(name))
    return known


def _preferring(entry: ModelEntry, named: Set[str]) -> ModelEntry:
    """Return the entry with these providers before the others, each group in its order."""
    return replace(entry, offers=tuple(sorted(entry.offers, key=lambda offer: offer.provider.name not in named)))


def _named(setting: str, forms: Any) -> Mapping[str, Any]:
    if not isinstance(forms, Mapping):
        raise InvalidInput("setting_not_mapping", setting=setting)
    if not all(isinstance(name, str) and name.strip() for name in forms):
        raise InvalidInput("setting_name_not_text", setting=setting)
    return forms


def _provider(name: str, form: Any, shipped: Provider | None) -> Provider:
    what = f"provider {name!r}"
    given = _mapping(what, form, _PROVIDER_FIELDS, f"{{base_url: {_EXAMPLE_URL}}}")
    limit = given.get("limit_field", shipped.limit_field if shipped else "max_tokens")
    if limit not in _LIMIT_FIELDS:
        raise InvalidInput("limit_field_invalid", what=what, known=" or ".join(_LIMIT_FIELDS))
    return Provider(
        name,
        _base_url(what, given.get("base_url", shipped.base_url if shipped else None)),
        _key_variable(what, given.get("key_variable", shipped.key_variable if shipped else None)),
        limit,
    )


def _base_url(what: str, url: Any) -> str:
    if not isinstance(url, str) or not _is_web_address(url):
        raise InvalidInput("base_url_missing", what=what, example=_EXAMPLE_URL)
    if "@" in urlsplit(url).netloc:
        raise InvalidInput("base_url_with_password", what=what)
    return url.rstrip("/")


def _is_web_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        sound = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    plain = url.isprintable() and not any(mark in url for mark in " ?#")
    return sound and plain and parts.scheme in ("http", "https")


def _key_variable(what: str, variable: Any) -> str | None:
    if variable is None or variable == "":
        return None
    if not isinstance(variable, str) or not _VARIABLE.fullmatch(variable):
        raise InvalidInput("key_variable_invalid", what=what)
    return variable


def _entry(name: str, form: Any, known: Mapping[str, Provider]) -> ModelEntry:
    what = f"model {name!r}"
    given = _mapping(what, form, _MODEL_FIELDS, "{providers: [{name: openai, model_id: ...}]}")
    internal, shown = given.get("internal", False), given.get("display_name")
    if not isinstance(internal, bool):
        raise InvalidInput("internal_not_boolean", what=what)
    if not isinstance(shown, str | None):
        raise InvalidInput("display_name_not_text", what=what)
    offers = given.get("providers")
    if not isinstance(offers, Sequence) or isinstance(offers, str | bytes) or not offers:
        raise InvalidInput("providers_missing", what=what)
    return ModelEntry(
        model_id=name,
        display_name=shown or name,
        internal=internal,
        offers=tuple(_offer(what, offer, known) for offer in offers),
    )


def _offer(what: str, form: Any, known: Mapping[str, Provider]) -> Offer:
    given = _mapping(f"A provider of {what}", form, _OFFER_FIELDS, "{name: openai, model_id: ...}")
    name, model_id, options = given.get("name"), given.get("model_id"), given.get("options")
    if not isinstance(name, str) or name not in known:
        raise InvalidInput("provider_unknown", what=what, known=", ".join(known))
    if not isinstance(model_id, str) or not model_id.strip():
        raise InvalidInput("provider_model_missing", what=what, provider=repr(name))
    if not isinstance(options, Mapping | None):
        raise InvalidInput("provider_options_invalid", what=what, provider=repr(name))
    return Offer(known[name], model_id, options or {})


def _mapping(what: str, form: Any, fields: Sequence[str], example: str) -> Mapping[str, Any]:
    if not isinstance(form, Mapping):
        raise InvalidInput("entry_not_mapping", what=what, example=example)
    unknown = sorted(str(name) for name in form if name not in fields)
    if unknown:
        raise InvalidInput("entry_field_unknown", what=what, name=f"{unknown[0]!r:.60}", known=", ".join(fields))
    return form


_EXAMPLE_URL = "http://localhost:8000/v1"
_LIMIT_FIELDS = ("max_tokens", "max_completion_tokens")
_OFFER_FIELDS = ("name", "model_id", "options")
_MODEL_FIELDS = ("display_name", "internal", "providers")
_PROVIDER_FIELDS = ("base_url", "key_variable", "limit_field")
# The name of an environment variable.
_VARIABLE = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*")
