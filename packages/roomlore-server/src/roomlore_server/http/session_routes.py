"""Routes of sessions, with what they answer beside the verbs' own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request

from roomlore.core.sessions.session import Checkpoint, Session, SessionValue
from roomlore.surfaces.jsonable import SessionLine, session_line
from roomlore.verbs import sessions as verbs
from roomlore.wiring import Lore
from roomlore_server.http import bodies
from roomlore_server.http.bodies import Bounds, needs_any, needs_one
from roomlore_server.http.derived import add_routes
from roomlore_server.http.guard import ShownTo, Writer
from roomlore_server.http.paths import addressed
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

_ABOUT_A_SUMMARY = ("summary", "recent_turns", "covers_through", "checkpoint_token", "expected_checkpoint")
_SUMMARY_OR_NOTHING = needs_any(
    {"required": ["summary"], "properties": {"summary": {"type": "string"}}},
    {"properties": {name: {"type": "null"} for name in _ABOUT_A_SUMMARY}},
)


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


def _page(_: Lore, page: Sequence[Session], arguments: Mapping[str, Any]) -> SessionPage:
    following = page[-1].conversation_id if len(page) == arguments["limit"] else None
    return SessionPage(sessions=list(map(session_line, page)), next=following)


def _made(_: Lore, checkpoint: Checkpoint | None, arguments: Mapping[str, Any]) -> CheckpointMade:
    return CheckpointMade(checkpoint=checkpoint)


def _checkpoints(_: Lore, page: Sequence[Checkpoint], arguments: Mapping[str, Any]) -> CheckpointPage:
    return CheckpointPage(checkpoints=page, next=page[-1].number if len(page) == arguments["limit"] else None)


sessions = Router(tags=["sessions"])

add_routes(
    sessions,
    verbs.VERBS,
    {
        "sessions.create": {"name": "create_session", "bulk": True},
        "sessions.list": {"name": "list_sessions", "shown": _page, "gives": SessionPage},
        "sessions.get": {"name": "get_session"},
        "sessions.context": {"name": "query_session_context"},
        "sessions.turn": {
            "name": "write_turn",
            "bulk": True,
            "schema": needs_one("user_query", "agent_response", type="string", minLength=1),
        },
        "sessions.checkpoint": {
            "name": "make_checkpoint",
            "bulk": True,
            "shown": _made,
            "gives": CheckpointMade,
            "schema": _SUMMARY_OR_NOTHING,
        },
        "sessions.reset": {"name": "reset_session"},
        "sessions.checkpoints": {"name": "list_checkpoints", "shown": _checkpoints, "gives": CheckpointPage},
    },
)


@sessions.patch("/sessions/{conversation_id:id}/state", openapi_extra=dict(PATCH))
async def patch_session_state(
    request: Request,
    lore: Writer,
    viewer: ShownTo,
    conversation_id: Annotated[str, Depends(addressed("conversation_id", "The id of the conversation's room"))],
) -> SessionValue:
    """Merge a patch (RFC 7396) into the session's data: its state, the user's snapshot, the current agent, and fields
    of your own. Values derived from the messages cannot be set."""
    patch = await bodies.read_json(request, lambda given: given, within=Bounds.bulk)
    return await lore.sessions.patch_state(conversation_id, patch, viewer=viewer)
