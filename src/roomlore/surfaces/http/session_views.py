"""What answers about sessions look like, for OpenAPI. A session's JSON may have more fields than these."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class ChatMessage(_Open):
    role: str
    content: str


class MetaView(_Open):
    conversation_id: str
    user_id: str
    updated_at: int = Field(description="Unix time in seconds.")
    enterprise_id: str | None = None
    patient_id: str | None = None


class FlowContextView(_Open):
    current_agent_key: str
    last_bot_message: str
    turn_count: int = Field(description="Turns since the last reset.")


class MessageContextView(_Open):
    summary: str = Field(description="'' if there is none.")
    window_messages: list[ChatMessage]
    mode: str
    checkpoint_message_id: str = Field(description="The checkpoint in force, '' if none.")


class GlobalStateView(_Open):
    """Kept for agents, never read by roomlore."""

    shared: dict[str, Any]
    entities: dict[str, Any]
    agent_slots: dict[str, Any]
    current_intent: str
    pending_action: dict[str, Any] | None


class UserSnapshotView(_Open):
    user_id: str
    name: str
    allergies: list[str]
    history: list[str] = Field(description="Chronic diseases.")
    surgery_history: list[str]
    preferences: list[str]


class SessionView(_Open):
    """A session as JSON. Fields that roomlore does not know are kept where they stood."""

    meta: MetaView
    flow_context: FlowContextView
    message_context: MessageContextView
    global_state: GlobalStateView
    user_snapshot: UserSnapshotView


class SessionLine(BaseModel):
    """A session in a list."""

    conversation_id: str
    mode: Literal["FULL_HISTORY", "SUMMARY_N"]
    user_id: str
    enterprise_id: str | None
    patient_id: str | None
    checkpoint_id: str = Field(description="The checkpoint in force, '' if none.")
    updated_at: int = Field(description="When the session last changed, as Unix time in seconds.")


class SessionPage(BaseModel):
    sessions: list[SessionLine]
    next: str | None = Field(description="The `after` of the next page; null at the end.")


class SessionContextView(BaseModel):
    """What was said, inside the model's window."""

    conversation_id: str
    mode: Literal["FULL_HISTORY", "SUMMARY_N"]
    session: SessionView
    history: str = Field(description="For the prompt: the summary, if any, and the turns after it.")
    messages: list[ChatMessage] = Field(description="The same for a chat model.")
    full_history: str = Field(
        description="What the next summary is made of: the earlier one and all that came after it."
    )
    covers_through: str | None = Field(description="Id of the last message of full_history; pass it to checkpoint.")
    checkpoint_id: str = Field(description="The checkpoint in force, '' if none; pass it as expected_checkpoint.")
    estimated_tokens: int = Field(description="Of history and query, counted exactly.")
    token_ratio: float = Field(description="Their share of the window.")
    should_checkpoint_summary: bool = Field(description="A checkpoint is due.")
    truncated: bool = Field(
        description="The window was too small for all that no summary covers, or for as many turns as asked for."
    )
    turns: int = Field(description="Turns shown verbatim.")
    message_ids: list[str] = Field(description="The messages of those turns, those without a text too.")
    language: Literal["zh", "en"]


class TurnView(BaseModel):
    conversation_id: str
    mode: Literal["FULL_HISTORY", "SUMMARY_N"]
    updated_at: int = Field(description="Unix time in seconds.")
    turn_id: str
    message_ids: list[str] = Field(description="Of the query, the answer, or both.")


class CheckpointView(BaseModel):
    """A summary that stands for everything before a point, or a reset."""

    checkpoint_id: str
    conversation_id: str
    number: int = Field(description="Its place among the conversation's checkpoints and resets, from 1.")
    kind: Literal["summary", "reset"]
    summary: str
    covers_arrival: int = Field(description="Arrival of the last message it stands for, 0 if there was none.")
    covers_through: str | None = Field(description="Id of that message.")
    turns: int = Field(description="Turns since the last reset that it stands for.")
    tokens: int = Field(description="Length of the summary.")
    recent_turns: int
    language: Literal["zh", "en"]
    made_by: str = Field(description="caller, extract (sentences chosen without a model) or a model's name.")
    created_at: datetime


class CheckpointMade(BaseModel):
    checkpoint: CheckpointView | None = Field(description="null: nothing was said since the one in force.")


class CheckpointPage(BaseModel):
    checkpoints: list[CheckpointView]
    next: int | None = Field(description="The `before` of the next page; null at the end.")
