"""The certificates by which servers are trusted, read once for all HTTP clients of the process.

Imported with the clients, as `httpx2` comes with their extras.
"""

import ssl
from functools import cache

import httpx2


@cache
def trusted() -> ssl.SSLContext:
    """Return the context that a client of `httpx2` makes for itself by default, `SSL_CERT_FILE` and `SSL_CERT_DIR`
    included. Reading the certificates takes 30 ms, and a megabyte for each context."""
    return httpx2.create_ssl_context()
