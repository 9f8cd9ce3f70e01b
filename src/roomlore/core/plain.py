"""Values that are plain JSON, as they will be when they are read again."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from roomlore.core.errors import InvalidInput

_LEAST_ID = 100_000


def plain(value: Any, *, what: str) -> dict[str, Any]:
    """A copy that shares nothing with the value. `what` names it in the error: `InvalidInput` where it is no JSON
    object, or holds something that JSON cannot."""
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{what} must be a JSON object, not {type(value).__name__}.")
    try:
        copy: dict[str, Any] = json.loads(json.dumps(dict(value)))
    except (TypeError, ValueError) as exc:
        raise InvalidInput(f"{what} must be plain JSON: ids, numbers and texts, never objects.") from exc
    return copy


def texts_in(value: Any) -> Iterator[str]:
    """Every text in a JSON value, names of fields too, and numbers that may be ids, as texts."""
    if isinstance(value, str):
        yield value
    elif is_id(value):
        yield str(value)
    elif isinstance(value, Mapping):
        for name, one in value.items():
            yield name
            yield from texts_in(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from texts_in(one)


def is_id(value: Any) -> bool:
    """Whether a number is so long that it may be somebody's id."""
    return isinstance(value, int) and value >= _LEAST_ID


def storable(text: str) -> str:
    """The text as every engine can keep it, for people to read: no NUL, no half of a surrogate pair."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()
