"""Routes of messages and contexts, with their responses."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any, Literal

from fastapi import Depends, Query, Request

from roomlore.core.errors import MOST_LISTED, Deleted, InvalidInput
from roomlore.core.linking.corrections import MAX_BY_CHARS
from roomlore.core.models import AddReport, ContextUsageRecord, CorrectedEntry, Entry, Message, StoredMessage
from roomlore.core.texts import Phrase, also
from roomlore.surfaces.jsonable import IF_ANY, made_from
from roomlore.verbs.contexts import VERBS as CONTEXT_VERBS
from roomlore.verbs.messages import VERBS as MESSAGE_VERBS
from roomlore_server.http import bodies, problems
from roomlore_server.http.bodies import Bounds
from roomlore_server.http.derived import add_routes
from roomlore_server.http.guard import Reader, ShownTo, Writer, WritingFor, caller_of
from roomlore_server.http.paths import (
    MessageId,
    NamedRoom,
    ShownRoom,
    addressed,
)
from roomlore_server.http.routers import Router


@dataclass(frozen=True, slots=True, kw_only=True)
class Added(AddReport):
    """The ids that were added, that were stored already, and that are in conflict with a stored message. `new_rooms`:
    as told to a key with the scope admin; others are told of the rooms alone. `hint`: what may have been meant; left
    out if nothing."""

    hint: Annotated[str | None, IF_ANY] = None


_LISTED = 5

messages = Router(tags=["messages"])
contexts = Router(tags=["context"])

ContextId = Annotated[str, Depends(addressed("context_id", "The id that the context came with"))]

_MESSAGE: Mapping[str, Any] = {
    "type": "object",
    "description": "Also accepted: message_id for id, group_id for room_id, user_id for sender_id, content for text, "
    "and timestamp for sent_at.",
    "required": ["id", "room_id", "sender_id"],
    "additionalProperties": False,
    "properties": bodies.MESSAGE_FIELDS,
}
_MESSAGES = {"type": "array", "items": _MESSAGE, "maxItems": "max_batch_messages"}
_BATCH = {
    "anyOf": [
        _MESSAGE,
        {
            "type": "object",
            "required": ["messages"],
            "additionalProperties": False,
            "properties": {"messages": _MESSAGES},
        },
    ]
}


@messages.post("/messages", openapi_extra=bodies.described(_BATCH))
async def add_messages(
    request: Request,
    lore: Writer,
    on_conflict: Annotated[
        Literal["raise", "report"], Query(description="raise: add nothing and answer 409; report: add the others.")
    ] = "raise",
) -> Added:
    """Add one message, or `{"messages": [...]}`, in one transaction. Return the ids that were added, duplicates and
    conflicts. Adding the same message again changes nothing.

    A message is stored in the room whose id it gives, even if that is the name of another room: then `hint` says so.
    """
    batch = await bodies.read_json(request, _read_batch, within=Bounds.bulk)
    report = await lore.messages.add(batch, on_conflict=on_conflict)
    if "admin" not in (await caller_of(request)).scopes:
        return made_from(Added, report, new_rooms=dict.fromkeys(report.new_rooms, ()), hint=None)
    return made_from(Added, report, hint=_hint(request, report))


def _hint(request: Request, report: AddReport) -> str | None:
    """Return a sentence about the new rooms whose ids are the names of others, at most five of them."""
    twins = {room_id: ", ".join(others) for room_id, others in report.new_rooms.items() if others}
    if not twins:
        return None
    (first, others), *more = twins.items()
    sentence = f"Room {first!r:.80} is new; it is also the name of room {others}."
    if more:
        listed = [f"{room_id!r:.80} ({others})" for room_id, others in islice(twins.items(), _LISTED)]
        sentence = f"New rooms have the names of others: {', '.join(listed)}{', ...' if len(twins) > _LISTED else ''}."
    return problems.in_language(request.scope, f"{sentence} Messages are stored under the id that they give.")


add_routes(
    messages,
    MESSAGE_VERBS,
    {
        "messages.list": {"name": "list_messages", "room_as_given": True},
        "messages.search": {
            "name": "search_messages",
            "names": {"query": "q", "sender_ids": "sender_id"},
            "room_as_given": True,
        },
    },
)


@messages.get("/messages/{room_id:id}/{message_id:id}")
async def get_message(lore: Reader, viewer: ShownTo, room_id: NamedRoom, message_id: MessageId) -> Entry:
    """Return a message with its features and its place in the room's threads. For a viewer who may see a part of the
    room, these follow from that part."""
    return await lore.messages.get(room_id, message_id, viewer=viewer)


@messages.patch(
    "/messages/{room_id:id}/{message_id:id}",
    openapi_extra=bodies.described(bodies.EditRequest),
)
async def edit_message(
    lore: Writer,
    room_id: ShownRoom,
    message_id: MessageId,
    change: Annotated[bodies.EditRequest, Depends(bodies.body_of(bodies.EditRequest, within=Bounds.bulk))],
) -> StoredMessage:
    """Change a message's text, metadata or mentions; it keeps its place."""
    return await lore.messages.edit(
        room_id, message_id, text=change.text, metadata=change.metadata, mentions=change.mentions
    )


