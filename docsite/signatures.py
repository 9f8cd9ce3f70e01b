"""Signatures, types and defaults as people write them: names without their modules."""

import enum
import inspect
import re
from collections.abc import Callable
from typing import Any, Unpack, get_args, get_origin

_MODULES = re.compile(r"\b(?:[a-z_]\w*\.)+(?=\w)")
_OBJECT = re.compile(r"<(?:[\w.]+\.)?(\w+)(?:\.<locals>)?[^<>]*>")
_LINE = 100


def signature(call: Callable[..., Any], name: str) -> str:
    """Return the signature, on one line or on several, with `async` if it must be awaited."""
    found = inspect.signature(call)
    parts = list(_parameters(found))
    answer = "" if found.return_annotation is inspect.Signature.empty else f" -> {kind(found.return_annotation)}"
    lead = "async " if inspect.iscoroutinefunction(call) else ""
    line = f"{lead}{name}({', '.join(parts)}){answer}"
    if len(line) <= _LINE:
        return line
    return f"{lead}{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){answer}"


def kind(annotation: Any) -> str:
    """A type as it is written."""
    if get_origin(annotation) is Unpack:
        return f"Unpack[{kind(get_args(annotation)[0])}]"
    written = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return _MODULES.sub("", written).replace("NoneType", "None").replace("~", "")


def value(given: Any) -> str:
    """Return a default."""
    if isinstance(given, enum.Enum):
        return f"{type(given).__name__}.{given.name}"
    return _OBJECT.sub(r"\1", repr(given))


def _parameters(found: inspect.Signature) -> list[str]:
    shown = [one for one in found.parameters.values() if one.name not in ("self", "cls")]
    parts: list[str] = []
    for place, one in enumerate(shown):
        if one.kind is one.KEYWORD_ONLY and (place == 0 or shown[place - 1].kind is one.POSITIONAL_OR_KEYWORD):
            parts.append("*")
        parts.append(_parameter(one))
        if one.kind is one.POSITIONAL_ONLY and (place + 1 == len(shown) or shown[place + 1].kind is not one.kind):
            parts.append("/")
    return parts


def _parameter(one: inspect.Parameter) -> str:
    star = "*" if one.kind is one.VAR_POSITIONAL else "**" if one.kind is one.VAR_KEYWORD else ""
    said = f"{star}{one.name}" + ("" if one.annotation is one.empty else f": {kind(one.annotation)}")
    return said if one.default is one.empty else f"{said} = {value(one.default)}"
