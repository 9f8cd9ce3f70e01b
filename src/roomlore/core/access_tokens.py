"""Grants of OAuth 2 access tokens: the person a token speaks for, and its scopes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from roomlore.core.audience import check_viewer
from roomlore.core.errors import Forbidden, InvalidInput

TOKEN_SCOPES: Mapping[str, str] = {"roomlore:read": "read", "roomlore:write": "write"}
"""Scopes of tokens and the scopes of keys they stand for. None stands for `admin`: an administrator is told
everything, and a token is told only what its person may know."""


@dataclass(frozen=True, slots=True)
class TokenGrant:
    """`viewer`: to whom the answers are shown, `user:<id>`. `scopes`: as those of a key."""

    viewer: str
    scopes: frozenset[str]


def grant_of(claims: Mapping[str, Any], *, user_claim: str) -> TokenGrant:
    """Return what a token with these claims allows. `user_claim`: the claim with the person's id. Raise `Forbidden` if
    the token names no person, or is bound to a key that its sender would have to prove."""
    if "cnf" in claims:
        raise Forbidden("token_sender_bound")
    user = claims.get(user_claim)
    if not isinstance(user, str) or not user.strip():
        raise Forbidden("token_person_missing", claim=user_claim)
    try:
        viewer = str(check_viewer(f"user:{user}"))
    except InvalidInput as error:
        raise Forbidden("token_person_too_long", claim=user_claim) from error
    return TokenGrant(viewer, frozenset(scope for name, scope in TOKEN_SCOPES.items() if name in _scopes(claims)))


def _scopes(claims: Mapping[str, Any]) -> list[str]:
    """Return the scopes of the claim `scope` (RFC 9068), else of `scp`, as some servers call it."""
    given = claims["scope"] if "scope" in claims else claims.get("scp")
    if isinstance(given, str):
        return given.split(" ")
    return [name for name in given if isinstance(name, str)] if isinstance(given, list) else []
