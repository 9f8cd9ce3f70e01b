"""Memories, their changes, what made them, and what searches and histories return."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, tzinfo
from enum import StrEnum
from typing import Any, Literal

from roomlore.core.audience import EvidenceRoom
from roomlore.core.chat import Usage
from roomlore.core.errors import InvalidInput
from roomlore.core.json_values import HIDDEN
from roomlore.core.models import StoredMessage
from roomlore.core.search.hits import SearchMode

MAX_SCOPE_CHARS = 512 + 8
MAX_GROUP_CHARS = MAX_SCOPE_CHARS - len("group:")
SCOPES = ("group", "user", "agent")
SCOPE_PATTERN = f"^({'|'.join(SCOPES)}):[\\s\\S]"


class MemoryKind(StrEnum):
    """`short`: a summary of a few messages. `fact`: something known of a person, an agent or a group. `group`: a group
    memory, made by evolution."""

    SHORT = "short"
    FACT = "fact"
    GROUP = "group"


class MemoryStatus(StrEnum):
    ACTIVE = "active"
    DEPRECATED = "deprecated"


Status = Literal["active", "ended", "deprecated", "all"]
"""The memories that a list shows. `active`: those that hold, or will. `ended`: those whose `valid_until` is past."""


class Action(StrEnum):
    """The kind of a change. Keeping a memory is not a change."""

    CREATE = "create"
    UPDATE = "update"
    MERGE = "merge"
    DELETE = "delete"
    RESTORE = "restore"
    REVERT = "revert"
    STRENGTH = "strength"
    REDACT = "redact"
    SHARE = "share"


def check_scope(scope: str) -> str:
    """Return the scope. Raises `InvalidInput` unless it is 'group:<id>', 'user:<id>' or 'agent:<id>'."""
    kind, colon, name = scope.partition(":") if isinstance(scope, str) else ("", "", "")
    if kind not in SCOPES or not colon or not name:
        raise _no_scope(scope)
    if len(scope) > MAX_SCOPE_CHARS:
        raise InvalidInput("scope_too_long", count=len(scope), most=MAX_SCOPE_CHARS)
    return scope


def _no_scope(given: object) -> InvalidInput:
    """Return the error with a hint at what was meant by a name without a kind, or by `room:`."""
    kind, colon, name = given.partition(":") if isinstance(given, str) else ("", "", "")
    value = f"{given!r:.60}"
    if kind and not colon:
        group, user = f"{f'group:{kind}'!r:.60}", f"{f'user:{kind}'!r:.60}"
        return InvalidInput("scope_invalid_as_either", value=value, group=group, user=user)
    if kind == "room" and name:
        return InvalidInput("scope_invalid_as", value=value, known=f"{f'group:{name}'!r:.60}")
    return InvalidInput("scope_invalid", value=value)


def owner_of(scope: str) -> str:
    """Return the id of the person whose scope this is, '' for a group or an agent."""
    kind, _, name = scope.partition(":")
    return name if kind == "user" else ""


@dataclass(frozen=True, slots=True)
class Source:
    """A message that supports a memory."""

    room_id: str
    message_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One version of a memory.

    `lineage_id`: the id of its first version. `version`: from 1. `parents`: the ids of the versions it replaced,
    several if memories were merged. `strength`: in [0, 1]. `confidence`: in [0, 1]; None was never given. `sources`:
    the messages that support it. `made_by`: a model's name, 'caller', or the name of the maker without a model.
    `evidence`: the rooms in which it was said, with the time, empty if a caller added it for all. `shared_with`: the
    rooms ('room:<id>'), or 'everyone', that it was shared with beside these. `owner`: the id of the person whom it is
    about, '' if it is about the whole scope. `said_by`: the ids of those who said it. `valid_from`, `valid_until`:
    since when it holds and when it ends, None if unknown; what has ended is shown to those who ask for the past.
    `fallback`: it was made without a model, and is made again when one is available. `doubtful`: the reason why its
    words look doubtful beside the messages that it cites, '' if they do not. `created_at`: when the lineage began;
    `updated_at`: when this version was made; `supported_at`: when a message last supported it.
    """

    memory_id: str
    lineage_id: str
    scope: str
    kind: MemoryKind
    statement: str
    version: int = 1
    parents: tuple[str, ...] = ()
    status: MemoryStatus = MemoryStatus.ACTIVE
    tags: tuple[str, ...] = ()
    category: str = ""
    strength: float = 1.0
    confidence: float | None = None
    sources: tuple[Source, ...] = ()
    evidence: tuple[EvidenceRoom, ...] = ()
    shared_with: tuple[str, ...] = ()
    change_summary: str = ""
    evolution_id: str | None = None
    made_by: str = "caller"
    fallback: bool = False
    doubtful: str = ""
    owner: str = ""
    said_by: tuple[str, ...] = ()
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    created_at: datetime
    updated_at: datetime
    supported_at: datetime

    def holds(self, at: datetime) -> bool:
        """Return True unless it has ended by then."""
        return self.valid_until is None or at < self.valid_until

    @property
    def parent_id(self) -> str | None:
        """The id of the version before; of its own lineage if there are several."""
        return self.parents[0] if self.parents else None


