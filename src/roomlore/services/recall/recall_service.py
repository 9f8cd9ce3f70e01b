"""Recall of facts for a prompt, for callers and for replies; and the forms of conversation that callers pass."""

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, TypeAlias, Unpack

from roomlore.core.audience import Viewer, check_viewer
from roomlore.core.errors import InvalidInput
from roomlore.core.memory.memory import Memory
from roomlore.core.memory.reading import INJECTED_NAME, is_injected
from roomlore.core.memory.writing import check_kinds
from roomlore.core.models import Message, Role, StoredMessage
from roomlore.core.recall.options import (
    ConversationMessage,
    RecallArguments,
    RecallOptions,
    RecallRequest,
    Recollection,
    check_conversation,
    check_previous,
    otherwise,
    scopes_of,
)
from roomlore.core.recall.ranking import FactSet, recollect
from roomlore.core.recall.rendering import line_of, text_of
from roomlore.core.recall.words import Topic, topic_of
from roomlore.core.search.hits import Floats
from roomlore.core.transcript import Speakers
from roomlore.ports.coordination import Clock, Telemetry
from roomlore.ports.language import TokenCounter
from roomlore.ports.storage import Storage
from roomlore.services.recall.facts_cache import CachedFacts, FactVectors, NoVectors, RecallCache

RecallMessage = ConversationMessage | Message | Mapping[str, Any]
"""A message of a conversation: `ConversationMessage`, a room's message, or a mapping in OpenAI's form."""

_NOT_SAID = "system"
_ROLES = {"user", "assistant", "system", "tool", "developer", "function"}
_MAX = 10_000
Form: TypeAlias = "tuple[int, bool, bool, Viewer | None]"
"""The properties of a block besides its facts: its budget, True if its lines name their scopes, True if it may have
what has ended, and its viewer."""
_MAX_PEOPLE = 8
"""The people whose facts are recalled for one reply: the last speakers."""
_MAX_SHORT = 50
_SHARE_OF_SHORT = 4


def conversation_messages(messages: Sequence[RecallMessage]) -> list[ConversationMessage]:
    """Return the conversation in its order. Raise `InvalidInput` for an invalid message."""
    if isinstance(messages, str | Mapping) or not isinstance(messages, Sequence):
        raise InvalidInput("messages is a list of messages, such as [{'role': 'user', 'content': '...'}].")
    return [_said(message, place) for place, message in enumerate(messages)]


def _said(message: RecallMessage, place: int) -> ConversationMessage:
    if isinstance(message, ConversationMessage):
        return _checked(message, place)
    if isinstance(message, Message):
        return ConversationMessage(
            _NOT_SAID if is_injected(message) else message.role.value, message.text, message.has_tool_calls
        )
    if isinstance(message, Mapping):
        return _of_protocol(message, place)
    raise InvalidInput(
        f"messages[{place}] is a {type(message).__name__}; give Said, Message or a mapping with role and content."
    )


def _checked(message: ConversationMessage, place: int) -> ConversationMessage:
    if not isinstance(message.text, str):
        raise InvalidInput(f"messages[{place}] has a text that is none: {message.text!r:.40}.")
    _role(message.role, place)
    return message


def _role(role: Any, place: int) -> str:
    if not isinstance(role, str) or role not in _ROLES:
        raise InvalidInput(f"messages[{place}] has the role {role!r:.40}; it is one of {', '.join(sorted(_ROLES))}.")
    return role


def _of_protocol(message: Mapping[str, Any], place: int) -> ConversationMessage:
    role = _role(message.get("role"), place)
    if message.get("name") == INJECTED_NAME:
        role = _NOT_SAID
    calls = bool(message.get("tool_calls") or message.get("function_call"))
    return ConversationMessage(role, _text(message.get("content"), place), calls)


