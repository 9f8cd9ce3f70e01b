"""What durable work is called: whose it is stands first, so that a tenant's work can be told from another's."""

_AS_THEY_ARE = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-._~")


def owner_prefix(tenant: str) -> str:
    """What the ids of all work of this tenant begin with, and of no other tenant's: not even for who takes capital
    letters for small ones, as SQLite does where it looks for a beginning."""
    escaped = (
        chr(byte) if byte in _AS_THEY_ARE else f"%{byte:02X}" for byte in tenant.encode("utf-8", "surrogatepass")
    )
    return f"{''.join(escaped)}:"


def work_name(tenant: str, kind: str, own: str) -> str:
    """An id of work, or of a partition of it: 'tenant:kind:own'."""
    return f"{owner_prefix(tenant)}{kind}:{own}"
