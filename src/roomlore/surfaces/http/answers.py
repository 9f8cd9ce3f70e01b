"""JSON answers, and routers that make them from what handlers return and refuse parameters that a handler does not
read: a misspelt `viewer` would show everything.

JSON can hold any stored text: a lone surrogate is escaped, as UTF-8 cannot hold it.
"""

import inspect
import json
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import wraps
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import orjson
from fastapi import APIRouter
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from roomlore.core.errors import InvalidInput
from roomlore.surfaces.jsonable import one_level, to_jsonable
from roomlore.surfaces.shapes import shape_of


def dump(content: Any) -> bytes:
    """Return compact JSON in UTF-8."""
    try:
        return _AS_IT_IS.encode(content).encode()
    except UnicodeEncodeError:
        return _ESCAPED.encode(content).encode()


_AS_IT_IS = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_ESCAPED = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


def encoded(value: Any) -> bytes:
    """Return the JSON of a value of `core`, as `dump` of `to_jsonable` does, in a tenth of the time."""
    try:
        return orjson.dumps(value, one_level, orjson.OPT_PASSTHROUGH_DATACLASS)
    except TypeError:  # a lone surrogate, or a whole number of more than 64 bits
        return dump(to_jsonable(value))


def reply(value: Any, status: int = 200) -> Response:
    """Return a response with the value as JSON."""
    return Response(encoded(value), status, media_type="application/json")


@dataclass(frozen=True, kw_only=True)
class SuccessResponse:
    """An answer of /memory and /privacy. `success`: true; failures are answered with a problem."""

    success: Literal[True] = True


class Router(APIRouter):
    """A router whose handlers return core values. Their JSON is the answer, and the type that a handler says it returns
    is the answer's schema. A handler that returns None answers 204, and one that returns a response has it sent.

    `strict`: refuse queries with parameters that the route does not read. Clients of other protocols, and those that
    look after a service, send such.
    """

    def __init__(self, *, strict: bool = True, **options: Any) -> None:
        super().__init__(route_class=StrictRoute if strict else APIRoute, **options)

    def add_api_route(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        super().add_api_route(path, _answering(endpoint), **options)


def _answering(handler: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Response]]:
    signature = inspect.signature(handler)
    values = [kind for kind in _members(signature.return_annotation) if not _is_response(kind)]
    if not values:
        return handler

    @wraps(handler)
    async def answer(*args: Any, **given: Any) -> Response:
        value = await handler(*args, **given)
        if value is None:
            return Response(status_code=204)
        return value if isinstance(value, Response) else reply(value)

    described = None if values == [NoneType] else shape_of(Union[tuple(values)])  # noqa: UP007 - known at run time only
    answer.__signature__ = signature.replace(return_annotation=described)  # type: ignore[attr-defined]
    return answer


def _members(kind: Any) -> list[Any]:
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    return [NoneType if one is None else one for one in kinds]


def _is_response(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Response)


_NEAR = 0.5


class StrictRoute(APIRoute):
    """A route that answers 422 if the query has a parameter that the route does not read."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler, check = super().get_route_handler(), self.checker()

        async def answer(request: Request) -> Response:
            check(request.query_params)
            return await handler(request)

        return answer

    def checker(self) -> Callable[[Iterable[str]], None]:
        """Return a function that raises `InvalidInput` if a name is not among those that the route reads."""
        shown, known = self._names()

        def check(names: Iterable[str]) -> None:
            for name in names:
                if name not in known:
                    raise _unknown(name, shown)

        return check

    def _names(self) -> tuple[list[str], frozenset[str]]:
        """Return the names that the route documents, and all that it reads."""
        found = list(_parameters(self.dependant))
        documented = [one.alias for one in found if getattr(one.field_info, "include_in_schema", True)]
        return sorted(set(documented)), frozenset(one.alias for one in found)


def _parameters(dependant: Dependant) -> Iterator[Any]:
    yield from dependant.query_params
    for inner in dependant.dependencies:
        yield from _parameters(inner)


def _unknown(name: str, shown: list[str]) -> InvalidInput:
    said = f"There is no parameter {name!r:.60} here"
    near = get_close_matches(name.lower(), shown, n=1, cutoff=_NEAR)
    if near:
        return InvalidInput(f"{said}; did you mean {near[0]}?")
    return InvalidInput(f"{said}; there are {', '.join(shown)}." if shown else f"{said}; leave it out.")
