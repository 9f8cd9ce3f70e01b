"""Finding what was indexed by meaning."""

import logging
from collections.abc import Sequence

from roomlore.core.errors import InvalidInput, ModelUnavailable, VectorsUnavailable, describe
from roomlore.core.search import Dense, Ints
from roomlore.ports.coordination import Clock, Jobs
from roomlore.ports.indexing import INDEXING
from roomlore.ports.language import Embedder
from roomlore.ports.vectors import VectorIndex
from roomlore.services.indexing.standing import Standings

_NEIGHBOURHOOD = 512
_REST_SECONDS = 5.0
_WORDS_ALONE = "Words alone were searched."

log = logging.getLogger(__name__)


class DenseSearch:
    """Meaning, shared by all tenants of a process. After a failure it rests a moment, so that a dead server slows down
    one search and not every one."""

    def __init__(
        self,
        *,
        collection: str,
        embedder: Embedder | None,
        vectors: VectorIndex | None,
        standings: Standings,
        clock: Clock,
        jobs: Jobs,
    ) -> None:
        self._collection = collection
        self._embedder = embedder
        self._vectors = vectors
        self._standings = standings
        self._clock = clock
        self._jobs = jobs
        self._resting_until = 0.0
        self._last_failure: str | None = None

    async def near(self, tenant: str, scope: str, texts: Sequence[str], only: Ints | None) -> Dense:
        """What lies near each of the texts; the problem instead, where it cannot be told."""
        standing = await self._standings.now()
        if self._embedder is None or self._vectors is None or standing.generation is None:
            return Dense(problem=standing.problem)
        if self._clock.monotonic() < self._resting_until:
            return Dense(problem=self._last_failure)
        try:
            vectors = await self._embedder.embed(texts, kind="query")
            found = await self._vectors.nearest(
                collection=self._collection,
                generation=standing.generation,
                tenant=tenant,
                scope=scope,
                vectors=vectors,
                limit=_NEIGHBOURHOOD,
                only=only,
            )
        except InvalidInput as error:
            return Dense(problem=f"{_WORDS_ALONE} {error}")
        except (ModelUnavailable, VectorsUnavailable) as error:
            return self._rest(error)
        return Dense(found, vectors, used=True, problem=standing.problem)

    async def problem(self) -> str | None:
        """What is wrong with the indexes, for a search by words alone."""
        return (await self._standings.now()).problem

    def _rest(self, error: Exception) -> Dense:
        self._resting_until = self._clock.monotonic() + _REST_SECONDS
        self._last_failure = f"{_WORDS_ALONE} {error}"
        self._standings.forget()
        self._jobs.ask(INDEXING)
        log.warning("search goes on without vectors", extra={"why": describe(error)})
        return Dense(problem=self._last_failure)
