"""The context service: contexts within a time limit, and recall of older messages."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING, Any

from roomlore.core.context import (
    MORE_ANSWERS,
    RECENT_REASON,
    Context,
    ContextOptions,
    least_messages,
    rendered_tokens,
    within_tokens,
)
from roomlore.core.errors import InvalidInput, NotFound, TimedOut, describe, unknown_room
from roomlore.core.experiments import Arm, Experiment
from roomlore.core.far import MIN_NEED, MOST_HITS, NOTHING_FAR, Earlier, Past, asks, is_placed, may_need, need, weigh
from roomlore.core.models import Candidate, ContextUsageRecord, Explanation, LinkKind, Room, Target
from roomlore.core.texts import Phrase
from roomlore.ports.audience import check_shown, gone, sees_all_of
from roomlore.ports.shared import Backends, Service
from roomlore.services.contexts.strategies import (
    STRATEGIES,
    CandidateReader,
    Explainer,
    RoomsInMemory,
    Strategy,
    choose,
    explain,
)
from roomlore.services.contexts.usage_service import UsageRecorder

if TYPE_CHECKING:
    from roomlore.storage import UnitOfWork

log = logging.getLogger(__name__)


_SHARE = 0.5
"""The share of a context's time that recall may take; the rest is for a context without recall."""
_FALLBACK_SECONDS = 1.0
MOST_SEARCHED = 10_000
"""The most messages of a room in which a search is made that is probably not needed: the first one of a process reads
what is known of all of them."""


PastSearch = Callable[..., Awaitable[Earlier]]
"""Called with an entry, `limit`, and `by_words`, True not to embed it. Return the messages before this one that answer
it best, at most `limit`."""


@dataclass(frozen=True, slots=True)
class RecalledPast:
    """The result of a recall. `problem`: None, or why less was searched than there is."""

    past: Past
    problem: str | None = None


def needs(target: Target, options: ContextOptions) -> float:
    """Return the probability that the message needs something that was said long ago.

    Return 0 if no search is to be made: the settings switch recall off; or the probability is too small and the message
    asks nothing, all that was said is shown anyway, or the room has more than `MOST_SEARCHED` messages.
    """
    if not (options.context_recall and options.enable_intelligent_memory and options.strategy == "threaded"):
        return 0.0
    message, is_asked = target.entry.message, asks(target.entry)
    needed = need(target) if is_asked or may_need(target) else 0.0
    if needed >= MIN_NEED or not is_asked or is_placed(target.entry):
        return needed if needed >= MIN_NEED else 0.0
    least = least_messages(message, target.room, options)
    before = min(target.room.messages, message.arrival) - 1
    return needed if least and least < before <= MOST_SEARCHED else 0.0


class TimedRecall:
    """Recall older messages that a message needs, within a time limit."""

    def __init__(self, search: PastSearch) -> None:
        self._search = search

    async def of(
        self, target: Target, needed: float, options: ContextOptions, *, explained: bool = False
    ) -> RecalledPast:
        """Return the candidates that were found; none if none are needed. `explained`: also what no context needs to
        know of others.

        An error, or a search that takes too long, becomes the `problem` if `fallback_on_error` is on; else it is
        raised.
        """
        if not needed:
            return RecalledPast(NOTHING_FAR)
        likely = needed >= MIN_NEED
        limit = max(MOST_HITS, options.max_context_messages) if likely else 2 * MORE_ANSWERS
        search = partial(self._search, target.entry, limit=limit, by_words=not likely)
        weighed = partial(weigh, target.entry.link, needed=needed, hits_alone=not (likely or explained))
        if not options.fallback_on_error:
            earlier = await search()
            return RecalledPast(weighed(earlier), earlier.problem)
        try:
            async with asyncio.timeout(_SHARE * options.context_build_timeout_seconds):
                earlier = await search()
        except Exception as error:  # noqa: BLE001 - whatever is wrong with the search, the thread is there
            why = "timeout" if isinstance(error, TimeoutError) else describe(error)
            log.warning("context without the past", extra={"room_id": target.room.room_id, "why": why})
            return RecalledPast(NOTHING_FAR, f"nothing was searched for ({why})")
        return RecalledPast(weighed(earlier), earlier.problem)


@dataclass(frozen=True, slots=True)
class _Draft:
    """A context before it is measured and recorded. `target` is None if not even the target could be read."""

    target: Target | None
    strategy: str
    candidates: tuple[Candidate, ...] = ()
    arm: str | None = None
    degraded: str | None = None