def _text(content: Any, place: int) -> str:
    """Return the text parts of a content of several parts; pictures and the like are left out."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, Sequence) or not all(isinstance(part, str | Mapping) for part in content):
        raise InvalidInput(f"messages[{place}] has content that is neither a text nor a list of parts.")
    texts = [part if isinstance(part, str) else part.get("text") for part in content]
    return "\n".join(text for text in texts if isinstance(text, str))


class ShownBefore:
    """The facts shown in the conversations that asked last, to each viewer; a conversation that is dropped is ranked
    from scratch."""

    def __init__(self, *, most: int = _MAX) -> None:
        self._most = most
        self._shown: OrderedDict[tuple[str, str, Viewer | None], tuple[Form, tuple[str, ...]]] = OrderedDict()

    def of(self, tenant: str, conversation_id: str, form: Form) -> tuple[str, ...]:
        """Return the ids in their order; () if none were shown, or in another form."""
        before, memory_ids = self._shown.get((tenant, conversation_id, form[-1]), (form, ()))
        return memory_ids if before == form else ()

    def note(self, tenant: str, conversation_id: str, form: Form, memory_ids: tuple[str, ...]) -> None:
        name = (tenant, conversation_id, form[-1])
        self._shown[name] = form, memory_ids
        self._shown.move_to_end(name)
        while len(self._shown) > self._most:
            self._shown.popitem(last=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallParts:
    """The parts that recall shares over all tenants. `enabled`: if False, nothing is ever recalled. `wait_seconds`: for
    vectors, None for their own limit."""

    enabled: bool
    options: RecallOptions
    cache: RecallCache
    vectors: FactVectors
    shown: ShownBefore
    tokens: TokenCounter
    clock: Clock
    telemetry: Telemetry
    wait_seconds: float | None = None


class RecallService:
    """Recall from the memories of one tenant."""

    def __init__(self, *, tenant: str, parts: RecallParts) -> None:
        self._tenant = tenant
        self._parts = parts

    async def build(
        self,
        scopes: Sequence[str],
        messages: Sequence[RecallMessage],
        **arguments: Unpack[RecallArguments],
    ) -> Recollection:
        """Return the facts and group memories of these scopes, such as 'user:ann', that matter for a conversation, in
        at most `max_tokens`.

        `messages`: the conversation, the newest last, as `ConversationMessage`, messages of a room, or mappings with
        role and content. `arguments`: see `RecallArguments`; those left out come from the settings. Raise
        `InvalidInput`, `StorageUnavailable`; without vectors it uses words and says so in `degraded`.
        """
        started = self._parts.clock.monotonic()
        asked = RecallRequest(**arguments)
        options = otherwise(self._parts.options, asked)
        whose, which, said = scopes_of(scopes), check_kinds(asked.kinds), conversation_messages(messages)
        sees = None if asked.viewer is None else check_viewer(asked.viewer)
        form = options.max_tokens, len(whose) > 1, asked.include_ended, sees
        before = self._before(asked.conversation_id, asked.previous, form)
        if not self._parts.enabled or not whose or not which:
            return Recollection(facts=(), text="", tokens=0, considered=0)
        cached, facts = await self._parts.cache.find(self._tenant, whose, which, sees, asked.include_ended)
        topic = topic_of(said, options.max_context_turns)
        cosines, degraded = await self._cosines(topic, facts, cached, options)
        found = recollect(
            facts,
            topic,
            options,
            count=self._parts.tokens.count,
            cosines=cosines,
            confidence=facts.confidence_at(self._parts.clock.now(), options.half_life_days),
            previous=before,
            degraded=degraded,
        )
        shown = tuple(one.memory.memory_id for one in found.facts)
        if asked.conversation_id is not None:
            self._parts.shown.note(self._tenant, asked.conversation_id, form, shown)
        self._measure(found, tuple(before), shown, self._parts.clock.monotonic() - started)
        return found

    async def memory_prompt(
        self,
        scopes: Sequence[str],
        messages: Sequence[RecallMessage],
        **arguments: Unpack[RecallArguments],
    ) -> str:
        """Return only the block of `build`, '' if there is nothing to recall."""
        return (await self.build(scopes, messages, **arguments)).text

    def _before(self, conversation_id: str | None, previous: Sequence[str] | None, form: Form) -> Sequence[str]:
        check_conversation(conversation_id)
        if previous is not None:
            return check_previous(previous)
        return () if conversation_id is None else self._parts.shown.of(self._tenant, conversation_id, form)

    async def _cosines(
        self, topic: Topic, facts: FactSet, cached: CachedFacts, options: RecallOptions
    ) -> tuple[Floats | None, str | None]:
        if options.similarity == "tfidf" or not topic.parts or not len(facts):
            return None, None
        try:
            return await self._parts.vectors.cosines(topic, facts, cached, most_seconds=self._parts.wait_seconds), None
        except NoVectors as error:
            return None, f"by words alone: {error}"

    def _measure(self, found: Recollection, before: tuple[str, ...], shown: tuple[str, ...], seconds: float) -> None:
        telemetry = self._parts.telemetry
        block = "kept" if shown == before else "changed"
        labels = {"block": block if before else "new", "degraded": "yes" if found.degraded else "no"}
        telemetry.count("roomlore_recall_blocks_total", labels=labels)
        telemetry.observe("roomlore_recall_seconds", seconds)
        telemetry.observe("roomlore_recall_tokens", found.tokens)


class KnownForReplies:
    """The port `Recall` over facts and group memories, for all tenants.

    It covers the room's own group, the last speakers, and the agent, as far as the room may know. Of the agent's short
    memories it covers those of the room, the newest first in up to a quarter of the tokens. `wait_seconds`: for
    vectors, so that time is left to use words.
    """

    def __init__(self, parts: RecallParts, *, storage: Storage, wait_seconds: float) -> None:
        self._parts = replace(parts, wait_seconds=wait_seconds)
        self._storage = storage

    @property
    def name(self) -> str:
        return "known"

    async def recall(
        self, *, tenant: str, room_id: str, agent_id: str, messages: Sequence[StoredMessage], max_tokens: int
    ) -> str:
        """Return one line per memory, with the name of the person it is about. Raise `StorageUnavailable`."""
        if max_tokens <= 0:
            return ""
        people = _people(messages, agent_id)
        short = self._fitting(await self._short_of(tenant, room_id, agent_id), max_tokens // _SHARE_OF_SHORT)
        left = max_tokens - self._parts.tokens.count([short])[0] - 1 if short else max_tokens
        found = await RecallService(tenant=tenant, parts=self._parts).build(
            [f"group:{room_id}", f"agent:{agent_id}", *(f"user:{sender}" for sender in people)],
            messages,
            max_tokens=left,
            conversation_id=_conversation(room_id, agent_id),
            viewer=str(Viewer("room", room_id)),
        )
        speakers = Speakers(people, agents=[agent_id])
        facts = self._fitting([_line(one.memory, speakers) for one in found.facts], left)
        return "\n".join(filter(None, (facts, short)))

    async def _short_of(self, tenant: str, room_id: str, agent_id: str) -> list[str]:
        """Return a line for each of the newest short memories that rest on this room alone, the newest first."""
        scope = f"agent:{agent_id}"
        async with self._storage.reading() as work:
            found = await work.memories.short_of_room(tenant=tenant, scope=scope, room_id=room_id, limit=_MAX_SHORT)
        now = self._parts.clock.now()
        here = [one for one in found if one.holds(now) and all(room.room_id == room_id for room in one.evidence)]
        here.sort(key=lambda memory: memory.supported_at, reverse=True)
        return [line_of(text_of(memory), scope) for memory in here]

    def _fitting(self, lines: list[str], max_tokens: int) -> str:
        """Return the lines that fit: a name may take more tokens than the id it replaces."""
        while lines and self._parts.tokens.count(["".join(lines)])[0] > max_tokens:
            lines.pop()
        return "".join(lines).rstrip("\n")


def _people(messages: Sequence[StoredMessage], agent_id: str) -> dict[str, str]:
    """Return sender ids and names of the last speakers, in an order that does not depend on who speaks."""
    found: dict[str, str] = {}
    for message in reversed(messages):
        if message.role is Role.USER and message.sender_id != agent_id and len(found) < _MAX_PEOPLE:
            found[message.sender_id] = found.get(message.sender_id) or message.sender_name
    return dict(sorted(found.items()))


def _line(memory: Memory, speakers: Speakers) -> str:
    """Return the line. People have the names that they have in the conversation."""
    kind, _, name = memory.scope.partition(":")
    return line_of(text_of(memory), f"user:{speakers.name_of(name)}" if kind == "user" else memory.scope)


def _conversation(room_id: str, agent_id: str) -> str:
    """Return a name that no caller's conversation has, of bounded length."""
    return "reply:" + sha256(json.dumps([room_id, agent_id]).encode()).hexdigest()
