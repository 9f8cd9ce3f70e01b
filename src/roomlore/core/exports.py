"""What reading a chat export yields: messages and unreadable records, each with the place to go on from."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from roomlore.core.models import Message

Position: TypeAlias = Mapping[str, Any]
"""An opaque JSON object: given back as `resume_from`, reading goes on right after the item it came with."""


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
class ImportReport:
    """What became of an export. `bad` holds the first 1,000 skipped records, `bad_count` counts all of them.

    `undated`: messages whose time had to be estimated. `repaired`: records with broken bytes replaced. `resumed`:
    whether the reading went on from where an earlier import had been broken off. `time_zone`: the one in which times
    without a zone were read, None where the format has none.
    """

    format: str
    added: int
    duplicates: int
    conflicts: tuple[str, ...]
    bad: tuple[Bad, ...]
    bad_count: int
    undated: int
    repaired: int
    total_bytes: int
    rooms: tuple[str, ...]
    resumed: bool
    time_zone: str | None = None

    @property
    def read(self) -> int:
        """Messages read from the export."""
        return self.added + self.duplicates + len(self.conflicts)
