"""Tool rounds of a reply, and tools in OpenAI's format."""

import json
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from itertools import accumulate
from typing import Any, Literal

from roomlore.core.chat import ChatMessage, ToolCall, Usage
from roomlore.core.errors import BudgetTooSmall, Conflict, InvalidInput
from roomlore.core.memory.reading import INJECTED_NAME, MEMORY_BLOCK
from roomlore.core.models import Candidate, Message, Role, StoredMessage
from roomlore.core.prompt import neutral
from roomlore.core.replies.reply import BROKEN_OFF, Tool, ToolResult, about
from roomlore.core.sessions.session import Language
from roomlore.core.sessions.window import Count, shown, summary_line, sums_of, turns_of
from roomlore.core.text import graphemes, truncate
from roomlore.core.transcript import ShownMessage, Speakers, Transcript, is_own, local, people_of, speaks, spoken_text

LONGEST_NAME = 200
"""Characters of a tool's name."""
_LONGEST_ID = 200
_NO_ARGUMENTS: Mapping[str, Any] = {"type": "object", "properties": {}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """A request of the model for tool calls. `text`: the text shown to people. `results`: texts by call id, so far.
    `usage`: the tokens of the request."""

    number: int
    text: str = ""
    calls: tuple[ToolCall, ...]
    results: Mapping[str, str] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)

    @property
    def missing(self) -> tuple[ToolCall, ...]:
        """The calls without a result."""
        return tuple(call for call in self.calls if call.id not in self.results)

    def place(self, call_id: str) -> int:
        return next(place for place, call in enumerate(self.calls) if call.id == call_id)

    def with_results(self, results: Mapping[str, str]) -> "Round":
        return replace(self, results={**self.results, **results})

    def chat(self) -> Iterator[ChatMessage]:
        """Yield the calls and their results as messages for the model."""
        calls = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in self.calls
        ]
        yield {"role": "assistant", "content": self.text.strip() or None, "tool_calls": calls}
        for call in self.calls:
            yield {"role": "tool", "tool_call_id": call.id, "content": self.results.get(call.id, "")}


def as_function(tool: Tool) -> dict[str, Any]:
    """Return a tool in the model's format."""
    parameters = dict(tool.parameters or _NO_ARGUMENTS)
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": parameters},
    }


def check_tools(tools: Sequence[Tool]) -> tuple[Tool, ...]:
    """Return the tools. Raises `InvalidInput` unless these are tools with unique names and JSON schemas."""
    if not isinstance(tools, list | tuple) or not all(isinstance(tool, Tool) for tool in tools):
        raise InvalidInput("tools_invalid", value=f"{tools!r:.60}")
    names: set[str] = set()
    for tool in tools:
        if not isinstance(tool.name, str) or not 0 < len(tool.name) <= LONGEST_NAME or tool.name in names:
            raise InvalidInput("tool_name_invalid", most=LONGEST_NAME, name=f"{tool.name!r:.60}")
        if not isinstance(tool.description, str) or not isinstance(tool.parameters, Mapping) or not _is_json(tool):
            raise InvalidInput("tool_incomplete", name=f"{tool.name!r:.60}")
        names.add(tool.name)
    return tuple(tools)


