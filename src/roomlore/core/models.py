"""The words of roomlore as frozen values: rooms, messages, features, links, contexts.

Times are aware datetimes in UTC unless a docstring says otherwise. `arrival` is a message's place in its room, counted
from 1 in the order the room received its messages.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from roomlore.core.linked import UNLINKED, Linked
from roomlore.core.mates import NO_MATES, Mates

DEFAULT_TENANT = "default"


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"


class MessageType(StrEnum):
    QUESTION = "question"
    ANSWER = "answer"
    DISCUSSION = "discussion"
    NOTIFICATION = "notification"
    CASUAL = "casual"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One thing said in a room, as the caller hands it in.

    `id` is the caller's own and unique in its room. A naive `sent_at` is UTC; None means unknown, and the message then
    takes the time of the message before it. `mentions` holds sender ids that the platform itself named.
    """

    id: str
    room_id: str
    sender_id: str
    text: str = ""
    sent_at: datetime | None = None
    sender_name: str = ""
    role: Role = Role.USER
    reply_to: str | None = None
    root_id: str | None = None
    mentions: tuple[str, ...] = ()
    has_tool_calls: bool = False
    turn_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage(Message):
    """A message with what the store knows of it: `sent_at` is never None here.

    `sent_at_estimated`: the caller gave no readable time. `tokens`: the text's length in tokens of the configured
    encoding. `edited_at`: when its text was last changed, if ever.
    """

    arrival: int
    sent_at_estimated: bool = False
    tokens: int = 0
    edited_at: datetime | None = None

    @property
    def at(self) -> datetime:
        """`sent_at`, known to be there."""
        assert self.sent_at is not None
        return self.sent_at


ReplyKind = Literal["reply", "thread", "quote", "mention"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyInfo:
    """Whom or what a message says it answers: a platform reply, a platform thread, a quotation or a leading @/name."""

    kind: ReplyKind
    message_id: str | None = None
    sender_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFeatures:
    """What one reading of a message found.

    `mentions`: sender ids, or the name as written (case-folded) where nobody in the room has it yet. `addressed`: those
    of them the message begins by addressing ("anna: ...", "@anna ..."). `keywords`: distinct, in order of appearance.
    `partners`: whom the sender addressed or answered within the 10 messages before this one.
    """

    message_type: MessageType = MessageType.DISCUSSION
    mentions: tuple[str, ...] = ()
    addressed: tuple[str, ...] = ()
    mentions_all: bool = False
    keywords: tuple[str, ...] = ()
    reply: ReplyInfo | None = None
    partners: tuple[str, ...] = ()


class LinkKind(StrEnum):
    """How a message's place was found: the platform said so, the model thinks so, or it starts something new."""

    PLATFORM = "platform"
    GUESS = "guess"
    NEW = "new"


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Where a message belongs among the earlier ones of its room.

    `parent`: arrival of the likeliest earlier message it answers (kept even where `kind` is NEW, if there was any
    candidate). `parent_probability`, `new_probability`: in [0, 1]. `thread`: arrival of the first message of the
    thread. `mates`: the earlier messages likely to share its thread.
    """

    kind: LinkKind
    thread: int
    parent: int | None = None
    parent_probability: float = 0.0
    new_probability: float = 1.0
    mates: Mates = NO_MATES


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A stored message with its features and its link."""

    message: StoredMessage
    features: MessageFeatures
    link: Link


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A message's neighbours by the links: the message it answers, and those that answer it, likeliest first.

    `answered` is None where no link is likely enough; `answers` pairs each message with the probability of its link.
    """

    answered: StoredMessage | None = None
    answered_probability: float = 0.0
    answers: tuple[tuple[StoredMessage, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A room as stored.

    `revision` grows with every write to the room; `next_arrival` is the number the next message gets; `words` is how
    many indexed words its messages have in all; `linked` tells which model made its links.
    """

    tenant: str
    room_id: str
    next_arrival: int = 1
    revision: int = 0
    messages: int = 0
    words: int = 0
    created_at: datetime
    last_sent_at: datetime | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    linked: Linked = UNLINKED


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A message to find the context of, with its room and what the plain window before it holds.

    `previous_at`: when the message before it was sent; None where there is none.
    """

    room: Room
    entry: Entry
    window_messages: int
    window_tokens: int
    previous_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """The five signals of a candidate, each in [0, 1]."""

    reply_chain: float
    user_continuity: float
    time_decay: float
    mention_relation: float
    keyword_overlap: float


FAR_REASON = "answers the question"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A message with its score in [0, 1], the signals behind it and the reason it was taken.

    `answers`: id of the earlier message that it answers, where the platform says so or it is at least 0.5 likely.
    """

    message: StoredMessage
    score: float
    signals: Signals | None
    reason: str
    answers: str | None = None

    @property
    def is_far(self) -> bool:
        """Tell whether search found it in the room before."""
        return self.reason.startswith(FAR_REASON)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextUsageRecord:
    """What was chosen for a message, what the model answered with it, and what people thought of that."""

    context_id: str
    room_id: str
    user_id: str
    trigger_message_id: str
    strategy: str
    context_message_ids: tuple[str, ...]
    relevance_scores: Mapping[str, float]
    tokens: int
    window_tokens: int
    build_ms: float
    created_at: datetime
    degraded: str | None = None
    arm: str | None = None
    llm_response: str | None = None
    user_feedback: str | None = None
    success_indicator: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """A thread of a room: its first message's id, how many messages it has, who spoke, and when."""

    thread_id: str
    room_id: str
    messages: int
    senders: tuple[str, ...]
    first_text: str
    first_sent_at: datetime
    last_sent_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AddReport:
    """What became of a batch: ids added, ids already there with the same content, ids there with other content."""

    added: tuple[str, ...] = ()
    duplicates: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """An API key as the store knows it; the secret itself is never kept, only its SHA-256."""

    key_id: str
    tenant: str
    name: str
    scopes: tuple[str, ...]
    created_at: datetime
    revoked_at: datetime | None = None
