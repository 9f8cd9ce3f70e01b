"""Settings in words: values as people may see them, the values a setting takes, and what is wrong with one."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le
from pydantic.fields import FieldInfo

_PASSWORD = re.compile(r"(://[^:/@]*:).*(?=@)|([?&]password=)[^&]*")


def range_of_field(field: FieldInfo) -> str:
    """The values a setting takes, in words."""
    extra = field.json_schema_extra
    if isinstance(extra, dict) and extra.get("form"):
        return str(extra["form"])
    if get_origin(field.annotation) is Literal:
        return "one of " + ", ".join(get_args(field.annotation))
    return "true or false" if field.annotation is bool else _interval(field)


def _interval(field: FieldInfo) -> str:
    noun = "a whole number" if field.annotation is int else "a number"
    low = next((m for m in field.metadata if isinstance(m, Ge | Gt)), None)
    high = next(m.le for m in field.metadata if isinstance(m, Le))
    return f"{noun} above {low.gt} and up to {high}" if isinstance(low, Gt) else f"{noun} from {low.ge} to {high}"  # type: ignore[union-attr]


def shown(value: Any) -> str:
    """A value as people may see it: a password in a URL is masked."""
    if isinstance(value, str):
        return _PASSWORD.sub(r"\1\2***", value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(value)
    return str(value)


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """The name that was meant, most likely, or all there are."""
    near = get_close_matches(name.lower(), list(names), n=1)
    return f"; did you mean {near[0]}?" if near else f"; there are {', '.join(names)}."
