"""Extraction of short memories as durable work: noting the rooms with new replies of agents, in the transactions that
store messages; what is due in them, what is read, how a statement is made (by a model or without one), and what is
stored."""

import hashlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta, tzinfo
from typing import Any, Literal

from roomlore.core.audience import evidence_of
from roomlore.core.chat import SUMMARY_MODEL, ChatAnswer, ChatRequest, Usage
from roomlore.core.errors import describe
from roomlore.core.intake import content_hash
from roomlore.core.json_values import storable
from roomlore.core.memory.extraction import (
    FALLBACK,
    FOLDED_CHARACTERS,
    IMPORTED,
    MAX_ARRIVALS,
    MAX_PASSED,
    MAX_SHORT,
    SUMMARY_CHARACTERS,
    SUMMARY_TOKENS,
    Fold,
    conversations_of,
    cut_at,
    extraction_end,
    extraction_id,
    fallback,
    first_mark,
    fold_changes,
    fold_due,
    kept,
    speaks,
    watermark,
)
from roomlore.core.memory.memory import Action, Change, Evolution, Memory, MemoryKind, MemoryStatus, Scope, Source
from roomlore.core.memory.reading import as_conversation
from roomlore.core.models import Entry, Role, StoredMessage
from roomlore.core.prompt import neutral
from roomlore.core.text import language
from roomlore.ports.coordination import Clock, Jobs
from roomlore.ports.durable import DurableWork, Json, Steps, work_name
from roomlore.ports.language import LanguageModels, Prompts
from roomlore.ports.shared import Backends, Service
from roomlore.storage import UnitOfWork
from roomlore.storage.values import DueRoom

EXTRACTION = "extraction"
"""The work that turns replies into short memories, and the background job that enqueues it."""


class RepliesDue:
    """Watch new messages for replies of agents.

    An agent's count in a room begins with the first reply seen here, and what it reads begins with what led to that
    reply, except what was imported: that is history, not part of an ongoing conversation.
    """

    def __init__(self, *, clock: Clock, jobs: Jobs) -> None:
        self._clock = clock
        self._jobs = jobs

    async def note(self, work: UnitOfWork, room_id: str, entries: Sequence[Entry]) -> bool:
        """Note the room, in the transaction that writes the entries, if there is a reply among them."""
        first: dict[str, int] = {}
        for entry in entries:
            if is_reply(entry.message):
                first.setdefault(entry.message.sender_id, entry.message.arrival)
        if first:
            await self._begin(work, room_id, first)
            await work.progress.note_room(room_id=room_id, work=EXTRACTION, now=self._clock.now())
        return bool(first)

    def announce(self) -> None:
        """Request the work once the transaction is committed."""
        self._jobs.ask(EXTRACTION)

    async def _begin(self, work: UnitOfWork, room_id: str, first: dict[str, int]) -> None:
        """Begin the counts that are not there. They are looked up each time: another process may have removed the
        room."""
        names = {agent: watermark(agent) for agent in first}
        marks = await work.progress.marks(room_id=room_id, names=[*names.values(), IMPORTED])
        for agent, arrival in first.items():
            if names[agent] not in marks:
                start = first_mark(arrival, marks.get(IMPORTED, 0))
                await work.progress.move_mark(
                    room_id=room_id, name=names[agent], arrival=start, was=0, now=self._clock.now()
                )


