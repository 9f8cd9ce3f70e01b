"""Routes of rooms, messages, contexts and search, with their responses."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from roomlore.core.context import Context, ContextOptions
from roomlore.core.errors import InvalidInput, NotFound, Unavailable
from roomlore.core.models import Message
from roomlore.core.records import from_record, parse_time
from roomlore.core.search.hits import SearchMode
from roomlore.services.messages.search import MAX_HITS, MAX_QUERY_CHARS
from roomlore.settings.sections import ContextSettings
from roomlore.surfaces.http import bodies
from roomlore.surfaces.http.bodies import Bounds
from roomlore.surfaces.http.guard import Reader, Writer
from roomlore.surfaces.http.paths import After, MessageId, PageLimit, QueriedRoom, RoomId, addressed
from roomlore.surfaces.http.problems import reply
from roomlore.surfaces.plain import plain
from roomlore.wiring import Lore


class MessageView(BaseModel):
    """A stored message. Times are ISO 8601 in UTC."""

    id: str
    room_id: str
    sender_id: str
    sender_name: str
    role: Literal["user", "assistant", "system", "tool"]
    text: str
    sent_at: datetime
    sent_at_estimated: bool = Field(description="No readable time was given.")
    edited_at: datetime | None
    reply_to: str | None
    root_id: str | None
    mentions: list[str]
    has_tool_calls: bool
    turn_id: str | None
    metadata: dict[str, Any]
    arrival: int = Field(description="The message's place in its room, from 1.")
    tokens: int


class ReplyView(BaseModel):
    kind: Literal["reply", "thread", "quote", "mention"]
    message_id: str | None
    sender_id: str | None


class FeaturesView(BaseModel):
    message_type: Literal["question", "answer", "discussion", "notification", "casual"]
    mentions: list[str]
    addressed: list[str]
    mentions_all: bool
    keywords: list[str]
    reply: ReplyView | None


class LinkView(BaseModel):
    """The place of a message in threads. `thread` and `parent` are arrivals."""

    kind: Literal["platform", "guess", "new"]
    thread: int
    parent: int | None
    parent_probability: float
    new_probability: float


class EntryView(BaseModel):
    message: MessageView
    features: FeaturesView
    link: LinkView


class SignalsView(BaseModel):
    reply_chain: float
    user_continuity: float
    time_decay: float
    mention_relation: float
    keyword_overlap: float


class CandidateView(BaseModel):
    message: MessageView
    score: float
    signals: SignalsView | None
    reason: str
    answers: str | None = Field(description="Id of the message that it answers, as the platform says or as is likely.")


class ChatMessageView(BaseModel):
    role: Literal["user", "assistant"]
    content: str


class ContextView(BaseModel):
    """The messages that matter for one message, in time order, each with its reason."""

    context_id: str
    room_id: str
    message_id: str
    strategy: str
    messages: list[CandidateView]
    parent: str | None = Field(description="Id of the message it answers, if any.")
    parent_probability: float
    tokens: int = Field(description="Tokens of the texts chosen.")
    window_tokens: int = Field(description="Tokens the plain last-N window would have cost.")
    window_messages: int
    build_ms: float
    degraded: str | None = Field(description="Why a simpler answer was given, if one was.")
    arm: str | None = Field(description="The arm of the experiment the room is in.")
    rendered: list[ChatMessageView] | str | None = Field(
        None, description="The context and the message as `render` asked for them; left out where it did not ask."
    )


class HitView(BaseModel):
    message: MessageView
    score: float = Field(description="In [0, 1]; comparable within one answer.")
    signals: dict[str, float] = Field(description="What the score is made of.")
    reason: str
    conversation: list[MessageView] = Field(description="The messages around it, in people's order, where asked for.")


class TimeSpanView(BaseModel):
    """A time span that the question names, from `start` until before `end`."""

    text: str
    start: datetime
    end: datetime
    position: list[int] = Field(description="Where the words stand in the question: the first character, and one past.")


class SearchView(BaseModel):
    """The result of a search, best first."""

    room_id: str
    query: str
    mode: Literal["hybrid", "lexical"] = Field(description="How it was searched: lexical is by words alone.")
    hits: list[HitView]
    times: list[TimeSpanView] = Field(description="The times understood in the question.")
    degraded: str | None = Field(description="Why less was done than asked for, if it was.")
    search_ms: float


class ModelView(BaseModel):
    name: str
    dimensions: int


class ProviderView(BaseModel):
    """A provider of a language model."""

    name: str
    model_id: str = Field(description="The model's id there.")
    usable: bool = Field(description="It has a key, or needs none.")
    resting: bool = Field(description="It is left alone for the moment, after failures.")
    key_variable: str | None = Field(description="The environment variable with its key; null where it needs none.")


class LanguageModelView(BaseModel):
    model_id: str
    display_name: str
    internal: bool
    usable: bool = Field(description="One of its providers can be asked.")
    providers: list[ProviderView] = Field(description="In the order in which they are tried.")


class ModelList(BaseModel):
    models: list[LanguageModelView]


class IndexView(BaseModel):
    """The state of the search indexes, over all tenants."""

    words: Literal["whole", "rebuilding"]
    vectors: Literal["off", "whole", "behind", "rebuilding", "missing", "other model", "down"]
    model: ModelView | None = Field(description="The embedding model; null where there is none.")
    waiting: int = Field(description="Messages and memories whose vector is due.")
    rooms_to_link: int = Field(description="Rooms that wait for the links of today's link model.")
    problem: str | None = Field(description="What to do, if anything.")


class UsageView(BaseModel):
    context_id: str
    room_id: str
    user_id: str
    trigger_message_id: str
    strategy: str
    context_message_ids: list[str]
    relevance_scores: dict[str, float]
    tokens: int
    window_tokens: int
    build_ms: float
    created_at: datetime
    degraded: str | None
    arm: str | None
    llm_response: str | None
    user_feedback: str | None
    success_indicator: float | None


class AddView(BaseModel):
    """The result for a batch, by message id."""

    added: list[str]
    duplicates: list[str]
    conflicts: list[str]


class RoomView(BaseModel):
    room_id: str
    messages: int
    revision: int
    created_at: datetime
    last_sent_at: datetime | None
    settings: dict[str, Any] = Field(description="The room's own settings.")


class ThreadView(BaseModel):
    thread_id: str = Field(description="Id of the first message.")
    arrival: int = Field(description="Arrival of the first message.")
    room_id: str
    messages: int
    senders: list[str]
    first_text: str
    first_sent_at: datetime
    last_sent_at: datetime


class MessagePage(BaseModel):
    messages: list[MessageView]
    next: int | None = Field(description="The `after` of the next page; null at the end.")


class RoomPage(BaseModel):
    rooms: list[RoomView]
    next: str | None = Field(description="The `after` of the next page; null at the end.")


class ThreadPage(BaseModel):
    threads: list[ThreadView]
    next: int | None = Field(description="The `after` of the next page; null at the end.")


class ThreadMessages(BaseModel):
    entries: list[EntryView]


class SettingView(BaseModel):
    value: Any
    source: str


class RoomSettings(BaseModel):
    room_id: str
    settings: dict[str, SettingView]


class Health(BaseModel):
    status: Literal["ok"]


search = APIRouter(tags=["messages"])

_UNCODED_PLUS = re.compile(r"(:\d\d(?:\.\d+)?) (\d\d(?::?\d\d)?)$")

Moment = Annotated[str, Field(json_schema_extra=dict(bodies.MOMENT))]
_Bound = Annotated[Moment | None, Query(description="ISO 8601 or a Unix time; without a zone it is UTC.")]


@dataclass(frozen=True, slots=True)
class Asked:
    """The time of the question, and conditions on the messages that may answer it."""

    senders: list[str] | None
    since: datetime | None
    until: datetime | None
    asked_at: datetime | Literal["newest"] | None


def read_asked(
    sender_id: Annotated[list[str] | None, Query(description="Only what they said; may be repeated.")] = None,
    since: _Bound = None,
    until: _Bound = None,
    asked_at: Annotated[
        Moment | Literal["newest"] | None,
        Query(description="What 'yesterday' is seen from: a time, or `newest` for the room's newest message; now."),
    ] = None,
) -> Asked:
    return Asked(
        senders=sender_id,
        since=read_time("since", since),
        until=read_time("until", until),
        asked_at="newest" if asked_at == "newest" else read_time("asked_at", asked_at),
    )


@search.get("/messages/search", response_model=SearchView)
async def search_messages(
    lore: Reader,
    room_id: QueriedRoom,
    asked: Annotated[Asked, Depends(read_asked)],
    q: Annotated[
        str, Query(description="A few words or a question. Needed.", json_schema_extra={"maxLength": MAX_QUERY_CHARS})
    ] = "",
    limit: Annotated[int, Query(ge=1, le=MAX_HITS, description="Most messages.")] = 10,
    mode: Annotated[SearchMode, Query(description="By words and meaning, or by words alone.")] = "hybrid",
    conversation: Annotated[
        bool, Query(description="Bring the messages of its conversation around each hit too, at most 12.")
    ] = False,
) -> Response:
    """Return the messages of a room that answer the question best, best first, each with score, signals and reason."""
    if not q:
        raise InvalidInput("q is missing: say what to look for, as in /messages/search?room_id=tea&q=green+tea.")
    answer = await lore.messages.search(
        room_id,
        q,
        limit=limit,
        mode=mode,
        sender_ids=asked.senders,
        since=asked.since,
        until=asked.until,
        asked_at=asked.asked_at,
        conversation=conversation,
    )
    return reply(plain(answer))


def read_time(name: str, text: str | None) -> datetime | None:
    """Return a time of a query; None if it is not given. A `+` that was not percent-encoded arrives as a space and is
    read as `+`. Raises `InvalidInput`."""
    if text is None:
        return None
    moment = parse_time(_UNCODED_PLUS.sub(r"\1+\2", text))
    if moment is None:
        raise InvalidInput(
            f"{name} is {text[:60]!r}; give a day or a time, such as 2024-05-01 or 2024-05-01T12:30:00Z."
        )
    return moment


messages = APIRouter(tags=["messages"])
contexts = APIRouter(tags=["context"])
rooms = APIRouter(tags=["rooms"])

ContextId = Annotated[str, Depends(addressed("context_id", "The id that the context came with"))]

_MESSAGE: Mapping[str, Any] = {
    "type": "object",
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


@messages.post("/messages", response_model=AddView, openapi_extra=bodies.described(_BATCH))
async def add_messages(
    request: Request,
    lore: Writer,
    on_conflict: Annotated[
        Literal["raise", "report"], Query(description="raise: add nothing and answer 409; report: add the others.")
    ] = "raise",
) -> Response:
    """Add one message, or `{"messages": [...]}`, in one transaction. Return the ids that were added, duplicates and
    conflicts. Adding the same message again changes nothing."""
    batch = await bodies.read_json(request, _read_batch, within=Bounds.bulk)
    return reply(plain(await lore.messages.add(batch, on_conflict=on_conflict)))


@messages.get("/messages", response_model=MessagePage)
async def list_messages(lore: Reader, room_id: QueriedRoom, limit: PageLimit, after: After = 0) -> Response:
    """Return a room's messages in order of arrival."""
    page = await lore.messages.page(room_id, after=after, limit=limit)
    return reply({"messages": plain(page), "next": page[-1].arrival if len(page) == limit else None})


