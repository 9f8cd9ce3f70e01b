"""Retry of memories that were stored without a model.

A memory is retried if it is flagged, active, and was not tried a short while ago. One piece goes first; the rest
follow, a few at a time, once a model has answered. So a provider that is down gets few requests, and one that recovers
is not flooded.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import tzinfo

from roomlore.core.audience import evidence_of
from roomlore.core.chat import Usage
from roomlore.core.errors import ModelUnavailable, NotFound, describe
from roomlore.core.json_values import storable
from roomlore.core.memory.extraction import again_id, attempt_at
from roomlore.core.memory.memory import Action, Change, Evolution, Memory, MemoryStatus, Source
from roomlore.core.memory.reading import own_words
from roomlore.core.models import StoredMessage
from roomlore.core.text import language
from roomlore.ports.durable import DurableWork, Json, Steps, work_name
from roomlore.ports.shared import Backends, Service
from roomlore.services.extraction.extraction_service import (
    PROMPT,
    Extracted,
    MemorySummaries,
    conversation_of,
    digest_of,
)
from roomlore.storage import UnitOfWork

EXTRACTION_RETRY = "extraction_again"
"""The work that retries flagged memories, and the background job that enqueues it."""
_PAGE = 100
_MADE = {
    "zh": "没有模型时留下的开头，由模型重新摘要。",
    "en": "Summarised by a model, in the place of what was kept without one.",
}
_NOTHING = "A model found nothing worth keeping in it."
_SOURCELESS = "It was kept without a model, and the messages it came from were deleted."


CanAsk = Callable[[], Awaitable[bool]]
"""Return True if a provider of the summary model can be asked now: it has a key, or needs none, and did not just
fail."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """A version of a memory, and the number of times it may have been tried before."""

    tenant: str
    room_id: str
    memory_id: str
    attempt: int

    @property
    def id(self) -> str:
        return again_id(self.memory_id, self.attempt)

    @property
    def work_id(self) -> str:
        return work_name(self.tenant, EXTRACTION_RETRY, self.id)


@dataclass(frozen=True, slots=True)
class _Read:
    """A memory that waits for a model, and what is left of the messages it came from."""

    memory: Memory
    messages: Sequence[StoredMessage]
    conversation: str


class FallbackRetries(Service):
    """Retry the flagged memories of all tenants. `at_once`: how many pieces wait or run at a time."""

    def __init__(
        self,
        backends: Backends,
        *,
        durable: DurableWork,
        can_ask: CanAsk,
        summaries: MemorySummaries,
        at_once: int,
        zone: tzinfo,
    ) -> None:
        super().__init__(backends)
        self._durable = durable
        self._can_ask = can_ask
        self._summaries = summaries
        self._at_once = at_once
        self._zone = zone
        self._answered = False
        self._after: str | None = None

    async def sweep(self) -> list[str]:
        """Enqueue some of the flagged memories, if a provider can be asked, and return the ids of that work."""
        if not await self._can_ask():
            return []
        pieces = await self._next()
        if not pieces:
            return []
        chosen = pieces[: await self._capacity_left()]
        for piece in chosen:
            await self._enqueue(piece)
        return [piece.work_id for piece in chosen]

    async def retry(self, steps: Steps, arguments: Json) -> None:
        """Retry one memory, as durable work. Raise `ModelUnavailable` if no provider answers; a later sweep enqueues it
        again."""
        piece = _Piece(**arguments)
        read = await self._read(piece)
        result = "left" if read is None else await self._make(steps, piece, read)
        self._telemetry.count("roomlore_fallbacks_total", labels={"result": result})
        self._jobs.ask(EXTRACTION_RETRY)

    async def _make(self, steps: Steps, piece: _Piece, read: _Read) -> str:
        async def summarise() -> Json:
            summary = await self._summary(read.conversation, piece.tenant)
            return {**summary, "digest": digest_of(read.messages)}

        return await self._apply(piece, read, await steps.once("summary", summarise) if read.conversation else {})

    async def _next(self) -> list[_Piece]:
        """Return the pieces after the last one that was enqueued, in rotation, so that none delays others."""
        async with self._storage.reading() as work:
            page = await work.memories.fallbacks(after=self._after, limit=_PAGE)
            if not page and self._after is not None:
                page = await work.memories.fallbacks(after=None, limit=_PAGE)
            pieces = [self._piece(tenant, memory) for tenant, memory in page]
            tried = await _tried(work, pieces)
        left = [piece for piece in pieces if (piece.tenant, piece.id) not in tried]
        if not left:
            self._after = _place(pieces[-1]) if pieces else None
        return left

    def _piece(self, tenant: str, memory: Memory) -> _Piece:
        age = (self._clock.now() - memory.updated_at).total_seconds()
        room_id = memory.sources[0].room_id if memory.sources else ""
        return _Piece(tenant, room_id, memory.memory_id, attempt_at(age))

    async def _capacity_left(self) -> int:
        most = self._at_once if self._answered else 1
        under_way = 0
        for status in ("waiting", "running"):
            under_way += len(await self._durable.page(names=[EXTRACTION_RETRY], status=status, limit=most))
        return max(most - under_way, 0)

    async def _enqueue(self, piece: _Piece) -> None:
        partition = work_name(piece.tenant, EXTRACTION_RETRY, storable(piece.room_id))
        new = await self._durable.start(
            EXTRACTION_RETRY, work_id=piece.work_id, partition=partition, arguments=asdict(piece)
        )
        if not new:
            await self._durable.retry(piece.work_id)
        self._after = _place(piece)

    async def _read(self, piece: _Piece) -> _Read | None:
        async with self._storage.reading(piece.tenant) as work:
            memory = await _flagged(work, piece)
            if memory is None:
                return None
            messages = await _messages(work, piece, memory)
            return _Read(
                memory, messages, await conversation_of(work, room_id=piece.room_id, messages=messages, zone=self._zone)
            )

    async def _summary(self, conversation: str, tenant: str) -> Json:
        """Return a model's summary, or why its answer is unusable: it is not asked again at once."""
        try:
            extracted = await self._summaries.by_model(conversation, tenant=tenant)
        except (ModelUnavailable, NotFound) as error:
            self._answered = False
            if isinstance(error, ModelUnavailable) and error.cause == "refused":
                return {"error": describe(error)}
            raise
        except Exception as error:  # noqa: BLE001 - an answer nobody foresaw is paid for like any other
            return {"error": describe(error)}
        self._answered = True
        return {"extracted": extracted.to_json()}

    async def _apply(self, piece: _Piece, read: _Read, summary: Json) -> str:
        """Replace the memory that was stored without a model; do nothing if it, or a message that it rests on, changed
        meanwhile. Return the outcome."""
        extracted = Extracted.from_json(summary["extracted"]) if "extracted" in summary else None
        record = self._record(piece, read, extracted, error=str(summary.get("error", "")))
        async with self._storage.writing(piece.tenant) as work:
            now, scope_name = self._clock.now(), read.memory.scope
            await work.rooms.lock_known(room_id=piece.room_id)
            scope = await work.memories.lock(scope=scope_name, now=now)
            if await _flagged(work, piece) != read.memory:
                return "left"
            if digest_of(await _messages(work, piece, read.memory)) != summary.get("digest", digest_of(read.messages)):
                return "left"
            if not await work.memories.add_evolution(evolution=record):
                return "left"
            if record.error:
                return "unusable"
            change = self._change(piece, read, extracted, number=scope.changes + 1)
            await work.memories.apply(scope=scope_name, changes=[change])
        return "made" if record.status == "applied" else "nothing" if extracted else "sourceless"

    def _change(self, piece: _Piece, read: _Read, extracted: Extracted | None, *, number: int) -> Change:
        old, now = read.memory, self._clock.now()
        closes: tuple[str, ...] = ()
        if extracted and extracted.statement:
            why = _MADE[language(extracted.statement)]
            edits = ((piece.room_id, message.edited_at) for message in read.messages if message.edited_at)
            evidence = evidence_of(edits, old.evidence)
            same = (extracted.statement, evidence) == (old.statement, old.evidence)
            new = replace(
                old,
                memory_id=piece.id,
                version=old.version + 1,
                parents=(old.memory_id,),
                statement=extracted.statement,
                sources=tuple(Source(piece.room_id, message.id) for message in read.messages if own_words(message)),
                evidence=evidence,
                shared_with=old.shared_with if same else (),
                made_by=extracted.made_by,
            )
            action, closes = Action.UPDATE, (old.memory_id,)
        else:
            why = _NOTHING if extracted else _SOURCELESS
            new = replace(old, status=MemoryStatus.DEPRECATED)
            action = Action.DELETE
        return Change(
            number=number,
            scope=old.scope,
            action=action,
            memory=replace(new, fallback=False, change_summary=why, evolution_id=piece.id, updated_at=now),
            closes=closes,
            old_statement=old.statement,
            reason=why,
            evolution_id=piece.id,
            actor=extracted.made_by if extracted else "roomlore",
            at=now,
        )

    def _record(self, piece: _Piece, read: _Read, extracted: Extracted | None, *, error: str) -> Evolution:
        now, arrivals = self._clock.now(), [message.arrival for message in read.messages]
        kept = bool(extracted and extracted.statement)
        return Evolution(
            evolution_id=piece.id,
            scope=read.memory.scope,
            kind="extraction",
            status="failed" if error else "applied" if kept else "nothing",
            room_id=piece.room_id,
            first_arrival=min(arrivals, default=0),
            last_arrival=max(arrivals, default=0),
            messages=len(arrivals),
            prompt_name=PROMPT if extracted else "",
            prompt_hash=extracted.prompt_hash if extracted else "",
            model=extracted.made_by if extracted else "",
            usage=extracted.usage if extracted else Usage(),
            raw_answer=extracted.raw_answer if extracted else "",
            facts={"again": piece.memory_id},
            error=error,
            started_at=now,
            finished_at=now,
        )


