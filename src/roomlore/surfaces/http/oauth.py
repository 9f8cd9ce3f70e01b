"""OAuth 2 for MCP: the metadata by which clients find the authorization server (RFC 9728), and the access tokens."""

from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from roomlore.core.access_tokens import TOKEN_SCOPES, TokenGrant
from roomlore.core.errors import Forbidden
from roomlore.services.keys import TokenService
from roomlore.settings import Settings
from roomlore.surfaces.http import problems
from roomlore.surfaces.http.answers import dump
from roomlore.wiring import make_tokens

METADATA_PATH = "/.well-known/oauth-protected-resource"
_READ = next(name for name, scope in TOKEN_SCOPES.items() if scope == "read")


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
            "scopes_supported": [_READ] if read_only else list(TOKEN_SCOPES),
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
            detail = f"This access token lacks the scope {_READ}, which MCP needs."
            raise self.refused(403, detail, error="insufficient_scope", scope=_READ)
        return grant

    def refused(self, status: int, detail: str, **more: str) -> problems.Refused:
        """Return a refusal that leads clients to the metadata."""
        told: Iterable[tuple[str, str]] = {"realm": "roomlore", **more, "resource_metadata": self._address}.items()
        header = ", ".join(f'{name}="{value}"' for name, value in told)
        return problems.Refused(status, detail, {"WWW-Authenticate": f"Bearer {header}"})


def protected_resource(settings: Settings, *, read_only: bool = False) -> ProtectedResource | None:
    """Return MCP as a protected resource; None if no authorization server is set. Raise `InvalidInput`."""
    tokens = make_tokens(settings)
    return None if tokens is None else ProtectedResource(settings, tokens, read_only=read_only)
