"""What the reply loop needs of other services, and what it is told to do."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from roomlore.core.chat.models import ChatPiece, ChatRequest, ToolCall
from roomlore.core.context import Context
from roomlore.core.intake import Limits
from roomlore.core.models import Message
from roomlore.core.replies.models import Tool, ToolResult
from roomlore.core.sessions.models import SessionContext
from roomlore.ports.coordination import Clock, Ids, Telemetry
from roomlore.ports.language import Prompts, TokenCounter
from roomlore.ports.storage import Storage
from roomlore.services.replies.background import Background

CallTool = Callable[[ToolCall], Awaitable[str]]
"""Calls a tool and gives what it says, as text for the model. What it raises is told to the model."""


class KnownModel(Protocol):
    @property
    def model_id(self) -> str: ...
    @property
    def internal(self) -> bool: ...


class Models(Protocol):
    async def list_available_models(self, *, internal: bool = False) -> Sequence[KnownModel]: ...

    def stream(self, model_id: str, request: ChatRequest) -> AsyncGenerator[ChatPiece, None]: ...


class Messages(Protocol):
    async def add(self, messages: Sequence[Message]) -> object: ...


class Contexts(Protocol):
    async def build(self, room_id: str, message_id: str | None = None) -> Context: ...

    async def respond(self, context_id: str, text: str) -> None: ...


class Sessions(Protocol):
    async def query_context(
        self, conversation_id: str, *, model_context_window: int | None = None
    ) -> SessionContext: ...

    async def add_messages(
        self, conversation_id: str, messages: Sequence[Message], *, user_id: str = "", agent_code: str = ""
    ) -> object: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyOptions:
    """What the settings say. `model`: '' where they name none. `max_tokens`: kept free for the answer. `window`: what
    the model takes. `content_filter_text`, `length_text`: '' for those that ship."""

    model: str = ""
    max_tokens: int = 1024
    window: int = 16_000
    max_tool_iterations: int = 10
    content_filter_text: str = ""
    length_text: str = ""
    recall_max_tokens: int = 2000
    recall_timeout_seconds: float = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyParts:
    """What the replies of all tenants share."""

    storage: Storage
    models: Models
    prompts: Prompts
    tokens: TokenCounter
    clock: Clock
    ids: Ids
    telemetry: Telemetry
    background: Background
    limits: Limits
    options: ReplyOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A reply as asked for, checked. `budget`: tokens the prompt may take."""

    message: Message
    agent_id: str
    agent_name: str
    model_id: str
    system_prompt: str | None
    temperature: float | None
    max_tokens: int | None
    window: int
    budget: int
    tools: tuple[Tool, ...] = ()
    call_tool: CallTool | None = None
    results: tuple[ToolResult, ...] = ()
    iterations: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
