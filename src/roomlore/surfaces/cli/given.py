"""Texts and JSON that a command is given as they are, in a file, or on standard input."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from roomlore.core.errors import InvalidInput

STDIN = "-"
_EXAMPLE = '\'{"global_state": {"current_intent": "refund"}}\''


def text_of(given: str) -> str:
    """Return the given text, or standard input for `-`, without the line feed at its end."""
    return _decoded(sys.stdin.buffer.read(), "Standard input").removesuffix("\n") if given == STDIN else given


def text_in(path: str) -> str:
    """Return the text of a file, or standard input for `-`."""
    if path == STDIN:
        return text_of(path)
    try:
        return _decoded(Path(path).read_bytes(), path)
    except OSError as error:
        raise InvalidInput("file_unreadable", path=path, why=error.strerror) from error


def _decoded(raw: bytes, place: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput("file_not_utf8", path=place, number=error.start) from error


def json_object(text: str, place: str) -> dict[str, Any]:
    """Return the JSON object of a text. Raise `InvalidInput` that names the place."""
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("object_not_json", path=place, error=error, example=_EXAMPLE) from error
    if not isinstance(value, dict):
        raise InvalidInput("object_needed", name=place, value=repr(text.strip()[:60]), example=_EXAMPLE)
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")
