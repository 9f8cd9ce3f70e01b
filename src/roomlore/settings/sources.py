"""Where settings come from: a file, the environment, arguments."""

import os
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml
from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsError

from roomlore.core.errors import InvalidInput
from roomlore.settings.words import did_you_mean, range_of_field

CONFIG_FILE = "roomlore.yaml"
CONFIG_VARIABLE = "ROOMLORE_CONFIG"
PREFIX = "MEMORY_"
SECTION = "memory"

Found = dict[str, tuple[Any, str]]
"""Values with their sources, by the names of settings."""


def gather(cls: type[BaseSettings], config: str | Path | None, arguments: Mapping[str, Any]) -> Found:
    """Each given setting's value and source, the strongest source winning."""
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
    """These variables as far as they are set, without white space around them."""
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
    """The error in one line: YAML's own take several, with the text around the place."""
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
