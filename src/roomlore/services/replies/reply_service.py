"""Replies: the verbs of `lore.replies`, and one reply as it is written: the model, the tools it calls, the model again,
until it is done."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from inspect import isawaitable
from typing import Unpack

from roomlore.core import intake
from roomlore.core.chat import ChatPiece, ChatRequest, FinishReason, ToolCall, Usage
from roomlore.core.errors import (
    BadModelOutput,
    BudgetTooSmall,
    Conflict,
    InvalidInput,
    NotFound,
    QuotaExceeded,
    RoomloreError,
    StorageUnavailable,
    describe,
)
from roomlore.core.models import Message
from roomlore.core.replies.prompt import LONGEST_NAME, ReplyPrompt, Round, as_function, matched, own_ids
from roomlore.core.replies.reply import Reply, ReplyEvent, ReplyStarted, ReplyText, ToolDone, ToolsWanted, said_before
from roomlore.core.text import graphemes, language, truncate
from roomlore.ports.memories import Recall
from roomlore.ports.shared import Service
from roomlore.ports.verbs import ContextVerbs, MessageVerbs
from roomlore.services.replies.material import Gathered, MaterialReader, Place, ReplyStore, usage_so_far
from roomlore.services.replies.request import (
    CheckedRequest,
    ReplyArguments,
    ReplyParts,
    ReplyRequest,
    ReplySessions,
    RequestChecks,
)

_BETWEEN = "\n\n"
_RESULT_CHARACTERS = 100_000
_ERROR_CHARACTERS = 500
_CLOSING_CHARACTERS = 1000
"""Reserved for the sentence that closes an interrupted answer."""
_MAX_CALLS = 128
_NO_ARGUMENTS = "{}"
_STORED_LATER = "The database could not be used: the reply is stored when it is back, if the process lives."

log = logging.getLogger(__name__)


@dataclass(slots=True)
class ReplyDraft:
    """A reply so far.

    `pieces`: all text that was shown, in earlier calls too, and `characters`: its length. `fresh`: True if some of it
    is not stored yet. `result`: how it ended, for the metrics.
    """

    place: Place | None = None
    rounds: tuple[Round, ...] = ()
    context_id: str | None = None
    degraded: str | None = None
    pieces: list[str] = field(default_factory=list)
    characters: int = 0
    fresh: bool = False
    usage: Usage = field(default_factory=Usage)
    last: ChatPiece = field(default_factory=ChatPiece)
    result: str = ""
    seen: bool = False

    def begin(self, place: Place) -> None:
        self.place, self.rounds = place, place.rounds
        for round_ in place.rounds:
            self.add(round_.text)
        self.usage = usage_so_far(place.rounds)

    def add(self, text: str) -> None:
        self.pieces.append(text)
        self.characters += len(text)

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def text_of_round(self) -> str:
        """Return the text since the last tool calls."""
        return self.text[sum(len(round_.text) for round_ in self.rounds) :]

    def kept(self, model_id: str) -> dict[str, object]:
        """Return the metadata to store with the text."""
        return {
            "model": model_id,
            "provider": self.last.provider,
            "provider_model": self.last.model_id,
            "finish_reason": self.last.finish_reason,
            "context_id": self.context_id,
            "input_tokens": self.usage.input_tokens,
            "output_tokens": self.usage.output_tokens,
        }


class ReplyWriter(Service):
    """Write one reply."""

    def __init__(
        self,
        ask: CheckedRequest,
        draft: ReplyDraft,
        *,
        parts: ReplyParts,
        store: ReplyStore,
        gatherer: MaterialReader,
        contexts: ContextVerbs,
    ) -> None:
        super().__init__(parts.backends)
        self._asked = ask
        self._draft = draft
        self._parts = parts
        self._store = store
        self._gatherer = gatherer
        self._contexts = contexts
        self._gathered: Gathered | None = None

    async def events(self) -> AsyncGenerator[ReplyEvent, None]:
        """Yield all events of the reply. A question that a model already answered is not asked again."""
        request, draft = self._asked.request, self._draft
        place = await self._store.begin(request.message, agent_id=request.agent_id, agent_name=request.agent_name)
        draft.begin(place)
        if place.reply is not None:
            yield self._said_before(place)
            return
        await self._take_results()
        while True:
            if draft.rounds and draft.rounds[-1].missing:
                yield ToolsWanted(draft.rounds[-1].missing)
                if request.call_tool is None:
                    yield self._waiting()
                    return
                for event in await self._call_tools():
                    yield event
            async with aclosing(self._ask()) as events:
                async for event in events:
                    yield event
            if draft.last.finish_reason != "tool_calls":
                break
            for event in await self._keep_calls():
                yield event
        async with aclosing(self._finish()) as endings:
            async for ending in endings:
                yield ending

    async def _ask(self) -> AsyncGenerator[ReplyEvent, None]:
        """Make one call to the model."""
        ask, draft = self._asked, self._draft
        first = self._gathered is None
        gathered = self._gathered = self._gathered or await self._gatherer.gather(ask, self._place)
        draft.context_id, draft.degraded = gathered.context_id, gathered.degraded
        tools = len(draft.rounds) < ask.iterations and (not self._place.problem or ask.request.call_tool is not None)
        prompt = await self._gatherer.prompt(gathered, ask, draft.rounds, tools=tools)
        if first:
            self._telemetry.observe("roomlore_reply_prompt_tokens", prompt.tokens)
            yield self._started(gathered, prompt)
        request = ChatRequest(
            messages=prompt.messages,
            temperature=ask.request.temperature,
            max_tokens=ask.request.max_tokens,
            tools=[as_function(tool) for tool in ask.request.tools] if tools else (),
            options=ask.request.options or {},
            tenant=self._store.tenant,
        )
        draft.last = ChatPiece()
        begun = False
        async with aclosing(self._parts.models.stream(ask.model_id, request)) as pieces:
            async for piece in pieces:
                draft.last = piece
                draft.usage += piece.usage
                text = piece.text if begun else self._separated(piece.text.lstrip())
                if shown := self._fitting(text):
                    begun = True
                    yield self._show(shown)
                if shown != text:
                    draft.last = replace(piece, finish_reason="length", tool_calls=())
                    break
        if draft.last.finish_reason == "tool_calls":
            draft.last = replace(draft.last, finish_reason=self._reason_with_calls(tools=tools))

    def _fitting(self, text: str) -> str:
        """Return the part of the next piece that can be stored with the earlier ones."""
        most = self._parts.limits.text_chars
        room = max(most - _CLOSING_CHARACTERS, most // 2) - self._draft.characters
        if len(text) <= room:
            return text
        cut = text[: max(room, 0)]
        return truncate(cut, graphemes(cut) - 1)

    def _reason_with_calls(self, *, tools: bool) -> FinishReason:
        """Return why the model stopped when it calls tools: a text too long to be stored with the calls is the end."""
        draft = self._draft
        if not (tools and draft.last.tool_calls):
            return "stop"
        return "length" if _as_json(draft.text_of_round()) > intake.METADATA_CHARS // 4 else "tool_calls"

    def _separated(self, text: str) -> str:
        """Return the text, separated from the text before a tool call."""
        before = self._draft.text
        return (_BETWEEN if text and before and not before.endswith("\n") else "") + text

    def _show(self, text: str) -> ReplyText:
        self._draft.add(text)
        self._draft.fresh = True
        return ReplyText(text)

    async def _take_results(self) -> None:
        """Store the results of the caller's tools."""
        draft = self._draft
        if self._place.problem and self._asked.request.tool_results:
            raise StorageUnavailable("tool_calls_unreadable", problem=self._place.problem)
        given = [replace(result, content=self._bounded(result.content)) for result in self._asked.request.tool_results]
        new = matched(draft.rounds, given)
        for round_ in draft.rounds:
            results = {call.id: new[call.id] for call in round_.calls if call.id in new}
            if results:
                await self._add_results(round_, results)

    async def _keep_calls(self) -> list[ReplyEvent]:
        """Store the tool calls that the model requested. Calls of unknown tools get their result at once."""
        draft = self._draft
        calls = own_ids(draft.last.tool_calls[:_MAX_CALLS], draft.rounds)
        longest = intake.METADATA_CHARS // (2 * len(calls))
        errors = {call.id: error for call in calls if (error := self._problem_with(call, longest))}
        made = Round(
            number=len(draft.rounds),
            text=draft.text_of_round(),
            calls=tuple(_kept(call, longest) for call in calls),
            results=errors,
            usage=_without(draft.usage, usage_so_far(draft.rounds)),
        )
        await self._keep_round(made)
        draft.rounds = (*draft.rounds, made)
        return [ToolDone(call, errors[call.id]) for call in made.calls if call.id in errors]

    async def _keep_round(self, made: Round) -> None:
        """Store the round and its text, even if this is cancelled."""
        fresh, self._draft.fresh = self._draft.fresh, False
        try:
            await self._parts.background.finish(self._store.keep_calls(self._place, made))
        except RoomloreError as error:
            self._draft.fresh = fresh
            if isinstance(error, InvalidInput):
                raise BadModelOutput("tool_calls_too_large") from error
            raise

    def _problem_with(self, call: ToolCall, longest: int) -> str:
        """Why a call is not made, as the model is told; '' where it is."""
        names = [tool.name for tool in self._asked.request.tools]
        if call.name not in names:
            return f"error: there is no tool {call.name!r:.80}; there are {', '.join(names) or 'none'}."
        return "error: the arguments are too long." if _as_json(call.arguments) > longest else ""

    async def _call_tools(self) -> list[ReplyEvent]:
        """Call all requested tools at once, and store their results."""
        made = self._draft.rounds[-1]
        wanted = made.missing
        contents = await asyncio.gather(*map(self._called, wanted))
        await self._add_results(made, {call.id: text for call, text in zip(wanted, contents, strict=True)})
        return [ToolDone(call, text) for call, text in zip(wanted, contents, strict=True)]

    async def _called(self, call: ToolCall) -> str:
        if wrong := self._problem_with(call, _as_json(call.arguments)):
            return wrong
        assert self._asked.request.call_tool is not None
        try:
            given = self._asked.request.call_tool(call)
            return self._bounded(str(await given if isawaitable(given) else given))
        except Exception as error:  # noqa: BLE001 - a tool is somebody else's code: the model is told and goes on
            log.warning("a tool failed", extra={"tool": call.name[:80], "why": describe(error)})
            return truncate(f"error: {type(error).__name__}: {error}", _ERROR_CHARACTERS)

    async def _add_results(self, made: Round, results: dict[str, str]) -> None:
        if not results:
            return
        await self._parts.background.finish(self._store.keep_results(self._place, made, results))
        rounds = self._draft.rounds
        self._draft.rounds = tuple(
            round_.with_results(results) if round_.number == made.number else round_ for round_ in rounds
        )

    async def _finish(self) -> AsyncGenerator[ReplyEvent, None]:
        """Store the reply, then yield it."""
        draft = self._draft
        closing = await self._closing(draft.last.finish_reason)
        if closing:
            yield self._show(self._separated(closing)[: self._parts.limits.text_chars - draft.characters])
        if not draft.text_of_round().strip():
            raise BadModelOutput("model_answered_nothing")
        await self._keep()
        yield self._done()

    async def _keep(self) -> None:
        draft = self._draft
        kept = draft.kept(self._asked.model_id)
        draft.fresh = False
        try:
            problem = await self._parts.background.finish(self._store.keep_reply(self._place, draft.text, kept))
        except RoomloreError as error:
            raise type(error)(f"The reply was written, but its text was not stored: {error}") from error
        if problem:
            draft.degraded = f"{_STORED_LATER} {problem}"
        if draft.context_id and not problem:
            self._parts.background.start(self._note_usage(draft.context_id, draft.text))

    async def _note_usage(self, context_id: str, text: str) -> None:
        try:
            await self._contexts.respond(context_id, text)
        except NotFound:
            return  # Contexts are not recorded, or this one was too simple to be.

    async def _closing(self, reason: FinishReason | None) -> str:
        """Return a sentence for an answer that was interrupted, '' for any other."""
        if reason not in ("content_filter", "length"):
            return ""
        options = self._parts.options
        own = options.content_filter_text if reason == "content_filter" else options.length_text
        if own:
            return own
        assert self._gathered is not None
        text = self._draft.text
        spoken = language(text) if text.strip() else self._gathered.material.language
        return (await self._parts.prompts.find(f"reply_{reason}", language=spoken)).text.strip()

    def _started(self, gathered: Gathered, prompt: ReplyPrompt) -> ReplyStarted:
        return ReplyStarted(
            message_id=self._place.message.id,
            reply_id=self._place.reply_id,
            model_id=self._asked.model_id,
            context_id=gathered.context_id,
            messages=len(prompt.shown),
            prompt_tokens=prompt.tokens,
            truncated=prompt.truncated,
            degraded=gathered.degraded,
        )

    def _done(self) -> Reply:
        draft = self._draft
        draft.result = draft.last.finish_reason or "stop"
        return self._reply(draft.last.finish_reason)

    def _waiting(self) -> Reply:
        """Return the reply that waits for the caller to call tools."""
        self._draft.result = "tool_calls"
        return replace(self._reply("tool_calls"), tool_calls=self._draft.rounds[-1].missing)

    def _reply(self, reason: FinishReason | None) -> Reply:
        draft = self._draft
        return Reply(
            message_id=self._place.message.id,
            reply_id=self._place.reply_id,
            text=draft.text,
            finish_reason=reason,
            usage=draft.usage,
            provider=draft.last.provider,
            model=self._asked.model_id,
            context_id=draft.context_id,
            degraded=draft.degraded,
        )

    def _said_before(self, place: Place) -> Reply:
        assert place.reply is not None
        self._draft.result = "repeated"
        degraded = f"{_STORED_LATER} {place.problem}" if place.problem else None
        return replace(said_before(place.message.id, place.reply), degraded=degraded)

    def _bounded(self, content: str) -> str:
        most = min(_RESULT_CHARACTERS, self._parts.limits.text_chars)
        return content if len(content) <= most else truncate(content, most - 2)[: most - 2] + " …"

    @property
    def _place(self) -> Place:
        assert self._draft.place is not None
        return self._draft.place


