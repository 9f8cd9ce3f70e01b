"""What an evolution is asked with, what an answer asks for, and what is done."""

from dataclasses import dataclass, field
from typing import Literal

from roomlore.core.memory.models import Change, Memory

Kind = Literal["keep", "update", "create", "delete"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A line of a model's answer that can be read. `line`: its place in the answer, from 1. `handles`: of the memories
    it speaks of, as they were offered; none for a create, several for an update that merges. `statement`, `reason`,
    `tags`, `evidence`: as given; '' and () where they were not. `evidence`: handles of messages. `repaired`: the line
    was no JSON as it stood."""

    line: int
    kind: Kind
    handles: tuple[str, ...] = ()
    statement: str = ""
    reason: str = ""
    tags: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    confidence: float | None = None
    repaired: bool = False


@dataclass(frozen=True, slots=True)
class Rejected:
    """Something in an answer that is not done. `line`: from 1. `text`: the beginning of it. `reason`: in a sentence."""

    line: int
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer, read: what it asks for in order, and what could not be used."""

    wishes: tuple[Wish, ...]
    rejected: tuple[Rejected, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The guards. `delete_share`: of the active memories an evolution may delete, at least one. `most_active`: the cap
    that merges are asked for. `same`: from which similarity on a create repeats a memory."""

    delete_share: float = 0.3
    most_active: int = 30
    same: float = 0.85
    statement_chars: int = 400
    raised: float = 0.1
    half_life_days: float = 30.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What is done, all of it or none. `changes`: with numbers that follow the log's. `based_on`: the versions that must
    still be the active ones. `kept`: how many were kept, mentioned or not. `rejected`: what the guards refused too."""

    changes: tuple[Change, ...] = ()
    based_on: tuple[Memory, ...] = ()
    kept: int = 0
    rejected: tuple[Rejected, ...] = field(default=())
