"""Search of memories: the memories of scopes prepared for search and cached until the scope changes."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from roomlore.core.audience import EvidenceTable, View, Viewer, unreplaced
from roomlore.core.errors import InvalidInput, ModelUnavailable
from roomlore.core.intake import check_query
from roomlore.core.memory.memory import Memory, MemoryAnswer, MemoryHit, NumberedMemory, next_end
from roomlore.core.memory.scoring import (
    BACKGROUND,
    AnswerModel,
    BackgroundVectors,
    Cosines,
    Flags,
    MemoryMatches,
    MemoryQuestion,
    Scores,
    StatementTerms,
    cosines_of,
    is_dense_script,
    nearness,
    read_question,
    score,
)
from roomlore.core.search.hits import Dense, Floats, Ints, Nearest, Vectors
from roomlore.core.visibility import as_shown_to
from roomlore.ports.audience import CachedView, ViewCache
from roomlore.ports.coordination import INDEXING, Clock, Jobs, Telemetry
from roomlore.ports.language import Embedder
from roomlore.ports.vectors import MeaningSearch

if TYPE_CHECKING:
    from roomlore.storage import Storage, UnitOfWork

MAX_MEMORIES = 20_000
_HELD = 3 * MAX_MEMORIES
_ALL = 2**31 - 1
"""A viewer's limit counts what the viewer may see, so all is read."""
_INLINE = 500
"""Memories that are prepared on the event loop; more use another thread."""
_ENTRY = 4
"""The cost of a scope without a memory, in memories."""
_AT_ONCE = 32
_SAMPLE = 128
"""Memories that stand for all others of a scope if only the nearest are found."""


class Ready:
    """The active memories of a scope, the last changed first. `numbers`: their row numbers; `said`: which have any
    text; `dense_script`: which are in a dense script, such as Chinese."""

    def __init__(self, rows: list[NumberedMemory]) -> None:
        self.memories: tuple[Memory, ...] = tuple(numbered.memory for numbered in rows)
        self.numbers: Ints = np.array([numbered.number for numbered in rows], np.int64)
        self.said: Flags = np.array([bool(memory.statement.strip()) for memory in self.memories], np.bool_)
        self.dense_script: Flags = np.array([is_dense_script(memory.statement) for memory in self.memories], np.bool_)
        self.words = StatementTerms([memory.statement for memory in self.memories])
        self._order = np.argsort(self.numbers)

    def places(self, numbers: Ints) -> Ints:
        """Return the positions of these numbers; -1 for one that is not of an active memory."""
        if not self.numbers.size:
            return np.full(numbers.size, -1)
        ordered = self.numbers[self._order]
        at = np.minimum(np.searchsorted(ordered, numbers), ordered.size - 1)
        return np.where(ordered[at] == numbers, self._order[at], -1)


@dataclass(slots=True)
class _Cached(CachedView):
    """A cached scope. `stamp`: its creation time, and the number of its changes when its memories were read: a
    forgotten scope may be created again. `every`: for a viewer, all memories of the scope."""

    stamp: tuple[datetime, int] | None = None
    ready: Ready | None = None
    every: Sequence[NumberedMemory] = ()


class MemorySearchCache:
    """A cache of the scopes searched last, of all tenants; of a scope the 20,000 memories that changed last."""

    def __init__(self, *, storage: "Storage", clock: Clock, held: int = _HELD) -> None:
        self._storage = storage
        self._clock = clock
        self._cached = ViewCache(_Cached, most=held)

    async def find(self, tenant: str, scope: str, viewer: Viewer | None = None, ended: bool = False) -> Ready:
        """Return the current memories that the viewer may see, None for all. `ended`: those that hold no more, too.
        Raise `StorageUnavailable`."""
        key = (tenant, scope, viewer, ended)
        cached = self._cached.entry(key, viewer, ended=ended)
        async with cached.lock, self._storage.reading(tenant) as work:
            ready = await self._current(work, cached, scope)
        self._cached.weigh(key, cached, _ENTRY + len(ready.memories) + len(cached.every))
        return ready

    async def _current(self, work: "UnitOfWork", cached: _Cached, scope: str) -> Ready:
        """Return the memories of a scope as they are now. The stamp is read first, so a change in between is read the
        next time."""
        known = await work.memories.scope(scope=scope)
        stamp = (known.created_at, known.changes) if known else None
        now = self._clock.now()
        ended = cached.until is not None and cached.until <= now
        same = cached.ready is not None and cached.stamp == stamp and not ended
        seen = None
        active = partial(work.memories.active, scope=scope)
        if cached.sight is None:
            fitting = [] if same else await active(limit=MAX_MEMORIES)
        else:
            if not same or cached.evidence is None:
                cached.every = await active(limit=_ALL)
                cached.evidence = EvidenceTable([numbered.memory for numbered in cached.every])
            seen = await cached.sight.of(work, cached.evidence, now)
            same = same and seen is cached.seen
            fitting = [] if same else _seen(cached.every, seen, cached.sight.view)
        if cached.ready is None or not same:
            fitting = [numbered for numbered in fitting if cached.ended or numbered.memory.holds(now)]
            until = None if cached.ended else next_end((numbered.memory for numbered in fitting), now)
            large = len(fitting) > _INLINE
            cached.ready = await asyncio.to_thread(Ready, fitting) if large else Ready(fitting)
            cached.stamp, cached.seen, cached.until = stamp, seen, until
        return cached.ready


