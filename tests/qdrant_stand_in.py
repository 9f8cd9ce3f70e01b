"""A stand-in for a Qdrant server, as far as roomlore uses it: collections, aliases, points, exact search.

Paths, bodies, status codes and error texts follow Qdrant's REST interface, version 1.10 and later. Anything else is
answered with 501, so that a test cannot pass by it.
"""

import asyncio
import copy
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

import numpy as np
from numpy.typing import NDArray

from roomlore_testkit.loopback import LoopbackServer

_FORBIDDEN_IN_NAMES = re.compile(r'[<>:"/\\|?*\x00\x1f]')
_KNOWN_CONDITIONS = {"key", "match"}


class Refusal(Exception):
    """An answer with an error in it."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(slots=True)
class Point:
    vector: NDArray[np.float64]
    payload: dict[str, Any]


@dataclass(slots=True)
class Collection:
    """A collection. `settings`: the body it was created with; `indexes`: the schema of each indexed field."""

    settings: Mapping[str, Any]
    indexes: dict[str, Any] = field(default_factory=dict)
    points: dict[str, Point] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return int(self.settings["vectors"]["size"])


@dataclass(slots=True)
class Holdings:
    """The data of a server; `aliases` are the collections' other names."""

    collections: dict[str, Collection] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    operations: int = 0

    def copy(self) -> "Holdings":
        return copy.deepcopy(self)

    def find(self, name: str) -> Collection:
        """Return the collection by name or alias."""
        collection = self.collections.get(self.aliases.get(name, name))
        if collection is None:
            raise Refusal(404, f"Not found: Collection `{name}` doesn't exist!")
        return collection

    def answer(self, method: str, path: str, body: bytes) -> Any:
        """Return the `result` of a request; `path` is unquoted and without its query. Raise `Refusal`."""
        for verb, pattern, handler in _ROUTES:
            if verb == method and (match := re.fullmatch(pattern, path)):
                return handler(self, _parsed(body), *match.groups())
        raise Refusal(501, f"The stand-in does not know {method} {path}.")

    def updated(self) -> dict[str, Any]:
        self.operations += 1
        return {"operation_id": self.operations, "status": "completed"}


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body, parse_constant=_no_number) if body else {}
    except ValueError as exc:
        raise Refusal(400, f"Format error in JSON body: {exc}") from exc


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def _needed(body: Mapping[str, Any], name: str) -> Any:
    if name not in body:
        raise Refusal(400, f"Format error in JSON body: missing field `{name}`")
    return body[name]


def _list_collections(held: Holdings, _body: Any) -> Any:
    return {"collections": [{"name": name} for name in sorted(held.collections)]}


def _list_aliases(held: Holdings, _body: Any) -> Any:
    pairs = sorted(held.aliases.items())
    return {"aliases": [{"alias_name": alias, "collection_name": name} for alias, name in pairs]}


def _exists(held: Holdings, _body: Any, name: str) -> Any:
    return {"exists": held.aliases.get(name, name) in held.collections}


def _create(held: Holdings, body: Any, name: str) -> Any:
    if _FORBIDDEN_IN_NAMES.search(name):
        raise Refusal(422, "Validation error in path parameters: [name: collection name cannot contain such a char]")
    if name in held.collections or name in held.aliases:
        raise Refusal(409, f"Wrong input: Collection `{name}` already exists!")
    vectors = _needed(body, "vectors")
    if vectors["distance"] != "Cosine":
        raise Refusal(501, "The stand-in knows the distance Cosine only.")
    if vectors["size"] < 1:
        raise Refusal(422, "Validation error in JSON body: [vectors.size: value 0 invalid, must be from 1 to 65536]")
    held.collections[name] = Collection(settings=body)
    return True


def _delete(held: Holdings, _body: Any, name: str) -> Any:
    held.aliases = {alias: target for alias, target in held.aliases.items() if target != name}
    return held.collections.pop(name, None) is not None


