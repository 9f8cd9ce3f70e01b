"""What durable work is called: whose it is stands first, so that a tenant's work can be told from another's."""

from urllib.parse import quote


def owner_prefix(tenant: str) -> str:
    """What the ids of all work of this tenant begin with, and of no other tenant's."""
    return f"{quote(tenant.encode('utf-8', 'surrogatepass'), safe='')}:"


def work_name(tenant: str, kind: str, own: str) -> str:
    """An id of work, or of a partition of it: 'tenant:kind:own'."""
    return f"{owner_prefix(tenant)}{kind}:{own}"