@dataclass(frozen=True, slots=True)
class _Request:
    """`given`: the options that the call names; `options`: with the settings. `arm`: of the experiment that the room is
    in."""

    room_id: str
    message_id: str | None
    given: Mapping[str, Any]
    options: ContextOptions
    arm: Arm | None = None

    @property
    def arm_name(self) -> str | None:
        return self.arm.name if self.arm else None

    def in_room(self, room: Room, settings: ContextOptions) -> ContextOptions:
        return settings.decided(room, given=self.given, arm=self.arm.settings if self.arm else {})


class ContextService(Service):
    """Choose contexts for one tenant and record their use."""

    def __init__(
        self,
        backends: Backends,
        *,
        tenant: str,
        recorder: UsageRecorder,
        past: PastSearch,
        options: ContextOptions,
        experiment: Experiment,
        zone: tzinfo = UTC,
        recording: bool = True,
        strategies: Mapping[str, Strategy] = STRATEGIES,
        rooms: RoomsInMemory | None = None,
    ) -> None:
        super().__init__(backends)
        self._tenant = tenant
        self._strategies = strategies
        self._recorder = recorder
        self._recall = TimedRecall(past)
        self._options = options
        self._experiment = experiment
        self._recording = recording
        self._zone = zone
        self._size = partial(rendered_tokens, zone=zone, count=backends.tokens.count)
        self._rooms = rooms

    async def build(
        self,
        room_id: str,
        message_id: str | None = None,
        *,
        strategy: str | None = None,
        max_messages: int | None = None,
        min_messages: int | None = None,
        max_tokens: int | None = None,
        viewer: str | None = None,
    ) -> Context:
        """Return what matters for the message (by default the newest one of a user in the room).

        `strategy`, `max_messages`, `min_messages` and `max_tokens` override the settings. The strategy `threaded` adds
        the newest messages up to `min_messages`, and all in a room of few messages. `max_tokens` limits what
        `to_prompt()` of the context returns, with names, times and notes; `to_messages()` is never longer. If it is too
        small, the likeliest messages are taken first, each that still fits, and none is cut. `viewer`: 'room:team' or
        'user:anna'; a room of which it may not see all is unknown. Without one the caller decides who is shown the
        answer.

        Raise `NotFound` for an unknown room or message, `InvalidInput` for a bad argument. Any other error, or a
        context that takes longer than `context_build_timeout_seconds`, gives a simpler answer that says so in
        `degraded`, if `fallback_on_error` is on; else the error is raised, a time-out as `TimedOut`.
        """
        request = self._request(
            room_id,
            message_id,
            strategy=strategy,
            max_context_messages=max_messages,
            min_context_messages=min_messages,
            max_context_tokens=max_tokens,
        )
        await self._check_shown(room_id, viewer)
        started = self._clock.monotonic()
        draft = await self._draft(request)
        context = self._finish(room_id, message_id, draft, started)
        self._measure(context)
        self._record(context, draft)
        return context

    async def compare(
        self,
        room_id: str,
        message_id: str | None = None,
        *,
        max_messages: int | None = None,
        max_tokens: int | None = None,
        viewer: str | None = None,
    ) -> list[Explanation]:
        """Return what each strategy takes for the message (by default the newest one of a user), and what it leaves.

        Meant for people: nothing is recorded or counted, and an error gives no simpler answer. `viewer`: as for
        `build`. Raise `NotFound`, `InvalidInput`, `StorageUnavailable`.
        """
        request = self._request(room_id, message_id, max_context_messages=max_messages, max_context_tokens=max_tokens)
        await self._check_shown(room_id, viewer)
        async with self._storage.reading(self._tenant) as work:
            target = await self._target_of(work, request)
        options = request.in_room(target.room, self._options)
        shown = replace(options, strategy="threaded", enable_intelligent_memory=True, fallback_on_error=False)
        recalled = await self._recall.of(target, needs(target, shown), shown, explained=True)
        async with self._storage.reading(self._tenant) as work:
            explainer = Explainer(work=work, past=recalled.past)
            return await explain(explainer, target, options, self._size, self._strategies)

    async def usage(self, context_id: str, *, viewer: str | None = None) -> ContextUsageRecord:
        """Return the usage record of a context. Raise `NotFound` if there is none, or if the viewer ('room:team' or
        'user:anna') may not see its room."""
        await self._recorder.settle()
        async with self._storage.reading(self._tenant) as work:
            return await self._shown(work, context_id, viewer)

    async def _shown(self, work: "UnitOfWork", context_id: str, viewer: str | None) -> ContextUsageRecord:
        record = await work.usage.find(context_id=context_id)
        now = self._clock.now()
        if record is None or not await sees_all_of(work, viewer=viewer, room_id=record.room_id, now=now):
            raise NotFound(_unknown(context_id))
        return record

    async def respond(self, context_id: str, text: str, *, viewer: str | None = None) -> None:
        """Record what the model answered with this context. `viewer`, `NotFound`: as for `usage`."""
        await self._recorder.settle()
        async with self._storage.writing(self._tenant) as work:
            if viewer is not None:
                await self._shown(work, context_id, viewer)
            if not await work.usage.respond(context_id=context_id, llm_response=text):
                raise NotFound(_unknown(context_id))

    async def feedback(
        self, context_id: str, *, text: str | None = None, score: float | None = None, viewer: str | None = None
    ) -> None:
        """Record feedback on a context: a text, a number in [0, 1], or both. `viewer`, `NotFound`: as for `usage`."""
        if text is None and score is None:
            raise InvalidInput("feedback_empty")
        if score is not None and (not isinstance(score, int | float) or not 0 <= score <= 1):
            raise InvalidInput("feedback_score_invalid", score=repr(score))
        await self._recorder.settle()
        async with self._storage.writing(self._tenant) as work:
            if viewer is not None:
                await self._shown(work, context_id, viewer)
            if not await work.usage.judge(context_id=context_id, feedback=text, score=score):
                raise NotFound(_unknown(context_id))
        if score is not None:
            self._telemetry.observe("roomlore_feedback_score", score)

    async def _check_shown(self, room_id: str, viewer: str | None) -> None:
        await check_shown(self._storage, tenant=self._tenant, viewer=viewer, room_id=room_id, now=self._clock.now())

    async def _draft(self, request: _Request) -> _Draft:
        """Return a draft within the time limit. After an error it is simpler, if the options allow that."""
        options = request.options
        try:
            async with asyncio.timeout(self._options.context_build_timeout_seconds):
                async with self._storage.reading(self._tenant) as work:
                    target = await self._target_of(work, request)
                    options = request.in_room(target.room, self._options)
                    needed = needs(target, options)
                    if not needed:
                        chosen = await self._choose(work, NOTHING_FAR, target, options)
                        return _drafted(request, target, options, chosen)
                return await self._with_past(request, target, options, needed)
        except (NotFound, InvalidInput):
            raise
        except Exception as error:
            kind = "timeout" if isinstance(error, TimeoutError) else type(error).__name__
            self._telemetry.count("roomlore_context_errors_total", labels={"kind": kind})
            if options.fallback_on_error:
                return await self._fall_back(request, options, error)
            if isinstance(error, TimeoutError):
                raise TimedOut(_late(self._options.context_build_timeout_seconds)) from error
            raise

    async def _with_past(self, request: _Request, target: Target, options: ContextOptions, needed: float) -> _Draft:
        recalled = await self._recall.of(target, needed, options)
        async with self._storage.reading(self._tenant) as work:
            chosen = await self._choose(work, recalled.past, target, options)
        return _drafted(request, target, options, chosen, recalled.problem)

    async def _choose(
        self, work: "UnitOfWork", past: Past, target: Target, options: ContextOptions
    ) -> Sequence[Candidate]:
        return await choose(self._gatherer(work, past), target, options, self._size, self._strategies)

    def _gatherer(self, work: "UnitOfWork", past: Past = NOTHING_FAR) -> CandidateReader:
        return CandidateReader(work=work, past=past, rooms=self._rooms)

    def _request(self, room_id: str, message_id: str | None, **arguments: Any) -> _Request:
        """Return the request of a call with these arguments, None for those that are left out."""
        given = {name: value for name, value in arguments.items() if value is not None}
        options = self._options.overridden(given)
        return _Request(
            room_id, message_id, given, options, self._experiment.arm_of(self._tenant, room_id, given=given)
        )

    async def _target_of(self, work: "UnitOfWork", request: _Request) -> Target:
        target = await self._target(work, request.room_id, request.message_id)
        if target is None:
            raise await self._missing(work, request.room_id, request.message_id)
        return target

    async def _target(self, work: "UnitOfWork", room_id: str, message_id: str | None) -> Target | None:
        window = self._options.max_context_messages
        if self._rooms is not None and (room := self._rooms.newest(self._tenant, room_id)) is not None:
            state = self._rooms.state(room)
            target = None if state is None else state.target(room, message_id, window)
            if target is not None and await self._rooms.is_current(work, room):
                return target
        return await work.messages.target(room_id=room_id, message_id=message_id, window=window)

    async def _missing(self, work: "UnitOfWork", room_id: str, message_id: str | None) -> NotFound:
        """Return the error: there is no such room, or not such a message in it."""
        if await work.rooms.find(room_id=room_id) is None:
            return unknown_room(room_id)
        problem = message_id and await gone(work, room_id=room_id, message_id=message_id)
        return problem or NotFound(_no_message(room_id, message_id))

    async def _fall_back(self, request: _Request, options: ContextOptions, error: Exception) -> _Draft:
        why = "timeout" if isinstance(error, TimeoutError) else describe(error)
        place = {"room_id": request.room_id, "message_id": request.message_id}
        log.warning("context degraded", extra={**place, "why": why})
        try:
            async with asyncio.timeout(_FALLBACK_SECONDS), self._storage.reading(self._tenant) as work:
                target = await self._target(work, request.room_id, request.message_id)
                if target is not None:
                    recent = await self._gatherer(work).recent_window(target, options)
                    recent = within_tokens(recent, options.max_context_tokens, self._size)
                    return _Draft(target, "recent", tuple(recent), request.arm_name, f"recent messages only ({why})")
        except Exception as second:  # noqa: BLE001 - the last resort is an empty context
            log.warning("context empty", extra={**place, "why": describe(second)})
        return _Draft(None, "none", arm=request.arm_name, degraded=f"empty ({why})")

    def _finish(self, room_id: str, message_id: str | None, draft: _Draft, started: float) -> Context:
        target = draft.target
        link = target.entry.link if target else None
        shown = {candidate.message.arrival: candidate.message.id for candidate in draft.candidates}
        guessed = link is not None and link.kind is not LinkKind.NEW
        parent = shown.get(link.parent or 0) if link and guessed else None
        return Context(
            context_id=self._ids.new(),
            room_id=room_id,
            message_id=target.entry.message.id if target else message_id or "",
            strategy=draft.strategy,
            messages=draft.candidates,
            parent=parent,
            parent_probability=link.parent_probability if link and parent else 0.0,
            tokens=sum(candidate.message.tokens for candidate in draft.candidates),
            window_tokens=target.window_tokens if target else 0,
            window_messages=target.window_messages if target else 0,
            build_ms=(self._clock.monotonic() - started) * 1000,
            degraded=draft.degraded,
            arm=draft.arm,
            zone=self._zone,
        )

    def _measure(self, context: Context) -> None:
        labels = {"strategy": context.strategy, "degraded": "yes" if context.degraded else "no"}
        self._telemetry.count("roomlore_contexts_total", labels=labels)
        self._telemetry.observe("roomlore_context_build_seconds", context.build_ms / 1000)
        self._telemetry.observe("roomlore_context_messages", len(context.messages))
        self._telemetry.count("roomlore_context_tokens_total", context.tokens)
        self._telemetry.count("roomlore_window_tokens_total", context.window_tokens)
        self._telemetry.see("roomlore_rooms_served", f"{self._tenant}\x00{context.room_id}")
        scores = [
            message.score
            for message in context.messages
            if message.signals is not None and message.reason != RECENT_REASON
        ]
        if scores:
            self._telemetry.observe("roomlore_context_score", fmean(scores))

    def _record(self, context: Context, draft: _Draft) -> None:
        if not self._recording or draft.target is None:
            return
        record = ContextUsageRecord(
            context_id=context.context_id,
            room_id=context.room_id,
            user_id=draft.target.entry.message.sender_id,
            trigger_message_id=context.message_id,
            strategy=context.strategy,
            context_message_ids=tuple(candidate.message.id for candidate in context.messages),
            relevance_scores={candidate.message.id: candidate.score for candidate in context.messages},
            tokens=context.tokens,
            window_tokens=context.window_tokens,
            build_ms=context.build_ms,
            created_at=self._clock.now(),
            degraded=context.degraded,
            arm=context.arm,
        )
        self._recorder.put(self._tenant, record)


def _drafted(
    request: _Request,
    target: Target,
    options: ContextOptions,
    chosen: Sequence[Candidate],
    degraded: str | None = None,
) -> _Draft:
    name = options.strategy if options.enable_intelligent_memory else "recent"
    return _Draft(target, name, tuple(chosen), request.arm_name, degraded)


def _late(seconds: float) -> str:
    return Phrase("context_late", seconds=f"{seconds:g}")


def _no_message(room_id: str, message_id: str | None) -> str:
    if message_id is None:
        return Phrase("room_without_user_message", room=repr(room_id))
    return Phrase("message_unknown_for_context", room=repr(room_id), message=repr(message_id))


def _unknown(context_id: str) -> str:
    return Phrase("context_unknown", context=repr(context_id))
