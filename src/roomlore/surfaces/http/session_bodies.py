"""What is sent about sessions."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, Field, model_validator
from starlette.requests import Request

from roomlore.core.records import parse_time
from roomlore.core.sessions.window import MAX_TURNS, MAX_WINDOW
from roomlore.surfaces.http.bodies import Body, Within, body_of, documented, one_room
from roomlore.surfaces.http.json_bounds import Bounds

T = TypeVar("T", bound=Body)

_LONGEST_ID = 512
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


def optional(model: type[T], *, within: Within = Bounds.small) -> Callable[[Request], Awaitable[T]]:
    """Return what `body_of` does, for a call whose body may be left out."""
    read = body_of(model, within=within)

    async def read_if_any(request: Request) -> T:
        headers = request.headers
        empty = headers.get("content-length", "0").strip() == "0" and "transfer-encoding" not in headers
        return model() if empty else await read(request)

    return read_if_any


def documented_optional(model: type[Body]) -> dict[str, Any]:
    """The `openapi_extra` of a body that may be left out."""
    body = documented(model)["requestBody"]
    return {"requestBody": {**body, "required": False}}


def _readable(given: Any) -> Any:
    if given is not None and parse_time(given) is None:
        raise ValueError(f"{given!r:.60} is no time; give one such as 2024-05-01T12:30:00Z, or a Unix time")
    return given


class CreateRequest(Body):
    """A conversation that begins, or a session that another system or version kept."""

    conversation_id: str = Field(
        min_length=1, max_length=_LONGEST_ID, description="The room; room_id, group_id and chat_id mean the same."
    )
    user_id: str | None = Field(None, max_length=_LONGEST_ID, description="Whom the agent talks with.")
    enterprise_id: str | None = Field(None, max_length=_LONGEST_ID)
    patient_id: str | None = Field(None, max_length=_LONGEST_ID)
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
    """What the agent is asked now, and what its model takes; left out, the settings say."""

    query: str | None = Field(None, description="What the user says now: counted, not returned, not stored.")
    token_threshold_ratio: float | None = Field(
        None, gt=0, le=1, description="Share of the window from which a checkpoint is asked for."
    )
    recent_turns: int | None = Field(None, ge=0, le=MAX_TURNS, description="Turns shown verbatim at least.")
    model_context_window: int | None = Field(None, ge=1, le=MAX_WINDOW, description="What the model takes, in tokens.")
    enterprise_id: str | None = Field(None, max_length=_LONGEST_ID, description="Kept with the session.")
    patient_id: str | None = Field(None, max_length=_LONGEST_ID, description="Kept with the session.")


class TurnRequest(Body):
    """A turn: the user's query, the agent's answer, or both."""

    user_id: str | None = Field(None, max_length=_LONGEST_ID, description="By default the session's.")
    agent_code: str | None = Field(None, max_length=_LONGEST_ID, description="Which agent answers.")
    user_query: str | None = None
    agent_response: str | None = None
    turn_id: str | None = Field(
        None, max_length=_LONGEST_ID, description="An id of your own makes the call safe to repeat."
    )
    sent_at: Annotated[str | int | float | None, BeforeValidator(_readable)] = Field(
        None, description="ISO 8601 or a Unix time; by default now."
    )

    @model_validator(mode="after")
    def _something(self) -> "TurnRequest":
        if not self.user_query and not self.agent_response:
            raise ValueError("give user_query, agent_response, or both")
        return self


class CheckpointRequest(Body):
    """A summary and what it stands for; without a summary roomlore makes one."""

    summary: str | None = Field(None, description="Left out, roomlore makes it from everything no summary covers.")
    recent_turns: int | None = Field(None, ge=0, le=MAX_TURNS, description="Turns its maker wants verbatim at least.")
    covers_through: str | None = Field(
        None, description="Id of the last message the summary stands for: the context's `covers_through`."
    )
    expected_checkpoint: str | None = Field(
        None, description="The checkpoint that must be in force: the context's `checkpoint_id`, '' for none."
    )

    @model_validator(mode="after")
    def _about_a_summary(self) -> "CheckpointRequest":
        about = (self.recent_turns, self.covers_through, self.expected_checkpoint)
        if self.summary is None and any(given is not None for given in about):
            raise ValueError(
                "recent_turns, covers_through and expected_checkpoint belong to a summary; "
                "give a summary with them, or leave them out"
            )
        return self
