"""Extraction: every few replies of an agent in a room, the last messages become one short memory of the agent.

What is due follows from the messages and a watermark for each agent and room. The ids of the work and of what comes of
it follow from the messages too, so a crash or a second worker changes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from roomlore.core.memory.extraction import extraction_ends, extraction_id, watermark
from roomlore.core.memory.models import Action, Change, Evolution, Memory, MemoryKind, Source
from roomlore.core.memory.reading import as_conversation, own_words
from roomlore.core.models import Role, StoredMessage
from roomlore.ports.coordination import Clock, Telemetry
from roomlore.ports.durable import DurableWork, Json, Steps
from roomlore.ports.rooms_due import DueRoom
from roomlore.ports.storage import Storage, UnitOfWork
from roomlore.services.extraction.due import EXTRACTION
from roomlore.services.extraction.summarise import PROMPT, Extracted, MemorySummaries

_LEASE_SECONDS = 60.0
_ROOMS_AT_ONCE = 50
_REPLIES_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class _Piece:
    """The messages up to arrival `last` of a room, as a memory of an agent."""

    tenant: str
    room_id: str
    agent_id: str
    last: int

    @classmethod
    def of(cls, arguments: Json) -> "_Piece":
        return cls(arguments["tenant"], arguments["room_id"], arguments["agent_id"], int(arguments["last"]))

    @property
    def id(self) -> str:
        return extraction_id(self.tenant, self.agent_id, self.room_id, self.last)

    @property
    def scope(self) -> str:
        return f"agent:{self.agent_id}"

    def arguments(self) -> Json:
        return {"tenant": self.tenant, "room_id": self.room_id, "agent_id": self.agent_id, "last": self.last}


class ExtractionService:
    """Extraction in the rooms of all tenants. `every`: how many replies, and messages, make a memory."""

    def __init__(
        self,
        *,
        storage: Storage,
        durable: DurableWork,
        summaries: MemorySummaries,
        clock: Clock,
        telemetry: Telemetry,
        every: int,
    ) -> None:
        self._storage = storage
        self._durable = durable
        self._summaries = summaries
        self._clock = clock
        self._telemetry = telemetry
        self._every = every

    async def sweep(self) -> None:
        """Hands in what is due in rooms that were noted; what was handed in before stays as it is."""
        while rooms := await self._claim():
            for room in rooms:
                await self._hand_in(room)
                async with self._storage.writing() as work:
                    await work.rooms_due.done(room=room, work=EXTRACTION)

    async def extract(self, steps: Steps, arguments: Json) -> None:
        """One extraction, as durable work. The model is asked in a step of its own, so that an answer that came is
        never paid for again."""
        piece = _Piece.of(arguments)
        messages, conversation = await self._read(piece)

        async def summarise() -> Json:
            found = await self._summaries.of(conversation) if conversation else Extracted(None, "nothing")
            return found.to_json()

        extracted = Extracted.from_json(await steps.once("summary", summarise))
        await self._keep(piece, messages, extracted)
        result = "fallback" if extracted.is_fallback else "kept" if extracted.statement else "nothing"
        self._telemetry.count("roomlore_extractions_total", labels={"result": result})

    async def _claim(self) -> Sequence[DueRoom]:
        now = self._clock.now()
        async with self._storage.writing() as work:
            return await work.rooms_due.claim(
                work=EXTRACTION, now=now, lease_until=now + timedelta(seconds=_LEASE_SECONDS), limit=_ROOMS_AT_ONCE
            )

    async def _hand_in(self, room: DueRoom) -> None:
        for piece in await self._due(room.tenant, room.room_id):
            await self._durable.start(
                EXTRACTION,
                work_id=f"{EXTRACTION}:{piece.id}",
                partition=f"{piece.tenant}\x1f{piece.room_id}",
                arguments=piece.arguments(),
            )

    async def _due(self, tenant: str, room_id: str) -> list[_Piece]:
        pieces: list[_Piece] = []
        async with self._storage.reading() as work:
            marks = await work.watermarks.of_room(tenant=tenant, room_id=room_id, prefix=watermark(""))
            for name, mark in marks.items():
                agent_id = name.removeprefix(watermark(""))
                replies = await work.messages.arrivals_of(
                    tenant=tenant,
                    room_id=room_id,
                    sender_id=agent_id,
                    role=Role.ASSISTANT,
                    after=mark,
                    limit=_REPLIES_AT_ONCE,
                )
                pieces += [_Piece(tenant, room_id, agent_id, last) for last in extraction_ends(replies, self._every)]
        return pieces

    async def _read(self, piece: _Piece) -> tuple[list[StoredMessage], str]:
        """The messages, and what they say to whoever is to remember it."""
        named = {"tenant": piece.tenant, "room_id": piece.room_id}
        async with self._storage.reading() as work:
            messages = await work.messages.recent(**named, limit=self._every, before=piece.last + 1)
            replied = [message.reply_to for message in messages if message.reply_to]
            answered = await work.messages.by_id(**named, message_ids=replied)
            people = await work.rooms.participants(**named)
        quoted = {entry.message.id: entry.message for entry in answered}
        return messages, as_conversation(messages, quoted=quoted, people=people)

    async def _keep(self, piece: _Piece, messages: Sequence[StoredMessage], extracted: Extracted) -> None:
        """Keeps the memory, what made it and how far it goes, all or none; nothing where that was done before."""
        async with self._storage.writing() as work:
            if await work.evolutions.add(tenant=piece.tenant, evolution=self._record(piece, messages, extracted)):
                if extracted.statement:
                    await self._remember(work, piece, messages, extracted)
                await self._move(work, piece)

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

    async def _move(self, work: UnitOfWork, piece: _Piece) -> None:
        name = watermark(piece.agent_id)
        named = {"tenant": piece.tenant, "room_id": piece.room_id}
        mark = (await work.watermarks.find(**named, names=[name])).get(name, 0)
        if mark < piece.last:
            await work.watermarks.move(**named, name=name, arrival=piece.last, was=mark, now=self._clock.now())

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
            model=extracted.made_by,
            usage=extracted.usage,
            raw_answer=extracted.raw_answer,
            started_at=now,
            finished_at=now,
        )
