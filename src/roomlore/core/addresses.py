"""Network addresses: which are this machine, which are public, and how a request to a webhook is signed (Standard
Webhooks).
"""

import base64
import binascii
import hashlib
import hmac
import ipaddress
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

from roomlore.core.errors import InvalidInput
from roomlore.core.patterns import lazy_pattern

_PREFIX = "whsec_"
_AROUND_IPV4 = (IPv6Network("64:ff9b::/96"), IPv6Network("::/96"))
"""Networks of NAT64 and of IPv4-compatible addresses, whose last 32 bits are an IPv4 address."""
_LOCAL_NAT64 = IPv6Network("64:ff9b:1::/48")


def signed_headers(body: bytes, *, message_id: str, seconds: int, secret: str) -> dict[str, str]:
    """Return the headers with which the receiver checks that the body comes from here, and when it was sent.

    `message_id`: the same for each attempt, so that the receiver can drop repeats. `secret`: any text, or base64 after
    `whsec_`.
    """
    signed = b".".join((message_id.encode(), str(seconds).encode(), body))
    digest = hmac.new(_key(secret), signed, hashlib.sha256).digest()
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


def _key(secret: str) -> bytes:
    if secret.startswith(_PREFIX):
        try:
            return base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
        except binascii.Error:
            pass
    return secret.encode()


def check_public(host: str, addresses: Sequence[str], *, refusal: str = "webhook_address_private") -> None:
    """Raise `InvalidInput`, with the code `refusal`, unless all addresses of a host are on the public internet."""
    for address in addresses:
        if not _is_public(ip_address(address.partition("%")[0])):
            raise InvalidInput(refusal, host=f"{host!r:.80}")


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if any(address in network for network in _AROUND_IPV4):
            inner = IPv4Address(int(address) & 0xFFFFFFFF)
        if address.is_site_local or address in _LOCAL_NAT64 or not (inner is None or _is_public(inner)):
            return False
    return address.is_global and not address.is_multicast


_PLAIN = lazy_pattern(r"[!#-;=?-\[\]_a-z~]+")
"""Characters of a URL that need no escape in a header or a path of a route."""
# A host, in brackets if it is an IPv6 address, and a port; no user name and no path.
_AUTHORITY = lazy_pattern(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9_-]+(?:\.[a-z0-9_-]+)*))(?::[0-9]{1,5})?")
_USUAL_LOOPBACKS = ("localhost", "127.0.0.1", "::1")
"""Known without being parsed, which saves time with each request over HTTP."""


def is_loopback(host: str) -> bool:
    """Return True if a name or address always means this machine."""
    if host in _USUAL_LOOPBACKS:
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


def is_secure_address(url: str) -> bool:
    """Return True for an https URL without a user's name and a fragment, and for an http URL of this machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
        _ = parts.port
    except ValueError:
        return False
    if not host or "@" in parts.netloc or "#" in url or not _PLAIN.fullmatch(url):
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))


def host_of(authority: str) -> str | None:
    """Return the host of `host`, `host:port` or `[IPv6]:port` in lower case, or None for any other text, even if it
    begins like an address."""
    match = _AUTHORITY.fullmatch(authority.lower())
    return match and (match[1] or match[2])


def is_page_of(origin: str, host: str) -> bool:
    """Return True if an Origin header names a web page of the address in the Host header; a page of a browser's
    extension has a scheme of its own and may have any name behind it."""
    scheme, _, authority = origin.lower().partition("://")
    return scheme in ("http", "https") and authority == host.strip().lower()
