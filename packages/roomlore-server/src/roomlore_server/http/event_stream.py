"""Server-sent events with a status that is known before they begin.

FastAPI's own response answers 200 before the first event, and stops its generator in a cancel scope that allows no
await, so a partial answer could not be stored. Here the generator runs in a task of its own, which is cancelled once
and awaited.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any

import structlog
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from roomlore.core.errors import RoomloreError
from roomlore.surfaces.logs import where
from roomlore_server.http import problems
from roomlore_server.http.answers import dump

log = structlog.get_logger(__name__)

PING = b": the model is at work\n\n"
_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
_LINE_ENDS = {mark.encode(): f"\\u{ord(mark):04x}".encode() for mark in "\x85\u2028\u2029"}
"""Not line ends in the protocol, but some clients treat them as such."""


def event(name: str, content: Mapping[str, Any]) -> bytes:
    """Return an event with JSON as its data, which is always one line."""
    return written(name, dump(content))


def written(name: str, data: bytes) -> bytes:
    """Return an event. `data`: JSON on one line."""
    return b"event: %s\n%s" % (name.encode(), unnamed(data))


def unnamed(data: bytes) -> bytes:
    """Return an event without a name. `data`: JSON on one line."""
    for mark, escaped in _LINE_ENDS.items():
        data = data.replace(mark, escaped)
    return b"data: %s\n\n" % data


def failure(scope: Scope, error: Exception, *, message: str, route: str) -> bytes:
    """Return the problem as JSON, for the last event of an answer that failed: its status was already sent. An
    unexpected error is reported, and logged as `message`."""
    if isinstance(error, RoomloreError):
        return bytes(problems.of_roomlore(scope, error).body)
    scope["app"].state.lore.telemetry.unforeseen(error, attributes={"method": "POST", "route": route})
    log.error(message, error=type(error).__name__, where=where(error))
    detail = f"An error nobody foresaw; the log says where, under request {scope['state']['request_id']}."
    return bytes(problems.respond(scope, 500, detail).body)


@dataclass(frozen=True, slots=True)
class _Ended:
    """The end of the events. `error`: the error that ended them."""

    error: Exception | None = None


def _sound(part: bytes | _Ended) -> bytes | _Ended:
    if isinstance(part, _Ended) and part.error is not None:
        raise part.error
    return part


class EventStream(StreamingResponse):
    """A response of events as they arrive, with a comment at intervals without events, so that proxies keep the
    connection.

    Events are produced no faster than the client reads them. If the client disconnects, or reads nothing for a minute,
    they end.
    """

    media_type = "text/event-stream"
    moment_seconds = 2.0
    """The longest wait for the event after the first one; a connection refused, tried twice, ends sooner."""
    ping_seconds = 15.0
    patience_seconds = 60.0

    def __init__(self, events: AsyncGenerator[bytes, None], *, last: Callable[[Exception], bytes]) -> None:
        """`last`: returns the event for an error that comes when the status was sent."""
        super().__init__(self._parts(), headers=_HEADERS)
        self._events = events
        self._last = last

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events. An error in the place of the first or the second one, unless that takes long, is raised:
        nothing was sent by then, so every status is possible."""
        self._ahead = _Ahead(self._events)
        sending = asyncio.ensure_future(self._send(send))
        leaving = asyncio.ensure_future(self.listen_for_disconnect(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _end(sending, leaving)
            await self._ahead.stop()
        if not sending.cancelled():
            sending.result()

    async def _send(self, send: Send) -> None:
        async def patiently(message: Message) -> None:
            async with asyncio.timeout(self.patience_seconds):
                await send(message)

        self._first = [_sound(await self._ahead.take())]
        if not isinstance(self._first[0], _Ended):
            with suppress(TimeoutError):
                async with asyncio.timeout(self.moment_seconds):
                    self._first.append(await self._ahead.take())
            _sound(self._first[-1])
        with suppress(TimeoutError):
            await self.stream_response(patiently)

    async def _parts(self) -> AsyncGenerator[bytes, None]:
        while not isinstance(part := await self._next(), _Ended):
            yield part
        if part.error is not None:
            yield self._last(part.error)

    async def _next(self) -> bytes | _Ended:
        if self._first:
            return self._first.pop(0)
        # Not `wait_for`: before Python 3.12 it loses a cancellation if an event is already there.
        try:
            async with asyncio.timeout(self.ping_seconds):
                return await self._ahead.take()
        except TimeoutError:
            return PING


class _Ahead:
    """Runs a generator, at most two events ahead of the reader."""

    def __init__(self, events: AsyncGenerator[bytes, None]) -> None:
        self._made: asyncio.Queue[bytes | _Ended] = asyncio.Queue(1)
        self._task = asyncio.ensure_future(self._run(events))

    async def take(self) -> bytes | _Ended:
        return await self._made.get()

    async def stop(self) -> None:
        """Cancel the generator and wait until it has finished its cleanup."""
        await _end(self._task)

    async def _run(self, events: AsyncGenerator[bytes, None]) -> None:
        ended = _Ended()
        try:
            async with aclosing(events):
                async for made in events:
                    await self._made.put(made)
        except Exception as error:  # noqa: BLE001 - handed to whoever answers the client
            ended = _Ended(error)
        await self._made.put(ended)


async def _end(*tasks: "asyncio.Future[None]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
