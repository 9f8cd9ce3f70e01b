"""The tables of docs/reference/settings.md: every setting with its default, section by section."""

import inspect
from collections.abc import Mapping

from docsite.marked import table
from roomlore.core.context import ContextOptions
from roomlore.ports.backends import Section
from roomlore.settings import all_sections, range_of, row


def regions() -> Mapping[str, str]:
    """Return the tables by the name of their region."""
    return {"settings": "\n".join(_section(name, section) for name, section in all_sections().items())}


def _section(name: str, section: type[Section]) -> str:
    rooms = ContextOptions().flat()
    rows = []
    for setting, field in section.model_fields.items():
        value = row(setting, field.default, "default").value
        named = f"`{setting}`{' *room*' if setting in rooms else ''}"
        rows.append((named, f"`{value}`" if value else "", range_of(setting), field.description or ""))
    about = inspect.cleandoc(section.__doc__ or "")
    return f"### {name}\n\n{about}\n\n{table('setting', 'default', 'values', 'meaning', rows=rows)}"
