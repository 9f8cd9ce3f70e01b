"""The settings as people read them."""

from typing import Any, NamedTuple

from roomlore.settings.model import Settings, known_fields, section_of
from roomlore.settings.sources import is_secret, range_of_field, shown


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
