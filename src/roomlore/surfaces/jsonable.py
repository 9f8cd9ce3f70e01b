"""Values as plain JSON, the same on every surface: field names stay, times are ISO 8601 in UTC.

`shapes.py` describes the same JSON in a schema. Both go by `fields_of`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache
from types import NoneType
from typing import Any, Literal, NamedTuple, TypeVar

from roomlore.core.replies.reply import Reply, ReplyEvent, ReplyStarted, ReplyText, ToolDone, ToolsWanted
from roomlore.core.sessions.session import IF_KNOWN, Meta, Session, SessionMode, SessionValue

T = TypeVar("T")

_INTERNAL = frozenset({"extra", "heard_from", "heard_until", "linked", "next_arrival", "tenant", "thread_candidates"})
_PROPERTIES = ("complete", "found", "mend", "read", "sound")
"""The properties that are part of a value's JSON."""


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
    """Return the fields that a dataclass has in JSON: its public ones, then the properties that belong to it."""
    left_out = IF_KNOWN if kind is Meta else frozenset[str]()
    held = [
        WireField(one.name, one.name in left_out or IF_ANY in getattr(one.type, "__metadata__", ()))
        for one in fields(kind)
        if one.name not in _INTERNAL
    ]
    derived = [WireField(name, False) for name in _PROPERTIES if isinstance(getattr(kind, name, None), property)]
    return (*held, *derived)


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
        found = {}
        for name, optional in held:
            inner = getattr(value, name)
            if inner.__class__ in _ALREADY_JSON:
                if inner is not None or not optional:
                    found[name] = inner
            else:
                found[name] = to_jsonable(inner)
        return found

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
    names = tuple(one.name for one in held)
    if not any(one.optional for one in held):
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
    names = (one.name for one in fields(kind) if one.name not in more)  # type: ignore[arg-type]
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
