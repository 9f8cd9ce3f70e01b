"""The access tokens that the settings allow."""

from collections.abc import Sequence

from roomlore.core.access_tokens import TOKEN_SCOPES
from roomlore.core.errors import InvalidInput
from roomlore.core.health import Finding, say
from roomlore.services.keys import TokenService
from roomlore.settings import Settings


def make_tokens(settings: Settings) -> TokenService | None:
    """Return the access tokens of the authorization server `oauth_issuer`; None if it is not set. Raise `InvalidInput`
    if the extra `mcp` is not installed."""
    server = settings.server
    if not server.oauth_issuer:
        return None
    try:
        from roomlore.adapters.oauth import IssuerTokens
    except ModuleNotFoundError as error:
        raise _extra_missing(error) from error
    tokens = IssuerTokens(server.oauth_issuer, audience=server.oauth_resource)
    return TokenService(verify=tokens.verify, user_claim=server.oauth_user_claim)


async def examine_issuer(settings: Settings, timeout_seconds: float) -> Sequence[Finding]:
    """Return what is found at the authorization server; nothing if none is set. Raise `InvalidInput`, `Unavailable`."""
    server = settings.server
    if not server.oauth_issuer:
        return []
    try:
        from roomlore.adapters.oauth import look_at_issuer
    except ModuleNotFoundError as error:
        raise _extra_missing(error) from error
    look = await look_at_issuer(server.oauth_issuer, scopes=TOKEN_SCOPES, timeout_seconds=timeout_seconds)
    said = say("oauth.answers", issuer=server.oauth_issuer, keys=look.keys, resource=server.oauth_resource)
    if not look.proves_codes:
        return [Finding("oauth", "warn", said, say("oauth.pkce.do"))]
    if look.lacks:
        return [Finding("oauth", "warn", said, say("oauth.scopes.do", scopes=", ".join(look.lacks)))]
    return [Finding("oauth", "ok", said)]


def _extra_missing(error: ModuleNotFoundError) -> InvalidInput:
    return InvalidInput(f"oauth_issuer needs the extra `mcp` ({error.name} is missing): pip install 'roomlore[mcp]'.")
