"""A message in the form of another library, kept beside what roomlore reads of it, so that it comes back as it was.

Its text is kept once, as the message's own: where that is edited, the form that comes back says what it says now.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from roomlore.core.errors import InvalidInput

Path = tuple[str | int, ...]
"""Where a value stands in nested JSON: keys and places from the outside in."""

_TEXTS = ("text", "refusal", "stdout")


@dataclass(frozen=True, slots=True)
class Readable:
    """What a person reads of it. `at`: where exactly this text stands in it, None where it was put together."""

    text: str
    at: Path | None = None


def plain_json(raw: object, what: str) -> dict[str, Any]:
    """A copy of a JSON object, tuples as lists; `InvalidInput` where `raw`, called `what`, is none."""
    if not isinstance(raw, Mapping):
        raise InvalidInput(f"{what} is a {type(raw).__name__}; it must be a mapping.")
    try:
        copy: dict[str, Any] = json.loads(json.dumps(dict(raw), ensure_ascii=False, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{what} must be plain JSON: {error}.") from error
    return copy


def readable(content: object, at: Path) -> Readable:
    """The text of what stands at `at`: a text, or a list of parts some of which have one."""
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
    """A call of a tool as a person reads it."""
    given = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return f"{name}({given})"


def keep(raw: dict[str, Any], said: Readable) -> dict[str, Any]:
    """What to put into a message's metadata beside the text `said`."""
    if said.at is None:
        return {"raw": raw}
    return {"raw": with_value(raw, said.at, None), "text_at": list(said.at)}


def give_back(kept: Any, text: str) -> dict[str, Any] | None:
    """What `keep` kept, with the message's text in it; None for anything else."""
    raw = kept.get("raw") if isinstance(kept, dict) else None
    try:
        whole = with_value(raw, tuple(kept["text_at"]), text) if raw is not None and "text_at" in kept else raw
    except (LookupError, TypeError):
        return None
    return whole if isinstance(whole, dict) else None


def with_value(outer: Any, at: Path, value: object) -> Any:
    """A copy of nested JSON with another value at one place; `LookupError` or `TypeError` where there is no such."""
    if not at:
        return value
    inner = with_value(outer[at[0]], at[1:], value)
    if isinstance(outer, dict):
        return {**outer, at[0]: inner}
    return [inner if place == at[0] else one for place, one in enumerate(outer)]
