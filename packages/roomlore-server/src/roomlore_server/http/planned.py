"""Routes whose requests are answered by a plan, which is made once for each route.

FastAPI looks at the parameters and dependencies of a handler anew for each request. A plan has them as steps: each
calls one function, with the results of earlier steps and the parameters that it reads; the last one is the handler.
Parameters are validated by FastAPI's own fields, so that problems are the same. What a plan cannot express is left to
FastAPI.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from re import Pattern
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.datastructures import URLPath
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, NoMatchFound
from starlette.types import Receive, Scope, Send

from roomlore_server.http.routers import StrictRoute

_SCALARS = (str, int, float, bool, NoneType)
_READ = frozenset(
    {"path_params", "query_params", "dependencies", "name", "call", "request_param_name", "use_cache", "path"}
)
"""What a plan reads of a dependant, and its path."""
_SAYS_NOTHING = frozenset({"cache_key", "scope"})
"""What does not matter to a coroutine function that needs no security scopes."""
_PLAN = "roomlore.plan"
_TRACED = "fastapi.telemetry"
"""FastAPI traces the parts of a request, if the program has providers of OpenTelemetry."""


class _Errors(list[Any]):
    """The errors of parameters, in place of the result of a step."""


class _Parameter(NamedTuple):
    """A parameter of a path or a query. `where`: how errors name it. `many`: it may be repeated."""

    field: Any
    alias: str
    where: tuple[str, str]
    many: bool


@dataclass(frozen=True, slots=True)
class _Step:
    """`inputs`: the steps whose results are needed, each with the name of its argument. `request`: the name of the
    argument that gets the request. `defaults`: of the parameters of the query."""

    call: Callable[..., Awaitable[Any]]
    inputs: Sequence[tuple[str | None, int]]
    request: str | None
    path: Sequence[_Parameter]
    query: Sequence[_Parameter]
    defaults: Mapping[str, Any]

    async def run(self, request: Request, query: Mapping[str, str], results: Sequence[Any]) -> Any:
        """Return the result of the call; `_Errors` in place of it if a parameter is wrong."""
        arguments, errors = dict(self.defaults), _Errors()
        for name, number in self.inputs:
            result = results[number]
            if result.__class__ is _Errors:
                errors += result
            elif name is not None:
                arguments[name] = result
        for parameter in self.path:
            _validate(parameter, request.path_params[parameter.alias], arguments, errors)
        for parameter in self.query:
            if parameter.alias in query:
                value = request.query_params.getlist(parameter.alias) if parameter.many else query[parameter.alias]
                _validate(parameter, value, arguments, errors)
        if errors:
            return errors
        if self.request is not None:
            arguments[self.request] = request
        return await self.call(**arguments)


def _validate(parameter: _Parameter, given: Any, arguments: dict[str, Any], errors: _Errors) -> None:
    value, wrong = parameter.field.validate(given, {}, loc=parameter.where)
    if wrong:
        errors += wrong
    else:
        arguments[parameter.field.name] = value


class Plan:
    """The steps of a route, in their order. The last one, the handler, must return a response, as those of `Router` do.
    `check`: raises `InvalidInput` for what the route does not read."""

    def __init__(self, steps: Sequence[_Step], check: Callable[[Iterable[str], Request], None] | None) -> None:
        self._steps = steps
        self._check = check

    @classmethod
    def of(cls, route: APIRoute) -> "Plan | None":
        """Return the plan of a route; None if it needs more than a plan can express."""
        parts: dict[Any, Dependant] = {}
        for part in _parts(route.dependant):
            if not _is_plannable(part):
                return None
            parts.setdefault(part.call, part)
        places = {call: number for number, call in enumerate(parts)}
        check = route.checker() if isinstance(route, StrictRoute) else None
        return cls([_step(part, places) for part in parts.values()], check)

    async def answer(self, request: Request) -> Response:
        """Return the handler's response. Raise `RequestValidationError` for wrong parameters."""
        query = dict(request.query_params.multi_items()) if request.scope["query_string"] else {}
        if self._check is not None:
            self._check(query, request)
        results: list[Any] = []
        for step in self._steps:
            results.append(await step.run(request, query, results))
        response: Response | _Errors = results[-1]
        if isinstance(response, _Errors):
            raise RequestValidationError(response)
        return response


