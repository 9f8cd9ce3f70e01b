"""Names of keys. Two sessions never share one, whatever their tenants and conversations are called."""

from urllib.parse import quote

from roomlore.core.models import DEFAULT_TENANT

_SESSION = b"short_term_memory:session:"


def session_key(*, tenant: str, conversation_id: str) -> bytes:
    """`short_term_memory:session:{conversation_id}`, with `{tenant}:` before it except for the default tenant.

    In the tenant's name everything but ASCII letters, digits and `_.-~` is percent-encoded, so that the first colon
    ends it. A lone surrogate takes the three bytes that UTF-8 would have for it.
    """
    key = _SESSION + as_bytes(conversation_id)
    return key if tenant == DEFAULT_TENANT else f"{quote(as_bytes(tenant), safe='')}:".encode() + key


def as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def as_text(stored: bytes) -> str | None:
    """None where it is no text."""
    try:
        return stored.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None
