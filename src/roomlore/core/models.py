"""The core types of roomlore as frozen dataclasses: rooms, messages, features, links, contexts.

Times are aware datetimes in UTC unless a docstring says otherwise. `arrival` is a message's place in its room, counted
from 1 in the order the room received its messages.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from roomlore.core.audience import END, PastKind, RoomKind, Window
from roomlore.core.json_values import HIDDEN
from roomlore.core.linking.calibration import UNLINKED, Linked
from roomlore.core.linking.candidates import NO_THREAD_CANDIDATES, ThreadCandidates


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
    takes the time at which it is added, or, in an import, that of the message before it. `root_id`: the platform's
    thread. `topic_id`: a part of the room with talks of its own, such as a topic of a Telegram forum. `mentions` holds
    sender ids that the platform itself named.
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
    topic_id: str | None = None
    mentions: tuple[str, ...] = ()
    has_tool_calls: bool = False
    turn_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage(Message):
    """A message as stored: `sent_at` is never None.

    `arrival`: its place in its room, from 1. `sent_at_estimated`: the caller gave no readable time, or one more than a
    day ahead. `tokens`: the text's length in tokens of the configured encoding. `edited_at`: when its text was last
    changed, if ever. `heard_from`, `heard_until`: of an estimated message, the time within which it was said; None if
    it was said at `sent_at`.
    """

    arrival: int
    sent_at_estimated: bool = False
    tokens: int = 0
    edited_at: datetime | None = None
    heard_from: datetime | None = field(default=None, metadata=HIDDEN)
    heard_until: datetime | None = field(default=None, metadata=HIDDEN)

    @property
    def at(self) -> datetime:
        """`sent_at`, known to be set."""
        assert self.sent_at is not None
        return self.sent_at

    @property
    def is_ahead(self) -> bool:
        """True if `sent_at` is later than the message can have been said."""
        return self.heard_until is not None and self.heard_until < self.at

    @property
    def dated_at(self) -> datetime:
        """`sent_at`, or the latest time at which it can have been said if that is earlier: what other times follow
        from."""
        return self.at if self.heard_until is None else min(self.at, self.heard_until)

    @property
    def origin(self) -> "Origin":
        times = (self.edited_at, self.heard_from, self.heard_until)
        return Origin.of(self.at, self.sender_id, *times, estimated=self.sent_at_estimated)


ReplyKind = Literal["reply", "thread", "quote", "mention"]


@dataclass(frozen=True, slots=True)
class Origin:
    """The times at which a message was sent and last edited, and its sender. `heard`: the time within which it was
    sent, if that is not certainly `at`.

    It was said from `first` to `last`: who was not there all the time is not known to have read its text.
    """

    at: datetime
    sender_id: str
    edited_at: datetime | None = None
    heard: Window | None = None

    @classmethod
    def of(
        cls,
        at: datetime,
        sender_id: str,
        edited_at: datetime | None,
        heard_from: datetime | None,
        heard_until: datetime | None,
        *,
        estimated: bool,
    ) -> "Origin":
        """Return the origin of a stored message. An estimated one of which nothing else is known, as an earlier version
        may store it, was said at its time or at any later one."""
        known = estimated or heard_until is not None
        return cls(at, sender_id, edited_at, Window(heard_from or at, heard_until or END) if known else None)

    @property
    def first(self) -> datetime:
        sent = self.heard.start if self.heard else self.at
        return min(sent, self.edited_at or sent)

    @property
    def last(self) -> datetime:
        sent = self.heard.end if self.heard else self.at
        return max(sent, self.edited_at or sent)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyInfo:
    """The person or message that a message says it answers: a platform reply, a platform thread, a quotation or a
    leading @/name. `sender_id` of a platform reply is None where the message it answers is not there."""

    kind: ReplyKind
    message_id: str | None = None
    sender_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFeatures:
    """The features of a message.

    `mentions`: sender ids, or the name as written (case-folded) if nobody in the room has it yet. `addressed`: those
    that the message begins by addressing ("anna: ...", "@anna ..."). `keywords`: distinct, in order of appearance.
    `partners`: the people whom the sender addressed or answered within the 10 messages before this one.
    """

    message_type: MessageType = MessageType.DISCUSSION
    mentions: tuple[str, ...] = ()
    addressed: tuple[str, ...] = ()
    mentions_all: bool = False
    keywords: tuple[str, ...] = ()
    reply: ReplyInfo | None = None
    partners: tuple[str, ...] = ()


class LinkKind(StrEnum):
    """The origin of a link: stated by the platform, guessed by the model, also inside a thread of the platform, the
    start of something new by the model's guess, or corrected by a person, who said what the message answers or that it
    answers nothing."""

    PLATFORM = "platform"
    GUESS = "guess"
    NEW = "new"
    CORRECTED = "corrected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """The place of a message among the earlier ones of its room.

    `parent`: arrival of the likeliest earlier message it answers (kept even if `kind` is NEW, if there was any
    candidate; None if a person said that it answers nothing). `parent_probability`, `new_probability`: in [0, 1].
    `thread`: arrival of the first message of the thread. `thread_candidates`: the earlier messages likely to share its
    thread.
    """

    kind: LinkKind
    thread: int
    parent: int | None = None
    parent_probability: float = 0.0
    new_probability: float = 1.0
    thread_candidates: ThreadCandidates = field(default=NO_THREAD_CANDIDATES, metadata=HIDDEN)

    @property
    def is_certain(self) -> bool:
        """True if the platform or a person states it."""
        return self.kind in (LinkKind.PLATFORM, LinkKind.CORRECTED)

    def without(self, arrivals: Collection[int]) -> "Link":
        """Return the link as if these messages were not there."""
        kept = {
            arrival: share for arrival, share in self.thread_candidates.by_arrival().items() if arrival not in arrivals
        }
        return replace(
            self,
            parent=None if self.parent in arrivals else self.parent,
            thread_candidates=ThreadCandidates.of(list(kept), list(kept.values())),
        )

    @property
    def has_certain_thread(self) -> bool:
        """True if the platform or a person states that it belongs to a thread, whichever message of it it answers."""
        return self.is_certain or self.new_probability == 0.0


class CorrectionKind(StrEnum):
    """The kind of a correction: the message answers another one, it answers nothing, or an earlier correction is taken
    back."""

    ANSWERS = "answers"
    NOTHING = "nothing"
    UNDONE = "undone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """An entry of the log of corrections of a room.

    `number`: its place in the log of its room, from 1. `message_id`: the corrected message. `answers`: the message it
    answers, None if it answers nothing, if the correction is undone, and, of the kind `answers`, if that message was
    deleted. `standing`: True if it is in force. `by`: who corrected it.
    """

    room_id: str
    number: int
    message_id: str
    kind: CorrectionKind
    answers: str | None = None
    standing: bool
    by: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A stored message with its features and its link."""

    message: StoredMessage
    features: MessageFeatures
    link: Link


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedEntry(Entry):
    """A message with the link that a correction gave it. `relinked`: how many other messages have new links or threads
    with it; `left`: how many of the room still wait to move to another thread, as durable work."""

    relinked: int = 0
    left: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A room as stored.

    `revision`: grows with every write to the room. `next_arrival`: the number the next message gets. `words`: how many
    indexed words its messages have in all. `settings`: the room's own settings. `linked`: the model that made its
    links. `kind`: None if unknown, and then it counts as private. `past_kinds`: the kinds it had before, the first one
    first. `name`: as its platform calls it or somebody named it, '' if nobody said.
    """

    tenant: str = field(metadata=HIDDEN)
    room_id: str
    next_arrival: int = field(default=1, metadata=HIDDEN)
    revision: int = 0
    messages: int = 0
    words: int = 0
    created_at: datetime
    last_sent_at: datetime | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    linked: Linked = field(default=UNLINKED, metadata=HIDDEN)
    kind: RoomKind | None = None
    past_kinds: tuple[PastKind, ...] = ()
    name: str = ""

    @property
    def title(self) -> str:
        """The name, else the id."""
        return self.name or self.room_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Speaker:
    """Someone who spoke. `name`: the last known one of a room, '' if none. `rooms`, `messages`: how many, in all rooms
    that were looked at. `last_spoke_at`: None for an agent. `is_agent`: never spoke with the role user."""

    sender_id: str
    name: str
    rooms: int
    messages: int
    last_spoke_at: datetime | None
    is_agent: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """The messages of one person in one room. `last_arrival`: of the last message."""

    room_id: str
    name: str
    messages: int
    last_arrival: int
    last_spoke_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A message to choose a context for, with its room and the size of the plain window before it.

    `previous_at`: the time of the message before it; None if there is none.
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


FAR_REASON, MAYBE_FAR_REASON = "answers the question", "may answer the question"
"""Of messages that search found. The second: it is unlikely that anything from the past is needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A message with its score in [0, 1], the signals behind it and the reason it was taken.

    `answers`: id of the earlier message that it answers, if the platform states it or its probability is at least 0.5.
    `entry`: the `Entry` of the message, None if a strategy does not tell it.
    """

    message: StoredMessage
    score: float
    signals: Signals | None
    reason: str
    answers: str | None = None
    entry: Any = field(default=None, metadata=HIDDEN, repr=False, compare=False)  # Pydantic makes no schema of an Entry

    @property
    def is_far(self) -> bool:
        """True if search found it in the room before."""
        return self.reason.startswith((FAR_REASON, MAYBE_FAR_REASON))


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextUsageRecord:
    """The context chosen for a message, the model's response, and feedback."""

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

    @property
    def mean_score(self) -> float | None:
        """The mean of the scores of the chosen messages, None if none was chosen."""
        scores = self.relevance_scores.values()
        return sum(scores) / len(scores) if scores else None


