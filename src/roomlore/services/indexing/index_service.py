"""The verbs of `lore.index`, and the background job for them."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Literal

from roomlore.core.errors import InvalidInput, RoomloreError, VectorsUnavailable
from roomlore.core.search.hits import EmbeddingModel
from roomlore.ports.shared import Backends, Service
from roomlore.services.indexing.index_state import IndexStateReader, messages_in_all, model_problem, words_problem
from roomlore.services.indexing.rebuild import LinkIndexing, WordIndexing
from roomlore.services.indexing.vectors import VectorIndexing
from roomlore.storage.values import WORDS

Part = Literal["words", "vectors"]
VectorsStand = Literal["off", "whole", "behind", "rebuilding", "missing", "other model", "down"]

_MISSING = (
    "There is no vector index; `roomlore serve` makes it in the background, `roomlore reindex --pending` at once."
)
_FROM_WHOLE: tuple[VectorsStand, ...] = ("off", "whole", "behind", "rebuilding", "missing", "other model", "down")


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexProgress:
    """Progress: of `total` texts, messages and memories (about; others may be added meanwhile), `done` are indexed, or
    linked again (`part` 'links')."""

    part: Literal["words", "vectors", "links"]
    done: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStatus:
    """The state of the indexes.

    `vectors`: 'off' without an embedder, 'whole', 'behind' (`waiting` messages and memories have no vector yet),
    'rebuilding', 'missing' (not built yet, or lost), 'other model', or 'down' if the vector store does not answer; if
    messages and memories differ, the one that is further from 'whole'. `waiting`: messages and memories without a
    vector. `rooms_to_link`: the number of rooms that wait
    for links of the current link model; until then their old links are used. `problem`: what to do, if anything.
    """

    vectors: VectorsStand
    words: Literal["whole", "rebuilding"]
    model: EmbeddingModel | None
    waiting: int
    rooms_to_link: int
    problem: str | None


class IndexingService(Service):
    """Keep the indexes of all tenants in step with SQL. `vectors`: of messages and of memories; empty if no embedder is
    configured. `states`: readers of the state that searches see."""

    def __init__(
        self,
        backends: Backends,
        *,
        words: WordIndexing,
        vectors: Sequence[VectorIndexing],
        links: LinkIndexing,
        model: EmbeddingModel | None,
        states: Sequence[IndexStateReader],
    ) -> None:
        super().__init__(backends)
        self._words = words
        self._links = links
        self._vectors = tuple(vectors)
        self._model = model
        self._states = tuple(states)

    async def status(self) -> IndexStatus:
        """Return the state of the indexes now; the vector store is asked too."""
        async with self._storage.reading() as work:
            words = await work.progress.index_state(name=WORDS)
            waiting = await work.progress.outbox.waiting() + await work.progress.memory_outbox.waiting()
        stands = [await self._stand(vectors) for vectors in self._vectors] or [("off", None)]
        stand, problem = max(stands, key=lambda standing: _FROM_WHOLE.index(standing[0]))
        return IndexStatus(
            vectors=stand,
            words="rebuilding" if words_problem(words) else "whole",
            model=self._model,
            waiting=waiting,
            rooms_to_link=(await self._links.left())[0],
            problem=problem or words_problem(words),
        )

    async def _stand(self, vectors: VectorIndexing) -> tuple[VectorsStand, str | None]:
        async with self._storage.reading() as work:
            state = await work.progress.index_state(name=vectors.indexed.name)
            waiting = await vectors.indexed.outbox(work).waiting()
        if state is None:
            return "missing", _MISSING
        if self._model is not None and (problem := model_problem(state, self._model)):
            return "other model", problem
        try:
            if not await vectors.holds(state.generation):
                return "missing", _MISSING
        except VectorsUnavailable as error:
            return "down", str(error)
        return "rebuilding" if state.cursor else "behind" if waiting else "whole", None

    async def rebuild(self, *, part: Part | None = None, resume: bool = False) -> AsyncIterator[IndexProgress]:
        """Rebuild the indexes (or one of them) from SQL and yield the progress.

        If it breaks off, it continues with `resume=True`, or by itself in the background. Searches work meanwhile and
        say that they are `degraded`. Raise `InvalidInput` if `part="vectors"` and no embedder is configured,
        `ModelUnavailable`, `VectorsUnavailable`.
        """
        if part not in (None, "words", "vectors"):
            raise InvalidInput("index_part_unknown", value=repr(part))
        if part == "vectors" and not self._vectors:
            raise InvalidInput("embedder_missing")
        if not resume:
            await self._begin(part)
        if part != "vectors":
            async for progress in self._all_words():
                yield progress
        if part != "words":
            async for progress in self.drain():
                yield progress

    async def drain(self) -> AsyncIterator[IndexProgress]:
        """Make a vector for every message and memory that waits for one, and yield the progress. Do nothing without an
        embedder.

        It ends when nothing is left to claim: what another worker has claimed, and a text that the model refused, still
        count as `waiting` in `status()`. Raise `ModelUnavailable`, `VectorsUnavailable`; what was not done keeps
        waiting.
        """
        states = [(vectors, await vectors.ready()) for vectors in self._vectors]
        self._forget()
        ready = [(vectors, state) for vectors, state in states if state is not None]
        if len(ready) < len(states):
            raise InvalidInput((await self.status()).problem)
        done, total = 0, sum([await self._left(vectors, rebuilding=bool(state.cursor)) for vectors, state in ready])
        for vectors, state in ready:
            while (count := await vectors.step(state.generation)) >= 0:
                done += count
                if count:
                    yield IndexProgress(part="vectors", done=done, total=max(total, done))
        self._forget()

    async def relink(self) -> AsyncIterator[IndexProgress]:
        """Analyse and link again every room whose links are of an earlier link model, and yield the progress.

        A room is walked from its first message, in pieces that are committed one by one: if it breaks off, it continues
        where it stopped. Contexts use the existing links. It ends when nothing is left to claim: a room that another
        process has claimed still counts in `status().rooms_to_link`.
        """
        done, total = 0, (await self._links.left())[1]
        try:
            while (count := await self._links.step()) >= 0:
                done += count
                if count:
                    yield IndexProgress(part="links", done=done, total=max(total, done))
        finally:
            await self._links.rest()

    async def relink_slowly(self) -> None:
        """Do the same in the background, idle half of the time, so that callers hardly notice."""
        began = self._clock.monotonic()
        while await self._links.step() >= 0:
            await asyncio.sleep(self._clock.monotonic() - began)
            began = self._clock.monotonic()

    async def catch_up(self) -> None:
        """Do in the background whatever is due. An error with messages does not stop memories."""
        while await self._words.step() >= 0:
            self._forget()
        failures = [failure for vectors in self._vectors if (failure := await self._catch_up(vectors))]
        if failures:
            raise failures[0]

    async def _catch_up(self, vectors: VectorIndexing) -> RoomloreError | None:
        try:
            if (state := await vectors.ready()) is not None:
                self._forget()
                while await vectors.step(state.generation) >= 0:
                    pass
                self._forget()
        except RoomloreError as failure:
            return failure
        return None

    def _forget(self) -> None:
        for reader in self._states:
            reader.forget()

    async def _begin(self, part: Part | None) -> None:
        """Begin all before any work, so that an interrupted rebuild continues with all; vectors first, as they may
        fail."""
        if part != "words":
            for vectors in self._vectors:
                await vectors.begin()
        if part != "vectors":
            await self._words.begin()

    async def _all_words(self) -> AsyncIterator[IndexProgress]:
        async with self._storage.reading() as work:
            total = await messages_in_all(work)
        done = 0
        while (count := await self._words.step()) >= 0:
            done += count
            if count:
                yield IndexProgress(part="words", done=done, total=max(total, done))
        self._forget()

    async def _left(self, vectors: VectorIndexing, *, rebuilding: bool) -> int:
        async with self._storage.reading() as work:
            indexed = vectors.indexed
            return await indexed.count(work) if rebuilding else await indexed.outbox(work).waiting()
