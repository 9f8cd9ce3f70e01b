"""The models a configuration names, each with the providers that are tried in order."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from roomlore.core.errors import InvalidInput, NotFound

SUMMARY_MODEL = "memory-summary-model"
EVOLVE_MODEL = "memory-evolve-model"


@dataclass(frozen=True, slots=True)
class Provider:
    """A server that speaks OpenAI's protocol. `key_variable`: the environment variable with its API key, None where it
    needs none. `limit_field`: what it calls the most tokens an answer may have."""

    name: str
    base_url: str
    key_variable: str | None = None
    limit_field: str = "max_tokens"


@dataclass(frozen=True, slots=True)
class Offer:
    """A model at a provider, by the id it has there."""

    provider: Provider
    model_id: str


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A model as callers know it. `internal`: not shown to them. `offers`: where it can be had, in order."""

    model_id: str
    display_name: str
    internal: bool
    offers: tuple[Offer, ...]


KNOWN_PROVIDERS: Mapping[str, Provider] = {
    provider.name: provider
    for provider in (
        Provider("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
        Provider("siliconflow", "https://api.siliconflow.cn/v1", "SILICONFLOW_API_KEY"),
        Provider("openai", "https://api.openai.com/v1", "OPENAI_API_KEY", "max_completion_tokens"),
        Provider("ollama", "http://127.0.0.1:11434/v1"),
    )
}

_SHIPPED: Mapping[str, Any] = {
    SUMMARY_MODEL: {
        "display_name": "Memory summary",
        "internal": True,
        "providers": [
            {"name": "openrouter", "model_id": "google/gemma-3-12b-it"},
            {"name": "siliconflow", "model_id": "Qwen/Qwen2.5-7B-Instruct"},
        ],
    },
    EVOLVE_MODEL: {
        "display_name": "Memory evolution",
        "internal": True,
        "providers": [
            {"name": "openrouter", "model_id": "google/gemini-2.5-flash"},
            {"name": "siliconflow", "model_id": "Qwen/Qwen2.5-72B-Instruct"},
        ],
    },
}


class ModelRegistry:
    """Every model that is configured, with those that ship."""

    def __init__(self, entries: Iterable[ModelEntry]) -> None:
        self._entries = {entry.model_id: entry for entry in entries}

    @classmethod
    def read(cls, models: Mapping[str, Any], providers: Mapping[str, Any]) -> "ModelRegistry":
        """From the settings `models` and `providers`. An entry of the same name takes the place of one that ships, and
        an empty one (null) takes it away; a known provider keeps what its entry leaves out. Raises `InvalidInput` that
        names the entry and what to mend, and never what was given: it may be a key in the wrong place."""
        known = {**KNOWN_PROVIDERS}
        for name, form in _named("providers", providers).items():
            known[name] = _provider(name, form, KNOWN_PROVIDERS.get(name))
        forms = {**_SHIPPED, **_named("models", models)}
        return cls(_entry(name, form, known) for name, form in forms.items() if form is not None)

    def list_available_models(self) -> list[ModelEntry]:
        """What callers may choose from, in the order configured: everything but internal entries."""
        return [entry for entry in self._entries.values() if not entry.internal]

    def all(self) -> list[ModelEntry]:
        """Internal entries too."""
        return list(self._entries.values())

    def find(self, model_id: str) -> ModelEntry | None:
        return self._entries.get(model_id)

    def require(self, model_id: str) -> ModelEntry:
        """The entry; `NotFound` that names the others."""
        entry = self._entries.get(model_id)
        if entry is None:
            names = ", ".join(e.model_id for e in self.list_available_models()) or "none; name some under `models:`"
            raise NotFound(f"There is no model {model_id!r:.80}; there are {names}.")
        return entry

    def key_variables(self) -> frozenset[str]:
        """The environment variables that keys are read from."""
        offers = (offer for entry in self._entries.values() for offer in entry.offers)
        return frozenset(o.provider.key_variable for o in offers if o.provider.key_variable)


def _named(setting: str, forms: Any) -> Mapping[str, Any]:
    if not isinstance(forms, Mapping):
        raise InvalidInput(f"{setting} must be a mapping of names to entries.")
    if not all(isinstance(name, str) and name.strip() for name in forms):
        raise InvalidInput(f"Every name under {setting} must be a text; put it in quotes.")
    return forms


def _provider(name: str, form: Any, shipped: Provider | None) -> Provider:
    what = f"provider {name!r}"
    given = _mapping(what, form, _PROVIDER_FIELDS, f"{{base_url: {_EXAMPLE_URL}}}")
    limit = given.get("limit_field", shipped.limit_field if shipped else "max_tokens")
    if limit not in _LIMIT_FIELDS:
        raise InvalidInput(f"limit_field of {what} must be {' or '.join(_LIMIT_FIELDS)}.")
    return Provider(
        name,
        _base_url(what, given.get("base_url", shipped.base_url if shipped else None)),
        _key_variable(what, given.get("key_variable", shipped.key_variable if shipped else None)),
        limit,
    )


def _base_url(what: str, url: Any) -> str:
    if not isinstance(url, str) or not _is_web_address(url):
        raise InvalidInput(f"{what} needs a base_url, such as {_EXAMPLE_URL}.")
    if "@" in urlsplit(url).netloc:
        raise InvalidInput(f"base_url of {what} must hold no password; name a variable with the key in key_variable.")
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
        raise InvalidInput(f"key_variable of {what} must be the name of an environment variable, never the key itself.")
    return variable


def _entry(name: str, form: Any, known: Mapping[str, Provider]) -> ModelEntry:
    what = f"model {name!r}"
    given = _mapping(what, form, _MODEL_FIELDS, "{providers: [{name: openai, model_id: ...}]}")
    internal, shown = given.get("internal", False), given.get("display_name")
    if not isinstance(internal, bool):
        raise InvalidInput(f"internal of {what} must be true or false.")
    if not isinstance(shown, str | None):
        raise InvalidInput(f"display_name of {what} must be a text.")
    offers = given.get("providers")
    if not isinstance(offers, Sequence) or isinstance(offers, str | bytes) or not offers:
        raise InvalidInput(f"{what} needs providers: a list of {{name: ..., model_id: ...}} in order.")
    return ModelEntry(
        model_id=name,
        display_name=shown or name,
        internal=internal,
        offers=tuple(_offer(what, offer, known) for offer in offers),
    )


def _offer(what: str, form: Any, known: Mapping[str, Provider]) -> Offer:
    given = _mapping(f"A provider of {what}", form, ("name", "model_id"), "{name: openai, model_id: ...}")
    name, model_id = given.get("name"), given.get("model_id")
    if not isinstance(name, str) or name not in known:
        others = f"there are {', '.join(known)}, and any other under `providers:`"
        raise InvalidInput(f"{what} names a provider that nobody knows; {others}.")
    if not isinstance(model_id, str) or not model_id.strip():
        raise InvalidInput(f"{what} at {name!r} needs a model_id: what the provider calls it.")
    return Offer(known[name], model_id)


def _mapping(what: str, form: Any, fields: Sequence[str], example: str) -> Mapping[str, Any]:
    if not isinstance(form, Mapping):
        raise InvalidInput(f"{what} must be a mapping, such as {example}.")
    strangers = sorted(str(name) for name in form if name not in fields)
    if strangers:
        raise InvalidInput(f"{what} has no field {strangers[0]!r:.60}; there are {', '.join(fields)}.")
    return form


_EXAMPLE_URL = "http://localhost:8000/v1"
_LIMIT_FIELDS = ("max_tokens", "max_completion_tokens")
_MODEL_FIELDS = ("display_name", "internal", "providers")
_PROVIDER_FIELDS = ("base_url", "key_variable", "limit_field")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
