"""Rounds of a reply in which the model wanted tools called, and the tools themselves as OpenAI's protocol has them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from roomlore.core.chat.models import ChatMessage, ToolCall, Usage
from roomlore.core.errors import Conflict, InvalidInput
from roomlore.core.replies.models import Tool, ToolResult

LONGEST_NAME = 200
"""Characters of a tool's name."""
_LONGEST_ID = 200
_NO_ARGUMENTS: Mapping[str, Any] = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One time the model asked for tools. `text`: what people were shown of it. `results`: texts by call id, so far.
    `usage`: what asking took."""

    number: int
    text: str = ""
    calls: tuple[ToolCall, ...]
    results: Mapping[str, str] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)

    @property
    def missing(self) -> tuple[ToolCall, ...]:
        """The calls nobody gave a result for yet."""
        return tuple(call for call in self.calls if call.id not in self.results)

    def place(self, call_id: str) -> int:
        return next(place for place, call in enumerate(self.calls) if call.id == call_id)

    def with_results(self, results: Mapping[str, str]) -> "Round":
        return replace(self, results={**self.results, **results})

    def chat(self) -> Iterator[ChatMessage]:
        """The calls and their results as messages for the model."""
        calls = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in self.calls
        ]
        yield {"role": "assistant", "content": self.text.strip() or None, "tool_calls": calls}
        for call in self.calls:
            yield {"role": "tool", "tool_call_id": call.id, "content": self.results.get(call.id, "")}


def as_function(tool: Tool) -> dict[str, Any]:
    """A tool as it is offered to a model."""
    parameters = dict(tool.parameters or _NO_ARGUMENTS)
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": parameters},
    }


def check_tools(tools: Sequence[Tool]) -> tuple[Tool, ...]:
    """Raises `InvalidInput` unless these are tools with names of their own and JSON schemas."""
    if not isinstance(tools, list | tuple) or not all(isinstance(tool, Tool) for tool in tools):
        raise InvalidInput(f"tools is {tools!r:.60}; give a list of roomlore.Tool.")
    names: set[str] = set()
    for tool in tools:
        if not isinstance(tool.name, str) or not 0 < len(tool.name) <= LONGEST_NAME or tool.name in names:
            raise InvalidInput(
                f"Each tool needs a name of its own of at most {LONGEST_NAME} characters, not {tool.name!r:.60}."
            )
        if not isinstance(tool.description, str) or not isinstance(tool.parameters, Mapping) or not _is_json(tool):
            raise InvalidInput(f"The tool {tool.name!r:.60} needs a description and a JSON schema of arguments.")
        names.add(tool.name)
    return tuple(tools)


def _is_json(tool: Tool) -> bool:
    try:
        json.dumps(as_function(tool), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def check_results(results: Sequence[ToolResult]) -> tuple[ToolResult, ...]:
    """Raises `InvalidInput` unless these are results with texts, one for a call."""
    if not isinstance(results, list | tuple) or not all(isinstance(result, ToolResult) for result in results):
        raise InvalidInput(f"tool_results is {results!r:.60}; give a list of roomlore.ToolResult.")
    for result in results:
        if not isinstance(result.tool_call_id, str) or not isinstance(result.content, str):
            raise InvalidInput(f"A tool's result is a text for a call's id, not {result!r:.80}.")
    if len({result.tool_call_id for result in results}) < len(results):
        raise InvalidInput("tool_results has two results for one call; give one.")
    return tuple(results)


def matched(rounds: Sequence[Round], results: Sequence[ToolResult]) -> dict[str, str]:
    """Those of the results that are new, by call id.

    Raises `InvalidInput` for a call that was never asked for, `Conflict` where another result is stored already.
    """
    asked = {call.id for one in rounds for call in one.calls}
    known = {call_id: content for one in rounds for call_id, content in one.results.items()}
    for result in results:
        if result.tool_call_id not in asked:
            raise InvalidInput(
                f"No tool was asked for with the call id {result.tool_call_id!r:.80}; give results for the calls of "
                "the last ToolsWanted, with the same message and agent."
            )
        if known.get(result.tool_call_id, result.content) != result.content:
            raise Conflict(f"The call {result.tool_call_id!r:.80} has another result already, and nothing was changed.")
    return {result.tool_call_id: result.content for result in results if result.tool_call_id not in known}


def own_ids(calls: Sequence[ToolCall], rounds: Sequence[Round]) -> tuple[ToolCall, ...]:
    """The calls with ids that no other call of the reply has: servers that give none begin anew with every round. One
    without an end counts as none."""
    taken = {call.id for one in rounds for call in one.calls}
    named: list[ToolCall] = []
    for place, call in enumerate(calls):
        given = call.id if len(call.id) <= _LONGEST_ID else ""
        own = given if given and given not in taken else f"{given or 'call'}.{len(rounds)}.{place}"
        taken.add(own)
        named.append(ToolCall(own, call.name, call.arguments))
    return tuple(named)
