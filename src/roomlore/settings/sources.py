"""The sources of settings, and their texts: values as shown, ranges, and error messages."""

import json
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin
from zoneinfo import ZoneInfo

import yaml
from annotated_types import Ge, Gt, Le
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from roomlore.core.errors import InvalidInput
from roomlore.core.texts import Phrase
from roomlore.ports.backends import Section
from roomlore.settings.retired import RETIRED

_PASSWORD = re.compile(r"(://[^:/@]*:).*(?=@)|([?&]password=)[^&]*")
_DATABASE = re.compile(r"^(sqlite|postgres|postgresql)(\+[a-z0-9]+)?://|\.db$")
CONFIG_FILE = "roomlore.yaml"
CONFIG_VARIABLE = "ROOMLORE_CONFIG"
PREFIX = "MEMORY_"
SECTION = "memory"
_LANGUAGE = "MEMORY_LANGUAGE"  # of the command line, which reads it before any setting
Found = dict[str, tuple[Any, str]]
"""Values with their sources, by the names of settings."""


def range_of_field(field: FieldInfo) -> str:
    """Return the values a setting takes, in words."""
    extra = field.json_schema_extra
    if isinstance(extra, dict) and extra.get("form"):
        return str(extra["form"])
    if get_origin(field.annotation) is Literal:
        return "one of " + ", ".join(get_args(field.annotation))
    return "true or false" if field.annotation is bool else _interval(field)


def is_secret(field: FieldInfo) -> bool:
    """Return True if the value is never shown."""
    return _hidden(field) == "secret"


def _hidden(field: FieldInfo) -> str:
    extra = field.json_schema_extra
    return str(extra.get("hidden", "")) if isinstance(extra, dict) else ""


def _interval(field: FieldInfo) -> str:
    noun = "a whole number" if field.annotation is int else "a number"
    low = next((m for m in field.metadata if isinstance(m, Ge | Gt)), None)
    high = next(m.le for m in field.metadata if isinstance(m, Le))
    return f"{noun} above {low.gt} and up to {high}" if isinstance(low, Gt) else f"{noun} from {low.ge} to {high}"  # type: ignore[union-attr]


