"""Requests that a plan answers, beside what FastAPI answers to the same ones."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Literal
from urllib.parse import quote, unquote, urlencode

import httpx
import pytest
from fastapi import APIRouter, BackgroundTasks, Cookie, Depends, FastAPI, Header, Query, Request, Response, Security
from fastapi.routing import APIRoute
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.routing import Match, Mount

from roomlore.core.errors import InvalidInput
from roomlore_server.http import create_app, problems
from roomlore_server.http.answers import reply
from roomlore_server.http.planned import Plan, PlannedRoutes
from roomlore_server.http.routers import Router

WITHOUT_A_PLAN = {"/rooms/{room_id:id}/headings", "/memory/{memory_id:id}/share"}
"""Their queries have a parameter without a default."""
COUNTS = ("/metrics", "/health/ready")
"""Paths whose answers count and measure what was asked before: they take no parameter, and long to write."""
TIME = re.compile(r"\d\d:\d\d:\d\d\.\d+")


def planned_of(app):
    return next(route for route in app.routes if isinstance(route, PlannedRoutes))


def routes_of(found):
    return [route for route in found if isinstance(route, APIRoute)]


def without_plans(app):
    app.router.routes.remove(planned_of(app))
    return app


def asking(app):
    return httpx.AsyncClient(transport=httpx.ASGITransport(app, client=("127.0.0.1", 1)), base_url="http://127.0.0.1")


def test_routes_have_plans(app):
    routes = routes_of(app.routes)
    assert len(routes) > 80
    assert {route.path for route in routes if Plan.of(route) is None} == WITHOUT_A_PLAN


VALUES = ["", "0", "-1", "1.5", "nan", "true", "tea", "user:ann", "yesterday", "newest", "9" * 30, "茶 👩‍👩‍👧 a/b\x00"]


async def test_each_route_answers_as_fastapi_does(lore, app, make_message):
    """Each route with several values of its parameters, two of them at a time; what is made is told apart by its
    status only."""
    async with asking(app) as client:
        await client.post("/messages", json=make_message())
    ours, theirs = app, without_plans(create_app(lore))
    asked = [one for route in routes_of(app.routes) for one in requests_of(route)]
    for method, path in asked:
        (status, one), (other_status, other) = [await answered(each, method, path) for each in (ours, theirs)]
        assert status == other_status, (method, path, one, other)
        if status >= 300 or (method == "GET" and not path.startswith(COUNTS)):
            assert TIME.sub("", one) == TIME.sub("", other), (method, path)
    assert len(asked) > 1_000


async def answered(app, method, address):
    """Return the status and the text of an answer to a request without a body, as a client of HTTP would in three times
    as long."""
    path, _, query = address.partition("?")
    scope = {
        "type": "http", "http_version": "1.1", "method": method, "path": unquote(path), "raw_path": path.encode(),
        "root_path": "", "query_string": query.encode(), "scheme": "http", "server": ("127.0.0.1", None),
        "client": ("127.0.0.1", 1), "headers": [(b"host", b"127.0.0.1"), (b"x-request-id", b"one")],
    }  # fmt: skip
    begun, told, done = [], bytearray(), asyncio.Event()
    coming = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive():
        if message := next(coming, None):
            return message
        await done.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        if message["type"] == "http.response.start":
            begun.append(message["status"])
        else:
            told.extend(message.get("body", b""))
            if not message.get("more_body", False):
                done.set()

    await app(scope, receive, send)
    return begun[0], told.decode()


def requests_of(route):
    names = sorted({one.alias for part in parts_of(route.dependant) for one in part.query_params}) or ["zzz"]
    for number, value in enumerate(VALUES[:2] if route.path in COUNTS else VALUES):
        path = route.path_format
        for name in route.param_convertors:
            path = path.replace(f"{{{name}}}", quote(["tea", "-", "m1", value or "x"][number % 4], safe=""))
        query = {names[number % len(names)]: value, names[-1 - number // 3 % len(names)]: VALUES[-number]}
        yield from ((method, f"{path}?{urlencode(query)}") for method in sorted(route.methods))


def parts_of(dependant):
    yield dependant
    for inner in dependant.dependencies:
        yield from parts_of(inner)


async def counted(request: Request, limit: Annotated[int, Query(ge=1, le=9)] = 3) -> int:
    request.state.calls = getattr(request.state, "calls", 0) + 1
    return limit


async def doubled(count: Annotated[int, Depends(counted)], by: float = 2.0) -> float:
    if by == 0:
        raise problems.Refused(409, "by nothing")
    return count * by


small = Router()


@small.get("/small/{place}")
async def show(
    request: Request,
    place: int,
    count: Annotated[int, Depends(counted)],
    double: Annotated[float, Depends(doubled)],
    name: Annotated[list[str] | None, Query()] = None,
    kind: Literal["a", "b"] = "a",
    whole: Annotated[bool | None, Query(alias="all")] = None,
) -> dict[str, object]:
    return {"said": [place, count, double, name, kind, whole], "calls": request.state.calls}


@small.get("/small/last")
async def last() -> str:
    return "is behind a place"


@small.get("/fixed")
async def fixed() -> str:
    return "fixed"


@small.get("/{name}")
async def any_one(name: str) -> str:
    return name


def small_app(*, planned):
    app = FastAPI()
    if planned:
        app.router.routes.append(PlannedRoutes(small.routes))
    app.include_router(small)
    app.add_exception_handler(problems.RequestValidationError, told)
    app.add_exception_handler(InvalidInput, told)
    return app


async def told(_, error):
    return reply(error.errors() if isinstance(error, problems.RequestValidationError) else str(error), 422)


SMALL = st.tuples(
    st.sampled_from(["/small/1", "/small/x", "/small/last", "/fixed", "/other", "/small", "/fixed/"]),
    st.lists(
        st.tuples(
            st.sampled_from(["limit", "limit", "by", "name", "name", "kind", "all", "whole"]),
            st.sampled_from(["", "0", "2", "a", "茶"]),
        ),
        max_size=5,
    ),
)


@settings(deadline=None)
@given(SMALL)
def test_errors_and_values_come_in_fastapis_order(asked):
    path, query = asked

    async def ask():
        url = f"{path}?{urlencode(query)}"
        return [(answer.status_code, answer.text) for answer in [await get(one, url) for one in SMALL_APPS]]

    one, other = asyncio.run(ask())
    assert one == other


SMALL_APPS = [small_app(planned=True), small_app(planned=False)]


async def get(app, url):
    async with asking(app) as client:
        return await client.get(url)


async def test_a_dependency_that_two_need_is_called_once():
    answer = await get(SMALL_APPS[0], "/small/1?limit=4&name=x&name=y")
    assert answer.json() == {"said": [1, 4, 8.0, ["x", "y"], "a", None], "calls": 1}


async def test_errors_of_all_parts_are_told():
    answer = await get(SMALL_APPS[0], "/small/x?limit=0&by=z&kind=c")
    assert [error["loc"][1] for error in answer.json()] == ["limit", "limit", "by", "place", "kind"]


def of_thread(limit: int = 1) -> int:
    return limit


async def closing() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        (Annotated[int, Depends(of_thread)], ()),
        (Annotated[int, Depends(closing)], ()),
        (Annotated[int, Depends(counted, use_cache=False)], ()),
        (Annotated[int, Security(counted, scopes=["read"])], ()),
        (Annotated[str | None, Header()], (None,)),
        (Annotated[str | None, Cookie()], (None,)),
        (Annotated[str, Query()], ()),
        (Annotated[list[str], Query(default_factory=list)], ()),
        (Annotated[list[str], Query()], ([],)),
        (Annotated[int, Query(validate_default=True)], (1,)),
        (Annotated[str | None, Query(validation_alias="other")], (None,)),
        (Annotated[datetime | None, Query()], (None,)),
        (BackgroundTasks, ()),
        (Response, ()),
        (dict[str, int], ()),
    ],
    ids=[
        "a function of a thread",
        "a generator",
        "a call for each use",
        "scopes",
        "a header",
        "a cookie",
        "a needed parameter",
        "a factory of defaults",
        "a list as the default",
        "a default that is validated",
        "another alias",
        "a time",
        "background tasks",
        "the response",
        "a body",
    ],
)
def test_what_a_plan_cannot_express_is_left_to_fastapi(kind, default):
    async def handler(value) -> str:
        return str(value)

    handler.__annotations__["value"], handler.__defaults__ = kind, default
    router = Router()
    router.add_api_route("/", handler, methods=["POST"])
    assert Plan.of(router.routes[0]) is None


def test_a_handler_that_runs_in_a_thread_is_left_to_fastapi():
    router = APIRouter()
    router.add_api_route("/", of_thread)
    assert Plan.of(router.routes[0]) is None


async def test_a_request_that_fastapi_traces_is_left_to_it(app):
    scope = {"type": "http", "method": "GET", "path": "/health/live", "root_path": ""}
    planned = planned_of(app)
    assert planned.matches(scope)[0] is Match.FULL
    assert planned.matches({**scope, "fastapi.telemetry": None})[0] is Match.NONE
    assert planned.matches({**scope, "path": "/rooms/tea/headings"})[0] is Match.NONE
    assert planned.matches({**scope, "method": "POST"})[0] is Match.NONE
    assert planned.matches({**scope, "type": "websocket"})[0] is Match.NONE


async def test_under_a_path_of_another_application_it_is_the_same_service(app):
    async with asking(Starlette(routes=[Mount("/memory-of-ours", app)])) as client:
        answer = await client.get("/memory-of-ours/health/live")
    assert answer.status_code == 200, answer.text
