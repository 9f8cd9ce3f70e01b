"""A memory, a change of one, and what made it.

A memory is never overwritten: what it says anew is a new version with a new id, and the version before is deprecated.
All versions of a statement are its lineage. Every change of what is stored is an entry of its scope's log, and
replaying the log gives the tables back.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from roomlore.core.chat.models import Usage
from roomlore.core.errors import InvalidInput

MAX_SCOPE_CHARS = 512 + 8
SCOPES = ("group", "user", "agent")


class MemoryKind(StrEnum):
    """`short`: what a few messages came to. `fact`: what is known of a person, an agent or a group. `group`: what a
    group has come to be."""

    SHORT = "short"
    FACT = "fact"
    GROUP = "group"


class MemoryStatus(StrEnum):
    ACTIVE = "active"
    DEPRECATED = "deprecated"


class Action(StrEnum):
    """What a change did. Keeping a memory is no change."""

    CREATE = "create"
    UPDATE = "update"
    MERGE = "merge"
    DELETE = "delete"
    RESTORE = "restore"
    REVERT = "revert"
    STRENGTH = "strength"
    REDACT = "redact"


def check_scope(scope: str) -> str:
    """The scope as it is; `InvalidInput` unless it is 'group:<id>', 'user:<id>' or 'agent:<id>'."""
    kind, colon, name = scope.partition(":") if isinstance(scope, str) else ("", "", "")
    if kind not in SCOPES or not colon or not name:
        raise InvalidInput(f"A scope is group:<id>, user:<id> or agent:<id>, not {scope!r:.60}.")
    if len(scope) > MAX_SCOPE_CHARS:
        raise InvalidInput(f"The scope has {len(scope)} characters; at most {MAX_SCOPE_CHARS}.")
    return scope


@dataclass(frozen=True, slots=True)
class Source:
    """A message that supports a memory."""

    room_id: str
    message_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One version of a memory.

    `lineage_id`: the id of its first version. `version`: from 1. `parents`: the ids of the versions it took the place
    of, several where memories were merged. `strength`, `confidence`: in [0, 1]; a confidence of None was never given.
    `sources`: the messages that support it. `made_by`: a model's name, 'caller', or what made it without a model.
    `fallback`: no model was there, and it is to be made again when one is. `created_at`: when the lineage began;
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
    change_summary: str = ""
    evolution_id: str | None = None
    made_by: str = "caller"
    fallback: bool = False
    created_at: datetime
    updated_at: datetime
    supported_at: datetime

    @property
    def parent_id(self) -> str | None:
        """The version before, of its own lineage where there are several."""
        return self.parents[0] if self.parents else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """An entry of a scope's log. `number`: from 1, without a gap.

    `memory`: the version it made or touched, as it is after the change. `closes`: the ids of the versions it deprecated
    beside that. `old_statement`: what was said before, None for something new. `undoes`: the evolution that a revert
    takes back. `actor`: who did it, 'caller' or what made the memory.
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
    """What made changes: messages read by a model, or without one.

    `room_id`, `first_arrival`, `last_arrival`: which messages it read. `prompt_hash`: SHA-256 of the prompt's text, ''
    without a model. `raw_answer`: what the model said, word for word. `quarantined`: lines of it that could not be
    used, each with the reason.
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
    """A scope as stored: how many changes its log has and how many memories are active."""

    tenant: str
    scope: str
    changes: int = 0
    active: int = 0
    created_at: datetime
