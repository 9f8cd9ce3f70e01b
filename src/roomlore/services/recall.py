"""Recall of facts for a prompt, for callers and for replies: the facts that are worth their tokens, prepared and cached
until their scopes change, and the forms of conversation that callers pass."""

import asyncio
import json
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from hashlib import sha256
from typing import Any, TypeAlias, Unpack

import numpy as np
from numpy.typing import NDArray

from roomlore.core.audience import EvidenceTable, View, Viewer, check_viewer, unreplaced
from roomlore.core.errors import InvalidInput, ModelUnavailable, describe
from roomlore.core.memory.memory import Memory, MemoryKind, MemoryStatus, next_end
from roomlore.core.memory.reading import INJECTED_NAME, is_injected
from roomlore.core.memory.writing import check_kinds
from roomlore.core.models import Message, Role, StoredMessage
from roomlore.core.recall.ranking import FactSet, Topic, recollect, topic_of
from roomlore.core.recall.recollection import (
    ConversationMessage,
    RecallArguments,
    RecallOptions,
    RecallRequest,
    Recollection,
    check_conversation,
    check_previous,
    line_of,
    otherwise,
    scopes_of,
    text_of,
)
from roomlore.core.search.hits import Floats, Vectors
from roomlore.core.transcript import Speakers
from roomlore.core.visibility import as_shown_to
from roomlore.ports.audience import CachedView, ViewCache
from roomlore.ports.coordination import Clock
from roomlore.ports.language import Embedder, TokenCounter
from roomlore.ports.shared import Backends, Service
from roomlore.storage import Storage, UnitOfWork

MAX_FACTS = 20_000
_ALL = 2**31 - 1
"""A viewer's limit counts what the viewer may see, so all is read."""
_INLINE = 20_000
"""Characters of facts that are prepared on the event loop; more use another thread."""
_HELD = 3 * MAX_FACTS
_ENTRY = 20
"""The cost of a scope without a fact, in facts."""


_Stamp = tuple[tuple[datetime, int] | None, ...]
"""The creation time of the scope, and the number of its changes: a forgotten scope may be created again."""
_KEPT = 20_000
_AT_ONCE = 64
"""Facts embedded within one call; the next calls continue."""


@dataclass(slots=True)
class CachedFacts(CachedView):
    """A cached set of facts. `stamp`: the state of each scope when the facts were read. `vectors`: of the facts, once
    made. `every`: for a viewer, all facts of the scopes."""

    stamp: _Stamp = ()
    facts: FactSet | None = None
    every: Sequence[Memory] = ()
    vectors: Vectors | None = None

    def put(self, facts: FactSet, *, stamp: _Stamp, seen: NDArray[np.bool_] | None, until: datetime | None) -> FactSet:
        """Keep the facts with all that shows if they are current: a thread may end after one that began later."""
        self.facts, self.stamp, self.seen, self.until = facts, stamp, seen, until
        self.vectors = None
        return facts


