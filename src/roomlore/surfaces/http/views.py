"""What answers look like, for OpenAPI: the fields of the models, as `plain` writes them."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, Field


class MessageView(BaseModel):
    """A stored message. Times are ISO 8601 in UTC."""

    id: str
    room_id: str
    sender_id: str
    sender_name: str
    role: Literal["user", "assistant", "system", "tool"]
    text: str
    sent_at: datetime
    sent_at_estimated: bool = Field(description="No readable time was given.")
    edited_at: datetime | None
    reply_to: str | None
    root_id: str | None
    mentions: list[str]
    has_tool_calls: bool
    turn_id: str | None
    metadata: dict[str, Any]
    arrival: int = Field(description="The message's place in its room, from 1.")
    tokens: int


class ReplyView(BaseModel):
    kind: Literal["reply", "thread", "quote", "mention"]
    message_id: str | None
    sender_id: str | None


class FeaturesView(BaseModel):
    message_type: Literal["question", "answer", "discussion", "notification", "casual"]
    mentions: list[str]
    addressed: list[str]
    mentions_all: bool
    keywords: list[str]
    reply: ReplyView | None


class LinkView(BaseModel):
    """Where the message belongs. `thread` and `parent` are arrivals."""

    kind: Literal["platform", "guess", "new"]
    thread: int
    parent: int | None
    parent_probability: float
    new_probability: float


class EntryView(BaseModel):
    message: MessageView
    features: FeaturesView
    link: LinkView


class SignalsView(BaseModel):
    reply_chain: float
    user_continuity: float
    time_decay: float
    mention_relation: float
    keyword_overlap: float


class CandidateView(BaseModel):
    message: MessageView
    score: float
    signals: SignalsView | None
    reason: str
    answers: str | None = Field(description="Id of the message that it answers, as the platform says or as is likely.")


class ChatMessageView(BaseModel):
    role: Literal["user", "assistant"]
    content: str


class ContextView(BaseModel):
    """What matters for one message, in time order, each with its reason."""

    context_id: str
    room_id: str
    message_id: str
    strategy: str
    messages: list[CandidateView]
    parent: str | None = Field(description="Id of the message it answers, if any.")
    parent_probability: float
    tokens: int = Field(description="Tokens of the texts chosen.")
    window_tokens: int = Field(description="Tokens the plain last-N window would have cost.")
    window_messages: int
    build_ms: float
    degraded: str | None = Field(description="Why a simpler answer was given, if one was.")
    arm: str | None = Field(description="The arm of the experiment the room is in.")
    rendered: list[ChatMessageView] | str | None = Field(
        None, description="The context and the message as `render` asked for them; left out where it did not ask."
    )


class HitView(BaseModel):
    message: MessageView
    score: float = Field(description="In [0, 1]; comparable within one answer.")
    signals: dict[str, float] = Field(description="What the score is made of.")
    reason: str
    conversation: list[MessageView] = Field(description="The messages around it, in people's order, where asked for.")


class TimeSpanView(BaseModel):
    """A time the question speaks of: from `start` up to `end`, without it."""

    text: str
    start: datetime
    end: datetime
    position: list[int] = Field(description="Where the words stand in the question: the first character, and one past.")


class SearchView(BaseModel):
    """What a search found, best first."""

    room_id: str
    query: str
    mode: Literal["hybrid", "lexical"] = Field(description="How it was searched: lexical is by words alone.")
    hits: list[HitView]
    times: list[TimeSpanView] = Field(description="The times understood in the question.")
    degraded: str | None = Field(description="Why less was done than asked for, if it was.")
    search_ms: float


class ModelView(BaseModel):
    name: str
    dimensions: int


class ProviderView(BaseModel):
    """Where a language model can be had."""

    name: str
    model_id: str = Field(description="The model's id there.")
    usable: bool = Field(description="It has a key, or needs none.")
    resting: bool = Field(description="It is left alone for the moment, after failures.")
    key_variable: str | None = Field(description="The environment variable with its key; null where it needs none.")


class LanguageModelView(BaseModel):
    model_id: str
    display_name: str
    internal: bool
    usable: bool = Field(description="One of its providers can be asked.")
    providers: list[ProviderView] = Field(description="In the order in which they are tried.")


class ModelList(BaseModel):
    models: list[LanguageModelView]


class IndexView(BaseModel):
    """How the indexes of search stand, over all tenants."""

    words: Literal["whole", "rebuilding"]
    vectors: Literal["off", "whole", "behind", "rebuilding", "missing", "other model", "down"]
    model: ModelView | None = Field(description="The embedding model; null where there is none.")
    waiting: int = Field(description="Messages and memories whose vector is due.")
    rooms_to_link: int = Field(description="Rooms that wait for the links of today's link model.")
    problem: str | None = Field(description="What to do, if anything.")


class UsageView(BaseModel):
    context_id: str
    room_id: str
    user_id: str
    trigger_message_id: str
    strategy: str
    context_message_ids: list[str]
    relevance_scores: dict[str, float]
    tokens: int
    window_tokens: int
    build_ms: float
    created_at: datetime
    degraded: str | None
    arm: str | None
    llm_response: str | None
    user_feedback: str | None
    success_indicator: float | None


class AddView(BaseModel):
    """What became of a batch, by message id."""

    added: list[str]
    duplicates: list[str]
    conflicts: list[str]


class RoomView(BaseModel):
    room_id: str
    messages: int
    revision: int
    created_at: datetime
    last_sent_at: datetime | None
    settings: dict[str, Any] = Field(description="The room's own settings.")


class ThreadView(BaseModel):
    thread_id: str = Field(description="Id of the first message.")
    arrival: int = Field(description="Arrival of the first message.")
    room_id: str
    messages: int
    senders: list[str]
    first_text: str
    first_sent_at: datetime
    last_sent_at: datetime


class MessagePage(BaseModel):
    messages: list[MessageView]
    next: int | None = Field(description="The `after` of the next page; null at the end.")


class RoomPage(BaseModel):
    rooms: list[RoomView]
    next: str | None = Field(description="The `after` of the next page; null at the end.")


class ThreadPage(BaseModel):
    threads: list[ThreadView]
    next: int | None = Field(description="The `after` of the next page; null at the end.")


class ThreadMessages(BaseModel):
    entries: list[EntryView]


class SettingView(BaseModel):
    value: Any
    source: str


class RoomSettings(BaseModel):
    room_id: str
    settings: dict[str, SettingView]


class Health(BaseModel):
    status: Literal["ok"]
