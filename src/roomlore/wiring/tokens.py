"""The access tokens that the settings allow."""

from roomlore.core.errors import InvalidInput
from roomlore.services.tokens import TokenService
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
        raise InvalidInput(
            f"oauth_issuer needs the extra `mcp` ({error.name} is missing): pip install 'roomlore[mcp]'."
        ) from error
    tokens = IssuerTokens(server.oauth_issuer, audience=server.oauth_resource)
    return TokenService(tokens=tokens, user_claim=server.oauth_user_claim)