def _parts(dependant: Dependant) -> Iterator[Dependant]:
    """Yield the dependencies in the order in which they are called, and the function itself last."""
    for inner in dependant.dependencies:
        yield from _parts(inner)
    yield dependant


def _is_plannable(part: Dependant) -> bool:
    others = (getattr(part, field_.name) for field_ in fields(part) if field_.name not in _READ | _SAYS_NOTHING)
    return (
        inspect.iscoroutinefunction(part.call)
        and part.use_cache
        and not any(others)
        and all(map(_is_plain, [*part.path_params, *part.query_params]))
        and all(parameter.default.__class__ in _SCALARS for parameter in part.query_params)
    )


def _is_plain(parameter: Any) -> bool:
    """Return True if FastAPI only looks a parameter up by its alias and validates it, or takes its default."""
    info = parameter.field_info
    return (
        all(map(_is_scalar, [inner for kind in _members(info.annotation) for inner in _items(kind)]))
        and info.validation_alias in (None, parameter.alias)
        and not info.validate_default
        and info.default_factory is None
    )


def _is_scalar(kind: Any) -> bool:
    return kind in _SCALARS or get_origin(kind) is Literal or (isinstance(kind, type) and issubclass(kind, StrEnum))


def _is_many(parameter: Any) -> bool:
    return any(get_origin(kind) is list for kind in _members(parameter.field_info.annotation))


def _items(kind: Any) -> Sequence[Any]:
    return _members(get_args(kind)[0]) if get_origin(kind) is list else (kind,)


def _members(kind: Any) -> list[Any]:
    """Return the types of a union, without their annotations."""
    if get_origin(kind) is Annotated:
        return _members(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return [inner for argument in get_args(kind) for inner in _members(argument)]
    return [kind]


def _step(part: Dependant, places: Mapping[Any, int]) -> _Step:
    assert part.call is not None
    return _Step(
        call=part.call,
        inputs=[(dependency.name, places[dependency.call]) for dependency in part.dependencies],
        request=part.request_param_name,
        path=[
            _Parameter(parameter, parameter.alias, ("path", parameter.alias), many=False)
            for parameter in part.path_params
        ],
        query=[
            _Parameter(parameter, parameter.alias, ("query", parameter.alias), _is_many(parameter))
            for parameter in part.query_params
        ],
        defaults={parameter.name: parameter.default for parameter in part.query_params},
    )


class PlannedRoutes(BaseRoute):
    """The routes that have plans. It stands before FastAPI's own routes, which answer what it does not match: routes
    without a plan, other methods and paths, requests under a path of another application, and those that FastAPI
    traces.

    A plan does not know what a router is included with, such as more dependencies, so routers are not included.
    """

    def __init__(self, routes: Iterable[APIRoute]) -> None:
        self._exact: dict[tuple[str, str], _Planned] = {}
        self._patterns: dict[str, list[_Planned]] = {}
        for route in routes:
            planned = _Planned(route, route.path_regex, Plan.of(route))
            for method in route.methods or ():
                known = self._patterns.setdefault(method, [])
                if route.param_convertors:
                    known.append(planned)
                elif not any(pattern_known.pattern.match(route.path) for pattern_known in known):
                    self._exact.setdefault((method, route.path), planned)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http" or scope.get("root_path") or _TRACED in scope:
            return Match.NONE, {}
        method, path = scope["method"], scope["path"]
        planned = self._exact.get((method, path))
        if planned is not None:
            return planned.matched({})
        for planned in self._patterns.get(method, ()):
            match = planned.pattern.match(path)
            if match:
                return planned.matched(match.groupdict())
        return Match.NONE, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = await scope[_PLAN].answer(Request(scope, receive, send))
        await response(scope, receive, send)

    def url_path_for(self, name: str, /, **path_params: Any) -> URLPath:
        raise NoMatchFound(name, path_params)


class _Planned(NamedTuple):
    """A route with its plan, None if it has none."""

    route: APIRoute
    pattern: Pattern[str]
    plan: Plan | None

    def matched(self, given: Mapping[str, str]) -> tuple[Match, Scope]:
        """Return what `PlannedRoutes.matches` returns. `given`: the parameters of the path."""
        if self.plan is None:
            return Match.NONE, {}
        convertors = self.route.param_convertors
        params = {name: convertors[name].convert(value) for name, value in given.items()}
        return Match.FULL, {
            "route": self.route,
            "endpoint": self.route.endpoint,
            "path_params": params,
            _PLAN: self.plan,
        }