class TalkState(StrEnum):
    """`open`: it holds a question without a later answer. `answered`: every question in it has one. `closed`: it asks
    nothing."""

    OPEN = "open"
    ANSWERED = "answered"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """The title of a thread, a model's or made of its newest messages ('' if they have no words), and its state."""

    title: str
    state: TalkState


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """A thread of a room. `thread_id`: the id of its first message. `messages`: how many it has. `senders`: who spoke.
    `title`: a model's, or its decision or most telling sentence, by its newest messages. `state`: of the same
    messages."""

    thread_id: str
    room_id: str
    messages: int
    senders: tuple[str, ...]
    first_text: str
    first_sent_at: datetime
    last_sent_at: datetime
    title: str = ""
    state: TalkState = TalkState.CLOSED


@dataclass(frozen=True, slots=True, kw_only=True)
class AddReport:
    """The result of adding a batch: ids added, ids stored already with the same content, and with other content.

    `new_rooms`: the rooms that the batch made, each with the ids of other rooms that have its id as their name: then
    one of these may have been meant. At most the first 20 are looked up.
    """

    added: tuple[str, ...] = ()
    duplicates: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    new_rooms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """An API key as stored. The secret is never kept, only its SHA-256."""

    key_id: str
    tenant: str = field(metadata=HIDDEN)
    name: str
    scopes: tuple[str, ...]
    created_at: datetime
    revoked_at: datetime | None = None


