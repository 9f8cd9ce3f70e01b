"""What a reply is asked for with, checked before anything is stored."""

from collections.abc import Mapping, Sequence
from typing import Any

from roomlore.core.errors import InvalidInput, NotFound
from roomlore.core.intake import MAX_ID_CHARS, Limits, check
from roomlore.core.models import Message, Role
from roomlore.core.replies.identity import MOST_ROUNDS
from roomlore.core.replies.models import Tool, ToolResult
from roomlore.core.replies.rounds import check_results, check_tools
from roomlore.core.sessions.intake import check_id
from roomlore.core.sessions.window import WindowOptions
from roomlore.services.replies.needs import Asked, CallTool, Models, ReplyOptions

_HOTTEST = 2
_ARGUMENTS = ("model", "messages", "temperature", "max_tokens", "max_completion_tokens", "tools")
_NO_OPTIONS = frozenset((*_ARGUMENTS, "n", "stream", "stream_options"))


class Asking:
    """Checks arguments, and fills in what the settings say."""

    def __init__(self, *, models: Models, options: ReplyOptions, limits: Limits) -> None:
        self._models = models
        self._options = options
        self._limits = limits

    async def checked(
        self,
        message: Message,
        *,
        agent_id: str,
        agent_name: str,
        model_id: str | None,
        system_prompt: str | None,
        temperature: float | None,
        max_tokens: int | None,
        model_context_window: int | None,
        tools: Sequence[Tool],
        call_tool: CallTool | None,
        tool_results: Sequence[ToolResult],
        max_tool_iterations: int | None,
        options: Mapping[str, Any] | None,
    ) -> Asked:
        """Raises `InvalidInput` that says what to mend, `NotFound` for an unknown model."""
        self._check_message(message)
        check_id("agent_id", agent_id)
        _check_name(agent_name)
        _check_text("system_prompt", system_prompt)
        _check_number("temperature", temperature, _HOTTEST)
        window = self._options.window if model_context_window is None else model_context_window
        WindowOptions(window=window)
        _check_whole("max_tokens", max_tokens, 1, window)
        _check_whole("max_tool_iterations", max_tool_iterations, 0, MOST_ROUNDS)
        if call_tool is not None and not callable(call_tool):
            raise InvalidInput(f"call_tool is {call_tool!r:.60}; give an async function of a ToolCall.")
        _check_options(options)
        most = self._options.max_tool_iterations if max_tool_iterations is None else max_tool_iterations
        offered = check_tools(tools)
        return Asked(
            message=message,
            agent_id=agent_id,
            agent_name=agent_name,
            model_id=await self._model(model_id),
            system_prompt=system_prompt,
            temperature=temperature,
            max_tokens=max_tokens,
            window=window,
            budget=window - (max_tokens or min(self._options.max_tokens, window // 2)),
            tools=offered,
            call_tool=call_tool,
            results=check_results(tool_results),
            iterations=most if offered else 0,
            options=options or {},
        )

    def _check_message(self, message: Message) -> None:
        if not isinstance(message, Message):
            raise InvalidInput(f"Give one roomlore.Message to reply to, not {message!r:.60}.")
        check([message], self._limits)
        if message.role != Role.USER:
            raise InvalidInput(f"Message {message.id!r:.80} has the role {message.role!s}; a reply answers a user's.")

    async def _model(self, model_id: str | None) -> str:
        if not isinstance(model_id, str | None):
            raise InvalidInput(f"model_id is {model_id!r:.60}; give the name of a model.")
        known = await self._models.list_available_models(internal=True)
        shown = [model.model_id for model in known if not model.internal]
        wanted = model_id or self._options.model
        if wanted and wanted not in {model.model_id for model in known}:
            raise NotFound(f"There is no model {wanted!r:.80}; there are {_named(shown)}.")
        if not wanted and not shown:
            raise InvalidInput(
                "There is no model to reply; name one under `models:` in roomlore.yaml, or in MEMORY_MODELS."
            )
        if not wanted and len(shown) > 1:
            raise InvalidInput(
                f"Which model is to reply? Give model_id or set reply_model; there are {', '.join(shown)}."
            )
        return wanted or shown[0]


def _named(models: Sequence[str]) -> str:
    return ", ".join(models) or "none; name some under `models:`"


def _check_name(name: object) -> None:
    _check_text("agent_name", name, "")
    if len(str(name)) > MAX_ID_CHARS:
        raise InvalidInput(f"agent_name has {len(str(name))} characters; at most {MAX_ID_CHARS}.")


def _check_options(options: object) -> None:
    if not isinstance(options, Mapping | None):
        raise InvalidInput(f"options is {options!r:.60}; give a mapping of fields for the provider.")
    others = sorted(_NO_OPTIONS.intersection(options or ()))
    if others:
        raise InvalidInput(f"options may not name {others[0]}: it is an argument of its own, or what replies rest on.")


def _check_text(name: str, value: object, default: str | None = None) -> None:
    if not (isinstance(value, str) or value is default):
        raise InvalidInput(f"{name} is {value!r:.60}; it must be a text.")


def _check_number(name: str, value: object, most: float) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (number and 0 <= value <= most):  # type: ignore[operator]
        raise InvalidInput(f"{name} is {value!r:.60}; give a number from 0 to {most}, or leave it out.")


def _check_whole(name: str, value: object, least: int, most: int) -> None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if value is not None and not (whole and least <= value <= most):  # type: ignore[operator]
        raise InvalidInput(f"{name} is {value!r:.60}; give a whole number from {least} to {most}, or leave it out.")
