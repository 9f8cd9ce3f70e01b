"""The server: its connections and their limits, starting, and stopping.

uvicorn closes connections that are idle between requests. It does not limit the time for heads and bodies, the time for
reading an answer, or the number of connections.
"""

import asyncio
import errno
import gc
import logging
import signal
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal

import structlog
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from roomlore.core import DEFAULT_TENANT
from roomlore.core.addresses import is_loopback
from roomlore.core.errors import Forbidden, InvalidInput
from roomlore.ports.coordination import OnceAMinute
from roomlore.settings import Settings
from roomlore.wiring import Lore, open_lore
from roomlore_server.http import guard, problems
from roomlore_server.http.app import beside, create_app
from roomlore_server.http.guard import needs_no_key

if TYPE_CHECKING:
    from roomlore_server.http.process_metrics import ProcessMetrics

Phase = Literal["head", "body", "answer", "idle", "work", "refused"]

BACKLOG = 128
REQUEST_SECONDS = 30.0
"""Time for the head of a request, for its body to go on, and for a client to go on reading the answer."""
IDLE_SECONDS = 75
"""Time an idle connection is kept: longer than the 60 seconds of common proxies, so that they close it first."""
_BODY_BYTES_A_SECOND = 1_000
_HEAD_BYTES = 65_536
_LONG_HEAD = f"The head of the request is longer than {_HEAD_BYTES} bytes; send a shorter URL and shorter headers."
_LINGER_SECONDS = 2.0
_OPEN_BODY_SECONDS = 5.0  # for paths without a key: a small form, such as that of the sign-in
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_REASONS = {400: "Bad Request", 408: "Request Timeout", 503: "Service Unavailable"}
_NOT_HTTP = "This is no request of HTTP/1.1 that can be read; check its first line and its headers."
_NOT_ENCODED = (
    "The URL holds characters that are not ASCII. Percent-encode their UTF-8 bytes: /rooms/%E8%8C%B6 names room 茶. "
    "Most HTTP clients do so by themselves; curl does not."
)
_SLOW = "The request did not arrive in time; send it faster, or in smaller parts."
_FULL = "There are as many connections as there may be, and all are at work; try again."
_MADE_ROOM = "The connection was needed before all of the request arrived; send it again."

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """`connections`: how many at a time. `seconds`: how long a client may take for the head of a request, to continue
    its body, and to continue reading an answer."""

    connections: int
    seconds: float


