"""The generated part of docs/reference/mcp.md: the tools."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from roomlore_server.mcp.answers import ANSWER_BYTES
from roomlore_server.mcp.server import INSTRUCTIONS
from roomlore_server.mcp.tools import TOOLS, Tool

_ABOUT = f"""
The server offers only tools, no resources and no prompts. A host gives these instructions to the model:

> {INSTRUCTIONS}

- A tool returns data that follows its output schema, and the same data as JSON text. Fields without a value are left
  out; passing null for an argument is the same as leaving it out.
- Lists end at about {ANSWER_BYTES:,} bytes of UTF-8, and `hint` says how to continue. A shortened text is marked `cut`.
- If the model can correct a mistake, the result has `isError` and a sentence that says how. Only an unknown tool is an
  error of the protocol.
- Every tool may be called again with the same arguments: the second call changes no memory.
- `room_context` records which messages it chose, as every context does. It still counts as a tool that only reads.

| tool | reads only | replaces or deletes memories | what it does |
|---|---|---|---|
"""


def regions() -> Mapping[str, str]:
    """Return what the code says, by the name of its region."""
    return {"mcp": _ABOUT + "".join(map(_row, TOOLS)) + "".join(map(_section, TOOLS))}


def _row(tool: Tool) -> str:
    marks = " | ".join("yes" if mark else "no" for mark in (not tool.writes, tool.replaces))
    return f"| [`{tool.name}`](#{tool.name}) | {marks} | {tool.title} |\n"


def _section(tool: Tool) -> str:
    declared = tool.declared()
    assert declared.output_schema is not None
    taken = _table("argument", declared.input_schema, "needed")
    given = _table("field", declared.output_schema, "always there")
    return f"\n## {tool.name}\n\n{tool.about}\n\n{taken}\nAnswers:\n\n{given}"


def _table(head: str, schema: Mapping[str, Any], needed: str) -> str:
    rows = "".join(_rows(schema, schema, needed))
    return f"| {head} | | what it is |\n|---|---|---|\n{rows}"


def _rows(schema: Mapping[str, Any], whole: Mapping[str, Any], needed: str, under: str = "") -> Iterator[str]:
    for name, field in schema["properties"].items():
        inner = _named(field, whole)
        said = needed if name in schema.get("required", ()) else ""
        about = field.get("description", "").replace("<", "&lt;")
        yield f"| `{under}{name}` | {_form(field, said)} | {about} |\n"
        if inner is not None:
            yield from _rows(inner, whole, needed, f"{under}{name}{'[]' if field.get('type') == 'array' else ''}.")


def _named(field: Mapping[str, Any], whole: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the fields of an object, or of the objects in a list."""
    place = field.get("$ref") or field.get("items", {}).get("$ref")
    found: Mapping[str, Any] | None = whole["$defs"][place.rpartition("/")[2]] if place else None
    return found


def _form(field: Mapping[str, Any], needed: str) -> str:
    said = [*_kind(field), *_bounds(field)]
    if needed:
        said.append(needed)
    if field.get("default") not in (None, "", []) and len(str(field["default"])) < 40:
        said.append(f"by default `{json.dumps(field['default'], ensure_ascii=False)}`")
    return ", ".join(said)


def _kind(field: Mapping[str, Any]) -> Iterator[str]:
    if "enum" in field:
        yield " or ".join(f"`{value}`" for value in field["enum"])
    elif "const" in field:
        yield f"`{json.dumps(field['const'])}`"
    else:
        yield "object" if "$ref" in field else str(field["type"])


def _bounds(field: Mapping[str, Any]) -> Iterator[str]:
    least, most = field.get("minimum"), field.get("maximum")
    if least is not None and most is not None and most < 2**31:
        yield f"{least:g} to {most:,}"
    if "maxItems" in field:
        yield f"at most {field['maxItems']}"
