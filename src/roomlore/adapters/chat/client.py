"""The port `ChatClient` for OpenAI's protocol: server-sent events, answers assembled from their pieces, and
requests."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from importlib import import_module
from typing import Any

from roomlore.adapters.chat import errors
from roomlore.core.chat import ChatAnswer, ChatPiece, ChatRequest, FinishReason, Offer, Recording, ToolCall, Usage
from roomlore.core.errors import BadModelOutput, InvalidInput, ModelUnavailable
from roomlore.ports.coordination import Clock

WHOLE_BYTES = 2 * 1024 * 1024
"""The longest answer that is read; the longest answers of today's models are a quarter of it. Parsing more would block
the event loop."""
_EVENT_BYTES = 1024 * 1024
_NOISE_BYTES = 1024 * 1024


async def whole(parts: AsyncIterator[bytes]) -> bytes:
    """Return the body. Raises `BadModelOutput` as soon as it is longer than `WHOLE_BYTES`."""
    body = bytearray()
    async for part in parts:
        body += part
        if len(body) > WHOLE_BYTES:
            raise BadModelOutput("answer_too_large")
    return bytes(body)


async def data(parts: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield the data of each event. An incomplete event at the end of the body is left out.

    Raises `BadModelOutput` for an event longer than 1 MiB, and for as many bytes between two events that belong to
    none.
    """
    lines = _Lines()
    data_lines: list[bytes] = []
    size = noise = 0
    async for part in parts:
        for line in lines.take(part):
            if line.startswith(b"data:"):
                data_lines.append(line[5:].removeprefix(b" "))
                size += len(line)
            elif not line and data_lines:
                yield b"\n".join(data_lines)
                data_lines, size, noise = [], 0, 0
            else:
                noise += len(line) + 1
        if size + lines.waiting > _EVENT_BYTES or noise > _NOISE_BYTES:
            raise BadModelOutput("answer_noise")


class _Lines:
    """Splits bytes into lines that end in LF or CRLF."""

    def __init__(self) -> None:
        self._rest = bytearray()

    @property
    def waiting(self) -> int:
        """The number of bytes of the line that has not ended yet."""
        return len(self._rest)

    def take(self, part: bytes) -> Iterator[bytes]:
        """Yield the lines that end in this piece."""
        self._rest += part
        if b"\n" not in part:
            return iter(())
        *ended, self._rest = self._rest.split(b"\n")
        return (bytes(line).removesuffix(b"\r") for line in ended)


_FINISHES: Mapping[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
}
_THOUGHTS = ("reasoning", "reasoning_content")
_MAX_TOKENS = 10**9
_LONGEST_ARGUMENTS = 2 * 1024 * 1024
_LONGEST_ANSWER = 16 * 1024 * 1024
"""Characters of text and reasoning. Settings allow no longer message."""
_MAX_CALLS = 1000


class ProviderProblem(Exception):
    """An error in the body of an answer. `status`: the HTTP status that stands for it."""

    def __init__(self, status: int) -> None:
        super().__init__()
        self.status = status


def parse(body: bytes) -> Mapping[str, Any]:
    """Return a JSON object. Raises `BadModelOutput` for anything else, and `ProviderProblem` if it reports an error."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadModelOutput("answer_not_json") from error
    if not isinstance(answer, Mapping):
        raise BadModelOutput("answer_json_unusable")
    if answer.get("error"):
        raise ProviderProblem(_status(answer["error"]))
    return answer


class Assembly:
    """An answer assembled from its pieces, or from a single one that is complete.

    `begun`: a piece arrived. `spoken`: it has text. `finished`: the model gave a finish reason. `closed`: the provider
    ended the stream.
    """

    def __init__(self) -> None:
        self.begun = False
        self.closed = False
        self.finished = False
        self._finish: FinishReason | None = None
        self._calls: list[_Call] = []
        self.spoken = False
        self._characters = 0
        self.usage = Usage()

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls that have a name. One without an id gets its index as the id."""
        named = [call for call in self._calls if call.name]
        return tuple(ToolCall(c.id or f"call_{n}", c.name, c.arguments) for n, c in enumerate(named))

    @property
    def finish_reason(self) -> FinishReason | None:
        """The finish reason. Several servers say `stop` beside tool calls."""
        return "tool_calls" if self.tool_calls and self._finish in (None, "stop") else self._finish

    def take(self, event: Mapping[str, Any]) -> tuple[str, bool]:
        """Return the text of a piece, and True if the piece holds anything: text, reasoning, tool calls or the end."""
        self.begun = True
        self.usage = _usage(event.get("usage")) or self.usage
        choice = _first(event.get("choices"))
        delta = _mapping(choice.get("delta")) or _mapping(choice.get("message"))
        text = _text(delta.get("content")) or _text(delta.get("refusal"))
        calls = _list(delta.get("tool_calls"))
        self._join(calls)
        self._note_finish(choice.get("finish_reason"))
        self.spoken = self.spoken or bool(text.strip())
        thoughts = [delta.get(name) for name in _THOUGHTS]
        self._measure(text, *thoughts)
        return text, bool(text or calls or any(thoughts) or self.finished)

    def check(self) -> None:
        """Raise `BadModelOutput` if there is no text and no reason for that."""
        if not (self.spoken or self.tool_calls or self._finish in ("length", "content_filter")):
            raise BadModelOutput("answer_empty")

    def _measure(self, *values: Any) -> None:
        self._characters += sum(len(text) for text in values if isinstance(text, str))
        if self._characters > _LONGEST_ANSWER:
            raise BadModelOutput("answer_endless")

    def _note_finish(self, reason: Any) -> None:
        if not reason:
            return
        if reason == "error":
            raise BadModelOutput("answer_broken_off")
        self.finished = True
        self._finish = _FINISHES.get(reason) if isinstance(reason, str) else None

    def _join(self, fragments: Iterable[Any]) -> None:
        for fragment in fragments:
            self._call(_mapping(fragment)).add(_mapping(fragment))
        if len(self._calls) > _MAX_CALLS or sum(len(call.arguments) for call in self._calls) > _LONGEST_ARGUMENTS:
            raise BadModelOutput("answer_tools_endless")

    def _call(self, fragment: Mapping[str, Any]) -> "_Call":
        """Return the call that a fragment belongs to. Some servers number all calls 0, and some do not number them."""
        place, name = fragment.get("index"), fragment.get("id")
        known = [call for call in self._calls if call.place == place]
        if known and (not name or name == known[-1].id):
            return known[-1]
        self._calls.append(_Call(place))
        return self._calls[-1]


