"""Network addresses as far as roomlore judges them."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether a name or address always means this machine."""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)
