"""The entries of other systems' memories: valid ones, and skipped ones with the reason."""

import json
from collections.abc import Iterator
from typing import Any, TypeAlias

from roomlore.core.memory.writing import MAX_LABEL, MAX_REASON, NewMemory, Skipped
from roomlore.core.text import truncate
from roomlore.importers.export_files import excerpt

Entry: TypeAlias = "tuple[str, NewMemory] | Skipped"
Entries: TypeAlias = Iterator[Entry]


def skipped(place: str, reason: str, value: Any) -> Skipped:
    """Return a skipped entry. `value`: its content."""
    return Skipped(place, reason, excerpt(json.dumps(value, ensure_ascii=False, default=str)))


def label(value: Any) -> str:
    """Return a category or a tag; '' if it is no text."""
    return truncate(value.strip(), MAX_LABEL).strip() if isinstance(value, str) else ""


def labels(value: Any) -> tuple[str, ...]:
    """Return a list of texts, or one of them, without repetitions."""
    given = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return tuple(dict.fromkeys(one for one in map(label, given) if one))


def told(*parts: str) -> str:
    """Return a reason for the log."""
    return truncate("; ".join(part for part in parts if part), MAX_REASON)


def name_of(value: Any) -> str:
    """Return an id, which may be a number; '' if there is none."""
    number = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if number else value if isinstance(value, str) else ""
