"""Bodies of requests: limits on JSON that apply while it arrives, parsing, validation, and schemas.

A few bytes can stand for many values, and each costs time to build, so the limits apply before parsing.
"""

import asyncio
import gc
import json
import math
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar, get_args

import numpy as np
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from starlette.requests import ClientDisconnect, Request

from roomlore.core.errors import InvalidInput
from roomlore.core.intake import MAX_ID_CHARS, carried
from roomlore.core.linking.corrections import MAX_BY_CHARS
from roomlore.core.models import Message, Role
from roomlore.core.records import (
    FIELDS,
    FIRST_UNIX,
    LAST_UNIX,
    ROOM_NAMES,
    UNIX_TEXT,
    all_wrong,
    from_record,
    parse_time,
    with_own_names,
)
from roomlore.core.texts import Phrase
from roomlore.settings import Settings
from roomlore_server.http.problems import Refused
from roomlore_server.shapes import in_words, time_of, time_or_day

# A string, or the part of one at the end of a piece. Possessive: each byte is read once.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+("|\\?\Z)', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEPS = np.zeros(256, np.int64)
_STEPS[list(b"[{")] = 1
_STEPS[list(b"]}")] = -1
_SMALL_VALUES = 20_000
SMALL_BODY_BYTES = 1_048_576
"""Largest body of a request that reads, or writes little: no form of one comes near."""
_JSON_VALUES = 400_000
"""Values in a JSON body that writes messages, facts or sessions: 10,000 messages with all of their fields."""
_JSON_DEPTH = 32
"""Deepest nesting of a JSON body: metadata of platforms has under ten levels, and a deep one takes a stack apart."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of a route's body: `size` in bytes, number of values, and levels of nesting. `named`: the setting that
    limits the size, if one does."""

    size: int
    named: str
    values: int
    depth: int = _JSON_DEPTH

    @classmethod
    def small(cls, settings: Settings) -> "Bounds":
        """Return the limits of a route that reads, or writes little."""
        size, named = min((SMALL_BODY_BYTES, ""), (settings.limits.max_body_bytes, "max_body_bytes"))
        return cls(size, named, _SMALL_VALUES)

    @classmethod
    def bulk(cls, settings: Settings) -> "Bounds":
        """Return the limits of a route that takes messages, facts or sessions."""
        return cls(settings.limits.max_body_bytes, "max_body_bytes", _JSON_VALUES)

    def too_large(self) -> Refused:
        code = "body_above_setting" if self.named else "body_too_large"
        return Refused(413, Phrase(code, size=self.size, name=self.named))

    def too_deep(self) -> InvalidInput:
        return InvalidInput("json_too_deep", most=self.depth)

    def too_many(self) -> Refused:
        return Refused(413, Phrase("json_values_too_many", most=self.values))