def _as_json(text: str) -> int:
    """Return how many characters of JSON a text takes."""
    return len(json.dumps(text, ensure_ascii=False))


def _kept(call: ToolCall, longest: int) -> ToolCall:
    """Return the call as it is stored and shown to the model again, without arguments that are too long."""
    arguments = call.arguments if _as_json(call.arguments) <= longest else _NO_ARGUMENTS
    return replace(call, name=call.name[:LONGEST_NAME], arguments=arguments)


def _without(whole: Usage, before: Usage) -> Usage:
    """Return the usage of the last call."""
    return Usage(whole.input_tokens - before.input_tokens, whole.output_tokens - before.output_tokens)


class ReplyService(Service):
    """The replies of one tenant's agents. `recalls`: the sources of memories, in the order they are shown."""

    def __init__(
        self,
        *,
        tenant: str,
        parts: ReplyParts,
        messages: MessageVerbs,
        contexts: ContextVerbs,
        sessions: ReplySessions,
        recalls: Sequence[Recall] = (),
    ) -> None:
        super().__init__(parts.backends)
        self._tenant = tenant
        self._parts = parts
        self._contexts = contexts
        self._asking = RequestChecks(models=parts.models, options=parts.options, limits=parts.limits)
        self._store = ReplyStore(tenant=tenant, parts=parts, messages=messages, sessions=sessions)
        self._gatherer = MaterialReader(
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
        return (await self._asking.model(model_id)).model_id

    async def check(self, message: Message, **arguments: Unpack[ReplyArguments]) -> None:
        """Raise what `stream` would raise for these arguments, or for a quota, before it stores anything."""
        request = ReplyRequest(message=message, **arguments)
        await self._asking.checked(request)
        await self._check_quotas(request)

    async def find(self, room_id: str, message_id: str, *, agent_id: str = "assistant") -> Reply | None:
        """Return the agent's reply to the message, None if there is none; no model is asked."""
        reply = await self._store.find(room_id, message_id, agent_id)
        return said_before(message_id, reply) if reply else None

    async def _events(self, request: ReplyRequest) -> AsyncGenerator[ReplyEvent, None]:
        message, begun = request.message, self._clock.monotonic()
        ask = await self._asking.checked(request)
        await self._check_quotas(request)
        draft = ReplyDraft()
        try:
            with self._parts.background.alone((self._tenant, message.room_id, message.id, request.agent_id)):
                async with aclosing(self._talk(ask, draft).events()) as events:
                    async for event in events:
                        if isinstance(event, ReplyText):
                            self._observe_first(draft, begun)
                        yield event
        except BaseException as error:
            draft.result = draft.result or _result_of(error)
            await self._keep_broken(ask, draft)
            raise
        finally:
            self._measure(draft, begun)

    async def _check_quotas(self, request: ReplyRequest) -> None:
        """Raise `QuotaExceeded`, unless the reply has begun before: then it is given again, or goes on."""
        try:
            await self._parts.quotas.check(self._tenant)
        except QuotaExceeded:
            if not await self._store.begun(request.message, agent_id=request.agent_id):
                raise

    def _talk(self, ask: CheckedRequest, draft: ReplyDraft) -> ReplyWriter:
        return ReplyWriter(
            ask, draft, parts=self._parts, store=self._store, gatherer=self._gatherer, contexts=self._contexts
        )

    async def _keep_broken(self, ask: CheckedRequest, draft: ReplyDraft) -> None:
        """Store the part of a broken reply that was shown. The caller gets the error in any case."""
        if draft.place is None or not draft.fresh or not draft.text.strip():
            return
        kept = draft.kept(ask.model_id)
        keeping = self._store.keep_broken(draft.place, draft.text, kept, why=draft.result)
        draft.fresh = False
        try:
            await self._parts.background.finish(keeping)
        except RoomloreError as error:
            log.error("the text of a reply that broke off was not stored", extra={"why": describe(error)})

    def _observe_first(self, draft: ReplyDraft, begun: float) -> None:
        if not draft.seen:
            draft.seen = True
            self._telemetry.observe("roomlore_reply_first_text_seconds", self._clock.monotonic() - begun)

    def _measure(self, draft: ReplyDraft, begun: float) -> None:
        telemetry = self._telemetry
        telemetry.count("roomlore_replies_total", labels={"result": draft.result or "failed"})
        if draft.result not in ("repeated", "refused"):
            telemetry.observe("roomlore_reply_seconds", self._clock.monotonic() - begun)


def _result_of(error: BaseException) -> str:
    if isinstance(error, GeneratorExit | asyncio.CancelledError):
        return "abandoned"
    return "refused" if isinstance(error, InvalidInput | NotFound | Conflict | BudgetTooSmall) else "failed"
