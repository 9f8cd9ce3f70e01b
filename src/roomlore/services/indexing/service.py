"""The verbs of `lore.index`, and the job behind them."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Literal

from roomlore.core.errors import InvalidInput, VectorsUnavailable
from roomlore.core.search import EmbeddingModel, IndexState
from roomlore.ports.indexing import VECTORS, WORDS
from roomlore.ports.storage import Storage
from roomlore.services.indexing.standing import Standings, model_problem, words_problem
from roomlore.services.indexing.vectors import VectorIndexing
from roomlore.services.indexing.walk import messages_in_all
from roomlore.services.indexing.words import WordIndexing

Part = Literal["words", "vectors"]
VectorsStand = Literal["off", "whole", "behind", "rebuilding", "missing", "other model", "down"]

_MISSING = (
    "There is no vector index; `roomlore serve` makes it in the background, `roomlore reindex --pending` at once."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexProgress:
    """How far indexing has come: of `total` messages (about; others may be added meanwhile) `done` are indexed."""

    part: Part
    done: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStatus:
    """How the indexes stand.

    `vectors`: 'off' without an embedder, 'whole', 'behind' (`waiting` messages have no vector yet), 'rebuilding',
    'missing' (not made yet, or lost), 'other model', or 'down' where their store does not answer. `problem`: what to
    do, if anything.
    """

    vectors: VectorsStand
    words: Literal["whole", "rebuilding"]
    model: EmbeddingModel | None
    waiting: int
    problem: str | None


class IndexingService:
    """Keeps the indexes of all tenants in step with SQL. `vectors` is None where no embedder is configured."""

    def __init__(
        self,
        *,
        storage: Storage,
        words: WordIndexing,
        vectors: VectorIndexing | None,
        model: EmbeddingModel | None,
        standings: Standings,
    ) -> None:
        self._storage = storage
        self._words = words
        self._vectors = vectors
        self._model = model
        self._standings = standings

    async def status(self) -> IndexStatus:
        """How the indexes stand now; the store of vectors is asked too."""
        async with self._storage.reading() as work:
            words = await work.index_states.find(name=WORDS)
            state = await work.index_states.find(name=VECTORS)
            waiting = await work.outbox.waiting()
        stand, problem = await self._vectors_stand(state, waiting)
        return IndexStatus(
            vectors=stand,
            words="rebuilding" if words_problem(words) else "whole",
            model=self._model,
            waiting=waiting,
            problem=problem or words_problem(words),
        )

    async def _vectors_stand(self, state: IndexState | None, waiting: int) -> tuple[VectorsStand, str | None]:
        if self._model is None or self._vectors is None:
            return "off", None
        if state is None:
            return "missing", _MISSING
        if problem := model_problem(state, self._model):
            return "other model", problem
        try:
            if not await self._vectors.holds(state.generation):
                return "missing", _MISSING
        except VectorsUnavailable as error:
            return "down", str(error)
        return "rebuilding" if state.cursor else "behind" if waiting else "whole", None

    async def rebuild(self, *, part: Part | None = None, resume: bool = False) -> AsyncIterator[IndexProgress]:
        """Makes the indexes (or one of them) anew from SQL, telling how far it has come.

        Broken off, it goes on with `resume=True`, or by itself in the background. Searches go on meanwhile and say
        that they are `degraded`. Raises `InvalidInput` where `part="vectors"` and no embedder is configured,
        `ModelUnavailable`, `VectorsUnavailable`.
        """
        if part not in (None, "words", "vectors"):
            raise InvalidInput(f"part is 'words' or 'vectors', or left out for both; it is {part!r}.")
        if part == "vectors" and self._vectors is None:
            raise InvalidInput("No embedder is configured: set `embeddings` to 'offline' or 'openai' first.")
        if not resume:
            await self._begin(part)
        if part != "vectors":
            async for progress in self._all_words():
                yield progress
        if part != "words":
            async for progress in self.drain():
                yield progress

    async def drain(self) -> AsyncIterator[IndexProgress]:
        """Gives a vector to every message that waits for one, telling how far it has come. Nothing without an embedder.

        Ends when nothing is left to take on: what another worker has in hand, and a text that the model refused, still
        count as `waiting` in `status()`. Raises `ModelUnavailable`, `VectorsUnavailable`; what was not done waits on.
        """
        if self._vectors is None:
            return
        state = await self._vectors.ready()
        self._standings.forget()
        if state is None:
            raise InvalidInput((await self.status()).problem)
        done, total = 0, await self._left(rebuilding=state.cursor is not None)
        while (count := await self._vectors.step(state.generation)) >= 0:
            done += count
            if count:
                yield IndexProgress(part="vectors", done=done, total=max(total, done))
        self._standings.forget()

    async def catch_up(self) -> None:
        """The job: whatever is due, without telling."""
        while await self._words.step() >= 0:
            self._standings.forget()
        if self._vectors is not None and (state := await self._vectors.ready()) is not None:
            self._standings.forget()
            while await self._vectors.step(state.generation) >= 0:
                pass
            self._standings.forget()

    async def _begin(self, part: Part | None) -> None:
        """Both before either, so that a rebuild broken off goes on with both; vectors first, as they may fail."""
        if part != "words" and self._vectors is not None:
            await self._vectors.begin()
        if part != "vectors":
            await self._words.begin()

    async def _all_words(self) -> AsyncIterator[IndexProgress]:
        done, total = 0, await self._left(rebuilding=True)
        while (count := await self._words.step()) >= 0:
            done += count
            if count:
                yield IndexProgress(part="words", done=done, total=max(total, done))
        self._standings.forget()

    async def _left(self, *, rebuilding: bool) -> int:
        async with self._storage.reading() as work:
            return await messages_in_all(work) if rebuilding else await work.outbox.waiting()