class Bounded(asyncio.Protocol):
    """A mixin for a protocol of uvicorn that enforces `limits`; see `bounded`."""

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
    _head = 0
    """Bytes of a head that is not whole yet. httptools, unlike h11, has no limit of its own."""
    _last = b""
    _lingers = False
    """Refused while the client is still sending; what it sends is read and discarded."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._since = self.loop.time()
        if len(self.connections) > self.limits.connections:
            self._keep_to_limit()

    def data_received(self, data: bytes) -> None:
        if self._lingers:
            return
        self._arrived += len(data)
        self._last = data
        before = self.cycle
        super().data_received(data)
        if self.cycle is before and (before is None or before.response_complete):
            self._head += len(data)
            if self._head > _HEAD_BYTES and not self.transport.is_closing():
                self._refuse_and_linger(400, _LONG_HEAD)
        else:
            self._head = 0

    def send_400_response(self, msg: str) -> None:
        """Answer what uvicorn cannot parse with a problem that says what to do."""
        url = self._last.partition(b"\r\n")[0]
        self._refuse_and_linger(400, _NOT_HTTP if url.isascii() else _NOT_ENCODED)

    def look(self, now: float) -> None:
        """Close the connection if its client has been too slow."""
        self._observe(now)
        if now - self._since > self._patience():
            self._end()

    def place_in_line(self, now: float) -> tuple[bool, float] | None:
        """Return the position in the order in which connections are closed for new ones: idle ones first, then those
        whose client has the least time left to send its request. Return None while a request is being answered."""
        self._observe(now)
        phase = self._phase[0]
        if phase in ("refused", "idle"):
            return False, self._since
        if phase in ("head", "body") and not self._has_begun_to_answer():
            return True, self._since + self._patience()
        return None

    def make_room(self) -> None:
        """Close the connection so that another one can be served."""
        if self._phase[0] == "body":
            self.refuse(503, _MADE_ROOM)
        else:
            self.transport.close()

    def refuse(self, status: Literal[408, 503], detail: str) -> None:
        """Answer with a problem without a request, and close the connection."""
        self.transport.write(_problem(status, detail))
        self.transport.close()

    def _refuse_and_linger(self, status: Literal[400], detail: str) -> None:
        """Answer with a problem, and close the connection once the client has had time to read it. A socket that is
        closed while data arrive is reset, and the client may lose the answer."""
        self.transport.write(_problem(status, detail))
        self.transport.write_eof()
        self._lingers = True

    def _observe(self, now: float) -> None:
        phase, unsent = (self._awaited(), self.cycle), self.transport.get_write_buffer_size()
        moved = phase[0] == "answer" and unsent != self._unsent
        if phase[0] != self._phase[0] or phase[1] is not self._phase[1] or moved:
            self._phase, self._since, self._arrived = phase, now, 0
        self._unsent = unsent

    def _awaited(self) -> Phase:
        if self._lingers:
            return "refused"
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
        if phase == "refused":
            return _LINGER_SECONDS
        if phase != "body":
            return self.limits.seconds
        if needs_no_key(self.cycle.scope["path"]):
            return min(self.limits.seconds, _OPEN_BODY_SECONDS)
        return self.limits.seconds + self._arrived / _BODY_BYTES_A_SECOND

    def _has_begun_to_answer(self) -> bool:
        return self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete

    def _end(self) -> None:
        if self._has_begun_to_answer() or self._phase[0] in ("answer", "refused"):
            self.transport.abort()
        else:
            self.refuse(408, _SLOW)

    def _keep_to_limit(self) -> None:
        """Close the first connection in that order, or this one if all others are being answered."""
        alive = [connection for connection in self.connections if not connection.transport.is_closing()]
        if len(alive) <= self.limits.connections:
            return
        now = self.loop.time()
        line = [
            (place, connection)
            for connection in alive
            if connection is not self and (place := connection.place_in_line(now)) is not None
        ]
        if line:
            min(line, key=lambda pair: pair[0])[1].make_room()
        else:
            self.refuse(503, _FULL)


def bounded(limits: Limits) -> type[asyncio.Protocol]:
    """Return the protocol that uvicorn would choose, with `limits`."""
    return type("BoundedHTTP", (Bounded, AutoHTTPProtocol), {"limits": limits})


def most_connections(wanted: int) -> int:
    """Return how many connections are possible, so that file descriptors are left for the database and files."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return wanted
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return wanted if most == resource.RLIM_INFINITY else min(wanted, max(most // 2, most - 256))


@contextmanager
def rate_limited_warnings() -> Iterator[None]:
    """Log at most once a minute what any client could cause: that no connection can be accepted, and uvicorn's
    warnings."""
    loop, warnings, filtering = asyncio.get_running_loop(), logging.getLogger("uvicorn.error"), _RateLimit()
    before = loop.get_exception_handler()
    loop.set_exception_handler(filtering.handle)
    warnings.addFilter(filtering)
    try:
        yield
    finally:
        loop.set_exception_handler(before)
        warnings.removeFilter(filtering)


class _RateLimit(logging.Filter):
    def __init__(self) -> None:
        super().__init__()
        self._limit = OnceAMinute(time.monotonic)

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno > logging.WARNING or self._limit.is_due(record.msg)

    def handle(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if "socket" not in context or not isinstance(error, OSError) or error.errno not in _EXHAUSTED:
            loop.default_exception_handler(context)
        elif self._limit.is_due("accept"):
            log.error("no connection can be accepted; raise the limit of open files", error=error.strerror)


def _problem(status: Literal[400, 408, 503], detail: str) -> bytes:
    answer = problems.respond({"path": ""}, status, detail)
    body = bytes(answer.body)
    head = f"HTTP/1.1 {status} {_REASONS[status]}\r\nconnection: close\r\ncontent-length: {len(body)}\r\n"
    return f"{head}content-type: {problems.MEDIA_TYPE}\r\n\r\n".encode() + body


_GRACE_SECONDS = 10
_TICKS_A_LOOK = 5  # of a tenth of a second
_YOUNG_OBJECTS = 10_000
"""A context or a search makes more than Python's 700: each request began a collection, and what it held then was kept
for the next full one."""


async def serve(
    settings: Settings,
    *,
    listening: Callable[[str], None],
    tenant: str = DEFAULT_TENANT,
    make_app: Callable[[Lore], FastAPI] = create_app,
    door: socket.socket | None = None,
    metrics: "ProcessMetrics | None" = None,
) -> None:
    """Serve until the process is told to stop. `listening` is called with the URL once the port accepts connections.
    `tenant`: the tenant of callers without a key while no key exists. `make_app`: creates the application. `door`: the
    listening socket, if another process made it. `metrics`: of all processes that serve that socket.

    Raises `Forbidden` for an address that other machines can reach while no API key exists, `InvalidInput` for an
    address that cannot be used, and `StorageUnavailable`.
    """
    async with open_lore(settings=settings, tenant=tenant, background=settings.work.work_in_server) as lore:
        await check_reachable(settings, lore)
        with door or bind(settings.server.host, settings.server.port) as door:
            app = make_app(lore)
            app.state.process_metrics = metrics
            config = uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                server_header=False,
                lifespan="off",
                http=bounded(Limits(most_connections(guard.MAX_CONNECTIONS), REQUEST_SECONDS)),
                ws="none",
                backlog=BACKLOG,
                timeout_keep_alive=IDLE_SECONDS,
                timeout_graceful_shutdown=_GRACE_SECONDS,
            )
            listening(address_of(door))
            server = _Server(config)
            async with beside(app, lore), metrics.publishing(lore) if metrics else nullcontext():
                with rate_limited_warnings(), _rare_collections():
                    await server.serve([door])
                await _until_ended(server.server_state.tasks)


async def check_reachable(settings: Settings, lore: Lore) -> None:
    """Raise `Forbidden` if other machines can reach the address and no API key exists."""
    if not is_loopback(settings.server.host) and not await lore.keys.any():
        raise Forbidden("server_open_without_key", host=settings.server.host)


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Have garbage collected rarely: a full collection takes a twentieth of a second or more, in which no request is
    served. Loaded modules are excluded, and a collection waits for so many new objects that those of a few requests do
    not outlive it. A program that froze its own objects keeps them frozen, since all are thawed together. Nothing is
    collected before: that would take a tenth of the start, for half a megabyte."""
    young, *older = gc.get_threshold()
    freezes = not gc.get_freeze_count()
    if freezes:
        gc.freeze()
    if young:  # else collection is off
        gc.set_threshold(max(young, _YOUNG_OBJECTS), *older)
    try:
        yield
    finally:
        gc.set_threshold(young, *older)
        if freezes:
            gc.unfreeze()


async def _until_ended(requests: Collection["asyncio.Task[None]"]) -> None:
    """Wait for cancelled requests, such as a long reply, to finish their cleanup while the database is open."""
    if requests:
        await asyncio.wait(requests, timeout=_GRACE_SECONDS)


class _Server(uvicorn.Server):
    """A server that returns on SIGINT and SIGTERM, so that pending writes are completed. Closes connections of slow
    clients."""

    async def on_tick(self, counter: int) -> bool:
        if counter % _TICKS_A_LOOK == 0:
            now = asyncio.get_running_loop().time()
            for connection in tuple(self.server_state.connections):
                if isinstance(connection, Bounded):
                    connection.look(now)
        return await super().on_tick(counter)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop this server only. The handler of MCP's streams would stop the streams of every later server in the
        process too."""
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raise `InvalidInput` if the address cannot be used."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        door = socket.create_server((host, port), family=family)
    except OSError as error:
        raise InvalidInput("port_unavailable", port=port, host=repr(host), why=error.strerror) from error
    # asyncio sets TCP_NODELAY only on connections of a socket that names its protocol, and `create_server` leaves it 0.
    # Without it the body of an answer waits 40 ms for the acknowledgement of the head.
    return socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=door.detach())


def address_of(door: socket.socket) -> str:
    """Return the URL that a listening socket serves."""
    host, port = door.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