async def _flagged(work: UnitOfWork, piece: _Piece) -> Memory | None:
    """Return the memory, if it still waits for a model."""
    memories = await work.memories.by_id(memory_ids=[piece.memory_id])
    memory = memories[0] if memories else None
    return memory if memory and memory.fallback and memory.status is MemoryStatus.ACTIVE else None


async def _messages(work: UnitOfWork, piece: _Piece, memory: Memory) -> list[StoredMessage]:
    """Return what is left of the messages that the memory rests on, in their order."""
    ids = [source.message_id for source in memory.sources if source.room_id == piece.room_id]
    entries = await work.messages.by_id(room_id=piece.room_id, message_ids=ids)
    return sorted((entry.message for entry in entries), key=lambda message: message.arrival)


async def _tried(work: UnitOfWork, pieces: Sequence[_Piece]) -> set[tuple[str, str]]:
    tried: set[tuple[str, str]] = set()
    for tenant in dict.fromkeys(piece.tenant for piece in pieces):
        ids = [piece.id for piece in pieces if piece.tenant == tenant]
        evolutions = await work.of(tenant).memories.evolutions_by_id(evolution_ids=ids)
        tried |= {(tenant, evolution.evolution_id) for evolution in evolutions}
    return tried


def _place(piece: _Piece) -> str:
    return f"{piece.tenant}\0{piece.memory_id}"
