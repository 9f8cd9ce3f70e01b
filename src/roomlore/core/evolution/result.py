"""What came of an evolution, as callers are told."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, get_args

from roomlore.core.chat.models import Usage
from roomlore.core.errors import InvalidInput
from roomlore.core.evolution.models import Rejected
from roomlore.core.memory.models import Change

Mode = Literal["auto", "llm", "offline"]
"""Who reads the messages: a model, nobody but rules, or a model where a provider is set up and rules otherwise."""


@dataclass(frozen=True, slots=True)
class Stats:
    """How many memories were kept, changed (merges too), made and deprecated."""

    kept: int = 0
    updated: int = 0
    created: int = 0
    deleted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolutionResult:
    """What an evolution did.

    `mode`: who read the messages, 'llm' or 'offline'. `message`: in a sentence, why nothing was done, '' where
    something was. `failed`: nothing in the model's answer could be followed, so the messages stay unread.
    `changes`: those of the log, in order. `rejected`: lines of the model's answer that were not followed, each with its
    reason. `messages`: how many were read; `remaining`: how many new ones are still to be read. `model`: what answered,
    '' without one. Where nothing was read, nothing is recorded under `evolution_id`.
    """

    evolution_id: str
    scope: str
    mode: Mode
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
    """An evolution that was handed in as durable work. `job_id`: what `lore.jobs` knows it by."""

    job_id: str
    evolution_id: str


def check_mode(given: object) -> Mode:
    if given not in get_args(Mode):
        raise InvalidInput(f"mode is {given!r:.60}; it is one of {', '.join(get_args(Mode))}.")
    return given  # type: ignore[return-value]


def check_days(given: object) -> float:
    """How many days back a first evolution reads: more than 0, at most 3,650."""
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given <= 3_650:
        raise InvalidInput(f"days is {given!r:.60}; it must be a number above 0, at most 3650.")
    return float(given)
