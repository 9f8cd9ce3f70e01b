"""What an evolution is asked with, what an answer asks for, and what is done."""

from collections.abc import Mapping
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
    that merges are asked for. `most_merged`: memories in one merge. `same`: from which similarity on a create repeats a
    memory. `first_strength`: of what is created, half of it where no message supports that. `raised`: by how much of
    what is missing to 1 support strengthens."""

    delete_share: float = 0.3
    most_active: int = 30
    most_merged: int = 5
    same: float = 0.85
    statement_chars: int = 400
    first_strength: float = 0.5
    raised: float = 0.1
    half_life_days: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What a plan stands on. `number`: of the scope's last change. `active`: how many of its memories of this kind are
    active, offered or not. `latest`: the highest version of each lineage by its id; where a lineage is left out, the
    offered version is it."""

    scope: str
    number: int
    active: int
    latest: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is done, all of it or none. `changes`: with numbers that follow the log's. `based_on`: those that a change
    touches, which must still be the active ones. `kept`: how many of the offered ones say what they said,
    mentioned or not, confirmed or not. `rejected`: what could not be read and what the guards refused, by line."""

    changes: tuple[Change, ...] = ()
    based_on: tuple[Memory, ...] = ()
    kept: int = 0
    rejected: tuple[Rejected, ...] = field(default=())
