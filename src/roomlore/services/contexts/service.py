"""The verbs of `lore.context`."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from statistics import fmean
from typing import Any

from roomlore.core.context import Context, ContextOptions, within_tokens
from roomlore.core.errors import Conflict, InvalidInput, NotFound, TimedOut, describe
from roomlore.core.explained import Explanation
from roomlore.core.far import NOTHING_FAR, Past
from roomlore.core.models import Candidate, ContextUsageRecord, LinkKind, Room, Target
from roomlore.ports.coordination import Clock, Ids, Telemetry
from roomlore.ports.storage import Storage, UnitOfWork
from roomlore.services.contexts.explaining import Explainer
from roomlore.services.contexts.gather import Gatherer
from roomlore.services.contexts.recall import PastSearch, Recall, needs
from roomlore.services.contexts.recorder import UsageRecorder
from roomlore.services.contexts.strategies import choose, explain

_FALLBACK_SECONDS = 1.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Draft:
    """What was found, before it is measured and recorded. `target` is None where not even that could be read."""

    target: Target | None
    strategy: str
    candidates: tuple[Candidate, ...] = ()
    arm: str | None = None
    degraded: str | None = None


@dataclass(slots=True)
class _Rules:
    """What is in force for one context: the arguments over the settings; the room's own come in once it is read."""

    given: Mapping[str, Any]
    options: ContextOptions
    arm: str | None = None