class RepliesImported:
    """Watch imports. Imported messages are never extracted, so the count of an agent that is active in the room starts
    again after them."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock

    async def note(self, work: UnitOfWork, room_id: str, entries: Sequence[Entry]) -> bool:
        replies = [entry.message for entry in entries if is_reply(entry.message)]
        ends = {watermark(message.sender_id): message.arrival for message in replies}
        if entries:
            await self._move_imported(work, room_id, entries[-1].message.arrival)
        while ends:
            ends = await self._move(work, room_id, ends)
        return False

    async def _move_imported(self, work: UnitOfWork, room_id: str, end: int) -> None:
        was = (await work.progress.marks(room_id=room_id, names=[IMPORTED])).get(IMPORTED, 0)
        await work.progress.move_mark(room_id=room_id, name=IMPORTED, arrival=end, was=was, now=self._clock.now())

    async def _move(self, work: UnitOfWork, room_id: str, ends: dict[str, int]) -> dict[str, int]:
        """Move the existing watermarks; return those that a memory moved meanwhile, which locks no room."""
        left: dict[str, int] = {}
        for name, was in (await work.progress.marks(room_id=room_id, names=list(ends))).items():
            if not await work.progress.move_mark(
                room_id=room_id, name=name, arrival=ends[name], was=was, now=self._clock.now()
            ):
                left[name] = ends[name]
        return left

    def announce(self) -> None:
        """Do nothing: an import makes nothing due."""


def is_reply(message: StoredMessage) -> bool:
    return message.role is Role.ASSISTANT and not message.has_tool_calls


log = logging.getLogger(__name__)

PROMPT = "memory_summary"
FOLD_PROMPT = "memory_fold"
_FOLD_TOKENS = 4 * SUMMARY_TOKENS


@dataclass(frozen=True, slots=True)
class Extracted:
    """The result for a conversation. `statement`: None if nothing is worth keeping. `made_by`: 'fallback' if no model
    answered."""

    statement: str | None
    made_by: str
    prompt_hash: str = ""
    raw_answer: str = ""
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def is_fallback(self) -> bool:
        return self.made_by == FALLBACK

    @property
    def usage(self) -> Usage:
        return Usage(self.input_tokens, self.output_tokens)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Extracted":
        return cls(**data)


class MemorySummaries:
    """Summaries by the model `memory-summary-model`, each provider with `timeout_seconds`. The log says once that no
    model answers, and once that one does again."""

    def __init__(self, *, models: LanguageModels, prompts: Prompts, timeout_seconds: float) -> None:
        self._models = models
        self._prompts = prompts
        self._timeout_seconds = timeout_seconds
        self._is_out = False

    async def of(self, conversation: str, *, tenant: str = "") -> Extracted:
        """Return a summary. It never fails: without a model it falls back. `tenant`: whose quota it counts for."""
        try:
            return await self.by_model(conversation, tenant=tenant)
        except Exception as error:  # noqa: BLE001 - an answer nobody foresaw must not stop an agent's memories for good
            self._note(
                "a memory holds sentences of its conversation, since no model summarised it;"
                " set up a model, or ignore this if you want none",
                error,
            )
            return Extracted(fallback(conversation), FALLBACK)

    async def by_model(self, conversation: str, *, tenant: str = "") -> Extracted:
        """Return a model's summary. Raise `ModelUnavailable`, `BadModelOutput` or `NotFound` if no model gives one."""
        return await self._ask(
            PROMPT, "conversation", conversation, most=SUMMARY_CHARACTERS, tokens=SUMMARY_TOKENS, tenant=tenant
        )

    async def merged(self, notes: str, *, tenant: str = "") -> Extracted:
        """Return one longer statement in the place of several. It never fails: without a model it has none."""
        try:
            return await self._ask(
                FOLD_PROMPT, "notes", notes, most=FOLDED_CHARACTERS, tokens=_FOLD_TOKENS, tenant=tenant
            )
        except Exception as error:  # noqa: BLE001 - as above
            self._note("no model merged short memories", error)
            return Extracted(None, FALLBACK)

    def _note(self, text: str, error: Exception) -> None:
        if not self._is_out:
            log.warning(text, extra={"why": describe(error)})
        self._is_out = True

    async def _ask(self, name: str, place: str, text: str, *, most: int, tokens: int, tenant: str) -> Extracted:
        prompt = await self._prompts.find(name, language=language(text))
        content = prompt.fill({place: neutral(text)})
        request = ChatRequest(messages=({"role": "user", "content": content},), max_tokens=tokens, tenant=tenant)

        def check(given: ChatAnswer) -> None:
            kept(given.text, instructions=prompt.text, most=most)

        answer = await self._models.complete(SUMMARY_MODEL, request, timeout_seconds=self._timeout_seconds, check=check)
        if self._is_out:
            log.info("a model makes short memories again")
        self._is_out = False
        statement = kept(answer.text, most=most)
        if statement is None:
            log.info("a model found nothing worth keeping")
        return Extracted(
            statement=statement,
            made_by=f"{answer.provider}/{answer.model_id}",
            prompt_hash=prompt.hash,
            raw_answer=answer.text,
            input_tokens=answer.usage.input_tokens,
            output_tokens=answer.usage.output_tokens,
        )


