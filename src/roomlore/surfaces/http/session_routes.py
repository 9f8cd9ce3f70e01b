"""Routes of sessions, with their requests and responses."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator
from starlette.requests import Request as SessionBody
from starlette.responses import Response

from roomlore.core.intake import MAX_ID_CHARS
from roomlore.core.records import parse_time
from roomlore.core.sessions.intake import MAX_TURN_ID_CHARS
from roomlore.core.sessions.window import MAX_TURNS, MAX_WINDOW
from roomlore.surfaces.http import bodies
from roomlore.surfaces.http.bodies import TEXT, TIME, Body, Bounds, Within, body_of, documented, needs_one, one_room
from roomlore.surfaces.http.guard import Reader, Writer, caller_of
from roomlore.surfaces.http.paths import MOST, PageLimit, addressed
from roomlore.surfaces.http.problems import reply
from roomlore.surfaces.plain import plain, session_line

T = TypeVar("T", bound=Body)

_PATCH_TYPES = ("application/merge-patch+json", "application/json")

PATCH: Mapping[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            kind: {
                "schema": {
                    "type": "object",
                    "description": "A JSON merge patch (RFC 7396): objects merge, null removes, all else replaces.",
                    "example": {"global_state": {"current_intent": "refund", "pending_action": None}},
                }
            }
            for kind in _PATCH_TYPES
        },
    }
}


def optional(model: type[T], *, within: Within = Bounds.small) -> Callable[[SessionBody], Awaitable[T]]:
    """Return the dependency `body_of` for an optional body."""
    read = body_of(model, within=within)

    async def read_if_any(request: SessionBody) -> T:
        headers = request.headers
        empty = headers.get("content-length", "0").strip() == "0" and "transfer-encoding" not in headers
        return model() if empty else await read(request)

    return read_if_any


def documented_optional(model: type[Body]) -> dict[str, Any]:
    """Return the `openapi_extra` of an optional body."""
    body = documented(model)["requestBody"]
    return {"requestBody": {**body, "required": False}}


def _readable(given: Any) -> Any:
    if given is not None and parse_time(given) is None:
        raise ValueError(f"{given!r:.60} is no time; give one such as 2024-05-01T12:30:00Z, or a Unix time")
    return given


class CreateRequest(Body):
    """A new conversation, or a session exported from another system or version."""

    conversation_id: str = Field(
        min_length=1, max_length=MAX_ID_CHARS, description="The room; room_id, group_id and chat_id mean the same."
    )
    user_id: str | None = Field(None, max_length=MAX_ID_CHARS, description="Whom the agent talks with.")
    enterprise_id: str | None = Field(None, max_length=MAX_ID_CHARS)
    patient_id: str | None = Field(None, max_length=MAX_ID_CHARS)
    session: dict[str, Any] | None = Field(
        None, description="The JSON of an older session; its state is taken over where the conversation has none yet."
    )

    @model_validator(mode="before")
    @classmethod
    def _one_conversation(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        named = one_room(value)
        return {("conversation_id" if name == "room_id" else name): given for name, given in named.items()}


class QueryRequest(Body):
    """The query, and options of the context; the settings apply to those left out."""

    query: str | None = Field(None, description="What the user says now: counted, not returned, not stored.")
    token_threshold_ratio: float | None = Field(
        None, gt=0, le=1, description="Share of the window from which a checkpoint is asked for."
    )
    recent_turns: int | None = Field(None, ge=0, le=MAX_TURNS, description="Turns shown verbatim at least.")
    model_context_window: int | None = Field(None, ge=1, le=MAX_WINDOW, description="What the model takes, in tokens.")
    enterprise_id: str | None = Field(None, max_length=MAX_ID_CHARS, description="Kept with the session.")
    patient_id: str | None = Field(None, max_length=MAX_ID_CHARS, description="Kept with the session.")


class TurnRequest(Body):
    """A turn: the user's query, the agent's answer, or both."""

    model_config = ConfigDict(json_schema_extra=needs_one("user_query", "agent_response", type="string", minLength=1))

    user_id: str | None = Field(None, max_length=MAX_ID_CHARS, description="By default the session's.")
    agent_code: str | None = Field(None, max_length=MAX_ID_CHARS, description="Which agent answers.")
    user_query: str | None = Field(None, json_schema_extra=TEXT)
    agent_response: str | None = Field(None, json_schema_extra=TEXT)
    turn_id: str | None = Field(
        None, max_length=MAX_TURN_ID_CHARS, description="An id of your own makes the call safe to repeat."
    )
    sent_at: Annotated[str | int | float | None, BeforeValidator(_readable), WithJsonSchema(TIME)] = Field(
        None, description="ISO 8601 or a Unix time; by default now."
    )

    @model_validator(mode="after")
    def _something(self) -> "TurnRequest":
        if not self.user_query and not self.agent_response:
            raise ValueError("give user_query, agent_response, or both")
        return self


_ABOUT_A_SUMMARY = ("recent_turns", "covers_through", "expected_checkpoint")
_WITH_A_SUMMARY: dict[str, Any] = {"required": ["summary"], "properties": {"summary": {"type": "string"}}}
_WITHOUT: dict[str, Any] = {"properties": {name: {"type": "null"} for name in ("summary", *_ABOUT_A_SUMMARY)}}


class CheckpointRequest(Body):
    """A summary and the messages that it covers; without a summary roomlore makes one."""

    model_config = ConfigDict(json_schema_extra={"allOf": [{"anyOf": [_WITH_A_SUMMARY, _WITHOUT]}]})

    summary: str | None = Field(
        None,
        json_schema_extra=TEXT | {"pattern": r"\S"},
        description="Left out, roomlore makes it from everything no summary covers.",
    )
    recent_turns: int | None = Field(None, ge=0, le=MAX_TURNS, description="Turns its maker wants verbatim at least.")
    covers_through: str | None = Field(
        None, description="Id of the last message the summary stands for: the context's `covers_through`."
    )
    expected_checkpoint: str | None = Field(
        None, description="The checkpoint that must be in force: the context's `checkpoint_id`, '' for none."
    )

    @model_validator(mode="after")
    def _about_a_summary(self) -> "CheckpointRequest":
        about = (getattr(self, name) for name in _ABOUT_A_SUMMARY)
        if self.summary is None and any(given is not None for given in about):
            raise ValueError(
                "recent_turns, covers_through and expected_checkpoint belong to a summary; "
                "give a summary with them, or leave them out"
            )
        return self


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
    """Stored for agents, never read by roomlore."""

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
    """A session as JSON. Unknown fields are kept in their places."""

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
    """The history within the model's window."""

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


