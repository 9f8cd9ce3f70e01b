"""The port through which access tokens of an authorization server are verified."""

from collections.abc import Mapping
from typing import Any, Protocol


class AccessTokens(Protocol):
    """The access tokens that one authorization server issues for one audience."""

    async def verify(self, token: str) -> Mapping[str, Any]:
        """Return the claims of a token whose signature, issuer, audience and times are right. Raise `Forbidden` for
        any other, and `Unavailable` if the server's keys cannot be read."""
        ...
