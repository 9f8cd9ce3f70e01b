"""How models stand, and what came back when they were tried."""

from dataclasses import dataclass

from roomlore.core.chat.models import Usage


@dataclass(frozen=True, slots=True)
class ProviderStanding:
    """A provider of a model: whether it can be asked at all (it has a key or needs none), and whether it is left alone
    for the moment after failures. `key_variable`: where its key is looked for, None where it needs none."""

    name: str
    model_id: str
    usable: bool
    resting: bool
    key_variable: str | None


@dataclass(frozen=True, slots=True)
class ModelStanding:
    """A model with its providers in order. `usable`: one of them can be asked."""

    model_id: str
    display_name: str
    internal: bool
    usable: bool
    providers: tuple[ProviderStanding, ...]


@dataclass(frozen=True, slots=True)
class ModelTrial:
    """What came back when a provider was asked for a word. `error`: '' where it answered, else why not."""

    model_id: str
    provider: str
    provider_model_id: str
    text: str
    error: str
    seconds: float
    usage: Usage