@messages.get("/messages/{room_id:id}/{message_id:id}", response_model=EntryView)
async def get_message(lore: Reader, room_id: RoomId, message_id: MessageId) -> Response:
    """Return a message with its features and its place in the room's threads."""
    return reply(plain(await lore.messages.get(room_id, message_id)))


@messages.patch(
    "/messages/{room_id:id}/{message_id:id}",
    response_model=MessageView,
    openapi_extra=bodies.documented(bodies.EditRequest),
)
async def edit_message(
    lore: Writer,
    room_id: RoomId,
    message_id: MessageId,
    change: Annotated[bodies.EditRequest, Depends(bodies.body_of(bodies.EditRequest, within=Bounds.bulk))],
) -> Response:
    """Change a message's text, metadata or mentions; it keeps its place."""
    edited = await lore.messages.edit(
        room_id, message_id, text=change.text, metadata=change.metadata, mentions=change.mentions
    )
    return reply(plain(edited))


@messages.delete("/messages/{room_id:id}/{message_id:id}", status_code=204, response_class=Response)
async def delete_message(lore: Writer, room_id: RoomId, message_id: MessageId) -> Response:
    """Empty and hide a message; its id stays taken."""
    if not await lore.messages.delete(room_id, [message_id]):
        raise NotFound(f"Room {room_id!r} has no message {message_id!r}.")
    return Response(status_code=204)