sessions = APIRouter(tags=["sessions"])

ConversationId = Annotated[str, Depends(addressed("conversation_id", "The id of the conversation, which is a room"))]


@sessions.post(
    "/sessions",
    response_model=SessionView,
    openapi_extra=bodies.documented(CreateRequest),
)
async def create_session(
    lore: Writer,
    wanted: Annotated[CreateRequest, Depends(bodies.body_of(CreateRequest, within=Bounds.bulk))],
) -> Response:
    """Create the session, and its room if there is none. An existing session stays; missing ids are filled in."""
    made = await lore.sessions.create_session(
        wanted.conversation_id,
        wanted.user_id or "",
        enterprise_id=wanted.enterprise_id,
        patient_id=wanted.patient_id,
        session=wanted.session,
    )
    return reply(plain(made))


@sessions.get("/sessions", response_model=SessionPage)
async def list_sessions(
    lore: Reader,
    limit: PageLimit,
    after: Annotated[str | None, Query(description="The `next` of the page before.")] = None,
) -> Response:
    """Return the sessions, by conversation id."""
    page = await lore.sessions.page(after=after, limit=limit)
    return reply(
        {"sessions": list(map(session_line, page)), "next": page[-1].conversation_id if len(page) == limit else None}
    )


@sessions.get("/sessions/{conversation_id:id}", response_model=SessionView)
async def get_session(lore: Reader, conversation_id: ConversationId) -> Response:
    """Return the session as JSON: its ids, the flow, the last turns, and the agents' data."""
    return reply(plain(await lore.sessions.get_session(conversation_id)))


