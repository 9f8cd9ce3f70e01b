"""The generated parts of docs/reference for HTTP: paths, fields, problems and metrics."""

from collections.abc import Iterator, Mapping
from typing import Any, get_args

from fastapi import FastAPI
from fastapi.routing import APIRoute

from docsite.marked import escaped, table
from docsite.schemas import Schema, rows
from roomlore.adapters.telemetry import METRICS, SUMMARIES
from roomlore.settings import Settings
from roomlore_server.http import create_app
from roomlore_server.http.guard import Admin, Reader, Writer
from roomlore_server.http.problems import KINDS

_SCOPES = {get_args(kind)[1].dependency: name for kind, name in ((Reader, "read"), (Writer, "write"), (Admin, "admin"))}
_KINDS = {"set": "gauge"}


def regions() -> Mapping[str, str]:
    """Return the tables of http.md by the names of their regions."""
    return {"http paths": _paths(), "http problems": _problems(), "http metrics": _metrics()}


def fields() -> Mapping[str, str]:
    """Return the whole of http-fields.md by the name of its region."""
    return {"http fields": _whole()}


def _whole() -> str:
    app = _app()
    whole = app.openapi()
    told = [_operation(path, method, one) for path, method, one in _operations(whole)]
    shapes = [_shape(name, schema) for name, schema in sorted(whole["components"]["schemas"].items())]
    return "".join((*told, "\n## Shapes\n", *shapes))


def _app() -> FastAPI:
    return create_app(Settings(database_url="sqlite://"))


def _operations(whole: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for path, methods in whole["paths"].items():
        for method, one in methods.items():
            yield path, method.upper(), one


def _paths() -> str:
    app = _app()
    scopes = {route.name: _scope(route) for route in _routes(app)}
    told = [
        (f"`{path}`", method, scopes[one["operationId"]], _takes(one), _about(one))
        for path, method, one in _operations(app.openapi())
    ]
    return table("path", "method", "scope", "takes", "what it does", rows=told)


def _routes(app: FastAPI) -> Iterator[APIRoute]:
    for route in app.routes:
        inside = getattr(route, "original_router", None)
        yield from (one for one in (inside.routes if inside else [route]) if isinstance(one, APIRoute))


def _scope(route: APIRoute) -> str:
    return next((_SCOPES[one.call] for one in route.dependant.dependencies if one.call in _SCOPES), "none")


def _about(one: Mapping[str, Any]) -> str:
    return escaped(one["description"])


def _takes(one: Mapping[str, Any]) -> str:
    queried = _queried(one)
    needed = [place["name"] for place in queried if _is_needed(place)]
    free = [place["name"] for place in queried if not _is_needed(place)]
    asked = _in_words(needed, free)
    sent = "; or ".join(filter(None, (_in_words(*way) for way in _bodies(one))))
    return " · ".join(f"{where}: {fields}" for where, fields in (("query", asked), ("body", sent)) if fields)


def _queried(one: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the parameters of the query, without the ids that belong in the path."""
    places = one.get("parameters", ())
    in_path = {place["name"] for place in places if place["in"] == "path"}
    return [place for place in places if place["in"] == "query" and place["name"] not in in_path]


def _is_needed(place: Mapping[str, Any]) -> bool:
    return bool(place["required"]) or place.get("description", "").endswith("Needed.")


def _in_words(needed: list[str], free: list[str]) -> str:
    said = [", ".join(f"`{name}`" for name in needed), ", ".join(f"`{name}`" for name in free)]
    return ", and if you like ".join(filter(None, said)) if needed else f"if you like {said[1]}" if free else ""


def _bodies(one: Mapping[str, Any]) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the required and the optional fields of each form of the body."""
    schema = _body(one)
    for way in (schema or {}).get("anyOf", [schema] if schema else []):
        needed = list(way.get("required", ()))
        yield needed, [name for name in way.get("properties", ()) if name not in needed]


def _body(one: Mapping[str, Any]) -> Schema | None:
    content = one.get("requestBody", {}).get("content", {})
    return next((kind["schema"] for kind in content.values()), None)


def _operation(path: str, method: str, one: Mapping[str, Any]) -> str:
    parts = [f"\n## {method} {path}\n\n{_about(one)}\n"]
    found = [*(place for place in one.get("parameters", ()) if place["in"] == "path"), *_queried(one)]
    places = {place["name"]: {**place["schema"], **_described(place)} for place in found}
    needed = [place["name"] for place in found if _is_needed(place)]
    parts.append(_fields("parameter", {"properties": places, "required": needed}))
    body = _body(one)
    ways = (body or {}).get("anyOf", [body] if body else [])
    return "".join((*parts, *map(_in_the_body, ways), *_answers(one)))


def _in_the_body(way: Schema) -> str:
    return _fields("in the body", way) or f"\nThe body: {way.get('description', 'a JSON object.')}\n"


def _described(place: Mapping[str, Any]) -> Mapping[str, str]:
    return {"description": place["description"]} if "description" in place else {}


def _fields(head: str, schema: Schema) -> str:
    told = list(rows(schema, "needed"))
    return table(head, "", "what it is", rows=told).rstrip("\n") + "\n" if told else ""


def _answers(one: Mapping[str, Any]) -> Iterator[str]:
    for status, answer in one["responses"].items():
        if status.startswith("2"):
            for kind, content in answer.get("content", {}).items():
                yield _answer(status, kind, content)
            if not answer.get("content"):
                yield f"\nAnswers {status}.\n"


def _answer(status: str, kind: str, content: Mapping[str, Any]) -> str:
    events = content.get("itemSchema", {}).get("oneOf", ())
    if events:
        return f"\nAnswers {status}, `{kind}`:\n" + "".join(map(_event, events))
    name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
    return f"\nAnswers {status} with [{name}](#{name.lower()}).\n" if name else f"\nAnswers {status}, `{kind}`.\n"


def _event(event: Schema) -> str:
    data = event["properties"]["data"]["contentSchema"]
    told = _fields(f"in `{event['properties']['event']['const']}`", data)
    return f"\n{data.get('description', '')}\n{told}"


def _shape(name: str, schema: Schema) -> str:
    about = schema.get("description", "")
    said = f"\n{' '.join(about.split())}\n" if about else ""
    told = _fields("field", schema) or f"\n{', '.join(f'`{value}`' for value in schema.get('enum', ()))}\n"
    return f"\n### {name}\n{said}{told}"


def _problems() -> str:
    told = [(str(kind.status), f"`urn:roomlore:{kind.name}`", kind.when) for kind in KINDS]
    return table("status", "type", "when", rows=sorted(told, key=lambda row: int(row[0])))


def _metrics() -> str:
    told = [
        (
            f"`{name}{{{', '.join(one.labels)}}}`" if one.labels else f"`{name}`",
            _KINDS.get(one.kind, one.kind),
            one.description,
        )
        for name, one in METRICS.items()
    ]
    summaries = [(f"`roomlore_{name}`", "gauge", about) for name, about in SUMMARIES.items()]
    return table("metric", "kind", "meaning", rows=[*told, *summaries])


def _labels(names: tuple[str, ...]) -> str:
    return f"{{{', '.join(names)}}}" if names else ""
