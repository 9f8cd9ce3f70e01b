"""Error reports sent to Sentry. The SDK is loaded when reports are opened."""

import asyncio
import re
import urllib.error
import urllib.request
from collections.abc import Sequence
from contextlib import closing
from http.client import HTTPException
from importlib.util import find_spec
from typing import Annotated, Any, ClassVar
from urllib.parse import urlsplit

from pydantic import BeforeValidator

from roomlore.core.errors import InvalidInput, Unavailable
from roomlore.core.health import Finding, say
from roomlore.ports.backends import REPORTS, Backend, Extra, Host, Section, setting
from roomlore.ports.coordination import ErrorReports

_DSN = re.compile(r"https?://[^/@\s:]+(:[^/@\s]*)?@[^/@\s]+(/[^\s?#]*)?/\d+")


def open_reports(dsn: str) -> ErrorReports:
    """Return reports that are sent to the project of `dsn`, on their own thread. The program's own use of Sentry is not
    changed. SENTRY_ENVIRONMENT applies.

    Raises `InvalidInput` if the extra is not installed.
    """
    if find_spec("sentry_sdk") is None:
        raise InvalidInput("sentry_not_installed")
    from roomlore.adapters.sentry.reports import SentryReports

    return SentryReports(dsn)


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
        raise Unavailable("sentry_unreachable", kind=type(error).__name__) from error


def _dsn(value: Any) -> Any:
    """Check a DSN: an address with a public key before the host and a project number at the end."""
    if isinstance(value, str) and value and (not _DSN.fullmatch(value) or urlsplit(value).port == 0):
        raise ValueError("no DSN of Sentry")
    return value


class SentrySettings(Section):
    """Errors for Sentry."""

    section: ClassVar[str] = "sentry"
    sentry_dsn: Annotated[str, BeforeValidator(_dsn)] = setting(
        "",
        "The Sentry that is told of errors nobody foresaw, without texts; empty: none is.",
        form="a Sentry DSN such as https://PUBLIC_KEY@HOST/PROJECT_NUMBER; a secret",
        hidden="secret",
    )


async def _probe(settings: SentrySettings, _: Host, seconds: float) -> Sequence[Finding]:
    """Return the host that errors are sent to, if it gives any answer. No report and no key is sent."""
    parts = urlsplit(settings.sentry_dsn)
    host = parts.netloc.rpartition("@")[2]
    await asyncio.to_thread(_ask, f"{parts.scheme}://{host}/", seconds)
    return [Finding("sentry", "ok", say("reports.answer", host=host))]


SENTRY = Backend(
    kind=REPORTS,
    name="sentry",
    open=lambda settings, _: open_reports(settings.sentry_dsn),
    settings=SentrySettings,
    lacks=lambda settings: "" if settings.sentry_dsn else "sentry_dsn is not set; give the project's DSN.",
    probe=_probe,
    slow_ms=2000,
    extra=Extra("sentry", "sentry_sdk"),
)
