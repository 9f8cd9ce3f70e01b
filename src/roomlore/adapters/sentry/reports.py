"""Error reports for Sentry: types and positions, without texts. The text of an error is left out, since it may quote a
message; so are local variables, source lines and paths of the machine."""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from itertools import islice
from types import TracebackType
from typing import Any

from sentry_sdk import Client
from sentry_sdk.transport import HttpTransport
from sentry_sdk.types import Event, Hint
from structlog.contextvars import get_contextvars
from urllib3 import Retry

from roomlore.core import PACKAGES
from roomlore.ports.coordination import Attributes

log = logging.getLogger(__name__)

_MAX_ERRORS = 10
_MAX_FRAMES = 60


def event_of(error: BaseException, tags: Mapping[str, str | int | float | bool]) -> Event:
    """Return the event of an error. `tags`: searchable values."""
    chain = [_error_fields(error_there) for error_there in islice(_with_causes(error), _MAX_ERRORS)]
    values = {name: str(value) for name, value in tags.items()}
    return {"level": "error", "exception": {"values": chain[::-1]}, "tags": values}


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error, then its causes and contexts, and the members of a group."""
    waiting, seen = [error], set[int]()
    while waiting:
        error_there = waiting.pop(0)
        if id(error_there) in seen:
            continue
        seen.add(id(error_there))
        yield error_there
        waiting += error_there.exceptions if isinstance(error_there, BaseExceptionGroup) else ()
        before = error_there.__cause__ or (None if error_there.__suppress_context__ else error_there.__context__)
        waiting += [before] if before else []


def _error_fields(error: BaseException) -> dict[str, Any]:
    kind = type(error)
    return {"type": kind.__qualname__, "module": kind.__module__, "stacktrace": {"frames": _frames(error)}}


def _frames(error: BaseException) -> list[dict[str, Any]]:
    """Return the frames, the innermost last, as Sentry expects them."""
    return [_frame(trace) for trace in _traces(error.__traceback__)][-_MAX_FRAMES:]


def _traces(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _frame(trace: TracebackType) -> dict[str, Any]:
    code = trace.tb_frame.f_code
    module = str(trace.tb_frame.f_globals.get("__name__", ""))
    return {
        "filename": code.co_filename.replace("\\", "/").rpartition("/")[2],
        "function": code.co_name,
        "module": module,
        "lineno": trace.tb_lineno,
        "in_app": module.partition(".")[0] in PACKAGES,
    }


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
"""Turns off what the SDK would collect or start by itself, and limits how many errors may wait."""


class _Transport(HttpTransport):
    """Sends from one thread. Errors that do not fit in its queue or cannot be sent are dropped. Redirects are not
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
    """Return the ids of the current request or work, as in its log lines. The id of work begins with its tenant, which
    is left out."""
    now = get_contextvars()
    ids: dict[str, str] = {name: str(now[name]) for name in ("request_id", "job", "work_id") if name in now}
    return ids if "work_id" not in ids else {**ids, "work_id": ids["work_id"].partition(":")[2]}


def _without_machine(event: Event, _: Hint) -> Event:
    event.pop("server_name", None)
    return event
