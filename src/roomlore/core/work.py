"""Names of durable work. They begin with the owner, so that a tenant's work can be found."""

_AS_THEY_ARE = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-._~")


def owner_prefix(tenant: str) -> str:
    """Return the prefix of the ids of all work of this tenant, and of no other tenant's, even under case-insensitive
    comparison, as SQLite does in a prefix search."""
    escaped = (
        chr(byte) if byte in _AS_THEY_ARE else f"%{byte:02X}" for byte in tenant.encode("utf-8", "surrogatepass")
    )
    return f"{''.join(escaped)}:"


def work_name(tenant: str, kind: str, own: str) -> str:
    """Return the id of work, or of a partition of it: 'tenant:kind:own'."""
    return f"{owner_prefix(tenant)}{kind}:{own}"