def last_day(ends: datetime, zone: tzinfo) -> date | None:
    """Return the last day on which something holds that ends at a midnight of this zone, the day before; None if it
    ends at another time."""
    try:
        there = ends.astimezone(zone)
        return None if there.hour or there.minute else (there - timedelta(minutes=1)).date()
    except OverflowError:
        return None


def next_end(memories: Iterable[Memory], now: datetime) -> datetime | None:
    """Return when the first of these memories ends after `now`; None if none does."""
    return min(
        (memory.valid_until for memory in memories if memory.valid_until and memory.valid_until > now), default=None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """An entry of a scope's log. `number`: from 1, without a gap.

    `memory`: the version it made or touched, in its state after the change. `closes`: the ids of the versions it
    deprecated beside that. `old_statement`: the statement before, None for a new memory. `undoes`: the evolution that a
    revert undoes. `actor`: 'caller' or the maker of the memory.
    """

    number: int
    scope: str
    action: Action
    memory: Memory
    closes: tuple[str, ...] = ()
    old_statement: str | None = None
    reason: str = ""
    evolution_id: str | None = None
    undoes: str | None = None
    actor: str = "caller"
    at: datetime


EvolutionKind = Literal["extraction", "evolution"]
EvolutionStatus = Literal["applied", "nothing", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evolution:
    """The record of an evolution or extraction: messages read by a model, or without one.

    `room_id`, `first_arrival`, `last_arrival`: the messages read. `prompt_hash`: SHA-256 of the prompt's text, ''
    without a model. `raw_answer`: the model's answer, verbatim. `quarantined`: lines of it that could not be used, each
    with the reason.
    """

    evolution_id: str
    scope: str
    kind: EvolutionKind
    status: EvolutionStatus
    room_id: str
    first_arrival: int
    last_arrival: int
    messages: int
    prompt_name: str = ""
    prompt_hash: str = ""
    model: str = ""
    usage: Usage = field(default_factory=Usage)
    raw_answer: str = ""
    quarantined: tuple[tuple[str, str], ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    started_at: datetime
    finished_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """A scope as stored: the number of changes in its log and of active memories."""

    tenant: str = field(metadata=HIDDEN)
    scope: str
    changes: int = 0
    active: int = 0
    created_at: datetime


@dataclass(frozen=True, slots=True)
class NumberedMemory:
    """A version of a memory with its tenant and row number, by which vectors refer to it."""

    tenant: str
    number: int
    memory: Memory


@dataclass(frozen=True, slots=True)
class MemoryHit:
    """A memory with its score in [0, 1] and the parts of the score."""

    memory: Memory
    score: float
    signals: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryAnswer:
    """The result of a search, best first. `mode`: the kind of search. `degraded`: None, or the reason for a reduced
    search. `nothing`: why there is no hit, None if there is one."""

    scope: str
    query: str
    mode: SearchMode
    hits: tuple[MemoryHit, ...] = ()
    degraded: str | None = None
    nothing: str | None = None


@dataclass(frozen=True, slots=True)
class Revised:
    """A lineage whose version in force differs between the beginning and the end, or whose version was redacted.
    `changes`: its entries of the log in between, in order."""

    before: Memory
    after: Memory
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDiff:
    """The memories in force at `end` compared with `start`, lineages in the order in which they began.

    A lineage merged into another one is among `removed`, and named among the parents of the version in `changed`.
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
    """A message that supports a memory. `message`: None if it was deleted or archived since, or is not known here.
    `archive_id`: the archive that holds it, None if it is in none."""

    source: Source
    message: StoredMessage | None
    archive_id: str | None = None


@dataclass(frozen=True, slots=True)
class BlamedVersion:
    """A version with the change that made it, its evolution (None if a caller made it or the record is gone) and the
    messages that it added to those of its parents."""

    memory: Memory
    change: Change | None
    evolution: Evolution | None
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class Blame:
    """The origin of a memory: its version in force, and all its ancestors, including merged ones, the newest first."""

    memory: Memory
    versions: tuple[BlamedVersion, ...]
