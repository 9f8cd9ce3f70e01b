"""The verbs of `lore.replies`."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Unpack

from roomlore.core.errors import BudgetTooSmall, Conflict, InvalidInput, NotFound, RoomloreError, describe
from roomlore.core.models import Message
from roomlore.core.replies.reply import Reply, ReplyEvent, ReplyText, said_before
from roomlore.ports.recall import Recall
from roomlore.services.replies.material import Gatherer, ReplyStore
from roomlore.services.replies.request import (
    Asked,
    Asking,
    Contexts,
    Messages,
    ReplyArguments,
    ReplyParts,
    ReplyRequest,
    Sessions,
)
from roomlore.services.replies.talk import Draft, Talk

log = logging.getLogger(__name__)


class ReplyService:
    """The replies of one tenant's agents. `recalls`: the sources of memories, in the order they are shown."""

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
            tenant=tenant,
            parts=parts,
            contexts=contexts,
            sessions=sessions,
            recalls=tuple(recalls),
            waiting=self._store.waiting,
        )

    def stream(self, message: Message, **arguments: Unpack[ReplyArguments]) -> AsyncGenerator[ReplyEvent, None]:
        """Store the user's message, ask the model for the agent's reply, and give it as it is written. The last event
        is the `Reply`, which is stored by then. With the database down the reply is given from what was just said,
        marked `degraded`, and stored when the database is back, if the process lives. The same message again gives the
        stored reply and asks no model.

        `arguments`: see `ReplyArguments`; each may be left out.

        If it breaks off after some of the text was given, that text is stored beside the message, marked as broken off,
        and the same message may be replied to again. Raise `InvalidInput`, `NotFound` for an unknown model, `Conflict`
        for a message that is stored with other content, `BudgetTooSmall`, `QuotaExceeded` if the tenant may add no
        message or use no model for now, `ModelUnavailable`, `BadModelOutput`, `StorageUnavailable`.
        """
        return self._events(ReplyRequest(message=message, **arguments))

    async def reply(self, message: Message, **arguments: Unpack[ReplyArguments]) -> Reply:
        """Return the whole reply, the last event of `stream`."""
        async with aclosing(self.stream(message, **arguments)) as events:
            replies = [event async for event in events if isinstance(event, Reply)]
        return replies[-1]

    async def model(self, model_id: str | None = None) -> str:
        """Return the model that would reply: `model_id`, or the one of the settings. Raise `NotFound` for an unknown
        one, `InvalidInput` if none can be chosen. Nothing is stored.
        """
        return await self._asking.model(model_id)

    async def find(self, room_id: str, message_id: str, *, agent_id: str = "assistant") -> Reply | None:
        """Return the agent's reply to the message, None if there is none; no model is asked."""
        reply = await self._store.find(room_id, message_id, agent_id)
        return said_before(message_id, reply) if reply else None

    async def _events(self, request: ReplyRequest) -> AsyncGenerator[ReplyEvent, None]:
        message, begun = request.message, self._parts.clock.monotonic()
        asked = await self._asking.checked(request)
        await self._parts.quotas.check(self._tenant)
        draft = Draft()
        try:
            with self._parts.background.alone((self._tenant, message.room_id, message.id, request.agent_id)):
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

    def _talk(self, asked: Asked, draft: Draft) -> Talk:
        return Talk(
            asked, draft, parts=self._parts, store=self._store, gatherer=self._gatherer, contexts=self._contexts
        )

    async def _keep_broken(self, asked: Asked, draft: Draft) -> None:
        """Store the part of a broken reply that was shown. The caller gets the error in any case."""
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
