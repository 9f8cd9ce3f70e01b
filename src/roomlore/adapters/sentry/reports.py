"""The port `ErrorReports` on Sentry's SDK, with a client of its own that hooks into nothing."""

import asyncio
import logging
from importlib.metadata import version
from typing import Any

from sentry_sdk import Client
from sentry_sdk.transport import HttpTransport
from sentry_sdk.types import Event, Hint
from structlog.contextvars import get_contextvars
from urllib3 import Retry

from roomlore.adapters.sentry.events import event_of
from roomlore.ports.coordination import Attributes

_CLOSE_SECONDS = 3.0
_OFF: dict[str, Any] = {
    "default_integrations": False,
    "auto_enabling_integrations": False,
    "auto_session_tracking": False,
    "enable_backpressure_handling": False,
    "send_client_reports": False,
    "include_local_variables": False,
    "include_source_context": False,
    "max_request_body_size": "never",
    "max_breadcrumbs": 0,
    "transport_queue_size": 20,
    "spotlight": False,
    "debug": False,
}
"""What the SDK would gather or begin by itself, and how many errors may wait."""

log = logging.getLogger(__name__)


class _Transport(HttpTransport):
    """Sends from one thread; what does not find room in its queue, or cannot be sent, is dropped. Redirects are not
    followed."""

    TIMEOUT = 5

    def _get_pool_options(self) -> dict[str, Any]:
        return {**super()._get_pool_options(), "retries": Retry(3, redirect=False)}

    def on_dropped_event(self, reason: str) -> None:
        log.warning("an error could not be told to Sentry", extra={"why": reason})


class SentryReports:
    def __init__(self, dsn: str) -> None:
        release = f"roomlore@{version('roomlore')}"
        self._client = Client(dsn, transport=_Transport, release=release, before_send=_without_machine, **_OFF)

    def tell(self, error: BaseException, *, attributes: Attributes | None = None) -> None:
        self._client.capture_event(event_of(error, {**(attributes or {}), **_ids()}))

    async def close(self) -> None:
        await asyncio.to_thread(self._client.close, _CLOSE_SECONDS)


def _ids() -> dict[str, str]:
    """Of the request or the work that runs, as its log lines have them; a work's id begins with its tenant, who is not
    told."""
    now = get_contextvars()
    ids: dict[str, str] = {name: str(now[name]) for name in ("request_id", "job", "work_id") if name in now}
    return ids if "work_id" not in ids else {**ids, "work_id": ids["work_id"].partition(":")[2]}


def _without_machine(event: Event, _: Hint) -> Event:
    event.pop("server_name", None)
    return event
