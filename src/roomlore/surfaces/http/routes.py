"""What can be asked over HTTP. Each route calls one verb of the library and writes down what it says."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from roomlore.core.context import Context
from roomlore.core.errors import InvalidInput, NotFound, Unavailable
from roomlore.core.models import Message
from roomlore.core.records import FIELDS, from_record
from roomlore.surfaces.http import bodies, views
from roomlore.surfaces.http.guard import Reader, Writer
from roomlore.surfaces.http.json_bounds import Bounds
from roomlore.surfaces.http.paths import After, MessageId, PageLimit, QueriedRoom, RoomId
from roomlore.surfaces.http.replies import reply
from roomlore.surfaces.plain import plain
from roomlore.wiring import Lore

messages = APIRouter(tags=["messages"])
contexts = APIRouter(tags=["context"])
rooms = APIRouter(tags=["rooms"])

_MESSAGE: Mapping[str, Any] = {
    "type": "object",
    "required": ["id", "room_id", "sender_id"],
    "additionalProperties": False,
    "properties": {
        "id": {"type": "string", "minLength": 1, "maxLength": 512},
        "room_id": {"type": "string", "minLength": 1, "maxLength": 512},
        "sender_id": {"type": "string", "minLength": 1, "maxLength": 512},
        "sender_name": {"type": "string"},
        "role": {"enum": ["user", "assistant", "system", "tool"]},
        "text": {"type": "string"},
        "sent_at": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "number"}, {"type": "null"}]},
        "reply_to": {"type": ["string", "null"]},
        "root_id": {"type": ["string", "null"]},
        "mentions": {"type": "array", "items": {"type": "string"}},
        "has_tool_calls": {"type": "boolean"},
        "turn_id": {"type": ["string", "null"]},
        "metadata": {"type": "object"},
        "sent_at_estimated": {"type": "boolean"},
        "edited_at": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]},
    },
}
_BATCH = {
    "anyOf": [
        _MESSAGE,
        {"type": "object", "required": ["messages"], "properties": {"messages": {"type": "array", "items": _MESSAGE}}},
    ]
}


@messages.post("/messages", response_model=views.AddView, openapi_extra=bodies.described(_BATCH))
async def add_messages(
    request: Request,
    lore: Writer,
    on_conflict: Annotated[
        Literal["raise", "report"], Query(description="raise: add nothing and answer 409; report: add the others.")
    ] = "raise",
) -> Response:
    """Adds one message, or `{"messages": [...]}`, in one transaction, and answers which ids were added, duplicates and
    conflicts. The same message again changes nothing."""
    batch = await bodies.read_json(request, _read_batch, within=Bounds.bulk)
    return reply(plain(await lore.messages.add(batch, on_conflict=on_conflict)))


@messages.get("/messages", response_model=views.MessagePage)
async def list_messages(lore: Reader, room_id: QueriedRoom, limit: PageLimit, after: After = 0) -> Response:
    """A room's messages in order of arrival."""
    page = await lore.messages.page(room_id, after=after, limit=limit)
    return reply({"messages": plain(page), "next": page[-1].arrival if len(page) == limit else None})


@messages.get("/messages/{room_id:id}/{message_id:id}", response_model=views.EntryView)
async def get_message(lore: Reader, room_id: RoomId, message_id: MessageId) -> Response:
    """A message with its features and its place in the room's threads."""
    return reply(plain(await lore.messages.get(room_id, message_id)))


@messages.patch(
    "/messages/{room_id:id}/{message_id:id}",
    response_model=views.MessageView,
    openapi_extra=bodies.documented(bodies.EditRequest),
)
async def edit_message(
    lore: Writer,
    room_id: RoomId,
    message_id: MessageId,
    change: Annotated[bodies.EditRequest, Depends(bodies.body_of(bodies.EditRequest, within=Bounds.bulk))],
) -> Response:
    """Changes a message's text, metadata or mentions; it keeps its place."""
    edited = await lore.messages.edit(
        room_id, message_id, text=change.text, metadata=change.metadata, mentions=change.mentions
    )
    return reply(plain(edited))


@messages.delete("/messages/{room_id:id}/{message_id:id}", status_code=204, response_class=Response)
async def delete_message(lore: Writer, room_id: RoomId, message_id: MessageId) -> Response:
    """Empties and hides a message; its id stays taken."""
    if not await lore.messages.delete(room_id, [message_id]):
        raise NotFound(f"Room {room_id!r} has no message {message_id!r}.")
    return Response(status_code=204)


@contexts.post("/context", response_model=views.ContextView, openapi_extra=bodies.documented(bodies.ContextRequest))
async def build_context(
    lore: Reader, wanted: Annotated[bodies.ContextRequest, Depends(bodies.body_of(bodies.ContextRequest))]
) -> Response:
    """The messages that matter for one message, each with its score, its signals and the reason it was taken."""
    built = await lore.context.build(
        wanted.room_id,
        wanted.message_id,
        strategy=wanted.strategy,
        max_messages=wanted.max_messages,
        max_tokens=wanted.max_tokens,
    )
    return reply(plain(built) | await _rendered(lore, built, wanted))


