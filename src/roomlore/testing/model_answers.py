"""What a scripted model server can answer, well or badly, and how that looks in OpenAI's protocol."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from roomlore.core.chat.models import ToolCall

USAGE: Mapping[str, Any] = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
_PIECE_CHARACTERS = 4
_NAMED = {"id": "chatcmpl-1", "created": 1, "model": "scripted"}


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that arrived. Times are seconds of the event loop's clock.

    `headers`: names in lower case. `answered_at`: when the last byte of the answer was sent; `left_at`: when the client
    was seen to have closed the connection before that.
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
        """The API key, None where none was sent."""
        scheme, _, key = self.headers.get("authorization", "").partition(" ")
        return key if scheme.lower() == "bearer" else None

    @property
    def prompt(self) -> str:
        """The texts of all messages, one below the other."""
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
    """Where an answer breaks off: after so many pieces, or in the middle of a whole one.

    `drop`: the connection is cut there; `inside`: it is cut in the middle of the next piece; `hang`: nothing comes any
    more; `end`: the body ends there as if that were all.
    """

    after: int = 1
    how: Literal["drop", "inside", "hang", "end"] = "drop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Says:
    """An answer. Whole or in pieces, as the request asks.

    `text`: by default "ready", or nothing beside tool calls. `content`: sent in its place, whatever it is (null, a list
    of parts). `pieces`: how the text is cut when streamed, by default every four characters. `usage`: None leaves it
    out, anything else is sent as it is. `extra`: further fields of the message, and of each piece. `after`, `between`:
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
    """Any bytes at all, with status 200. `in_chunks`: as a stream whose length nobody was told."""

    body: bytes
    content_type: str = "application/json"
    in_chunks: bool = False
    after: float = 0.0


@dataclass(frozen=True, slots=True)
class Hangs:
    """No answer, ever."""


@dataclass(frozen=True, slots=True)
class Drops:
    """The connection is cut before the first byte."""


Answer = Says | Fails | Sends | Hangs | Drops


def whole(answer: Says) -> bytes:
    """The answer as one JSON object."""
    message = {"role": "assistant", "content": _content(answer), **answer.extra}
    if answer.tool_calls:
        message["tool_calls"] = [_call(call) for call in answer.tool_calls]
    choice = {"index": 0, "message": message, "finish_reason": _finish(answer)}
    return _dump({**_NAMED, "object": "chat.completion", "choices": [choice], **_usage(answer)})


def pieces(answer: Says, *, with_usage: bool) -> Iterator[bytes]:
    """The answer as server-sent events, usage in the last one before the end, if asked for."""
    yield _event([_choice({"role": "assistant", "content": "", **answer.extra})])
    for piece in _texts(answer):
        yield _event([_choice({"content": piece, **answer.extra})])
    for place, call in enumerate(answer.tool_calls):
        yield from (_event([_choice({"tool_calls": [one]})]) for one in _fragments(place, call))
    yield _event([_choice({}, finish=_finish(answer))])
    if with_usage:
        yield _event([], **_usage(answer))
    yield b"data: [DONE]\n\n"


def problem(answer: Fails, asked: Asked) -> bytes:
    """The body of an error."""
    if answer.body is not None:
        return answer.body
    return _dump({"error": {"message": f"refused: {asked.prompt}, said with {asked.key}", "type": "invalid"}})


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