class _Call:
    def __init__(self, place: Any) -> None:
        self.place = place
        self.id = ""
        self.name = ""
        self.arguments = ""

    def add(self, fragment: Mapping[str, Any]) -> None:
        function = _mapping(fragment.get("function"))
        arguments = function.get("arguments")
        self.id = self.id or str(fragment.get("id") or "")
        self.name = self.name or str(function.get("name") or "")
        self.arguments += arguments if isinstance(arguments, str) else json.dumps(arguments) if arguments else ""


def _text(content: Any) -> str:
    """Return a text, or the texts of a list of parts."""
    if isinstance(content, str):
        return content
    return "".join(_part(part) for part in _list(content))


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    given = _mapping(part)
    text = given.get("text")
    return text if given.get("type") in (None, "text", "output_text") and isinstance(text, str) else ""


def _usage(given: Any) -> Usage | None:
    """Return the tokens under the names of either of OpenAI's protocols; None if there are none."""
    counts = _mapping(given)
    if not counts:
        return None
    spent = _count(counts, "prompt_tokens", "input_tokens"), _count(counts, "completion_tokens", "output_tokens")
    return Usage(*spent)


def _count(counts: Mapping[str, Any], *names: str) -> int:
    """Return the first number that can be a count of tokens, else 0."""
    for name in names:
        value = counts.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MAX_TOKENS:
            return int(value)
    return 0


def _status(problem: Any) -> int:
    code = _mapping(problem).get("code")
    return code if isinstance(code, int) and not isinstance(code, bool) and 400 <= code < 600 else 500


def _first(choices: Any) -> Mapping[str, Any]:
    listed = _list(choices)
    return _mapping(listed[0]) if listed else {}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else []


Event = Mapping[str, Any]

CLOSED: Event = {}
"""The provider ended the stream."""
_USAGE_SECONDS = 2.0
_END_SECONDS = 0.2
"""After the complete answer: the seconds that its usage, and then the end of the body, may still take. A connection can
be reused only if its body was read to the end."""


