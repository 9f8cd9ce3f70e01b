"""Authenticate callers: API keys, shown once and stored as a hash, and access tokens of an authorization server."""

import hashlib
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from roomlore.core.access_tokens import TokenGrant, grant_of
from roomlore.core.errors import Forbidden, InvalidInput, NotFound, listed
from roomlore.core.models import ApiKey
from roomlore.ports.shared import Backends, Service

if TYPE_CHECKING:
    from roomlore.storage.stamps import Stamp

SCOPES = ("read", "write", "admin")
_PREFIX = "rl_"


class KeyService(Service):
    """The API keys of one tenant. Only `authenticate` looks across tenants: the key tells its tenant."""

    def __init__(self, backends: Backends, *, tenant: str) -> None:
        super().__init__(backends)
        self._tenant = tenant
        self._exists = False
        self._none_at: Stamp | None = None

    async def create(self, name: str, *, scopes: Sequence[str] = ("read", "write")) -> tuple[ApiKey, str]:
        """Return a new key and its secret (256 random bits), which is not stored and cannot be shown again."""
        wrong = [scope for scope in scopes if scope not in SCOPES]
        if wrong or not scopes:
            raise InvalidInput("key_scopes_invalid", known=", ".join(SCOPES), value=", ".join(scopes) or "none")
        if not isinstance(name, str) or not name.strip():
            raise InvalidInput("key_name_missing")
        key = ApiKey(
            key_id=self._ids.new(),
            tenant=self._tenant,
            name=name,
            scopes=tuple(dict.fromkeys(scopes)),
            created_at=self._clock.now(),
        )
        secret = _PREFIX + secrets.token_urlsafe(32)
        async with self._storage.writing() as work:
            await work.keys.add(key=key, secret_hash=_hash(secret))
        return key, secret

    async def list(self, *, all_tenants: bool = False) -> list[ApiKey]:
        """Return the keys, including revoked ones, oldest first."""
        async with self._storage.reading(None if all_tenants else self._tenant) as work:
            return await work.keys.page()

    async def revoke(self, key_id: str) -> str:
        """Revoke at once the key with this id, or the only key that has or had this name. Return its id. Revoking it
        again changes nothing.

        Raise `NotFound` if this tenant has no such key, `InvalidInput` that lists ids if several keys have the name.
        """
        async with self._storage.writing(self._tenant) as work:
            revoked = _meant(key_id, await work.keys.page())
            await work.keys.revoke(key_id=revoked, now=self._clock.now())
        return revoked

    async def authenticate(self, secret: str) -> ApiKey:
        """Return the key of this secret. Raise `Forbidden` if there is none or it was revoked."""
        async with self._storage.reading() as work:
            key = await work.keys.match(secret_hash=_hash(secret))
        if key is None:
            raise Forbidden("key_revoked")
        return key

    async def any(self) -> bool:
        """Return True if a key was ever created, for any tenant. Revoking the last one must not open access again, so
        one that was seen is not looked for again; nor where nothing was written since there was none."""
        if not self._exists:
            stamp = self._storage.stamp()
            if stamp is None or stamp != self._none_at:
                async with self._storage.reading() as work:
                    self._exists = await work.keys.any()
                self._none_at = stamp
        return self._exists


def _meant(given: str, keys: Sequence[ApiKey]) -> str:
    """Return the id of the key with this id or name. Revoked keys count too: else, to revoke a key by its name
    again would revoke the one that came in its place."""
    if any(key.key_id == given for key in keys):
        return given
    named_alike = [key.key_id for key in keys if key.name == given]
    if not named_alike:
        raise NotFound("key_unknown", key=repr(given))
    if len(named_alike) > 1:
        raise InvalidInput("key_name_shared", count=len(named_alike), name=repr(given), listed=listed(named_alike))
    return named_alike[0]


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


class TokenService:
    """The access tokens of OAuth 2 that one authorization server issues to people. `verify`: returns the claims of a
    token whose signature, issuer, audience and times are right, and raises `Forbidden` for any other and `Unavailable`
    if the server's keys cannot be read. `user_claim`: the claim with a person's id."""

    def __init__(self, *, verify: Callable[[str], Awaitable[Mapping[str, Any]]], user_claim: str) -> None:
        self._verify = verify
        self._user_claim = user_claim

    async def authenticate(self, token: str) -> TokenGrant:
        """Return what a token allows. Raise `Forbidden` if it is not valid here, and `Unavailable` if that cannot be
        found out now."""
        return grant_of(await self._verify(token), user_claim=self._user_claim)
