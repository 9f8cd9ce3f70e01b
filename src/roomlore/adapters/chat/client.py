"""The port `ChatClient` over any server that speaks OpenAI's protocol."""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from importlib import import_module
from typing import Any

from roomlore.adapters.chat import troubles
from roomlore.adapters.chat.events import data, whole
from roomlore.adapters.chat.reading import Assembly, ProviderProblem, parse
from roomlore.core.chat.models import ChatAnswer, ChatPiece, ChatRequest
from roomlore.core.chat.registry import Offer
from roomlore.core.errors import BadModelOutput, InvalidInput, ModelUnavailable
from roomlore.ports.coordination import Clock

Event = Mapping[str, Any]

CLOSED: Event = {}
"""The provider says that nothing more comes."""
_USAGE_SECONDS = 2.0
_END_SECONDS = 0.2
"""The whole answer is there: how long its usage, and then the end of the body, may still take. Read to its end, a
connection can be used again."""


class OpenAIChat:
    """Asks each provider over connections of its own, kept for the next request.

    `timeout_seconds` of a stream counts from one sign of life to the next: a piece of text, of a tool call or of the
    model's thoughts, which are not handed on.
    """

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._loading = asyncio.Lock()
        self._wire: Any = None

    async def complete(
        self, offer: Offer, request: ChatRequest, *, key: str | None, timeout_seconds: float
    ) -> ChatAnswer:
        await self._load()
        assembly, text = Assembly(), ""
        with self._explaining(offer, timeout_seconds):
            async with asyncio.timeout(timeout_seconds):
                async with aclosing(self._events(offer, request, key, timeout_seconds, streaming=False)) as events:
                    async for event in events:
                        text += assembly.take(event)[0]
            assembly.check()
        return ChatAnswer(text=text, **_ending(offer, assembly))

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
                # Blank beginnings are left out: an answer of blanks is none, and the next provider may have one.
                if text and assembly.spoken:
                    yield ChatPiece(text=text, provider=offer.provider.name, model_id=offer.model_id)
        with self._explaining(offer, timeout_seconds):
            if assembly.begun and not (assembly.closed or assembly.finished):
                raise troubles.dropped(offer)
            assembly.check()
        yield ChatPiece(**_ending(offer, assembly))

    async def close(self) -> None:
        if self._wire is not None:
            await self._wire.close()

    async def _events(
        self, offer: Offer, request: ChatRequest, key: str | None, seconds: float, *, streaming: bool
    ) -> AsyncGenerator[Event, None]:
        """What the provider answers, one event for each piece, or one for all where it does not stream."""
        body = _body(offer, request, streaming=streaming)
        asking = self._wire.asking(offer, body, key=key, seconds=seconds)
        async with asking as response, aclosing(response.aiter_bytes()) as parts:
            if not streaming or "json" in response.headers.get("content-type", ""):
                yield parse(await whole(parts))
                yield CLOSED
                return
            async with aclosing(data(parts)) as found:
                async for piece in found:
                    yield CLOSED if piece.startswith(b"[DONE]") else parse(piece)

    async def _load(self) -> None:
        """To load the package takes a second, which is not the provider's time, nor the loop's."""
        async with self._loading:
            if self._wire is None:
                self._wire = await asyncio.to_thread(_make_wire, self._clock)

    @contextmanager
    def _explaining(self, offer: Offer, seconds: float) -> Iterator[None]:
        """Turns what went wrong into `ModelUnavailable`, and hides what caused it: that may quote the provider."""
        try:
            yield
        except TimeoutError:
            raise troubles.late(offer, seconds) from None
        except BadModelOutput as error:
            raise troubles.broken(offer, str(error)) from None
        except ProviderProblem as error:
            raise troubles.of_status(offer, error.status, now=self._clock.now()) from None
        except ModelUnavailable as error:
            raise error from None


def _make_wire(clock: Clock) -> Any:
    return import_module("roomlore.adapters.chat.wire").Wire(clock=clock)


async def _next_text(events: AsyncGenerator[Event, None], assembly: Assembly, seconds: float) -> str | None:
    """The text of the next piece that brings anything, '' if that is no text; None at the end.

    Once the model has said why it stopped the answer is whole: nothing that happens later takes it back.
    """
    try:
        async with asyncio.timeout(_patience(assembly, seconds)):
            return await _text(events, assembly)
    except (TimeoutError, ModelUnavailable, BadModelOutput, ProviderProblem):
        if assembly.finished:
            return None
        raise


async def _text(events: AsyncGenerator[Event, None], assembly: Assembly) -> str | None:
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
    """What is sent: what the request names itself wins over its options."""
    body: dict[str, Any] = {**request.options, "model": offer.model_id, "messages": list(request.messages)}
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
    """The body with lone surrogates replaced, which UTF-8 cannot carry. Raises `InvalidInput` where it is no JSON."""
    try:
        text = json.dumps(body, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        raise InvalidInput("What is asked of a model must be JSON: messages, tools and options alike.") from None
    try:
        text.encode()
    except UnicodeEncodeError:
        clean: dict[str, Any] = json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
        return clean
    return body
