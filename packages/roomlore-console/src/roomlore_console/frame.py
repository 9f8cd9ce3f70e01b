"""The frame of all pages: languages, safe texts, visitors, requests for pages, addresses and forms."""

import asyncio
import hmac
import json
import secrets
import unicodedata
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlencode
from zoneinfo import ZoneInfo, available_timezones

import regex
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse

from roomlore.core.addresses import is_page_of
from roomlore.core.attachments import attachment
from roomlore.core.audience import check_viewer
from roomlore.core.errors import Forbidden, InvalidInput
from roomlore.core.memory.memory import last_day
from roomlore.core.models import Link, Room
from roomlore.core.texts import LANGUAGES
from roomlore.surfaces.texts import preferred, text_of
from roomlore.wiring import Lore

if TYPE_CHECKING:
    from jinja2 import Environment

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Tongue:
    """A language with its texts by key."""

    language: str
    words: Mapping[str, str]

    def say(self, key: str, **values: object) -> str:
        """Return the text of this key, or of `key.one` if `count` is 1. Raises `KeyError` if there is none."""
        singular = self.words.get(f"{key}.one") if str(values.get("count")) == "1" else None
        return (singular or self.words[key]).format(**values)


@cache
def tongue(language: str) -> Tongue:
    text = files("roomlore_console").joinpath("words", f"{language}.json").read_text(encoding="utf-8")
    return Tongue(language, json.loads(text))


LONGEST = 2_000
_ODD = regex.compile(
    r"(?P<one>(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\u2028\u2029\u115f\u1160\u3164\uffa0\u2800])(?P=one)*"
)
_STACKED_MARKS = regex.compile(r"(\p{M}{4})\p{M}+")
_JOINERS = frozenset("\u200c\u200d")
_LATIN_ENDS = 0x2FF


def visible(text: str) -> str:
    """Return the text with control, direction, zero-width and unassigned characters as ⟨U+202E⟩, repeated ones as
    ⟨U+202E×9⟩, and at most four marks on a character. Joiners inside emoji and other scripts stay."""
    if text.isascii() and text.isprintable():
        return text
    return str(_STACKED_MARKS.sub(r"\1", _ODD.sub(_written, text)))


def clipped(text: str, longest: int = LONGEST) -> str:
    """Return the first `longest` characters as `visible` does, with `…` if there are more."""
    return visible(text) if len(text) <= longest else f"{visible(text[:longest])}…"


def _written(match: "regex.Match[str]") -> str:
    character, count = str(match["one"]), len(match[0])
    if character in _JOINERS and count == 1 and _joins(match.string, match.start()):
        return character
    times = f"×{count}" if count > 1 else ""
    return f"⟨U+{ord(character):04X}{times}⟩"


def _joins(text: str, at: int) -> bool:
    """Return True if both neighbours of a joiner can be joined."""
    if not 0 < at < len(text) - 1:
        return False
    before, after = text[at - 1], text[at + 1]
    return all(
        ord(neighbour) > _LATIN_ENDS and unicodedata.category(neighbour)[0] not in "CZ" for neighbour in (before, after)
    )


ROOT = "/console"
THEMES = ("auto", "light", "dark")
KEY_COOKIE = "roomlore_key"
FORM_COOKIE = "roomlore_form"
LANGUAGE_COOKIE = "roomlore_language"
THEME_COOKIE = "roomlore_theme"
VIEWER_COOKIE = "roomlore_viewer"
ZONE_COOKIE = "roomlore_zone"
_MAX_FORM_BYTES = 65_536
_PARTS_AT_ONCE = 2_000
_FLUSH = Markup("\x00")
"""Texts cannot contain it: control characters are written out."""
_MINUTE = 60
_WEEK = 7 * 86_400
_DAY_CHARS = len("2026-01-05")
_OF_A_ROOM = ("room", "thread", "digest")
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def in_tongue(sentence: str, tongue: Tongue) -> tuple[str, bool]:
    """Return what the library says, in the visitor's language if it is translated, and True if it is in that one. What
    the console itself says in Chinese stays."""
    text = sentence if tongue.language == "en" else text_of(sentence, tongue.language)
    return text, tongue.language == "en" or text != sentence or not sentence[:1].isascii()


def translated(sentence: str, tongue: Tongue, longest: int = 600) -> Markup:
    """Return what the library says as a part of a page, with its language if it is not the page's."""
    text, understood = in_tongue(sentence, tongue)
    shown = clipped(text, longest)
    return Markup("<bdi>{}</bdi>").format(shown) if understood else Markup('<bdi lang="en">{}</bdi>').format(shown)


