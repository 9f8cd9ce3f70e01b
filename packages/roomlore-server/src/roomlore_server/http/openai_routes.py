"""OpenAI's protocol: chat completions, whole and streamed, over the same loop as /chat/sse, and the list of models.

The protocol has no room. `Place` finds it, and who speaks, in headers, `metadata` and `user`; a request that names
no room has one of its own for its key and speaker.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Literal
from urllib.parse import unquote

import structlog
from fastapi import Depends, Request
from pydantic import BaseModel, ConfigDict, Field, field_validator
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

from roomlore.core.audience import RoomKind
from roomlore.core.chat import ToolCall, Usage
from roomlore.core.errors import InvalidInput, NotFound
from roomlore.core.models import StoredMessage
from roomlore.core.records import ROOM_NAMES
from roomlore.core.replies.reply import (
    MAX_ROUNDS,
    Conversation,
    Matched,
    Reply,
    ReplyEvent,
    ReplyStarted,
    ReplyText,
    Speaking,
    Tool,
    about,
    calls_id,
    matched,
    read_conversation,
    reply_ids,
    usage_of,
)
from roomlore.wiring import Lore
from roomlore_server.http import bodies
from roomlore_server.http.answers import dump, reply
from roomlore_server.http.bodies import Bounds
from roomlore_server.http.event_stream import EventStream, failure, unnamed
from roomlore_server.http.guard import Caller, Reader, caller_of
from roomlore_server.http.paths import addressed
from roomlore_server.http.routers import Router

log = structlog.get_logger(__name__)

_NEWEST = 1000
"""The most newest messages of a room that are compared with what the client sends."""
_PAGE = 500
_OWN = "roomlore"
_DONE = b"data: [DONE]\n\n"
_AGENT = "assistant"
_SPEAKER = "user"
_NEVER_PASSED_ON = ("store",)
"""Fields about OpenAI's own storage."""


class _Loose(BaseModel):
    """A part of a request. Further fields are for the provider."""

    model_config = ConfigDict(extra="allow", strict=True)


class _Function(_Loose):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None


class _Tool(_Loose):
    type: Literal["function"]
    function: _Function

    def tool(self) -> Tool:
        return Tool(self.function.name, self.function.description or "", self.function.parameters or {})


class _StreamOptions(_Loose):
    include_usage: bool | None = None


