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
from roomlore.surfaces.http.json_bounds import Bounds, JsonMeter
from roomlore.surfaces.http.problems import Refused

T = TypeVar("T", bound=BaseModel)
R = TypeVar("R")
Within = Callable[[Settings], Bounds]

_LARGE = 262_144
_PIECE = 65_536


async def read_json(request: Request, into: Callable[[Any], R], *, within: Within = Bounds.small) -> R:
    """Return what `into` makes of the body's JSON.

    Raises `Refused` for another content type (415), more bytes or values than `within` allows (413, as soon as it is
    known) and what is not JSON (400), and `InvalidInput` for nesting that is too deep (422).
    """
    _expect_json(request)
    body = await read_body(request, within(request.app.state.settings))
    if len(body) <= _LARGE:
        return into(_parse(body))
    # One at a time: the parser keeps every other thread waiting, the event loop's too.
    async with request.app.state.parsing:
        return await asyncio.to_thread(lambda: into(_parse(body)))


def body_of(model: type[T], *, within: Within = Bounds.small) -> Callable[[Request], Awaitable[T]]:
    """Return a dependency that gives the body as `model`."""

    async def read(request: Request) -> T:
        return await read_json(request, lambda value: validated(model, value), within=within)

    return read


def body_if_any_of(model: type[T]) -> Callable[[Request], Awaitable[T]]:
    """Return the same for a body that may be left out: `model` without anything then."""
    read_it = body_of(model)

    async def read(request: Request) -> T:
        length = request.headers.get("content-length", "0")
        empty = length.strip() == "0" and "transfer-encoding" not in request.headers
        return model() if empty else await read_it(request)

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


async def read_body(request: Request, bounds: Bounds) -> bytes:
    """Return the whole body; raises as soon as it passes a bound. Other requests are served between its pieces."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > bounds.size:
        raise bounds.too_large()
    body, meter = bytearray(), JsonMeter(bounds)
    try:
        async for chunk in request.stream():
            for start in range(0, len(chunk), _PIECE):
                meter.take(chunk[start : start + _PIECE])
                await asyncio.sleep(0)
            body += chunk
    except ClientDisconnect as error:
        raise Refused(400, "The body ended before it was whole; send it again.") from error
    return bytes(body)


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
