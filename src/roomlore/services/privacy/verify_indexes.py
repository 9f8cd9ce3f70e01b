"""Checking that the indexes have what SQL has."""

from dataclasses import dataclass

from roomlore.core.errors import VectorsUnavailable, describe
from roomlore.core.indexed import WORDS_MODEL
from roomlore.core.memory.models import Scope
from roomlore.core.models import Room
from roomlore.core.soundness.report import Check, Fault, Findings
from roomlore.ports.indexing import MEMORY_VECTORS, VECTORS, WORDS
from roomlore.ports.storage import Storage
from roomlore.ports.vectors import MEMORIES, MESSAGES, VectorIndex


@dataclass(slots=True)
class Holds:
    """Which vector indexes are whole, so that they can be counted; and whether the word index is."""

    memories: bool = False
    messages: bool = False
    words: bool = True


class IndexChecks:
    """Counts vectors, of indexes that are whole: one that is behind, gone or down is a note, since it catches up by
    itself. `vectors`: None where no embedder is configured."""

    def __init__(self, *, storage: Storage, vectors: VectorIndex | None) -> None:
        self._storage = storage
        self._vectors = vectors

    async def begin(self, findings: Findings) -> Holds:
        """Which indexes there are."""
        async with self._storage.reading() as work:
            words = await work.index_states.find(name=WORDS)
        whole = words is None or (words.cursor is None and words.model == WORDS_MODEL)
        if not whole:
            findings.note("word index", "It is being rebuilt.")
        if self._vectors is None:
            findings.note("vectors", "No embedder is configured: vectors were not counted.")
            return Holds(words=whole)
        memories = await self._whole(self._vectors, MEMORY_VECTORS, MEMORIES, findings)
        return Holds(memories, await self._whole(self._vectors, VECTORS, MESSAGES, findings), whole)

    async def check_memories(self, scope: Scope, holds: Holds, findings: Findings) -> None:
        """One vector for each active memory."""
        kept = await self._count(MEMORIES, scope.tenant, scope.scope, holds, findings)
        async with self._storage.reading() as work:
            now = await work.memory_log.scope(tenant=scope.tenant, scope=scope.scope)
            waiting = await work.memory_outbox.waiting()
        if kept is None or now is None or waiting or now.changes != scope.changes:
            return
        findings.add(_vector_faults("memory vectors", f"scope {scope.scope}", kept, now.active))

    async def check_room(self, room: Room, speaking: int, holds: Holds, findings: Findings) -> None:
        """One vector for each message that says something. `speaking`: how many did, when the room was as given."""
        kept = await self._count(MESSAGES, room.tenant, room.room_id, holds, findings)
        if kept is None or kept == speaking:
            return
        async with self._storage.reading() as work:
            now = await work.rooms.find(tenant=room.tenant, room_id=room.room_id)
            waiting = await work.outbox.waiting()
        if now is not None and now.revision == room.revision and not waiting:
            findings.add(_vector_faults("message vectors", f"room {room.room_id}", kept, speaking))

    async def _count(self, collection: str, tenant: str, scope: str, holds: Holds, findings: Findings) -> int | None:
        """None, and no further counting, where the store went away meanwhile."""
        assert self._vectors is not None
        try:
            kept = await self._vectors.count(collection=collection, tenant=tenant, scope=scope)
        except VectorsUnavailable as error:
            holds.memories = holds.messages = False
            findings.note("vectors", f"They could not be counted any further: {describe(error)}")
            return None
        findings.saw("vectors", kept)
        return kept

    async def _whole(self, vectors: VectorIndex, name: str, collection: str, findings: Findings) -> bool:
        """Whether the index is there and nothing waits to be put into it."""
        async with self._storage.reading() as work:
            state = await work.index_states.find(name=name)
            waiting = await (work.memory_outbox if name == MEMORY_VECTORS else work.outbox).waiting()
        try:
            generation = await vectors.generation(collection=collection)
        except VectorsUnavailable as error:
            findings.note(f"vectors of {name}", f"They could not be counted: {describe(error)}")
            return False
        if state is None or generation != state.generation:
            findings.note(f"vectors of {name}", "There is no such index now; it is made when it is next needed.")
            return False
        if state.cursor is not None or waiting:
            findings.note(f"vectors of {name}", f"{waiting} or more wait to be indexed: they were not counted.")
            return False
        return True


def _vector_faults(check: Check, where: str, kept: int, there: int) -> list[Fault]:
    if kept == there:
        return []
    return [Fault(check, where, f"The index has {kept} vectors; SQL has {there} texts to embed.")]