_LOOK_AGAIN_SECONDS = 30.0
_CLAIM_SECONDS = 5.0
_ROOMS_AT_ONCE = 50
_ERRORS_IN_A_ROW = 5
"""After so many errors in a row the rooms are not the cause."""
_SEEN_BEFORE = 20
"""Messages before the first new one that show to whom the new ones speak."""


async def conversation_of(work: UnitOfWork, *, room_id: str, messages: Sequence[StoredMessage], zone: tzinfo) -> str:
    """Return messages of one room in order as text with their times in the zone, with the messages they reply to and
    the names of people looked up."""
    replied = [message.reply_to for message in messages if message.reply_to]
    answered = await work.messages.by_id(room_id=room_id, message_ids=replied)
    people = await work.rooms.participants(room_id=room_id)
    quoted = {entry.message.id: entry.message for entry in answered}
    return as_conversation(messages, quoted=quoted, people=people, zone=zone)


def digest_of(messages: Iterable[StoredMessage]) -> str:
    """Return a hash that tells if any of these messages was edited or deleted since."""
    return hashlib.sha256(" ".join(sorted(map(content_hash, messages))).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class _Piece:
    """An agent's conversations up to arrival `last` of a room as a memory. `after`: the end of the last extraction."""

    tenant: str
    room_id: str
    agent_id: str
    after: int
    last: int

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "_Piece":
        """Return the piece. Work of earlier versions names how many messages it reads; it is left out."""
        return cls(**{name: value for name, value in data.items() if name != "every"})

    @property
    def id(self) -> str:
        return extraction_id(self.tenant, self.agent_id, self.room_id, self.last)

    @property
    def work_id(self) -> str:
        """The id includes the start: two pieces that end with the same reply are not the same work."""
        return work_name(self.tenant, EXTRACTION, f"{self.id}-{self.after}")

    @property
    def partition(self) -> str:
        return work_name(self.tenant, EXTRACTION, storable(self.room_id))

    @property
    def scope(self) -> str:
        return f"agent:{self.agent_id}"


@dataclass(frozen=True, slots=True)
class _Window:
    """The messages of an extraction. `messages`: those of the agent's conversations, in order. `passed`: arrivals of
    the others, which a later reply may answer."""

    messages: Sequence[StoredMessage]
    passed: Sequence[int]

    def times(self) -> list[tuple[int, str]]:
        """Return arrival and time of each message, as JSON. Processes of other versions read it: its form must stay."""
        return [(message.arrival, message.dated_at.isoformat()) for message in self.messages]


@dataclass(frozen=True, slots=True)
class _Answer:
    """The result for what a model read. `read`: the times of these messages by arrival; `digest`: their hash then;
    `spent`: on an earlier answer, in vain."""

    extracted: Extracted
    read: Mapping[int, datetime]
    digest: str
    spent: Usage

    @classmethod
    def of(cls, step: Json, window: _Window, spent: Usage) -> "_Answer":
        """Return the answer of a step. One of other versions has no digest, "", or more than one time a message."""
        answer = dict(step)
        read = {arrival: datetime.fromisoformat(at) for arrival, at, *_ in answer.pop("read", window.times())}
        digest = answer.pop("digest", "")
        return cls(Extracted.from_json(answer), read, digest, spent)

    def without_words(self) -> "_Answer":
        return replace(self, extracted=replace(self.extracted, statement=None, raw_answer=""))


class _Errors:
    """Collect errors of one room after the other: a room that fails each time delays no other."""

    def __init__(self) -> None:
        self._last: Exception | None = None
        self._in_a_row = 0

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, _kind: object, error: BaseException | None, _where: object) -> bool:
        if not isinstance(error, Exception):
            self._in_a_row = 0
            return False
        self._last = error
        self._in_a_row += 1
        return self._in_a_row < _ERRORS_IN_A_ROW

    def raise_last(self) -> None:
        """Raise the last error, if any."""
        if self._last:
            raise self._last


