"""Error reports sent to Sentry. The SDK is loaded when reports are opened."""

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
    """Return reports that are sent to the project of `dsn`, on their own thread. The program's own use of Sentry is not
    changed. SENTRY_ENVIRONMENT applies.

    Raises `InvalidInput` if the extra is not installed.
    """
    if find_spec("sentry_sdk") is None:
        raise InvalidInput("sentry_dsn is set, which needs the extra: pip install 'roomlore[sentry]'.")
    from roomlore.adapters.sentry.reports import SentryReports

    return SentryReports(dsn)


async def reach_sentry(dsn: str, *, timeout_seconds: float) -> str:
    """Return the host that errors are sent to, if it gives any answer. No report and no key is sent.

    Raises `Unavailable`.
    """
    parts = urlsplit(dsn)
    host = parts.netloc.rpartition("@")[2]
    await asyncio.to_thread(_ask, f"{parts.scheme}://{host}/", timeout_seconds)
    return host


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect handler that returns a redirect as the answer."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _ask(url: str, timeout_seconds: float) -> None:
    try:
        with closing(urllib.request.build_opener(_NoRedirects).open(url, timeout=timeout_seconds)):
            pass
    except urllib.error.HTTPError as answer:
        answer.close()
    except (OSError, HTTPException, ValueError) as error:
        raise Unavailable(
            f"It cannot be reached ({type(error).__name__}). Check sentry_dsn, the network and the proxy."
        ) from error
