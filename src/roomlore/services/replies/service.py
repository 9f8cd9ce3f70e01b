"""The verbs of `lore.replies`."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from roomlore.core.errors import BudgetTooSmall, Conflict, InvalidInput, NotFound, RoomloreError, describe
from roomlore.core.models import Message
from roomlore.core.replies.identity import said_before
from roomlore.core.replies.models import Reply, ReplyEvent, ReplyText, Tool, ToolResult
from roomlore.ports.recall import Recall
from roomlore.services.replies.asking import Asking
from roomlore.services.replies.gather import Gatherer
from roomlore.services.replies.needs import Asked, CallTool, Contexts, Messages, ReplyParts, Sessions
from roomlore.services.replies.store import ReplyStore
from roomlore.services.replies.talk import Draft, Talk

log = logging.getLogger(__name__)


class ReplyService:
    """The replies of one tenant's agents. `recalls`: what is asked for memories, in the order they are shown."""

    def __init__(
        self,
        *,
        tenant: str,
        parts: ReplyParts,
        messages: Messages,
        contexts: Contexts,
        sessions: Sessions,
        recalls: Sequence[Recall] = (),
    ) -> None:
        self._tenant = tenant
        self._parts = parts
        self._contexts = contexts
        self._asking = Asking(models=parts.models, options=parts.options, limits=parts.limits)
        self._store = ReplyStore(tenant=tenant, parts=parts, messages=messages, sessions=sessions)
        self._gatherer = Gatherer(
            tenant=tenant, parts=parts, contexts=contexts, sessions=sessions, recalls=tuple(recalls)
        )

    async def stream(
        self,
        message: Message,
        *,
        agent_id: str = "assistant",
        agent_name: str = "",
        model_id: str | None = None,
        system_prompt: str | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        model_context_window: int | None = None,
        tools: Sequence[Tool] = (),
        call_tool: CallTool | None = None,
        tool_results: Sequence[ToolResult] = (),
        max_tool_iterations: int | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> AsyncGenerator[ReplyEvent, None]:
        """Stores the user's message, has the agent's reply written, and gives it as it comes; the last event is the
        `Reply`, which is stored by then. The same message again gives the reply that is stored, and asks no model.

        `model_id`: by default the setting `reply_model`, else the only model there is. `system_prompt`: by default one
        that ships; '' for none. `max_tokens`: how long the answer may be. `model_context_window`: what the model takes,
        in tokens. `call_tool`: calls a tool; without it the stream ends with `ToolsWanted` and a `Reply` whose
        `finish_reason` is 'tool_calls', and goes on in the next call, with the same message and `tool_results`.
        `options`: further fields for the provider.

        What breaks off after some of the text was given is stored beside, marked as broken off, and the same message
        may be replied to again. Raises `InvalidInput`, `NotFound` for an unknown model, `Conflict` for a message that
        is stored with other content, `BudgetTooSmall`, `ModelUnavailable`, `BadModelOutput`, `StorageUnavailable`.
        """
        begun = self._parts.clock.monotonic()
        asked = await self._asking.checked(
            message,
            agent_id=agent_id,
            agent_name=agent_name,
            model_id=model_id,
            system_prompt=system_prompt,
            temperature=temperature,
            max_tokens=max_tokens,
            model_context_window=model_context_window,
            tools=tools,
            call_tool=call_tool,
            tool_results=tool_results,
            max_tool_iterations=max_tool_iterations,
            options=options,
        )
        draft = Draft()
        try:
            with self._parts.background.alone((self._tenant, message.room_id, message.id, agent_id)):
                async with aclosing(self._talk(asked, draft).events()) as events:
                    async for event in events:
                        if isinstance(event, ReplyText):
                            self._observe_first(draft, begun)
                        yield event
        except BaseException as error:
            draft.result = draft.result or _result_of(error)
            await self._keep_broken(asked, draft)
            raise
        finally:
            self._measure(draft, begun)

    async def reply(
        self,
        message: Message,
        *,
        agent_id: str = "assistant",
        agent_name: str = "",
        model_id: str | None = None,
        system_prompt: str | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        model_context_window: int | None = None,
        tools: Sequence[Tool] = (),
        call_tool: CallTool | None = None,
        tool_results: Sequence[ToolResult] = (),
        max_tool_iterations: int | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Reply:
        """The whole reply, as `stream` gives it last."""
        events = self.stream(
            message,
            agent_id=agent_id,
            agent_name=agent_name,
            model_id=model_id,
            system_prompt=system_prompt,
            temperature=temperature,
            max_tokens=max_tokens,
            model_context_window=model_context_window,
            tools=tools,
            call_tool=call_tool,
            tool_results=tool_results,
            max_tool_iterations=max_tool_iterations,
            options=options,
        )
        async with aclosing(events):
            replies = [event async for event in events if isinstance(event, Reply)]
        return replies[-1]

    async def find(self, room_id: str, message_id: str, *, agent_id: str = "assistant") -> Reply | None:
        """What the agent replied to the message, None where it did not; asks no model."""
        reply = await self._store.find(room_id, message_id, agent_id)
        return said_before(message_id, reply) if reply else None

    def _talk(self, asked: Asked, draft: Draft) -> Talk:
        return Talk(
            asked, draft, parts=self._parts, store=self._store, gatherer=self._gatherer, contexts=self._contexts
        )

    async def _keep_broken(self, asked: Asked, draft: Draft) -> None:
        """Stores what people were shown of a reply that breaks off. The error it breaks off with goes to the caller
        either way."""
        if draft.place is None or not draft.fresh or not draft.text.strip():
            return
        kept = draft.kept(asked.model_id)
        keeping = self._store.keep_broken(draft.place, draft.text, kept, why=draft.result)
        draft.fresh = False
        try:
            await self._parts.background.finish(keeping)
        except RoomloreError as error:
            log.error("the text of a reply that broke off was not stored", extra={"why": describe(error)})

    def _observe_first(self, draft: Draft, begun: float) -> None:
        if not draft.seen:
            draft.seen = True
            self._parts.telemetry.observe("roomlore_reply_first_text_seconds", self._parts.clock.monotonic() - begun)

    def _measure(self, draft: Draft, begun: float) -> None:
        telemetry = self._parts.telemetry
        telemetry.count("roomlore_replies_total", labels={"result": draft.result or "failed"})
        if draft.result not in ("repeated", "refused"):
            telemetry.observe("roomlore_reply_seconds", self._parts.clock.monotonic() - begun)


def _result_of(error: BaseException) -> str:
    if isinstance(error, GeneratorExit | asyncio.CancelledError):
        return "abandoned"
    return "refused" if isinstance(error, InvalidInput | NotFound | Conflict | BudgetTooSmall) else "failed"