def _is_json(tool: Tool) -> bool:
    try:
        json.dumps(as_function(tool), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def check_results(results: Sequence[ToolResult]) -> tuple[ToolResult, ...]:
    """Return the results. Raises `InvalidInput` unless these are results with texts, one for a call."""
    if not isinstance(results, list | tuple) or not all(isinstance(result, ToolResult) for result in results):
        raise InvalidInput("tool_results_invalid", value=f"{results!r:.60}")
    for result in results:
        if not isinstance(result.tool_call_id, str) or not isinstance(result.content, str):
            raise InvalidInput("tool_result_invalid", value=f"{result!r:.80}")
    if len({result.tool_call_id for result in results}) < len(results):
        raise InvalidInput("tool_results_twice")
    return tuple(results)


def matched(rounds: Sequence[Round], results: Sequence[ToolResult]) -> dict[str, str]:
    """Return the new results, by call id.

    Raises `InvalidInput` for an unknown call, `Conflict` if another result is stored already.
    """
    call_ids = {call.id for round_ in rounds for call in round_.calls}
    known = {call_id: content for round_ in rounds for call_id, content in round_.results.items()}
    for result in results:
        if result.tool_call_id not in call_ids:
            raise InvalidInput("tool_call_unknown", call=f"{result.tool_call_id!r:.80}")
        if known.get(result.tool_call_id, result.content) != result.content:
            raise Conflict("tool_call_answered", call=f"{result.tool_call_id!r:.80}")
    return {result.tool_call_id: result.content for result in results if result.tool_call_id not in known}


def own_ids(calls: Sequence[ToolCall], rounds: Sequence[Round]) -> tuple[ToolCall, ...]:
    """Return the calls with ids that are unique in the reply. Servers without call ids restart their numbering with
    every round. A missing or overlong id is replaced."""
    taken = {call.id for round_ in rounds for call in round_.calls}
    named: list[ToolCall] = []
    for place, call in enumerate(calls):
        given = call.id if len(call.id) <= _LONGEST_ID else ""
        own = given if given and given not in taken else f"{given or 'call'}.{len(rounds)}.{place}"
        taken.add(own)
        named.append(ToolCall(own, call.name, call.arguments))
    return tuple(named)


MESSAGE_TOKENS = 4
"""The protocol's tokens for each message."""
ANSWER_TOKENS = 3
"""The protocol's tokens for the beginning of the answer."""
_CUT = " …"
_SHORTEST_RESULT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """The possible parts of a prompt.

    `system`: the agent's instructions, '' for none. `trigger`: the message that is replied to. `context`: the messages
    chosen for it. `window`: the messages that the session shows, and `summary`: the summary of those before. `people`:
    the room's senders with their names. `blocks`: blocks of memories. `tools`: as offered to the model.
    `zone`: of the times shown. `now`: the present, None if not told.
    """

    trigger: StoredMessage
    agent_id: str
    agent_name: str = ""
    system: str = ""
    language: Language = "en"
    context: Sequence[Candidate] = ()
    window: Sequence[StoredMessage] = ()
    summary: str = ""
    people: Mapping[str, str] = field(default_factory=dict)
    blocks: Sequence[str] = ()
    rounds: Sequence[Round] = ()
    tools: Sequence[Mapping[str, Any]] = ()
    zone: tzinfo = UTC
    now: datetime | None = None


@dataclass(frozen=True, slots=True)
class ReplyPrompt:
    """The prompt. `shown`: ids of the room's messages in it, in order, the one replied to last. `tokens`: its size,
    including the tools. `truncated`: a part was dropped or cut."""

    messages: tuple[ChatMessage, ...]
    shown: tuple[str, ...]
    tokens: int
    truncated: bool


@dataclass(frozen=True, slots=True)
class _Unit:
    """Messages that are dropped together."""

    kind: Literal["messages", "blocks", "summary"]
    messages: tuple[StoredMessage, ...] = ()


def assemble(material: Material, *, budget: int, count: Count) -> ReplyPrompt:
    """Return the prompt in at most `budget` tokens. Raises `BudgetTooSmall` if not even the required parts fit."""
    writer = _Writer(material)
    rounds, cut = _cut_results(writer, material, budget, count)
    units = _units(material)
    prompts: dict[int, ReplyPrompt] = {}

    def fits(left_out: int) -> bool:
        messages = writer.messages(units[left_out:], rounds)
        ids = (*(message.id for message in _in_order(units[left_out:])), material.trigger.id)
        tokens = tokens_of(messages, material.tools, count)
        prompts[left_out] = ReplyPrompt(messages, ids, tokens, truncated=cut or left_out > 0)
        return tokens <= budget

    least = 0 if fits(0) else _least(fits, _units_to_drop(units, prompts[0].tokens - budget, count), len(units) + 1)
    if least > len(units):
        raise BudgetTooSmall("prompt_too_large", tokens=prompts[len(units)].tokens, budget=budget)
    return prompts[least]


def _units_to_drop(units: Sequence[_Unit], tokens: int, count: Count) -> int:
    """Return about how many units, at least one, must be dropped to save these tokens."""
    texts = [[spoken_text(message) for message in unit.messages] for unit in units]
    tokens_of_units = zip(texts, sums_of(texts, count), strict=True)
    saved = accumulate(tokens_of_unit + MESSAGE_TOKENS * len(of_unit) for of_unit, tokens_of_unit in tokens_of_units)
    return next((place for place, sum_ in enumerate(saved, 1) if sum_ >= tokens), max(1, len(units)))


def _least(fits: Callable[[int], bool], near: int, end: int) -> int:
    """Return the smallest number from 1 to `end - 1` that fits, or `end` if none does. Search outwards from `near`,
    since each try renders and counts a whole prompt."""
    low, high, step = 0, end, 1
    if fits(near):
        high = near
        while high - step > low and fits(high - step):
            high, step = high - step, 2 * step
        low = max(low, high - step)
    else:
        low = near
        while low + step < high and not fits(low + step):
            low, step = low + step, 2 * step
        high = min(high, low + step)
    return bisect_left(range(high), True, lo=low + 1, key=fits)


def tokens_of(messages: Sequence[ChatMessage], tools: Sequence[Mapping[str, Any]], count: Count) -> int:
    """Return the tokens of a request, exact for its texts plus the protocol's tokens for each message."""
    texts = [text for message in messages for text in _texts(message)]
    if tools:
        texts.append(_json(tools))
    return sum(count(texts)) + MESSAGE_TOKENS * len(messages) + ANSWER_TOKENS if texts else ANSWER_TOKENS


def _texts(message: ChatMessage) -> Iterator[str]:
    for name in ("content", "name", "tool_call_id"):
        if message.get(name):
            yield message[name]
    if message.get("tool_calls"):
        yield _json(message["tool_calls"])


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def said_before(material: Material, messages: Iterable[StoredMessage]) -> list[StoredMessage]:
    """Return the messages that belong before the one replied to, without tool calls and results, injected blocks, and
    interrupted attempts at this or an existing reply."""
    known = (*material.window, *(candidate.message for candidate in material.context))
    replies = (message for message in known if about(message) and message.role is Role.ASSISTANT)
    whole = {m.reply_to for m in replies if not m.has_tool_calls and not about(m).get(BROKEN_OFF)}
    return [
        message
        for message in messages
        if message.arrival < material.trigger.arrival
        and message.role is not Role.TOOL
        and not (about(message).get(BROKEN_OFF) and message.reply_to in (material.trigger.id, *whole))
        and speaks(message)
    ]


def _units(material: Material) -> list[_Unit]:
    """Return the parts that may be dropped, in the order of dropping."""
    window = said_before(material, material.window)
    in_window = {message.id for message in window}
    scores = {candidate.message.id: candidate.score for candidate in material.context}
    chosen = {
        message.id: message
        for message in said_before(material, (candidate.message for candidate in material.context))
        if message.id not in in_window
    }
    by_score = sorted(chosen.values(), key=lambda message: (scores[message.id], message.arrival))
    units = [_Unit("messages", (message,)) for message in by_score]
    units += [_Unit("messages", turn) for turn in _turns(window)]
    units += [_Unit("blocks")] if material.blocks else []
    return units + ([_Unit("summary")] if material.summary else [])


def _turns(window: Sequence[StoredMessage]) -> list[tuple[StoredMessage, ...]]:
    by_id = {message.id: message for message in window}
    ordered = sorted(by_id.values(), key=lambda message: message.arrival)
    return [tuple(by_id[m.id] for m in turn.messages) for turn in turns_of(map(shown, ordered))]


def _in_order(units: Iterable[_Unit]) -> list[StoredMessage]:
    """Return the messages in people's order."""
    messages = [message for unit in units for message in unit.messages]
    return sorted(messages, key=lambda message: (message.at, message.arrival))


class _Writer:
    """Writes the kept parts as messages for the model."""

    def __init__(self, material: Material) -> None:
        self._material = material
        known = [*material.window, *(candidate.message for candidate in material.context), material.trigger]
        people = {**material.people, **people_of(known, material.people)}
        others = {message.sender_id for message in known if not is_own(message, material.agent_id)}
        several = len(others | {*material.people} - {material.agent_id, Role.TOOL.value}) > 1
        self._speakers = Speakers(people, agents=[material.agent_id, material.agent_name], several=several)
        self._between = "\n" if several else "\n\n"
        spoken = {message.id for message in said_before(material, known)}
        self._silent = [message.arrival for message in known if message.id not in spoken]

    def messages(self, kept: Sequence[_Unit], rounds: Sequence[Round]) -> tuple[ChatMessage, ...]:
        kinds = {unit.kind for unit in kept}
        *before, question = self._spoken(kept)
        chat = [*self._head("summary" in kinds), *before]
        if "blocks" in kinds:
            chat.append({"role": "user", "name": INJECTED_NAME, "content": _block(self._material.blocks)})
        chat.append(question)
        return (*self._merged(chat), *(message for round_ in rounds for message in round_.chat()))

    def _head(self, with_summary: bool) -> Iterator[ChatMessage]:
        """Yield one system message, since templates of several models accept no second one."""
        summary = summary_line(self._material.summary, self._material.language) if with_summary else ""
        text = "\n\n".join(part for part in (self._material.system, summary) if part)
        if text:
            yield {"role": "system", "content": text}

    def _spoken(self, kept: Sequence[_Unit]) -> list[ChatMessage]:
        """Return the messages of people and the agent, with the message that is replied to last."""
        answers = {member.message.id: member.answers for member in self._material.context}
        window = {message.id for message in self._material.window}
        far = {member.message.id for member in self._material.context if member.is_far} - window
        zone, now = self._material.zone, self._material.now
        transcript = Transcript(
            [
                ShownMessage(m, answers.get(m.id) or m.reply_to, local(m.at, zone), m.id in far)
                for m in (*_in_order(kept), self._material.trigger)
            ],
            speakers=self._speakers,
            own=self._is_own,
            language=self._material.language,
            now=local(now, zone),
            silent=self._silent,
        )
        return list(transcript.messages())

    def _is_own(self, message: Message) -> bool:
        return message is not self._material.trigger and is_own(message, self._material.agent_id)

    def _merged(self, chat: Iterable[ChatMessage]) -> list[ChatMessage]:
        """Merge neighbouring messages of one role: many models' templates require that user and assistant alternate. A
        block of memories stays separate."""
        merged: list[dict[str, Any]] = []
        for message in chat:
            before = merged[-1] if merged else None
            if before and before["role"] == message["role"] and not ("name" in before or "name" in message):
                before["content"] += self._between + message["content"]
            else:
                merged.append(dict(message))
        return list(merged)


def _block(blocks: Sequence[str]) -> str:
    return f"<{MEMORY_BLOCK}>\n" + "\n\n".join(map(neutral, blocks)) + f"\n</{MEMORY_BLOCK}>"


def _half(content: str) -> str:
    shorter = truncate(content, max(_SHORTEST_RESULT, graphemes(content) // 2))
    # A grapheme may have any number of combining marks, so they are cut too.
    return shorter if len(shorter) <= len(content) * 3 // 4 else content[: max(_SHORTEST_RESULT, len(content) // 2)]


def _cut_results(writer: _Writer, material: Material, budget: int, count: Count) -> tuple[Sequence[Round], bool]:
    """Return the rounds, with results cut if they would leave the rest less than a quarter of the window."""
    rounds, cut = list(material.rounds), False
    while rounds and tokens_of(writer.messages((), rounds), material.tools, count) > budget * 3 // 4:
        longest = max(rounds, key=lambda round_: max(map(len, round_.results.values()), default=0))
        call_id, content = max(longest.results.items(), key=lambda item: len(item[1]), default=("", ""))
        shorter = _half(content) + _CUT
        if len(shorter) >= len(content):
            break
        rounds[rounds.index(longest)] = longest.with_results({call_id: shorter})
        cut = True
    return rounds, cut