@messages.delete("/messages/{room_id:id}/{message_id:id}", status_code=204)
async def delete_message(lore: Writer, room_id: ShownRoom, message_id: MessageId) -> None:
    """Empty and hide a message; its id stays taken. Deleting it again changes nothing."""
    if not await lore.messages.delete(room_id, [message_id]):
        with suppress(Deleted):
            await lore.messages.get(room_id, message_id, viewer=None)


@messages.put("/messages/{room_id:id}/{message_id:id}/link", openapi_extra=bodies.described(bodies.LinkRequest))
async def correct_link(
    lore: Writer,
    room_id: ShownRoom,
    message_id: MessageId,
    correction: Annotated[bodies.LinkRequest, Depends(bodies.body_of(bodies.LinkRequest))],
) -> CorrectedEntry:
    """Say which earlier message a message answers, or that it answers nothing. Threads and contexts follow at once; of
    a very long thread `left` messages move to another one in the background, as a job of the kind `threads`."""
    return await lore.links.correct(room_id, message_id, answers=correction.answers, by=correction.by)


@messages.delete("/messages/{room_id:id}/{message_id:id}/link")
async def undo_link(
    lore: Writer,
    room_id: ShownRoom,
    message_id: MessageId,
    by: Annotated[
        str, Query(min_length=1, max_length=MAX_BY_CHARS, description="The name of who takes it back, for the log.")
    ] = "caller",
) -> CorrectedEntry:
    """Take the correction of a link back. Without one nothing changes."""
    return await lore.links.undo(room_id, message_id, by=by)


add_routes(contexts, CONTEXT_VERBS, {"contexts.build": {"name": "build_context", "room_as_given": True}})


@contexts.get("/context/{context_id:id}")
async def get_context(lore: Reader, viewer: ShownTo, context_id: ContextId) -> ContextUsageRecord:
    """Return the chosen messages of a context, the model's answer with it, and its feedback."""
    return await lore.context.usage(context_id, viewer=viewer)


@contexts.post(
    "/context/{context_id:id}/response",
    status_code=204,
    openapi_extra=bodies.described(bodies.ResponseRequest),
)
async def respond_to_context(
    lore: Writer,
    viewer: WritingFor,
    context_id: ContextId,
    answer: Annotated[bodies.ResponseRequest, Depends(bodies.body_of(bodies.ResponseRequest, within=Bounds.bulk))],
) -> None:
    """Record the model's answer."""
    await lore.context.respond(context_id, answer.text, viewer=viewer)


@contexts.post(
    "/context/{context_id:id}/feedback",
    status_code=204,
    openapi_extra=bodies.described(bodies.FeedbackRequest),
)
async def judge_context(
    lore: Writer,
    viewer: WritingFor,
    context_id: ContextId,
    feedback: Annotated[bodies.FeedbackRequest, Depends(bodies.body_of(bodies.FeedbackRequest))],
) -> None:
    """Record feedback: a text, a score from 0 to 1, or both."""
    await lore.context.feedback(context_id, text=feedback.text, score=feedback.score, viewer=viewer)


def _read_batch(body: Any) -> list[Message]:
    if isinstance(body, dict) and "on_conflict" in body:
        raise InvalidInput("on_conflict_in_body")
    if not isinstance(body, dict) or "messages" not in body:
        return [bodies.read_message(body)]
    if "room_id" in body:
        raise InvalidInput("room_id_in_batch")
    if set(body) != {"messages"} or not isinstance(body["messages"], list):
        raise InvalidInput("batch_invalid")
    read, wrong = list[Message](), list[str]()
    for place, record in enumerate(body["messages"]):
        try:
            read.append(bodies.read_message(record))
        except InvalidInput as error:
            wrong.append(Phrase("messages_item_wrong", number=place, error=error))
        if len(wrong) == MOST_LISTED:
            break
    if wrong:
        raise InvalidInput(also(wrong))
    return read
