"""Facts prepared for recall, cached until their scopes change, and their vectors."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from roomlore.core.audience import EvidenceTable, View, Viewer, unreplaced
from roomlore.core.errors import InvalidInput, ModelUnavailable, describe
from roomlore.core.memory.memory import Memory, MemoryKind, MemoryStatus, next_end
from roomlore.core.recall.ranking import FactSet
from roomlore.core.recall.words import Topic
from roomlore.core.search.hits import Floats, Vectors
from roomlore.core.visibility import told
from roomlore.ports.audience import KnownWindows, Sight
from roomlore.ports.coordination import Clock
from roomlore.ports.language import Embedder, TokenCounter
from roomlore.ports.storage import Storage, UnitOfWork

MAX_FACTS = 20_000
_ALL = 2**31 - 1
"""A viewer's limit counts what the viewer may see, so all is read."""
_INLINE = 20_000
"""Characters of facts that are prepared on the event loop; more use another thread."""
_HELD = 3 * MAX_FACTS
_ENTRY = 20
"""The cost of a scope without a fact, in facts."""


_Stamp = tuple[tuple[datetime, int] | None, ...]
"""The creation time of the scope, and the number of its changes: a forgotten scope may be created again."""
_KEPT = 20_000
_AT_ONCE = 64
"""Facts embedded within one call; the next calls continue."""


@dataclass(slots=True)
class CachedFacts:
    """A cached set of facts. `stamp`: the state of each scope when the facts were read. `vectors`: of the facts, once
    made. `size`: its cost in the cache. `ended`: facts that hold no more are among them; `until`: when the next of them
    ends, if they are not. For a viewer, `sight`: what it may see, `every`: all facts of the scopes,
    `evidence`: theirs, and `seen`: those that the viewer might see then."""

    sight: Sight | None = None
    ended: bool = False
    until: datetime | None = None
    stamp: _Stamp = ()
    facts: FactSet | None = None
    every: Sequence[Memory] = ()
    evidence: EvidenceTable | None = None
    seen: NDArray[np.bool_] | None = None
    vectors: Vectors | None = None
    size: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def put(self, stamp: _Stamp, facts: FactSet) -> FactSet:
        self.stamp, self.facts, self.vectors = stamp, facts, None
        return facts


class RecallCache:
    """A cache of the facts of the scopes requested last, of all tenants; of a set of scopes the 20,000 that changed
    last."""

    def __init__(self, *, storage: Storage, tokens: TokenCounter, clock: Clock, held: int = _HELD) -> None:
        self._storage = storage
        self._count = tokens.count
        self._clock = clock
        self._most = held
        self._held = 0
        self._windows = KnownWindows()
        self._cached: OrderedDict[tuple[object, ...], CachedFacts] = OrderedDict()

    async def find(
        self,
        tenant: str,
        scopes: Sequence[str],
        kinds: Sequence[MemoryKind],
        viewer: Viewer | None = None,
        ended: bool = False,
    ) -> tuple[CachedFacts, FactSet]:
        """Return the current facts that the viewer may see, None for all. `ended`: those that hold no more, too. Raise
        `StorageUnavailable`."""
        key = (tenant, tuple(scopes), tuple(kinds), viewer, ended)
        cached = self._cached.setdefault(
            key, CachedFacts(Sight(tenant, viewer, self._windows) if viewer else None, ended)
        )
        self._cached.move_to_end(key)
        async with cached.lock:
            facts = await self._current(cached, tenant, scopes, kinds)
        if self._cached.get(key) is cached:
            self._weigh(cached, _ENTRY * len(scopes) + len(facts) + len(cached.every))
        return cached, facts

    async def _current(
        self,
        cached: CachedFacts,
        tenant: str,
        scopes: Sequence[str],
        kinds: Sequence[MemoryKind],
    ) -> FactSet:
        async with self._storage.reading() as work:
            stamp, now = await _stamp(work, tenant, scopes), self._clock.now()
            ended = cached.until is not None and cached.until <= now
            same = cached.facts is not None and cached.stamp == stamp and not ended
            of_scopes = partial(
                work.memories.page, tenant=tenant, scopes=scopes, kinds=kinds, status=MemoryStatus.ACTIVE
            )
            if cached.sight is None:
                memories = [] if same else await of_scopes(limit=MAX_FACTS, held_at=None if cached.ended else now)
            else:
                if not same or cached.evidence is None:
                    cached.every = await of_scopes(limit=_ALL)
                    cached.evidence = EvidenceTable(cached.every)
                seen = await cached.sight.of(work, cached.evidence, now)
                same = same and seen is cached.seen
                cached.seen = seen
                held_at = None if cached.ended else now
                memories = [] if same else _seen(cached.every, seen, cached.sight.view, held_at)
        if same and cached.facts is not None:
            return cached.facts
        known, cached.facts = cached.facts, None
        cached.until = None if cached.ended else next_end(memories, now)

        def ready() -> FactSet:
            return FactSet(memories, count=self._count, labelled=len(scopes) > 1, known=known)

        if sum(len(memory.statement) for memory in memories) <= _INLINE:
            return cached.put(stamp, ready())
        return await asyncio.shield(_made(cached, stamp, ready))

    def _weigh(self, cached: CachedFacts, size: int) -> None:
        """Drop the sets requested longest ago to make room; the last one stays."""
        self._held += size - cached.size
        cached.size = size
        while self._held > self._most and len(self._cached) > 1:
            _, dropped = self._cached.popitem(last=False)
            self._held -= dropped.size