@sessions.patch(
    "/sessions/{conversation_id:id}/state",
    response_model=SessionView,
    openapi_extra=dict(PATCH),
)
async def patch_session_state(request: Request, lore: Writer, conversation_id: ConversationId) -> Response:
    """Merge a patch (RFC 7396) into the session's data: its state, the user's snapshot, the current agent, and fields
    of your own. Values derived from the messages cannot be set."""
    patch = await bodies.read_json(request, lambda given: given, within=Bounds.bulk)
    return reply(plain(await lore.sessions.patch_state(conversation_id, patch)))


@sessions.post(
    "/sessions/{conversation_id:id}/context",
    response_model=SessionContextView,
    openapi_extra=documented_optional(QueryRequest),
)
async def query_session_context(
    request: Request,
    lore: Reader,
    conversation_id: ConversationId,
    asked: Annotated[QueryRequest, Depends(optional(QueryRequest))],
) -> Response:
    """Return the history within the model's window, and if a checkpoint is due. Storing ids needs the scope write."""
    if asked.enterprise_id or asked.patient_id:
        caller_of(request).need("write")
    context = await lore.sessions.query_context(
        conversation_id,
        asked.query or "",
        asked.token_threshold_ratio,
        asked.recent_turns,
        asked.model_context_window,
        enterprise_id=asked.enterprise_id,
        patient_id=asked.patient_id,
    )
    return reply(plain(context))


@sessions.post(
    "/sessions/{conversation_id:id}/turns",
    response_model=TurnView,
    openapi_extra=bodies.documented(TurnRequest),
)
async def write_turn(
    lore: Writer,
    conversation_id: ConversationId,
    turn: Annotated[TurnRequest, Depends(bodies.body_of(TurnRequest, within=Bounds.bulk))],
) -> Response:
    """Store a turn in one transaction; create the session if there is none. Storing the same turn again changes
    nothing."""
    written = await lore.sessions.write_turn(
        conversation_id,
        turn.user_id or "",
        turn.agent_code or "",
        turn.user_query,
        turn.agent_response,
        turn_id=turn.turn_id,
        sent_at=parse_time(turn.sent_at),
    )
    return reply(plain(written))


@sessions.post(
    "/sessions/{conversation_id:id}/checkpoint",
    response_model=CheckpointMade,
    openapi_extra=documented_optional(CheckpointRequest),
)
async def make_checkpoint(
    lore: Writer,
    conversation_id: ConversationId,
    wanted: Annotated[
        CheckpointRequest,
        Depends(optional(CheckpointRequest, within=Bounds.bulk)),
    ],
) -> Response:
    """Replace a part of the history by a summary. Without one roomlore makes it; null if there is nothing new."""
    if wanted.summary is None:
        return reply({"checkpoint": plain(await lore.sessions.summarise(conversation_id))})
    made = await lore.sessions.checkpoint(
        conversation_id,
        wanted.summary,
        wanted.recent_turns,
        covers_through=wanted.covers_through,
        expected_checkpoint=wanted.expected_checkpoint,
    )
    return reply({"checkpoint": plain(made)})


@sessions.post("/sessions/{conversation_id:id}/reset", response_model=SessionView)
async def reset_session(lore: Writer, conversation_id: ConversationId) -> Response:
    """Reset the conversation: earlier messages are no longer shown, but stay stored."""
    return reply(plain(await lore.sessions.reset(conversation_id)))


@sessions.get("/sessions/{conversation_id:id}/checkpoints", response_model=CheckpointPage)
async def list_checkpoints(
    lore: Reader,
    conversation_id: ConversationId,
    limit: PageLimit,
    before: Annotated[
        int | None, Query(ge=1, le=MOST, description="The `next` of the page before: only lower numbers.")
    ] = None,
) -> Response:
    """Return the conversation's checkpoints and resets, newest first."""
    page = await lore.sessions.checkpoints(conversation_id, before=before, limit=limit)
    return reply({"checkpoints": plain(page), "next": page[-1].number if len(page) == limit else None})
