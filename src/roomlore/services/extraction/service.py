"""Extraction: every few replies of an agent in a room, the last messages become one short memory of the agent.

What is due follows from the messages and a watermark for each agent and room. The ids of the work and of what comes of
it follow from them too, and a piece that does not begin at the watermark does nothing, so a crash, a second worker or a
reply deleted meanwhile changes nothing.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta

from roomlore.core.memory.extraction import EXTRACT_EVERY, extraction_end, extraction_id, watermark
from roomlore.core.memory.models import Action, Change, Evolution, Memory, MemoryKind, Source
from roomlore.core.memory.reading import own_words
from roomlore.core.models import StoredMessage
from roomlore.core.plain import storable
from roomlore.core.work import work_name
from roomlore.ports.coordination import Clock, Jobs, Telemetry
from roomlore.ports.durable import DurableWork, Json, Steps
from roomlore.ports.rooms_due import DueRoom
from roomlore.ports.storage import Storage, UnitOfWork
from roomlore.services.extraction.conversation import conversation_of
from roomlore.services.extraction.due import EXTRACTION
from roomlore.services.extraction.summarise import PROMPT, Extracted, MemorySummaries

_LOOK_AGAIN_SECONDS = 30.0
_CLAIM_SECONDS = 5.0
_ROOMS_AT_ONCE = 50
_TROUBLES_IN_A_ROW = 5
"""So many mean that it is not the rooms."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """The messages up to arrival `last` of a room as a memory of an agent, whose replies were extracted up to `after`
    before."""

    tenant: str
    room_id: str
    agent_id: str
    after: int
    last: int
    every: int = EXTRACT_EVERY
    """How many messages it is made of: the setting may be another, or 0, when its turn comes."""

    @property
    def id(self) -> str:
        return extraction_id(self.tenant, self.agent_id, self.room_id, self.last)

    @property
    def work_id(self) -> str:
        """With where it begins: two pieces that end with the same reply are not the same work."""
        return work_name(self.tenant, EXTRACTION, f"{self.id}-{self.after}")

    @property
    def partition(self) -> str:
        return work_name(self.tenant, EXTRACTION, storable(self.room_id))

    @property
    def scope(self) -> str:
        return f"agent:{self.agent_id}"

    @property
    def where(self) -> dict[str, str]:
        return {"tenant": self.tenant, "room_id": self.room_id}


class _Troubles:
    """Around what is done for one room after the other: a room that fails each time keeps no other back."""

    def __init__(self) -> None:
        self._last: Exception | None = None
        self._in_a_row = 0

    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(self, _kind: object, error: BaseException | None, _where: object) -> bool:
        if not isinstance(error, Exception):
            self._in_a_row = 0
            return False
        self._last = error
        self._in_a_row += 1
        return self._in_a_row < _TROUBLES_IN_A_ROW

    def tell(self) -> None:
        """Raises the last of them."""
        if self._last:
            raise self._last


class ExtractionService:
    """Extraction in the rooms of all tenants. `every`: how many replies, and messages, make a memory."""

    def __init__(
        self,
        *,
        storage: Storage,
        durable: DurableWork,
        summaries: MemorySummaries,
        jobs: Jobs,
        clock: Clock,
        telemetry: Telemetry,
        every: int,
    ) -> None:
        self._storage = storage
        self._durable = durable
        self._summaries = summaries
        self._jobs = jobs
        self._clock = clock
        self._telemetry = telemetry
        self._every = every
        self._went_on = False

    async def sweep(self) -> list[str]:
        """Hands in what is due in rooms that were noted, and says the ids of that work. What was handed in before stays
        as it is, and is tried again where it had failed."""
        await self._go_on()
        handed_in: list[str] = []
        troubles = _Troubles()
        while rooms := await self._claim():
            for room in rooms:
                with troubles:
                    handed_in += await self._look_after(room)
        troubles.tell()
        return handed_in

    async def extract(self, steps: Steps, arguments: Json) -> None:
        """One extraction, as durable work. The model is asked in a step of its own, so that an answer that came is
        never paid for again."""
        piece = _Piece(**arguments)
        if await self._is_next(piece):
            messages, conversation = await self._read(piece)

            async def summarise() -> Json:
                await steps.report(f"asking a model about {len(messages)} messages")
                found = await self._summaries.of(conversation) if conversation else Extracted(None, "nothing")
                return found.to_json()

            extracted = Extracted.from_json(await steps.once("summary", summarise))
            await self._keep(piece, messages, extracted)
        self._jobs.ask(EXTRACTION)

    async def _go_on(self) -> None:
        """Opens durable work where a process before this one may have left some: looking at it does that."""
        if self._went_on:
            return
        async with self._storage.reading() as work:
            left = await work.rooms_due.any(work=EXTRACTION)
        if left:
            await self._durable.page(limit=1)
        self._went_on = True

    async def _claim(self) -> Sequence[DueRoom]:
        now = self._clock.now()
        until = now + timedelta(seconds=_CLAIM_SECONDS)
        async with self._storage.writing() as work:
            return await work.rooms_due.claim(work=EXTRACTION, now=now, lease_until=until, limit=_ROOMS_AT_ONCE)

    async def _look_after(self, room: DueRoom) -> list[str]:
        pieces = await self._due(room.tenant, room.room_id)
        for piece in pieces:
            await self._hand_in(piece)
        async with self._storage.writing() as work:
            if pieces:
                until = self._clock.now() + timedelta(seconds=_LOOK_AGAIN_SECONDS)
                await work.rooms_due.put_off(room=room, work=EXTRACTION, until=until)
            else:
                await work.rooms_due.done(room=room, work=EXTRACTION)
        return [piece.work_id for piece in pieces]

    async def _hand_in(self, piece: _Piece) -> None:
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
        """Whether the work was done and what came of it is gone: an older state of the database was brought back."""
        state = await self._durable.find(piece.work_id)
        return state is not None and state.status == "done" and await self._is_next(piece)

    async def _due(self, tenant: str, room_id: str) -> list[_Piece]:
        """The next piece of each agent in the room. What comes after it is looked for once it is done."""
        pieces: list[_Piece] = []
        named = {"tenant": tenant, "room_id": room_id}
        async with self._storage.reading() as work:
            marks = await work.watermarks.of_room(**named, prefix=watermark(""))
            for name, after in marks.items():
                agent = name.removeprefix(watermark(""))
                replies = await work.messages.replies_of(**named, agent_id=agent, after=after, limit=self._every)
                last = extraction_end(replies, self._every)
                if last is not None:
                    pieces.append(_Piece(tenant, room_id, agent, after, last, self._every))
        return pieces

    async def _is_next(self, piece: _Piece) -> bool:
        name = watermark(piece.agent_id)
        async with self._storage.reading() as work:
            return (await work.watermarks.find(**piece.where, names=[name])).get(name, 0) == piece.after

    async def _read(self, piece: _Piece) -> tuple[list[StoredMessage], str]:
        """The messages, none of which was extracted before, and what they say to whoever is to remember it."""
        async with self._storage.reading() as work:
            recent = await work.messages.recent(**piece.where, limit=piece.every, before=piece.last + 1)
            messages = [message for message in recent if message.arrival > piece.after]
            return messages, await conversation_of(work, **piece.where, messages=messages)

    async def _keep(self, piece: _Piece, messages: Sequence[StoredMessage], extracted: Extracted) -> None:
        """Keeps the memory, what made it and how far it goes, all or none; nothing where the watermark moved."""
        now, name = self._clock.now(), watermark(piece.agent_id)
        async with self._storage.writing() as work:
            if not await work.watermarks.move(**piece.where, name=name, arrival=piece.last, was=piece.after, now=now):
                return
            await work.evolutions.add(tenant=piece.tenant, evolution=self._record(piece, messages, extracted))
            if extracted.statement:
                await self._remember(work, piece, messages, extracted)
            await work.rooms_due.note(**piece.where, work=EXTRACTION, now=now)
        result = "fallback" if extracted.is_fallback else "kept" if extracted.statement else "nothing"
        self._telemetry.count("roomlore_extractions_total", labels={"result": result})

    async def _remember(
        self, work: UnitOfWork, piece: _Piece, messages: Sequence[StoredMessage], extracted: Extracted
    ) -> None:
        now = self._clock.now()
        scope = await work.memory_log.lock(tenant=piece.tenant, scope=piece.scope, now=now)
        memory = Memory(
            memory_id=piece.id,
            lineage_id=piece.id,
            scope=piece.scope,
            kind=MemoryKind.SHORT,
            statement=extracted.statement or "",
            sources=tuple(Source(piece.room_id, message.id) for message in messages if own_words(message)),
            evolution_id=piece.id,
            made_by=extracted.made_by,
            fallback=extracted.is_fallback,
            created_at=now,
            updated_at=now,
            supported_at=max((message.at for message in messages), default=now),
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
        await work.memory_log.apply(tenant=piece.tenant, scope=piece.scope, changes=[change])

    def _record(self, piece: _Piece, messages: Sequence[StoredMessage], extracted: Extracted) -> Evolution:
        now = self._clock.now()
        return Evolution(
            evolution_id=piece.id,
            scope=piece.scope,
            kind="extraction",
            status="applied" if extracted.statement else "nothing",
            room_id=piece.room_id,
            first_arrival=messages[0].arrival if messages else piece.last,
            last_arrival=piece.last,
            messages=len(messages),
            prompt_name=PROMPT if extracted.prompt_hash else "",
            prompt_hash=extracted.prompt_hash,
            model=extracted.made_by if extracted.prompt_hash else "",
            usage=extracted.usage,
            raw_answer=extracted.raw_answer,
            started_at=now,
            finished_at=now,
        )
