"""The table of docs/reference/settings.md: every setting with its default."""

from collections.abc import Mapping

from docsite.marked import table
from roomlore.core.context import ContextOptions
from roomlore.settings import Settings, range_of, row


def regions() -> Mapping[str, str]:
    """Return the table by the name of its region."""
    rooms = ContextOptions().flat()
    told = []
    for name, field in Settings.model_fields.items():
        value = row(name, field.default, "default").value
        told.append((f"`{name}`{' *room*' if name in rooms else ''}", f"`{value}`" if value else "", range_of(name)))
    meanings = [field.description or "" for field in Settings.model_fields.values()]
    rows = [(*one, about) for one, about in zip(told, meanings, strict=True)]
    return {"settings": table("setting", "default", "values", "meaning", rows=rows)}