def _change_aliases(held: Holdings, body: Any) -> Any:
    for action in _needed(body, "actions"):
        ((verb, what),) = action.items()
        if verb == "create_alias":
            _create_alias(held, what["alias_name"], what["collection_name"])
        elif verb == "delete_alias":
            held.aliases.pop(what["alias_name"], None)
        else:
            raise Refusal(501, f"The stand-in does not know {verb}.")
    return True


def _create_alias(held: Holdings, alias: str, name: str) -> None:
    if name not in held.collections:
        raise Refusal(404, f"Not found: Collection `{name}` doesn't exist!")
    if alias in held.collections:
        raise Refusal(409, f"Wrong input: Collection `{alias}` already exists!")
    held.aliases[alias] = name


def _index(held: Holdings, body: Any, name: str) -> Any:
    held.find(name).indexes[_needed(body, "field_name")] = body.get("field_schema")
    return held.updated()


def _upsert(held: Holdings, body: Any, name: str) -> Any:
    collection = held.find(name)
    made = {str(_needed(point, "id")): _point(point, collection.size) for point in _needed(body, "points")}
    collection.points.update(made)
    return held.updated()


def _point(body: Mapping[str, Any], size: int) -> Point:
    return Point(_unit(_needed(body, "vector"), size), dict(body.get("payload") or {}))


def _unit(numbers: list[float], size: int) -> NDArray[np.float64]:
    if len(numbers) != size:
        raise Refusal(400, f"Wrong input: Vector dimension error: expected dim: {size}, got {len(numbers)}")
    vector = np.array(numbers, np.float32).astype(np.float64)
    length = float(np.linalg.norm(vector))
    return vector / length if length else vector


def _remove(held: Holdings, body: Any, name: str) -> Any:
    collection = held.find(name)
    for key in _needed(body, "points"):
        collection.points.pop(str(key), None)
    return held.updated()


def _count(held: Holdings, body: Any, name: str) -> Any:
    return {"count": len(_matching(held.find(name), body.get("filter")))}


def _query(held: Holdings, body: Any, name: str) -> Any:
    collection = held.find(name)
    return [{"points": _nearest(collection, search, place)} for place, search in enumerate(_needed(body, "searches"))]


def _nearest(collection: Collection, search: Mapping[str, Any], place: int) -> list[dict[str, Any]]:
    limit = search.get("limit", 10)
    if limit < 1:
        raise Refusal(422, f"Validation error in JSON body: [searches[{place}].limit: value 0 invalid, must be >= 1]")
    query = _unit(_query_vector(_needed(search, "query")), collection.size)
    points = _matching(collection, search.get("filter"))
    scored = [(key, float(point.vector @ query), point.payload) for key, point in points.items()]
    scored.sort(key=lambda hit: hit[1], reverse=True)
    return [
        {"id": key, "version": 0, "score": score, "payload": _shown(payload, search.get("with_payload"))}
        for key, score, payload in scored[:limit]
    ]


def _query_vector(query: Any) -> list[float]:
    vector = query.get("nearest") if isinstance(query, dict) else query
    if not isinstance(vector, list):
        raise Refusal(501, "The stand-in knows queries by a plain vector only.")
    return vector


def _shown(payload: Mapping[str, Any], wanted: Any) -> dict[str, Any]:
    fields = wanted["include"] if isinstance(wanted, dict) else (payload if wanted else ())
    return {name: payload[name] for name in fields if name in payload}


def _matching(collection: Collection, wanted: Mapping[str, Any] | None) -> dict[str, Point]:
    wanted = wanted or {}
    if set(wanted) - {"must"} or any(set(condition) - _KNOWN_CONDITIONS for condition in wanted.get("must", ())):
        raise Refusal(501, "The stand-in knows filters of `must` with `key` and `match` only.")
    tests = [(condition["key"], _allowed(condition["match"])) for condition in wanted.get("must", ())]
    return {
        key: point
        for key, point in collection.points.items()
        if all(point.payload.get(name) in allowed for name, allowed in tests)
    }


def _allowed(match: Mapping[str, Any]) -> set[Any]:
    if set(match) not in ({"value"}, {"any"}):
        raise Refusal(501, "The stand-in knows matches of `value` and `any` only.")
    return set(match["any"]) if "any" in match else {match["value"]}


