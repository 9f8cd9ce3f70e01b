"""`SessionValue`: a session as JSON, with the field names that other programs know.

Fields nobody here knows are kept where they stood: a newer version may have written them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from roomlore.core.errors import InvalidInput

Json = Mapping[str, Any]
_Part = TypeVar("_Part", bound="_Fields")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fields:
    """A JSON object: fields by name, `extra` for the others."""

    extra: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta(_Fields):
    """`updated_at`: Unix time in seconds."""

    conversation_id: str = ""
    user_id: str = ""
    updated_at: int = 0
    enterprise_id: str | None = None
    patient_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowContext(_Fields):
    """Who answers, what was answered last, and how many turns there are since the last reset."""

    current_agent_key: str = ""
    last_bot_message: str = ""
    turn_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageContext(_Fields):
    """The summary ('' if none), the last turns as role and content, the mode, and the checkpoint ('' if none)."""

    summary: str = ""
    window_messages: tuple[Mapping[str, str], ...] = ()
    mode: str = "FULL_HISTORY"
    checkpoint_message_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalState(_Fields):
    """What agents share in a conversation; roomlore keeps it and never reads it."""

    shared: Json = field(default_factory=dict)
    entities: Json = field(default_factory=dict)
    agent_slots: Json = field(default_factory=dict)
    current_intent: str = ""
    pending_action: Json | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UserSnapshot(_Fields):
    """What is known of the user. `history`: chronic diseases."""

    user_id: str = ""
    name: str = ""
    allergies: tuple[str, ...] = ()
    history: tuple[str, ...] = ()
    surgery_history: tuple[str, ...] = ()
    preferences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionValue(_Fields):
    """A session for other programs to read."""

    meta: Meta = field(default_factory=Meta)
    flow_context: FlowContext = field(default_factory=FlowContext)
    message_context: MessageContext = field(default_factory=MessageContext)
    global_state: GlobalState = field(default_factory=GlobalState)
    user_snapshot: UserSnapshot = field(default_factory=UserSnapshot)

    @classmethod
    def from_json(cls, data: Json) -> "SessionValue":
        """Reads what `to_json`, an older or a newer version wrote; null counts as left out.

        A session without a checkpoint is FULL_HISTORY whatever its mode says. Raises `InvalidInput` naming the field
        that has the wrong type.
        """
        value = _read(cls, data, "the session")
        if value.message_context.checkpoint_message_id:
            return value
        return _with_mode(value, "FULL_HISTORY")

    def to_json(self) -> dict[str, Any]:
        """The session as JSON can hold it."""
        return _write(self)


DERIVED: Mapping[str, frozenset[str]] = {
    "meta": frozenset({"conversation_id", "user_id", "updated_at", "enterprise_id", "patient_id"}),
    "flow_context": frozenset({"current_agent_key", "last_bot_message", "turn_count"}),
    "message_context": frozenset({"summary", "window_messages", "mode", "checkpoint_message_id"}),
}
"""Fields that follow from what is stored elsewhere, so that nobody keeps a second copy of them."""

_PARTS = frozenset(f.name for f in fields(SessionValue)) - {"extra"}


def own_state(data: Json) -> dict[str, Any]:
    """What of a session's JSON is kept with it: everything but the derived fields."""
    kept = {name: _without(value, DERIVED.get(name, frozenset())) for name, value in data.items()}
    return {name: value for name, value in kept.items() if value not in ({}, None) or name not in _PARTS}


def _without(value: Any, names: frozenset[str]) -> Any:
    return {k: v for k, v in value.items() if k not in names} if isinstance(value, Mapping) else value


def merge(data: Any, patch: Any) -> Any:
    """The JSON merge patch of RFC 7396: objects are merged, null removes, everything else replaces."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(data) if isinstance(data, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), value)
    return merged


def check_patch(patch: Json) -> None:
    """Raises `InvalidInput` where the patch sets what follows from the messages."""
    if not isinstance(patch, Mapping):
        raise InvalidInput(f"A patch is a JSON object such as {{'global_state': {{...}}}}, not {patch!r:.60}.")
    for part, names in DERIVED.items():
        given = patch.get(part)
        if part in patch and not isinstance(given, Mapping):
            raise InvalidInput(f"{part} cannot be removed or replaced; patch its fields one by one.")
        for name in sorted(names & set(given or {})):
            raise InvalidInput(f"{part}.{name} follows from what is stored and cannot be set; leave it out.")


def _with_mode(value: SessionValue, mode: str) -> SessionValue:
    context = value.message_context
    parts = {f.name: getattr(context, f.name) for f in fields(context)}
    changed = MessageContext(**{**parts, "mode": mode})
    return SessionValue(**{**{f.name: getattr(value, f.name) for f in fields(value)}, "message_context": changed})


def _read(kind: type[_Part], data: Any, place: str) -> _Part:
    if data is None:
        return kind()
    if not isinstance(data, Mapping):
        raise InvalidInput(f"{place} is {data!r:.60}; it must be a JSON object.")
    known = {f.name: f for f in fields(kind) if f.name != "extra"}
    values: dict[str, Any] = {"extra": {name: value for name, value in data.items() if name not in known}}
    default = kind()
    for name, value in data.items():
        if name in known and value is not None:
            values[name] = _read_field(name, value, getattr(default, name))
    return kind(**values)


def _read_field(name: str, value: Any, default: Any) -> Any:
    if isinstance(default, _Fields):
        return _read(type(default), value, name)
    if name == "window_messages":
        return tuple(_each(name, value, Mapping, "objects with role and content"))
    if isinstance(default, tuple):
        return tuple(_each(name, value, str, "texts"))
    wanted, words = _wanted(name, default)
    if not isinstance(value, wanted) or isinstance(value, bool):
        raise InvalidInput(f"{name} is {value!r:.60}; it must be {words}.")
    return value


def _wanted(name: str, default: Any) -> tuple[type[Any], str]:
    if isinstance(default, int):
        return int, "a whole number"
    if isinstance(default, Mapping) or name == "pending_action":
        return Mapping, "a JSON object"
    return str, "a text"


def _each(name: str, value: Any, kind: type[Any], words: str) -> list[Any]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, kind) for item in value):
        raise InvalidInput(f"{name} is {value!r:.60}; it must be a list of {words}.")
    return list(value)


def _write(part: _Fields) -> dict[str, Any]:
    written: dict[str, Any] = dict(part.extra)
    for f in fields(part):
        value = getattr(part, f.name)
        if f.name == "extra" or (value is None and f.name in ("enterprise_id", "patient_id")):
            continue
        written[f.name] = _write(value) if isinstance(value, _Fields) else _plain(value)
    return written


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
