"""The data of one evolution: its options, its arguments, what it reads, the answer, and the record of it."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, tzinfo
from typing import Any

from roomlore.core.audience import RoomPeople
from roomlore.core.chat import Usage
from roomlore.core.errors import InvalidInput
from roomlore.core.evolution.requests import EvolutionResult, Mode, Plan, Rejected, Rules, ScopeState, Stats
from roomlore.core.json_values import storable
from roomlore.core.memory.memory import Action, Change, Evolution, EvolutionStatus, Memory, MemoryKind, Source
from roomlore.core.models import StoredMessage
from roomlore.ports.durable import Json, owner_prefix, work_name
from roomlore.ports.language import Language

MAX_FACTS = 300
"""The limit for a person. Much can be known of a person; a group has few characteristics."""
EVOLUTION = "evolution"
"""The work that evolves a scope, the background job that enqueues it, and the watermark of a group's room."""
_NO_LINE = "The model's answer has no line that can be used, so nothing was changed and the messages count as read."
_NO_CHANGE = "The messages change nothing of what is remembered."


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolutionOptions:
    """The settings of evolutions.

    `model`: of the registry. `timeout_seconds`: for each of its providers. `zone`: the time zone of days.
    """

    model: str
    timeout_seconds: float
    zone: tzinfo
    rules: Rules = field(default_factory=Rules)

    def rules_for(self, kind: MemoryKind) -> Rules:
        """Return the rules; their cap applies to the memories of a group."""
        return self.rules if kind is MemoryKind.GROUP else replace(self.rules, most_active=MAX_FACTS)


def facts_mark(user_id: str) -> str:
    """Return the name of the watermark up to which a person's messages were read for facts."""
    return f"facts:{user_id}"


class DirectSteps:
    """Run each step at once."""

    async def once(self, name: str, step: Callable[[], Awaitable[Json]]) -> Json:
        """Run it."""
        return await step()

    async def report(self, progress: str) -> None:
        """Do nothing: there is no reader."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One evolution.

    `days`: how far back it reads if the scope never evolved. `room_id`: of a group, else ''. `goes_on`: the number of
    unread messages from which another piece follows it, 0 for never.
    """

    tenant: str
    scope: str
    days: float
    mode: Mode
    evolution_id: str
    room_id: str = ""
    goes_on: int = 0

    @classmethod
    def of(cls, *, tenant: str, scope: str, days: float, mode: Mode, evolution_id: str, goes_on: int = 0) -> "Piece":
        """Return the first piece. Raise `InvalidInput` for a scope that does not evolve, or not in this mode."""
        kind, _, name = scope.partition(":")
        if kind == "agent":
            raise InvalidInput("evolution_of_agent")
        if kind == "user" and mode == "offline":
            raise InvalidInput("evolution_rules_need_group")
        return cls(tenant, scope, days, mode, evolution_id, name if kind == "group" else "", goes_on)

    def next(self) -> "Piece":
        """Return the piece after this one. Its id follows from this one's and sorts after it."""
        stem, _, count = self.evolution_id.partition("-")
        return replace(self, evolution_id=f"{stem}-{int(count or 0) + 1:04d}")

    @property
    def is_group(self) -> bool:
        return self.scope.startswith("group:")

    @property
    def user_id(self) -> str | None:
        """The person whose facts evolve; None for a group."""
        return None if self.is_group else self.scope.removeprefix("user:")

    @property
    def kind(self) -> MemoryKind:
        return MemoryKind.GROUP if self.is_group else MemoryKind.FACT

    @property
    def prompt(self) -> str:
        return "memory_evolve" if self.is_group else "user_facts"

    @property
    def watermark(self) -> str:
        return EVOLUTION if self.is_group else facts_mark(self.user_id or "")

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
        """Return the result of an evolution that found nothing to read."""
        return EvolutionResult(evolution_id=self.evolution_id, scope=self.scope, mode="none", at=at, message=message)