class JsonMeter:
    """Measures JSON piece by piece, in linear time and without building values.

    Invalid JSON is measured too; the parser reports it.
    """

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._open = b""
        self._size = self._depth = self._marks = self._strings = 0

    def take(self, piece: bytes) -> None:
        """Measure the next piece. Raises `Refused` for too many bytes or values, and `InvalidInput` for nesting that is
        too deep."""
        self._size += len(piece)
        if self._size > self._bounds.size:
            raise self._bounds.too_large()
        bare = self._without_strings(self._open + piece)
        # Each value but the first follows a comma or an opening bracket; a member of an object has at most two strings.
        self._marks += bare.count(b",") + bare.count(b"[") + bare.count(b"{")
        if max(self._marks, self._strings // 2) > self._bounds.values:
            raise self._bounds.too_many()
        opened = bare.count(b"[") + bare.count(b"{")
        if self._depth + opened <= self._bounds.depth:
            self._depth += opened - bare.count(b"]") - bare.count(b"}")
            return
        brackets = bare.translate(None, _NO_BRACKETS)
        if brackets:
            depths = self._depth + np.cumsum(_STEPS[np.frombuffer(brackets, np.uint8)])
            if int(depths.max()) > self._bounds.depth:
                raise self._bounds.too_deep()
            self._depth = int(depths[-1])

    def _without_strings(self, text: bytes) -> bytes:
        """Return the text with a quotation mark for each string, and keep the prefix of the next piece."""
        bare, strings = _STRING.subn(rb"\1", text)
        closed = bare.count(b'"')
        self._strings += closed
        self._open = b""
        if strings > closed:
            escaping = (len(text) - len(text.rstrip(b"\\"))) % 2
            self._open = b'"' + b"\\" * escaping
        return bare


T = TypeVar("T", bound=BaseModel)
R = TypeVar("R")
Within = Callable[[Settings], Bounds]

# Limits in schemas. A limit that is a setting has the setting's name here; the OpenAPI document has its value.
TEXT: dict[str, Any] = {"maxLength": "max_text_chars"}
MOMENT: Mapping[str, Any] = {"anyOf": [{"format": "date-time"}, {"format": "date"}, {"pattern": UNIX_TEXT}]}
"""A time as text. More forms of ISO 8601 are accepted than these."""
_UNIX = {"type": "number", "minimum": FIRST_UNIX, "maximum": LAST_UNIX}
TIME = {"anyOf": [{"type": "string", **alternative} for alternative in MOMENT["anyOf"]] + [_UNIX, {"type": "null"}]}


Time = Annotated[datetime | None, BeforeValidator(time_of), WithJsonSchema(TIME)]
"""A time of a body."""


TimeOrDay = Annotated[Any, PlainValidator(time_or_day), WithJsonSchema(TIME)]
"""A time of a body; a day without a time stays a day. `Any`: as a `date` Pydantic would write a time as a day."""
MAX_MEMBERS = 10_000
_ID = {"type": "string", "minLength": 1, "maxLength": MAX_ID_CHARS}
_NAME = {"type": ["string", "null"], "maxLength": MAX_ID_CHARS}
_FLAG = {"type": ["boolean", "null"]}
MESSAGE_FIELDS: Mapping[str, Any] = {
    "id": _ID,
    "room_id": _ID,
    "sender_id": _ID,
    "sender_name": _NAME,
    "role": {"anyOf": [{"enum": [*Role]}, {"type": "null"}]},
    "text": {"type": ["string", "null"], **TEXT},
    "sent_at": {**TIME, "description": "ISO 8601 or a Unix time; by default now."},
    "reply_to": _NAME,
    "root_id": _NAME,
    "topic_id": _NAME,
    "mentions": {"type": ["array", "null"], "items": {"type": "string"}},
    "has_tool_calls": _FLAG,
    "turn_id": _NAME,
    "metadata": {"type": ["object", "null"]},
    "sent_at_estimated": _FLAG,
    "heard_from": TIME,
    "heard_until": TIME,
    "edited_at": TIME,
}
assert set(MESSAGE_FIELDS) == set(FIELDS)

_LARGE = 262_144
_PIECE = 65_536
_SHORT = 4_096


async def read_json(request: Request, into: Callable[[Any], R], *, within: Within = Bounds.small) -> R:
    """Return the result of `into` for the body's JSON.

    Raises `Refused` for another content type (415), more bytes or values than `within` allows (413, as soon as it is
    known) and invalid JSON (400), and `InvalidInput` for nesting that is too deep (422).
    """
    _expect_json(request)
    body = await read_body(request, within(request.app.state.settings))
    if len(body) <= _LARGE:
        return into(_parse(body))
    # One at a time: the parser blocks every other thread, the event loop's too.
    async with request.app.state.parsing:
        return await asyncio.to_thread(lambda: into(_parse_large(body)))


def body_of(model: type[T], *, within: Within = Bounds.small) -> Callable[[Request], Awaitable[T]]:
    """Return a dependency that gives the body as `model`."""

    async def read(request: Request) -> T:
        of_query = getattr(request.scope.get("route"), "reads", ())
        return await read_json(request, lambda value: validated(model, value, of_query=of_query), within=within)

    return read


def body_if_any_of(model: type[T], *, within: Within = Bounds.small) -> Callable[[Request], Awaitable[T]]:
    """Return the same dependency for an optional body: an empty `model` without one."""
    read_it = body_of(model, within=within)

    async def read(request: Request) -> T:
        length = request.headers.get("content-length", "0")
        empty = length.strip() == "0" and "transfer-encoding" not in request.headers
        return model() if empty else await read_it(request)

    return read


def validated(model: type[T], value: Any, *, of_query: Collection[str] = ()) -> T:
    """Return the value as `model`. Raises `InvalidInput` with the validation errors in words. `of_query`: the names
    that the query of the request may have."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        for detail in error.errors():
            if isinstance(why := detail.get("ctx", {}).get("error"), InvalidInput):
                raise why from error
        raise InvalidInput(in_words(error.errors(), model.model_fields, of_query=of_query)) from error


Schema = Mapping[str, Any] | type[BaseModel] | Callable[[], Mapping[str, Any]]
"""A JSON schema, or what gives one when the OpenAPI document is written. A schema may have such parts, too."""


def described(schema: Schema, *, required: bool = True) -> dict[str, Any]:
    """Return the `openapi_extra` of a route that reads its body in code."""
    return {"requestBody": {"required": required, "content": {"application/json": {"schema": schema}}}}


def written(part: Any) -> Any:
    """Return a part of the OpenAPI document with the schemas of models, and of functions that return one."""
    if isinstance(part, type) and issubclass(part, BaseModel):
        return inlined(part.model_json_schema())
    if callable(part):
        return written(part())
    if isinstance(part, Mapping):
        return {name: written(value) for name, value in part.items()}
    return list(map(written, part)) if isinstance(part, list) else part


def needs_any(*ways: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a schema for a body that fits at least one of these. An `anyOf` at the top of a body would
    mean several forms of it."""
    return {"allOf": [{"anyOf": list(ways)}]}


def needs_one(*names: str, **schema: Any) -> dict[str, Any]:
    """Return the part of a schema for a body that needs at least one of these fields, each with `schema`."""
    some = schema or {"not": {"type": "null"}}
    return needs_any(*({"required": [name], "properties": {name: some}} for name in names))


def inlined(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without references into itself, which would not resolve inside the OpenAPI document."""
    inner = schema.get("$defs", {})

    def whole(part: Any) -> Any:
        if isinstance(part, list):
            return list(map(whole, part))
        if not isinstance(part, Mapping):
            return part
        if "$ref" in part:
            return whole(inner[part["$ref"].rpartition("/")[2]])
        return {name: whole(value) for name, value in part.items() if name != "$defs"}

    inlined_schema: dict[str, Any] = whole(schema)
    return inlined_schema


def _expect_json(request: Request) -> None:
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given == "application/json-patch+json":
        raise Refused(415, Phrase("json_patch_given"))
    if given != "application/json" and not (given.startswith("application/") and given.endswith("+json")):
        raise Refused(415, Phrase("content_type_not_json"))


async def read_body(request: Request, bounds: Bounds) -> bytes:
    """Return the whole body. Raises an error as soon as it passes a limit. Other requests are served between its
    pieces, also if very many bodies arrive at once."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > bounds.size:
        raise bounds.too_large()
    body, meter = bytearray(), JsonMeter(bounds)
    try:
        async for chunk in request.stream():
            if len(chunk) <= _SHORT:
                meter.take(chunk)
            else:
                await _measured(chunk, meter, request.app.state.measuring)
            body += chunk
    except ClientDisconnect as error:
        raise Refused(400, Phrase("body_incomplete")) from error
    return bytes(body)


async def _measured(chunk: bytes, meter: JsonMeter, measuring: asyncio.Lock) -> None:
    for start in range(0, len(chunk), _PIECE):
        async with measuring:
            meter.take(chunk[start : start + _PIECE])
            await asyncio.sleep(0)


def _parse_large(body: bytes) -> Any:
    """Return the parsed body. The garbage collector is off: it would run after every few hundred lists and mappings and
    block every thread, and a parser makes no garbage."""
    collected = gc.isenabled()
    gc.disable()
    try:
        return _parse(body)
    finally:
        if collected:
            gc.enable()


def _parse(body: bytes) -> Any:
    try:
        return _DECODER.decode(body.decode("utf-8-sig"))
    except RecursionError as error:
        raise InvalidInput("json_nested_too_deep") from error
    except UnicodeDecodeError as error:
        raise Refused(400, Phrase("body_not_utf8", number=error.start)) from error
    except ValueError as error:
        raise Refused(400, Phrase("body_not_json", error=error)) from error


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits[:20]} is out of range")
    return number


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)


