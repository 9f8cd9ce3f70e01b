"""Memory of one person for the agents of a framework: what is recalled before an answer, and what is stored after it.

The modules of the frameworks share it. Whatever befalls the memory is logged, and the agent goes on without it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, TypeVar

from roomlore import ConversationMessage, InvalidInput, Lore, Message, NotFound, Role, StoredMessage, SyncLore
from roomlore.core.audience import check_viewer
from roomlore.core.errors import describe
from roomlore.core.recall import recollection
from roomlore.core.recall.recollection import line_of, scopes_of, text_of
from roomlore.core.sessions.session import check_id
from roomlore.core.transcript import ShownMessage, Speakers, Transcript, local, people_of

T = TypeVar("T")

MOST_FOUND = 5
_MAX_FOUND = 200
_QUERY_CHARS = 2_000
_NEAR_BEST = 0.5
"""The least score beside that of the best hit: search also returns what only stands beside an answer."""
_EARLIER = "Said earlier:\n"

log = logging.getLogger("roomlore.agent_memory")


def check_lore(lore: object, code: str = "lore_invalid_for_agent") -> Lore | SyncLore:
    """Return what `roomlore.open` or `roomlore.open_sync` opened. Raise `InvalidInput` of this code for anything
    else."""
    if not isinstance(lore, Lore | SyncLore):
        raise InvalidInput(code, kind=type(lore).__name__)
    return lore


async def ask(lore: Lore | SyncLore, work: Callable[[Lore], Coroutine[Any, Any, T]]) -> T:
    """Run the work on the event loop to which roomlore belongs."""
    if isinstance(lore, SyncLore):
        return await asyncio.to_thread(lore.wait, work)
    return await work(lore)


async def or_without(work: Awaitable[T], otherwise: T, what: str) -> T:
    """Return the result of the work; if it fails, log `what` did not happen, and return `otherwise`."""
    try:
        return await work
    except Exception as error:  # noqa: BLE001 - whatever befalls the memory, the agent goes on
        log.warning("%s: %s", what, "it took too long" if isinstance(error, TimeoutError) else describe(error))
        return otherwise


class MemoryOptions(TypedDict, total=False):
    """Options that a framework's class passes on to `AgentMemory.of`, which has the defaults."""

    agent_id: str
    scopes: Sequence[str] | None
    viewer: str | None
    max_tokens: int | None
    max_messages: int


