"""What a provider answered, read leniently: unknown fields, odd shapes and silly numbers do no harm."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from roomlore.core.chat.models import FinishReason, ToolCall, Usage
from roomlore.core.errors import BadModelOutput

_FINISHES: Mapping[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
}
_THOUGHTS = ("reasoning", "reasoning_content")
_MOST_TOKENS = 10**9
_LONGEST_ARGUMENTS = 2 * 1024 * 1024
_LONGEST_ANSWER = 16 * 1024 * 1024
"""Characters of text and thoughts: settings allow no longer message."""
_MOST_CALLS = 1000


class ProviderProblem(Exception):
    """An error that came in the body of an answer. `status`: the HTTP status it would have been."""

    def __init__(self, status: int) -> None:
        super().__init__()
        self.status = status


def parse(body: bytes) -> Mapping[str, Any]:
    """A JSON object. Raises `BadModelOutput` for anything else, `ProviderProblem` where it tells of an error."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadModelOutput("answers something that is no JSON") from error
    if not isinstance(found, Mapping):
        raise BadModelOutput("answers JSON that is no answer")
    if found.get("error"):
        raise ProviderProblem(_status(found["error"]))
    return found


class Assembly:
    """An answer put together from its pieces, or from one that is all of it.

    `begun`: a piece came. `spoken`: it has words. `finished`: the model said why it stopped. `closed`: the provider
    said that this was all.
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
        """Those that have a name; one without an id gets its place for one."""
        named = [call for call in self._calls if call.name]
        return tuple(ToolCall(c.id or f"call_{n}", c.name, c.arguments) for n, c in enumerate(named))

    @property
    def finish_reason(self) -> FinishReason | None:
        """Several servers say `stop` beside tool calls."""
        return "tool_calls" if self.tool_calls and self._finish in (None, "stop") else self._finish

    def take(self, event: Mapping[str, Any]) -> tuple[str, bool]:
        """The text a piece brings, and whether it brings anything at all: text, thoughts, tool calls, the end."""
        self.begun = True
        self.usage = _usage(event.get("usage")) or self.usage
        choice = _first(event.get("choices"))
        said = _mapping(choice.get("delta")) or _mapping(choice.get("message"))
        text = _text(said.get("content")) or _text(said.get("refusal"))
        calls = _list(said.get("tool_calls"))
        self._join(calls)
        self._note_finish(choice.get("finish_reason"))
        self.spoken = self.spoken or bool(text.strip())
        thoughts = [said.get(name) for name in _THOUGHTS]
        self._measure(text, *thoughts)
        return text, bool(text or calls or any(thoughts) or self.finished)

    def check(self) -> None:
        """Raises `BadModelOutput` where nothing was said and no reason for that was given."""
        if not (self.spoken or self.tool_calls or self._finish in ("length", "content_filter")):
            raise BadModelOutput("answers nothing")

    def _measure(self, *said: Any) -> None:
        self._characters += sum(len(text) for text in said if isinstance(text, str))
        if self._characters > _LONGEST_ANSWER:
            raise BadModelOutput("answers without end")

    def _note_finish(self, reason: Any) -> None:
        if not reason:
            return
        if reason == "error":
            raise BadModelOutput("breaks off with an error")
        self.finished = True
        self._finish = _FINISHES.get(reason) if isinstance(reason, str) else None

    def _join(self, fragments: Iterable[Any]) -> None:
        for fragment in fragments:
            self._call(_mapping(fragment)).add(_mapping(fragment))
        if len(self._calls) > _MOST_CALLS or sum(len(call.arguments) for call in self._calls) > _LONGEST_ARGUMENTS:
            raise BadModelOutput("calls tools without end")

    def _call(self, fragment: Mapping[str, Any]) -> "_Call":
        """The call that a fragment belongs to. Some servers number all calls 0, and some number none."""
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
    """A text, or the texts of a list of parts."""
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
    """Tokens under the names of either of OpenAI's protocols; None where there are none."""
    counts = _mapping(given)
    if not counts:
        return None
    spent = _count(counts, "prompt_tokens", "input_tokens"), _count(counts, "completion_tokens", "output_tokens")
    return Usage(*spent)


def _count(counts: Mapping[str, Any], *names: str) -> int:
    """The first number that can be a count of tokens, else 0."""
    for name in names:
        value = counts.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS:
            return int(value)
    return 0


def _status(problem: Any) -> int:
    code = _mapping(problem).get("code")
    return code if isinstance(code, int) and not isinstance(code, bool) and 400 <= code < 600 else 500


def _first(choices: Any) -> Mapping[str, Any]:
    found = _list(choices)
    return _mapping(found[0]) if found else {}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else []
