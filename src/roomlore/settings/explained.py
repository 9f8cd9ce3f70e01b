"""The settings as people read them."""

from typing import Any, NamedTuple

from roomlore.settings.model import SECRETS, Settings
from roomlore.settings.sources import range_of_field, shown


class Row(NamedTuple):
    """A setting for display; a password in a URL is masked."""

    name: str
    value: str
    source: str
    description: str


def explain(settings: Settings) -> list[Row]:
    """Return every setting with its source."""
    return [row(name, getattr(settings, name), settings.source(name)) for name in Settings.model_fields]


def row(name: str, value: Any, source: str) -> Row:
    """Return one setting for display."""
    text = "***" if name in SECRETS and value else shown(value)
    return Row(name, text, source, Settings.model_fields[name].description or "")


def range_of(name: str) -> str:
    """Return the values a setting takes, in words."""
    return range_of_field(Settings.model_fields[name])
