"""The sources of settings, and their texts: values as shown, ranges, and error messages."""

import os
import re
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, get_args, get_origin
from urllib.parse import urlsplit

import yaml
from annotated_types import Ge, Gt, Le
from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsError

from roomlore.core.errors import InvalidInput

_PASSWORD = re.compile(r"(://[^:/@]*:).*(?=@)|([?&]password=)[^&]*")
_DATABASE = re.compile(r"^(sqlite|postgres|postgresql)(\+[a-z0-9]+)?://|\.db$")
_SENTRY = re.compile(r"https?://[^/@\s:]+(:[^/@\s]*)?@[^/@\s]+(/[^\s?#]*)?/\d+")
CONFIG_FILE = "roomlore.yaml"
CONFIG_VARIABLE = "ROOMLORE_CONFIG"
PREFIX = "MEMORY_"
SECTION = "memory"
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
    return f"; did you mean {near[0]}?" if near else f"; there are {', '.join(names)}."


def sentences(
    error: ValidationError,
    found: Mapping[str, tuple[Any, str]],
    settings: Mapping[str, FieldInfo],
    *,
    hidden: Collection[str],
) -> str:
    """Return one sentence per line, each once. `found`: values and their sources; those of `hidden` settings are not
    shown."""

    def told(detail: Mapping[str, Any]) -> str:
        why = detail.get("ctx", {}).get("error")
        if not detail["loc"] or isinstance(why, InvalidInput):
            return str(why)
        name = str(detail["loc"][0])
        value, source = found[name]
        value = "***" if name in hidden else shown(value)[:120]
        return f"{name} is {value} (from {source}); it must be {range_of_field(settings[name])}."

    return "\n".join(dict.fromkeys(map(told, error.errors())))


def database(value: str) -> str:
    if not _DATABASE.search(value):
        raise ValueError("unknown database")
    return value


def web(value: str) -> str:
    if value and not value.startswith(("http://", "https://")):
        raise ValueError("no web address")
    return value


def redis(value: str) -> str:
    if value and not value.startswith(("redis://", "rediss://", "unix://")):
        raise ValueError("no address of a Redis")
    return value


def sentry(value: str) -> str:
    """Check a Sentry DSN: an address with a public key before the host and a project number at the end."""
    if value and (not _SENTRY.fullmatch(value) or urlsplit(value).port == 0):
        raise ValueError("no DSN of Sentry")
    return value


def gather(cls: type[BaseSettings], config: str | Path | None, arguments: Mapping[str, Any]) -> Found:
    """Return each given setting's value and source; the strongest source wins."""
    found: Found = {}
    for values, source in (_from_file(config), _from_environment(cls), (arguments, "argument")):
        for name, value in values.items():
            if name not in cls.model_fields:
                raise InvalidInput(f"There is no setting {name!r} ({source}){did_you_mean(name, cls.model_fields)}")
            if value is not None:
                found[name] = (value, f"{PREFIX}{name.upper()}" if source == "environment" else source)
    return found


def _from_environment(cls: type[BaseSettings]) -> tuple[Mapping[str, Any], str]:
    for name in strangers(cls):
        near = get_close_matches(name[len(PREFIX) :].lower(), cls.model_fields, n=1, cutoff=0.8)
        if near:
            raise InvalidInput(f"There is no setting {name}; did you mean {PREFIX}{near[0].upper()}?")
    try:
        return EnvSettingsSource(cls)(), "environment"
    except SettingsError as error:
        name = next(name for name in cls.model_fields if f'"{name}"' in str(error))
        form = range_of_field(cls.model_fields[name])
        raise InvalidInput(f"{PREFIX}{name.upper()} must be JSON: {form}.") from error


def from_environment(variables: Iterable[str]) -> dict[str, str]:
    """Return those of these variables that are set, without surrounding white space."""
    found = {name: os.environ.get(name, "").strip() for name in variables}  # noqa: TID251
    return {name: value for name, value in found.items() if value}


def strangers(cls: type[BaseSettings]) -> Iterable[str]:
    known = {f"{PREFIX}{name.upper()}" for name in cls.model_fields}
    return sorted(name for name in os.environ if name.upper().startswith(PREFIX) and name.upper() not in known)  # noqa: TID251


def _from_file(config: str | Path | None) -> tuple[Mapping[str, Any], str]:
    named = config or os.environ.get(CONFIG_VARIABLE)  # noqa: TID251
    path = Path(named or CONFIG_FILE)
    if not named and not path.exists():
        return {}, str(path)
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InvalidInput(f"The configuration file {path} cannot be read: {_told(error)}") from error
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
        raise InvalidInput(f"{path} must have one section, `{SECTION}:`, with the settings indented under it.")
    section = top.get(SECTION) or {}
    if not isinstance(section, Mapping):
        raise InvalidInput(f"The section `{SECTION}:` of {path} must map names to values.")
    return {str(name): value for name, value in section.items()}
