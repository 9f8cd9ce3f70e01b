"""Routers that make answers from what handlers return, describe them for the OpenAPI document, and refuse parameters
that a handler does not read: a misspelt `viewer` would show everything."""

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property, wraps
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from fastapi import APIRouter
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from roomlore.core.errors import InvalidInput
from roomlore_server.http.answers import reply
from roomlore_server.http.bodies import written
from roomlore_server.shapes import shape_of


class Router(APIRouter):
    """A router whose handlers return core values. Their JSON is the answer, and the type that a handler says it returns
    is the answer's schema. A handler that returns None answers 204, and one that returns a response has it sent.

    `strict`: refuse queries with parameters that the route does not read. Clients of other protocols, and those that
    look after a service, send such.
    """

    def __init__(self, *, strict: bool = True, **options: Any) -> None:
        super().__init__(route_class=StrictRoute if strict else APIRoute, **options)
        self._given: list[tuple[str, Callable[..., Any], dict[str, Any]]] = []

    def add_api_route(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        """Add a route that serves requests. What only documents it is left to `documented`."""
        self._given.append((path, endpoint, options))
        served = {name: value for name, value in options.items() if name not in _DOCUMENTS}
        super().add_api_route(path, _answering(endpoint), response_model=None, **served)

    def documented(self, problems: Mapping[str, Any]) -> APIRouter:
        """Return the routes with the schemas of their bodies and answers, for the OpenAPI document. `problems`: the
        responses of every route besides. Making the schemas takes a tenth of a second and some megabytes."""
        router = APIRouter(
            prefix=self.prefix,
            tags=self.tags,
            include_in_schema=self.include_in_schema,
            generate_unique_id_function=_name_of,
        )
        for path, endpoint, options in self._given:
            responses = {
                **problems,
                **{status: _written(response) for status, response in (options.get("responses") or {}).items()},
            }
            written_options = {"responses": responses, "openapi_extra": written(options.get("openapi_extra"))}
            router.add_api_route(path, _answering(endpoint, _described), **options | written_options)
        return router


_DOCUMENTS = frozenset({"openapi_extra", "response_model", "responses"})


def _written(response: Mapping[str, Any]) -> dict[str, Any]:
    """Return a response with the schemas of its content; FastAPI makes that of its `model`."""
    return {name: written(value) if name == "content" else value for name, value in response.items()}


def _name_of(route: APIRoute) -> str:
    return route.name


def _answering(
    handler: Callable[..., Awaitable[Any]], described: Callable[[list[Any]], Any] | None = None
) -> Callable[..., Awaitable[Response]]:
    """Return a handler that returns a response. `described`: gives the type that it says it returns."""
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

    described_type = None if described is None else described(values)
    answer.__signature__ = signature.replace(return_annotation=described_type)  # type: ignore[attr-defined]
    return answer


def _described(values: list[Any]) -> Any:
    return None if values == [NoneType] else shape_of(Union[tuple(values)])  # noqa: UP007 - known at run time only


def _members(kind: Any) -> list[Any]:
    kinds = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    return [NoneType if member is None else member for member in kinds]


def _is_response(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Response)


_NEAR = 0.5


class StrictRoute(APIRoute):
    """A route that answers 422 for what it would ignore: a parameter of the query, the body of a DELETE."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler, check = super().get_route_handler(), self.checker()

        async def answer(request: Request) -> Response:
            check(request.query_params, request)
            return await handler(request)

        return answer

    def checker(self) -> Callable[[Iterable[str], Request], None]:
        """Return a function that raises `InvalidInput` if a name is not among those that the route reads, or if the
        request is to delete something and has a body, which would be ignored."""
        shown, known = self.reads, frozenset(parameter.alias for parameter in _parameters(self.dependant))
        deletes = "DELETE" in (self.methods or ())

        def check(names: Iterable[str], request: Request) -> None:
            for name in names:
                if name not in known:
                    raise _unknown(name, shown)
            if deletes and (
                request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers
            ):
                code = "delete_with_body_beside" if shown else "delete_with_body"
                raise InvalidInput(code, known=", ".join(shown))

        return check

    @cached_property
    def reads(self) -> Sequence[str]:
        """The parameters of the query that the route documents, in the order of their names."""
        parameters = _parameters(self.dependant)
        return sorted(
            {parameter.alias for parameter in parameters if getattr(parameter.field_info, "include_in_schema", True)}
        )


def _parameters(dependant: Dependant) -> Iterator[Any]:
    yield from dependant.query_params
    for inner in dependant.dependencies:
        yield from _parameters(inner)


def _unknown(name: str, shown: Sequence[str]) -> InvalidInput:
    named = f"{name!r:.60}"
    near = get_close_matches(name.lower(), shown, n=1, cutoff=_NEAR)
    if near:
        return InvalidInput("parameter_unknown_near", name=named, known=near[0])
    code = "parameter_unknown_among" if shown else "parameter_unknown"
    return InvalidInput(code, name=named, known=", ".join(shown))