class ContextService:
    """Chooses contexts for one tenant and keeps what became of them."""

    def __init__(
        self,
        *,
        tenant: str,
        storage: Storage,
        clock: Clock,
        ids: Ids,
        telemetry: Telemetry,
        recorder: UsageRecorder,
        past: PastSearch,
        options: ContextOptions,
        experiment: Mapping[str, Mapping[str, Any]],
        recording: bool = True,
    ) -> None:
        self._tenant = tenant
        self._storage = storage
        self._clock = clock
        self._ids = ids
        self._telemetry = telemetry
        self._recorder = recorder
        self._recall = Recall(past)
        self._options = options
        self._experiment = {arm: dict(overrides) for arm, overrides in experiment.items()}
        self._recording = recording

    async def build(
        self,
        room_id: str,
        message_id: str | None = None,
        *,
        strategy: str | None = None,
        max_messages: int | None = None,
        max_tokens: int | None = None,
    ) -> Context:
        """Return what matters for the message (by default the newest one of a user in the room).

        `strategy`, `max_messages` and `max_tokens`, what the texts may take together, win over the settings. Where the
        tokens do not do, the likeliest messages are taken first, each that still fits, and none is cut.

        An unknown room or message raises `NotFound`, a bad argument `InvalidInput`. Anything else that goes wrong, or
        takes longer than `context_build_timeout_seconds`, gives a simpler answer that says so in `degraded`, as long as
        `fallback_on_error` is on; off, it is raised, a time-out as `TimedOut`.
        """
        asked = {"strategy": strategy, "max_context_messages": max_messages, "max_context_tokens": max_tokens}
        given = {name: value for name, value in asked.items() if value is not None}
        rules = _Rules(given, self._options.overridden(given))
        started = self._clock.monotonic()
        try:
            async with asyncio.timeout(self._options.context_build_timeout_seconds):
                draft = await self._draft(room_id, message_id, rules)
        except (NotFound, InvalidInput):
            raise
        except Exception as error:
            self._telemetry.count("roomlore_context_errors_total", labels={"kind": _kind(error)})
            if not rules.options.fallback_on_error:
                if isinstance(error, TimeoutError):
                    raise TimedOut(_late(self._options.context_build_timeout_seconds)) from error
                raise
            draft = await self._fall_back(room_id, message_id, rules, error)
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
    ) -> list[Explanation]:
        """Return what each strategy takes for the message (by default the newest one of a user), and what it leaves.

        For people to look at: nothing is recorded or counted, and nothing simpler is given where something goes wrong.
        Raises `NotFound`, `InvalidInput`, `StorageUnavailable`.
        """
        asked = {"max_context_messages": max_messages, "max_context_tokens": max_tokens}
        given = {name: value for name, value in asked.items() if value is not None}
        rules = _Rules(given, self._options.overridden(given))
        async with self._storage.reading() as work:
            target = await self._target(work, room_id, message_id)
            if target is None:
                raise NotFound(_no_message(room_id, message_id))
            self._apply(target.room, rules)
        shown = replace(rules.options, strategy="threaded", enable_intelligent_memory=True, fallback_on_error=False)
        recalled = await self._recall.of(target, needs(target, shown), shown)
        async with self._storage.reading() as work:
            explainer = Explainer(tenant=self._tenant, work=work, past=recalled.past)
            return await explain(explainer, target, rules.options)

    async def usage(self, context_id: str) -> ContextUsageRecord:
        """What was recorded of a context; `NotFound` where nothing was."""
        await self._recorder.settle()
        async with self._storage.reading() as work:
            record = await work.usage.find(tenant=self._tenant, context_id=context_id)
        if record is None:
            raise NotFound(_unknown(context_id))
        return record

    async def respond(self, context_id: str, text: str) -> None:
        """Notes what the model answered with this context."""
        await self._recorder.settle()
        async with self._storage.writing() as work:
            if not await work.usage.respond(tenant=self._tenant, context_id=context_id, llm_response=text):
                raise NotFound(_unknown(context_id))

    async def feedback(self, context_id: str, *, text: str | None = None, score: float | None = None) -> None:
        """Notes what people thought: a text, a number in [0, 1], or both."""
        if text is None and score is None:
            raise InvalidInput("Feedback needs a text, a score in [0, 1], or both.")
        if score is not None and (not isinstance(score, int | float) or not 0 <= score <= 1):
            raise InvalidInput(f"A feedback score lies in [0, 1]; {score!r} does not.")
        await self._recorder.settle()
        async with self._storage.writing() as work:
            if not await work.usage.judge(tenant=self._tenant, context_id=context_id, feedback=text, score=score):
                raise NotFound(_unknown(context_id))
        if score is not None:
            self._telemetry.observe("roomlore_feedback_score", score)

    async def _draft(self, room_id: str, message_id: str | None, rules: _Rules) -> _Draft:
        async with self._storage.reading() as work:
            target = await self._target(work, room_id, message_id)
            if target is None:
                raise NotFound(_no_message(room_id, message_id))
            self._apply(target.room, rules)
            needed = needs(target, rules.options)
            if not needed:
                return self._drafted(target, rules, await choose(self._gatherer(work), target, rules.options))
        recalled = await self._recall.of(target, needed, rules.options)
        async with self._storage.reading() as work:
            chosen = await choose(self._gatherer(work, recalled.past), target, rules.options)
        return self._drafted(target, rules, chosen, recalled.problem)

    def _gatherer(self, work: UnitOfWork, past: Past = NOTHING_FAR) -> Gatherer:
        return Gatherer(tenant=self._tenant, work=work, past=past)

    def _drafted(
        self, target: Target, rules: _Rules, chosen: Sequence[Candidate], degraded: str | None = None
    ) -> _Draft:
        name = rules.options.strategy if rules.options.enable_intelligent_memory else "recent"
        return _Draft(target, name, tuple(chosen), rules.arm, degraded)

    async def _target(self, work: UnitOfWork, room_id: str, message_id: str | None) -> Target | None:
        return await work.threads.target(
            tenant=self._tenant, room_id=room_id, message_id=message_id, window=self._options.max_context_messages
        )

    def _apply(self, room: Room, rules: _Rules) -> None:
        """`Conflict` where what the room has of its own does not fit the settings as they are now."""
        rules.arm = arm = self._arm(room.room_id)
        own = {**room.settings, **(self._experiment[arm] if arm else {}), **rules.given}
        try:
            rules.options = self._options.overridden(own)
        except InvalidInput as error:
            raise Conflict(f"The settings of room {room.room_id!r} do not fit those of all rooms: {error}") from error

    def _arm(self, room_id: str) -> str | None:
        """The arm of the experiment this room is in, by hash: the same in every process."""
        if not self._experiment:
            return None
        arms = sorted(self._experiment)
        digest = sha256(f"{self._tenant}\x00{room_id}".encode("utf-8", "surrogatepass")).digest()
        return arms[int.from_bytes(digest[:8]) % len(arms)]

    async def _fall_back(self, room_id: str, message_id: str | None, rules: _Rules, error: Exception) -> _Draft:
        why = "timeout" if isinstance(error, TimeoutError) else describe(error)
        place = {"room_id": room_id, "message_id": message_id}
        log.warning("context degraded", extra={**place, "why": why})
        try:
            async with asyncio.timeout(_FALLBACK_SECONDS), self._storage.reading() as work:
                target = await self._target(work, room_id, message_id)
                if target is not None:
                    recent = await self._gatherer(work).plain(target, rules.options)
                    recent = within_tokens(recent, rules.options.max_context_tokens)
                    return _Draft(target, "recent", tuple(recent), rules.arm, f"recent messages only ({why})")
        except Exception as second:  # noqa: BLE001 - the last resort is an empty context
            log.warning("context empty", extra={**place, "why": describe(second)})
        return _Draft(None, "none", arm=rules.arm, degraded=f"empty ({why})")

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
        )

    def _measure(self, context: Context) -> None:
        labels = {"strategy": context.strategy, "degraded": "yes" if context.degraded else "no"}
        self._telemetry.count("roomlore_contexts_total", labels=labels)
        self._telemetry.observe("roomlore_context_build_seconds", context.build_ms / 1000)
        self._telemetry.observe("roomlore_context_messages", len(context.messages))
        self._telemetry.count("roomlore_context_tokens_total", context.tokens)
        self._telemetry.count("roomlore_window_tokens_total", context.window_tokens)
        self._telemetry.see("roomlore_rooms_served", f"{self._tenant}\x00{context.room_id}")
        scores = [candidate.score for candidate in context.messages if candidate.signals is not None]
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


def _kind(error: Exception) -> str:
    return "timeout" if isinstance(error, TimeoutError) else type(error).__name__


def _late(seconds: float) -> str:
    return (
        f"The context was not built within context_build_timeout_seconds ({seconds:g}). Try again, allow more time, or "
        "turn fallback_on_error on to be given the last messages in that case."
    )


def _no_message(room_id: str, message_id: str | None) -> str:
    if message_id is None:
        return f"Room {room_id!r} has no message of a user to build a context for."
    return f"Room {room_id!r} has no message {message_id!r}; add the message first, then ask for its context."


def _unknown(context_id: str) -> str:
    return f"No context {context_id!r} was recorded (enable_async_data_collection may be off)."
