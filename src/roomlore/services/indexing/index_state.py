"""The state of the indexes, what they hold, walks over all of it in pages, and dense search."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np

from roomlore.core.errors import InvalidInput, ModelUnavailable, VectorsUnavailable, describe
from roomlore.core.memory.memory import NumberedMemory
from roomlore.core.models import StoredMessage
from roomlore.core.search.hits import NEIGHBOURHOOD, Dense, EmbeddingModel, IndexState, Ints
from roomlore.core.search.query import WORDS_MODEL, passage
from roomlore.ports.coordination import INDEXING, Clock, Jobs
from roomlore.ports.language import Embedder
from roomlore.ports.shared import Backends, Service
from roomlore.ports.vectors import MEMORIES, MESSAGES, Turned, VectorIndex
from roomlore.storage import UnitOfWork
from roomlore.storage.outbox import Outbox
from roomlore.storage.values import MEMORY_VECTORS, VECTORS, WORDS

log = logging.getLogger(__name__)


Cursor = tuple[str, str, int]
START: Cursor = ("", "", 0)
_FRESH_SECONDS = 2.0
_REST_SECONDS = 5.0
LEASE_SECONDS = 60.0
"""After it others do the indexing that a killed process held: longer than a slow server takes for one batch."""
_WORDS_ALONE = "Words alone were searched."


@dataclass(frozen=True, slots=True)
class MessagesPage:
    """Messages of one room after a cursor, and the next cursor (None: no more)."""

    tenant: str
    room_id: str
    messages: tuple[StoredMessage, ...]
    cursor: Cursor | None


async def page_after(work: UnitOfWork, cursor: Cursor, *, limit: int) -> MessagesPage:
    """Return the next messages; a page without messages moves on to the next room."""
    tenant, room_id, arrival = cursor
    messages = await work.of(tenant).messages.page(room_id=room_id, after=arrival, limit=limit) if tenant else []
    if messages:
        return MessagesPage(tenant, room_id, tuple(messages), (tenant, room_id, messages[-1].arrival))
    rooms = await work.progress.rooms_after(tenant=tenant, room_id=room_id, limit=1)
    return MessagesPage(tenant, room_id, (), (rooms[0].tenant, rooms[0].room_id, 0) if rooms else None)


async def messages_in_all(work: UnitOfWork) -> int:
    """Return the number of messages in all rooms of all tenants."""
    total, place = 0, ("", "")
    while rooms := await work.progress.rooms_after(tenant=place[0], room_id=place[1], limit=1000):
        total += sum(room.messages for room in rooms)
        place = (rooms[-1].tenant, rooms[-1].room_id)
    return total


@dataclass(frozen=True, slots=True)
class Passage:
    """A text to embed, with its number in its scope and what is stored beside the vector."""

    number: int
    text: str
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class NumbersPage:
    """Numbers by tenant and scope, from one page of a walk, and the next cursor (None: no more)."""

    found: Mapping[tuple[str, str], Sequence[int]]
    cursor: Cursor | None


class IndexedMessages:
    """Messages, by arrival in their room. `name`: of their state; `collection`: of their vectors; `noun`: the content
    in words; `metric`: counts what was indexed."""

    name = VECTORS
    collection = MESSAGES
    noun = "messages"
    metric = "roomlore_messages_indexed_total"

    def outbox(self, work: UnitOfWork) -> Outbox:
        return work.progress.outbox

    async def page(self, work: UnitOfWork, cursor: Cursor, *, limit: int) -> NumbersPage:
        """Return the next part of a walk over everything."""
        page = await page_after(work, cursor, limit=limit)
        arrivals = [message.arrival for message in page.messages]
        return NumbersPage({(page.tenant, page.room_id): arrivals} if arrivals else {}, page.cursor)

    async def count(self, work: UnitOfWork) -> int:
        """Return about how many items a walk visits."""
        return await messages_in_all(work)

    async def lock(self, work: UnitOfWork, scope: str, now: datetime) -> bool:
        """Lock the room or scope and return True; return False if it does not exist, so that none is made."""
        return await work.rooms.lock_known(room_id=scope) is not None

    async def passages(self, work: UnitOfWork, scope: str, numbers: Sequence[int]) -> list[Passage]:
        """Return the texts of these numbers; deleted ones are left out."""
        messages = await work.messages.messages_by_arrival(room_id=scope, arrivals=numbers)
        return [Passage(message.arrival, passage(message), _of_message(message)) for message in messages]


class IndexedMemories:
    """The active versions of memories, by row number. A walk covers all tenants at once, by number alone."""

    name = MEMORY_VECTORS
    collection = MEMORIES
    noun = "memories"
    metric = "roomlore_memories_indexed_total"

    def outbox(self, work: UnitOfWork) -> Outbox:
        return work.progress.memory_outbox

    async def page(self, work: UnitOfWork, cursor: Cursor, *, limit: int) -> NumbersPage:
        memories = await work.memories.active_after(number=cursor[2], limit=limit)
        numbers: dict[tuple[str, str], list[int]] = {}
        for memory in memories:
            numbers.setdefault((memory.tenant, memory.memory.scope), []).append(memory.number)
        return NumbersPage(numbers, ("", "", memories[-1].number) if memories else None)

    async def count(self, work: UnitOfWork) -> int:
        return await work.memories.count_active()

    async def lock(self, work: UnitOfWork, scope: str, now: datetime) -> bool:
        there = await work.memories.scope(scope=scope) is not None
        if there:
            await work.memories.lock(scope=scope, now=now)
        return there

    async def passages(self, work: UnitOfWork, scope: str, numbers: Sequence[int]) -> list[Passage]:
        rows = await work.memories.by_number(scope=scope, numbers=numbers)
        return [Passage(numbered.number, numbered.memory.statement.strip(), _of_memory(numbered)) for numbered in rows]


Indexed = IndexedMessages | IndexedMemories
"""A kind of content with a vector index."""


def _of_message(message: StoredMessage) -> dict[str, Any]:
    return {
        "message_id": message.id,
        "arrival": message.arrival,
        "sender_id": message.sender_id,
        "role": message.role.value,
        "sent_at": message.at.isoformat(),
    }


def _of_memory(numbered: NumberedMemory) -> dict[str, Any]:
    memory = numbered.memory
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


@dataclass(frozen=True, slots=True)
class SearchState:
    """The state that a search sees. `generation`: of the vectors that may be searched, None if none may. `problem`: why
    the answer is incomplete, or None."""

    generation: str | None
    problem: str | None


class IndexStateReader(Service):
    """Read the state of a vector index, and of the word index together with that of messages, at most every two
    seconds."""

    def __init__(self, backends: Backends, *, model: EmbeddingModel | None, indexed: Indexed | None = None) -> None:
        super().__init__(backends)
        self._model = model
        self._indexed = indexed or IndexedMessages()
        self._known: SearchState | None = None
        self._read_at = 0.0

    async def now(self) -> SearchState:
        if self._known is None or self._clock.monotonic() - self._read_at > _FRESH_SECONDS:
            self._read_at = self._clock.monotonic()
            self._known = await self._read()
        return self._known

    def forget(self) -> None:
        """Read the state again the next time: a search failed although the state allowed it."""
        self._known = None

    async def _read(self) -> SearchState:
        async with self._storage.reading() as work:
            words = await work.progress.index_state(name=WORDS) if self._indexed.name == VECTORS else None
            vectors = await work.progress.index_state(name=self._indexed.name) if self._model else None
        if self._model is None:
            return SearchState(None, words_problem(words))
        generation, problem = _vectors(vectors, self._model, self._indexed.noun)
        return SearchState(generation, problem or words_problem(words))


def words_problem(state: IndexState | None) -> str | None:
    if state is not None and (state.cursor or state.model != WORDS_MODEL):
        return "The word index is being rebuilt; some messages may be missing."
    return None


def model_problem(state: IndexState, model: EmbeddingModel) -> str | None:
    """Return why these vectors cannot be compared with those of the model, or None."""
    if state.model == model:
        return None
    return (
        f"The vector index was made with {state.model.name} ({state.model.dimensions} dimensions), but {model.name} "
        f"({model.dimensions}) is configured: run `roomlore reindex`, or configure the earlier model again."
    )


def _vectors(state: IndexState | None, model: EmbeddingModel, noun: str) -> tuple[str | None, str | None]:
    if state is None:
        return None, "The vector index is not made yet; words alone were searched."
    if problem := model_problem(state, model):
        return None, problem
    if state.cursor is not None:
        return state.generation, f"The vector index is being rebuilt; {noun} not in it yet were found by words alone."
    return state.generation, None


class DenseSearch:
    """Search by meaning, shared by all tenants of a process. After a failure it pauses, so that a server that is down
    slows one search and not every one."""

    def __init__(
        self,
        *,
        collection: str,
        embedder: Embedder | None,
        vectors: VectorIndex | None,
        states: IndexStateReader,
        clock: Clock,
        jobs: Jobs,
    ) -> None:
        self._collection = collection
        self._embedder = embedder
        self._vectors = vectors
        self._states = states
        self._clock = clock
        self._jobs = jobs
        self._resting_until = 0.0
        self._last_failure: str | None = None

    async def near(
        self, tenant: str, scope: str, texts: Sequence[str], only: Ints | None, turned: Turned | None = None
    ) -> Dense:
        """Return the nearest neighbours of each text, or the problem if they are not available. `turned`: makes more
        vectors of those of the texts; the neighbours of these follow."""
        return (await self.near_each(tenant, {scope: only}, texts, turned))[scope]

    async def near_each(
        self,
        tenant: str,
        scopes: Mapping[str, Ints | None],
        texts: Sequence[str],
        turned: Turned | None = None,
    ) -> dict[str, Dense]:
        """Return the nearest neighbours in each of these scopes, which come with the numbers to search, None for all;
        or the problem for each."""
        standing = await self._states.now()
        if self._embedder is None or self._vectors is None or standing.generation is None:
            return dict.fromkeys(scopes, Dense(problem=standing.problem))
        if self._clock.monotonic() < self._resting_until:
            return dict.fromkeys(scopes, Dense(problem=self._last_failure))
        try:
            vectors = await self._embedder.embed(texts, kind="query")
            nearest = partial(
                self._vectors.nearest,
                collection=self._collection,
                generation=standing.generation,
                tenant=tenant,
                vectors=vectors if turned is None else np.concatenate([vectors, turned(vectors)]),
                limit=NEIGHBOURHOOD,
            )
            by_scope = {scope: await nearest(scope=scope, only=only) for scope, only in scopes.items()}
        except InvalidInput as error:
            return dict.fromkeys(scopes, Dense(problem=f"{_WORDS_ALONE} {error}"))
        except (ModelUnavailable, VectorsUnavailable) as error:
            return dict.fromkeys(scopes, self._rest(error))
        return {scope: Dense(near, vectors, used=True, problem=standing.problem) for scope, near in by_scope.items()}

    async def problem(self) -> str | None:
        """Return the problem of the indexes, for a search by words alone."""
        return (await self._states.now()).problem

    def _rest(self, error: Exception) -> Dense:
        self._resting_until = self._clock.monotonic() + _REST_SECONDS
        self._last_failure = f"{_WORDS_ALONE} {error}"
        self._states.forget()
        self._jobs.ask(INDEXING)
        log.warning("search goes on without vectors", extra={"why": describe(error)})
        return Dense(problem=self._last_failure)