class RecallCache:
    """A cache of the facts of the scopes requested last, of all tenants; of a set of scopes the 20,000 that changed
    last."""

    def __init__(self, *, storage: Storage, tokens: TokenCounter, clock: Clock, held: int = _HELD) -> None:
        self._storage = storage
        self._count = tokens.count
        self._clock = clock
        self._cached = ViewCache(CachedFacts, most=held)

    async def find(
        self,
        tenant: str,
        scopes: Sequence[str],
        kinds: Sequence[MemoryKind],
        viewer: Viewer | None = None,
        ended: bool = False,
    ) -> tuple[CachedFacts, FactSet]:
        """Return the current facts that the viewer may see, None for all. `ended`: those that hold no more, too. Raise
        `StorageUnavailable`."""
        key = (tenant, tuple(scopes), tuple(kinds), viewer, ended)
        cached = self._cached.entry(key, viewer, ended=ended)
        async with cached.lock:
            facts = await self._current(cached, tenant, scopes, kinds)
        self._cached.weigh(key, cached, _ENTRY * len(scopes) + len(facts) + len(cached.every))
        return cached, facts

    async def _current(
        self,
        cached: CachedFacts,
        tenant: str,
        scopes: Sequence[str],
        kinds: Sequence[MemoryKind],
    ) -> FactSet:
        async with self._storage.reading(tenant) as work:
            stamp, now = await _stamp(work, scopes), self._clock.now()
            ended = cached.until is not None and cached.until <= now
            same = cached.facts is not None and cached.stamp == stamp and not ended
            seen = None
            of_scopes = partial(work.memories.page, scopes=scopes, kinds=kinds, status=MemoryStatus.ACTIVE)
            if cached.sight is None:
                memories = [] if same else await of_scopes(limit=MAX_FACTS, held_at=None if cached.ended else now)
            else:
                if not same or cached.evidence is None:
                    cached.every = await of_scopes(limit=_ALL)
                    cached.evidence = EvidenceTable(cached.every)
                seen = await cached.sight.of(work, cached.evidence, now)
                same = same and seen is cached.seen
                held_at = None if cached.ended else now
                memories = [] if same else _seen(cached.every, seen, cached.sight.view, held_at)
        if same and cached.facts is not None:
            return cached.facts
        known, cached.facts = cached.facts, None
        until = None if cached.ended else next_end(memories, now)
        put = partial(cached.put, stamp=stamp, seen=seen, until=until)

        def ready() -> FactSet:
            return FactSet(memories, count=self._count, labelled=len(scopes) > 1, known=known)

        if sum(len(memory.statement) for memory in memories) <= _INLINE:
            return put(ready())
        return await asyncio.shield(_made(put, ready))


def _seen(every: Sequence[Memory], seen: NDArray[np.bool_], view: View, held_at: datetime | None) -> list[Memory]:
    """Return as many of the facts that a viewer may see as one that sees all would get, the last changed first. What
    has ended replaces what it replaced all the same."""
    some = [every[place] for place in np.flatnonzero(seen).tolist()]
    memories, _ = unreplaced(some)
    held = [memory for memory in memories if held_at is None or memory.holds(held_at)]
    ids = {memory.memory_id for memory in some}
    return [as_shown_to(memory, view, ids) for memory in held[:MAX_FACTS]]


async def _stamp(work: UnitOfWork, scopes: Sequence[str]) -> _Stamp:
    """Read the stamp before the facts: a change in between is read again next time."""
    scope_rows = [await work.memories.scope(scope=scope) for scope in scopes]
    return tuple((scope.created_at, scope.changes) if scope else None for scope in scope_rows)


async def _made(put: Callable[[FactSet], FactSet], ready: Callable[[], FactSet]) -> FactSet:
    """Prepare the facts in another thread, to the end even if the caller is cancelled: the next caller finds the
    result."""
    return put(await asyncio.to_thread(ready))


class NoVectors(Exception):
    """Raised if vectors are not available now; the text says why."""


