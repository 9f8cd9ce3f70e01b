"""Reading request bodies: bounded while they stream, JSON only, and named fields that nobody has to guess."""

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from starlette.requests import ClientDisconnect, Request

from roomlore.core.errors import InvalidInput
from roomlore.core.records import ROOM_NAMES
from roomlore.settings import Settings
from roomlore.settings.contexts import StrategyName
from roomlore.surfaces.findings import in_words
from roomlore.surfaces.http.problems import Refused

T = TypeVar("T", bound=BaseModel)

_LARGE = 262_144


async def read_json(request: Request) -> Any:
    """The body as JSON. Refuses another content type (415), more than `max_body_bytes` (413, as soon as it is known),
    what is not JSON (400) and nesting below `max_json_depth` (422)."""
    settings: Settings = request.app.state.settings
    _expect_json(request)
    body = await _read(request, settings.max_body_bytes)
    value = await asyncio.to_thread(_parse, body) if len(body) > _LARGE else _parse(body)
    if _is_deeper(value, settings.max_json_depth):
        raise _too_deep(settings.max_json_depth)
    return value


def body_of(model: type[T]) -> Callable[[Request], Awaitable[T]]:
    """A dependency that gives the body as `model`."""

    async def read(request: Request) -> T:
        return validated(model, await read_json(request))

    return read


def body_if_any_of(model: type[T]) -> Callable[[Request], Awaitable[T]]:
    """The same where the body may be left out: `model` without anything then."""

    async def read(request: Request) -> T:
        length = request.headers.get("content-length", "0")
        empty = length.strip() == "0" and "transfer-encoding" not in request.headers
        return model() if empty else validated(model, await read_json(request))

    return read


def validated(model: type[T], value: Any) -> T:
    """The value as `model`; `InvalidInput` says in words what is wrong with it."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        for detail in error.errors():
            if isinstance(why := detail.get("ctx", {}).get("error"), InvalidInput):
                raise why from error
        raise InvalidInput(in_words(error.errors(), model.model_fields)) from error


def documented(model: type[BaseModel], *, required: bool = True) -> dict[str, Any]:
    """The `openapi_extra` that describes a body read by hand."""
    return described(model.model_json_schema(), required=required)


def described(schema: Mapping[str, Any], *, required: bool = True) -> dict[str, Any]:
    return {"requestBody": {"required": required, "content": {"application/json": {"schema": schema}}}}


def _expect_json(request: Request) -> None:
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given == "application/json-patch+json":
        raise Refused(415, "A JSON Patch is not understood; send a merge patch, as `application/merge-patch+json`.")
    if given != "application/json" and not (given.startswith("application/") and given.endswith("+json")):
        raise Refused(415, "Send JSON with the header `Content-Type: application/json`.")


async def _read(request: Request, limit: int) -> bytes:
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > limit:
        raise _too_large(limit)
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > limit:
                raise _too_large(limit)
    except ClientDisconnect as error:
        raise Refused(400, "The body ended before it was whole; send it again.") from error
    return bytes(body)


def _too_large(limit: int) -> Refused:
    return Refused(413, f"The body is larger than {limit} bytes (setting max_body_bytes); send it in smaller parts.")


def _parse(body: bytes) -> Any:
    try:
        return json.loads(body.decode("utf-8-sig"), parse_constant=_refuse_constant, parse_float=_finite)
    except RecursionError as error:
        raise InvalidInput("The JSON is nested too deeply; flatten it.") from error
    except UnicodeDecodeError as error:
        raise Refused(400, f"The body is not UTF-8: byte {error.start} cannot be read. Encode it as UTF-8.") from error
    except ValueError as error:
        raise Refused(400, f"The body is not JSON: {error}.") from error


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits[:20]} is out of range")
    return number


def _is_deeper(value: Any, limit: int) -> bool:
    layer = [value]
    for _ in range(limit):
        layer = [child for parent in layer for child in _children(parent)]
        if not layer:
            return False
    return True


def _children(value: Any) -> list[Any]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [child for child in inner if isinstance(child, dict | list)]


def _too_deep(limit: int) -> InvalidInput:
    return InvalidInput(f"The JSON is nested deeper than {limit} levels (setting max_json_depth); flatten it.")


class Body(BaseModel):
    """A body with named fields of one type each; others are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_other(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            raise ValueError("the body must be a JSON object")
        return value


class ContextRequest(Body):
    """Which message to build a context for."""

    room_id: str = Field(min_length=1, description="The room; group_id, chat_id and conversation_id mean the same.")
    message_id: str | None = Field(None, description="By default the newest message that a user wrote.")
    strategy: StrategyName | None = Field(None, description="By default the room's.")
    max_messages: int | None = Field(None, ge=1, le=200, description="Most messages in the context.")
    max_tokens: int | None = Field(
        None, ge=1, le=1_000_000, description="Most tokens that the texts take together; by default the room's."
    )
    render: Literal["messages", "prompt"] | None = Field(
        None,
        description="Also give the context in `rendered`, the message asked about last: as messages for a chat model, "
        "or as one text.",
    )
    agent_id: str | None = Field(
        None,
        min_length=1,
        description="The sender whose messages get the role `assistant` in `rendered`; by default all with that role.",
    )

    @model_validator(mode="before")
    @classmethod
    def _one_room(cls, value: Any) -> Any:
        return one_room(value) if isinstance(value, dict) else value


class ResponseRequest(Body):
    """What the model answered with the context."""

    text: str = Field(max_length=1_048_576)


class FeedbackRequest(Body):
    """What people thought of the answer."""

    text: str | None = Field(None, max_length=65_536)
    score: float | None = Field(None, ge=0, le=1, description="0 is useless, 1 is perfect.")

    @model_validator(mode="after")
    def _something(self) -> "FeedbackRequest":
        if self.text is None and self.score is None:
            raise ValueError("give a text, a score from 0 to 1, or both")
        return self


class EditRequest(Body):
    """What to change of a message; what is left out or null stays."""

    text: str | None = None
    metadata: dict[str, Any] | None = None
    mentions: list[str] | None = None

    @model_validator(mode="after")
    def _something(self) -> "EditRequest":
        if self.text is None and self.metadata is None and self.mentions is None:
            raise ValueError("give at least one of text, metadata, mentions")
        return self


def one_room(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with the room under `room_id`, by whichever name it came. Raises `InvalidInput` if two differ."""
    given = {name: values[name] for name in ROOM_NAMES if values.get(name) is not None}
    if len({str(room) for room in given.values()}) > 1:
        raise InvalidInput(f"{' and '.join(given)} name different rooms; give one of them.")
    rest = {name: value for name, value in values.items() if name not in ROOM_NAMES}
    return rest | ({"room_id": next(iter(given.values()))} if given else {})
