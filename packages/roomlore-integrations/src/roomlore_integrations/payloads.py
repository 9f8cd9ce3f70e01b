"""The original payload of another library, kept beside a message and restored unchanged.

The text of a message is stored once, as its own. If it is edited, the restored payload contains the edited text.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from roomlore.core.errors import InvalidInput

Path = tuple[str | int, ...]
"""A path in nested JSON: keys and indices from the outside in."""

_TEXTS = ("text", "refusal", "stdout")


@dataclass(frozen=True, slots=True)
class Readable:
    """The readable text of a payload. `at`: path of exactly this text, None if it was combined from several values."""

    text: str
    at: Path | None = None


def plain_json(raw: object, what: str) -> dict[str, Any]:
    """Return a copy of a JSON object, with tuples as lists. Raises `InvalidInput` if `raw`, named `what`, is not
    one."""
    if not isinstance(raw, Mapping):
        raise InvalidInput("value_not_mapping", what=what, kind=type(raw).__name__)
    try:
        copy: dict[str, Any] = json.loads(json.dumps(dict(raw), ensure_ascii=False, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput("value_not_json", what=what, why=error) from error
    return copy


def readable(content: object, at: Path) -> Readable:
    """Return the text at `at`: a text, or a list of parts of which some have one."""
    texts = list(_texts(content))
    if len(texts) == 1:
        return Readable(texts[0][1], (*at, *texts[0][0]))
    return Readable("\n".join(text for _, text in texts))


def _texts(content: object) -> Iterator[tuple[Path, str]]:
    if isinstance(content, str):
        yield (), content
    for place, part in enumerate(content if isinstance(content, list) else ()):
        if isinstance(part, str):
            yield (place,), part
        elif isinstance(part, dict):
            yield from (((place, name), part[name]) for name in _TEXTS if isinstance(part.get(name), str))


def call_line(name: str, arguments: object) -> str:
    """Return a tool call as readable text."""
    given = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return f"{name}({given})"


def keep(raw: dict[str, Any], said: Readable) -> dict[str, Any]:
    """Return the metadata that keeps a payload beside the text `said`."""
    if said.at is None:
        return {"raw": raw}
    return {"raw": with_value(raw, said.at, None), "text_at": list(said.at)}


def give_back(kept: Any, text: str) -> dict[str, Any] | None:
    """Return the payload that `keep` stored, with the message's text in it; None for any other value."""
    raw = kept.get("raw") if isinstance(kept, dict) else None
    try:
        whole = with_value(raw, tuple(kept["text_at"]), text) if raw is not None and "text_at" in kept else raw
    except (LookupError, TypeError):
        return None
    return whole if isinstance(whole, dict) else None


def with_value(outer: Any, at: Path, value: object) -> Any:
    """Return a copy of nested JSON with one value replaced. Raises `LookupError` or `TypeError` if the path does not
    exist."""
    if not at:
        return value
    inner = with_value(outer[at[0]], at[1:], value)
    if isinstance(outer, dict):
        return {**outer, at[0]: inner}
    return [inner if place == at[0] else one for place, one in enumerate(outer)]