class FactVectors:
    """At most 20,000 vectors, shared by all tenants. `timeout_seconds`: how long one call waits for the embedder."""

    def __init__(
        self, embedder: Embedder | None, *, timeout_seconds: float, kept: int = _KEPT, at_once: int = _AT_ONCE
    ) -> None:
        self._embedder = embedder
        self._timeout_seconds = timeout_seconds
        self._most = kept
        self._at_once = at_once
        self._kept: OrderedDict[bytes, Vectors] = OrderedDict()
        self._under_way: dict[bytes, asyncio.Task[None]] = {}

    async def cosines(
        self, topic: Topic, facts: FactSet, cached: CachedFacts, *, most_seconds: float | None = None
    ) -> Floats:
        """Return the cosine of each fact with the conversation; newer messages count more. `most_seconds`: a shorter
        limit for this call. Raise `NoVectors`."""
        wait = self._timeout_seconds if most_seconds is None else min(most_seconds, self._timeout_seconds)
        if self._embedder is None:
            raise NoVectors("no embedder is configured: set `embeddings`, or pass one to roomlore.open")
        try:
            async with asyncio.timeout(wait):
                vectors = await self._vectors(self._embedder, facts, cached)
                question_vectors = await self._embedder.embed([part.text for part in topic.parts], kind="query")
        except TimeoutError as error:
            raise NoVectors(f"the embedder took longer than {wait:g} s") from error
        except (ModelUnavailable, InvalidInput) as error:
            raise NoVectors(describe(error)) from error
        weights = np.array([part.weight for part in topic.parts])
        direction = (weights @ question_vectors / weights.sum()).astype(np.float32)
        cosines: Floats = (vectors @ direction).astype(float)
        return cosines

    async def _vectors(self, embedder: Embedder, facts: FactSet, cached: CachedFacts) -> Vectors:
        if cached.facts is facts and cached.vectors is not None:
            return cached.vectors
        texts = [memory.statement for memory in facts.memories]
        if len(texts) > self._most:
            raise NoVectors(f"there are {len(texts)} facts, more than the {self._most} whose vectors are kept")
        names = [_name(text) for text in texts]
        await self._make(embedder, dict(zip(names, texts, strict=True)))
        vectors = np.stack([self._kept[name] for name in names])
        if cached.facts is facts:
            cached.vectors = vectors
        return vectors

    async def _make(self, embedder: Embedder, texts: dict[bytes, str]) -> None:
        missing = [name for name in texts if name not in self._kept]
        now = [name for name in missing if name not in self._under_way][: self._at_once]
        if now:
            self._start(embedder, {name: texts[name] for name in now})
        for making in {self._under_way[name] for name in missing if name in self._under_way}:
            await asyncio.shield(making)
        for name in texts.keys() & self._kept.keys():
            self._kept.move_to_end(name)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        left = sum(name not in self._kept for name in texts)
        if left:
            raise NoVectors(f"the vectors of {left} facts are still to be made")

    def _start(self, embedder: Embedder, texts: Mapping[bytes, str]) -> None:
        """Start the embedding. It continues if the caller stops waiting: the next one finds the result."""
        making = asyncio.create_task(self._embed(embedder, texts))
        making.add_done_callback(_retrieve_error)
        self._under_way |= dict.fromkeys(texts, making)

    async def _embed(self, embedder: Embedder, texts: Mapping[bytes, str]) -> None:
        try:
            vectors = await embedder.embed(list(texts.values()), kind="passage")
            self._kept.update(zip(texts, vectors, strict=True))
        finally:
            for name in texts:
                del self._under_way[name]


def _retrieve_error(making: "asyncio.Task[None]") -> None:
    """Retrieve the error: a waiting caller gets it; without one it is ignored."""
    if not making.cancelled():
        making.exception()