class Visitor(Protocol):
    """The visitor of a page: the roomlore of one tenant, and the scopes of the visitor's key."""

    @property
    def lore(self) -> Lore: ...
    @property
    def scopes(self) -> frozenset[str]: ...
    def need(self, scope: str) -> Lore:
        """Return roomlore for a use that needs this scope. Raises `Forbidden` without it."""


class NoViewer(Exception):
    """A page needs to know to whom it is shown."""


@dataclass(slots=True)
class Page:
    """One request for a page, and its responses."""

    request: Request
    visitor: Visitor | None
    form: Mapping[str, str] = field(default_factory=dict)
    rooms_beside: Sequence[Room] = ()
    shown_as: str = ""
    """A viewer that stands in for the visitor's until that is named."""
    names: dict[str, str] = field(default_factory=dict)
    """Names of rooms and people by the scope of their memories, as far as they were looked up."""

    @property
    def lore(self) -> Lore:
        """The tenant's roomlore, for reading."""
        return self.need("read")

    def need(self, scope: str, *more: str) -> Lore:
        """Return roomlore. Raises `Forbidden` if the visitor's key lacks one of these scopes. A page that shows stored
        text needs `read` in addition to others."""
        assert self.visitor is not None
        for right in more:
            self.visitor.need(right)
        return self.visitor.need(scope)

    @property
    def is_admin(self) -> bool:
        return self.visitor is not None and "admin" in self.visitor.scopes

    @property
    def viewer(self) -> str | None:
        """To whom the page is shown; None for an administrator, who is shown everything. Raises `NoViewer` if the
        visitor has not said it."""
        if self.is_admin:
            return None
        if self.named_viewer is None:
            raise NoViewer
        return self.named_viewer

    @property
    def named_viewer(self) -> str | None:
        """The viewer that the visitor named, if any."""
        with suppress(InvalidInput):
            return str(check_viewer(self.shown_as or unquote(self.request.cookies.get(VIEWER_COOKIE, ""))))
        return None

    def keep_viewer(self, answer: Response, viewer: str) -> None:
        self.keep(answer, VIEWER_COOKIE, quote(viewer, safe=""))

    async def check_key(self) -> None:
        """Raise `Forbidden` if the key of the request was revoked since it came, or if a key is needed by now."""
        keys = self.request.app.state.lore.keys
        given = self.request.headers.get("authorization", "").partition(" ")[2].strip()
        secret = given or self.request.cookies.get(KEY_COOKIE, "")
        if secret:
            await keys.authenticate(secret)
        elif await keys.any():
            raise Forbidden("key_needed_now")

    async def room(self, name: str = "id") -> str:
        """Return the room that a parameter names. Raises `InvalidInput`, `NoViewer`, and `NotFound` if the viewer may
        not see all that was said there."""
        assert self.visitor is not None
        room_id = self.needed(name)
        await self.visitor.lore.rooms.check_shown(room_id, self.viewer)
        return room_id

    def asked(self, name: str, default: str = "") -> str:
        return self.request.query_params.get(name, default)

    def needed(self, name: str) -> str:
        """Return a parameter. Raises `InvalidInput` if the address does not have it."""
        given = self.asked(name)
        if not given:
            raise InvalidInput(self.tongue.say("problem.lacks", name=self._label(name)))
        return given

    def choice(self, name: str, known: Iterable[str], default: str = "") -> str:
        """Return a parameter that is one of some words. Raises `InvalidInput`."""
        given = self.asked(name, default)
        if given not in known:
            words = ", ".join(filter(None, known))
            raise InvalidInput(self._wrong("word", name, value=f"{given:.40}", known=words))
        return given

    def every(self, name: str) -> list[str]:
        """Return all values of a parameter, without empty ones."""
        return [value for value in self.request.query_params.getlist(name) if value]

    def number(self, name: str, *, most: int | None = None) -> int | None:
        """Return a whole number from 1; None if it is not given. Raises `InvalidInput`."""
        given = self.asked(name)
        if not given:
            return None
        if not (given.isascii() and given.isdecimal() and len(given) < 19 and int(given)):
            raise InvalidInput(self._wrong("whole", name))
        if most is not None and int(given) > most:
            raise InvalidInput(self._wrong("whole_to", name, most=f"{most:,}"))
        return int(given)

    def _wrong(self, how: str, name: str, **values: object) -> str:
        """Return what a parameter takes, by the name that pages have for it."""
        return self.tongue.say(f"wrong.{how}", field=self._label(name), **values)

    def _label(self, name: str) -> str:
        """Return what pages call a parameter."""
        return self.tongue.words.get(f"field.{name}", name)

    @property
    def tongue(self) -> Tongue:
        chosen = self.request.cookies.get(LANGUAGE_COOKIE, "")
        return tongue(chosen if chosen in LANGUAGES else preferred(self.request.headers.get("accept-language", "")))

    @property
    def zone(self) -> ZoneInfo:
        """The reader's zone, as the browser's script stored it; else that of the settings."""
        zone_name = unquote(self.request.cookies.get(ZONE_COOKIE, ""))
        return ZoneInfo(zone_name) if zone_name in _zones() else self.request.app.state.lore.settings.search.zone

    @property
    def theme(self) -> str:
        chosen = self.request.cookies.get(THEME_COOKIE, "")
        return chosen if chosen in THEMES else THEMES[0]

    def show(self, template: str, status: int = 200, *, streamed: bool = False, **values: Any) -> Response:
        """Return a rendered page. `streamed`: for a page that takes long to render, or waits for a value of `later`; it
        is sent while another thread renders it, what stands before `{{ flush }}` at once."""
        token = self.request.cookies.get(FORM_COOKIE) or secrets.token_urlsafe(24)
        written = _templates().get_template(template).generate(**self._shared(token), **values)
        answer: Response
        if streamed:
            answer = StreamingResponse(_in_parts(written), status, dict(_HEADERS), media_type="text/html")
        else:
            answer = HTMLResponse("".join(written).encode("utf-8", "replace"), status, dict(_HEADERS))
        if FORM_COOKIE not in self.request.cookies:
            self.keep(answer, FORM_COOKIE, token)
        return answer

    def later(self, value: Coroutine[Any, Any, T]) -> Callable[[], T]:
        """Return a function for the template of a streamed page that waits for the value, which is computed meanwhile.
        The coroutine must not raise: the page has begun."""
        loop = asyncio.get_running_loop()
        coming = loop.create_task(value)

        async def come() -> T:
            return await coming

        return lambda: asyncio.run_coroutine_threadsafe(come(), loop).result()

    def written(self, template: str, **values: Any) -> str:
        """Return a piece of a page, without a form, as text."""
        return _templates().get_template(template).render(**self._shared(""), **values)

    def piece(self, text: str) -> Response:
        """Return a piece of a page."""
        return HTMLResponse(text.encode("utf-8", "replace"), 200, dict(_HEADERS))

    def go(self, path: str, **query: object) -> Response:
        """Return a redirect to a page, after a form."""
        return RedirectResponse(address(path, **query), 303, dict(_HEADERS))

    def keep(self, answer: Response, name: str, value: str, *, seconds: int | None = None) -> None:
        """Set a cookie that is sent to this console only."""
        secure = self.request.url.scheme == "https"
        answer.set_cookie(name, value, max_age=seconds, path=ROOT, httponly=True, samesite="strict", secure=secure)

    @property
    def here(self) -> str:
        """The address of the page, without the host."""
        query = self.request.url.query
        return self.request.url.path + (f"?{query}" if query else "")

    @property
    def section(self) -> str:
        """The first part of the address inside the console."""
        return self.request.url.path.removeprefix(ROOT).strip("/").partition("/")[0]

    def _called(self, room_id: str) -> str:
        """Return the name of a room if it is known to the page, else its id; both if another room has the name."""
        known = {room.room_id: room.title for room in self.rooms_beside}
        known |= {
            scope.removeprefix("group:"): name for scope, name in self.names.items() if scope.startswith("group:")
        }
        name = known.get(room_id, room_id)
        others = (title for other, title in known.items() if other != room_id)
        return f"{name} ({room_id})" if name != room_id and name in others else name

    def _scope_called(self, scope: str) -> str:
        """Return the name of the room or person whose memories a scope holds, else the id without the kind."""
        kind, _, whose = scope.partition(":")
        return (self._called(whose) if kind in ("group", "room") else self.names.get(scope, "")) or whose or scope

    def _shared(self, token: str) -> dict[str, Any]:
        spoken = self.tongue
        zone, now = self.zone, self.request.app.state.lore.now()
        return {
            "t": spoken.say,
            "flush": _FLUSH,
            "gap": "" if spoken.language == "zh" else " ",  # between sentences
            "place_named": lambda name: spoken.words.get(f"place.{name}", name),
            "label_named": lambda name: spoken.words.get(f"label.{name}", name),
            "language": spoken.language,
            "theme": self.theme,
            "token": token,
            "here": self.here,
            "section": self.section,
            "scopes": self.visitor.scopes if self.visitor else frozenset(),
            "signed_in": self.visitor is not None,
            "is_admin": self.is_admin,
            "viewer": None if self.visitor is None or self.is_admin or self.shown_as else self.named_viewer,
            "with_key": KEY_COOKIE in self.request.cookies,
            "clock": partial(clock, zone=zone),
            "ends": partial(ends, zone=zone, tongue=spoken),
            "ago": partial(ago, now=now, zone=zone, tongue=spoken),
            "rooms_beside": self.rooms_beside,
            "called": self._called,
            "scope_called": self._scope_called,
            "library": partial(translated, tongue=spoken),
            "here_room": self.asked(
                "here" if self.section == "side" else "id" if self.section in _OF_A_ROOM else "room"
            ),
            "zone": zone.key,
        }