Left = Literal["", "below", "crowded", "unlikely", "unseen"]
"""The reason why a message was left: a score below the threshold (`below`), enough better ones (`crowded`), more likely
to hurt than to help (`unlikely`), or no sign that it belongs there (`unseen`). '' if it was taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """A candidate of an explanation. `score`: in [0, 1], the probability for `threaded`, the weighted sum for
    `weighted`, None if the strategy gives none. `reason`: why it was taken, '' if it was left. `answers`: as of
    `Candidate`."""

    message: StoredMessage
    score: float | None = None
    signals: Signals | None = None
    reason: str = ""
    left: Left = ""
    answers: str | None = field(default=None, metadata=HIDDEN)

    @property
    def taken(self) -> bool:
        return not self.left


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The candidates of one strategy for a message, in people's order.

    `in_force`: True if the room uses this strategy. `tokens`: of the texts taken; `window_tokens`, `window_messages`:
    cost of the plain window. `threshold`: the least score, None except for `weighted`.
    """

    target: Entry
    strategy: str
    in_force: bool
    weighed: tuple[Weighed, ...]
    tokens: int
    window_tokens: int
    window_messages: int
    threshold: float | None = None

    @property
    def taken(self) -> tuple[Weighed, ...]:
        return tuple(weighed for weighed in self.weighed if weighed.taken)
