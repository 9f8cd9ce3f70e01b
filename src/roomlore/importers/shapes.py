"""Values of foreign JSON brought into the shapes a message needs, never failing."""

import json
import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any

from roomlore.core.models import Role
from roomlore.core.records import MAX_METADATA_DEPTH, parse_time

_ROLES = {
    "user": Role.USER, "human": Role.USER, "customer": Role.USER,
    "assistant": Role.ASSISTANT, "ai": Role.ASSISTANT, "bot": Role.ASSISTANT, "model": Role.ASSISTANT,
    "gpt": Role.ASSISTANT,
    "system": Role.SYSTEM, "developer": Role.SYSTEM,
    "tool": Role.TOOL, "function": Role.TOOL,
}  # fmt: skip


def obj(value: object) -> dict[str, Any]:
    """The value if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def objects(value: object) -> list[dict[str, Any]]:
    """The JSON objects in a list; empty where it is none."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def name(value: object) -> str:
    """An id or name: text as it is, an integer as digits, else ''."""
    if isinstance(value, bool):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if isinstance(value, str) else str(value) if isinstance(value, int) else ""


def first_name(*values: object) -> str:
    """The first of them that is a usable id or name, else ''."""
    return next((found for value in values if (found := name(value))), "")


def words(value: object) -> str:
    """Text as it is, numbers as digits, anything else ''."""
    return name(value) or (str(value) if isinstance(value, float) else "")


def role(value: object) -> Role | None:
    """The role this word means, None if it means none."""
    return _ROLES.get(value.lower()) if isinstance(value, str) else None


def local_time(value: object, zone: tzinfo) -> datetime | None:
    """As `parse_time`, with naive ISO text taken as local time of the zone."""
    if not isinstance(value, str):
        return parse_time(value)
    try:
        return in_zone(datetime.fromisoformat(value), zone)
    except ValueError:
        return parse_time(value)


def in_zone(moment: datetime, zone: tzinfo) -> datetime | None:
    """UTC time of a local time (an aware one keeps its own zone); None past the calendar's ends."""
    try:
        return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
    except OverflowError:
        return None


def joined(parts: Iterable[object], separator: str = " ") -> str:
    """The non-empty texts among the parts, joined."""
    return separator.join(part for part in parts if isinstance(part, str) and part)


def kept(values: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata: values that say nothing are left out; what a store could not hold is written as text."""
    return {key: _storable(value, 2) for key, value in values.items() if value not in (None, "", [], {}, False)}


def storable(value: dict[str, Any]) -> dict[str, Any]:
    """The same object with what a store could not hold written as text."""
    return {key: _storable(inner, 2) for key, inner in value.items()}


def _storable(value: object, level: int) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if not isinstance(value, dict | list):
        return value
    if level > MAX_METADATA_DEPTH:
        return json.dumps(value)
    if isinstance(value, dict):
        return {key: _storable(inner, level + 1) for key, inner in value.items()}
    return [_storable(inner, level + 1) for inner in value]