@dataclass(slots=True)
class Tried:
    """What is wrong with the fields of a form, by their names. `near`: who may be meant."""

    wrong: dict[str, str]
    near: Sequence[Any] = ()

    @property
    def status(self) -> int:
        return 422 if self.wrong else 200

    def read(self, name: str, reading: Callable[[], T], default: T) -> T:
        """Return what a field contains, or the default with a note of what is wrong."""
        try:
            return reading()
        except InvalidInput as error:
            self.wrong[name] = str(error)
            return default


def _in_parts(written: Iterable[str]) -> Iterator[bytes]:
    """Yield a page in parts: where a template has `flush`, and at a length."""
    held: list[str] = []
    for part in written:
        held.append(part)
        if part == _FLUSH or len(held) >= _PARTS_AT_ONCE:
            yield "".join(held).replace(_FLUSH, "").encode("utf-8", "replace")
            held = []
    yield "".join(held).encode("utf-8", "replace")


def clock(moment: datetime, zone: ZoneInfo, *, seconds: bool = False) -> str:
    """Return a time for people, in the zone of the settings."""
    form = "%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d %H:%M"
    try:
        return moment.astimezone(zone).strftime(form)
    except OverflowError:
        return moment.strftime(form)


def ends(moment: datetime, *, zone: ZoneInfo, tongue: Tongue) -> str:
    """Return a time at which something ends: at midnight that is the end of the day before."""
    day = last_day(moment, zone)
    return tongue.say("memory.end_of_day", day=day.isoformat()) if day else clock(moment, zone)


