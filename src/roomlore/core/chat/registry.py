"""The models a configuration names, each with the providers that are tried in order."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from roomlore.core.errors import InvalidInput, NotFound

SUMMARY_MODEL = "memory-summary-model"


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
        Provider("openai", "https://api.openai.com/v1", "OPENAI_API_KEY"),
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
    }
}


class ModelRegistry:
    """Every model that is configured, with those that ship."""

    def __init__(self, entries: Iterable[ModelEntry]) -> None:
        self._entries = {entry.model_id: entry for entry in entries}

    @classmethod
    def read(cls, models: Mapping[str, Any], providers: Mapping[str, Any]) -> "ModelRegistry":
        """From the settings `models` and `providers`. An entry of the same name takes the place of one that ships;
        an empty one (null) takes it away. Raises `InvalidInput` that names the entry and what to mend."""
        known = {**KNOWN_PROVIDERS, **{name: _provider(name, form) for name, form in providers.items()}}
        forms = {name: form for name, form in {**_SHIPPED, **models}.items() if form is not None}
        return cls(_entry(name, form, known) for name, form in forms.items())

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
            raise NotFound(f"There is no model {model_id!r}; there are {names}.")
        return entry

    def key_variables(self) -> frozenset[str]:
        """The environment variables that keys are read from."""
        offers = (offer for entry in self._entries.values() for offer in entry.offers)
        return frozenset(o.provider.key_variable for o in offers if o.provider.key_variable)


def _provider(name: str, form: Any) -> Provider:
    given = _mapping(f"provider {name!r}", form, {"base_url", "key_variable"}, f"{{base_url: {_EXAMPLE_URL}}}")
    url, variable = given.get("base_url"), given.get("key_variable")
    if not isinstance(url, str) or not url.startswith(("http://", "https://")):
        raise InvalidInput(f"provider {name!r} needs a base_url, such as {_EXAMPLE_URL}.")
    if not isinstance(variable, str | None):
        raise InvalidInput(f"key_variable of provider {name!r} must be the name of an environment variable.")
    return Provider(str(name), url.rstrip("/"), variable or None)


def _entry(name: str, form: Any, known: Mapping[str, Provider]) -> ModelEntry:
    fields = {"display_name", "internal", "providers"}
    given = _mapping(f"model {name!r}", form, fields, "{providers: [{name: openai, model_id: ...}]}")
    internal = given.get("internal", False)
    if not isinstance(internal, bool):
        raise InvalidInput(f"internal of model {name!r} must be true or false.")
    offers = given.get("providers")
    if not isinstance(offers, Sequence) or isinstance(offers, str) or not offers:
        raise InvalidInput(f"model {name!r} needs providers: a list of {{name: ..., model_id: ...}} in order.")
    return ModelEntry(
        model_id=str(name),
        display_name=str(given.get("display_name") or name),
        internal=internal,
        offers=tuple(_offer(name, offer, known) for offer in offers),
    )


def _offer(model: str, form: Any, known: Mapping[str, Provider]) -> Offer:
    given = _mapping(f"A provider of model {model!r}", form, {"name", "model_id"}, "{name: openai, model_id: ...}")
    name, model_id = given.get("name"), given.get("model_id")
    if not isinstance(name, str) or name not in known:
        raise InvalidInput(
            f"model {model!r} names the provider {name!r}, which nobody knows; there are {', '.join(known)}, and any "
            "other under `providers:`."
        )
    if not isinstance(model_id, str) or not model_id:
        raise InvalidInput(f"model {model!r} at {name!r} needs a model_id: what the provider calls it.")
    return Offer(known[name], model_id)


_EXAMPLE_URL = "http://localhost:8000/v1"


def _mapping(what: str, form: Any, fields: set[str], example: str) -> Mapping[str, Any]:
    if not isinstance(form, Mapping):
        raise InvalidInput(f"{what} is {form!r:.60}; it must be a mapping, such as {example}.")
    strangers = sorted(str(name) for name in form if name not in fields)
    if strangers:
        raise InvalidInput(f"{what} has no field {strangers[0]!r}; there are {', '.join(sorted(fields))}.")
    return form
