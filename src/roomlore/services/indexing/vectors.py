"""Bringing vectors in step with SQL: the tasks of the outbox, and rebuilds.

A rebuild only walks the content and puts all of it into the outbox, so there is one way to make a vector: claim, read,
embed, put, finish. A task that breaks off in between is found again, and repeating it does no harm.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from datetime import timedelta

from roomlore.core.errors import InvalidInput, VectorsUnavailable
from roomlore.core.search.hits import IndexState, IndexTask, VectorPoint, Vectors
from roomlore.ports.language import Embedder
from roomlore.ports.shared import Backends, Service
from roomlore.ports.vectors import VectorIndex
from roomlore.services.indexing import index_state
from roomlore.services.indexing.index_state import START, Indexed, Passage, model_problem
from roomlore.storage import UnitOfWork

_BATCH = 128
_PAGE = 500
_ENOUGH_WAITING = 2_000
_PROBE = "roomlore"
_REFUSALS = 20
"""After so many refused texts in a row the texts are not the cause."""
_TIME_TO_PREPARE = timedelta(seconds=30)

log = logging.getLogger(__name__)

_Group = tuple[str, str]


class VectorIndexing(Service):
    """The vectors of one kind of content, of all tenants."""

    def __init__(
        self,
        backends: Backends,
        *,
        indexed: Indexed,
        vectors: VectorIndex,
        embedder: Embedder,
    ) -> None:
        super().__init__(backends)
        self.indexed = indexed
        self._vectors = vectors
        self._embedder = embedder
        self._lease = timedelta(seconds=index_state.LEASE_SECONDS)
        self._batch = _BATCH
        self._refusals = 0
        self._began: str | None = None
        self._said: str | None = None
        self._making = asyncio.Lock()

    async def begin(self) -> IndexState:
        """Start a rebuild for the configured model from the beginning, replacing the existing index."""
        async with self._making:
            async with self._storage.reading() as work:
                stored = await self._state(work)
            return await self._begin(stored)

    async def ready(self) -> IndexState | None:
        """Return the state of the index; rebuild it first if it was never built or was lost.

        Return None if it holds another model's vectors: a person decides that. Of several calls in this process the
        first one builds it, and the others wait for it. Raise `VectorsUnavailable`.
        """
        async with self._making:
            return await self._ready()

    async def _ready(self) -> IndexState | None:
        async with self._storage.reading() as work:
            stored = await self._state(work)
        if stored is None:
            return await self._begin(None)
        if problem := model_problem(stored, self._embedder.model):
            self._warn_once(problem)
            return None
        if not await self.holds(stored.generation):
            return await self._restore(stored)
        return stored

    async def holds(self, generation: str) -> bool:
        """Return True if the index exists and is of this generation. Raise `VectorsUnavailable`."""
        return await self._vectors.generation(collection=self.indexed.collection) == generation

    async def step(self, generation: str) -> int:
        """Run one batch of work; return how much it indexed. Return -1 if nothing is left to do or another rebuild
        began."""
        async with self._storage.reading() as work:
            state = await self._state(work)
        if state is None or state.generation != generation:
            return -1
        queued = state.cursor is not None and await self._queue_next_page(state)
        tasks = await self._claim()
        if tasks:
            return await self._attempt(tasks, generation)
        return 0 if queued else -1

    async def _restore(self, stored: IndexState) -> IndexState:
        """Repair an index that differs from SQL. A process continues a rebuild of its own that got no further than its
        beginning; for one of another process it raises `VectorsUnavailable` for a moment."""
        if stored.cursor == START and stored.generation == self._began:
            await self._prepare(stored)
            return stored
        if stored.cursor == START and self._clock.now() - stored.updated_at < _TIME_TO_PREPARE:
            raise VectorsUnavailable("vector_index_being_made")
        log.warning("the vector index was lost and is being rebuilt", extra={"index": self.indexed.name})
        return await self._begin(stored)

    async def _state(self, work: UnitOfWork) -> IndexState | None:
        return await work.progress.index_state(name=self.indexed.name)

    async def _prepare(self, state: IndexState) -> None:
        collection = self.indexed.collection
        await self._vectors.prepare(collection=collection, model=state.model, generation=state.generation)

    def _warn_once(self, problem: str) -> None:
        if problem != self._said:
            log.warning(problem)
        self._said = problem

    async def _begin(self, stored: IndexState | None) -> IndexState:
        """Begin a new index. The model must answer before the old one is dropped. Then SQL is written first: if this
        breaks off before the index exists, the next check finds that the two differ."""
        await self._embedder.embed([_PROBE], kind="passage")
        state = IndexState(
            name=self.indexed.name,
            model=self._embedder.model,
            generation=self._ids.new(),
            cursor=START,
            updated_at=self._clock.now(),
        )
        async with self._storage.writing() as work:
            kept = await work.progress.save_index_state(state=state, expected=stored.generation if stored else None)
            if kept:
                await self.indexed.outbox(work).clear()
        if not kept:
            raise VectorsUnavailable("vector_index_rebuilding")
        self._began = state.generation
        await self._prepare(state)
        return state

    async def _queue_next_page(self, state: IndexState) -> bool:
        """Put the next page of a rebuild into the outbox; False if the outbox must shrink first. The rebuild ends when
        hardly anything waits, not when the last page is queued: until then searches report it."""
        assert state.cursor is not None
        async with self._storage.reading() as work:
            waiting = await self.indexed.outbox(work).waiting()
            page = await self.indexed.page(work, state.cursor, limit=_PAGE)
        if waiting >= (_ENOUGH_WAITING if page.cursor else _BATCH):
            return False
        async with self._storage.writing() as work:
            current = await self._state(work)
            if current is None or current.cursor != state.cursor:
                return True
            moved = replace(state, cursor=page.cursor, updated_at=self._clock.now())
            if await work.progress.save_index_state(state=moved, expected=state.generation):
                for group, numbers in sorted(page.found.items()):
                    await self._add(work, group, numbers)
        return True

    async def _add(self, work: UnitOfWork, group: _Group, numbers: Sequence[int]) -> None:
        tenant, scope = group
        own = work.of(tenant)
        if await self.indexed.lock(own, scope, self._clock.now()):
            await self.indexed.outbox(own).add(scope=scope, numbers=numbers)

    async def _claim(self) -> list[IndexTask]:
        async with self._storage.writing() as work:
            outbox = self.indexed.outbox(work)
            return await outbox.claim(limit=self._batch, now=self._clock.now(), lease=self._lease)

    async def _attempt(self, tasks: Sequence[IndexTask], generation: str) -> int:
        """Return how many of the tasks were done. After a refused text tasks run one by one, and a text refused alone
        waits until its lease ends, so that it delays no other. A model that refuses one text after another is another
        matter."""
        try:
            await self._index(tasks, generation)
        except InvalidInput as error:
            await self._refused(tasks, error)
            return 0
        except BaseException:
            await asyncio.shield(self._release(tasks))
            raise
        self._batch, self._refusals = min(_BATCH, self._batch * 2), 0
        await self._finish(tasks)
        self._telemetry.count(self.indexed.metric, len(tasks))
        return len(tasks)

    async def _refused(self, tasks: Sequence[IndexTask], error: InvalidInput) -> None:
        self._batch = 1
        if len(tasks) > 1:
            await self._release(tasks)
            return
        self._refusals += 1
        details = {"index": self.indexed.name, "number": tasks[0].number}
        log.warning("a text has no vector: the model refuses it", extra=details)
        if self._refusals >= _REFUSALS:
            raise error

    async def _finish(self, tasks: Sequence[IndexTask]) -> None:
        """Queue these tasks again if another worker held them: it may have stored an older text's vector before
        ours. The vectors of rows that are gone are removed here, since nothing else would remove them."""
        async with self._storage.writing() as work:
            lost = await self.indexed.outbox(work).finish(tasks=tasks)
        for group, numbers in _by_group(lost).items():
            async with self._storage.writing() as work:
                await self._add(work, group, numbers)
        there = {(*group, stored.number) for group, passages in (await self._read(lost)).items() for stored in passages}
        await self._remove(_without(lost, there))

    async def _release(self, tasks: Sequence[IndexTask]) -> None:
        async with self._storage.writing() as work:
            await self.indexed.outbox(work).release(tasks=tasks)

    async def _index(self, tasks: Sequence[IndexTask], generation: str) -> None:
        by_group = await self._read(tasks)
        texts = [(group, passage) for group, passages in by_group.items() for passage in passages if passage.text]
        vectors = await self._embedder.embed([passage_.text for _, passage_ in texts], kind="passage") if texts else ()
        points = [_point(group, passage_, vector) for (group, passage_), vector in zip(texts, vectors, strict=True)]
        collection = self.indexed.collection
        if points:
            await self._vectors.put(collection=collection, generation=generation, points=points)
        await self._remove(_without(tasks, {(point.tenant, point.scope, point.number) for point in points}))

    async def _remove(self, groups: Mapping[_Group, Sequence[int]]) -> None:
        for (tenant, scope), gone in groups.items():
            await self._vectors.remove(collection=self.indexed.collection, tenant=tenant, scope=scope, numbers=gone)

    async def _read(self, tasks: Sequence[IndexTask]) -> dict[_Group, list[Passage]]:
        async with self._storage.reading() as work:
            return {
                (tenant, scope): await self.indexed.passages(work.of(tenant), scope, numbers)
                for (tenant, scope), numbers in _by_group(tasks).items()
            }


def _by_group(tasks: Sequence[IndexTask]) -> dict[_Group, list[int]]:
    groups: dict[_Group, list[int]] = {}
    for task in tasks:
        groups.setdefault((task.tenant, task.scope), []).append(task.number)
    return groups


def _without(tasks: Sequence[IndexTask], kept: Set[tuple[str, str, int]]) -> dict[_Group, list[int]]:
    """Return the numbers, by group, of the tasks whose tenant, scope and number are not among these."""
    return _by_group([task for task in tasks if (task.tenant, task.scope, task.number) not in kept])


def _point(group: _Group, passage_: Passage, vector: Vectors) -> VectorPoint:
    tenant, scope = group
    return VectorPoint(tenant=tenant, scope=scope, number=passage_.number, vector=vector, payload=passage_.payload)
