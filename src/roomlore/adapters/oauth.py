"""Access tokens (JWT) verified with the keys that their authorization server publishes. The packages `jwt` and
`httpx2` come with the extra `mcp`."""

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx2
import jwt
import structlog

from roomlore.adapters.tls import trusted
from roomlore.core.addresses import is_secure_address
from roomlore.core.errors import Forbidden, InvalidInput, Unavailable

_ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures that only the holder of a private key can make. HS256 and its like, and `none`, are not among them."""
_KEY_TYPES = ("RSA", "EC", "OKP")
_TYPES = ("jwt", "at+jwt", "application/at+jwt")
_MAX_TOKEN_CHARS = 16_384
_MAX_BYTES = 512 * 1024
_LEEWAY_SECONDS = 30
_FRESH_SECONDS = 600.0
_PAUSE_SECONDS = 30.0
_USABLE_SECONDS = 3_600.0
_UNREADABLE = (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, ValueError, RecursionError)
"""What reading from a server raises."""

log = structlog.get_logger(__name__)


class IssuerTokens:
    """The port `AccessTokens`, for the tokens of `issuer` whose audience is `audience`.

    The keys are read when they are first needed, every 10 minutes, and when a token names a key that is not known; at
    most every 30 seconds. While the server does not answer, known keys are used for an hour.
    """

    def __init__(
        self, issuer: str, *, audience: str, timeout_seconds: float = 5.0, tick: Callable[[], float] = time.monotonic
    ) -> None:
        self._issuer = issuer
        self._audience = audience
        self._timeout_seconds = timeout_seconds
        self._tick = tick
        self._keys: list[Mapping[str, Any]] = []
        self._read_at = self._tried_at = float("-inf")
        self._reading = asyncio.Lock()

    async def verify(self, token: str) -> Mapping[str, Any]:
        try:
            header = jwt.get_unverified_header(_short(token))
            algorithm = _algorithm(header)
            key = jwt.PyJWK(dict(await self._key(header.get("kid"))), algorithm)
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=self._audience,
                issuer=self._issuer,
                leeway=_LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud"]},
            )
        except (jwt.PyJWTError, RecursionError) as error:
            raise Forbidden("token_invalid", why=_REASONS.get(type(error), "it cannot be read")) from error
        return claims

    async def _key(self, name: str | None) -> Mapping[str, Any]:
        """Return the key of this name, or the only one if the token names none. Raise `Forbidden` if there is none."""
        key = self._find(name)
        if key is None or self._age() > _FRESH_SECONDS:
            async with self._reading:
                key = self._find(name)
                if key is None or self._age() > _FRESH_SECONDS:
                    await self._read()
                    key = self._find(name)
        if self._age() > _USABLE_SECONDS:
            raise Unavailable("oauth_keys_unreadable")
        if key is None:
            raise Forbidden("token_key_foreign")
        return key

    def _find(self, name: str | None) -> Mapping[str, Any] | None:
        named = self._keys if name is None else [key for key in self._keys if key.get("kid") == name]
        return named[0] if len(named) == 1 else None

    def _age(self) -> float:
        return self._tick() - self._read_at

    async def _read(self) -> None:
        if self._tick() - self._tried_at < _PAUSE_SECONDS:
            return
        self._tried_at = self._tick()
        try:
            async with (
                asyncio.timeout(self._timeout_seconds),
                _client(self._timeout_seconds) as http,
            ):
                self._keys = _usable(await _json(http, (await _metadata(http, self._issuer))["jwks_uri"]))
        except _UNREADABLE as error:
            log.warning("the keys of the authorization server cannot be read", error=_reason_of(error))
        else:
            self._read_at = self._tick()


@dataclass(frozen=True, slots=True)
class IssuerLook:
    """The published metadata and keys of an authorization server. `keys`: how many can sign tokens. `proves_codes`:
    False if its metadata does not name PKCE (S256), without which hosts of MCP refuse it. `lacks`: the scopes asked for
    that its metadata does not name, where it names any."""

    keys: int
    proves_codes: bool
    lacks: tuple[str, ...] = ()


async def look_at_issuer(issuer: str, *, scopes: Iterable[str], timeout_seconds: float = 5.0) -> IssuerLook:
    """Return what the authorization server publishes now. Raise `InvalidInput` if its metadata names another issuer,
    and `Unavailable` if its metadata or its keys cannot be read."""
    try:
        async with (
            asyncio.timeout(timeout_seconds),
            _client(timeout_seconds) as http,
        ):
            metadata = await _metadata(http, issuer)
            keys = _usable(await _json(http, metadata["jwks_uri"]))
    except InvalidInput:
        raise
    except _UNREADABLE as error:
        raise Unavailable("oauth_server_unusable", issuer=issuer, why=_reason_of(error)) from error
    methods, offered = (_texts(metadata, f"{name}_supported") for name in ("code_challenge_methods", "scopes"))
    lacks = tuple(scope for scope in scopes if offered and scope not in offered)
    return IssuerLook(len(keys), "S256" in methods, lacks)


def _texts(metadata: Mapping[str, Any], name: str) -> list[str]:
    listed = metadata.get(name)
    return [text for text in listed if isinstance(text, str)] if isinstance(listed, list) else []


def _client(timeout_seconds: float) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(timeout=timeout_seconds, follow_redirects=False, verify=trusted())


async def _metadata(http: httpx2.AsyncClient, issuer: str) -> dict[str, Any]:
    """Return the server's metadata (RFC 8414, or OpenID Connect Discovery) with the address of its keys. Raise
    `InvalidInput` if all there is names another issuer, and one of `_UNREADABLE`."""
    other, keyless = None, False
    for address in _addresses_of_metadata(issuer):
        try:
            metadata = await _json(http, address)
        except (httpx2.HTTPStatusError, ValueError):
            continue
        if metadata.get("issuer") != issuer:
            other = other or metadata.get("issuer")
        elif _has_address_of_keys(metadata):
            return metadata
        else:
            keyless = True
    if keyless:
        raise ValueError("its metadata has no https address of its keys (jwks_uri)")
    if isinstance(other, str):
        raise InvalidInput("oauth_issuer_differs", other=f"{other!r:.300}", issuer=repr(issuer))
    raise ValueError("it has no metadata of this issuer")


def _has_address_of_keys(metadata: Mapping[str, Any]) -> bool:
    keys = metadata.get("jwks_uri")
    return isinstance(keys, str) and is_secure_address(keys)


def _reason_of(error: Exception) -> str:
    """Return what went wrong, without anything that a server sent."""
    if isinstance(error, httpx2.HTTPStatusError):
        return f"it answered with {error.response.status_code}"
    if isinstance(error, TimeoutError | httpx2.TimeoutException):
        return "it did not answer in time"
    if isinstance(error, httpx2.HTTPError | httpx2.InvalidURL):
        return f"it cannot be reached ({type(error).__name__})"
    if isinstance(error, InvalidInput):
        return "its metadata names another issuer"
    return str(error) if type(error) is ValueError else "its answer cannot be read"


def _short(token: str) -> str:
    if len(token) > _MAX_TOKEN_CHARS:
        raise jwt.DecodeError
    return token


def _algorithm(header: Mapping[str, Any]) -> str:
    algorithm = header.get("alg")
    if not isinstance(algorithm, str) or algorithm not in _ALGORITHMS:
        raise jwt.InvalidAlgorithmError
    if "crit" in header:
        raise jwt.InvalidTokenError
    if str(header.get("typ", "jwt")).lower() not in _TYPES:
        raise jwt.InvalidTokenError
    return algorithm


_REASONS: Mapping[type[Exception], str] = {
    jwt.ExpiredSignatureError: "it has expired",
    jwt.ImmatureSignatureError: "it is not valid yet",
    jwt.InvalidAudienceError: "it was issued for another audience",
    jwt.InvalidIssuerError: "it comes from another issuer",
    jwt.InvalidAlgorithmError: "it is not signed with an algorithm that is allowed",
    jwt.InvalidSignatureError: "its signature is wrong",
    jwt.MissingRequiredClaimError: "it lacks one of the claims exp, iss and aud",
}


def _addresses_of_metadata(issuer: str) -> list[str]:
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    return list(
        dict.fromkeys(
            (
                f"{origin}/.well-known/oauth-authorization-server{path}",
                f"{origin}/.well-known/openid-configuration{path}",
                f"{origin}{path}/.well-known/openid-configuration",
            )
        )
    )


async def _json(http: httpx2.AsyncClient, address: str) -> dict[str, Any]:
    """Return the JSON object at an address. Raise `httpx2.HTTPStatusError` for any status but 200, and `ValueError`."""
    body = b""
    async with http.stream("GET", address, headers={"Accept": "application/json"}) as answer:
        if answer.status_code != 200:
            raise httpx2.HTTPStatusError(str(answer.status_code), request=answer.request, response=answer)
        async for piece in answer.aiter_bytes():
            body += piece
            if len(body) > _MAX_BYTES:
                raise ValueError("its answer is too long")
    parsed = json.loads(body)
    if not isinstance(parsed, dict):
        raise ValueError("its answer is no JSON object")
    return parsed


def _usable(published: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the public keys for signatures. Raise `ValueError` if there are none."""
    keys = published.get("keys")
    usable: list[Mapping[str, Any]] = [
        key
        for key in (keys if isinstance(keys, list) else [])
        if isinstance(key, dict) and key.get("kty") in _KEY_TYPES and key.get("use", "sig") == "sig"
    ]
    if not usable:
        raise ValueError("it publishes no key for signatures")
    return usable