@dataclass(frozen=True, slots=True)
class PieceSpan:
    """The range that an evolution reads, stored with its work: after a kill it reads the same, so that the paid answer
    still fits. `last`: the arrival of the last message; `memories`: the ids of those offered."""

    room_id: str
    last: int
    memories: tuple[str, ...]

    @classmethod
    def from_json(cls, given: Json) -> "PieceSpan":
        return cls(given["room_id"], given["last"], tuple(given["memories"]))

    def to_json(self) -> Json:
        return {"room_id": self.room_id, "last": self.last, "memories": list(self.memories)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """The input of an evolution, from one moment.

    `was`: the position of the watermark; `first`, `last`: the arrivals that bound the new messages; `remaining`: how
    many come after them; `since`: the time from which messages never read are new. `messages`: the new ones, with the
    hashes of their content in `fingerprints`; `shown`, `handles`: those with content. `offered`: the existing memories,
    by handle. `room`: the people of the room, `others`: those of the memories' other rooms. `replaced`: the ids of
    active memories that another one replaces there. `silent`: the ids of offered memories without support for long
    by the times of the messages. `basis`: a short digest of the input, so that an answer is kept for
    this input alone.
    """

    room_id: str
    was: int
    first: int
    last: int
    remaining: int
    since: datetime
    messages: Sequence[StoredMessage]
    fingerprints: Mapping[str, str]
    shown: str
    handles: Mapping[str, Source]
    people: Mapping[str, str]
    offered: Mapping[str, Memory]
    language: Language
    basis: str
    at: datetime
    room: RoomPeople
    others: Mapping[str, RoomPeople]
    replaced: frozenset[str] = frozenset()
    silent: frozenset[str] = frozenset()

    @property
    def span(self) -> PieceSpan:
        return PieceSpan(self.room_id, self.last, tuple(memory.memory_id for memory in self.offered.values()))


@dataclass(frozen=True, slots=True)
class CurrentScope:
    """The current state of a scope. `other_statements`: the statements of its memories that were not offered, in the
    form they are compared in."""

    state: ScopeState
    other_statements: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """An answer and its origin. `mode`: 'llm' or 'offline'; without a model the rest is empty. `template`: of the
    prompt. `prompt`: its name, '' for the usual one. `second`: the answer to the question about refused lines, '' if
    nothing was asked again."""

    mode: Mode
    text: str = ""
    second: str = ""
    model: str = ""
    template: str = ""
    prompt: str = ""
    prompt_hash: str = ""
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def actor(self) -> str:
        return self.model or "offline"

    @property
    def raw(self) -> str:
        """Both answers, one after the other."""
        return f"{self.text}\n{self.second}" if self.second else self.text


def record(piece: Piece, read: Read, answered: Answered, plan: Plan, *, failed: bool, now: datetime) -> Evolution:
    """Return the record of an evolution to store."""
    status: EvolutionStatus = "failed" if failed else "applied" if plan.changes else "nothing"
    return Evolution(
        evolution_id=piece.evolution_id,
        scope=piece.scope,
        kind="evolution",
        status=status,
        room_id=read.room_id,
        first_arrival=read.first,
        last_arrival=read.last,
        messages=len(read.handles),
        prompt_name=(answered.prompt or piece.prompt) if answered.prompt_hash else "",
        prompt_hash=answered.prompt_hash,
        model=answered.model,
        usage=Usage(answered.input_tokens, answered.output_tokens),
        raw_answer=answered.raw,
        quarantined=tuple((rejection.text, rejection.reason) for rejection in plan.rejected),
        facts={
            "mode": answered.mode,
            "kept": plan.kept,
            "remaining": read.remaining,
            "lines": [rejection.line for rejection in plan.rejected],
            **({"first_chars": len(answered.text)} if answered.second else {}),
        },
        error=_NO_LINE if failed else "",
        started_at=read.at,
        finished_at=now,
    )


def result_of(kept: Evolution, changes: Sequence[Change]) -> EvolutionResult:
    """Return the result for callers: from a record and the changes that were made with it."""
    facts = kept.facts
    done = Counter(change.action for change in changes)
    return EvolutionResult(
        evolution_id=kept.evolution_id,
        scope=kept.scope,
        mode=facts.get("mode", "llm"),
        at=kept.finished_at,
        message=kept.error or ("" if changes else _NO_CHANGE),
        failed=kept.status == "failed",
        stats=Stats(
            kept=facts.get("kept", 0),
            updated=done[Action.UPDATE] + done[Action.MERGE],
            created=done[Action.CREATE],
            deleted=done[Action.DELETE],
        ),
        changes=tuple(changes),
        rejected=tuple(
            Rejected(line, text, reason)
            for line, (text, reason) in zip(facts.get("lines", ()), kept.quarantined, strict=False)
        ),
        messages=kept.messages,
        remaining=facts.get("remaining", 0),
        model=kept.model,
        usage=kept.usage,
    )
