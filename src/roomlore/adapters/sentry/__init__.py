"""Errors told to Sentry. The SDK is loaded when reports are opened, and not before."""

import asyncio
import urllib.error
import urllib.request
from contextlib import closing
from http.client import HTTPException
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from roomlore.core.errors import InvalidInput, Unavailable
from roomlore.ports.coordination import ErrorReports


def open_reports(dsn: str) -> ErrorReports:
    """Errors sent to the project that `dsn` names, from a thread of their own. The program's own use of Sentry, where
    it has one, stays as it is. SENTRY_ENVIRONMENT holds.

    Raises `InvalidInput` where the extra is not installed.
    """
    if find_spec("sentry_sdk") is None:
        raise InvalidInput("sentry_dsn is set, which needs the extra: pip install 'roomlore[sentry]'.")
    from roomlore.adapters.sentry.reports import SentryReports

    return SentryReports(dsn)


async def reach_sentry(dsn: str, *, timeout_seconds: float) -> str:
    """The host that errors are sent to, once it answers anything at all; nothing is told, and the key stays here.

    Raises `Unavailable`.
    """
    parts = urlsplit(dsn)
    host = parts.netloc.rpartition("@")[2]
    await asyncio.to_thread(_ask, f"{parts.scheme}://{host}/", timeout_seconds)
    return host


class _Staying(urllib.request.HTTPRedirectHandler):
    """Takes a redirect for an answer."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _ask(url: str, timeout_seconds: float) -> None:
    try:
        with closing(urllib.request.build_opener(_Staying).open(url, timeout=timeout_seconds)):
            pass
    except urllib.error.HTTPError as answer:
        answer.close()
    except (OSError, HTTPException, ValueError) as error:
        raise Unavailable(
            f"It cannot be reached ({type(error).__name__}). Check sentry_dsn, the network and the proxy."
        ) from error
