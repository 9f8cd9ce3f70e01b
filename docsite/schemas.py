"""JSON schemas as rows of a table: a field, its form, its description."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from docsite.marked import escaped, in_words

Schema = Mapping[str, Any]

_SHAPES = "#/components/schemas/"
_FORMS = {"date-time": "time"}


def rows(schema: Schema, needed: str, under: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield the fields of an object, including those of nested objects; of a named object only its name."""
    whole = schema.get("$defs", {})
    for name, field in schema.get("properties", {}).items():
        marked = needed if name in schema.get("required", ()) else ""
        about = escaped(_about(field))
        yield f"`{under}{name}`", ", ".join(filter(None, (form(field), marked, _default(field)))), about
        inner = _inner(field, whole)
        if inner:
            dots = "[]." if _is_list(field) else "."
            yield from rows({"$defs": whole, **inner}, needed, f"{under}{name}{dots}")


def form(field: Schema) -> str:
    """Return the form of values: `string`, `0 to 1`, a list, one of several words, or the name of a shape."""
    kinds = [kind for kind in _kinds(field) if kind.get("type") != "null"]
    said = list(dict.fromkeys(" ".join(filter(None, (_kind(kind), _bounds(kind)))) for kind in kinds))
    null = " or null" if len(kinds) < len(_kinds(field)) else ""
    return " or ".join(said) + null


def _kinds(field: Schema) -> list[Schema]:
    if isinstance(field.get("type"), list):
        return [{**field, "type": kind} for kind in field["type"]]
    return list(field.get("anyOf") or field.get("oneOf") or [field])


def _kind(kind: Schema) -> str:
    if "$ref" in kind:
        name = kind["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})" if kind["$ref"].startswith(_SHAPES) else "object"
    if "enum" in kind:
        return in_words(kind["enum"])
    if "const" in kind:
        return f"`{json.dumps(kind['const'])}`"
    if kind.get("type") == "array":
        return f"list of {form(kind.get('items', {}))}"
    return _FORMS.get(kind.get("format", ""), str(kind.get("type", "anything")))


def _bounds(kind: Schema) -> str:
    least, most = kind.get("minimum"), kind.get("maximum")
    if least is not None and most is not None and most < 2**31:
        return f"from {least:g} to {most:,.0f}"
    most = kind.get("maxItems") or kind.get("maxLength")
    return f"(at most {most:,})" if most and most < 2**31 else ""


def _about(field: Schema) -> str:
    """Return the description of a field, which may be that of one of its types."""
    return next((kind["description"] for kind in (field, *_kinds(field)) if "description" in kind), "")


def _default(field: Schema) -> str:
    value = field.get("default")
    if value in (None, "", [], {}) or len(str(value)) > 40:
        return ""
    return f"by default `{json.dumps(value, ensure_ascii=False)}`"


def _is_list(field: Schema) -> bool:
    return any(kind.get("type") == "array" for kind in _kinds(field))


def _inner(field: Schema, whole: Schema) -> Schema | None:
    """Return the object that a field holds, alone or in a list, if it is not a named shape."""
    for kind in _kinds(field):
        one = kind.get("items", {}) if kind.get("type") == "array" else kind
        place = one.get("$ref", "")
        found: Schema = whole.get(place.rpartition("/")[2], {}) if place and not place.startswith(_SHAPES) else one
        if "properties" in found:
            return found
    return None
