"""The console's routes, signing in with an API key and signing out, language and theme."""

import asyncio
from collections.abc import Awaitable, Callable
from importlib.resources import files
from uuid import uuid4

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from roomlore.core.audience import check_viewer
from roomlore.core.errors import Forbidden, InvalidInput, NotFound, RoomloreError
from roomlore.core.texts import LANGUAGES
from roomlore_console import (
    contexts,
    health,
    memories,
    memory_editing,
    names,
    people,
    rooms,
    sessions,
    shell,
    today,
)
from roomlore_console.choosing import choice_in, offered
from roomlore_console.frame import (
    KEY_COOKIE,
    LANGUAGE_COOKIE,
    ROOT,
    THEME_COOKIE,
    THEMES,
    VIEWER_COOKIE,
    NoViewer,
    Page,
    Tried,
    Visitor,
    read_form,
)

_YEAR = 31_536_000
_NOBODY = f"user:{uuid4().hex}"
"""A viewer who sees what everybody sees, and nothing else."""


async def sign_in_form(page: Page) -> Response:
    return page.show("sign_in.html", wrong=False, next=_inside(page.asked("next")))


async def enter(page: Page) -> Response:
    secret = page.form.get("key", "").strip()
    try:
        await page.request.app.state.lore.keys.authenticate(secret)
    except Forbidden:
        return page.show("sign_in.html", 401, wrong=True, next=_inside(page.asked("next")))
    answer = page.go("")
    answer.headers["location"] = _inside(page.asked("next"))
    page.keep(answer, KEY_COOKIE, secret)
    answer.delete_cookie(VIEWER_COOKIE, path=ROOT)
    return answer


async def leave(page: Page) -> Response:
    answer = page.go("/sign-in")
    answer.delete_cookie(KEY_COOKIE, path=ROOT)
    answer.delete_cookie(VIEWER_COOKIE, path=ROOT)
    return answer


async def ask_viewer(page: Page) -> Response:
    """Return the form that asks to whom the pages are shown."""
    return await _viewer_form(page, page.named_viewer or "", Tried({}))


async def set_viewer(page: Page) -> Response:
    """Store the viewer until the browser is closed, and go back."""
    given, tried = page.form.get("viewer", "").strip(), Tried({})
    page.shown_as = _NOBODY
    try:
        viewer = str(check_viewer(given))
    except InvalidInput as error:
        chosen = await choice_in(page, tried, "viewer", of=("group", "user"), typed=given)
        if chosen is None:
            tried.wrong.setdefault("viewer", str(error))
            return await _viewer_form(page, given, tried)
        viewer = chosen.viewer
    answer = page.go("")
    answer.headers["location"] = _inside(page.asked("next"))
    page.keep_viewer(answer, viewer)
    return answer


async def _viewer_form(page: Page, given: str, tried: Tried) -> Response:
    page.shown_as = _NOBODY
    shown = not page.is_admin and page.visitor is not None and "read" in page.visitor.scopes
    known = await offered(page, of=("group", "user")) if shown else []
    return page.show(
        "viewer.html", tried.status, tried=tried, offered=known, given=given, next=_inside(page.asked("next"))
    )


async def look(page: Page) -> Response:
    """Store language and theme for a year, and go back."""
    answer = page.go("")
    answer.headers["location"] = _inside(page.asked("next"))
    for name, choices in ((LANGUAGE_COOKIE, LANGUAGES), (THEME_COOKIE, THEMES)):
        chosen = page.form.get(name, "")
        if chosen in choices:
            page.keep(answer, name, chosen, seconds=_YEAR)
    return answer


def _inside(path: str) -> str:
    """Return the address if it is one of the console's own pages."""
    fine = path == ROOT or path.startswith((f"{ROOT}/", f"{ROOT}?"))
    return path if fine and path.isascii() and path.isprintable() and "\\" not in path else ROOT


