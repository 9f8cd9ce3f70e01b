"""The prompt of a reply inside the model's window.

Left out, in this order, until the rest fits: messages of the context, the lowest score first; the oldest whole turns of
the session; blocks of memories; the summary of what lies before. Whatever must be there stays: what the agent is told
to be, the message that is replied to, and the tools called for it, whose results may be cut.
"""

import json
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from roomlore.core.chat.models import ChatMessage
from roomlore.core.errors import BudgetTooSmall
from roomlore.core.memory.reading import INJECTED_NAME, MEMORY_BLOCK
from roomlore.core.models import Candidate, Message, Role, StoredMessage
from roomlore.core.replies.identity import BROKEN_OFF, about
from roomlore.core.replies.rounds import Round
from roomlore.core.sessions.models import Language
from roomlore.core.sessions.turns import shown, summary_line, turns_of
from roomlore.core.speaking import Speakers, inert, is_own, people_of, said
from roomlore.core.text import graphemes, truncate
from roomlore.core.transcript import Shown, Transcript

Count = Callable[[Sequence[str]], list[int]]
"""Exact tokens of each text."""

MESSAGE_TOKENS = 4
"""What the protocol takes for each message."""
ANSWER_TOKENS = 3
"""What it takes for the beginning of the answer."""
_CUT = " …"
_SHORTEST_RESULT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """All that may be put into a prompt.

    `system`: what the agent is told to be, '' for nothing. `trigger`: the message that is replied to. `context`: what
    was chosen for it. `window`: what the session shows, and `summary`: what stands for everything before that.
    `people`: the room's senders with their names. `blocks`: what is remembered. `tools`: as they are offered to the
    model.
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


@dataclass(frozen=True, slots=True)
class ReplyPrompt:
    """`shown`: ids of the room's messages in it, in their order, the one replied to last. `tokens`: what it takes, the
    tools included. `truncated`: something was left out or cut."""

    messages: tuple[ChatMessage, ...]
    shown: tuple[str, ...]
    tokens: int
    truncated: bool


@dataclass(frozen=True, slots=True)
class _Unit:
    """What is left out together."""

    kind: Literal["messages", "blocks", "summary"]
    messages: tuple[StoredMessage, ...] = ()


def assemble(material: Material, *, budget: int, count: Count) -> ReplyPrompt:
    """The prompt in at most `budget` tokens; `BudgetTooSmall` where not even what must be there fits."""
    writer = _Writer(material)
    rounds, cut = _cut_results(writer, material, budget, count)
    units = _units(material)
    found: dict[int, ReplyPrompt] = {}

    def fits(left_out: int) -> bool:
        messages = writer.messages(units[left_out:], rounds)
        ids = (*(message.id for message in _in_order(units[left_out:])), material.trigger.id)
        tokens = tokens_of(messages, material.tools, count)
        found[left_out] = ReplyPrompt(messages, ids, tokens, truncated=cut or left_out > 0)
        return tokens <= budget

    least = 0 if fits(0) else bisect_left(range(len(units) + 1), True, key=fits)
    if least > len(units):
        raise BudgetTooSmall(
            f"The system prompt, the message and the tools need {found[len(units)].tokens} tokens, and "
            f"model_context_window leaves {budget} beside the answer; shorten them, lower max_tokens, or name a larger "
            "window."
        )
    return found[least]


def tokens_of(messages: Sequence[ChatMessage], tools: Sequence[Mapping[str, Any]], count: Count) -> int:
    """What a request takes, exactly for its texts and with the protocol's own tokens for each message."""
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
    """Those of the messages that belong before the one replied to: no tools' chatter, nothing that roomlore put there,
    no broken attempt at this reply, or at one that is there."""
    known = (*material.window, *(candidate.message for candidate in material.context))
    replies = (message for message in known if about(message) and message.role is Role.ASSISTANT)
    whole = {m.reply_to for m in replies if not m.has_tool_calls and not about(m).get(BROKEN_OFF)}
    return [
        message
        for message in messages
        if message.arrival < material.trigger.arrival
        and message.role is not Role.TOOL
        and not (about(message).get(BROKEN_OFF) and message.reply_to in (material.trigger.id, *whole))
        and said(message)
    ]


