"""Routes of sessions, with their requests and responses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from roomlore.core.intake import MAX_ID_CHARS
from roomlore.core.records import parse_time
from roomlore.core.sessions.session import MAX_TURN_ID_CHARS, Checkpoint, SessionContext, SessionValue, TurnResult
from roomlore.core.sessions.window import MAX_TURNS, MAX_WINDOW
from roomlore.surfaces.jsonable import SessionLine, session_line
from roomlore_server.http import bodies
from roomlore_server.http.bodies import TEXT, TIME, Body, Bounds, body_if_any_of, needs_one, one_room
from roomlore_server.http.guard import Admin, Reader, ShownTo, Writer, caller_of
from roomlore_server.http.paths import MOST, PageLimit, addressed
from roomlore_server.http.routers import Router

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


_ABOUT_A_SUMMARY = ("recent_turns", "covers_through", "checkpoint_token", "expected_checkpoint")
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
        None,
        description="Id of the last message the summary stands for: the context's `covers_through`. Without it and "
        "`checkpoint_token` the summary is taken for one of the first context that requested a checkpoint, and its "
        "`coverage_assumed` is true; if none did, the answer is 422 or 409.",
    )
    checkpoint_token: str | None = Field(
        None,
        description="The `checkpoint_token` of the context that was summarised. Of a context that says `truncated`, "
        "summarise `full_history` and give `covers_through` too.",
    )
    expected_checkpoint: str | None = Field(
        None, description="The checkpoint that must be in force: the context's `checkpoint_id`, '' for none."
    )

    @model_validator(mode="after")
    def _about_a_summary(self) -> "CheckpointRequest":
        about = (getattr(self, name) for name in _ABOUT_A_SUMMARY)
        if self.summary is None and any(given is not None for given in about):
            raise ValueError(
                "recent_turns, covers_through, checkpoint_token and expected_checkpoint belong to a summary; "
                "give a summary with them, or leave them out"
            )
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPage:
    """A page of sessions. `next`: the `after` of the next page; null at the end."""

    sessions: list[SessionLine]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointMade:
    """The new checkpoint. `checkpoint`: null if nothing was said since the one in force."""

    checkpoint: Checkpoint | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointPage:
    """A page of checkpoints, the newest first. `next`: the `before` of the next page; null at the end."""

    checkpoints: Sequence[Checkpoint]
    next: int | None


sessions = Router(tags=["sessions"])

ConversationId = Annotated[str, Depends(addressed("conversation_id", "The id of the conversation, which is a room"))]


@sessions.post(
    "/sessions",
    openapi_extra=bodies.described(CreateRequest),
)
async def create_session(
    lore: Writer,
    viewer: ShownTo,
    wanted: Annotated[CreateRequest, Depends(bodies.body_of(CreateRequest, within=Bounds.bulk))],
) -> SessionValue:
    """Create the session, and its room if there is none. An existing session stays; missing ids are filled in."""
    return await lore.sessions.create_session(
        wanted.conversation_id,
        wanted.user_id or "",
        enterprise_id=wanted.enterprise_id,
        patient_id=wanted.patient_id,
        session=wanted.session,
        viewer=viewer,
    )


@sessions.get("/sessions")
async def list_sessions(
    lore: Admin,
    limit: PageLimit,
    after: Annotated[str | None, Query(description="The `next` of the page before.")] = None,
) -> SessionPage:
    """Return the sessions, by conversation id."""
    page = await lore.sessions.page(after=after, limit=limit, viewer=None)
    following = page[-1].conversation_id if len(page) == limit else None
    return SessionPage(sessions=list(map(session_line, page)), next=following)


@sessions.get("/sessions/{conversation_id:id}")
async def get_session(lore: Reader, viewer: ShownTo, conversation_id: ConversationId) -> SessionValue:
    """Return the session as JSON: its ids, the flow, the last turns, and the agents' data."""
    return await lore.sessions.get_session(conversation_id, viewer=viewer)


