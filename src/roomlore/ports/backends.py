"""Backends: what a vector store, an embedder or a durable engine declares of itself, so that nothing else names it.

A backend is a `Backend` in its own file: its kind, its name, its settings, how it is opened, and how it is probed. One
line registers it: in `roomlore.adapters`, or in another package as an entry point of the group `roomlore.backends`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Protocol, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from roomlore.core.chat import Provider
from roomlore.core.errors import RoomloreError
from roomlore.core.health import Finding, Saying, say
from roomlore.ports.coordination import Clock, ErrorReports, SessionCache, Telemetry, Tracer
from roomlore.ports.durable import DurableWork
from roomlore.ports.language import ChatClient, Embedder, Prompts
from roomlore.ports.vectors import VectorIndex

if TYPE_CHECKING:
    from roomlore.storage import Storage

BACKENDS = "roomlore.backends"
"""The group of entry points under which packages bring backends. Each names a `Backend`."""
IMPORTERS = "roomlore.importers"
"""The group under which one package brings `Importers`."""
FACES = "roomlore.faces"
"""The group under which a package brings a module that serves, known by the entry point's name: `http` and `mcp`."""
STRATEGIES = "roomlore.strategies"
"""The group under which packages bring context strategies. Each names a `Strategy`, known by the entry point's name."""


class Section(BaseModel):
    """A section of the settings. Its names are unique over all sections and may be given outside it too. Inside it they
    may go without the section's name, as `url` for `cache_url` in `cache`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
    section: ClassVar[str] = ""


def setting(default: Any, description: str, *, form: str | None = None, hidden: str = "", **bounds: float) -> Any:
    """Return a field of a section. `form`: the form of its values, if the type does not say. `hidden`: 'secret' if the
    value is never shown, 'in errors' if it is not shown in errors."""
    extra = {"form": form, "hidden": hidden}
    return Field(default, description=description, json_schema_extra=extra, **bounds)  # type: ignore[call-overload]


def _no_truth(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("a truth value is no number")
    return value


Whole = Annotated[int, BeforeValidator(_no_truth)]
Number = Annotated[float, BeforeValidator(_no_truth)]


def _web(value: str) -> str:
    if value and not value.startswith(("http://", "https://")):
        raise ValueError("no web address")
    return value


WebAddress = Annotated[str, BeforeValidator(lambda value: _web(value) if isinstance(value, str) else value)]
"""An http or https URL, or nothing."""


class PromptServer(Prompts, Protocol):
    """Prompts that are stored elsewhere."""

    async def close(self) -> None: ...


T = TypeVar("T")
S = TypeVar("S", bound=Section)


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """A kind of backends, of which one is used at a time. `setting`: the setting that names it; without one the first
    backend is used whose own settings are complete. `choices`: the values of that setting that name no backend: 'auto'
    for the first that can be used, 'off' for none. `off`: the state of one that is not used."""

    name: str
    setting: str = ""
    choices: tuple[str, ...] = ()
    off: Saying | None = None


VECTORS: Kind[VectorIndex] = Kind("vector store", "vectors", ("auto",), say("vectors.off"))
DURABLE: Kind[DurableWork] = Kind("durable engine", "durable_work", ("auto",))
EMBEDDERS: Kind[Embedder] = Kind("embedder", "embeddings", ("off",))
CHAT: Kind[ChatClient] = Kind("model client")
CACHES: Kind[SessionCache] = Kind("session cache", off=say("cache.off"))
PROMPTS: Kind[PromptServer] = Kind("source of prompts", off=say("prompts.off"))
TRACERS: Kind[Tracer] = Kind("receiver of spans")
REPORTS: Kind[ErrorReports] = Kind("receiver of errors", off=say("reports.off"))
KINDS: tuple[Kind[Any], ...] = (VECTORS, DURABLE, EMBEDDERS, CHAT, CACHES, PROMPTS, TRACERS, REPORTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The parts of the opening roomlore that a backend may use. `url`: of the database. `storage`, `telemetry` and
    `packaged`, the prompts that ship, are None for kinds that are opened before them. `at_once`: pieces of durable work
    that run together. `providers`: those of models, by name; `keys`: their API keys, by environment variable."""

    url: str
    clock: Clock
    storage: "Storage | None" = None
    telemetry: Telemetry | None = None
    packaged: Prompts | None = None
    at_once: int = 1
    providers: Mapping[str, Provider] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Extra:
    """The extra of roomlore that a backend needs, and a module that it provides. `shared`: other extras bring that
    module too, so it counts as installed only if a setting uses it."""

    name: str
    module: str
    shared: bool = False


def _nothing(_: Any) -> str:
    return ""


async def _never(_: Any, __: Host) -> RoomloreError | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend(Generic[T, S]):
    """A backend.

    `open`: return it; no request is sent yet. `lacks`: return what its settings lack, '' if they are complete.
    `refuses`: return the error for which it cannot be used with this database, None if it can; it may ask the database.
    `probe`: return what `roomlore doctor` finds, within these seconds; roomlore's errors become findings. `slow_ms`: a
    probe that takes longer is a warning. `in_database`: it keeps its data in roomlore's own database.
    """

    kind: Kind[T]
    name: str
    open: Callable[[S, Host], T]
    settings: type[S]
    lacks: Callable[[S], str] = _nothing
    refuses: Callable[[S, Host], Awaitable[RoomloreError | None]] = _never
    probe: Callable[[S, Host, float], Awaitable[Sequence[Finding]]] | None = None
    slow_ms: float = 1000
    extra: Extra | None = None
    in_database: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DurableBackend(Backend[DurableWork, S]):
    """A durable engine. `is_left`: return True if unfinished work is stored for the database at this URL; it blocks and
    creates nothing. None if no other process sees the work."""

    is_left: Callable[[str], bool] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatBackend(Backend[ChatClient, S]):
    """A model client. `reach`: check, without calling a model, that a provider answers and takes the key. Raises
    `ModelUnavailable`."""

    reach: Callable[[Provider, str | None, float], Awaitable[None]]


class NoSettings(Section):
    """For a backend that has none."""
