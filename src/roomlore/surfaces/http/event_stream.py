"""Server-sent events that begin with a proper answer and end with the client.

FastAPI's own response for them answers 200 before it knows of any event, and stops its generator in a cancel scope,
where nothing can be awaited any more: what was said so far could not be stored. Here the generator runs in a task of
its own, which is cancelled once and then waited for.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any

from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from roomlore.surfaces.http.replies import dump

PING = b": the model is at work\n\n"
_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
_LINE_ENDS = {mark.encode(): f"\\u{ord(mark):04x}".encode() for mark in "\x85\u2028\u2029"}
"""No line ends in the protocol, but some clients' readers of lines take them for such."""


def event(name: str, content: Mapping[str, Any]) -> bytes:
    """An event with JSON as its data, which is always one line."""
    return written(name, dump(content))


def written(name: str, data: bytes) -> bytes:
    """An event; `data` is JSON on one line."""
    for mark, escaped in _LINE_ENDS.items():
        data = data.replace(mark, escaped)
    return b"event: %s\ndata: %s\n\n" % (name.encode(), data)


@dataclass(frozen=True, slots=True)
class _Ended:
    """Nothing more comes. `error`: what it broke off with."""

    error: Exception | None = None


def _sound(part: bytes | _Ended) -> bytes | _Ended:
    if isinstance(part, _Ended) and part.error is not None:
        raise part.error
    return part


class EventStream(StreamingResponse):
    """The events as they come, with a comment now and then while none does, so that proxies keep the connection.

    They are made no faster than the client takes them. One that leaves, or takes nothing for a minute, ends them.
    """

    media_type = "text/event-stream"
    moment_seconds = 0.2
    ping_seconds = 15.0
    patience_seconds = 60.0

    def __init__(self, ahead: "_Ahead", first: list[bytes | _Ended], last: Callable[[Exception], bytes]) -> None:
        super().__init__(self._parts(), headers=_HEADERS)
        self._ahead = ahead
        self._first = first
        self._last = last

    @classmethod
    async def begin(cls, events: AsyncGenerator[bytes, None], *, last: Callable[[Exception], bytes]) -> "EventStream":
        """Waits for the first event, and a moment for the second; what is raised in their place is raised here, where
        every status can be answered. `last`: the event for what is raised later."""
        ahead = _Ahead(events)
        try:
            first = [_sound(await ahead.take())]
            with suppress(TimeoutError):
                async with asyncio.timeout(cls.moment_seconds):
                    first.append(_sound(await ahead.take()))
        except BaseException:
            await ahead.stop()
            raise
        return cls(ahead, first, last)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def patiently(message: Message) -> None:
            async with asyncio.timeout(self.patience_seconds):
                await send(message)

        sending = asyncio.ensure_future(self.stream_response(patiently))
        leaving = asyncio.ensure_future(self.listen_for_disconnect(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _end(sending, leaving)
            await self._ahead.stop()
        if not sending.cancelled() and not isinstance(sending.exception(), TimeoutError | None):
            sending.result()

    async def _parts(self) -> AsyncGenerator[bytes, None]:
        while not isinstance(part := await self._next(), _Ended):
            yield part
        if part.error is not None:
            yield self._last(part.error)

    async def _next(self) -> bytes | _Ended:
        if self._first:
            return self._first.pop(0)
        # Not `wait_for`: before Python 3.12 it forgets that it was cancelled where an event is there already.
        try:
            async with asyncio.timeout(self.ping_seconds):
                return await self._ahead.take()
        except TimeoutError:
            return PING


class _Ahead:
    """Runs a generator, at most two events ahead of whoever takes them."""

    def __init__(self, events: AsyncGenerator[bytes, None]) -> None:
        self._made: asyncio.Queue[bytes | _Ended] = asyncio.Queue(1)
        self._task = asyncio.ensure_future(self._run(events))

    async def take(self) -> bytes | _Ended:
        return await self._made.get()

    async def stop(self) -> None:
        """Returns once the generator has put its things in order."""
        await _end(self._task)

    async def _run(self, events: AsyncGenerator[bytes, None]) -> None:
        ended = _Ended()
        try:
            async with aclosing(events):
                async for one in events:
                    await self._made.put(one)
        except Exception as error:  # noqa: BLE001 - handed to whoever answers the client
            ended = _Ended(error)
        await self._made.put(ended)


async def _end(*tasks: "asyncio.Future[None]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
