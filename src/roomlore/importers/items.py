"""What an importer yields: messages and records it could not read, each with the place to go on from."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, tzinfo
from typing import Any, TypeAlias

from roomlore.core.models import Message

Position: TypeAlias = Mapping[str, Any]
"""An opaque JSON object: given back as `resume_from`, reading goes on right after the item it came with."""

_EXCERPT = 120


@dataclass(frozen=True, slots=True)
class Parsed:
    """A message as the export has it; `sent_at` None: the export gives no readable time."""

    message: Message
    position: Position
    edited_at: datetime | None = None
    sent_at_estimated: bool = False


@dataclass(frozen=True, slots=True)
class Bad:
    """A line or record that was skipped. `number` counts lines (line formats) or records from 1."""

    position: Position
    number: int
    reason: str
    excerpt: str


Item: TypeAlias = Parsed | Bad


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