@dataclass(frozen=True, slots=True)
class AgentMemory:
    """`scopes`: of the facts that are recalled. `viewer`: to whom the answers are shown. `max_tokens`: of the facts.
    `max_messages`: earlier messages of the room that are found beside them."""

    lore: Lore | SyncLore
    user_id: str
    agent_id: str
    scopes: Sequence[str]
    viewer: str
    max_tokens: int | None
    max_messages: int

    @classmethod
    def of(
        cls,
        lore: object,
        user_id: str,
        *,
        agent_id: str = "assistant",
        scopes: Sequence[str] | None = None,
        viewer: str | None = None,
        max_tokens: int | None = None,
        max_messages: int = MOST_FOUND,
    ) -> "AgentMemory":
        """Return the memory of a person: by default of the facts about that person, shown to nobody else. Raise
        `InvalidInput`."""
        check_id("user_id", user_id)
        check_id("agent_id", agent_id)
        if isinstance(max_messages, bool) or not isinstance(max_messages, int) or not 0 <= max_messages <= _MAX_FOUND:
            raise InvalidInput("max_messages_invalid", value=f"{max_messages!r:.40}", most=_MAX_FOUND)
        whose = tuple(scopes_of([f"user:{user_id}"] if scopes is None else scopes))
        shown_to = str(check_viewer(f"user:{user_id}" if viewer is None else viewer))
        return cls(check_lore(lore), user_id, agent_id, whose, shown_to, max_tokens, max_messages)

    async def recalled(self, conversation: Sequence[ConversationMessage], room_id: str | None) -> str:
        """Return facts that matter for the conversation, and messages of its room that answer the last question and are
        not part of what was said here; '' if there is nothing, or if it fails."""

        async def work(lore: Lore) -> str:
            async with asyncio.timeout(recollection.RECALL_SECONDS):
                facts = await self.facts(lore, conversation, room_id)
                return f"{facts}{await self._earlier(lore, conversation, room_id)}".rstrip("\n")

        return await or_without(ask(self.lore, work), "", "the model is called without memory")

    async def facts(self, lore: Lore, conversation: Sequence[ConversationMessage], room_id: str | None) -> str:
        """Return the facts that matter, one line each."""
        recollection = await lore.recall.build(
            self.scopes, conversation, max_tokens=self.max_tokens, viewer=self.viewer, conversation_id=room_id
        )
        named = len(self.scopes) > 1
        return "".join(line_of(text_of(fact.memory), fact.memory.scope if named else "") for fact in recollection.facts)

    async def _earlier(self, lore: Lore, conversation: Sequence[ConversationMessage], room_id: str | None) -> str:
        question = next((message.text for message in reversed(conversation) if message.role == "user"), "").strip()
        if not question or room_id is None or not self.max_messages:
            return ""
        messages = await self.found(lore, room_id, question, self.max_messages + len(conversation))
        here = {message.text.strip() for message in conversation}
        others = [message for message in messages if message.text.strip() not in here][: self.max_messages]
        return _EARLIER + self.transcript(lore, others) + "\n" if others else ""

    async def found(self, lore: Lore, room_id: str | None, query: str, limit: int) -> list[StoredMessage]:
        """Return what people and agents said that answers a query, best first: in a room, else in all rooms that the
        viewer may see, but for the one where it is being asked. The question is no answer to itself."""
        try:
            answer = await lore.messages.search(
                room_id, query[:_QUERY_CHARS], viewer=self.viewer, limit=min(limit + 1, _MAX_FOUND)
            )
        except NotFound:
            return []
        hits = [hit for hit in answer.hits if hit.message.role in (Role.USER, Role.ASSISTANT)]
        asking = [hit.message for hit in hits if hit.message.text.strip() == query.strip()]
        here = await _unanswered(lore, asking) if room_id is None else set()
        others = [hit for hit in hits if hit.message not in asking and hit.message.room_id not in here]
        best = max((hit.score for hit in others), default=0.0)
        return [hit.message for hit in others if hit.score >= best * _NEAR_BEST][:limit]

    def transcript(self, lore: Lore, messages: Sequence[StoredMessage]) -> str:
        """Return messages as a model reads them, in their order."""
        zone = lore.settings.search.zone
        ordered = sorted(messages, key=lambda message: (message.sent_at, message.arrival))
        shown = [ShownMessage(message, None, local(message.sent_at, zone)) for message in ordered]
        speakers = Speakers(people_of(ordered, {}))
        return Transcript(shown, speakers=speakers, own=lambda _: False, language="en").prompt()

    async def store_question(self, room_id: str, messages: Sequence[Message]) -> None:
        """Store what a person asks, unless the conversation ends with it: then it is asked again after a failure."""
        try:
            last = await ask(
                self.lore, lambda lore: lore.sessions.messages(room_id, limit=max(len(messages), 1), viewer=None)
            )
        except NotFound:
            last = []
        asked = [(message.role, message.sender_id or self.user_id, message.text) for message in messages]
        if asked != [(message.role, message.sender_id, message.text) for message in last]:
            await self.store(room_id, messages)

    async def store(self, room_id: str, messages: Sequence[Message]) -> None:
        """Store what was said in a conversation. `messages` without ids, rooms and senders get them."""
        if not messages:
            return
        await ask(
            self.lore,
            lambda lore: lore.sessions.add_messages(room_id, messages, user_id=self.user_id, agent_code=self.agent_id),
        )


async def _unanswered(lore: Lore, questions: Sequence[StoredMessage]) -> set[str]:
    """Return the rooms of which one of these is the last message."""
    rooms = set()
    for question in questions:
        if not await lore.messages.page(question.room_id, after=question.arrival, limit=1, viewer=None):
            rooms.add(question.room_id)
    return rooms