_TRIES = ("summary", "summary-again")
"""The steps that ask a model, one after the other while messages change as it reads them."""
_Kept = Literal["kept", "fallback", "nothing", "overtaken"]
_OUTCOMES: Mapping[_Kept, str] = {
    "kept": "a memory of {count} messages",
    "fallback": "a memory of {count} messages, without a model: it is made again when one answers",
    "nothing": "{count} messages read, nothing to keep",
    "overtaken": "nothing: another process had read these messages",
}


class ExtractionService(Service):
    """Extraction in the rooms of all tenants. `every`: the number of replies that make a memory. `zone`: the time zone
    in which a model reads times."""

    def __init__(
        self,
        backends: Backends,
        *,
        durable: DurableWork,
        summaries: MemorySummaries,
        every: int,
        zone: tzinfo,
    ) -> None:
        super().__init__(backends)
        self._durable = durable
        self._summaries = summaries
        self._every = every
        self._zone = zone
        self._resumed = False

    async def sweep(self) -> list[str]:
        """Enqueue what is due in the noted rooms and return the ids of the work. Work that was enqueued before stays as
        it is; it is tried again if it failed."""
        await self._resume()
        enqueued: list[str] = []
        errors = _Errors()
        while rooms := await self._claim():
            for room in rooms:
                with errors:
                    enqueued += await self._enqueue_due(room)
        errors.raise_last()
        return enqueued

    async def extract(self, steps: Steps, arguments: Json) -> None:
        """Run one extraction, as durable work. The model is asked in a step of its own, so that an answer is never paid
        for twice."""
        piece = _Piece.from_json(arguments)
        spent: Usage | None = Usage()
        for step in _TRIES:
            if spent is not None and await self._is_next(piece):
                spent = await self._extract(steps, piece, step, spent)
        self._jobs.ask(EXTRACTION)

    async def _extract(self, steps: Steps, piece: _Piece, step: str, spent: Usage) -> Usage | None:
        """Return what was spent in vain if messages were edited or deleted while the model read them, and this is not
        the last try; else None. `spent`: in an earlier try."""
        window, conversation = await self._read(piece)

        async def summarise() -> Json:
            await steps.report(f"asking a model about {len(window.messages)} messages")
            question = self._summaries.of(conversation, tenant=piece.tenant) if conversation else None
            extracted = await question if question else Extracted(None, "nothing")
            return {**extracted.to_json(), "read": window.times(), "digest": digest_of(window.messages)}

        answer = _Answer.of(await steps.once(step, summarise), window, spent)
        fold = await self._fold_due(piece) if answer.extracted.statement else Fold()
        merged = await self._merged(steps, fold, piece.tenant)
        kept = await self._keep(piece, answer, window, fold, merged, last=step == _TRIES[-1])
        if kept is None:
            return answer.extracted.usage
        await steps.report(_OUTCOMES[kept].format(count=len(window.messages)))
        return None

    async def _fold_due(self, piece: _Piece) -> Fold:
        """Return which of the agent's memories of the room make place for another one."""
        async with self._storage.reading(piece.tenant) as work:
            memories = await work.memories.short_of_room(scope=piece.scope, room_id=piece.room_id, limit=2 * MAX_SHORT)
        here = [memory for memory in memories if all(source.room_id == piece.room_id for source in memory.sources)]
        return fold_due(here, new_id=piece.id)

    async def _merged(self, steps: Steps, fold: Fold, tenant: str) -> Extracted:
        if not fold.merged:
            return Extracted(None, FALLBACK)

        async def merge() -> Json:
            await steps.report(f"asking a model to merge {len(fold.merged)} short memories")
            return (await self._summaries.merged(fold.notes(), tenant=tenant)).to_json()

        return Extracted.from_json(await steps.once(f"fold-{fold.id}", merge))

    async def _resume(self) -> None:
        """Open durable work if a process before this one may have left some: looking at it resumes it."""
        if self._resumed:
            return
        async with self._storage.reading() as work:
            left = await work.progress.any_noted(work=EXTRACTION)
        if left:
            await self._durable.page(limit=1)
        self._resumed = True

    async def _claim(self) -> Sequence[DueRoom]:
        now = self._clock.now()
        until = now + timedelta(seconds=_CLAIM_SECONDS)
        async with self._storage.writing() as work:
            return await work.progress.claim_rooms(work=EXTRACTION, now=now, lease_until=until, limit=_ROOMS_AT_ONCE)

    async def _enqueue_due(self, room: DueRoom) -> list[str]:
        pieces = await self._due(room.tenant, room.room_id)
        for piece in pieces:
            await self._enqueue(piece)
        async with self._storage.writing() as work:
            if pieces:
                until = self._clock.now() + timedelta(seconds=_LOOK_AGAIN_SECONDS)
                await work.progress.put_off(room=room, work=EXTRACTION, until=until)
            else:
                await work.progress.done(room=room, work=EXTRACTION)
        return [piece.work_id for piece in pieces]

    async def _enqueue(self, piece: _Piece) -> None:
        if await self._start(piece, piece.work_id):
            return
        if await self._durable.retry(piece.work_id):
            self._telemetry.count("roomlore_work_total", labels={"kind": EXTRACTION, "result": "retried"})
        elif await self._was_undone(piece):
            await self._start(piece, f"{piece.work_id}-{self._clock.now():%Y%m%dT%H%M%S}")

    async def _start(self, piece: _Piece, work_id: str) -> bool:
        return await self._durable.start(
            EXTRACTION, work_id=work_id, partition=piece.partition, arguments=asdict(piece)
        )

    async def _was_undone(self, piece: _Piece) -> bool:
        """Return True if the work was done but its result is missing: an older state of the database was restored."""
        state = await self._durable.find(piece.work_id)
        return state is not None and state.status == "done" and await self._is_next(piece)

    async def _due(self, tenant: str, room_id: str) -> list[_Piece]:
        """Return the next piece of each agent in the room. The one after it is found once it is done."""
        pieces: list[_Piece] = []
        async with self._storage.reading(tenant) as work:
            marks = await work.progress.marks_of_room(room_id=room_id, prefix=watermark(""))
            for name, after in marks.items():
                agent = name.removeprefix(watermark(""))
                replies = await work.messages.replies_of(
                    room_id=room_id, agent_id=agent, after=after, limit=self._every
                )
                last = extraction_end(replies, self._every)
                if last is not None:
                    piece = _Piece(tenant, room_id, agent, after, min(last, after + MAX_ARRIVALS))
                    window = await _window(work, piece)
                    end = cut_at(piece.last, [message.arrival for message in window.messages], after=after)
                    pieces.append(replace(piece, last=end))
        return pieces

    async def _is_next(self, piece: _Piece) -> bool:
        name = watermark(piece.agent_id)
        async with self._storage.reading(piece.tenant) as work:
            return (await work.progress.marks(room_id=piece.room_id, names=[name])).get(name, 0) == piece.after

    async def _read(self, piece: _Piece) -> tuple[_Window, str]:
        """Return what is read, none of which was extracted before, and the conversation as text for the model."""
        async with self._storage.reading(piece.tenant) as work:
            window = await _window(work, piece)
            return window, await conversation_of(work, room_id=piece.room_id, messages=window.messages, zone=self._zone)

    async def _keep(
        self, piece: _Piece, answer: _Answer, window: _Window, fold: Fold, merged: Extracted, *, last: bool
    ) -> _Kept | None:
        """Store the memory, its evidence, its end and what makes place for it, all or none; nothing if the watermark
        moved. Without the words of messages that changed since they were read: return None, or keep no memory of them
        if this was the last try."""
        now, name = self._clock.now(), watermark(piece.agent_id)
        async with self._storage.writing(piece.tenant) as work:
            if await work.rooms.lock_known(room_id=piece.room_id) is None:
                return "overtaken"
            messages = await work.messages.messages_by_arrival(room_id=piece.room_id, arrivals=sorted(answer.read))
            if answer.extracted.statement and answer.digest and digest_of(messages) != answer.digest:
                if not last:
                    return None
                answer = answer.without_words()
            if not await work.progress.move_mark(
                room_id=piece.room_id, name=name, arrival=piece.last, was=piece.after, now=now
            ):
                return "overtaken"
            record = self._record(piece, answer, window)
            await work.memories.add_evolution(evolution=record)
            if answer.extracted.statement:
                scope = await work.memories.lock(scope=piece.scope, now=now)
                await self._remember(work, piece, scope, answer, messages)
                await self._fold(work, piece, scope, fold, merged)
            await work.progress.note_room(room_id=piece.room_id, work=EXTRACTION, now=now)
        extracted = answer.extracted
        result: _Kept = "nothing" if not extracted.statement else "fallback" if extracted.is_fallback else "kept"
        self._telemetry.count("roomlore_extractions_total", labels={"result": result})
        return result

    async def _fold(self, work: UnitOfWork, piece: _Piece, scope: Scope, fold: Fold, merged: Extracted) -> None:
        """Merge and retire, unless one of the memories changed meanwhile: then the next extraction does it."""
        there = await work.memories.by_id(memory_ids=sorted(fold.memory_ids))
        active = {memory.memory_id for memory in there if memory.status is MemoryStatus.ACTIVE}
        if not active or active != fold.memory_ids:
            return
        latest = await work.memories.latest_versions(lineage_ids=[fold.lineage_id])
        changes = fold_changes(
            fold,
            merged.statement,
            version=latest.get(fold.lineage_id, 0) + 1,
            number=scope.changes + 2,
            made_by=merged.made_by,
            now=self._clock.now(),
        )
        await work.memories.add_evolution(evolution=self._fold_record(piece, fold, merged))
        await work.memories.apply(scope=piece.scope, changes=changes)

    async def _remember(
        self, work: UnitOfWork, piece: _Piece, scope: Scope, answer: _Answer, messages: Sequence[StoredMessage]
    ) -> None:
        now, read, extracted = self._clock.now(), answer.read, answer.extracted
        memory = Memory(
            memory_id=piece.id,
            lineage_id=piece.id,
            scope=piece.scope,
            kind=MemoryKind.SHORT,
            statement=extracted.statement or "",
            sources=tuple(Source(piece.room_id, message.id) for message in messages),
            evidence=evidence_of(
                (piece.room_id, at)
                for at in (
                    *read.values(),
                    *(time for message in messages for time in (message.origin.first, message.origin.last)),
                )
            ),
            evolution_id=piece.id,
            made_by=extracted.made_by,
            fallback=extracted.is_fallback,
            created_at=now,
            updated_at=now,
            supported_at=max(read.values(), default=now),
        )
        change = Change(
            number=scope.changes + 1,
            scope=piece.scope,
            action=Action.CREATE,
            memory=memory,
            evolution_id=piece.id,
            actor=extracted.made_by,
            at=now,
        )
        await work.memories.apply(scope=piece.scope, changes=[change])

    def _record(self, piece: _Piece, answer: _Answer, window: _Window) -> Evolution:
        now, read, extracted = self._clock.now(), answer.read, answer.extracted
        return Evolution(
            evolution_id=piece.id,
            scope=piece.scope,
            kind="extraction",
            status="applied" if extracted.statement else "nothing",
            room_id=piece.room_id,
            first_arrival=min(read, default=piece.last),
            last_arrival=piece.last,
            messages=len(read),
            prompt_name=PROMPT if extracted.prompt_hash else "",
            prompt_hash=extracted.prompt_hash,
            model=extracted.made_by if extracted.prompt_hash else "",
            usage=answer.spent + extracted.usage,
            raw_answer=extracted.raw_answer,
            facts={"passed": [arrival for arrival in window.passed if arrival not in read]},
            started_at=now,
            finished_at=now,
        )

    def _fold_record(self, piece: _Piece, fold: Fold, merged: Extracted) -> Evolution:
        """Return the record of a merge. What it rests on lies anywhere in the room so far."""
        now = self._clock.now()
        return Evolution(
            evolution_id=fold.id,
            scope=piece.scope,
            kind="extraction",
            status="applied",
            room_id=piece.room_id,
            first_arrival=1,
            last_arrival=piece.last,
            messages=sum(len(memory.sources) for memory in fold.merged),
            prompt_name=FOLD_PROMPT if merged.prompt_hash else "",
            prompt_hash=merged.prompt_hash,
            model=merged.made_by if merged.prompt_hash else "",
            usage=merged.usage,
            raw_answer=merged.raw_answer,
            facts={"folded": sorted(fold.memory_ids)},
            started_at=now,
            finished_at=now,
        )