class CompletionRequest(_Loose):
    """A request of OpenAI's protocol. Fields that are not named here are passed on to the provider."""

    messages: list[dict[str, Any]] = Field(min_length=1)
    model: str | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    temperature: float | None = Field(None, ge=0, le=2)
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    tools: list[_Tool] | None = None
    tool_choice: Any = None
    user: str | None = None
    metadata: dict[str, Any] | None = None
    n: Literal[1] | None = None

    @field_validator("messages", mode="after")
    @classmethod
    def _few_enough(cls, value: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if len(value) > 10_000:
            raise ValueError("there are more than 10000; leave the oldest out, roomlore has them")
        return value

    def arguments(self) -> dict[str, Any]:
        """Return what the reply loop is told beside the conversation."""
        others = self.model_extra or {}
        for name in ("functions", "function_call"):
            if others.get(name):
                raise InvalidInput("functions_outdated", name=name)
        for name in ("logprobs", "top_logprobs", "audio"):
            if others.get(name):
                raise InvalidInput("option_unsupported", name=name)
        tools = [] if self.tool_choice == "none" else [form.tool() for form in self.tools or ()]
        options = {name: value for name, value in others.items() if value is not None and name not in _NEVER_PASSED_ON}
        if tools and self.tool_choice is not None:
            options["tool_choice"] = self.tool_choice
        return {
            "model_id": self.model or None,
            "temperature": self.temperature,
            "max_tokens": self.max_completion_tokens or self.max_tokens,
            "tools": tools,
            "max_tool_iterations": MAX_ROUNDS,
            "options": options,
        }


@dataclass(frozen=True, slots=True)
class Place:
    """The room and the speaker of a request. `implied`: the room is the one that follows from key and speaker."""

    who: Speaking
    implied: bool

    @classmethod
    def of(cls, request: CompletionRequest, headers: Headers, key_id: str, name: str) -> "Place":
        """Find room, speaker and agent. Raise `InvalidInput`. `name`: of the message to answer."""
        metadata = request.metadata or {}
        rooms = bodies.one_room({field_name: metadata.get(field_name) for field_name in ROOM_NAMES})

        def value_of(header: str, field_name: str) -> str:
            given = headers.get(f"x-roomlore-{header}")
            value = unquote(given) if given is not None else metadata.get(field_name)
            if not isinstance(value, str | None):
                raise InvalidInput("metadata_not_text", name=field_name)
            return (value or "").strip()

        metadata = {"room": None, **metadata, **({"room": rooms["room_id"]} if rooms else {})}
        room_id = value_of("room", "room")
        speaker = value_of("speaker", "speaker_id") or request.user or ""
        implied = ":".join(("key", key_id or "none", *([speaker] if speaker else [])))
        return cls(
            Speaking(
                room_id=room_id or implied,
                speaker_id=speaker or name or _SPEAKER,
                speaker_name=value_of("speaker-name", "speaker_name") or name,
                agent_id=value_of("agent", "agent_id") or _AGENT,
                agent_name=value_of("agent-name", "agent_name"),
                message_id=value_of("message", "message_id") or headers.get("idempotency-key", ""),
            ),
            implied=not room_id,
        )


@dataclass(frozen=True, slots=True)
class _Stored:
    """The newest messages of a room. `whole`: it has no others; `absent`: there is no such room."""

    messages: Sequence[StoredMessage] = ()
    whole: bool = True
    absent: bool = False


@dataclass(slots=True)
class _Before:
    """The result of earlier requests for the same reply: their text and tokens."""

    text: str = ""
    usage: Usage = field(default_factory=Usage)


@dataclass(slots=True)
class _Answer:
    """An answer as it grows, and its forms in the protocol."""

    created: int
    before: _Before
    id: str = ""
    model: str = ""
    pieces: list[str] = field(default_factory=list)
    about: dict[str, Any] = field(default_factory=dict)

    def begin(self, started: ReplyStarted) -> None:
        self.id, self.model = started.reply_id, started.model_id
        self.about = {
            "message_id": started.message_id,
            "context_id": started.context_id,
            "messages": started.messages,
            "truncated": started.truncated,
            "degraded": started.degraded,
        }

    def repeat(self, answer_made: Reply) -> None:
        """Take a reply that was stored before."""
        self.id, self.model = answer_made.reply_id, answer_made.model
        self.about = {"message_id": answer_made.message_id, "context_id": answer_made.context_id, "repeated": True}

    def add(self, text: str) -> str:
        """Add a piece and return it, without the break from what an earlier request was told."""
        shown = text if self.pieces or not self.before.text else text.lstrip("\n")
        self.pieces.append(shown)
        return shown

    def rest_of(self, answer_made: Reply) -> str:
        """Return what this request was not told yet."""
        return answer_made.text.removeprefix(self.before.text).lstrip("\n") if answer_made.repeated else ""

    def chunk(self, delta: Mapping[str, Any] | None, *, reason: str | None = None, **more: Any) -> bytes:
        choices = [] if delta is None else [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]
        return unnamed(dump({**self._named("chat.completion.chunk"), "choices": choices, **more}))

    def whole(self, answer_made: Reply) -> dict[str, Any]:
        text = "".join(self.pieces)
        message: dict[str, Any] = {"role": "assistant", "content": text or None, "refusal": None}
        if answer_made.tool_calls:
            message["tool_calls"] = [_call(call) for call in answer_made.tool_calls]
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": answer_made.finish_reason or "stop",
        }
        named = self._named("chat.completion")
        return {**named, "choices": [choice], "usage": self.usage(answer_made), _OWN: self.about}

    def usage(self, answer_made: Reply) -> dict[str, int]:
        """Return the tokens of this request. A reply counts those of all requests for it."""
        input_tokens = max(answer_made.usage.input_tokens - self.before.usage.input_tokens, 0)
        output_tokens = max(answer_made.usage.output_tokens - self.before.usage.output_tokens, 0)
        return {
            "prompt_tokens": input_tokens,
            "completion_tokens": output_tokens,
            "total_tokens": input_tokens + output_tokens,
        }

    def _named(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


openai_protocol = Router(tags=["openai"], include_in_schema=False, strict=False)  # OpenAI describes it


@openai_protocol.post("/v1/chat/completions", status_code=200)
async def complete_chat(
    request: Request,
    caller: Annotated[Caller, Depends(caller_of)],
    completion: Annotated[CompletionRequest, Depends(bodies.body_of(CompletionRequest, within=Bounds.bulk))],
) -> Response:
    """Answer in OpenAI's protocol: store what is new of the conversation, and reply to its last message."""
    lore = caller.need("write")
    conversation = read_conversation(completion.messages)
    place = Place.of(completion, request.headers, caller.key_id, conversation.asked.name)
    stored = await _newest(lore, place.who.room_id)
    again = _is_again(conversation, request.headers)
    talk = await asyncio.to_thread(matched, conversation, stored.messages, place.who, whole=stored.whole, again=again)
    arguments = {
        "agent_id": place.who.agent_id,
        "agent_name": place.who.agent_name,
        "system_prompt": conversation.system,
        "tool_results": conversation.results,
        "shown": talk.shown,
        **completion.arguments(),
    }
    await lore.replies.check(talk.asked, **arguments)  # before the room is made
    await _keep(lore, place, stored, talk)
    before = await _before(lore, place.who, talk) if conversation.results else _Before()
    replies = lore.replies.stream(talk.asked, **arguments)
    answer = _Answer(int(lore.now().timestamp()), before)
    if not completion.stream:
        return reply(await _whole(replies, answer))
    counted = bool(completion.stream_options and completion.stream_options.include_usage)
    return EventStream(_chunks(replies, answer, counted=counted), last=partial(_failed, request.scope))


@openai_protocol.get("/v1/models", status_code=200)
async def list_openai_models(lore: Reader) -> Response:
    """Return the models in OpenAI's form."""
    known = await lore.models.list_available_models()
    return reply({"object": "list", "data": [_model(model.model_id) for model in known]})


@openai_protocol.get("/v1/models/{model_id:id}", status_code=200)
async def get_openai_model(
    lore: Reader, model_id: Annotated[str, Depends(addressed("model_id", "A model"))]
) -> Response:
    """Return one model in OpenAI's form."""
    known = [model.model_id for model in await lore.models.list_available_models()]
    if model_id not in known:
        raise NotFound("model_unknown", model=f"{model_id!r:.80}", known=", ".join(known) or "none")
    return reply(_model(model_id))


def _model(model_id: str) -> dict[str, Any]:
    return {"id": model_id, "object": "model", "created": 0, "owned_by": _OWN}


def _is_again(conversation: Conversation, headers: Headers) -> bool:
    """Return True if the message to answer was sent before. OpenAI's clients count their retries."""
    return bool(conversation.results) or headers.get("x-stainless-retry-count", "0") != "0"


async def _keep(lore: Lore, place: Place, stored: _Stored, talk: Matched) -> None:
    """Store what is new before the message to answer. A new room of one's own is a direct chat from the beginning."""
    if stored.absent and place.implied:
        await lore.rooms.set_kind(place.who.room_id, RoomKind.DIRECT)
    if talk.new:
        # One that was deleted keeps its id, and is not stored again.
        await lore.messages.add(talk.new, on_conflict="report")


async def _newest(lore: Lore, room_id: str) -> _Stored:
    """Return the newest messages of the room."""
    try:
        room = await lore.rooms.get(room_id)
    except NotFound:
        return _Stored(absent=True)
    begin = max(room.next_arrival - 1 - _NEWEST, 0)
    messages: list[StoredMessage] = []
    while page := await lore.messages.page(
        room_id, after=messages[-1].arrival if messages else begin, limit=_PAGE, viewer=None
    ):
        messages += page
        if len(page) < _PAGE:
            break
    return _Stored(messages, whole=begin == 0)


async def _before(lore: Lore, who: Speaking, talk: Matched) -> _Before:
    """Return what the model was asked for this reply before."""
    before = _Before()
    reply_id = reply_ids(talk.asked.id, who.agent_id)[0]
    for number in range(MAX_ROUNDS):
        try:
            made = (await lore.messages.get(who.room_id, calls_id(reply_id, number), viewer=None)).message
        except NotFound:
            break
        before.text += str(about(made).get("text", ""))
        before.usage += usage_of(made)
    return before


async def _whole(replies: AsyncGenerator[ReplyEvent, None], answer: _Answer) -> dict[str, Any]:
    async with aclosing(replies):
        async for event in replies:
            if isinstance(event, ReplyStarted):
                answer.begin(event)
            elif isinstance(event, ReplyText):
                answer.add(event.text)
            elif isinstance(event, Reply):
                _take(answer, event)
                return answer.whole(event)
    raise AssertionError("a reply ends with a Reply")


def _take(answer: _Answer, answer_made: Reply) -> str:
    """Take the end of a reply, and return what of its text was not told yet."""
    if not answer.id:
        answer.repeat(answer_made)
    rest = answer.rest_of(answer_made)
    return answer.add(rest) if rest else ""


async def _chunks(
    replies: AsyncGenerator[ReplyEvent, None], answer: _Answer, *, counted: bool
) -> AsyncGenerator[bytes, None]:
    more = {"usage": None} if counted else {}
    async with aclosing(replies):
        async for event in replies:
            if isinstance(event, ReplyStarted):
                answer.begin(event)
                yield answer.chunk({"role": "assistant", "content": ""}, **more)
            elif isinstance(event, ReplyText):
                yield answer.chunk({"content": answer.add(event.text)}, **more)
            elif isinstance(event, Reply):
                for chunk in _last_chunks(answer, event, more):
                    yield chunk
    yield _DONE


def _last_chunks(answer: _Answer, answer_made: Reply, more: Mapping[str, Any]) -> list[bytes]:
    chunks = []
    if rest := _take(answer, answer_made):
        chunks.append(answer.chunk({"role": "assistant", "content": rest}, **more))
    if answer_made.tool_calls:
        calls = [{"index": place, **_call(call)} for place, call in enumerate(answer_made.tool_calls)]
        chunks.append(answer.chunk({"tool_calls": calls}, **more))
    chunks.append(answer.chunk({}, reason=answer_made.finish_reason or "stop", **more, **{_OWN: answer.about}))
    if more:
        chunks.append(answer.chunk(None, usage=answer.usage(answer_made)))
    return chunks


def _failed(scope: Scope, error: Exception) -> bytes:
    """Return the last event of an answer that failed."""
    return unnamed(failure(scope, error, message="completion failed", route=scope["path"]))
