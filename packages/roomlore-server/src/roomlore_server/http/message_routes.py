"""Routes of rooms, messages, contexts and search, with their responses."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any, Literal

from fastapi import Depends, Query, Request

from roomlore.core.audience import Member, RoomPeople
from roomlore.core.context import ContextOptions
from roomlore.core.digest.digest import DIGEST_TOKENS, Digest
from roomlore.core.errors import MOST_LISTED, Deleted, InvalidInput
from roomlore.core.evolution.requests import Mode
from roomlore.core.intake import MAX_ID_CHARS
from roomlore.core.linking.corrections import MAX_BY_CHARS
from roomlore.core.models import (
    AddReport,
    ContextUsageRecord,
    CorrectedEntry,
    Correction,
    Entry,
    Heading,
    Message,
    Room,
    StoredMessage,
    Thread,
)
from roomlore.services.digest.digest_service import FEWEST_TOKENS, MAX_TOKENS
from roomlore.settings.sections import ContextSettings
from roomlore.surfaces.jsonable import IF_ANY, made_from
from roomlore.verbs.contexts import VERBS as CONTEXT_VERBS
from roomlore.verbs.messages import VERBS as MESSAGE_VERBS
from roomlore_server.http import bodies, problems
from roomlore_server.http.bodies import Bounds
from roomlore_server.http.derived import add_routes
from roomlore_server.http.guard import Admin, Reader, ShownTo, Writer, WritingFor, caller_of
from roomlore_server.http.paths import (
    MOST,
    AdminsRoom,
    After,
    MessageId,
    NamedRoom,
    PageLimit,
    ShownRoom,
    addressed,
)
from roomlore_server.http.routers import Router
from roomlore_server.http.times import MAX_WORDS, TIME_IN_QUERY, read_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Added(AddReport):
    """The ids that were added, that were stored already, and that are in conflict with a stored message. `new_rooms`:
    as told to a key with the scope admin; others are told of the rooms alone. `hint`: what may have been meant; left
    out if nothing."""

    hint: Annotated[str | None, IF_ANY] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomPage:
    """A page of rooms. `next`: the `after` of the next page; null at the end."""

    rooms: Sequence[Room]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedThread(Thread):
    """A thread of a room. `arrival`: of its first message."""

    arrival: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectionPage:
    """A page of the log of corrected links. `next`: the `before` of the next page; null at the end."""

    corrections: Sequence[Correction]
    next: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadPage:
    """A page of a room's threads. `next`: the `after` of the next page; null at the end."""

    threads: list[ListedThread]
    next: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadMessages:
    """The newest messages of a thread, in order."""

    entries: Sequence[Entry]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownDigest(Digest):
    """A digest of a room since a message. `rendered`: the digest as one text for a model; left out unless asked
    for."""

    rendered: Annotated[str | None, IF_ANY] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageHeading(Heading):
    """The title and the state of the thread of a message."""

    message_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadingList:
    """Headings by message, without unknown messages."""

    headings: Sequence[MessageHeading]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadMark:
    """The reading mark of a person in a room. `read_up_to`: the arrival of the last message marked as read."""

    room_id: str
    user_id: str
    read_up_to: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingInForce:
    """The value of a setting, and where it was set."""

    value: Any
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomSettings:
    """Every setting that a room may have."""

    room_id: str
    settings: dict[str, SettingInForce]


_LISTED = 5

messages = Router(tags=["messages"])
contexts = Router(tags=["context"])
rooms = Router(tags=["rooms"])

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


def _settings_schema() -> dict[str, Any]:
    """Return the schema of a room's own settings, with the limits of `Settings`."""
    known = bodies.inlined(ContextSettings.model_json_schema())["properties"]
    own = {name: _limits_of(known[name]) for name in ContextOptions().flat()}
    return {
        "type": "object",
        "description": "Setting to value; null takes it back.",
        "additionalProperties": False,
        "properties": {name: {"anyOf": [one, {"type": "null"}]} for name, one in own.items()},
    }


def _limits_of(setting: Any) -> Any:
    """Return the schema of a setting without its default. Pydantic leaves out the bounds of optional values."""
    if isinstance(setting, list):
        return list(map(_limits_of, setting))
    if not isinstance(setting, dict):
        return setting
    names = {"ge": "minimum", "le": "maximum"}
    return {names.get(key, key): _limits_of(value) for key, value in setting.items() if key not in ("default", "form")}


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
    told = f"Room {first!r:.80} is new; it is also the name of room {others}."
    if more:
        listed = [f"{room_id!r:.80} ({others})" for room_id, others in islice(twins.items(), _LISTED)]
        told = f"New rooms have the names of others: {', '.join(listed)}{', ...' if len(twins) > _LISTED else ''}."
    return problems.in_language(request.scope, f"{told} Messages are stored under the id that they give.")


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
    said: Annotated[bodies.LinkRequest, Depends(bodies.body_of(bodies.LinkRequest))],
) -> CorrectedEntry:
    """Say which earlier message a message answers, or that it answers nothing. Threads and contexts follow at once; of
    a very long thread `left` messages move to another one in the background, as a job of the kind `threads`."""
    return await lore.links.correct(room_id, message_id, answers=said.answers, by=said.by)


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


