"""What the readers of foreign memories share: an entry that is good, or why it is not."""

import json
from collections.abc import Iterator
from typing import Any, TypeAlias

from roomlore.core.memory.foreign import Skipped
from roomlore.core.memory.intake import MAX_LABEL, MAX_REASON, NewMemory
from roomlore.core.text import truncate
from roomlore.importers.items import excerpt

Entry: TypeAlias = "tuple[str, NewMemory] | Skipped"
Entries: TypeAlias = Iterator[Entry]


def skipped(place: str, reason: str, value: Any) -> Skipped:
    """`value`: what stands there."""
    return Skipped(place, reason, excerpt(json.dumps(value, ensure_ascii=False, default=str)))


def label(value: Any) -> str:
    """A category or a tag; '' where it is no text."""
    return truncate(value.strip(), MAX_LABEL).strip() if isinstance(value, str) else ""


def labels(value: Any) -> tuple[str, ...]:
    """A list of texts, or one of them; each once."""
    given = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return tuple(dict.fromkeys(one for one in map(label, given) if one))


def told(*parts: str) -> str:
    """A reason for the log."""
    return truncate("; ".join(part for part in parts if part), MAX_REASON)


def name_of(value: Any) -> str:
    """An id, which may be a number; '' where there is none."""
    number = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if number else value if isinstance(value, str) else ""