@sessions.patch(
    "/sessions/{conversation_id:id}/state",
    openapi_extra=dict(PATCH),
)
async def patch_session_state(
    request: Request, lore: Writer, viewer: ShownTo, conversation_id: ConversationId
) -> SessionValue:
    """Merge a patch (RFC 7396) into the session's data: its state, the user's snapshot, the current agent, and fields
    of your own. Values derived from the messages cannot be set."""
    patch = await bodies.read_json(request, lambda given: given, within=Bounds.bulk)
    return await lore.sessions.patch_state(conversation_id, patch, viewer=viewer)


@sessions.post(
    "/sessions/{conversation_id:id}/context",
    openapi_extra=bodies.described(QueryRequest, required=False),
)
async def query_session_context(
    request: Request,
    lore: Reader,
    viewer: ShownTo,
    conversation_id: ConversationId,
    asked: Annotated[QueryRequest, Depends(body_if_any_of(QueryRequest))],
) -> SessionContext:
    """Return the history within the model's window, and if a checkpoint is due. Storing ids needs the scope write."""
    if asked.enterprise_id or asked.patient_id:
        (await caller_of(request)).need("write")
    return await lore.sessions.query_context(
        conversation_id,
        asked.query or "",
        asked.token_threshold_ratio,
        asked.recent_turns,
        asked.model_context_window,
        enterprise_id=asked.enterprise_id,
        patient_id=asked.patient_id,
        viewer=viewer,
    )


@sessions.post(
    "/sessions/{conversation_id:id}/turns",
    openapi_extra=bodies.described(TurnRequest),
)
async def write_turn(
    lore: Writer,
    conversation_id: ConversationId,
    turn: Annotated[TurnRequest, Depends(bodies.body_of(TurnRequest, within=Bounds.bulk))],
) -> TurnResult:
    """Store a turn in one transaction; create the session if there is none. Storing the same turn again changes
    nothing."""
    return await lore.sessions.write_turn(
        conversation_id,
        turn.user_id or "",
        turn.agent_code or "",
        turn.user_query,
        turn.agent_response,
        turn_id=turn.turn_id,
        sent_at=parse_time(turn.sent_at),
    )


@sessions.post(
    "/sessions/{conversation_id:id}/checkpoint",
    openapi_extra=bodies.described(CheckpointRequest, required=False),
)
async def make_checkpoint(
    lore: Writer,
    viewer: ShownTo,
    conversation_id: ConversationId,
    wanted: Annotated[
        CheckpointRequest,
        Depends(body_if_any_of(CheckpointRequest, within=Bounds.bulk)),
    ],
) -> CheckpointMade:
    """Replace a part of the history by a summary. Without one roomlore makes it; null if there is nothing new."""
    if wanted.summary is None:
        return CheckpointMade(checkpoint=await lore.sessions.summarise(conversation_id, viewer=viewer))
    made = await lore.sessions.checkpoint(
        conversation_id,
        wanted.summary,
        wanted.recent_turns,
        covers_through=wanted.covers_through,
        context=wanted.checkpoint_token,
        expected_checkpoint=wanted.expected_checkpoint,
        viewer=viewer,
    )
    return CheckpointMade(checkpoint=made)


@sessions.post("/sessions/{conversation_id:id}/reset")
async def reset_session(lore: Writer, viewer: ShownTo, conversation_id: ConversationId) -> SessionValue:
    """Reset the conversation: earlier messages are no longer shown, but stay stored."""
    return await lore.sessions.reset(conversation_id, viewer=viewer)


@sessions.get("/sessions/{conversation_id:id}/checkpoints")
async def list_checkpoints(
    lore: Reader,
    viewer: ShownTo,
    conversation_id: ConversationId,
    limit: PageLimit,
    before: Annotated[
        int | None, Query(ge=1, le=MOST, description="The `next` of the page before: only lower numbers.")
    ] = None,
) -> CheckpointPage:
    """Return the conversation's checkpoints and resets, newest first."""
    page = await lore.sessions.checkpoints(conversation_id, before=before, limit=limit, viewer=viewer)
    return CheckpointPage(checkpoints=page, next=page[-1].number if len(page) == limit else None)
