"""Values as plain JSON, the same on every surface: field names stay, times are ISO 8601 in UTC.

`shapes.py` describes the same JSON in a schema. Both go by `fields_of`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, dataclass, fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache
from types import NoneType
from typing import Any, Literal, NamedTuple, TypeVar

from roomlore.core.json_values import HIDDEN, IF_KNOWN, IN_JSON, REST
from roomlore.core.replies.reply import Reply, ReplyEvent, ReplyStarted, ReplyText, ToolDone, ToolsWanted
from roomlore.core.sessions.session import Session, SessionMode, SessionValue

T = TypeVar("T")

_LEFT_OUT = (HIDDEN[IN_JSON], REST[IN_JSON])


class _IfAny(Enum):
    MARK = "left out if None"


IF_ANY = _IfAny.MARK
"""Marks a field that is left out if it is None: `Annotated[str | None, IF_ANY]`."""


class WireField(NamedTuple):
    """A field of a JSON object. `optional`: left out if it is None."""

    name: str
    optional: bool


@cache
def fields_of(kind: type) -> tuple[WireField, ...]:
    """Return the fields that a dataclass has in JSON: those that its metadata does not leave out, then the properties
    marked with `in_json`, by name."""
    held = [(field_, field_.metadata.get(IN_JSON)) for field_ in fields(kind)]
    return (
        *(WireField(field_.name, _may_lack(field_, how)) for field_, how in held if how not in _LEFT_OUT),
        *(WireField(name, False) for name in dir(kind) if hasattr(getattr(getattr(kind, name), "fget", None), IN_JSON)),
    )


def _may_lack(field_: "Field[Any]", how: str | None) -> bool:
    return how == IF_KNOWN[IN_JSON] or IF_ANY in getattr(field_.type, "__metadata__", ())


def to_jsonable(value: Any) -> Any:
    """Return the value as JSON values. Dataclasses become objects, tuples become lists. A session value becomes the
    JSON that other programs know."""
    kind = value.__class__
    return value if kind in _ALREADY_JSON else _writer_of(kind)(value)


_ALREADY_JSON = frozenset({str, int, float, bool, NoneType})


@cache
def _writer_of(kind: type) -> Callable[[Any], Any]:
    """Return the function that makes JSON values of values of this type. To choose it once a type, not once a value, is
    most of the speed of a large answer."""
    if issubclass(kind, SessionValue):
        return kind.to_json
    if is_dataclass(kind):
        return _object_writer(kind)
    if issubclass(kind, datetime):
        return kind.isoformat
    if issubclass(kind, Mapping):
        return lambda value: {str(name): to_jsonable(inner) for name, inner in value.items()}
    if issubclass(kind, str):
        return str
    if issubclass(kind, Iterable):
        return lambda value: [to_jsonable(inner) for inner in value]
    return lambda value: value


def _object_writer(kind: type) -> Callable[[Any], dict[str, Any]]:
    held = fields_of(kind)

    def write(value: Any) -> dict[str, Any]:
        object_ = {}
        for name, optional in held:
            inner = getattr(value, name)
            if inner.__class__ in _ALREADY_JSON:
                if inner is not None or not optional:
                    object_[name] = inner
            else:
                object_[name] = to_jsonable(inner)
        return object_

    return write


def one_level(value: Any) -> Any:
    """Return the value as JSON whose members are still values, for an encoder that asks for each of them in turn.
    Raises `TypeError` for a value without JSON."""
    return _level_of(value.__class__)(value)


@cache
def _level_of(kind: type) -> Callable[[Any], Any]:
    if issubclass(kind, SessionValue):
        return kind.to_json
    if is_dataclass(kind):
        return _level_writer(fields_of(kind))
    if issubclass(kind, Mapping):
        return lambda value: {str(name): inner for name, inner in value.items()}
    if issubclass(kind, Iterable):
        return list
    raise TypeError(f"{kind.__name__} has no JSON")


def _level_writer(held: tuple[WireField, ...]) -> Callable[[Any], dict[str, Any]]:
    names = tuple(held_field.name for held_field in held)
    if not any(held_field.optional for held_field in held):
        return _reader_of(names)
    return lambda value: {
        name: inner for name, optional in held if (inner := getattr(value, name)) is not None or not optional
    }


def _reader_of(names: tuple[str, ...]) -> Callable[[Any], dict[str, Any]]:
    """Return a function that reads these attributes. It is made of source text, as the methods of dataclasses are:
    Python builds a mapping written out in half the time of one of pairs."""
    pairs = ", ".join(f"{name!r}: value.{name}" for name in names)
    read: Callable[[Any], dict[str, Any]] = eval(f"lambda value: {{{pairs}}}")  # noqa: S307 - names of fields only
    return read


def made_from(kind: Callable[..., T], value: Any, **more: Any) -> T:
    """Return a dataclass `kind` with the attributes of `value` that have the names of its fields, and with `more`."""
    names = (field_.name for field_ in fields(kind) if field_.name not in more)  # type: ignore[arg-type]
    taken = {name: getattr(value, name) for name in names if hasattr(value, name)}
    return kind(**taken, **more)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLine:
    """A session in a list. `checkpoint_id`: the checkpoint in force, '' if none. `updated_at`: when the session last
    changed, as Unix time in seconds."""

    conversation_id: str
    mode: SessionMode
    user_id: str
    enterprise_id: str | None
    patient_id: str | None
    checkpoint_id: str
    updated_at: int


def session_line(session: Session) -> SessionLine:
    """Return a session for a list."""
    return made_from(SessionLine, session, updated_at=int(session.updated_at.timestamp()))


EventName = Literal["start", "text", "tool_calls", "tool_result", "done"]

NAMES: Mapping[type[ReplyEvent], EventName] = {
    ReplyStarted: "start",
    ReplyText: "text",
    ToolsWanted: "tool_calls",
    ToolDone: "tool_result",
    Reply: "done",
}


def named(event: ReplyEvent) -> tuple[EventName, dict[str, Any]]:
    """Return the event's name and its fields as plain JSON."""
    return NAMES[type(event)], to_jsonable(event)
