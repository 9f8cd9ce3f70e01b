"""Gathering what a reply is made from."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from roomlore.core.errors import BudgetTooSmall, describe
from roomlore.core.models import StoredMessage
from roomlore.core.replies.prompt import Material, ReplyPrompt, assemble, said_before
from roomlore.core.replies.rounds import Round, as_function
from roomlore.core.sessions.models import Session
from roomlore.core.speaking import words
from roomlore.core.transcript import language_of
from roomlore.ports.language import Language
from roomlore.ports.recall import Recall
from roomlore.services.replies.needs import Asked, Contexts, ReplyParts, Sessions
from roomlore.services.replies.store import Place

PROMPT = "reply"
_INLINE_CHARACTERS = 150_000
"""What is put together and counted on the event loop; more goes to another thread."""
_SHARE_OF_BLOCKS = 4

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Gathered:
    """`truncated`: something was left out before the prompt was even put together."""

    material: Material
    context_id: str | None
    degraded: str | None
    truncated: bool


@dataclass(frozen=True, slots=True)
class _Window:
    messages: Sequence[StoredMessage] = ()
    summary: str = ""
    truncated: bool = False


class Gatherer:
    """For one tenant."""

    def __init__(
        self, *, tenant: str, parts: ReplyParts, contexts: Contexts, sessions: Sessions, recalls: Sequence[Recall]
    ) -> None:
        self._tenant = tenant
        self._parts = parts
        self._contexts = contexts
        self._sessions = sessions
        self._recalls = recalls

    async def gather(self, asked: Asked, place: Place) -> Gathered:
        """All that may be put into the prompt."""
        trigger = place.message
        context = await self._contexts.build(trigger.room_id, trigger.id)
        window = await self._window(place, asked.window)
        boundary = place.session.boundary if place.session else 0
        material = Material(
            trigger=trigger,
            agent_id=asked.agent_id,
            agent_name=asked.agent_name,
            context=[one for one in context.messages if one.is_far or one.message.arrival > boundary],
            window=window.messages,
            summary=window.summary,
            people=place.people,
        )
        spoken = language_of([*_chosen(material), *material.window], trigger)
        material = replace(material, language=spoken, system=await self._system(asked, spoken))
        blocks, lost = await self._remembered(asked, material)
        return Gathered(
            replace(material, blocks=blocks), context.context_id, context.degraded, window.truncated or lost
        )

    async def prompt(self, gathered: Gathered, asked: Asked, rounds: Sequence[Round], *, tools: bool) -> ReplyPrompt:
        """The prompt for the next call of the model. Raises `BudgetTooSmall`."""
        offered = [as_function(tool) for tool in asked.tools] if tools else []
        material = replace(gathered.material, rounds=rounds, tools=offered)
        count = self._parts.tokens.count
        if _characters(material) <= _INLINE_CHARACTERS:
            found = assemble(material, budget=asked.budget, count=count)
        else:
            found = await asyncio.to_thread(assemble, material, budget=asked.budget, count=count)
        return replace(found, truncated=True) if gathered.truncated else found

    async def _window(self, place: Place, window: int) -> _Window:
        if place.session is None:
            return _Window()
        room_id = place.message.room_id
        try:
            shown = await self._sessions.query_context(room_id, model_context_window=window)
        except BudgetTooSmall:
            checkpoint = None if _tells_of_later(place.session, place) else place.session.checkpoint
            return _Window(summary=checkpoint.summary if checkpoint else "", truncated=True)
        async with self._parts.storage.reading() as work:
            entries = await work.messages.by_id(
                tenant=self._tenant, room_id=room_id, message_ids=list(shown.message_ids)
            )
            session = await work.sessions.find(tenant=self._tenant, conversation_id=room_id) or place.session
        messages = [entry.message for entry in entries]
        if _tells_of_later(session, place):
            return _Window(messages, truncated=True)
        return _Window(messages, shown.session.message_context.summary, shown.truncated)

    async def _system(self, asked: Asked, spoken: Language) -> str:
        if asked.system_prompt is not None:
            return asked.system_prompt
        prompt = await self._parts.prompts.find(PROMPT, language=spoken)
        return prompt.fill({"name": asked.agent_name or asked.agent_id}).strip()

    async def _remembered(self, asked: Asked, material: Material) -> tuple[list[str], bool]:
        """What the hooks bring, in their order, and whether one brought more than it may."""
        if not self._recalls:
            return [], False
        limit = min(self._parts.options.recall_max_tokens, asked.budget // _SHARE_OF_BLOCKS) // len(self._recalls)
        seen = said_before(material, {m.id: m for m in (*_chosen(material), *material.window)}.values())
        messages = [*sorted(seen, key=lambda message: (message.at, message.arrival)), material.trigger]
        found = await asyncio.gather(*(self._ask(hook, asked, messages, limit) for hook in self._recalls))
        return [text for text, _ in found if text], any(lost for _, lost in found)

    async def _ask(self, hook: Recall, asked: Asked, messages: Sequence[StoredMessage], limit: int) -> tuple[str, bool]:
        try:
            async with asyncio.timeout(self._parts.options.recall_timeout_seconds):
                text = await hook.recall(
                    tenant=self._tenant,
                    room_id=asked.message.room_id,
                    agent_id=asked.agent_id,
                    messages=messages,
                    max_tokens=limit,
                )
        except Exception as error:  # noqa: BLE001 - a hook is somebody else's code: no reply fails because of it
            result = "timeout" if isinstance(error, TimeoutError) else "failed"
            return self._without(hook, result, describe(error))
        if not isinstance(text, str):
            return self._without(hook, "failed", f"it gave a {type(text).__name__}")
        text = text.strip()
        if text and self._parts.tokens.count([text])[0] > limit:
            return self._without(hook, "too_long", f"more than {limit} tokens")
        self._count(hook, "used" if text else "nothing")
        return text, False

    def _without(self, hook: Recall, result: str, why: str) -> tuple[str, bool]:
        log.warning("a reply goes without what it might recall", extra={"recall": hook.name, "why": why})
        self._count(hook, result)
        return "", result == "too_long"

    def _count(self, hook: Recall, result: str) -> None:
        self._parts.telemetry.count("roomlore_recalls_total", labels={"recall": hook.name, "result": result})


def _tells_of_later(session: Session, place: Place) -> bool:
    """Whether the summary stands for messages after the one that is replied to."""
    return session.checkpoint is not None and session.checkpoint.covers_arrival > place.message.arrival


def _chosen(material: Material) -> list[StoredMessage]:
    return [candidate.message for candidate in material.context]


def _characters(material: Material) -> int:
    texts = [material.system, material.summary, *material.blocks, words(material.trigger), *map(str, material.tools)]
    results = [content for one in material.rounds for content in one.results.values()]
    messages = (words(message) for message in (*_chosen(material), *material.window))
    return sum(map(len, (*texts, *results, *messages, *material.people, *material.people.values())))
