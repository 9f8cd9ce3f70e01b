"""Bringing the vectors of messages in step with SQL: what waits in the outbox, and rebuilds.

A rebuild only walks the rooms and puts every message into the outbox, so there is one way in which a vector comes to
be: claim, read, embed, put, finish. Whatever breaks off in between is found again, and done again does no harm.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from roomlore.core.errors import InvalidInput, VectorsUnavailable
from roomlore.core.indexed import passage
from roomlore.core.models import StoredMessage
from roomlore.core.search import IndexState, IndexTask, VectorPoint
from roomlore.ports.coordination import Clock, Ids, Telemetry
from roomlore.ports.indexing import VECTORS
from roomlore.ports.language import Embedder
from roomlore.ports.storage import Storage, UnitOfWork
from roomlore.ports.vectors import MESSAGES, VectorIndex
from roomlore.services.indexing.standing import model_problem
from roomlore.services.indexing.walk import START, page_after

_BATCH = 128
_PAGE = 500
_ENOUGH_WAITING = 2_000
_PROBE = "roomlore"
_REFUSALS = 20
"""So many texts refused in a row are no fault of the texts."""
_TIME_TO_PREPARE = timedelta(seconds=30)

log = logging.getLogger(__name__)

_Group = tuple[str, str]


class VectorIndexing:
    """The vectors of the messages of all rooms of all tenants."""

    def __init__(
        self,
        *,
        storage: Storage,
        vectors: VectorIndex,
        embedder: Embedder,
        clock: Clock,
        ids: Ids,
        telemetry: Telemetry,
        lease_seconds: float,
    ) -> None:
        self._storage = storage
        self._vectors = vectors
        self._embedder = embedder
        self._clock = clock
        self._ids = ids
        self._telemetry = telemetry
        self._lease = timedelta(seconds=lease_seconds)
        self._batch = _BATCH
        self._refusals = 0
        self._began: str | None = None
        self._said: str | None = None

    async def begin(self) -> IndexState:
        """Starts a rebuild for the configured model from the first message, in the place of what is there."""
        async with self._storage.reading() as work:
            stored = await work.index_states.find(name=VECTORS)
        return await self._begin(stored)

    async def ready(self) -> IndexState | None:
        """How the index stands, made anew first where it was never made or was lost.

        None where it holds another model's vectors: that is for a person to decide. Raises `VectorsUnavailable`.
        """
        async with self._storage.reading() as work:
            stored = await work.index_states.find(name=VECTORS)
        if stored is None:
            return await self._begin(None)
        if problem := model_problem(stored, self._embedder.model):
            self._say_once(problem)
            return None
        if not await self.holds(stored.generation):
            return await self._restore(stored)
        return stored

    async def holds(self, generation: str) -> bool:
        """Whether the index is there and of this generation. Raises `VectorsUnavailable`."""
        return await self._vectors.generation(collection=MESSAGES) == generation

    async def step(self, generation: str) -> int:
        """One batch of work; how many messages it indexed. -1 where nothing is left to do or another rebuild began."""
        async with self._storage.reading() as work:
            state = await work.index_states.find(name=VECTORS)
        if state is None or state.generation != generation:
            return -1
        queued = state.cursor is not None and await self._queue_next_page(state)
        tasks = await self._claim()
        if tasks:
            return await self._attempt(tasks, generation)
        return 0 if queued else -1

    async def _restore(self, stored: IndexState) -> IndexState:
        """Where SQL and the index are apart. A rebuild that got no further than its beginning is begun again by whoever
        began it; that of another process is left to it for a moment."""
        if stored.cursor == START and stored.generation == self._began:
            await self._vectors.prepare(collection=MESSAGES, model=stored.model, generation=stored.generation)
            return stored
        if stored.cursor == START and self._clock.now() - stored.updated_at < _TIME_TO_PREPARE:
            raise VectorsUnavailable("Another process makes the vector index anew just now.")
        log.warning("the vector index was lost and is being rebuilt")
        return await self._begin(stored)

    def _say_once(self, problem: str) -> None:
        if problem != self._said:
            log.warning(problem)
        self._said = problem

    async def _begin(self, stored: IndexState | None) -> IndexState:
        """The model has to answer before anything is given up. Then SQL first: where this is cut off before the index
        is made, the next look finds the two apart."""
        await self._embedder.embed([_PROBE], kind="passage")
        state = IndexState(
            name=VECTORS,
            model=self._embedder.model,
            generation=self._ids.new(),
            cursor=START,
            updated_at=self._clock.now(),
        )
        async with self._storage.writing() as work:
            kept = await work.index_states.save(state=state, expected=stored.generation if stored else None)
            if kept:
                await work.outbox.clear()
        if not kept:
            raise VectorsUnavailable("Another process began to rebuild the vector index just now; its work goes on.")
        self._began = state.generation
        await self._vectors.prepare(collection=MESSAGES, model=state.model, generation=state.generation)
        return state

    async def _queue_next_page(self, state: IndexState) -> bool:
        """Puts the next page of a rebuild into the outbox; False where that has to wait for what is in it. The rebuild
        ends when hardly anything waits, not when the last page is queued: until then searches are told."""
        assert state.cursor is not None
        async with self._storage.reading() as work:
            waiting = await work.outbox.waiting()
            page = await page_after(work, state.cursor, limit=_PAGE)
        if waiting >= (_ENOUGH_WAITING if page.cursor else _BATCH):
            return False
        async with self._storage.writing() as work:
            current = await work.index_states.find(name=VECTORS)
            if current is None or current.cursor != state.cursor:
                return True
            moved = replace(state, cursor=page.cursor, updated_at=self._clock.now())
            if await work.index_states.save(state=moved, expected=state.generation):
                await self._add(work, page.tenant, page.room_id, [message.arrival for message in page.messages])
        return True

    async def _add(self, work: UnitOfWork, tenant: str, room_id: str, arrivals: Sequence[int]) -> None:
        if arrivals:
            await work.rooms.lock(tenant=tenant, room_id=room_id, now=self._clock.now())
            await work.outbox.add(tenant=tenant, room_id=room_id, arrivals=arrivals)

    async def _claim(self) -> list[IndexTask]:
        async with self._storage.writing() as work:
            return await work.outbox.claim(limit=self._batch, now=self._clock.now(), lease=self._lease)

    async def _attempt(self, tasks: Sequence[IndexTask], generation: str) -> int:
        """How many of the tasks were done. After a text was refused tasks go singly, and one refused alone waits until
        its lease is over, so that it holds up no other; a model that refuses text after text is another matter."""
        try:
            await self._index(tasks, generation)
        except InvalidInput as error:
            await self._refused(tasks, error)
            return 0
        except BaseException:
            await asyncio.shield(self._give_back(tasks))
            raise
        self._batch, self._refusals = min(_BATCH, self._batch * 2), 0
        await self._finish(tasks)
        self._telemetry.count("roomlore_messages_indexed_total", len(tasks))
        return len(tasks)

    async def _refused(self, tasks: Sequence[IndexTask], error: InvalidInput) -> None:
        self._batch = 1
        if len(tasks) > 1:
            await self._give_back(tasks)
            return
        self._refusals += 1
        log.warning("a message has no vector: the model refuses its text", extra={"arrival": tasks[0].arrival})
        if self._refusals >= _REFUSALS:
            raise error

    async def _finish(self, tasks: Sequence[IndexTask]) -> None:
        """What somebody else had in hand by then was perhaps done by him before our vectors came, of an older text:
        so once more."""
        async with self._storage.writing() as work:
            lost = await work.outbox.finish(tasks=tasks)
        for (tenant, room_id), arrivals in _by_room(lost).items():
            async with self._storage.writing() as work:
                await self._add(work, tenant, room_id, arrivals)

    async def _give_back(self, tasks: Sequence[IndexTask]) -> None:
        async with self._storage.writing() as work:
            await work.outbox.release(tasks=tasks)

    async def _index(self, tasks: Sequence[IndexTask], generation: str) -> None:
        found = await self._read(tasks)
        texts = [(group, message, passage(message)) for group, messages in found.items() for message in messages]
        texts = [said for said in texts if said[2]]
        vectors = await self._embedder.embed([text for *_, text in texts], kind="passage") if texts else ()
        points = [_point(group, message, vector) for (group, message, _), vector in zip(texts, vectors, strict=True)]
        if points:
            await self._vectors.put(collection=MESSAGES, generation=generation, points=points)
        for (tenant, room_id), gone in _without_vector(tasks, points).items():
            await self._vectors.remove(collection=MESSAGES, tenant=tenant, scope=room_id, numbers=gone)

    async def _read(self, tasks: Sequence[IndexTask]) -> dict[_Group, list[StoredMessage]]:
        async with self._storage.reading() as work:
            return {
                (tenant, room_id): await work.messages.plain(tenant=tenant, room_id=room_id, arrivals=arrivals)
                for (tenant, room_id), arrivals in _by_room(tasks).items()
            }


def _by_room(tasks: Sequence[IndexTask]) -> dict[_Group, list[int]]:
    rooms: dict[_Group, list[int]] = {}
    for task in tasks:
        rooms.setdefault((task.tenant, task.room_id), []).append(task.arrival)
    return rooms


def _without_vector(tasks: Sequence[IndexTask], points: Sequence[VectorPoint]) -> dict[_Group, list[int]]:
    """Arrivals by room whose message was deleted or has nothing to embed."""
    kept = {(point.tenant, point.scope, point.number) for point in points}
    return _by_room([task for task in tasks if (task.tenant, task.room_id, task.arrival) not in kept])


def _point(group: _Group, message: StoredMessage, vector: object) -> VectorPoint:
    tenant, room_id = group
    payload = {
        "message_id": message.id,
        "arrival": message.arrival,
        "sender_id": message.sender_id,
        "role": message.role.value,
        "sent_at": message.at.isoformat(),
    }
    return VectorPoint(tenant=tenant, scope=room_id, number=message.arrival, vector=vector, payload=payload)  # type: ignore[arg-type]