async def _window(work: UnitOfWork, piece: _Piece) -> _Window:
    """Return what is to be read. Messages before the watermark only show who speaks to whom, except those that were
    passed over so far."""
    passed = await _passed(work, piece)
    arrivals = {*range(max(piece.after - _SEEN_BEFORE, 0) + 1, piece.last + 1), *passed}
    entries = await work.messages.by_arrival(room_id=piece.room_id, arrivals=sorted(arrivals))
    parents = {entry.link.parent for entry in entries if entry.link.parent} - arrivals
    before = await work.messages.by_arrival(room_id=piece.room_id, arrivals=sorted(parents))
    alone = await _is_alone(work, piece, entries)
    chosen = conversations_of(piece.agent_id, [*before, *entries], alone=alone)
    new = {entry.message.arrival for entry in entries if entry.message.arrival > piece.after and speaks(entry)}
    messages = [message for message in chosen if message.arrival in new or message.arrival in passed]
    left = (new | set(passed)) - {message.arrival for message in messages}
    return _Window(messages, sorted(left)[-MAX_PASSED:])


async def _passed(work: UnitOfWork, piece: _Piece) -> Sequence[int]:
    """Return the arrivals that the extraction before this one passed over."""
    before = extraction_id(piece.tenant, piece.agent_id, piece.room_id, piece.after)
    records = await work.memories.evolutions_by_id(evolution_ids=[before])
    return [int(arrival) for record in records for arrival in record.facts.get("passed", ())]


async def _is_alone(work: UnitOfWork, piece: _Piece, entries: Sequence[Entry]) -> bool:
    """Return True if the room has one person and no other agent."""
    agents = {entry.message.sender_id for entry in entries if is_reply(entry.message)}
    people = await work.rooms.people(room_ids=[piece.room_id])
    known = people[piece.room_id].people if piece.room_id in people else ()
    return agents <= {piece.agent_id} and len(known) <= 1
