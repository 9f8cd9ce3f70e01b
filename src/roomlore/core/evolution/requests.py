"""The input, answer, plan and result of an evolution, and the strength of memories."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Literal, get_args

from roomlore.core.chat import Usage
from roomlore.core.errors import InvalidInput
from roomlore.core.memory.memory import Change, Memory

Kind = Literal["keep", "update", "create", "delete"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A readable line of a model's answer. `line`: its place in the answer, from 1. `handles`: the memories it names,
    as offered; none for a create, several for an update that merges. `statement`, `reason`, `tags`, `evidence`: as
    given; '' and () if absent. `valid_from`, `valid_until`: the first and the last day on which it holds. `evidence`:
    handles of messages. `repaired`: the line was not valid JSON. `doubtful`: the reason to doubt it, '' if there is
    none."""

    line: int
    kind: Kind
    handles: tuple[str, ...] = ()
    statement: str = ""
    reason: str = ""
    tags: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    confidence: float | None = None
    valid_from: date | None = None
    valid_until: date | None = None
    repaired: bool = False
    doubtful: str = ""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A part of an answer that is not followed. `line`: its place in the answer, from 1. `text`: its beginning.
    `reason`: why, in a sentence."""

    line: int
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Refusal(Rejected):
    """A line that the model may put right: it is put to it once more with the reason."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer, read: the operations in order, and the rejected parts."""

    operations: tuple[Operation, ...]
    rejected: tuple[Rejected, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The guards of an evolution. `delete_share`: the share of active memories that it may delete, at least one.
    `most_active`: the cap above which merges are requested. `most_merged`: memories in one merge. `same`: the
    similarity from which a create repeats a memory. `first_strength`: strength of a new memory, half of it without a
    supporting message. `raised`: the share of the missing strength (to 1) that support adds."""

    delete_share: float = 0.3
    most_active: int = 30
    most_merged: int = 5
    same: float = 0.85
    statement_chars: int = 400
    first_strength: float = 0.5
    raised: float = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeState:
    """The state that a plan is based on. `number`: of the scope's last change. `active`: how many of its memories of
    this kind are active, offered or not. `latest`: the highest version of each lineage by its id; for a missing
    lineage, the offered version."""

    scope: str
    number: int
    active: int
    latest: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes to make, all or none. `changes`: numbered after the log's last one. `based_on`: the versions that a
    change touches, which must still be active. `kept`: how many offered memories keep their statement, mentioned or
    not, confirmed or not. `rejected`: unreadable and refused parts, by line."""

    changes: tuple[Change, ...] = ()
    based_on: tuple[Memory, ...] = ()
    kept: int = 0
    rejected: tuple[Rejected, ...] = field(default=())


Mode = Literal["auto", "llm", "rules", "offline"]
"""The reader of the messages: a model if a provider is configured and rules otherwise, a model, or rules only, which
are also called 'offline'."""


ReadBy = Literal["llm", "offline", "none"]
"""Who read the messages: a model, rules only, or nobody, since there was nothing to read."""


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts of memories. `updated`: including merges. `deleted`: deprecated."""

    kept: int = 0
    updated: int = 0
    created: int = 0
    deleted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolutionResult:
    """The result of an evolution.

    `mode`: the reader, 'llm' or 'offline'; 'none' if there was nothing to read. `message`: the reason in a sentence if
    nothing was done, else ''. `failed`: nothing in the model's answer could be followed, so the messages stay unread.
    `changes`: those of the log, in order. `rejected`: lines of the model's answer that were not followed, each with its
    reason. `messages`: how many were read; `remaining`: how many new ones are still to be read. `model`: the model that
    answered, '' without one. If nothing was read, nothing is recorded under `evolution_id`.
    """

    evolution_id: str
    scope: str
    mode: ReadBy
    at: datetime
    message: str = ""
    failed: bool = False
    stats: Stats = field(default_factory=Stats)
    changes: tuple[Change, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    messages: int = 0
    remaining: int = 0
    model: str = ""
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunEvolution:
    """An evolution submitted as durable work. `job_id`: its id in `lore.jobs`."""

    job_id: str
    evolution_id: str


def check_mode(given: object) -> Mode:
    if given not in get_args(Mode):
        raise InvalidInput("choice_unknown", name="mode", value=f"{given!r:.60}", known=", ".join(get_args(Mode)))
    return "offline" if given == "rules" else given  # type: ignore[return-value]


def check_days(given: object) -> float:
    """Return the days that a first evolution reads back. Raises `InvalidInput` unless it is above 0 and at most
    3,650."""
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given <= 3_650:
        raise InvalidInput("days_invalid", value=f"{given!r:.60}")
    return float(given)


_DAY = timedelta(days=1)
SILENCE = timedelta(days=14)
"""Silence that is evidence: what a group does weekly has then been missing twice, and a holiday of a week is over."""
HALF_LIFE_DAYS = 30.0
"""Days without support in which a strength halves: what a group does monthly is still half as strong."""
STRENGTH_FLOOR = 0.2
"""Strength below which a memory is shown to the model as stale: a new one that nobody confirmed for six weeks."""


def decayed(strength: float, since_support_days: float, half_life_days: float) -> float:
    """Return the decayed strength, in [0, 1]: halved with each half-life, which is above 0. Support in the future
    counts as now."""
    return _bounded(strength) * math.exp2(-max(since_support_days, 0.0) / half_life_days)


def raised(strength: float, by: float) -> float:
    """Return the strength raised by this share, in [0, 1], of what is missing to 1."""
    start = _bounded(strength)
    return _bounded(start + _bounded(by) * (1.0 - start))


def strength_at(memory: Memory, now: datetime) -> float:
    """Return the strength at `now`, in [0, 1]. The stored strength is that at the time of the last support."""
    return decayed(memory.strength, (now - memory.supported_at) / _DAY, HALF_LIFE_DAYS)


def is_stale(memory: Memory, now: datetime) -> bool:
    """Return True if the strength has decayed below the floor."""
    return strength_at(memory, now) < STRENGTH_FLOOR


def is_silent(memory: Memory, now: datetime) -> bool:
    """Return True if the memory is silent by the clock: it is stale, or had no support for two weeks."""
    return is_stale(memory, now) or now - memory.supported_at >= SILENCE


def is_silent_in(memory: Memory, room_id: str, newest: datetime) -> bool:
    """Return True if the memory is silent by the times of a room's messages: all that supports it was said there, two
    weeks or more before `newest`. This tells of silence where an import is read long after it was written, of which the
    clock knows nothing. What a caller said without a message is not silent, nor is what another room supports: its
    later messages may be unread."""
    rooms_heard = memory.evidence
    return bool(rooms_heard) and all(room.room_id == room_id and newest - room.last >= SILENCE for room in rooms_heard)


def last_evolutions(log: Iterable[Change]) -> Mapping[str, str]:
    """Return, by the id of each memory whose last change an evolution made, the id of that evolution. A memory that
    somebody changed by hand since, or that the log does not mention, is missing. `log`: the changes that touched the
    memories, ascending."""
    last = {change.memory.memory_id: change.evolution_id for change in log}
    return {memory_id: evolution_id for memory_id, evolution_id in last.items() if evolution_id is not None}


def _bounded(value: float) -> float:
    return min(max(value, 0.0), 1.0)