class Body(BaseModel):
    """A body with named fields of one type each; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_other(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            raise ValueError("the body must be a JSON object")
        return {name: cls._whole(name, given) for name, given in value.items()}

    @classmethod
    def _whole(cls, name: str, given: Any) -> Any:
        """Return 20 for 20.0 in a field of whole numbers: JSON has one type for both."""
        field = cls.model_fields.get(name)
        if field is None or not isinstance(given, float) or not given.is_integer():
            return given
        kinds = (field.annotation, *get_args(field.annotation))
        return int(given) if any(getattr(kind, "__origin__", kind) is int for kind in kinds) else given


class OfRoom(Body):
    """A body that names a room, under any of the names that the field has."""

    @model_validator(mode="before")
    @classmethod
    def _one_room(cls, value: Any) -> Any:
        name = "room_id" if "room_id" in cls.model_fields else "conversation_id"
        return one_room(value, name) if isinstance(value, dict) else value


class ResponseRequest(Body):
    """The model's answer with the context."""

    text: str = Field(max_length=1_048_576)


class FeedbackRequest(Body):
    """Feedback on the answer."""

    model_config = ConfigDict(json_schema_extra=needs_one("text", "score"))

    text: str | None = Field(None, max_length=65_536)
    score: float | None = Field(None, ge=0, le=1, description="0 is useless, 1 is perfect.")

    @model_validator(mode="after")
    def _something(self) -> "FeedbackRequest":
        if self.text is None and self.score is None:
            raise ValueError("give a text, a score from 0 to 1, or both")
        return self


