"""What has vectors: messages, and memories."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from roomlore.core.indexed import passage
from roomlore.core.memory.found import NumberedMemory
from roomlore.core.models import StoredMessage
from roomlore.ports.indexing import MEMORY_VECTORS, VECTORS, Outbox
from roomlore.ports.storage import UnitOfWork
from roomlore.ports.vectors import MEMORIES, MESSAGES
from roomlore.services.indexing.walk import Cursor, messages_in_all, page_after


@dataclass(frozen=True, slots=True)
class Passage:
    """A text whose vector is to be kept, with its number in its scope and what is kept beside the vector."""

    number: int
    text: str
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Found:
    """Numbers by tenant and scope, from one page of a walk, and the cursor after them (None: that was all)."""

    found: Mapping[tuple[str, str], Sequence[int]]
    cursor: Cursor | None


class Indexed(Protocol):
    """What a vector index is made of. `name`: of its state; `collection`: where its vectors lie; `noun`: what it holds,
    in words; `metric`: counts what was indexed."""

    @property
    def name(self) -> str: ...
    @property
    def collection(self) -> str: ...
    @property
    def noun(self) -> str: ...
    @property
    def metric(self) -> str: ...

    def outbox(self, work: UnitOfWork) -> Outbox: ...

    async def page(self, work: UnitOfWork, cursor: Cursor, *, limit: int) -> Found:
        """The next part of a walk over all of it."""

    async def count(self, work: UnitOfWork) -> int:
        """How much a walk meets, about."""

    async def lock(self, work: UnitOfWork, tenant: str, scope: str, now: datetime) -> None: ...

    async def passages(self, work: UnitOfWork, tenant: str, scope: str, numbers: Sequence[int]) -> list[Passage]:
        """The texts of these numbers; those that are gone are left out."""


class IndexedMessages:
    """Messages, by arrival in their room."""

    name = VECTORS
    collection = MESSAGES
    noun = "messages"
    metric = "roomlore_messages_indexed_total"

    def outbox(self, work: UnitOfWork) -> Outbox:
        return work.outbox

    async def page(self, work: UnitOfWork, cursor: Cursor, *, limit: int) -> Found:
        page = await page_after(work, cursor, limit=limit)
        arrivals = [message.arrival for message in page.messages]
        return Found({(page.tenant, page.room_id): arrivals} if arrivals else {}, page.cursor)

    async def count(self, work: UnitOfWork) -> int:
        return await messages_in_all(work)

    async def lock(self, work: UnitOfWork, tenant: str, scope: str, now: datetime) -> None:
        await work.rooms.lock(tenant=tenant, room_id=scope, now=now)

    async def passages(self, work: UnitOfWork, tenant: str, scope: str, numbers: Sequence[int]) -> list[Passage]:
        found = await work.messages.plain(tenant=tenant, room_id=scope, arrivals=numbers)
        return [Passage(message.arrival, passage(message), _of_message(message)) for message in found]


class IndexedMemories:
    """The active versions of memories, by row number. A walk goes over all tenants at once, by number alone."""

    name = MEMORY_VECTORS
    collection = MEMORIES
    noun = "memories"
    metric = "roomlore_memories_indexed_total"

    def outbox(self, work: UnitOfWork) -> Outbox:
        return work.memory_outbox

    async def page(self, work: UnitOfWork, cursor: Cursor, *, limit: int) -> Found:
        memories = await work.indexed_memories.after(number=cursor[2], limit=limit)
        found: dict[tuple[str, str], list[int]] = {}
        for one in memories:
            found.setdefault((one.tenant, one.memory.scope), []).append(one.number)
        return Found(found, ("", "", memories[-1].number) if memories else None)

    async def count(self, work: UnitOfWork) -> int:
        return await work.indexed_memories.count()

    async def lock(self, work: UnitOfWork, tenant: str, scope: str, now: datetime) -> None:
        await work.memory_log.lock(tenant=tenant, scope=scope, now=now)

    async def passages(self, work: UnitOfWork, tenant: str, scope: str, numbers: Sequence[int]) -> list[Passage]:
        found = await work.indexed_memories.by_number(tenant=tenant, scope=scope, numbers=numbers)
        return [Passage(one.number, one.memory.statement.strip(), _of_memory(one)) for one in found]


def _of_message(message: StoredMessage) -> dict[str, Any]:
    return {
        "message_id": message.id,
        "arrival": message.arrival,
        "sender_id": message.sender_id,
        "role": message.role.value,
        "sent_at": message.at.isoformat(),
    }


def _of_memory(one: NumberedMemory) -> dict[str, Any]:
    memory = one.memory
    return {
        "memory_id": memory.memory_id,
        "lineage_id": memory.lineage_id,
        "kind": memory.kind.value,
        "statement": memory.statement,
        "version": memory.version,
        "created_at": memory.created_at.isoformat(),
        "updated_at": memory.updated_at.isoformat(),
        "parent_id": memory.parent_id,
        "change_summary": memory.change_summary,
        "status": memory.status.value,
        "tags": list(memory.tags),
        "strength": memory.strength,
    }
