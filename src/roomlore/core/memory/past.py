"""What a scope remembered at a time, what changed between two, and what made a memory: as callers are told."""

from dataclasses import dataclass
from datetime import datetime

from roomlore.core.memory.models import Change, Evolution, Memory, Source
from roomlore.core.models import StoredMessage


@dataclass(frozen=True, slots=True)
class Revised:
    """A lineage that has another version in force at the end than at the beginning, or whose version was redacted.
    `changes`: its entries of the log in between, in order."""

    before: Memory
    after: Memory
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDiff:
    """What is in force at `end` against `start`, lineages in the order in which they began.

    A lineage that was merged into another one is among `removed`, and named among the parents of what is in `changed`.
    """

    scope: str
    start: datetime
    end: datetime
    added: tuple[Memory, ...] = ()
    removed: tuple[Memory, ...] = ()
    changed: tuple[Revised, ...] = ()
    unchanged: int = 0


@dataclass(frozen=True, slots=True)
class Evidence:
    """A message that supports a memory. `message`: None where it was deleted since, or is not known here."""

    source: Source
    message: StoredMessage | None


@dataclass(frozen=True, slots=True)
class BlamedVersion:
    """A version with the change that made it, the evolution that did (None where a caller did, or where the record is
    gone) and the messages that it added to those of its parents."""

    memory: Memory
    change: Change | None
    evolution: Evolution | None
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class Blame:
    """How a memory came to be: its version in force, and every version it goes back to, merged ones too, the newest
    first."""

    memory: Memory
    versions: tuple[BlamedVersion, ...]
