"""A scripted model server: its answers, good and bad, and their form in OpenAI's protocol."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal

from roomlore.core.chat import ToolCall
from roomlore_testkit.loopback import LoopbackServer, on_a_thread

USAGE: Mapping[str, Any] = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
_PIECE_CHARACTERS = 4
_NAMED = {"id": "chatcmpl-1", "created": 1, "model": "scripted"}


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that arrived. Times are seconds of the event loop's clock.

    `headers`: names in lower case. `body`: of a form, such as that of a recording, its bytes as `form`. `answered_at`:
    the time when the last byte of the answer was sent; `left_at`: the time when the client was found to have closed the
    connection before that.
    """

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    at: float
    _later: dict[str, float] = field(default_factory=dict)

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def streaming(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def key(self) -> str | None:
        """The API key, None if none was sent."""
        scheme, _, key = self.headers.get("authorization", "").partition(" ")
        return key if scheme.lower() == "bearer" else None

    @property
    def prompt(self) -> str:
        """The texts of all messages, one per line."""
        return "\n".join(str(message.get("content") or "") for message in self.body.get("messages", ()))

    @property
    def answered_at(self) -> float | None:
        return self._later.get("answered")

    @property
    def left_at(self) -> float | None:
        return self._later.get("left")

    def note(self, what: Literal["answered", "left"], at: float) -> None:
        self._later.setdefault(what, at)


@dataclass(frozen=True, slots=True)
class Break:
    """The end of an interrupted answer: after so many pieces, or in the middle of a whole one.

    `drop`: the connection is cut there; `inside`: it is cut in the middle of the next piece; `hang`: nothing more is
    sent; `end`: the body ends there as if it were complete.
    """

    after: int = 1
    how: Literal["drop", "inside", "hang", "end"] = "drop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Says:
    """An answer, whole or in pieces, as the request asks.

    `text`: by default "ready", or nothing beside tool calls. `content`: sent in its place, of any type (null, a list of
    parts). `pieces`: how the text is cut when streamed, by default every four characters. `usage`: None leaves it out,
    anything else is sent as it is. `extra`: further fields of the message, and of each piece. `after`, `between`:
    seconds before the first byte and between pieces.
    """

    text: str | None = None
    content: Any = ...
    pieces: Sequence[str] = ()
    tool_calls: Sequence[ToolCall] = ()
    finish_reason: Any = ...
    usage: Any = field(default_factory=lambda: dict(USAGE))
    extra: Mapping[str, Any] = field(default_factory=dict)
    after: float = 0.0
    between: float = 0.0
    breaks: Break | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fails:
    """An HTTP error. By default its body quotes the prompt and the key, as some providers do."""

    status: int = 500
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    after: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sends:
    """Any bytes, with status 200. `in_chunks`: as a stream of unknown length."""

    body: bytes
    content_type: str = "application/json"
    in_chunks: bool = False
    after: float = 0.0


@dataclass(frozen=True, slots=True)
class Hangs:
    """No answer, ever."""


@dataclass(frozen=True, slots=True)
class Drops:
    """A connection cut before the first byte."""


Answer = Says | Fails | Sends | Hangs | Drops


def whole(answer: Says) -> bytes:
    """Return the answer as one JSON object."""
    message = {"role": "assistant", "content": _content(answer), **answer.extra}
    if answer.tool_calls:
        message["tool_calls"] = [_call(call) for call in answer.tool_calls]
    choice = {"index": 0, "message": message, "finish_reason": _finish(answer)}
    return _dump({**_NAMED, "object": "chat.completion", "choices": [choice], **_usage(answer)})


def pieces(answer: Says, *, with_usage: bool) -> Iterator[bytes]:
    """Yield the answer as server-sent events, usage in the last one before the end, if requested."""
    yield _event([_choice({"role": "assistant", "content": "", **answer.extra})])
    for piece in _texts(answer):
        yield _event([_choice({"content": piece, **answer.extra})])
    for place, call in enumerate(answer.tool_calls):
        yield from (_event([_choice({"tool_calls": [fragment]})]) for fragment in _fragments(place, call))
    yield _event([_choice({}, finish=_finish(answer))])
    if with_usage:
        yield _event([], **_usage(answer))
    yield b"data: [DONE]\n\n"


def problem(answer: Fails, request: Asked) -> bytes:
    """Return the body of an error."""
    if answer.body is not None:
        return answer.body
    return _dump({"error": {"message": f"refused: {request.prompt}, said with {request.key}", "type": "invalid"}})


def _texts(answer: Says) -> Sequence[Any]:
    if answer.content is not ...:
        return [answer.content]
    text = _text(answer)
    return answer.pieces or [text[at : at + _PIECE_CHARACTERS] for at in range(0, len(text), _PIECE_CHARACTERS)]


def _content(answer: Says) -> Any:
    if answer.content is not ...:
        return answer.content
    return _text(answer) or (None if answer.tool_calls else "")


def _text(answer: Says) -> str:
    if answer.text is not None:
        return answer.text
    return "".join(answer.pieces) or ("" if answer.tool_calls else "ready")


def _finish(answer: Says) -> Any:
    if answer.finish_reason is not ...:
        return answer.finish_reason
    return "tool_calls" if answer.tool_calls else "stop"


def _usage(answer: Says) -> dict[str, Any]:
    return {} if answer.usage is None else {"usage": answer.usage}


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _fragments(place: int, call: ToolCall) -> Iterator[dict[str, Any]]:
    yield {"index": place, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}
    for at in range(0, len(call.arguments), _PIECE_CHARACTERS):
        yield {"index": place, "function": {"arguments": call.arguments[at : at + _PIECE_CHARACTERS]}}


def _choice(delta: Mapping[str, Any], *, finish: Any = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": finish}


def _event(choices: list[dict[str, Any]], **more: Any) -> bytes:
    return b"data: " + _dump({**_NAMED, "object": "chat.completion.chunk", "choices": choices, **more}) + b"\n\n"


def _dump(content: Any) -> bytes:
    return json.dumps(content, ensure_ascii=False).encode("utf-8", "backslashreplace")


Reply = Answer | str
Answering = Callable[[Asked], Reply | Awaitable[Reply]]
Script = Sequence[Reply] | Answering

_LOOK_SECONDS = 0.005
_TRANSCRIPTIONS = "/audio/transcriptions"
_STREAM = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}


class ModelServer(LoopbackServer):
    """A scripted model server. `async with ModelServer([...]) as server:` starts and stops it; `server.url` is its base
    URL.

    `script`: the answers to the next requests, one each (a text stands for `Says(text=...)`), or a function, `async` or
    not, that takes the request and returns the answer. `default`: the answer to all requests after the script.
    Connections are kept alive. It is an ordinary socket: other processes may use it too, with any key or none.
    """

    def __init__(self, script: Script = (), *, default: Reply = "ready", port: int = 0) -> None:
        super().__init__(port=port)
        self.script: list[Reply] = [] if callable(script) else list(script)
        self.answer: Answering | None = script if callable(script) else None
        self.default = default
        self.requests: list[Asked] = []

    @property
    def url(self) -> str:
        """The base URL for a client."""
        return f"http://127.0.0.1:{self._port}/v1"

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Return True if the connection can be used again."""
        request = await _read(reader)
        self.requests.append(request)
        answering = asyncio.ensure_future(self._send(writer, request))
        leaving = asyncio.ensure_future(_wait_for_close(reader))
        try:
            await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if _client_left(answering):
                request.note("left", _now())
                return False
            usable = answering.result()
            if usable:
                request.note("answered", _now())
            return usable
        finally:
            await _end(answering, leaving)

    async def _next(self, request: Asked) -> Answer:
        scripted = self.script.pop(0) if self.script else self.default
        reply = scripted if self.answer is None else self.answer(request)
        if isinstance(reply, Awaitable):
            reply = await reply
        return Says(text=reply) if isinstance(reply, str) else reply

    async def _send(self, writer: asyncio.StreamWriter, request: Asked) -> bool:
        if not request.path.endswith(("/chat/completions", _TRANSCRIPTIONS)):
            return await _whole(writer, b'{"object": "list", "data": []}', status=404)
        answer = await self._next(request)
        if isinstance(answer, Drops):
            return False
        if isinstance(answer, Hangs):
            return await _hang()
        await asyncio.sleep(answer.after)
        if isinstance(answer, Fails):
            return await _whole(writer, problem(answer, request), status=answer.status, headers=answer.headers)
        if isinstance(answer, Sends):
            return await _unchanged(writer, answer)
        if request.path.endswith(_TRANSCRIPTIONS):
            return await _whole(writer, _dump({"text": _text(answer)}))
        return await (_streamed(writer, answer, request) if request.streaming else _answered(writer, answer))


def serve_models(
    script: Script = (), *, default: Reply = "ready", port: int = 0
) -> AbstractContextManager[ModelServer]:
    """Run the server on a thread of its own, for programs and tests without a running event loop."""
    return on_a_thread(ModelServer(script, default=default, port=port))


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").splitlines()
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
    content = await reader.readexactly(int(headers.get("content-length", 0)))
    return Asked(path=head[0].split()[1], headers=headers, body=_object(content), at=_now())


def _object(content: bytes) -> dict[str, Any]:
    if content.startswith(b"--"):
        return {"form": content}
    parsed = json.loads(content) if content else {}
    return parsed if isinstance(parsed, dict) else {}


async def _wait_for_close(reader: asyncio.StreamReader) -> None:
    """Return when the client has closed its side; read nothing, since the next request may come."""
    while not reader.at_eof() and reader.exception() is None:  # noqa: ASYNC110 - a reader tells nobody of its end
        await asyncio.sleep(_LOOK_SECONDS)


def _client_left(answering: "asyncio.Future[bool]") -> bool:
    """Return True if the client left before the whole answer was sent: it closed the connection, or writing failed."""
    return not answering.done() or isinstance(answering.exception(), ConnectionError)


async def _end(*tasks: "asyncio.Future[Any]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _answered(writer: asyncio.StreamWriter, answer: Says) -> bool:
    body = whole(answer)
    if answer.breaks is None:
        return await _whole(writer, body)
    half = body[: len(body) // 2]
    if answer.breaks.how == "end":
        return await _whole(writer, half)
    await _write(writer, _head(200, {"content-length": str(len(body))}) + half)
    return await _hang() if answer.breaks.how == "hang" else False


async def _streamed(writer: asyncio.StreamWriter, answer: Says, request: Asked) -> bool:
    with_usage = bool((request.body.get("stream_options") or {}).get("include_usage"))
    await _write(writer, _head(200, _STREAM))
    sent = 0
    async for event in _paced(pieces(answer, with_usage=with_usage), answer.between):
        # The first event brings the role alone and counts as none.
        if answer.breaks is not None and sent > answer.breaks.after:
            return await _break(writer, event, answer.breaks.how)
        await _write(writer, _chunk(event))
        sent += 1
    return await _end_response(writer)


async def _paced(events: Iterator[bytes], seconds: float) -> AsyncIterator[bytes]:
    for place, event in enumerate(events):
        if place:
            await asyncio.sleep(seconds)
        yield event


async def _break(writer: asyncio.StreamWriter, event: bytes, how: str) -> bool:
    if how == "hang":
        return await _hang()
    if how == "end":
        return await _end_response(writer)
    if how == "inside":
        await _write(writer, _chunk(event[: len(event) // 2]))
        await asyncio.sleep(_LOOK_SECONDS)
    return False


async def _unchanged(writer: asyncio.StreamWriter, answer: Sends) -> bool:
    if not answer.in_chunks:
        return await _whole(writer, answer.body, headers={"content-type": answer.content_type})
    await _write(writer, _head(200, {**_STREAM, "content-type": answer.content_type}))
    for at in range(0, len(answer.body), 65_536):
        await _write(writer, _chunk(answer.body[at : at + 65_536]))
    return await _end_response(writer)


async def _whole(
    writer: asyncio.StreamWriter, body: bytes, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> bool:
    await _write(writer, _head(status, {"content-length": str(len(body)), **(headers or {})}) + body)
    return True


async def _end_response(writer: asyncio.StreamWriter) -> bool:
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
