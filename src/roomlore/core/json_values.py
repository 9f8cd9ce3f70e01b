"""Plain JSON values, equal to what is read after storage, and what a dataclass has in JSON."""

import json
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from roomlore.core.errors import InvalidInput

_Read = TypeVar("_Read", bound=Callable[..., Any])

IN_JSON = "in_json"
"""The name of the metadata of a dataclass field that says how the field is in JSON; without it, it always is."""
HIDDEN = MappingProxyType({IN_JSON: "never"})
"""Metadata of a field that is left out of JSON."""
IF_KNOWN = MappingProxyType({IN_JSON: "if known"})
"""Metadata of a field that is left out of JSON if it is None."""
REST = MappingProxyType({IN_JSON: "rest"})
"""Metadata of a field that holds the other members of the JSON object."""


def in_json(read: _Read) -> _Read:
    """Make a property part of a value's JSON; it stands below `@property`."""
    setattr(read, IN_JSON, True)
    return read


_MIN_ID = 100_000


def json_copy(value: Any, *, what: str) -> dict[str, Any]:
    """Return a deep copy. `what` names the value in the error. Raises `InvalidInput` if it is not a JSON object, or
    holds a value that JSON cannot."""
    if not isinstance(value, Mapping):
        raise InvalidInput("value_not_json_object", what=what, kind=type(value).__name__)
    try:
        copy: dict[str, Any] = json.loads(json.dumps(dict(value)))
    except (TypeError, ValueError) as exc:
        raise InvalidInput("value_has_objects", what=what) from exc
    return copy


def json_line(value: Mapping[str, Any]) -> bytes:
    """Return the object as one line of UTF-8 JSON with its line feed. Lone surrogates are escaped."""
    line = json.dumps(value, ensure_ascii=False, allow_nan=False)
    try:
        return line.encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False).encode() + b"\n"


def texts_in(value: Any) -> Iterator[str]:
    """Yield every text in a JSON value, including field names, and numbers that may be ids, as texts."""
    if isinstance(value, str):
        yield value
    elif is_id(value):
        yield str(value)
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield name
            yield from texts_in(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from texts_in(inner)


def is_id(value: Any) -> bool:
    """Return True if a number is long enough to be somebody's id."""
    return isinstance(value, int) and value >= _MIN_ID


def storable(text: str) -> str:
    """Return the text in a form that every engine can store: without NUL and lone surrogates."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()