@contexts.post("/context", response_model=ContextView, openapi_extra=bodies.documented(bodies.ContextRequest))
async def build_context(
    lore: Reader, wanted: Annotated[bodies.ContextRequest, Depends(bodies.body_of(bodies.ContextRequest))]
) -> Response:
    """Return the messages that matter for one message, each with its score, its signals and its reason."""
    built = await lore.context.build(
        wanted.room_id,
        wanted.message_id,
        strategy=wanted.strategy,
        max_messages=wanted.max_messages,
        max_tokens=wanted.max_tokens,
    )
    return reply(plain(built) | await _rendered(lore, built, wanted))


async def _rendered(lore: Lore, built: Context, wanted: bodies.ContextRequest) -> dict[str, Any]:
    """Return the context in the requested form, with the message itself at the end.

    If the database does not answer, the message is missing, as the context is: `degraded` says so.
    """
    if wanted.render is None:
        return {}
    asked = None
    with suppress(NotFound, Unavailable):
        asked = (await lore.messages.get(built.room_id, built.message_id)).message
    zone = ZoneInfo(lore.settings.search.time_zone)
    if wanted.render == "prompt":
        return {"rendered": built.to_prompt(query=asked, zone=zone)}
    return {"rendered": built.to_messages(agent=wanted.agent_id, query=asked, zone=zone)}


