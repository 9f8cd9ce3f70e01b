"""What importers are told, and how they name what has no name."""

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, date, tzinfo

_EXCERPT = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the caller knows better than the export.

    `room_id`: put everything into this room. `timezone`: of local times. `day`: when a log without
    dates begins.
    """

    room_id: str | None = None
    timezone: tzinfo = UTC
    day: date | None = None


def excerpt(text: str) -> str:
    """The beginning of a text for a report, on one line and printable."""
    line = " ".join(text[: 4 * _EXCERPT].split())
    return line[:_EXCERPT].encode("utf-8", "replace").decode()


def derived_id(*parts: object) -> str:
    """A message id made of the message itself, the same at every import."""
    text = json.dumps(parts, default=str)
    return "x" + hashlib.sha256(text.encode()).hexdigest()[:24]
