"""The settings: one frozen object, in sections, and its values as people read them."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, PrivateAttr, SerializeAsAny, ValidationError
from pydantic.fields import FieldInfo

from roomlore.core.chat import EVOLVE_MODEL, ModelRegistry
from roomlore.core.context import ContextOptions
from roomlore.core.errors import InvalidInput
from roomlore.ports.backends import KINDS, Backend, Kind, Section
from roomlore.settings.registry import backend_sections, backends_of
from roomlore.settings.sections import (
    AttachmentSettings,
    ContextSettings,
    DatabaseSettings,
    DigestSettings,
    EvolutionSettings,
    LimitSettings,
    ModelSettings,
    QuotaSettings,
    RecallSettings,
    ReplySettings,
    RetentionSettings,
    SearchSettings,
    ServerSettings,
    SessionSettings,
    WorkSettings,
)
from roomlore.settings.sources import (
    Found,
    from_environment,
    gather,
    is_secret,
    range_of_field,
    sentences,
    shown,
    unknown_names,
)

S = TypeVar("S", bound=Section)
T = TypeVar("T")


class Settings(BaseModel):
    """The settings of roomlore, in sections. A setting is given by its name, as `Settings(port=1)`, or in its section,
    as `Settings(server={"port": 1})`; it is read in its section or by its name. Raise `InvalidInput` that names the
    setting, the value, its source and the range."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    database: DatabaseSettings
    context: ContextSettings
    search: SearchSettings
    sessions: SessionSettings
    language_models: ModelSettings
    evolution: EvolutionSettings
    digests: DigestSettings
    work: WorkSettings
    replies: ReplySettings
    recall: RecallSettings
    attachments: AttachmentSettings
    limits: LimitSettings
    quotas: QuotaSettings
    retention: RetentionSettings
    server: ServerSettings
    backends: Mapping[str, SerializeAsAny[Section]]

    _sources: Mapping[str, str] = PrivateAttr(default_factory=dict)
    _ignored: tuple[str, ...] = PrivateAttr(default=())
    _keys: Mapping[str, str] = PrivateAttr(default_factory=dict)

    def __init__(self, config: str | Path | None = None, /, **arguments: Any) -> None:
        found = gather(all_sections(), known_fields(), config, arguments)
        super().__init__(**_sections_of(found))
        self._check()
        self._sources = {name: source for name, (_, source) in found.items()}
        self._ignored = tuple(unknown_names(known_fields()))

    def changed(self, **arguments: Any) -> "Settings":
        """Return these settings with others in place of some. The file and the environment are not read again."""
        sections = {**{name: getattr(self, name) for name in _own()}, **self.backends}
        kept = {name: value for one in sections.values() for name, value in one.model_dump(exclude_unset=True).items()}
        found = {name: (value, self.source(name)) for name, value in kept.items()}
        found |= {name: (value, "argument") for name, value in arguments.items()}
        copy = self.model_copy(update=_sections_of(found))
        copy._check()  # noqa: SLF001
        copy._sources = {name: source for name, (_, source) in found.items()}  # noqa: SLF001
        return copy

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            section = _section_of().get(name)
            if section is None:
                return super().__getattr__(name)
            return getattr(self.section(section), name)

    def section(self, name: str) -> Section:
        """Return a section by its name. Raise `KeyError`."""
        section: Section = self.backends[name] if name in self.backends else getattr(self, name)
        return section

    def of(self, backend: Backend[Any, S]) -> S:
        """Return the settings of a backend."""
        section = backend.settings.section
        if not section:
            return backend.settings()
        found = self.backends[section]
        assert isinstance(found, backend.settings)
        return found

    def named(self, kind: Kind[Any]) -> str:
        """Return the value of the setting that names the backend of this kind; 'auto' if there is no such setting."""
        return str(getattr(self, kind.setting)) if kind.setting else "auto"

    def candidates(self, kind: Kind[T]) -> list[Backend[T, Any]]:
        """Return the backends of this kind that the settings allow, the best first."""
        known, name = backends_of(kind), self.named(kind)
        if name in known:
            return [known[name]]
        return [one for one in known.values() if not one.lacks(self.of(one))] if name == "auto" else []

    def _check(self) -> None:
        """Raise `InvalidInput` if sections contradict each other."""
        registry = ModelRegistry.read(self.language_models.models, self.language_models.providers)
        for name, model in (
            ("evolve_model", self.evolution.evolve_model),
            ("digest_model", self.digests.digest_model),
            ("caption_model", self.attachments.caption_model),
            ("transcript_model", self.attachments.transcript_model),
        ):
            if model not in ("", EVOLVE_MODEL) and registry.find(model) is None:
                raise InvalidInput("setting_model_unknown", name=name, model=f"{model!r:.80}")
        for kind in KINDS:
            name = self.named(kind)
            backend = backends_of(kind).get(name)
            if backend is not None and (lacking := backend.lacks(self.of(backend))):
                raise InvalidInput("setting_lacks", setting=kind.setting, value=name, lacking=lacking)

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


@cache
def _own() -> dict[str, type[Section]]:
    return {name: field.annotation for name, field in Settings.model_fields.items() if name != "backends"}  # type: ignore[misc]


@cache
def all_sections() -> Mapping[str, type[Section]]:
    """Return every section by its name, those of backends last."""
    return {**_own(), **backend_sections()}


@cache
def _section_of() -> Mapping[str, str]:
    return dict(_named_fields())


def _named_fields() -> Iterator[tuple[str, str]]:
    seen: dict[str, str] = {}
    for section, kind in all_sections().items():
        for name in kind.model_fields:
            if name in seen or name in all_sections():
                raise InvalidInput(
                    "setting_in_two_sections", name=repr(name), section=seen.get(name, name), other=section
                )
            seen[name] = section
            yield name, section


@cache
def known_fields() -> Mapping[str, FieldInfo]:
    """Return every setting by its name, section by section."""
    return {name: field for kind in all_sections().values() for name, field in kind.model_fields.items()}


def section_of(name: str) -> str:
    """Return the section of a setting."""
    return _section_of()[name]


def _plain(value: Any) -> Any:
    """Return a path as text, as the settings keep it."""
    return str(value) if isinstance(value, Path) else value


def _sections_of(found: Found) -> dict[str, Any]:
    """Return the sections with these values. Raise `InvalidInput` with every bad one."""
    made: dict[str, Section] = {}
    wrong: list[str] = []
    for section, kind in all_sections().items():
        values = {name: _plain(value) for name, (value, _) in found.items() if name in kind.model_fields}
        try:
            made[section] = kind(**values)
        except ValidationError as error:
            wrong.append(sentences(error, found, known_fields()))
    if wrong:
        raise InvalidInput("\n".join(wrong))
    own = {name: made.pop(name) for name in _own()}
    return {**own, "backends": made}


def context_options(settings: Settings) -> ContextOptions:
    """Return the context options of these settings; a room may override them."""
    return settings.context.options()


class Row(NamedTuple):
    """A setting for display; a password in a URL is masked."""

    section: str
    name: str
    value: str
    source: str
    description: str


def explain(settings: Settings) -> list[Row]:
    """Return every setting with its source, section by section."""
    return [row(name, getattr(settings, name), settings.source(name)) for name in known_fields()]


def row(name: str, value: Any, source: str) -> Row:
    """Return one setting for display."""
    field = known_fields()[name]
    text = "***" if is_secret(field) and value else shown(value)
    return Row(section_of(name), name, text, source, field.description or "")


def range_of(name: str) -> str:
    """Return the values a setting takes, in words."""
    return range_of_field(known_fields()[name])
