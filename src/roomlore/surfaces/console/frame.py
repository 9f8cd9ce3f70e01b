"""What every page shares: who looks, in which language and colours, forms that nobody else can send, and rendering."""

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, partial
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlencode
from zoneinfo import ZoneInfo

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse

from roomlore.core.errors import Forbidden, InvalidInput
from roomlore.surfaces.console.inert import clipped, visible
from roomlore.surfaces.console.tongues import LANGUAGES, Tongue, preferred, tongue
from roomlore.wiring import Lore

ROOT = "/console"
THEMES = ("auto", "light", "dark")
KEY_COOKIE = "roomlore_key"
FORM_COOKIE = "roomlore_form"
LANGUAGE_COOKIE = "roomlore_language"
THEME_COOKIE = "roomlore_theme"
_MOST_FORM_BYTES = 65_536
_PARTS_AT_ONCE = 2_000
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Visitor(Protocol):
    """Whoever looks: one tenant's roomlore, and what may be done with it."""

    @property
    def lore(self) -> Lore: ...
    @property
    def scopes(self) -> frozenset[str]: ...
    def need(self, scope: str) -> Lore:
        """Raises `Forbidden` without this scope."""


@dataclass(slots=True)
class Page:
    """One request for a page, and how it is answered."""

    request: Request
    visitor: Visitor | None
    form: Mapping[str, str] = field(default_factory=dict)

    @property
    def lore(self) -> Lore:
        """For reading."""
        return self.need("read")

    def need(self, scope: str, *more: str) -> Lore:
        """Raises `Forbidden` where the visitor lacks one of these scopes. What shows stored text needs `read`, whatever
        else it needs."""
        assert self.visitor is not None
        for one in more:
            self.visitor.need(one)
        return self.visitor.need(scope)

    def asked(self, name: str, default: str = "") -> str:
        return self.request.query_params.get(name, default)

    def needed(self, name: str) -> str:
        """Raises `InvalidInput` where the address does not say it."""
        given = self.asked(name)
        if not given:
            raise InvalidInput(f"The address lacks {name}; go back to the list and choose there.")
        return given

    def number(self, name: str) -> int | None:
        """A whole number from 1; None where it is not given. Raises `InvalidInput`."""
        given = self.asked(name)
        if not given:
            return None
        if not (given.isascii() and given.isdecimal() and len(given) < 19 and int(given)):
            raise InvalidInput(f"{name} is {given!r:.40}; it must be a whole number from 1.")
        return int(given)

    @property
    def tongue(self) -> Tongue:
        chosen = self.request.cookies.get(LANGUAGE_COOKIE, "")
        return tongue(chosen if chosen in LANGUAGES else preferred(self.request.headers.get("accept-language", "")))

    @property
    def theme(self) -> str:
        chosen = self.request.cookies.get(THEME_COOKIE, "")
        return chosen if chosen in THEMES else THEMES[0]

    def show(self, template: str, status: int = 200, *, streamed: bool = False, **values: Any) -> Response:
        """`streamed`: for a page that takes long to write; it is sent while it is being written, by another thread."""
        token = self.request.cookies.get(FORM_COOKIE) or secrets.token_urlsafe(24)
        written = _templates().get_template(template).stream(**self._shared(token), **values)
        answer: Response
        if streamed:
            written.enable_buffering(_PARTS_AT_ONCE)
            parts = (part.encode("utf-8", "replace") for part in written)
            answer = StreamingResponse(parts, status, dict(_HEADERS), media_type="text/html")
        else:
            answer = HTMLResponse("".join(written).encode("utf-8", "replace"), status, dict(_HEADERS))
        if FORM_COOKIE not in self.request.cookies:
            self.keep(answer, FORM_COOKIE, token)
        return answer

    def go(self, path: str, **query: object) -> Response:
        """On to another page, after a form."""
        return RedirectResponse(address(path, **query), 303, dict(_HEADERS))

    def keep(self, answer: Response, name: str, value: str, *, seconds: int | None = None) -> None:
        """Sets a cookie that only this console gets back."""
        secure = self.request.url.scheme == "https"
        answer.set_cookie(name, value, max_age=seconds, path=ROOT, httponly=True, samesite="strict", secure=secure)

    def _shared(self, token: str) -> dict[str, Any]:
        spoken = self.tongue
        zone = ZoneInfo(self.request.app.state.lore.settings.time_zone)
        here = self.request.url.path
        return {
            "t": spoken.say,
            "language": spoken.language,
            "theme": self.theme,
            "token": token,
            "here": here + (f"?{self.request.url.query}" if self.request.url.query else ""),
            "section": here.removeprefix(ROOT).strip("/").partition("/")[0],
            "scopes": self.visitor.scopes if self.visitor else frozenset(),
            "signed_in": self.visitor is not None,
            "with_key": KEY_COOKIE in self.request.cookies,
            "clock": partial(clock, zone=zone),
            "zone": zone.key,
        }


def clock(moment: datetime, zone: ZoneInfo, *, seconds: bool = False) -> str:
    """For people, in the zone of the settings."""
    form = "%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d %H:%M"
    try:
        return moment.astimezone(zone).strftime(form)
    except OverflowError:
        return moment.strftime(form)


def address(path: str, **query: object) -> str:
    """A page of the console; what is None or empty is left out. Ids stand in the query: a browser would take the id
    `..` in a path away."""
    given = {name: str(value) for name, value in query.items() if value not in (None, "")}
    tail = f"?{urlencode(given, errors='surrogatepass')}" if given else ""
    return f"{ROOT}{path}{tail}"


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form that this console sent to this browser. Raises `InvalidInput`, `Forbidden`."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MOST_FORM_BYTES:
            raise InvalidInput(f"The form is larger than {_MOST_FORM_BYTES} bytes; send less.")
    fields = dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=50))
    known = request.cookies.get(FORM_COOKIE, "")
    if (
        not known
        or not hmac.compare_digest(known.encode(), fields.get("token", "").encode())
        or not _same_site(request)
    ):
        raise Forbidden("This form was not sent from a page of this console that is still valid; load it again.")
    return fields


def _same_site(request: Request) -> bool:
    origin = request.headers.get("origin")
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    return origin is None or origin.partition("://")[2].lower() == request.headers.get("host", "").lower()


@cache
def _templates() -> Environment:
    made = Environment(
        loader=PackageLoader("roomlore.surfaces.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_harmless,
        auto_reload=False,
    )
    made.globals["url"] = address
    made.filters["clipped"] = clipped
    made.filters["exact"] = escape
    return made


def _harmless(value: Any) -> Any:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