async def _rendered(lore: Lore, built: Context, wanted: bodies.ContextRequest) -> dict[str, Any]:
    """Return the context in the form that was asked for, with the message itself at the end.

    With the database down the message is missing, as the context is: `degraded` says so.
    """
    if wanted.render is None:
        return {}
    asked = None
    with suppress(NotFound, Unavailable):
        asked = (await lore.messages.get(built.room_id, built.message_id)).message
    zone = ZoneInfo(lore.settings.time_zone)
    if wanted.render == "prompt":
        return {"rendered": built.to_prompt(query=asked, zone=zone)}
    return {"rendered": built.to_messages(agent=wanted.agent_id, query=asked, zone=zone)}


@contexts.get("/context/{context_id:id}", response_model=views.UsageView)
async def get_context(lore: Reader, context_id: str) -> Response:
    """What was chosen, what the model answered with it and what people thought of that."""
    return reply(plain(await lore.context.usage(context_id)))


@contexts.post(
    "/context/{context_id:id}/response",
    status_code=204,
    response_class=Response,
    openapi_extra=bodies.documented(bodies.ResponseRequest),
)
async def respond_to_context(
    lore: Writer,
    context_id: str,
    answer: Annotated[bodies.ResponseRequest, Depends(bodies.body_of(bodies.ResponseRequest, within=Bounds.bulk))],
) -> Response:
    """Notes what the model answered."""
    await lore.context.respond(context_id, answer.text)
    return Response(status_code=204)


@contexts.post(
    "/context/{context_id:id}/feedback",
    status_code=204,
    response_class=Response,
    openapi_extra=bodies.documented(bodies.FeedbackRequest),
)
async def judge_context(
    lore: Writer,
    context_id: str,
    feedback: Annotated[bodies.FeedbackRequest, Depends(bodies.body_of(bodies.FeedbackRequest))],
) -> Response:
    """Notes what people thought: a text, a score from 0 to 1, or both."""
    await lore.context.feedback(context_id, text=feedback.text, score=feedback.score)
    return Response(status_code=204)


@rooms.get("/rooms", response_model=views.RoomPage)
async def list_rooms(
    lore: Reader,
    limit: PageLimit,
    after: Annotated[str | None, Query(description="The `next` of the page before.")] = None,
) -> Response:
    """The rooms, by id."""
    page = await lore.rooms.page(after=after, limit=limit)
    return reply({"rooms": plain(page), "next": page[-1].room_id if len(page) == limit else None})


@rooms.get("/rooms/{room_id:id}", response_model=views.RoomView)
async def get_room(lore: Reader, room_id: RoomId) -> Response:
    """A room's counters and its own settings."""
    return reply(plain(await lore.rooms.get(room_id)))


@rooms.get("/rooms/{room_id:id}/threads", response_model=views.ThreadPage)
async def list_threads(lore: Reader, room_id: RoomId, limit: PageLimit, after: After = 0) -> Response:
    """The room's threads in the order they began."""
    page = await lore.rooms.threads(room_id, after=after, limit=limit)
    threads = [{"arrival": arrival, **plain(thread)} for arrival, thread in page]
    return reply({"threads": threads, "next": page[-1][0] if len(page) == limit else None})


@rooms.get("/rooms/{room_id:id}/threads/{message_id:id}", response_model=views.ThreadMessages)
async def get_thread(lore: Reader, room_id: RoomId, message_id: MessageId, limit: PageLimit) -> Response:
    """The newest messages of the thread that a message is in."""
    return reply({"entries": plain(await lore.rooms.thread(room_id, message_id, limit=limit))})


@rooms.get("/rooms/{room_id:id}/settings", response_model=views.RoomSettings)
async def get_room_settings(lore: Reader, room_id: RoomId) -> Response:
    """Every setting a room may have of its own, with its value and source."""
    return reply(_settings(room_id, await lore.rooms.settings(room_id)))


@rooms.patch(
    "/rooms/{room_id:id}/settings",
    response_model=views.RoomSettings,
    openapi_extra=bodies.described({"type": "object", "description": "Setting to value; null takes it back."}),
)
async def change_room_settings(request: Request, lore: Writer, room_id: RoomId) -> Response:
    """Sets the room's own settings; null takes one back."""
    changes = await bodies.read_json(request, _read_settings)
    await lore.rooms.configure(room_id, changes)
    return reply(_settings(room_id, await lore.rooms.settings(room_id)))


def _read_settings(body: Any) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise InvalidInput('Send a JSON object of settings, such as {"strategy": "weighted"}.')
    return body


def _settings(room_id: str, settings: Mapping[str, tuple[Any, str]]) -> dict[str, Any]:
    rows = {name: {"value": value, "source": source} for name, (value, source) in settings.items()}
    return {"room_id": room_id, "settings": rows}


def _read_batch(body: Any) -> list[Message]:
    if not isinstance(body, dict) or "messages" not in body:
        return [from_record(body).message]
    if set(body) != {"messages"} or not isinstance(body["messages"], list):
        raise InvalidInput('A batch is {"messages": [...]} and nothing else; on_conflict belongs in the query.')
    return [_read_one(place, record) for place, record in enumerate(body["messages"])]


def _read_one(place: int, record: Any) -> Message:
    try:
        return from_record(record).message
    except InvalidInput as error:
        raise InvalidInput(f"messages[{place}]: {error}") from error


assert set(_MESSAGE["properties"]) == set(FIELDS)