def shown(value: Any) -> str:
    """Return a value for display: a password in a URL is masked."""
    if isinstance(value, str):
        return _PASSWORD.sub(r"\1\2***", value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(value)
    return str(value)


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return the name that was most likely meant, or all names."""
    near = get_close_matches(name.lower(), list(names), n=1)
    return Phrase("guess_near", known=near[0]) if near else Phrase("guess_among", known=", ".join(names))


def sentences(
    error: ValidationError,
    found: Mapping[str, tuple[Any, str]],
    settings: Mapping[str, FieldInfo],
) -> str:
    """Return one sentence per line, each once. `found`: values and their sources."""

    def told(detail: Mapping[str, Any]) -> str:
        why = detail.get("ctx", {}).get("error")
        if not detail["loc"] or isinstance(why, InvalidInput):
            return str(why)
        name = str(detail["loc"][0])
        value, source = found[name]
        value = "***" if _hidden(settings[name]) else shown(value)[:120]
        return f"{name} is {value} (from {source}); it must be {range_of_field(settings[name])}."

    return "\n".join(dict.fromkeys(map(told, error.errors())))


def database(value: str) -> str:
    if not _DATABASE.search(value):
        raise ValueError("unknown database")
    return value


def database_or_none(value: str | None) -> str | None:
    return None if value is None else database(value)


def gather(
    sections: Mapping[str, type[Section]],
    known: Mapping[str, FieldInfo],
    config: str | Path | None,
    arguments: Mapping[str, Any],
) -> Found:
    """Return each given setting's value and source; the strongest source wins."""
    found: Found = {}
    for values, source in (_from_file(config), _from_environment(known), (arguments, "argument")):
        for name, value in _flat(values, sections, source):
            told = f"{PREFIX}{name.upper()}" if source == "environment" else source
            if name in RETIRED:
                warnings.warn(f"{name} ({told}) is no longer a setting; its value is {RETIRED[name]}.", stacklevel=3)
            elif name not in known:
                raise InvalidInput(
                    "setting_unknown", name=repr(name), source=source, guess=did_you_mean(name, (*known, *sections))
                )
            elif value is not None:
                found[name] = (value, told)
    return found


def _flat(values: Mapping[str, Any], sections: Mapping[str, type[Section]], source: str) -> Iterator[tuple[str, Any]]:
    """Yield the settings by their names, those in sections too."""
    for name, value in values.items():
        section = sections.get(name)
        if section is None:
            yield name, value
        elif isinstance(value, Section):
            yield from value.model_dump(exclude_unset=True).items()
        elif isinstance(value, Mapping):
            yield from ((_in_section(str(one), section, source), given) for one, given in value.items())
        elif value is not None:
            raise InvalidInput("setting_section_not_mapping", name=name, source=source)


def _in_section(name: str, section: type[Section], source: str) -> str:
    full = f"{section.section}_{name}"
    for known in (name, full):
        if known in section.model_fields or known in RETIRED:
            return known
    guess = did_you_mean(name, section.model_fields)
    raise InvalidInput("section_setting_unknown", name=repr(name), section=section.section, source=source, guess=guess)


def _from_environment(known: Mapping[str, FieldInfo]) -> tuple[Mapping[str, Any], str]:
    for name in unknown_names(known):
        near = get_close_matches(name[len(PREFIX) :].lower(), list(known), n=1, cutoff=0.8)
        if near:
            raise InvalidInput("setting_variable_unknown", name=name, prefix=PREFIX, known=near[0].upper())
    given = {name.upper(): value for name, value in os.environ.items() if value}  # noqa: TID251
    variables = {name: f"{PREFIX}{name.upper()}" for name in (*known, *RETIRED)}
    found = {name: given[variable] for name, variable in variables.items() if variable in given}
    return {name: _parsed(name, text, known.get(name)) for name, text in found.items()}, "environment"


def _parsed(name: str, text: str, field: FieldInfo | None) -> Any:
    """Return the value of a variable: a mapping is JSON, all else is read by the setting's type."""
    if field is None or get_origin(field.annotation) is not Mapping:
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidInput("setting_not_json", prefix=PREFIX, name=name.upper(), range=range_of_field(field)) from error


def from_environment(variables: Iterable[str]) -> dict[str, str]:
    """Return those of these variables that are set, without surrounding white space."""
    found = {name: os.environ.get(name, "").strip() for name in variables}  # noqa: TID251
    return {name: value for name, value in found.items() if value}


def unknown_names(known: Iterable[str]) -> Iterable[str]:
    """Return the environment variables with the prefix that name no setting."""
    names = {_LANGUAGE, *(f"{PREFIX}{name.upper()}" for name in (*known, *RETIRED))}
    return sorted(name for name in os.environ if name.upper().startswith(PREFIX) and name.upper() not in names)  # noqa: TID251


def _from_file(config: str | Path | None) -> tuple[Mapping[str, Any], str]:
    named = config or os.environ.get(CONFIG_VARIABLE)  # noqa: TID251
    path = Path(named or CONFIG_FILE)
    if not named and not path.exists():
        return {}, str(path)
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InvalidInput("configuration_unreadable", path=path, why=_told(error)) from error
    return _section(content, path), str(path)


def _told(error: Exception) -> str:
    """Return the error in one line: YAML's own take several, with the text around the position."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem}."
    return " ".join(str(error).split())


def _section(content: Any, path: Path) -> Mapping[str, Any]:
    top = {} if content is None else content
    if not isinstance(top, Mapping) or set(top) - {SECTION}:
        raise InvalidInput("configuration_section_missing", path=path, section=SECTION)
    section = top.get(SECTION) or {}
    if not isinstance(section, Mapping):
        raise InvalidInput("configuration_section_invalid", section=SECTION, path=path)
    return {str(name): value for name, value in section.items()}


_ZONES = "zoneinfo/"
_UNIVERSAL = frozenset(
    f"{area}{name}"
    for area in ("", "Etc/")
    for name in ("UTC", "UCT", "Universal", "Zulu", "GMT", "GMT0", "GMT+0", "GMT-0", "Greenwich")
)
"""The names in the time zone database of the zone without offset and summer time."""


def machine_zone() -> str:
    """Return the name of the machine's time zone: that of the variable `TZ`, of /etc/localtime or of /etc/timezone,
    else 'UTC'; the other names of UTC, such as 'Etc/UTC', are 'UTC' too."""
    return _machine_zone(os.environ.get("TZ", "").strip().removeprefix(":"))  # noqa: TID251


@cache
def _machine_zone(variable: str) -> str:
    named = [variable] if variable else _machine_files()
    found = next(filter(_is_zone, named), "UTC")
    return "UTC" if found in _UNIVERSAL else found


def _machine_files() -> list[str]:
    return [os.path.realpath("/etc/localtime").partition(_ZONES)[2], _first_line(Path("/etc/timezone"))]


def _is_zone(name: str) -> bool:
    try:
        return bool(name) and bool(ZoneInfo(name))
    except (KeyError, OSError, ValueError):
        return False


def _first_line(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").partition("\n")[0].strip()
    except (OSError, UnicodeDecodeError):
        return ""