SIGN_IN = f"{ROOT}/sign-in"
_FILES = {
    "console.css": "text/css; charset=utf-8",
    "console.js": "text/javascript; charset=utf-8",
    "htmx.min.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
_DAY = "public, max-age=86400"

Answer = Callable[[Page], Awaitable[Response]]
_SHOWN: dict[str, Answer] = {
    "": today.today,
    "/rooms": shell.listed,
    "/side": shell.side,
    "/search": shell.search,
    "/suggest": shell.suggest,
    "/places": shell.places,
    "/rooms/{name:path}": names.room,
    "/people": people.listed,
    "/people/{name:path}": names.person,
    "/person": people.person,
    "/forget": people.forget,
    "/room": rooms.room,
    "/room/live": rooms.live,
    "/room/delete": rooms.ask_delete,
    "/room/threads": rooms.threads,
    "/thread": rooms.thread,
    "/digest": rooms.digest,
    "/context": contexts.context,
    "/usage": contexts.used,
    "/sessions": sessions.listed,
    "/session": sessions.session,
    "/session/change": sessions.confirm_change,
    "/session/summarising": sessions.summarising,
    "/memories": memories.scopes,
    "/memory": memories.memory,
    "/memory/one": memories.lineage,
    "/memory/compare": memories.compare,
    "/memory/evolving": memory_editing.evolving,
    "/memory/forgetting": memory_editing.forgetting,
    "/memory/forgetting/would": memory_editing.would_go,
    "/memory/change": memory_editing.confirm_change,
    "/memory/write": memory_editing.write_form,
    "/visible": memories.visible,
    "/recall": memories.recall,
    "/jobs": health.listed,
    "/health": health.health,
    "/health/findings": health.findings,
    "/sign-in": sign_in_form,
    "/viewer": ask_viewer,
}
_LISTS = {
    "/room": "/rooms",
    "/thread": "/rooms",
    "/digest": "/rooms",
    "/visible": "/rooms",
    "/person": "/people",
    "/session": "/sessions",
    "/memory": "/memories",
    "/memory/one": "/memories",
    "/memory/compare": "/memories",
}
"""The list to choose from, for a page whose address lacks the id."""
_SENT: dict[str, Answer] = {
    "/session/change": sessions.done,
    "/room/delete": rooms.delete,
    "/memory/change": memory_editing.apply_change,
    "/memory/write": memory_editing.save_written,
    "/jobs/retry": health.retry,
    "/link": contexts.correct,
    "/sign-in": enter,
    "/sign-out": leave,
    "/viewer": set_viewer,
    "/look": look,
}


def is_console(path: str) -> bool:
    """Return True if a path, as it was sent, is a page for people; `/` leads there."""
    return path in ("/", ROOT) or path.startswith(f"{ROOT}/")


def is_open(path: str) -> bool:
    """Return True if the path needs no key."""
    return path in ("/", SIGN_IN) or path.startswith(f"{ROOT}/static/")


def console_routes(
    visitor_of: Callable[[Request], Visitor | None], status_of: Callable[[RoomloreError], int]
) -> list[Route]:
    """Return every route. `visitor_of`: the sender of a request, None on the open pages; `status_of`: the HTTP status
    of an error."""

    def page(path: str, answer: Answer, method: str) -> Route:
        async def handle(request: Request) -> Response:
            shown_page = Page(request, visitor_of(request))
            try:
                if method == "POST":
                    shown_page.form = await read_form(request)
                if shown_page.visitor is not None and "hx-request" not in request.headers:
                    shown_page.rooms_beside = await shell.rooms_beside(shown_page)
                if method == "GET" and path in _LISTS and not shown_page.asked("id"):
                    return shown_page.go(_LISTS[path])
                return await answer(shown_page)
            except NoViewer:
                return shown_page.go("/viewer", next=shown_page.here if method == "GET" else None)
            except NotFound as error:
                chosen, near = await names.instead(shown_page, path) if method == "GET" else (None, ())
                problem = shown_page.tongue.words.get(f"wrong.{error.code}") or str(error)
                return chosen or _problem(shown_page, status_of(error), problem, near)
            except RoomloreError as error:
                return _problem(shown_page, status_of(error), str(error))
            except Exception as error:  # noqa: BLE001 - the visitor gets a page; the server logs it after that
                request_id = getattr(request.state, "request_id", "")
                answered = _problem(shown_page, 500, shown_page.tongue.say("problem.unforeseen", request=request_id))
                answered.background = BackgroundTask(_raise, error)
                return answered

        return _Known(ROOT + path, handle, methods=[method])

    return [
        _Known("/", _to_console, methods=["GET"]),
        _Known(f"{ROOT}/static/{{name}}", _static, methods=["GET"]),
        *(page(path, answer, "GET") for path, answer in _SHOWN.items()),
        *(page(path, answer, "POST") for path, answer in _SENT.items()),
        page("/{rest:path}", _nothing, "GET"),
    ]


class _Known(Route):
    """Writes its name into the log of requests."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["route"] = self
        await super().handle(scope, receive, send)


async def _to_console(request: Request) -> Response:
    return RedirectResponse(ROOT, 303)


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _FILES:
        return Response(status_code=404)
    content = await asyncio.to_thread(files("roomlore_console").joinpath("static", name).read_bytes)
    headers = {"Cache-Control": _DAY, "X-Content-Type-Options": "nosniff"}
    return Response(content, headers=headers, media_type=_FILES[name])


async def _nothing(page: Page) -> Response:
    return _problem(page, 404, page.tongue.say("problem.no_page"))


def _problem(page: Page, status: int, problem: str, near: names.Near = ()) -> Response:
    """Return the page that says what happened and leads on."""
    title = page.tongue.words.get(f"problem.title.{status}") or page.tongue.say("problem.title.other")
    return page.show("problem.html", status, problem=problem, title=title, code=status, near=near)


async def _raise(error: Exception) -> None:
    raise error