@rooms.get("/rooms/{room_id:id}/corrections")
async def list_corrections(
    lore: Reader,
    room_id: ShownRoom,
    limit: PageLimit,
    before: Annotated[int | None, Query(ge=1, le=MOST, description="The `next` of the page before.")] = None,
) -> CorrectionPage:
    """Return the log of corrected links of a room, the newest first."""
    page = await lore.links.corrections(room_id, before=before, limit=limit)
    return CorrectionPage(corrections=page, next=page[-1].number if len(page) == limit else None)


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


@rooms.get("/rooms")
async def list_rooms(
    lore: Admin,
    limit: PageLimit,
    after: Annotated[str | None, Query(description="The `next` of the page before.")] = None,
) -> RoomPage:
    """Return the rooms, by id."""
    page = await lore.rooms.page(after=after, limit=limit, viewer=None)
    return RoomPage(rooms=page, next=page[-1].room_id if len(page) == limit else None)


@rooms.get("/rooms/{room_id:id}")
async def get_room(lore: Reader, room_id: ShownRoom) -> Room:
    """Return a room's counters and its own settings."""
    return await lore.rooms.get(room_id)


@rooms.patch("/rooms/{room_id:id}", openapi_extra=bodies.described(bodies.RoomRequest))
async def rename_room(
    lore: Writer,
    room_id: ShownRoom,
    change: Annotated[bodies.RoomRequest, Depends(bodies.body_of(bodies.RoomRequest))],
) -> Room:
    """Name a room; its id stays."""
    return await lore.rooms.rename(room_id, change.name)


@rooms.get("/rooms/{room_id:id}/threads")
async def list_threads(lore: Reader, room_id: ShownRoom, limit: PageLimit, after: After = 0) -> ThreadPage:
    """Return the room's threads in the order in which they began."""
    page = await lore.rooms.threads(room_id, after=after, limit=limit)
    threads = [made_from(ListedThread, thread, arrival=arrival) for arrival, thread in page]
    return ThreadPage(threads=threads, next=page[-1][0] if len(page) == limit else None)


@rooms.get("/rooms/{room_id:id}/headings")
async def get_headings(
    lore: Reader,
    viewer: ShownTo,
    room_id: ShownRoom,
    message_id: Annotated[list[str], Query(description="A message; may be repeated, at most 500 times.")],
) -> HeadingList:
    """Return the title and the state of the threads of some messages, such as those of a search or a context.

    A thread is `open` if a question in it has no answer, `answered` if every question has one, else `closed`.
    """
    made = await lore.rooms.headings(room_id, message_id, viewer=viewer)
    return HeadingList(headings=[made_from(MessageHeading, heading, message_id=name) for name, heading in made.items()])


@rooms.get("/rooms/{room_id:id}/threads/{message_id:id}")
async def get_thread(lore: Reader, room_id: ShownRoom, message_id: MessageId, limit: PageLimit) -> ThreadMessages:
    """Return the newest messages of the thread of a message."""
    return ThreadMessages(entries=await lore.rooms.thread(room_id, message_id, limit=limit))


@rooms.get("/rooms/{room_id:id}/digest")
async def get_digest(
    lore: Reader,
    viewer: ShownTo,
    room_id: NamedRoom,
    since: Annotated[
        str | None,
        Query(
            max_length=MAX_WORDS,
            description=f"{TIME_IN_QUERY}, from its beginning; or words such as `3 days ago`.",
        ),
    ] = None,
    for_user: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=MAX_ID_CHARS,
            description="Whose digest, by sender id or by a name that one person has: it begins after what they "
            "wrote or marked as read.",
        ),
    ] = None,
    max_tokens: Annotated[
        int, Query(ge=FEWEST_TOKENS, le=MAX_TOKENS, description="Maximum number of tokens of the digest as text.")
    ] = DIGEST_TOKENS,
    mode: Annotated[
        Mode,
        Query(
            description="`offline`: the messages' own sentences; `llm`: a model writes it; `auto`: a model, if one is "
            "set up."
        ),
    ] = "auto",
    render: Annotated[Literal["prompt"] | None, Query(description="`prompt`: give the text for a model too.")] = None,
) -> ShownDigest:
    """Return what happened in a room, thread by thread: first what concerns the reader, then open questions, decisions,
    and the rest by weight.

    Without `since` and `for_user` it is of the last day in which something was said.
    """
    zone = lore.settings.search.zone
    begin = read_time(lore, "since", since)
    made = await lore.digest(room_id, since=begin, for_user=for_user, max_tokens=max_tokens, viewer=viewer, mode=mode)
    return made_from(ShownDigest, made, rendered=made.to_prompt(zone=zone) if render else None)


