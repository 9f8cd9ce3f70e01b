"""Connections of the server: how many there may be, and how long a client may keep it waiting.

uvicorn ends a connection that is idle between requests. What it does not bound are heads and bodies that come in part,
answers that nobody reads, and how many connections there are.
"""

import asyncio
import errno
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import structlog
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from roomlore.surfaces.http import problems
from roomlore.surfaces.http.guard import needs_no_key

Phase = Literal["head", "body", "answer", "idle", "work"]

BACKLOG = 128
_BODY_BYTES_A_SECOND = 1_000
_OPEN_BODY_SECONDS = 5.0  # where no key is needed: a small form, such as that of the sign-in
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_TOLD_SECONDS = 60.0
_REASONS = {408: "Request Timeout", 503: "Service Unavailable"}
_SLOW = "The request did not arrive in time (setting request_timeout_seconds); send it faster, or in smaller parts."
_FULL = "There are as many connections as there may be (setting max_connections), and all are at work; try again."
_MADE_ROOM = "The connection was needed before all of the request arrived (setting max_connections); send it again."

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """`connections`: how many at a time; `seconds`: how long a client may take for the head of a request, to go on with
    its body, and to go on taking an answer."""

    connections: int
    seconds: float


class Bounded(asyncio.Protocol):
    """What a protocol of uvicorn needs to keep to `limits`. Made into one by `bounded`."""

    limits: Limits
    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    connections: set["Bounded"]
    cycle: Any
    flow: Any
    timeout_keep_alive_task: asyncio.TimerHandle | None

    _phase: tuple[Phase, Any] = ("head", None)
    _since = 0.0
    _arrived = 0
    _unsent = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._since = self.loop.time()
        if len(self.connections) > self.limits.connections:
            self._keep_to_limit()

    def data_received(self, data: bytes) -> None:
        self._arrived += len(data)
        super().data_received(data)

    def look(self, now: float) -> None:
        """End the connection if its client has kept it waiting for too long."""
        self._observe(now)
        if now - self._since > self._patience():
            self._end()

    def place_in_line(self, now: float) -> tuple[bool, float] | None:
        """Return the place in the order in which connections make room: idle ones first, then those whose client has
        the least time left to send its request. Return None while a request is being answered."""
        self._observe(now)
        phase = self._phase[0]
        if phase == "idle":
            return False, self._since
        if phase in ("head", "body") and not self._has_begun_to_answer():
            return True, self._since + self._patience()
        return None

    def make_room(self) -> None:
        """Close the connection so that another can be served."""
        if self._phase[0] == "body":
            self.refuse(503, _MADE_ROOM)
        else:
            self.transport.close()

    def refuse(self, status: Literal[408, 503], detail: str) -> None:
        """Answer with a problem that no request asked for, and close the connection."""
        self.transport.write(_problem(status, detail))
        self.transport.close()

    def _observe(self, now: float) -> None:
        phase, unsent = (self._awaited(), self.cycle), self.transport.get_write_buffer_size()
        moved = phase[0] == "answer" and unsent != self._unsent
        if phase[0] != self._phase[0] or phase[1] is not self._phase[1] or moved:
            self._phase, self._since, self._arrived = phase, now, 0
        self._unsent = unsent

    def _awaited(self) -> Phase:
        if self.transport.is_closing() or self.flow.write_paused:
            return "answer"
        if self.cycle is None or self.cycle.response_complete:
            if self.transport.get_write_buffer_size():
                return "answer"
            return "head" if self.timeout_keep_alive_task is None else "idle"
        return "body" if self.cycle.more_body and not self.flow.read_paused else "work"

    def _patience(self) -> float:
        phase = self._phase[0]
        if phase in ("work", "idle"):
            return float("inf")
        if phase != "body":
            return self.limits.seconds
        if needs_no_key(self.cycle.scope["path"]):
            return min(self.limits.seconds, _OPEN_BODY_SECONDS)
        return self.limits.seconds + self._arrived / _BODY_BYTES_A_SECOND

    def _has_begun_to_answer(self) -> bool:
        return self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete

    def _end(self) -> None:
        if self._has_begun_to_answer() or self._phase[0] == "answer":
            self.transport.abort()
        else:
            self.refuse(408, _SLOW)

    def _keep_to_limit(self) -> None:
        """Close the connection that is first in line, or this one if all others are being answered."""
        alive = [one for one in self.connections if not one.transport.is_closing()]
        if len(alive) <= self.limits.connections:
            return
        now = self.loop.time()
        line = [(place, one) for one in alive if one is not self and (place := one.place_in_line(now)) is not None]
        if line:
            min(line, key=lambda pair: pair[0])[1].make_room()
        else:
            self.refuse(503, _FULL)


def bounded(limits: Limits) -> type[asyncio.Protocol]:
    """Return the protocol that uvicorn would choose, within `limits`."""
    return type("BoundedHTTP", (Bounded, AutoHTTPProtocol), {"limits": limits})


def most_connections(wanted: int) -> int:
    """Return how many connections there may be, so that file descriptors are left for the database and files."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return wanted
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return wanted if most == resource.RLIM_INFINITY else min(wanted, max(most // 2, most - 256))


@contextmanager
def told_seldom() -> Iterator[None]:
    """Log at most once a minute what anybody who can connect could fill the log with: that no connection can be
    accepted, and what uvicorn warns of."""
    loop, warnings, filtering = asyncio.get_running_loop(), logging.getLogger("uvicorn.error"), _Seldom()
    before = loop.get_exception_handler()
    loop.set_exception_handler(filtering.handle)
    warnings.addFilter(filtering)
    try:
        yield
    finally:
        loop.set_exception_handler(before)
        warnings.removeFilter(filtering)


class _Seldom(logging.Filter):
    def __init__(self) -> None:
        super().__init__()
        self._told: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno > logging.WARNING or self._is_due(record.msg)

    def handle(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if "socket" not in context or not isinstance(error, OSError) or error.errno not in _EXHAUSTED:
            loop.default_exception_handler(context)
        elif self._is_due("accept"):
            log.error("no connection can be accepted; raise the limit of open files", error=error.strerror)

    def _is_due(self, what: str) -> bool:
        now = time.monotonic()
        due = now - self._told.get(what, -_TOLD_SECONDS) >= _TOLD_SECONDS
        if due:
            self._told[what] = now
        return due


def _problem(status: Literal[408, 503], detail: str) -> bytes:
    answer = problems.respond({"path": ""}, status, detail)
    body = bytes(answer.body)
    head = f"HTTP/1.1 {status} {_REASONS[status]}\r\nconnection: close\r\ncontent-length: {len(body)}\r\n"
    return f"{head}content-type: {problems.MEDIA_TYPE}\r\n\r\n".encode() + body