def _seen(every: Sequence[Memory], seen: NDArray[np.bool_], view: View, held_at: datetime | None) -> list[Memory]:
    """Return as many of the facts that a viewer may see as one that sees all would get, the last changed first. What
    has ended replaces what it replaced all the same."""
    some = [every[place] for place in np.flatnonzero(seen).tolist()]
    memories, _ = unreplaced(some)
    held = [one for one in memories if held_at is None or one.holds(held_at)]
    ids = {one.memory_id for one in some}
    return [told(memory, view, ids) for memory in held[:MAX_FACTS]]


async def _stamp(work: UnitOfWork, tenant: str, scopes: Sequence[str]) -> _Stamp:
    """Read the stamp before the facts: a change in between is read again next time."""
    found = [await work.memories.scope(tenant=tenant, scope=scope) for scope in scopes]
    return tuple((scope.created_at, scope.changes) if scope else None for scope in found)


async def _made(cached: CachedFacts, stamp: _Stamp, ready: Callable[[], FactSet]) -> FactSet:
    """Prepare the facts in another thread, to the end even if the caller is cancelled: the next caller finds the
    result."""
    return cached.put(stamp, await asyncio.to_thread(ready))


class NoVectors(Exception):
    """Raised if vectors are not available now; the text says why."""


class FactVectors:
    """At most 20,000 vectors, shared by all tenants. `timeout_seconds`: how long one call waits for the embedder."""

    def __init__(
        self, embedder: Embedder | None, *, timeout_seconds: float, kept: int = _KEPT, at_once: int = _AT_ONCE
    ) -> None:
        self._embedder = embedder
        self._timeout_seconds = timeout_seconds
        self._most = kept
        self._at_once = at_once
        self._kept: OrderedDict[bytes, Vectors] = OrderedDict()
        self._under_way: dict[bytes, asyncio.Task[None]] = {}

    async def cosines(
        self, topic: Topic, facts: FactSet, cached: CachedFacts, *, most_seconds: float | None = None
    ) -> Floats:
        """Return the cosine of each fact with the conversation; newer messages count more. `most_seconds`: a shorter
        limit for this call. Raise `NoVectors`."""
        wait = self._timeout_seconds if most_seconds is None else min(most_seconds, self._timeout_seconds)
        if self._embedder is None:
            raise NoVectors("no embedder is configured: set `embeddings`, or pass one to roomlore.open")
        try:
            async with asyncio.timeout(wait):
                vectors = await self._vectors(self._embedder, facts, cached)
                asked = await self._embedder.embed([part.text for part in topic.parts], kind="query")
        except TimeoutError as error:
            raise NoVectors(f"the embedder took longer than {wait:g} s") from error
        except (ModelUnavailable, InvalidInput) as error:
            raise NoVectors(describe(error)) from error
        weights = np.array([part.weight for part in topic.parts])
        direction = (weights @ asked / weights.sum()).astype(np.float32)
        cosines: Floats = (vectors @ direction).astype(float)
        return cosines

    async def _vectors(self, embedder: Embedder, facts: FactSet, cached: CachedFacts) -> Vectors:
        if cached.facts is facts and cached.vectors is not None:
            return cached.vectors
        texts = [memory.statement for memory in facts.memories]
        if len(texts) > self._most:
            raise NoVectors(f"there are {len(texts)} facts, more than the {self._most} whose vectors are kept")
        names = [_name(text) for text in texts]
        await self._make(embedder, dict(zip(names, texts, strict=True)))
        vectors = np.stack([self._kept[name] for name in names])
        if cached.facts is facts:
            cached.vectors = vectors
        return vectors

    async def _make(self, embedder: Embedder, texts: dict[bytes, str]) -> None:
        missing = [name for name in texts if name not in self._kept]
        now = [name for name in missing if name not in self._under_way][: self._at_once]
        if now:
            self._start(embedder, {name: texts[name] for name in now})
        for making in {self._under_way[name] for name in missing if name in self._under_way}:
            await asyncio.shield(making)
        for name in texts.keys() & self._kept.keys():
            self._kept.move_to_end(name)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        left = sum(name not in self._kept for name in texts)
        if left:
            raise NoVectors(f"the vectors of {left} facts are still to be made")

    def _start(self, embedder: Embedder, texts: Mapping[bytes, str]) -> None:
        """Start the embedding. It continues if the caller stops waiting: the next one finds the result."""
        making = asyncio.create_task(self._embed(embedder, texts))
        making.add_done_callback(_retrieve_error)
        self._under_way |= dict.fromkeys(texts, making)

    async def _embed(self, embedder: Embedder, texts: Mapping[bytes, str]) -> None:
        try:
            vectors = await embedder.embed(list(texts.values()), kind="passage")
            self._kept.update(zip(texts, vectors, strict=True))
        finally:
            for name in texts:
                del self._under_way[name]


def _retrieve_error(making: "asyncio.Task[None]") -> None:
    """Retrieve the error: a waiting caller gets it; without one it is ignored."""
    if not making.cancelled():
        making.exception()


def _name(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()
