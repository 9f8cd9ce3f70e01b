"""Requests for replies, checked before anything is stored, and what the reply loop needs of other services."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from typing import Any, Protocol, TypedDict, TypeVar

from roomlore.core.chat import NO_MODELS, ModelStatus, ToolCall
from roomlore.core.errors import Conflict, InvalidInput, NotFound, describe
from roomlore.core.intake import MAX_ID_CHARS, Limits, check
from roomlore.core.models import Message, Role
from roomlore.core.replies.prompt import check_results, check_tools
from roomlore.core.replies.reply import MAX_ROUNDS, Tool, ToolResult
from roomlore.core.sessions.session import SessionWindow, check_id
from roomlore.core.sessions.window import WindowOptions
from roomlore.ports.language import LanguageModels, Prompts
from roomlore.ports.quotas import QuotaChecks
from roomlore.ports.shared import Backends
from roomlore.services.replies.deferred import DeferredMessages

log = logging.getLogger(__name__)

T = TypeVar("T")
Key = tuple[str, ...]
_CLOSE_SECONDS = 5.0

CallTool = Callable[[ToolCall], Awaitable[str]]
"""Call a tool and return its result, as text for the model. The model is told of an error."""
_MAX_TEMPERATURE = 2
ANSWER_TOKENS = 1024
"""Tokens of the window kept free for a reply where the call does not say: chat is seldom longer."""
TOOL_ROUNDS = 10
"""How often a model may ask for tools where the call does not say: one that asks more often goes in circles."""
_MAX_SHOWN = 1000
_ARGUMENTS = ("model", "messages", "temperature", "max_tokens", "max_completion_tokens", "tools")
_NO_OPTIONS = frozenset((*_ARGUMENTS, "n", "stream", "stream_options"))


class BackgroundTasks:
    """Tasks that no one else holds."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._under_way: set[Key] = set()

    def start(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Run the work in the background."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def finish(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for the work. A cancelled caller gets the cancellation after the work is done."""
        task = self.start(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait({task})
            raise

    @contextmanager
    def alone(self, key: Key) -> Iterator[None]:
        """Raise `Conflict` if the same reply is in progress in this process, since it would be paid for twice."""
        if key in self._under_way:
            raise Conflict("reply_under_way")
        self._under_way.add(key)
        try:
            yield
        finally:
            self._under_way.discard(key)

    async def close(self) -> None:
        """Wait for a while until all tasks have ended, those that begin meanwhile too. Cancel what is left."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                while self._tasks:
                    await asyncio.wait(self._tasks)
        while late := list(self._tasks):
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.warning("work of a reply failed", extra={"why": describe(task.exception())})  # type: ignore[arg-type]


class ReplySessions(Protocol):
    async def query_window(self, conversation_id: str, model_context_window: int | None = None) -> SessionWindow: ...

    async def add_messages(
        self, conversation_id: str, messages: Sequence[Message], *, user_id: str = "", agent_code: str = ""
    ) -> object: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyOptions:
    """The settings of replies. `model`: '' if they name none. `window`: of the model. `content_filter_text`,
    `length_text`: '' for the built-in ones. `zone`: of the times in prompts."""

    model: str = ""
    window: int = 16_000
    content_filter_text: str = ""
    length_text: str = ""
    zone: tzinfo = UTC


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyParts:
    """The parts that replies share over all tenants."""

    backends: Backends
    models: LanguageModels
    prompts: Prompts
    background: BackgroundTasks
    later: DeferredMessages
    limits: Limits
    quotas: QuotaChecks
    options: ReplyOptions


class ReplyArguments(TypedDict, total=False):
    """The keyword arguments of `lore.replies.reply` and `lore.replies.stream`. Each may be left out.

    `agent_id`, `agent_name`: who replies, by default 'assistant' without a name. `model_id`: by default the setting
    `reply_model`, else the only model there is. `system_prompt`: by default one that ships; '' for none. `max_tokens`:
    how long the answer may be. `model_context_window`: what the model takes, in tokens. `temperature`: from 0 to 2.

    `tools`: what the model may call. `call_tool`: calls a tool; without it the stream ends with `ToolsWanted` and a
    `Reply` whose `finish_reason` is 'tool_calls', and continues in the next call, with the same message and
    `tool_results`. `max_tool_iterations`: how often the model may ask for tools, from 0 to 100. `options`: further
    fields for the provider. `shown`: ids of earlier messages of the room that the prompt has to show too, beside what
    is chosen; the oldest are left out if they do not fit.
    """

    agent_id: str
    agent_name: str
    model_id: str | None
    system_prompt: str | None
    temperature: float | None
    max_tokens: int | None
    model_context_window: int | None
    tools: Sequence[Tool]
    call_tool: CallTool | None
    tool_results: Sequence[ToolResult]
    max_tool_iterations: int | None
    options: Mapping[str, Any] | None
    shown: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyRequest:
    """A message to reply to, and the `ReplyArguments` with their defaults."""

    message: Message
    agent_id: str = "assistant"
    agent_name: str = ""
    model_id: str | None = None
    system_prompt: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    model_context_window: int | None = None
    tools: Sequence[Tool] = ()
    call_tool: CallTool | None = None
    tool_results: Sequence[ToolResult] = ()
    max_tool_iterations: int | None = None
    options: Mapping[str, Any] | None = None
    shown: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedRequest:
    """A valid request, with the settings where it says nothing. `names`: of the model, by its providers too. `window`:
    tokens that the model takes. `budget`: tokens that the prompt may take. `iterations`: how often the model may ask
    for tools."""

    request: ReplyRequest
    model_id: str
    names: tuple[str, ...]
    window: int
    budget: int
    iterations: int


class RequestChecks:
    """Check arguments, and fill in the settings."""

    def __init__(self, *, models: LanguageModels, options: ReplyOptions, limits: Limits) -> None:
        self._models = models
        self._options = options
        self._limits = limits

    async def checked(self, request: ReplyRequest) -> CheckedRequest:
        """Return the valid request. Raise `InvalidInput` that says what to change, `NotFound` for an unknown model."""
        self._check_message(request.message)
        window = self._options.window if request.model_context_window is None else request.model_context_window
        _check_arguments(request, window)
        tools, results = check_tools(request.tools), check_results(request.tool_results)
        given = request.max_tool_iterations
        iterations = TOOL_ROUNDS if given is None else given
        model = await self.model(request.model_id)
        return CheckedRequest(
            request=replace(request, tools=tools, tool_results=results),
            model_id=model.model_id,
            names=(model.model_id, *(provider.model_id for provider in model.providers)),
            window=window,
            budget=window - (request.max_tokens or min(ANSWER_TOKENS, window // 2)),
            iterations=iterations if tools else 0,
        )

    def _check_message(self, message: Message) -> None:
        if not isinstance(message, Message):
            raise InvalidInput("reply_message_invalid", value=f"{message!r:.60}")
        check([message], self._limits)
        if message.role != Role.USER:
            raise InvalidInput("reply_role_invalid", message=f"{message.id!r:.80}", role=f"{message.role!s}")

    async def model(self, model_id: str | None) -> ModelStatus:
        """Return the model that replies. Raise `NotFound` for an unknown one, `InvalidInput` if none can be chosen."""
        if not isinstance(model_id, str | None):
            raise InvalidInput("model_id_invalid", value=f"{model_id!r:.60}")
        known = {model.model_id: model for model in await self._models.list_available_models(internal=True)}
        shown = [model_id for model_id, model in known.items() if not model.internal]
        wanted = model_id or self._options.model
        if wanted and wanted not in known:
            raise NotFound("model_unknown", model=f"{wanted!r:.80}", known=_named(shown))
        if not wanted and not shown:
            raise InvalidInput("reply_model_missing")
        if not wanted and len(shown) > 1:
            raise InvalidInput("reply_model_unclear", known=", ".join(shown))
        return known[wanted or shown[0]]


def _named(models: Sequence[str]) -> str:
    return ", ".join(models) or NO_MODELS


def _check_arguments(request: ReplyRequest, window: int) -> None:
    check_id("agent_id", request.agent_id)
    _check_name(request.agent_name)
    _check_text("system_prompt", request.system_prompt)
    _check_number("temperature", request.temperature, _MAX_TEMPERATURE)
    WindowOptions(window=window)
    _check_integer("max_tokens", request.max_tokens, 1, window)
    _check_integer("max_tool_iterations", request.max_tool_iterations, 0, MAX_ROUNDS)
    if request.call_tool is not None and not callable(request.call_tool):
        raise InvalidInput("call_tool_invalid", value=f"{request.call_tool!r:.60}")
    _check_options(request.options)
    _check_shown(request.shown)


def _check_name(name: object) -> None:
    _check_text("agent_name", name, "")
    if len(str(name)) > MAX_ID_CHARS:
        raise InvalidInput("id_too_long", name="agent_name", count=len(str(name)), most=MAX_ID_CHARS)


def _check_options(options: object) -> None:
    if not isinstance(options, Mapping | None):
        raise InvalidInput("options_invalid", value=f"{options!r:.60}")
    others = sorted(_NO_OPTIONS.intersection(options or ()))
    if others:
        raise InvalidInput("option_reserved", name=others[0])


def _check_shown(shown: object) -> None:
    if not isinstance(shown, list | tuple) or not all(isinstance(message_id, str) for message_id in shown):
        raise InvalidInput("shown_invalid", value=f"{shown!r:.60}")
    if len(shown) > _MAX_SHOWN:
        raise InvalidInput("shown_too_many", count=len(shown), most=_MAX_SHOWN)


def _check_text(name: str, value: object, default: str | None = None) -> None:
    if not (isinstance(value, str) or value is default):
        raise InvalidInput("text_needed", name=name, value=f"{value!r:.60}")


def _check_number(name: str, value: object, most: float) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (number and 0 <= value <= most):  # type: ignore[operator]
        raise InvalidInput("number_to_give_or_none", name=name, value=f"{value!r:.60}", most=most)


def _check_integer(name: str, value: object, least: int, most: int) -> None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if value is not None and not (whole and least <= value <= most):  # type: ignore[operator]
        raise InvalidInput("whole_number_to_give_or_none", name=name, value=f"{value!r:.60}", least=least, most=most)
