"""Searching memories by words and meaning, by words alone wherever meaning cannot be had."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from roomlore.core.errors import InvalidInput, ModelUnavailable
from roomlore.core.memory.asking import Question, read_question
from roomlore.core.memory.found import MemoryAnswer, MemoryHit
from roomlore.core.memory.scoring import BACKGROUND, Background, Cosines, Scores, cosines_of, nearness, score
from roomlore.core.search import Dense, Floats, Ints, Nearest
from roomlore.ports.coordination import Clock, Jobs, Telemetry
from roomlore.ports.indexing import INDEXING
from roomlore.ports.language import Embedder
from roomlore.services.memory_search.shelf import MemoryShelf, Ready

MAX_QUERY_CHARS = 20_000
MAX_HITS = 200
_AT_ONCE = 32
_SAMPLE = 128
"""Memories that stand for all others of a scope of which only the nearest are found."""


class Meaning(Protocol):
    """What finds memories by meaning, for all tenants."""

    async def near(self, tenant: str, scope: str, texts: Sequence[str], only: Ints | None) -> Dense:
        """What lies near each of the texts; the problem instead, where it cannot be told."""


@dataclass(frozen=True, slots=True)
class _Asked:
    tenant: str
    scope: str
    question: Question


class MemorySearch:
    """Searches scopes of all tenants. `embedder`: the one that made the vectors, None where there are none."""

    def __init__(
        self,
        *,
        shelf: MemoryShelf,
        meaning: Meaning,
        embedder: Embedder | None,
        clock: Clock,
        jobs: Jobs,
        telemetry: Telemetry,
    ) -> None:
        self._shelf = shelf
        self._meaning = meaning
        self._embedder = embedder
        self._clock = clock
        self._jobs = jobs
        self._telemetry = telemetry
        self._background: Background | None = None
        self._making = asyncio.Lock()

    async def search(self, *, tenant: str, scope: str, query: str, limit: int, threshold: float) -> MemoryAnswer:
        """The active memories with a score of `threshold` or above, best first. Raises `InvalidInput`,
        `StorageUnavailable`."""
        _check(query, limit=limit, threshold=threshold)
        started = self._clock.monotonic()
        asked = _Asked(tenant, scope, read_question(query, of_group=scope.startswith("group:")))
        ready = await self._shelf.find(tenant, scope)
        dense, background = await self._near(asked)
        near, problem = None, dense.problem
        if background is not None:
            near, unknown = await self._nearness(asked, ready, dense, background)
            problem = problem or (
                f"{unknown} memories have no vector yet; words alone speak for them." if unknown else None
            )
        scores = score(asked.question, ready.words, near)
        answer = MemoryAnswer(
            scope=scope,
            query=query,
            mode="hybrid" if background else "lexical",
            hits=tuple(_hit(ready, scores, place) for place in scores.best(threshold, limit).tolist()),
            degraded=problem,
        )
        self._measure(answer, self._clock.monotonic() - started)
        return answer

    async def _near(self, asked: _Asked) -> tuple[Dense, Cosines | None]:
        """What lies near, and how near the background does; None where meaning cannot be had."""
        dense = await self._meaning.near(asked.tenant, asked.scope, [asked.question.embed], None)
        if not dense.used or dense.asked is None or self._embedder is None:
            return dense, None
        try:
            background = await self._made_background(self._embedder)
        except (ModelUnavailable, InvalidInput) as error:
            return Dense(problem=f"Words alone were searched. {error}"), None
        return dense, background.cosines(dense.asked[0])

    async def _made_background(self, embedder: Embedder) -> Background:
        if self._background is None:
            async with self._making:
                if self._background is None:
                    self._background = Background(await embedder.embed(BACKGROUND, kind="passage"))
        return self._background

    async def _nearness(self, asked: _Asked, ready: Ready, dense: Dense, background: Cosines) -> tuple[Floats, int]:
        """Of every memory, NaN for those without a vector yet, and how many these are."""
        cosines = _cosines(ready, dense.found[0])
        unknown = np.flatnonzero(np.isnan(cosines.values) & ready.said)
        if unknown.size > _SAMPLE and cosines.values.size - unknown.size > _SAMPLE:
            return await self._among_many(asked, ready, cosines, background), 0
        if unknown.size:
            self._jobs.ask(INDEXING)
            unknown = await self._embed(ready, unknown, dense, cosines)
        return nearness(cosines, background), unknown.size

    async def _embed(self, ready: Ready, unknown: Ints, dense: Dense, cosines: Cosines) -> Ints:
        """A few that are not indexed yet are embedded here and now; which ones are left."""
        if unknown.size > _AT_ONCE or self._embedder is None or dense.asked is None:
            return unknown
        try:
            statements = [ready.memories[place].statement.strip() for place in unknown.tolist()]
            vectors = await self._embedder.embed(statements, kind="passage")
        except (ModelUnavailable, InvalidInput):
            return unknown
        cosines.values[unknown] = cosines_of(vectors, dense.asked[0])
        return unknown[:0]

    async def _among_many(self, asked: _Asked, ready: Ready, cosines: Cosines, background: Cosines) -> Floats:
        """The nearest say nothing about the rest of a large scope: an even sample of it does. What was not found lies
        no nearer than the farthest that was."""
        farthest = np.nanmin(cosines.values)
        cosines = Cosines(np.where(np.isnan(cosines.values), farthest, cosines.values), cosines.dense_script)
        step = max(1, ready.numbers.size // _SAMPLE)
        some = await self._meaning.near(
            asked.tenant, asked.scope, [asked.question.embed], np.sort(ready.numbers)[::step]
        )
        if not some.used:
            return nearness(cosines, background)
        sample = _cosines(ready, some.found[0])
        kept = ~np.isnan(sample.values)
        return nearness(cosines, background, Cosines(sample.values[kept], sample.dense_script[kept]))

    def _measure(self, answer: MemoryAnswer, seconds: float) -> None:
        labels = {"mode": answer.mode, "degraded": "yes" if answer.degraded else "no"}
        self._telemetry.observe("roomlore_memory_search_seconds", seconds, labels=labels)


def _cosines(ready: Ready, nearest: Nearest) -> Cosines:
    """Of every memory, NaN for those that were not found; what was found and is not active is dropped."""
    values = np.full(len(ready.memories), np.nan)
    places = ready.places(nearest.numbers)
    values[places[places >= 0]] = 2 * nearest.similarities[places >= 0] - 1
    return Cosines(values, ready.dense_script)


def _hit(ready: Ready, scores: Scores, place: int) -> MemoryHit:
    signals = {"words": float(scores.words[place]), "meaning": float(scores.meaning[place])}
    return MemoryHit(memory=ready.memories[place], score=float(scores.total[place]), signals=signals)


def _check(query: str, *, limit: int, threshold: float) -> None:
    if not isinstance(query, str) or not query.strip():
        raise InvalidInput("The query is empty; give a few words or a question.")
    if len(query) > MAX_QUERY_CHARS:
        raise InvalidInput(f"The query has {len(query)} characters; give at most {MAX_QUERY_CHARS}.")
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= MAX_HITS:
        raise InvalidInput(f"limit is {limit!r}; give a whole number from 1 to {MAX_HITS}.")
    if not isinstance(threshold, int | float) or isinstance(threshold, bool) or not 0 <= threshold <= 1:
        raise InvalidInput(f"threshold is {threshold!r}; give a number from 0 to 1.")