class MemberForm(Body):
    """A stay of a person in a room."""

    person_id: str = Field(min_length=1, max_length=MAX_ID_CHARS)
    joined_at: Time = Field(None, description="Null if unknown.")
    left_at: Time = Field(None, description="Null if the person is still there.")


_Person = Annotated[str, Field(min_length=1, max_length=MAX_ID_CHARS)]
_Members = Annotated[list[_Person | MemberForm], Field(max_length=MAX_MEMBERS)]


_WITHOUT_SINCE: Any = {"properties": {"since": {"type": "null"}}}
_WITH_KIND: Any = {"required": ["kind"], "properties": {"kind": {"type": "string"}}}


class AudienceRequest(Body):
    """A change of who can see a room. Fields that are left out or null stay; all changes are made in this order."""

    model_config = ConfigDict(json_schema_extra={"allOf": [{"anyOf": [_WITHOUT_SINCE, _WITH_KIND]}]})

    kind: Literal["direct", "private", "public", "unknown"] | None = Field(
        None, description="One person and agents, its members, everybody of the tenant, or nobody knows."
    )
    since: Time = Field(
        None, description="From when the kind counts; by default from now, and as long as it was unknown."
    )
    members: _Members | None = Field(
        None, description="All members, by id or with their times. Whoever is not among them has left."
    )
    add: _Members | None = Field(None, description="Who joined.")
    remove: Annotated[list[_Person], Field(max_length=MAX_MEMBERS)] | None = Field(None, description="Who left.")

    @model_validator(mode="after")
    def _fit(self) -> "AudienceRequest":
        if self.since is not None and self.kind is None:
            raise ValueError("since says from when the kind counts; give kind with it")
        return self


class EditRequest(Body):
    """A change of a message. Fields that are left out or null stay."""

    model_config = ConfigDict(json_schema_extra=needs_one("text", "metadata", "mentions"))

    text: str | None = Field(None, json_schema_extra=TEXT)
    metadata: dict[str, Any] | None = None
    mentions: list[str] | None = None

    @model_validator(mode="after")
    def _something(self) -> "EditRequest":
        if self.text is None and self.metadata is None and self.mentions is None:
            raise ValueError("give at least one of text, metadata, mentions")
        return self


class LinkRequest(Body):
    """A correction of a link."""

    answers: str | None = Field(
        max_length=MAX_ID_CHARS,
        description="The id of the earlier message that it answers; null if it answers nothing.",
    )
    by: str = Field(
        "caller", min_length=1, max_length=MAX_BY_CHARS, description="The name of who corrects it, for the log."
    )


def one_room(values: Mapping[str, Any], name: str = "room_id") -> dict[str, Any]:
    """Return the values with the room under `name`, whichever of its names was used. Raises `InvalidInput` if two
    differ."""
    given = {room_name: values[room_name] for room_name in ROOM_NAMES if values.get(room_name) is not None}
    if len({str(room) for room in given.values()}) > 1:
        raise InvalidInput("rooms_differ", names=" and ".join(given))
    rest = {field_name: value for field_name, value in values.items() if field_name not in ROOM_NAMES}
    return rest | ({name: next(iter(given.values()))} if given else {})


def read_message(record: Any) -> Message:
    """Return the message of a JSON object, whose fields may have their other names. Raise `InvalidInput`, also for a
    time that cannot be read: who sends it can mend it, and an estimated time would hide the mistake. The error tells of
    all fields that are wrong."""
    if not isinstance(record, Mapping):
        return from_record(record).message
    named = with_own_names(record)
    try:
        return _read(named)
    except InvalidInput as error:
        raise all_wrong(named, _read, error) from error


def _read(named: Mapping[str, Any]) -> Message:
    read = from_record(named)
    given = named.get("sent_at")
    if given is not None and parse_time(given) is None:
        raise InvalidInput("sent_at_invalid", value=f"{given!r:.60}")
    return carried(replace(read, edited_at=None))
