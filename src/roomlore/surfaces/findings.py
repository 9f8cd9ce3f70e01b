"""Pydantic's validation errors in sentences that say what to do, the same on every surface."""

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

_PLAIN: Mapping[str, str] = {
    "dict_type": "must be a JSON object",
    "list_type": "must be a list",
    "missing": "is missing",
    "model_type": "must be a JSON object",
    "string_type": "must be a text",
}
_SHOULD = re.compile(r"^(Input|String|List|Value) should")
_VERBS = ("must ", "is ")


def in_words(details: Any, fields: Iterable[str] = ()) -> str:
    """Return validation errors as one text, a sentence each. `fields`: the names that the body may have."""
    return " ".join(_sentence(detail, list(fields)) for detail in details)


def _sentence(detail: Mapping[str, Any], fields: list[str]) -> str:
    place = _place(detail["loc"])
    if detail["type"] == "extra_forbidden":
        return f"There is no field {place!r:.80}{_meant(place, fields)}"
    said = _PLAIN.get(detail["type"]) or _SHOULD.sub("must", detail["msg"].removeprefix("Value error, "))
    if not place:
        return f"{said[:1].upper()}{said[1:]}."
    return f"{place} {said}." if said.startswith(_VERBS) else f"{place}: {said}."


def _meant(name: str, fields: list[str]) -> str:
    near = get_close_matches(name.lower(), fields, n=1)
    if near:
        return f"; did you mean {near[0]}?"
    return f"; there are {', '.join(fields)}." if fields else "; leave it out."


def _place(where: tuple[Any, ...]) -> str:
    beside = len(where) > 1 and where[0] in ("body", "query", "path")
    return ".".join(map(str, where[1:] if beside else where))
