"""Access tokens of OAuth 2, which an authorization server issues to people."""

from roomlore.core.access_tokens import TokenGrant, grant_of
from roomlore.ports.access_tokens import AccessTokens


class TokenService:
    """The access tokens of one authorization server. `user_claim`: the claim with a person's id."""

    def __init__(self, *, tokens: AccessTokens, user_claim: str) -> None:
        self._tokens = tokens
        self._user_claim = user_claim

    async def authenticate(self, token: str) -> TokenGrant:
        """Return what a token allows. Raise `Forbidden` if it is not valid here, and `Unavailable` if that cannot be
        found out now."""
        return grant_of(await self._tokens.verify(token), user_claim=self._user_claim)