def _seen(every: Sequence[NumberedMemory], seen: NDArray[np.bool_], view: View) -> list[NumberedMemory]:
    """Return the memories that a viewer may see, at most as many as one that sees all would get."""
    some = [every[place] for place in np.flatnonzero(seen).tolist()]
    _, replaced = unreplaced([numbered.memory for numbered in some])
    kept = [numbered for numbered in some if numbered.memory.memory_id not in replaced][:MAX_MEMORIES]
    ids = {numbered.memory.memory_id for numbered in some}
    return [replace(numbered, memory=as_shown_to(numbered.memory, view, ids)) for numbered in kept]


@dataclass(frozen=True, slots=True)
class _Asked:
    tenant: str
    scope: str
    question: MemoryQuestion
    only: Ints | None


@dataclass(frozen=True, slots=True)
class _Compared:
    """The part of vectors in each score: nearness, NaN for one without a vector yet, and the match, if
    that was learned for the model. `unknown`: how many are NaN."""

    near: Floats
    matches: MemoryMatches | None
    unknown: int = 0


class MemorySearch:
    """Search scopes of all tenants. `embedder`: the one that made the vectors, None if there are none. `answers`: the
    comparison learned for its model, None if there is none."""

    def __init__(
        self,
        *,
        cache: MemorySearchCache,
        meaning: MeaningSearch,
        embedder: Embedder | None,
        answers: AnswerModel | None,
        clock: Clock,
        jobs: Jobs,
        telemetry: Telemetry,
    ) -> None:
        self._cache = cache
        self._answers = answers
        self._meaning = meaning
        self._embedder = embedder
        self._clock = clock
        self._jobs = jobs
        self._telemetry = telemetry
        self._background: BackgroundVectors | None = None
        self._making = asyncio.Lock()

    async def search(
        self,
        *,
        tenant: str,
        scope: str,
        query: str,
        limit: int,
        threshold: float,
        include_ended: bool = False,
        viewer: Viewer | None = None,
    ) -> MemoryAnswer:
        """Return the active memories that the viewer may see, None for all, with a score of `threshold` or above, best
        first. `include_ended`: those that hold no more, too. Raise `InvalidInput`, `StorageUnavailable`."""
        _check(query, limit=limit, threshold=threshold)
        started = self._clock.monotonic()
        ready = await self._cache.find(tenant, scope, viewer, include_ended)
        question = read_question(query, of_group=scope.startswith("group:"))
        search_query = _Asked(tenant, scope, question, None if viewer is None else np.sort(ready.numbers))
        dense, background = await self._near(search_query)
        near, matches, problem = None, None, dense.problem
        if background is not None:
            compared = await self._compared(search_query, ready, dense, background)
            near, matches = compared.near, compared.matches
            if compared.unknown and problem is None:
                problem = f"{compared.unknown} memories have no vector yet; words alone speak for them."
        scores = score(question, ready.words, near, matches)
        answer = MemoryAnswer(
            scope=scope,
            query=query,
            mode="hybrid" if background else "lexical",
            hits=tuple(_hit(ready, scores, place) for place in scores.best(threshold, limit).tolist()),
            degraded=problem,
            nothing=scores.nothing(threshold, words_alone=background is None),
        )
        self._measure(answer, self._clock.monotonic() - started)
        return answer

    async def _near(self, query: _Asked) -> tuple[Dense, Cosines | None]:
        """Return the nearest neighbours, and the cosines of the background; None if meaning is not available."""
        turned = partial(_turned, self._answers, query.question) if self._answers else None
        dense = await self._meaning.near(query.tenant, query.scope, [query.question.embed], query.only, turned)
        if not dense.used or dense.asked is None or self._embedder is None:
            return dense, None
        try:
            background = await self._made_background(self._embedder)
        except (ModelUnavailable, InvalidInput) as error:
            return Dense(problem=f"Words alone were searched. {error}"), None
        return dense, background.cosines(dense.asked[0])

    async def _made_background(self, embedder: Embedder) -> BackgroundVectors:
        if self._background is None:
            async with self._making:
                if self._background is None:
                    self._background = BackgroundVectors(await embedder.embed(BACKGROUND, kind="passage"))
        return self._background

    async def _compared(self, query: _Asked, ready: Ready, dense: Dense, background: Cosines) -> _Compared:
        cosines = [_cosines(ready, nearest) for nearest in dense.found]
        unknown = np.flatnonzero(np.isnan(cosines[0].values) & ready.said)
        if unknown.size > _SAMPLE and len(ready.memories) - unknown.size > _SAMPLE:
            cosines = [_with_farthest(cosine) for cosine in cosines]
            return self._with_matches(
                await self._among_many(query, ready, cosines[0], background), query, ready, dense, cosines
            )
        if unknown.size:
            self._jobs.ask(INDEXING)
            unknown = await self._embed(query, ready, unknown, dense, cosines)
        return self._with_matches(nearness(cosines[0], background), query, ready, dense, cosines, unknown.size)

    def _with_matches(
        self, near: Floats, query: _Asked, ready: Ready, dense: Dense, cosines: Sequence[Cosines], unknown: int = 0
    ) -> _Compared:
        if self._answers is None or dense.asked is None:
            return _Compared(near, None, unknown)
        direction = self._answers.direction(dense.asked[0], dense_script=query.question.dense_script)
        values = direction.of(cosines[1].values, ready.dense_script)
        return _Compared(near, MemoryMatches(values, ready.dense_script, self._answers.weights), unknown)

    async def _embed(
        self, query: _Asked, ready: Ready, unknown: Ints, dense: Dense, cosines: Sequence[Cosines]
    ) -> Ints:
        """Embed a few memories that are not indexed yet; return those that are left."""
        if unknown.size > _AT_ONCE or self._embedder is None or dense.asked is None:
            return unknown
        try:
            statements = [ready.memories[place].statement.strip() for place in unknown.tolist()]
            vectors = await self._embedder.embed(statements, kind="passage")
        except (ModelUnavailable, InvalidInput):
            return unknown
        cosines[0].values[unknown] = cosines_of(vectors, dense.asked[0])
        if self._answers:
            cosines[1].values[unknown] = cosines_of(vectors, _turned(self._answers, query.question, dense.asked)[0])
        return unknown[:0]

    async def _among_many(self, query: _Asked, ready: Ready, cosines: Cosines, background: Cosines) -> Floats:
        """In a large scope the nearest say nothing about the rest: an even sample does."""
        step = max(1, ready.numbers.size // _SAMPLE)
        some = await self._meaning.near(
            query.tenant, query.scope, [query.question.embed], np.sort(ready.numbers)[::step]
        )
        if not some.used:
            return nearness(cosines, background)
        sample = _cosines(ready, some.found[0])
        kept = ~np.isnan(sample.values)
        return nearness(cosines, background, Cosines(sample.values[kept], sample.dense_script[kept]))

    def _measure(self, answer: MemoryAnswer, seconds: float) -> None:
        labels = {"mode": answer.mode, "degraded": "yes" if answer.degraded else "no"}
        self._telemetry.observe("roomlore_memory_search_seconds", seconds, labels=labels)


def _turned(answers: AnswerModel, question: MemoryQuestion, vectors: Vectors) -> Vectors:
    """Return the directions of these vectors of the question."""
    directions = [answers.direction(vector, dense_script=question.dense_script) for vector in vectors]
    return np.stack([direction.vector for direction in directions])


def _with_farthest(cosines: Cosines) -> Cosines:
    """A memory that was not found is no nearer than the farthest that was."""
    values = np.where(np.isnan(cosines.values), np.nanmin(cosines.values), cosines.values)
    return Cosines(values, cosines.dense_script)


def _cosines(ready: Ready, nearest: Nearest) -> Cosines:
    """Return the cosine of every memory, NaN for those that were not found; results that are not active are dropped."""
    values = np.full(len(ready.memories), np.nan)
    places = ready.places(nearest.numbers)
    values[places[places >= 0]] = 2 * nearest.similarities[places >= 0] - 1
    return Cosines(values, ready.dense_script)


def _hit(ready: Ready, scores: Scores, place: int) -> MemoryHit:
    signals = {"words": float(scores.words[place]), "meaning": float(scores.meaning[place])}
    return MemoryHit(memory=ready.memories[place], score=float(scores.total[place]), signals=signals)


def _check(query: str, *, limit: int, threshold: float) -> None:
    check_query(query, limit=limit)
    if not isinstance(threshold, int | float) or isinstance(threshold, bool) or not 0 <= threshold <= 1:
        raise InvalidInput("threshold_invalid", value=repr(threshold))
