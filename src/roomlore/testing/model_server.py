"""A server on a loopback socket that speaks OpenAI's protocol for chats and does what a script says."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from roomlore.testing.loopback import LoopbackServer, on_a_thread
from roomlore.testing.model_answers import Answer, Asked, Drops, Fails, Hangs, Says, Sends, pieces, problem, whole

Reply = Answer | str
Answering = Callable[[Asked], Reply | Awaitable[Reply]]
Script = Sequence[Reply] | Answering

_LOOK_SECONDS = 0.005
_STREAM = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}


class ModelServer(LoopbackServer):
    """The server. `async with ModelServer([...]) as server:` starts and stops it; `server.url` is its base URL.

    `script`: what the next requests get, one each (a text stands for `Says(text=...)`), or a function, `async` or
    not, that looks at the request and answers. `default`: what all requests after the script get. Connections are kept
    alive. It is an ordinary socket: other processes may ask too, with any key or none.
    """

    def __init__(self, script: Script = (), *, default: Reply = "ready", port: int = 0) -> None:
        super().__init__(port=port)
        self.script: list[Reply] = [] if callable(script) else list(script)
        self.answer: Answering | None = script if callable(script) else None
        self.default = default
        self.requests: list[Asked] = []

    @property
    def url(self) -> str:
        """What to give to a client as the base URL."""
        return f"http://127.0.0.1:{self._port}/v1"

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection can be used again."""
        asked = await _read(reader)
        self.requests.append(asked)
        answering = asyncio.ensure_future(self._send(writer, asked))
        leaving = asyncio.ensure_future(_until_left(reader))
        try:
            await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if _in_vain(answering):
                asked.note("left", _now())
                return False
            usable = answering.result()
            if usable:
                asked.note("answered", _now())
            return usable
        finally:
            await _end(answering, leaving)

    async def _next(self, asked: Asked) -> Answer:
        scripted = self.script.pop(0) if self.script else self.default
        reply = scripted if self.answer is None else self.answer(asked)
        if isinstance(reply, Awaitable):
            reply = await reply
        return Says(text=reply) if isinstance(reply, str) else reply

    async def _send(self, writer: asyncio.StreamWriter, asked: Asked) -> bool:
        if not asked.path.endswith("/chat/completions"):
            return await _whole(writer, b'{"object": "list", "data": []}', status=404)
        answer = await self._next(asked)
        if isinstance(answer, Drops):
            return False
        if isinstance(answer, Hangs):
            return await _hang()
        await asyncio.sleep(answer.after)
        if isinstance(answer, Fails):
            return await _whole(writer, problem(answer, asked), status=answer.status, headers=answer.headers)
        if isinstance(answer, Sends):
            return await _as_it_is(writer, answer)
        return await (_streamed(writer, answer, asked) if asked.streaming else _said(writer, answer))


def serve_models(
    script: Script = (), *, default: Reply = "ready", port: int = 0
) -> AbstractContextManager[ModelServer]:
    """The server on a thread of its own, for programs and tests that have no event loop running."""
    return on_a_thread(ModelServer(script, default=default, port=port))


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").splitlines()
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
    content = await reader.readexactly(int(headers.get("content-length", 0)))
    return Asked(path=head[0].split()[1], headers=headers, body=_object(content), at=_now())


def _object(content: bytes) -> dict[str, Any]:
    found = json.loads(content) if content else {}
    return found if isinstance(found, dict) else {}


async def _until_left(reader: asyncio.StreamReader) -> None:
    """Returns when the client has closed its side; reads nothing, since the next request may come."""
    while not reader.at_eof() and reader.exception() is None:  # noqa: ASYNC110 - a reader tells nobody of its end
        await asyncio.sleep(_LOOK_SECONDS)


def _in_vain(answering: "asyncio.Future[bool]") -> bool:
    """Whether the client left before the whole answer was sent: seen by its leaving, or in writing to it."""
    return not answering.done() or isinstance(answering.exception(), ConnectionError)


async def _end(*tasks: "asyncio.Future[Any]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _said(writer: asyncio.StreamWriter, answer: Says) -> bool:
    body = whole(answer)
    if answer.breaks is None:
        return await _whole(writer, body)
    half = body[: len(body) // 2]
    if answer.breaks.how == "end":
        return await _whole(writer, half)
    await _write(writer, _head(200, {"content-length": str(len(body))}) + half)
    return await _hang() if answer.breaks.how == "hang" else False


async def _streamed(writer: asyncio.StreamWriter, answer: Says, asked: Asked) -> bool:
    with_usage = bool((asked.body.get("stream_options") or {}).get("include_usage"))
    await _write(writer, _head(200, _STREAM))
    sent = 0
    async for event in _paced(pieces(answer, with_usage=with_usage), answer.between):
        # The first event brings the role alone and counts as none.
        if answer.breaks is not None and sent > answer.breaks.after:
            return await _break(writer, event, answer.breaks.how)
        await _write(writer, _chunk(event))
        sent += 1
    return await _finish(writer)


async def _paced(events: Iterator[bytes], seconds: float) -> AsyncIterator[bytes]:
    for place, event in enumerate(events):
        if place:
            await asyncio.sleep(seconds)
        yield event


async def _break(writer: asyncio.StreamWriter, event: bytes, how: str) -> bool:
    if how == "hang":
        return await _hang()
    if how == "end":
        return await _finish(writer)
    if how == "inside":
        await _write(writer, _chunk(event[: len(event) // 2]))
        await asyncio.sleep(_LOOK_SECONDS)
    return False


async def _as_it_is(writer: asyncio.StreamWriter, answer: Sends) -> bool:
    if not answer.in_chunks:
        return await _whole(writer, answer.body, headers={"content-type": answer.content_type})
    await _write(writer, _head(200, {**_STREAM, "content-type": answer.content_type}))
    for at in range(0, len(answer.body), 65_536):
        await _write(writer, _chunk(answer.body[at : at + 65_536]))
    return await _finish(writer)


async def _whole(
    writer: asyncio.StreamWriter, body: bytes, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> bool:
    await _write(writer, _head(status, {"content-length": str(len(body)), **(headers or {})}) + body)
    return True


async def _finish(writer: asyncio.StreamWriter) -> bool:
    await _write(writer, b"0\r\n\r\n")
    return True


async def _hang() -> bool:
    await asyncio.Event().wait()
    return False


async def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    await writer.drain()


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    named = {"content-type": "application/json", **headers}
    lines = [f"HTTP/1.1 {status} Scripted", *(f"{name}: {value}" for name, value in named.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _now() -> float:
    return asyncio.get_running_loop().time()
