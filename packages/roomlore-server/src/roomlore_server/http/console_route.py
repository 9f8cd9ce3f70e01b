"""The console beside the HTTP API, behind the same guard."""

from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Scope

from roomlore.wiring import Lore
from roomlore_console import KEY_COOKIE, SIGN_IN, Live, Watch, console_routes, is_console, prepare
from roomlore_server.http.problems import status_of

_LONGEST_ADDRESS = 2_000


def console_pages() -> list[Route]:
    return console_routes(_visitor, status_of)


async def prepare_pages(lore: Lore) -> None:
    """Make ready what the first visit of the console would wait for."""
    await prepare(lore)


def new_watch() -> Watch:
    """Return the store of the readings that the console draws."""
    return Watch()


def new_live() -> Live:
    """Return what tells the console's open rooms of new messages."""
    return Live()


def key_of_cookie(scope: Scope) -> str | None:
    """Return the API key that a person signed in with. Only the console uses it, so a page of another site cannot use
    it for the API."""
    if not is_console(scope["path"]):
        return None
    cookies = SimpleCookie()
    try:
        cookies.load(Headers(scope=scope).get("cookie", ""))
    except CookieError:
        return None
    return cookies[KEY_COOKIE].value if KEY_COOKIE in cookies else None


def to_sign_in(scope: Scope) -> Response:
    """Return a redirect to the sign-in page, which leads back afterwards."""
    query = scope.get("query_string", b"").decode("ascii", "replace")
    here = scope["path"] + (f"?{query}" if query else "")
    tail = f"?next={quote(here, safe='')}" if scope["method"] == "GET" and len(here) < _LONGEST_ADDRESS else ""
    return RedirectResponse(SIGN_IN + tail, 303, {"Cache-Control": "no-store"})


def _visitor(request: Request) -> Any:
    return getattr(request.state, "caller", None)