_NAME = r"/collections/([^/]+)"
_ROUTES: list[tuple[str, str, Callable[..., Any]]] = [
    ("GET", "/collections", _list_collections),
    ("GET", "/aliases", _list_aliases),
    ("POST", "/collections/aliases", _change_aliases),
    ("GET", _NAME + "/exists", _exists),
    ("PUT", _NAME, _create),
    ("DELETE", _NAME, _delete),
    ("PUT", _NAME + "/index", _index),
    ("PUT", _NAME + "/points", _upsert),
    ("POST", _NAME + "/points/delete", _remove),
    ("POST", _NAME + "/points/count", _count),
    ("POST", _NAME + "/points/query/batch", _query),
]


Fault = Literal["error", "html", "garbage", "wrong", "half"]

_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 500: "Internal Server Error", 502: "Bad Gateway"}
_FAULTS: dict[str, tuple[int, str, bytes]] = {
    "error": (500, "application/json", b'{"status":{"error":"Service internal error: told to fail"},"time":0.0}'),
    "html": (502, "text/html", b"<html><body><h1>502 Bad Gateway</h1></body></html>"),
    "garbage": (200, "application/json", b'{"result": [{"id": 7, '),
    "wrong": (200, "application/json", b'{"result":{"colour":"blue"},"status":"ok","time":0.0}'),
}


class QdrantStandIn(LoopbackServer):
    """A Qdrant stand-in. `async with QdrantStandIn() as qdrant:` starts and stops it.

    `fault`: sent in place of every answer: HTTP 500, the HTML page of a proxy, broken JSON, JSON of another type, or
    half of the true answer and a broken connection (only then the request takes effect). `delay`: seconds that every
    request waits first. `only`: if set, both apply to requests whose line ('PUT /collections/x/points') contains it.
    `requests`: those lines, in order. `holdings`: its data.
    """

    def __init__(self, *, api_key: str | None = None) -> None:
        super().__init__()
        self.fault: Fault | None = None
        self.delay = 0.0
        self.only = ""
        self.requests: list[str] = []
        self.holdings = Holdings()
        self._api_key = api_key

    @property
    def url(self) -> str:
        """The address, the same after a stop and a start; known once started."""
        return f"http://127.0.0.1:{self._port}"

    async def wipe(self) -> None:
        """Drop all collections and aliases."""
        self.holdings = Holdings()

    async def snapshot(self) -> Holdings:
        """Return a copy of its data, for `restore`."""
        return self.holdings.copy()

    async def restore(self, holdings: Holdings) -> None:
        """Return to an earlier state."""
        self.holdings = holdings.copy()

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        method, target, _ = head[0].split(" ")
        path = unquote(urlsplit(target).path)
        line = f"{method} {path}"
        self.requests.append(line)
        struck = self.only in line
        await asyncio.sleep(self.delay if struck else 0)
        answer = self._response(method, path, headers, body, self.fault if struck else None)
        if struck and self.fault == "half":
            answer = answer[: len(answer) // 2]
        writer.write(answer)
        await writer.drain()
        return not (struck and self.fault == "half")

    def _response(self, method: str, path: str, headers: dict[str, str], body: bytes, fault: Fault | None) -> bytes:
        if fault in _FAULTS:
            return _http(*_FAULTS[fault])
        if self._api_key is not None and headers.get("api-key") != self._api_key:
            return _http(401, "text/plain", b"Must provide an API key or an Authorization bearer token")
        try:
            return _json(200, {"result": self.holdings.answer(method, path, body), "status": "ok"})
        except Refusal as refusal:
            return _json(refusal.status, {"status": {"error": str(refusal)}})


def _json(status: int, body: dict[str, Any]) -> bytes:
    return _http(status, "application/json", json.dumps({**body, "time": 0.0001}).encode())


def _http(status: int, kind: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status} {_REASONS.get(status, 'Status')}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}"
    return f"{head}\r\n\r\n".encode() + body