class OpenAIChat:
    """The port `ChatClient`. Each provider has its own connections, which are reused.

    `timeout_seconds` of a stream counts from one piece to the next. A piece is text, a tool call or reasoning;
    reasoning is not passed on.
    """

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._loading = asyncio.Lock()
        self._wire: Any = None

    async def complete(
        self, offer: Offer, request: ChatRequest, *, key: str | None, timeout_seconds: float
    ) -> ChatAnswer:
        await self._load()
        if request.recording is not None:
            return await self._transcript(offer, request.recording, key, timeout_seconds)
        assembly, text = Assembly(), ""
        with self._explaining(offer, timeout_seconds):
            async with asyncio.timeout(timeout_seconds):
                async with aclosing(self._events(offer, request, key, timeout_seconds, streaming=False)) as events:
                    async for event in events:
                        text += assembly.take(event)[0]
            assembly.check()
        return ChatAnswer(text=text, **_ending(offer, assembly))

    async def _transcript(self, offer: Offer, recording: Recording, key: str | None, seconds: float) -> ChatAnswer:
        """Return what is said in the recording, "" if nothing is."""
        file = recording.name, recording.content, recording.media_type
        with self._explaining(offer, seconds):
            async with asyncio.timeout(seconds):
                asking = self._wire.asking(offer, offer.options, key=key, seconds=seconds, file=file)
                async with asking as response, aclosing(response.aiter_bytes()) as parts:
                    answer = parse(await whole(parts))
            if not isinstance(answer.get("text"), str):
                raise BadModelOutput("answer_json_unusable")
        return ChatAnswer(
            text=answer["text"],
            usage=_usage(answer.get("usage")) or Usage(),
            provider=offer.provider.name,
            model_id=offer.model_id,
        )

    async def stream(
        self, offer: Offer, request: ChatRequest, *, key: str | None, timeout_seconds: float
    ) -> AsyncGenerator[ChatPiece, None]:
        await self._load()
        assembly = Assembly()
        async with aclosing(self._events(offer, request, key, timeout_seconds, streaming=True)) as events:
            while True:
                with self._explaining(offer, timeout_seconds):
                    text = await _next_text(events, assembly, timeout_seconds)
                if text is None:
                    break
                # Leading blanks are left out: an answer of blanks is empty, and the next provider may have one.
                if text and assembly.spoken:
                    yield ChatPiece(text=text, provider=offer.provider.name, model_id=offer.model_id)
        with self._explaining(offer, timeout_seconds):
            if assembly.begun and not (assembly.closed or assembly.finished):
                raise errors.dropped(offer)
            assembly.check()
        yield ChatPiece(**_ending(offer, assembly))

    async def close(self) -> None:
        if self._wire is not None:
            await self._wire.close()

    async def _events(
        self, offer: Offer, request: ChatRequest, key: str | None, seconds: float, *, streaming: bool
    ) -> AsyncGenerator[Event, None]:
        """Yield the provider's answer: one event for each piece, or one for all if it does not stream."""
        body = _body(offer, request, streaming=streaming)
        asking = self._wire.asking(offer, body, key=key, seconds=seconds)
        async with asking as response, aclosing(response.aiter_bytes()) as parts:
            if not streaming or "json" in response.headers.get("content-type", ""):
                yield parse(await whole(parts))
                yield CLOSED
                return
            async with aclosing(data(parts)) as pieces:
                async for piece in pieces:
                    yield CLOSED if piece.startswith(b"[DONE]") else parse(piece)

    async def _load(self) -> None:
        """Load the package. It takes a second, which must not count against the provider's time nor block the event
        loop."""
        async with self._loading:
            if self._wire is None:
                self._wire = await asyncio.to_thread(_make_wire, self._clock)

    @contextmanager
    def _explaining(self, offer: Offer, seconds: float) -> Iterator[None]:
        """Translate errors to `ModelUnavailable` without their cause, which may quote the provider."""
        try:
            yield
        except TimeoutError:
            raise errors.late(offer, seconds) from None
        except BadModelOutput as error:
            raise errors.broken(offer, str(error)) from None
        except ProviderProblem as error:
            raise errors.of_status(offer, error.status, now=self._clock.now()) from None
        except ModelUnavailable as error:
            raise error from None


def _make_wire(clock: Clock) -> Any:
    return import_module("roomlore.adapters.chat.wire").Wire(clock=clock)


async def _next_text(events: AsyncGenerator[Event, None], assembly: Assembly, seconds: float) -> str | None:
    """Return the text of the next piece that is not empty, '' if it is no text; None at the end.

    The answer is complete once the model gave its finish reason. Later errors do not discard it.
    """
    try:
        async with asyncio.timeout(_patience(assembly, seconds)):
            return await _read_text(events, assembly)
    except (TimeoutError, ModelUnavailable, BadModelOutput, ProviderProblem):
        if assembly.finished:
            return None
        raise


async def _read_text(events: AsyncGenerator[Event, None], assembly: Assembly) -> str | None:
    async for event in events:
        if event is CLOSED:
            assembly.closed = True
            return ""
        text, moved = assembly.take(event)
        if moved:
            return text
    return None


def _patience(assembly: Assembly, seconds: float) -> float:
    if assembly.closed:
        return _END_SECONDS
    return min(seconds, _USAGE_SECONDS) if assembly.finished else seconds


def _ending(offer: Offer, assembly: Assembly) -> dict[str, Any]:
    return {
        "finish_reason": assembly.finish_reason,
        "tool_calls": assembly.tool_calls,
        "usage": assembly.usage,
        "provider": offer.provider.name,
        "model_id": offer.model_id,
    }


def _body(offer: Offer, request: ChatRequest, *, streaming: bool) -> Mapping[str, Any]:
    """Return the body of the request. Fields of the request override the provider's options."""
    body: dict[str, Any] = {
        **offer.options,
        **request.options,
        "model": offer.model_id,
        "messages": list(request.messages),
    }
    body.pop("stream_options", None)
    body["stream"] = streaming
    if streaming:
        body["stream_options"] = {"include_usage": True}
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.max_tokens is not None:
        body[offer.provider.limit_field] = request.max_tokens
    if request.tools:
        body["tools"] = list(request.tools)
    return _sendable(body)


def _sendable(body: dict[str, Any]) -> Mapping[str, Any]:
    """Return the body with lone surrogates replaced, which UTF-8 cannot hold. Raises `InvalidInput` if it is no
    JSON."""
    try:
        text = json.dumps(body, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        raise InvalidInput("model_request_not_json") from None
    try:
        text.encode()
    except UnicodeEncodeError:
        clean: dict[str, Any] = json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
        return clean
    return body
