"""Checks of network addresses."""

import ipaddress
import re

_AUTHORITY = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9_-]+(?:\.[a-z0-9_-]+)*))(?::[0-9]{1,5})?")


def is_loopback(host: str) -> bool:
    """Return True if a name or address always means this machine."""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


def host_of(authority: str) -> str | None:
    """Return the host of `host`, `host:port` or `[IPv6]:port` in lower case, or None for any other text, even if it
    begins like an address."""
    found = _AUTHORITY.fullmatch(authority.lower())
    return found and (found[1] or found[2])
