"""A session as stored, its checkpoints, and the answers to the calls on it.

`conversation_id` names a room. Arrivals are as in `core.models`; 0 is before every message.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from roomlore.core.models import Role
from roomlore.core.sessions.value import SessionValue

Language = Literal["zh", "en"]
CheckpointKind = Literal["summary", "reset"]

CALLER = "caller"
EXTRACT = "extract"


class SessionMode(StrEnum):
    """How a conversation is shown: whole, or as a summary and the turns after it."""

    FULL_HISTORY = "FULL_HISTORY"
    SUMMARY_N = "SUMMARY_N"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A summary that stands for everything before a point of a conversation; or a reset, which ends what was before it.

    `number` counts the checkpoints of the conversation from 1. `covers_arrival`, `covers_through`: arrival and id of
    the last message it stands for, 0 and None where there was none. `turns`: how many turns since the last reset it
    stands for. `tokens`: length of the summary. `recent_turns`: how many turns its maker wants verbatim at least.
    `made_by`: 'caller', 'extract' (sentences chosen without a model) or the name of a model.
    """

    checkpoint_id: str
    conversation_id: str
    number: int
    kind: CheckpointKind = "summary"
    summary: str = ""
    covers_arrival: int = 0
    covers_through: str | None = None
    turns: int = 0
    tokens: int = 0
    recent_turns: int = 0
    language: Language = "en"
    made_by: str = CALLER
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A checkpoint that roomlore is to make by itself: not before `at`, after `tries` that failed, for a model that
    takes `window` tokens (0 where nobody said)."""

    at: datetime
    tries: int = 0
    window: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A conversation's session as stored, with the point at which its room stands.

    `revision`, `next_arrival`: the room's. `version` grows with every change of the session itself; 0 where the room
    has none of its own yet. `boundary`: arrival of the last message before the last reset. `state`: what callers keep
    with it, as `SessionValue` has it, derived fields left out. `checkpoint`: the one in force.
    """

    tenant: str
    conversation_id: str
    revision: int
    next_arrival: int
    version: int = 0
    user_id: str = ""
    enterprise_id: str | None = None
    patient_id: str | None = None
    agent_key: str = ""
    boundary: int = 0
    state: Mapping[str, Any] = field(default_factory=dict)
    checkpoint: Checkpoint | None = None
    due: Due | None = None
    marks: int = 0
    created_at: datetime
    updated_at: datetime

    @property
    def mode(self) -> SessionMode:
        return SessionMode.SUMMARY_N if self.checkpoint else SessionMode.FULL_HISTORY

    @property
    def covered(self) -> int:
        """Arrival of the last message that need not be shown."""
        return self.checkpoint.covers_arrival if self.checkpoint else self.boundary

    @property
    def checkpoint_id(self) -> str:
        """The checkpoint in force, '' if none."""
        return self.checkpoint.checkpoint_id if self.checkpoint else ""


class SessionMessage(NamedTuple):
    """A message as a session shows it. `name`: the sender's, where the platform gave one. A named tuple, as every read
    makes many, and of a frozen dataclass each costs five times as much."""

    arrival: int
    id: str
    role: Role
    name: str
    text: str
    turn_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionContext:
    """What was said in a conversation, inside the model's window.

    `history`: as one text; `messages`: the same as role and content, for a chat model. `full_history`: the earlier
    summary and every turn after it, untouched by the window: what the next summary is made of; `covers_through`: the
    id of its last message. `estimated_tokens`: of `history` and the query, counted exactly in the configured encoding;
    `token_ratio`: their share of the window. `truncated`: the window was too small for every message that no summary
    covers, or for as many turns as asked for. `turns`: how many are shown verbatim; `message_ids`: their messages,
    those without a text too. `checkpoint_id`: the checkpoint in force, '' if none.
    """

    conversation_id: str
    mode: SessionMode
    session: SessionValue
    history: str
    messages: Sequence[Mapping[str, str]]
    full_history: str
    covers_through: str | None
    checkpoint_id: str
    estimated_tokens: int
    token_ratio: float
    should_checkpoint_summary: bool
    truncated: bool
    turns: int
    message_ids: tuple[str, ...]
    language: Language


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnResult:
    """A turn that is stored. `updated_at`: Unix time in seconds. `message_ids`: of the query, the answer, or both."""

    conversation_id: str
    mode: SessionMode
    updated_at: int
    turn_id: str
    message_ids: tuple[str, ...]
