"""Settings that are addresses: each check gives the value back, or raises `ValueError`."""

import re
from urllib.parse import urlsplit

_DATABASE = re.compile(r"^(sqlite|postgres|postgresql)(\+[a-z0-9]+)?://|\.db$")
_SENTRY = re.compile(r"https?://[^/@\s:]+(:[^/@\s]*)?@[^/@\s]+(/[^\s?#]*)?/\d+")


def database(value: str) -> str:
    if not _DATABASE.search(value):
        raise ValueError("unknown database")
    return value


def web(value: str) -> str:
    if value and not value.startswith(("http://", "https://")):
        raise ValueError("no web address")
    return value


def redis(value: str) -> str:
    if value and not value.startswith(("redis://", "rediss://", "unix://")):
        raise ValueError("no address of a Redis")
    return value


def sentry(value: str) -> str:
    """What Sentry calls a DSN: an address with a public key before the host and the number of a project at the end."""
    if value and (not _SENTRY.fullmatch(value) or urlsplit(value).port == 0):
        raise ValueError("no DSN of Sentry")
    return value
