"""Sessions over HTTP: long conversations inside the model's window."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.responses import Response

from roomlore.core.records import parse_time
from roomlore.surfaces.http import bodies, session_bodies, session_views
from roomlore.surfaces.http.guard import Reader, Writer, caller_of
from roomlore.surfaces.http.json_bounds import Bounds
from roomlore.surfaces.http.paths import MOST, PageLimit
from roomlore.surfaces.http.replies import reply
from roomlore.surfaces.plain import plain, session_line

sessions = APIRouter(tags=["sessions"])

ConversationId = Annotated[str, Path(description="The conversation, which is a room: its id, percent-encoded.")]


@sessions.post(
    "/sessions",
    response_model=session_views.SessionView,
    openapi_extra=bodies.documented(session_bodies.CreateRequest),
)
async def create_session(
    lore: Writer,
    wanted: Annotated[
        session_bodies.CreateRequest, Depends(bodies.body_of(session_bodies.CreateRequest, within=Bounds.bulk))
    ],
) -> Response:
    """Makes the session, and its room where there is none. One that is there stays; ids that it lacks are filled in."""
    made = await lore.sessions.create_session(
        wanted.conversation_id,
        wanted.user_id or "",
        enterprise_id=wanted.enterprise_id,
        patient_id=wanted.patient_id,
        session=wanted.session,
    )
    return reply(plain(made))


@sessions.get("/sessions", response_model=session_views.SessionPage)
async def list_sessions(
    lore: Reader,
    limit: PageLimit,
    after: Annotated[str | None, Query(description="The `next` of the page before.")] = None,
) -> Response:
    """The sessions, by conversation id."""
    page = await lore.sessions.page(after=after, limit=limit)
    return reply(
        {"sessions": list(map(session_line, page)), "next": page[-1].conversation_id if len(page) == limit else None}
    )


@sessions.get("/sessions/{conversation_id:id}", response_model=session_views.SessionView)
async def get_session(lore: Reader, conversation_id: ConversationId) -> Response:
    """The session as JSON: who, the flow, the last turns, and what agents keep with it."""
    return reply(plain(await lore.sessions.get_session(conversation_id)))


@sessions.patch(
    "/sessions/{conversation_id:id}/state",
    response_model=session_views.SessionView,
    openapi_extra=dict(session_bodies.PATCH),
)
async def patch_session_state(request: Request, lore: Writer, conversation_id: ConversationId) -> Response:
    """Merges a patch (RFC 7396) into what is kept with the session: its state, the user's snapshot, the current agent,
    fields of your own. What follows from the messages cannot be set."""
    patch = await bodies.read_json(request, lambda given: given, within=Bounds.bulk)
    return reply(plain(await lore.sessions.patch_state(conversation_id, patch)))


@sessions.post(
    "/sessions/{conversation_id:id}/context",
    response_model=session_views.SessionContextView,
    openapi_extra=session_bodies.documented_optional(session_bodies.QueryRequest),
)
async def query_session_context(
    request: Request,
    lore: Reader,
    conversation_id: ConversationId,
    asked: Annotated[session_bodies.QueryRequest, Depends(session_bodies.optional(session_bodies.QueryRequest))],
) -> Response:
    """What was said, inside the model's window, and whether a checkpoint is due. Ids to keep need the scope write."""
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
    response_model=session_views.TurnView,
    openapi_extra=bodies.documented(session_bodies.TurnRequest),
)
async def write_turn(
    lore: Writer,
    conversation_id: ConversationId,
    turn: Annotated[
        session_bodies.TurnRequest, Depends(bodies.body_of(session_bodies.TurnRequest, within=Bounds.bulk))
    ],
) -> Response:
    """Stores a turn in one transaction; makes the session where there is none. The same turn again changes nothing."""
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
    response_model=session_views.CheckpointMade,
    openapi_extra=session_bodies.documented_optional(session_bodies.CheckpointRequest),
)
async def make_checkpoint(
    lore: Writer,
    conversation_id: ConversationId,
    wanted: Annotated[
        session_bodies.CheckpointRequest,
        Depends(session_bodies.optional(session_bodies.CheckpointRequest, within=Bounds.bulk)),
    ],
) -> Response:
    """Puts a summary in the place of what it stands for. Without one roomlore makes it; null where nothing is new."""
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


@sessions.post("/sessions/{conversation_id:id}/reset", response_model=session_views.SessionView)
async def reset_session(lore: Writer, conversation_id: ConversationId) -> Response:
    """Begins the conversation anew: what was said before is not shown any more and stays stored."""
    return reply(plain(await lore.sessions.reset(conversation_id)))


@sessions.get("/sessions/{conversation_id:id}/checkpoints", response_model=session_views.CheckpointPage)
async def list_checkpoints(
    lore: Reader,
    conversation_id: ConversationId,
    limit: PageLimit,
    before: Annotated[
        int | None, Query(ge=1, le=MOST, description="The `next` of the page before: only lower numbers.")
    ] = None,
) -> Response:
    """The conversation's checkpoints and resets, newest first."""
    page = await lore.sessions.checkpoints(conversation_id, before=before, limit=limit)
    return reply({"checkpoints": plain(page), "next": page[-1].number if len(page) == limit else None})