@rooms.get("/rooms/{room_id:id}/audience")
async def get_audience(lore: Admin, room_id: AdminsRoom) -> RoomPeople:
    """Return who can see a room: its kind, and its people without agents, with their stays and when each spoke."""
    return await lore.rooms.people(room_id)


@rooms.patch("/rooms/{room_id:id}/audience", openapi_extra=bodies.described(bodies.AudienceRequest))
async def change_audience(
    lore: Admin,
    room_id: AdminsRoom,
    wanted: Annotated[bodies.AudienceRequest, Depends(bodies.body_of(bodies.AudienceRequest, within=Bounds.bulk))],
) -> RoomPeople:
    """Say who can see a room: its kind, all its members, or who joined and left. A room that is not there is made."""
    if wanted.kind is not None:
        kind = None if wanted.kind == "unknown" else wanted.kind
        await lore.rooms.set_kind(room_id, kind, since=wanted.since)
    if wanted.members is not None:
        await lore.rooms.set_members(room_id, _members(wanted.members))
    if wanted.add:
        await lore.rooms.add_members(room_id, _members(wanted.add))
    if wanted.remove:
        await lore.rooms.remove_members(room_id, wanted.remove)
    return await lore.rooms.people(room_id)


def _members(given: Sequence[str | bodies.MemberForm]) -> list[Member]:
    return [Member(one) if isinstance(one, str) else Member(one.person_id, one.joined_at, one.left_at) for one in given]


@rooms.post("/rooms/{room_id:id}/read", openapi_extra=bodies.described(bodies.ReadRequest))
async def mark_read(
    lore: Writer,
    room_id: ShownRoom,
    mark: Annotated[bodies.ReadRequest, Depends(bodies.body_of(bodies.ReadRequest))],
) -> ReadMark:
    """Mark what was said up to a message as read by a person. A mark never moves back."""
    arrival = await lore.rooms.mark_read(room_id, mark.user_id, mark.message_id)
    return ReadMark(room_id=room_id, user_id=mark.user_id, read_up_to=arrival)


@rooms.get("/rooms/{room_id:id}/settings")
async def get_room_settings(lore: Reader, room_id: ShownRoom) -> RoomSettings:
    """Return every setting that a room may have, with its value and source."""
    return _settings(room_id, await lore.rooms.settings(room_id))


@rooms.patch(
    "/rooms/{room_id:id}/settings",
    openapi_extra=bodies.described(_settings_schema),
)
async def change_room_settings(request: Request, lore: Writer, room_id: ShownRoom) -> RoomSettings:
    """Set the room's own settings; null removes one."""
    changes = await bodies.read_json(request, _read_settings)
    await lore.rooms.configure(room_id, changes)
    return _settings(room_id, await lore.rooms.settings(room_id))


def _read_settings(body: Any) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise InvalidInput('Send a JSON object of settings, such as {"strategy": "weighted"}.')
    return body


def _settings(room_id: str, settings: Mapping[str, tuple[Any, str]]) -> RoomSettings:
    rows = {name: SettingInForce(value=value, source=source) for name, (value, source) in settings.items()}
    return RoomSettings(room_id=room_id, settings=rows)


def _read_batch(body: Any) -> list[Message]:
    if isinstance(body, dict) and "on_conflict" in body:
        raise InvalidInput("on_conflict belongs in the address, as in ?on_conflict=report.")
    if not isinstance(body, dict) or "messages" not in body:
        return [bodies.read_message(body)]
    if "room_id" in body:
        raise InvalidInput('room_id belongs in each message: {"messages": [{"room_id": "...", ...}]}.')
    if set(body) != {"messages"} or not isinstance(body["messages"], list):
        raise InvalidInput('A batch is {"messages": [...]} and nothing else.')
    read, wrong = list[Message](), list[str]()
    for place, record in enumerate(body["messages"]):
        try:
            read.append(bodies.read_message(record))
        except InvalidInput as error:
            wrong.append(f"messages[{place}]: {error}")
        if len(wrong) == MOST_LISTED:
            break
    if wrong:
        raise InvalidInput("; also ".join(wrong))
    return read
