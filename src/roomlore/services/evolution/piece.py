"""A piece of work: one evolution of one scope."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from roomlore.core.errors import InvalidInput
from roomlore.core.evolution.models import Ground
from roomlore.core.evolution.result import EvolutionResult, Mode
from roomlore.core.memory.models import Memory, MemoryKind, Source
from roomlore.core.models import StoredMessage
from roomlore.core.plain import storable
from roomlore.core.work import owner_prefix, work_name
from roomlore.ports.durable import Json
from roomlore.ports.language import Language

EVOLUTION = "evolution"
"""The work that evolves a scope, the background job that hands it in, and the watermark of a group's room."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One evolution. `days`: how far back it reads where the scope never evolved. `room_id`: of a group, '' else.
    `goes_on`: from how many messages that are left unread on another piece follows it, 0 for never."""

    tenant: str
    scope: str
    days: float
    mode: Mode
    evolution_id: str
    room_id: str = ""
    goes_on: int = 0

    @classmethod
    def of(cls, *, tenant: str, scope: str, days: float, mode: Mode, evolution_id: str, goes_on: int = 0) -> "Piece":
        """Raises `InvalidInput` for a scope that does not evolve, or not in this mode."""
        kind, _, name = scope.partition(":")
        if kind == "agent":
            raise InvalidInput("What an agent remembers does not evolve; name a group or a user, such as 'user:anna'.")
        if kind == "user" and mode == "offline":
            raise InvalidInput("Rules find nothing about one person: to evolve facts of a user a model is needed.")
        return cls(tenant, scope, days, mode, evolution_id, name if kind == "group" else "", goes_on)

    def next(self) -> "Piece":
        """The piece after this one; its id follows from this one's and sorts after it."""
        stem, _, count = self.evolution_id.partition("-")
        return replace(self, evolution_id=f"{stem}-{int(count or 0) + 1:04d}")

    @property
    def is_group(self) -> bool:
        return self.scope.startswith("group:")

    @property
    def user_id(self) -> str | None:
        """Whose facts it is about; None for a group."""
        return None if self.is_group else self.scope.removeprefix("user:")

    @property
    def kind(self) -> MemoryKind:
        return MemoryKind.GROUP if self.is_group else MemoryKind.FACT

    @property
    def prompt(self) -> str:
        return "memory_evolve" if self.is_group else "user_facts"

    @property
    def watermark(self) -> str:
        return EVOLUTION if self.is_group else f"facts:{self.user_id}"

    @property
    def work_id(self) -> str:
        return work_name(self.tenant, EVOLUTION, self.evolution_id)

    @property
    def job_id(self) -> str:
        return self.work_id.removeprefix(owner_prefix(self.tenant))

    @property
    def partition(self) -> str:
        return work_name(self.tenant, EVOLUTION, storable(self.scope))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def nothing(self, message: str, at: datetime) -> EvolutionResult:
        """That there was nothing to read."""
        return EvolutionResult(evolution_id=self.evolution_id, scope=self.scope, mode=self.mode, at=at, message=message)


@dataclass(frozen=True, slots=True)
class Span:
    """What an evolution reads, kept beside its work: begun again after a kill it reads the same, so that the answer
    that was paid for is one to it. `last`: the arrival of the last message; `memories`: the ids of those offered."""

    room_id: str
    last: int
    memories: tuple[str, ...]

    @classmethod
    def from_json(cls, given: Json) -> "Span":
        return cls(given["room_id"], given["last"], tuple(given["memories"]))

    def to_json(self) -> Json:
        return {"room_id": self.room_id, "last": self.last, "memories": list(self.memories)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What an evolution reads, of one moment.

    `was`: where the watermark stands; `first`, `last`: the arrivals between which the new messages lie; `remaining`:
    how many come after them; `since`: from when on what was never read is new. `messages`: the new ones, with the
    hashes of their content in `prints`; `shown`, `handles`: those that say something. `offered`: what is remembered, by
    handle. `basis`: says in a few letters what was read, so that an answer is kept for this alone.
    """

    room_id: str
    was: int
    first: int
    last: int
    remaining: int
    since: datetime
    messages: Sequence[StoredMessage]
    prints: Mapping[str, str]
    shown: str
    handles: Mapping[str, Source]
    people: Mapping[str, str]
    offered: Mapping[str, Memory]
    language: Language
    basis: str
    at: datetime

    @property
    def span(self) -> Span:
        return Span(self.room_id, self.last, tuple(memory.memory_id for memory in self.offered.values()))


@dataclass(frozen=True, slots=True)
class Standing:
    """A scope as it stands. `said`: what its memories say that were not offered, in the form they are compared in."""

    ground: Ground
    said: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What was answered, and by what. `mode`: 'llm' or 'offline'; without a model the rest is empty. `template`: of the
    prompt."""

    mode: Mode
    text: str = ""
    model: str = ""
    template: str = ""
    prompt_hash: str = ""
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def actor(self) -> str:
        return self.model or "offline"
