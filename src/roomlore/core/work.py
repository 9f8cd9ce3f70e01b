"""Names and arguments of durable work. Names begin with the owner, so that a tenant's work can be found."""

from collections.abc import Mapping
from typing import Any

from roomlore.core.errors import InvalidInput
from roomlore.core.json_values import json_copy

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


def checked_arguments(arguments: Mapping[str, Any], *, work_id: str, partition: str) -> dict[str, Any]:
    """Return the arguments of work as they will be read again. Raise `InvalidInput` if they are not plain JSON, or if
    the work has no id or no partition."""
    if not work_id.strip() or not partition:
        raise InvalidInput("Work needs an id and a partition that are not empty.")
    return json_copy(arguments, what="The arguments of work")