def ago(moment: datetime, *, now: datetime, zone: ZoneInfo, tongue: Tongue) -> str:
    """Return how long ago a moment was, or its day if that is more than a week."""
    seconds = (now - moment).total_seconds()
    if not -_MINUTE < seconds < _WEEK:
        return clock(moment, zone)[:_DAY_CHARS]
    for name, size in (("d", 86_400), ("h", 3_600), ("min", _MINUTE)):
        if seconds >= size:
            return tongue.say(f"ago.{name}", count=int(seconds // size))
    return tongue.say("ago.now")


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())


def address(path: str, **query: object) -> str:
    """Return the address of a page, without parameters that are None or empty. Ids are in the query: a browser would
    remove the id `..` from a path."""
    given = {name: str(value) for name, value in query.items() if value not in (None, "")}
    tail = f"?{urlencode(given, errors='surrogatepass')}" if given else ""
    return f"{ROOT}{path}{tail}"


async def read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form that this console sent to this browser. Raises `InvalidInput` and `Forbidden`."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_FORM_BYTES:
            raise InvalidInput("form_too_large", most=_MAX_FORM_BYTES)
    fields = dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=50))
    known = request.cookies.get(FORM_COOKIE, "")
    if (
        not known
        or not hmac.compare_digest(known.encode(), fields.get("token", "").encode())
        or not _same_site(request)
    ):
        raise Forbidden("form_expired")
    return fields


def _same_site(request: Request) -> bool:
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    return all(is_page_of(origin, request.headers.get("host", "")) for origin in request.headers.getlist("origin"))


def width_of(link: Link) -> int:
    """Return how thick the line is drawn that leads to a message, 1 to 4: the likelier its link, the thicker."""
    return 1 + round(3 * max(0.0, min(1.0, link.parent_probability)))


def compile_pages() -> None:
    """Load Jinja, compile the templates and read words and zones, once in a process. It takes half a second; a server
    does it beside its first requests, so that no visitor waits for it."""
    for language in LANGUAGES:
        tongue(language)
    _zones()
    for name in _templates().list_templates():
        _templates().get_template(name)


@cache
def _templates() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("roomlore_console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_safe,
        auto_reload=False,
    )
    made.globals["url"] = address
    made.globals["attachment"] = attachment
    made.globals["width_of"] = width_of
    made.filters["clipped"] = clipped
    made.filters["exact"] = escape
    return made


def _safe(value: Any) -> Any:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
