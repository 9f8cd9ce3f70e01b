"""Models as plain JSON values, the same on every surface: field names stay, times are ISO 8601 in UTC."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any

from roomlore.core.mates import Mates

_INTERNAL = frozenset({"mates", "tenant", "next_arrival"})


def plain(value: Any) -> Any:
    """Dataclasses become objects without what is internal (mates, tenant, next_arrival); tuples become lists."""
    if is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value) if f.name not in _INTERNAL}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, str):
        return str(value)
    assert not isinstance(value, Mates)
    return [plain(inner) for inner in value] if isinstance(value, Iterable) else value
