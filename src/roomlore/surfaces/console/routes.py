"""The console's pages by path."""

import asyncio
from collections.abc import Awaitable, Callable
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from roomlore.core.errors import NotFound, RoomloreError
from roomlore.surfaces.console import (
    changing,
    contexts,
    entering,
    health,
    jobs,
    memories,
    recall,
    rooms,
    sessions,
    writing,
)
from roomlore.surfaces.console.frame import ROOT, Page, Visitor, read_form

SIGN_IN = f"{ROOT}/sign-in"
_FILES = {
    "console.css": "text/css; charset=utf-8",
    "htmx.min.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
_DAY = "public, max-age=86400"

Answer = Callable[[Page], Awaitable[Response]]
_SHOWN: dict[str, Answer] = {
    "": rooms.listed,
    "/room": rooms.room,
    "/room/news": rooms.news,
    "/thread": rooms.thread,
    "/context": contexts.context,
    "/sessions": sessions.listed,
    "/session": sessions.session,
    "/session/change": sessions.asked,
    "/session/summarising": sessions.summarising,
    "/memories": memories.scopes,
    "/memory": memories.memory,
    "/memory/one": memories.lineage,
    "/memory/evolving": changing.evolving,
    "/memory/forgetting": changing.forgetting,
    "/memory/forgetting/would": changing.would_go,
    "/memory/change": changing.asked,
    "/memory/write": writing.asked,
    "/recall": recall.recall,
    "/jobs": jobs.listed,
    "/health": health.health,
    "/health/findings": health.findings,
    "/sign-in": entering.asked,
}
_SENT: dict[str, Answer] = {
    "/session/change": sessions.done,
    "/memory/change": changing.done,
    "/memory/write": writing.done,
    "/jobs/retry": jobs.retry,
    "/sign-in": entering.enter,
    "/sign-out": entering.leave,
    "/look": entering.look,
}


def is_console(path: str) -> bool:
    """Whether a path, as it was sent, is a page for people; `/` leads there."""
    return path in ("/", ROOT) or path.startswith(f"{ROOT}/")


def is_open(path: str) -> bool:
    """Whether nobody needs a key for it."""
    return path in ("/", SIGN_IN) or path.startswith(f"{ROOT}/static/")


def console_routes(
    visitor_of: Callable[[Request], Visitor | None], status_of: Callable[[RoomloreError], int]
) -> list[Route]:
    """Every page. `visitor_of`: who sent a request, None on the pages that are open; `status_of`: of an error, as HTTP
    has it."""

    def page(path: str, answer: Answer, method: str) -> Route:
        async def handle(request: Request) -> Response:
            found = Page(request, visitor_of(request))
            try:
                if method == "POST":
                    found.form = await read_form(request)
                return await answer(found)
            except RoomloreError as error:
                return found.show("problem.html", status_of(error), problem=str(error))

        return _Known(path, handle, methods=[method])

    return [
        _Known("/", _to_console, methods=["GET"]),
        _Known(f"{ROOT}/static/{{name}}", _static, methods=["GET"]),
        *(page(ROOT + path, answer, "GET") for path, answer in _SHOWN.items()),
        *(page(ROOT + path, answer, "POST") for path, answer in _SENT.items()),
        page(f"{ROOT}/{{rest:path}}", _nothing, "GET"),
    ]


class _Known(Route):
    """Leaves its name to the log of requests."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["route"] = self
        await super().handle(scope, receive, send)


async def _to_console(request: Request) -> Response:
    return RedirectResponse(ROOT, 303)


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _FILES:
        return Response(status_code=404)
    content = await asyncio.to_thread(files("roomlore.surfaces.console").joinpath("static", name).read_bytes)
    headers = {"Cache-Control": _DAY, "X-Content-Type-Options": "nosniff"}
    return Response(content, headers=headers, media_type=_FILES[name])


async def _nothing(page: Page) -> Response:
    raise NotFound("The console has no page at this address; begin at /console.")