@contexts.get("/context/{context_id:id}", response_model=UsageView)
async def get_context(lore: Reader, context_id: ContextId) -> Response:
    """Return the chosen messages of a context, the model's answer with it, and its feedback."""
    return reply(plain(await lore.context.usage(context_id)))


@contexts.post(
    "/context/{context_id:id}/response",
    status_code=204,
    response_class=Response,
    openapi_extra=bodies.documented(bodies.ResponseRequest),
)
async def respond_to_context(
    lore: Writer,
    context_id: ContextId,
    answer: Annotated[bodies.ResponseRequest, Depends(bodies.body_of(bodies.ResponseRequest, within=Bounds.bulk))],
) -> Response:
    """Record the model's answer."""
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
    context_id: ContextId,
    feedback: Annotated[bodies.FeedbackRequest, Depends(bodies.body_of(bodies.FeedbackRequest))],
) -> Response:
    """Record feedback: a text, a score from 0 to 1, or both."""
    await lore.context.feedback(context_id, text=feedback.text, score=feedback.score)
    return Response(status_code=204)


@rooms.get("/rooms", response_model=RoomPage)
async def list_rooms(
    lore: Reader,
    limit: PageLimit,
    after: Annotated[str | None, Query(description="The `next` of the page before.")] = None,
) -> Response:
    """Return the rooms, by id."""
    page = await lore.rooms.page(after=after, limit=limit)
    return reply({"rooms": plain(page), "next": page[-1].room_id if len(page) == limit else None})


@rooms.get("/rooms/{room_id:id}", response_model=RoomView)
async def get_room(lore: Reader, room_id: RoomId) -> Response:
    """Return a room's counters and its own settings."""
    return reply(plain(await lore.rooms.get(room_id)))


@rooms.get("/rooms/{room_id:id}/threads", response_model=ThreadPage)
async def list_threads(lore: Reader, room_id: RoomId, limit: PageLimit, after: After = 0) -> Response:
    """Return the room's threads in the order in which they began."""
    page = await lore.rooms.threads(room_id, after=after, limit=limit)
    threads = [{"arrival": arrival, **plain(thread)} for arrival, thread in page]
    return reply({"threads": threads, "next": page[-1][0] if len(page) == limit else None})


@rooms.get("/rooms/{room_id:id}/threads/{message_id:id}", response_model=ThreadMessages)
async def get_thread(lore: Reader, room_id: RoomId, message_id: MessageId, limit: PageLimit) -> Response:
    """Return the newest messages of the thread of a message."""
    return reply({"entries": plain(await lore.rooms.thread(room_id, message_id, limit=limit))})


@rooms.get("/rooms/{room_id:id}/settings", response_model=RoomSettings)
async def get_room_settings(lore: Reader, room_id: RoomId) -> Response:
    """Return every setting that a room may have, with its value and source."""
    return reply(_settings(room_id, await lore.rooms.settings(room_id)))


@rooms.patch(
    "/rooms/{room_id:id}/settings",
    response_model=RoomSettings,
    openapi_extra=bodies.described(_settings_schema()),
)
async def change_room_settings(request: Request, lore: Writer, room_id: RoomId) -> Response:
    """Set the room's own settings; null removes one."""
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
