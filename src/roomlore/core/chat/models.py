"""What is asked of a language model and what it answers, as OpenAI's protocol has it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

ChatMessage = Mapping[str, Any]
"""A message of OpenAI's protocol: role, content, and for tools tool_calls or tool_call_id."""

FinishReason = Literal["stop", "length", "content_filter", "tool_calls"]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens a provider says a call took."""

    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool the model wants called; `arguments`: JSON as it wrote it, whole or not."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """What is asked; what is None is left to the provider."""

    messages: Sequence[ChatMessage]
    temperature: float | None = None
    max_tokens: int | None = None
    tools: Sequence[Mapping[str, Any]] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatAnswer:
    """What a model answered, and which one did. `finish_reason`: None where the provider does not say."""

    text: str
    finish_reason: FinishReason | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    provider: str = ""
    model_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatPiece:
    """A piece of an answer that is being written. The last one brings `finish_reason`, whole `tool_calls` and usage."""

    text: str = ""
    finish_reason: FinishReason | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    provider: str = ""
    model_id: str = ""
