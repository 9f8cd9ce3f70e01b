"""Replies over HTTP, as they are written."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Annotated

import structlog
from fastapi import APIRouter, Depends, Request
from starlette.responses import Response
from starlette.types import Scope

from roomlore.core.errors import RoomloreError
from roomlore.core.replies.models import ReplyEvent
from roomlore.surfaces.http import bodies, chat_bodies, chat_views, problems
from roomlore.surfaces.http.event_stream import EventStream, event, written
from roomlore.surfaces.http.guard import Writer
from roomlore.surfaces.http.json_bounds import Bounds
from roomlore.surfaces.logs import where
from roomlore.surfaces.reply_events import named

chat = APIRouter(tags=["chat"])

log = structlog.get_logger(__name__)


@chat.post(
    "/chat/sse",
    status_code=200,
    response_class=EventStream,
    responses=chat_views.documented(),
    openapi_extra=chat_bodies.documented(),
)
async def stream_reply(
    request: Request,
    lore: Writer,
    asked: Annotated[chat_bodies.ReplyRequest, Depends(bodies.body_of(chat_bodies.ReplyRequest, within=Bounds.bulk))],
) -> Response:
    """Stores the message and streams the reply to it: `start`, `text` as it is written, `tool_calls`, then `done`, or
    `error` with a problem. A client that leaves ends the reply; what was said by then is kept."""
    replies = lore.replies.stream(
        asked.said(),
        agent_id=asked.agent_id,
        agent_name=asked.agent_name,
        model_id=asked.model_id,
        system_prompt=asked.system_prompt,
        temperature=asked.temperature,
        max_tokens=asked.max_tokens,
        model_context_window=asked.model_context_window,
        tools=[form.tool() for form in asked.tools],
        tool_results=[form.result() for form in asked.tool_results],
        max_tool_iterations=asked.max_tool_iterations,
    )
    return await EventStream.begin(_events(replies), last=partial(_problem, request.scope))


async def _events(replies: AsyncGenerator[ReplyEvent, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(replies):
        async for reply in replies:
            yield event(*named(reply))


def _problem(scope: Scope, error: Exception) -> bytes:
    """The last event of a reply that broke off: the answer's own status has gone out already."""
    if isinstance(error, RoomloreError):
        return written("error", bytes(problems.of_roomlore(scope, error).body))
    scope["app"].state.lore.telemetry.unforeseen(error, attributes={"method": "POST", "route": "/chat/sse"})
    log.error("reply failed", error=type(error).__name__, where=where(error))
    detail = f"An error nobody foresaw; the log says where, under request {scope['state']['request_id']}."
    return written("error", bytes(problems.respond(scope, 500, detail).body))
