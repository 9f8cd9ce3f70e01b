"""Authentication: API keys, and requests without one.

While no key exists, only this machine has access, and only under a host name of this machine: a web page elsewhere
could otherwise reach it through DNS or a cross-site request. Once a key exists, everything but /health needs one. In
the console a person signs in with a key, which a cookie then holds.

If the settings name an authorization server, MCP always needs a key or an access token of that server, and tells
clients where to get one, in the metadata of RFC 9728. No other path takes access tokens.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import Depends, Query
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from roomlore.core.access_tokens import TOKEN_SCOPES, TokenGrant
from roomlore.core.addresses import host_of, is_loopback, is_page_of
from roomlore.core.audience import MAX_NAME_CHARS, check_viewer
from roomlore.core.errors import Forbidden, RoomloreError, StorageUnavailable
from roomlore.core.texts import Phrase
from roomlore.services.keys import TokenService
from roomlore.settings import Settings
from roomlore.wiring import Lore, make_tokens
from roomlore_console import is_console, is_open
from roomlore_server.http import problems
from roomlore_server.http.answers import dump
from roomlore_server.http.console_route import key_of_cookie, to_sign_in
from roomlore_server.http.turns import Turns

MCP_PATH = "/mcp"
MAX_CONNECTIONS = 1000
"""Connections at a time, three in four of which one tenant may keep waiting: a process serves no more at once."""
METADATA_PATH = "/.well-known/oauth-protected-resource"
OPEN_PATHS = ("/health/live", "/health/ready")
_ALWAYS_KEYED_PATHS = ("/v1/", "/v3/")
"""Paths of protocols whose clients always send a key: while none exists, they may send any."""
_UNCOUNTED_PATHS = ("/metrics",)
"""Paths of operators, which do not count for the quota of requests."""
_TOO_MANY_WAITING = (
    "So many requests of this tenant wait for their turn that others could find no connection; send fewer at a time, "
    "and this one again."
)
_SEVERAL_HOSTS = "The request has several Host headers, so it does not say whom it is for; send one."
_READING_METHODS = ("GET", "HEAD")
_NO_CREDENTIALS = (
    "Send an access token or an API key as `Authorization: Bearer ...`; the header WWW-Authenticate says where clients "
    "find the authorization server."
)
_UNKNOWN_CREDENTIALS = (
    "This is no API key of roomlore that is in use, and no access token that roomlore can read, which must be a JWT. "
    "Sign in at the authorization server (the header WWW-Authenticate says where clients find it), or make a key with "
    "`roomlore keys create NAME`."
)
_TOKEN_READ_SCOPE = next(name for name, scope in TOKEN_SCOPES.items() if scope == "read")
ALL_SCOPES = frozenset({"read", "write", "admin"})
_CALLER_REMEMBERED_FOR = timedelta(minutes=15)
_MAX_REMEMBERED_CALLERS = 1_000


def needs_no_key(path: str) -> bool:
    """Return True if a path needs no key: the health of the service, what the console needs for signing in, and where
    clients of MCP look for an authorization server."""
    return path in OPEN_PATHS or is_open(path) or path == METADATA_PATH or path.startswith(f"{METADATA_PATH}/")


@dataclass(frozen=True, slots=True)
class Caller:
    """One tenant's roomlore, the scopes of the caller's key (`admin` includes all) and its id, '' without a key.
    `viewer`: the only one to whom answers are shown; None if the caller may name any."""

    lore: Lore
    scopes: frozenset[str]
    key_id: str = ""
    viewer: str | None = None

    def need(self, scope: str) -> Lore:
        if scope not in self.scopes and "admin" not in self.scopes:
            raise Forbidden("scope_lacking", scope=scope, again=scope)
        return self.lore


class ProtectedResource:
    """MCP as the resource that the tokens of an authorization server open."""

    def __init__(self, settings: Settings, tokens: TokenService, *, read_only: bool) -> None:
        self._tokens = tokens
        resource = urlsplit(settings.server.oauth_resource)
        self._path = METADATA_PATH + resource.path.rstrip("/")
        self._address = f"{resource.scheme}://{resource.netloc}{self._path}"
        self._metadata = {
            "resource": settings.server.oauth_resource,
            "authorization_servers": [settings.server.oauth_issuer],
            "scopes_supported": [_TOKEN_READ_SCOPE] if read_only else list(TOKEN_SCOPES),
            "bearer_methods_supported": ["header"],
            "resource_name": "roomlore",
        }

    def routes(self) -> list[Route]:
        """Return the routes of the metadata: where RFC 9728 puts it for this resource, and at the root."""

        async def metadata(_: Request) -> Response:
            return Response(dump(self._metadata), media_type="application/json")

        paths = dict.fromkeys((METADATA_PATH, self._path))
        return [Route(path, metadata, methods=["GET"], include_in_schema=False) for path in paths]

    async def grant(self, token: str) -> TokenGrant:
        """Return what an access token allows. Raise `Refused` with a header that says how to get another, and
        `Unavailable`."""
        try:
            grant = await self._tokens.authenticate(token)
        except Forbidden as error:
            raise self.refused(401, str(error), error="invalid_token") from error
        if "read" not in grant.scopes:
            detail = Phrase("token_scope_lacking", scope=_TOKEN_READ_SCOPE)
            raise self.refused(403, detail, error="insufficient_scope", scope=_TOKEN_READ_SCOPE)
        return grant

    def refused(self, status: int, detail: str, **more: str) -> problems.Refused:
        """Return a refusal that leads clients to the metadata."""
        parameters: Iterable[tuple[str, str]] = {
            "realm": "roomlore",
            **more,
            "resource_metadata": self._address,
        }.items()
        header = ", ".join(f'{name}="{value}"' for name, value in parameters)
        return problems.Refused(status, detail, {"WWW-Authenticate": f"Bearer {header}"})


def protected_resource(settings: Settings, *, read_only: bool = False) -> ProtectedResource | None:
    """Return MCP as a protected resource; None if no authorization server is set. Raise `InvalidInput`."""
    tokens = make_tokens(settings)
    return None if tokens is None else ProtectedResource(settings, tokens, read_only=read_only)


class _RememberedCallers:
    """The callers let in during the last 15 minutes, by a hash of what they showed: while the database is down they
    still are, so that replies go on. A key that was revoked meanwhile is among them."""

    def __init__(self) -> None:
        self._callers: OrderedDict[str, tuple[datetime, Caller]] = OrderedDict()

    async def identify(self, lore: Lore, scope: Scope) -> Caller:
        """Return the caller. Raise as `_identify_by_key` does."""
        headers = Headers(scope=scope)
        shown = headers.get("authorization") or key_of_cookie(scope)
        name = sha256(shown.encode("utf-8", "surrogatepass")).hexdigest() if shown else ""
        try:
            caller = await _identify_by_key(lore, scope, headers)
        except StorageUnavailable:
            known = self._callers.get(name)
            if known is None or lore.now() - known[0] > _CALLER_REMEMBERED_FOR:
                raise
            if not shown:
                _check_sent_from_here(scope, headers, lore.settings)
            return known[1]
        except (Forbidden, problems.Refused):
            self._callers.pop(name, None)
            raise
        self._callers[name] = lore.now(), caller
        self._callers.move_to_end(name)
        if len(self._callers) > _MAX_REMEMBERED_CALLERS:
            self._callers.popitem(last=False)
        return caller


class Guard:
    """Admits a request with a `Caller` in its state when it is its tenant's turn, or answers with a problem."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._remembered = _RememberedCallers()
        self._turns = Turns()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and len(Headers(scope=scope).getlist("host")) > 1:
            await problems.respond(scope, 400, _SEVERAL_HOSTS)(scope, receive, send)
            return
        if scope["type"] != "http" or needs_no_key(scope["path"]):
            await self._app(scope, receive, send)
            return
        refusal = await self._let_in(scope)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        lore: Lore = scope["state"]["caller"].lore
        if self._turns.waiting(lore.tenant) >= max(MAX_CONNECTIONS * 3 // 4, 1):
            await problems.respond(scope, 429, _TOO_MANY_WAITING, {"Retry-After": "1"})(scope, receive, send)
            return
        async with self._turns.turn(lore.tenant):
            await self._app(scope, receive, send)

    async def _let_in(self, scope: Scope) -> Response | None:
        lore: Lore = scope["app"].state.lore
        try:
            caller = scope["state"]["caller"] = await self._identify(lore, scope)
            if scope["path"] not in _UNCOUNTED_PATHS:
                await caller.lore.quotas.admit()
        except problems.Refused as refused:
            if is_console(scope["path"]):
                return to_sign_in(scope)
            return problems.respond(scope, refused.status_code, str(refused.detail), refused.headers)
        except RoomloreError as error:
            return problems.of_roomlore(scope, error)
        return None

    async def _identify(self, lore: Lore, scope: Scope) -> Caller:
        protected: ProtectedResource | None = scope["app"].state.protected
        if protected is None or scope["path"] != MCP_PATH:
            return await self._remembered.identify(lore, scope)
        given = Headers(scope=scope).get("authorization")
        token = None if given is None else _access_token_in(given)
        if token is not None:
            # Not among those who are remembered: a token expires, and opens nothing but MCP.
            grant = await protected.grant(token)
            return Caller(lore, grant.scopes, viewer=grant.viewer)
        if given is None and key_of_cookie(scope) is None:
            raise protected.refused(401, _NO_CREDENTIALS)
        try:
            return await self._remembered.identify(lore, scope)
        except problems.Refused as refused:
            if given is None or not given.lower().startswith("bearer "):
                raise protected.refused(refused.status_code, str(refused.detail)) from refused
            raise protected.refused(401, _UNKNOWN_CREDENTIALS, error="invalid_token") from refused


def _access_token_in(given: str) -> str | None:
    """Return the access token of an Authorization header: a JWT, which has two dots. A key has none."""
    scheme, _, secret = given.partition(" ")
    return secret.strip() if scheme.lower() == "bearer" and secret.count(".") == 2 else None


async def _identify_by_key(lore: Lore, scope: Scope, headers: Headers) -> Caller:
    """Return the caller whose key the request carries; while no key exists, a caller on this machine. Raise `Refused`
    and `Forbidden`."""
    given = headers.get("authorization")
    if given is not None and not (scope["path"].startswith(_ALWAYS_KEYED_PATHS) and not await lore.keys.any()):
        return await _caller_of_header(lore, given)
    secret = key_of_cookie(scope)
    if secret is not None:
        return await _caller_of_key(lore, secret)
    if await lore.keys.any():
        raise _unauthorised(Phrase("key_needed"))
    _check_sent_from_here(scope, headers, lore.settings)
    return Caller(lore, ALL_SCOPES)


async def _caller_of_header(lore: Lore, given: str) -> Caller:
    scheme, _, secret = given.partition(" ")
    if scheme.lower() not in ("bearer", "token") or not secret.strip():
        raise _unauthorised(Phrase("authorization_invalid"))
    return await _caller_of_key(lore, secret.strip())


async def _caller_of_key(lore: Lore, secret: str) -> Caller:
    try:
        key = await lore.keys.authenticate(secret)
    except Forbidden as error:
        raise _unauthorised(str(error)) from error
    return Caller(lore.for_tenant(key.tenant), frozenset(key.scopes), key.key_id)


def _unauthorised(detail: str) -> problems.Refused:
    return problems.Refused(401, detail, {"WWW-Authenticate": 'Bearer realm="roomlore"'})


def _check_sent_from_here(scope: Scope, headers: Headers, settings: Settings) -> None:
    client = scope.get("client")
    if client and not is_loopback(client[0]):
        raise Forbidden("key_needed_elsewhere")
    if not _names_this_machine(headers.get("host", ""), settings):
        raise Forbidden("host_not_allowed")
    if not _from_own_page(scope["method"], headers):
        raise Forbidden("origin_not_allowed")


def _names_this_machine(authority: str, settings: Settings) -> bool:
    name = host_of(authority.strip())
    return name is not None and (
        is_loopback(name) or name in {allowed.lower() for allowed in settings.server.allowed_hosts}
    )


def _from_own_page(method: str, headers: Headers) -> bool:
    """Return True if the request came from a page of this same origin, or from no page. Another port is another site,
    as a program there may show pages of anybody. Browsers send no origin for an embedded image or script, so the fetch
    metadata decides. A link from another site is allowed, as that site cannot read the answer."""
    if not all(is_page_of(origin, headers.get("host", "")) for origin in headers.getlist("origin")):
        return False
    if headers.get("sec-fetch-site", "none") in ("same-origin", "none"):
        return True
    is_followed_link = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return method in _READING_METHODS and is_followed_link


async def caller_of(request: Request) -> Caller:
    """Return the sender of the request."""
    caller: Any = request.state.caller
    assert isinstance(caller, Caller)
    return caller


def _needing(scope: str) -> Callable[[Caller], Awaitable[Lore]]:
    """Return a dependency: roomlore, if the caller's key has this scope."""

    async def lore_of(caller: Annotated[Caller, Depends(caller_of)]) -> Lore:
        return caller.need(scope)

    return lore_of


def needed_viewer(caller: Caller, viewer: str | None) -> str | None:
    """Return the checked viewer; None for an administrator who named none, who is shown everything. Raise `Forbidden`
    if the key needs one or the caller may not name this one, `InvalidInput`."""
    if caller.viewer is not None:
        if viewer is not None and str(check_viewer(viewer)) != caller.viewer:
            raise Forbidden("token_viewer_given")
        return caller.viewer
    if viewer is not None:
        return str(check_viewer(viewer))
    if "admin" not in caller.scopes:
        raise Forbidden("viewer_missing")
    return None


_VIEWER_FORM: dict[str, Any] = {"pattern": "^(room|user):.+$", "maxLength": len("room:") + MAX_NAME_CHARS}


async def _viewer(
    caller: Annotated[Caller, Depends(caller_of)],
    viewer: Annotated[
        str | None,
        Query(
            description="To whom the answer is shown: room:<id> or user:<id>; it tells what they may know. A key with "
            "the scope admin may leave it out, and is told everything.",
            json_schema_extra=_VIEWER_FORM,
        ),
    ] = None,
) -> str | None:
    return needed_viewer(caller, viewer)


async def _writing_for(
    caller: Annotated[Caller, Depends(caller_of)],
    viewer: Annotated[
        str | None,
        Query(
            description="For whom this is written: room:<id> or user:<id>, who must be able to see the room. It may be "
            "left out.",
            json_schema_extra=_VIEWER_FORM,
        ),
    ] = None,
) -> str | None:
    return None if viewer is None and caller.viewer is None else needed_viewer(caller, viewer)


Reader = Annotated[Lore, Depends(_needing("read"))]
Writer = Annotated[Lore, Depends(_needing("write"))]
Admin = Annotated[Lore, Depends(_needing("admin"))]
ShownTo = Annotated[str | None, Depends(_viewer)]
WritingFor = Annotated[str | None, Depends(_writing_for)]
"""The viewer of a path that takes something in and shows nothing, where one is named."""