def _units(material: Material) -> list[_Unit]:
    """What may be left out, in the order in which it is."""
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
    """As people see them."""
    found = [message for unit in units for message in unit.messages]
    return sorted(found, key=lambda message: (message.at, message.arrival))


class _Writer:
    """Puts what is kept into messages for the model."""

    def __init__(self, material: Material) -> None:
        self._material = material
        known = [*material.window, *(candidate.message for candidate in material.context), material.trigger]
        people = {**material.people, **people_of(known, material.people)}
        others = {message.sender_id for message in known if not is_own(message, material.agent_id)}
        several = len(others | {*material.people} - {material.agent_id, Role.TOOL.value}) > 1
        self._speakers = Speakers(people, agents=[material.agent_id, material.agent_name], several=several)
        self._between = "\n" if several else "\n\n"

    def messages(self, kept: Sequence[_Unit], rounds: Sequence[Round]) -> tuple[ChatMessage, ...]:
        kinds = {unit.kind for unit in kept}
        *before, asked = self._spoken(kept)
        chat = [*self._head("summary" in kinds), *before]
        if "blocks" in kinds:
            chat.append({"role": "user", "name": INJECTED_NAME, "content": _block(self._material.blocks)})
        chat.append(asked)
        return (*self._merged(chat), *(message for one in rounds for message in one.chat()))

    def _head(self, with_summary: bool) -> Iterator[ChatMessage]:
        """One system message: templates of several models take no second one."""
        summary = inert(summary_line(self._material.summary, self._material.language)) if with_summary else ""
        text = "\n\n".join(part for part in (self._material.system, summary) if part)
        if text:
            yield {"role": "system", "content": text}

    def _spoken(self, kept: Sequence[_Unit]) -> list[ChatMessage]:
        """What people and the agent said, the message that is replied to as the last."""
        answers = {one.message.id: one.answers for one in self._material.context}
        far = {one.message.id for one in self._material.context if one.is_far}
        shown = [Shown(m, answers.get(m.id) or m.reply_to, far=m.id in far) for m in _in_order(kept)]
        transcript = Transcript(
            [*shown, Shown(self._material.trigger, self._material.trigger.reply_to)],
            speakers=self._speakers,
            own=self._is_own,
            language=self._material.language,
        )
        return list(transcript.messages())

    def _is_own(self, message: Message) -> bool:
        return message is not self._material.trigger and is_own(message, self._material.agent_id)

    def _merged(self, chat: Iterable[ChatMessage]) -> list[ChatMessage]:
        """Neighbours of one role as one: many models' templates insist that user and assistant take turns. A block of
        memories stays by itself."""
        merged: list[dict[str, Any]] = []
        for message in chat:
            before = merged[-1] if merged else None
            if before and before["role"] == message["role"] and not ("name" in before or "name" in message):
                before["content"] += self._between + message["content"]
            else:
                merged.append(dict(message))
        return list(merged)


def _block(blocks: Sequence[str]) -> str:
    return f"<{MEMORY_BLOCK}>\n" + "\n\n".join(map(inert, blocks)) + f"\n</{MEMORY_BLOCK}>"


def _half(content: str) -> str:
    shorter = truncate(content, max(_SHORTEST_RESULT, graphemes(content) // 2))
    # A single character may have any number of combining marks: that many are cut too.
    return shorter if len(shorter) <= len(content) * 3 // 4 else content[: max(_SHORTEST_RESULT, len(content) // 2)]


def _cut_results(writer: _Writer, material: Material, budget: int, count: Count) -> tuple[Sequence[Round], bool]:
    """The rounds with results cut where they would leave the rest less than a quarter of the window."""
    rounds, cut = list(material.rounds), False
    while rounds and tokens_of(writer.messages((), rounds), material.tools, count) > budget * 3 // 4:
        longest = max(rounds, key=lambda one: max(map(len, one.results.values()), default=0))
        call_id, content = max(longest.results.items(), key=lambda item: len(item[1]), default=("", ""))
        shorter = _half(content) + _CUT
        if len(shorter) >= len(content):
            break
        rounds[rounds.index(longest)] = longest.with_results({call_id: shorter})
        cut = True
    return rounds, cut