def _name(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


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
        raise InvalidInput("turns_invalid")
    return [_conversation_message(message, place) for place, message in enumerate(messages)]


def _conversation_message(message: RecallMessage, place: int) -> ConversationMessage:
    if isinstance(message, ConversationMessage):
        return _checked(message, place)
    if isinstance(message, Message):
        return ConversationMessage(
            _NOT_SAID if is_injected(message) else message.role.value, message.text, message.has_tool_calls
        )
    if isinstance(message, Mapping):
        return _of_protocol(message, place)
    raise InvalidInput("turn_invalid", place=place, kind=type(message).__name__)


def _checked(message: ConversationMessage, place: int) -> ConversationMessage:
    if not isinstance(message.text, str):
        raise InvalidInput("turn_text_invalid", place=place, value=f"{message.text!r:.40}")
    _role(message.role, place)
    return message


def _role(role: Any, place: int) -> str:
    if not isinstance(role, str) or role not in _ROLES:
        raise InvalidInput("turn_role_unknown", place=place, role=f"{role!r:.40}", known=", ".join(sorted(_ROLES)))
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
        raise InvalidInput("turn_content_invalid", place=place)
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
    backends: Backends
    wait_seconds: float | None = None


class RecallService(Service):
    """Recall from the memories of one tenant."""

    def __init__(self, *, tenant: str, parts: RecallParts) -> None:
        super().__init__(parts.backends)
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
        started = self._clock.monotonic()
        request = RecallRequest(**arguments)
        options = otherwise(self._parts.options, request)
        whose, which, conversation = scopes_of(scopes), check_kinds(request.kinds), conversation_messages(messages)
        sees = None if request.viewer is None else check_viewer(request.viewer)
        form = options.max_tokens, len(whose) > 1, request.include_ended, sees
        before = self._before(request.conversation_id, request.previous, form)
        if not self._parts.enabled or not whose or not which:
            return Recollection(facts=(), text="", tokens=0, considered=0)
        cached, facts = await self._parts.cache.find(self._tenant, whose, which, sees, request.include_ended)
        topic = topic_of(conversation, options.max_context_turns)
        cosines, degraded = await self._cosines(topic, facts, cached, options)
        recollection = recollect(
            facts,
            topic,
            options,
            count=self._tokens.count,
            cosines=cosines,
            confidence=facts.confidence_at(self._clock.now()),
            previous=before,
            degraded=degraded,
        )
        shown = tuple(fact.memory.memory_id for fact in recollection.facts)
        if request.conversation_id is not None:
            self._parts.shown.note(self._tenant, request.conversation_id, form, shown)
        self._measure(recollection, tuple(before), shown, self._clock.monotonic() - started)
        return recollection

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

    def _measure(
        self, recollection: Recollection, before: tuple[str, ...], shown: tuple[str, ...], seconds: float
    ) -> None:
        telemetry = self._telemetry
        block = "kept" if shown == before else "changed"
        labels = {"block": block if before else "new", "degraded": "yes" if recollection.degraded else "no"}
        telemetry.count("roomlore_recall_blocks_total", labels=labels)
        telemetry.observe("roomlore_recall_seconds", seconds)
        telemetry.observe("roomlore_recall_tokens", recollection.tokens)


class KnownForReplies(Service):
    """The port `Recall` over facts and group memories, for all tenants.

    It covers the room's own group, the last speakers, and the agent, as far as the room may know. Of the agent's short
    memories it covers those of the room, the newest first in up to a quarter of the tokens. `wait_seconds`: for
    vectors, so that time is left to use words.
    """

    def __init__(self, parts: RecallParts, *, wait_seconds: float) -> None:
        super().__init__(parts.backends)
        self._parts = replace(parts, wait_seconds=wait_seconds)

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
        left = max_tokens - self._tokens.count([short])[0] - 1 if short else max_tokens
        recollection = await RecallService(tenant=tenant, parts=self._parts).build(
            [f"group:{room_id}", f"agent:{agent_id}", *(f"user:{sender}" for sender in people)],
            messages,
            max_tokens=left,
            conversation_id=_conversation(room_id, agent_id),
            viewer=str(Viewer("room", room_id)),
        )
        speakers = Speakers(people, agents=[agent_id])
        facts = self._fitting([_line(fact.memory, speakers) for fact in recollection.facts], left)
        return "\n".join(filter(None, (facts, short)))

    async def _short_of(self, tenant: str, room_id: str, agent_id: str) -> list[str]:
        """Return a line for each of the newest short memories that rest on this room alone, the newest first."""
        scope = f"agent:{agent_id}"
        async with self._storage.reading(tenant) as work:
            memories = await work.memories.short_of_room(scope=scope, room_id=room_id, limit=_MAX_SHORT)
        now = self._clock.now()
        here = [
            memory
            for memory in memories
            if memory.holds(now) and all(room.room_id == room_id for room in memory.evidence)
        ]
        here.sort(key=lambda memory: memory.supported_at, reverse=True)
        return [line_of(text_of(memory), scope) for memory in here]

    def _fitting(self, lines: list[str], max_tokens: int) -> str:
        """Return the lines that fit: a name may take more tokens than the id it replaces."""
        while lines and self._tokens.count(["".join(lines)])[0] > max_tokens:
            lines.pop()
        return "".join(lines).rstrip("\n")


def _people(messages: Sequence[StoredMessage], agent_id: str) -> dict[str, str]:
    """Return sender ids and names of the last speakers, in an order that does not depend on who speaks."""
    names: dict[str, str] = {}
    for message in reversed(messages):
        if message.role is Role.USER and message.sender_id != agent_id and len(names) < _MAX_PEOPLE:
            names[message.sender_id] = names.get(message.sender_id) or message.sender_name
    return dict(sorted(names.items()))


def _line(memory: Memory, speakers: Speakers) -> str:
    """Return the line. People have the names that they have in the conversation."""
    kind, _, name = memory.scope.partition(":")
    return line_of(text_of(memory), f"user:{speakers.name_of(name)}" if kind == "user" else memory.scope)


def _conversation(room_id: str, agent_id: str) -> str:
    """Return a name that no caller's conversation has, of bounded length."""
    return "reply:" + sha256(json.dumps([room_id, agent_id]).encode()).hexdigest()
