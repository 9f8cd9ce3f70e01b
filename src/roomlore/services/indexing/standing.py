"""What a search may expect of the indexes just now."""

from dataclasses import dataclass

from roomlore.core.indexed import WORDS_MODEL
from roomlore.core.search import EmbeddingModel, IndexState
from roomlore.ports.coordination import Clock
from roomlore.ports.indexing import VECTORS, WORDS
from roomlore.ports.storage import Storage
from roomlore.services.indexing.indexed import Indexed, IndexedMessages

_FRESH_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Standing:
    """`generation`: of the vectors that may be searched, None where none may. `problem`: why the answer is less than it
    could be, None where it is not."""

    generation: str | None
    problem: str | None


class Standings:
    """Reads how a vector index stands, and the word index of messages with theirs, at most every two seconds."""

    def __init__(
        self, *, storage: Storage, clock: Clock, model: EmbeddingModel | None, indexed: Indexed | None = None
    ) -> None:
        self._storage = storage
        self._clock = clock
        self._model = model
        self._indexed = indexed or IndexedMessages()
        self._known: Standing | None = None
        self._read_at = 0.0

    async def now(self) -> Standing:
        if self._known is None or self._clock.monotonic() - self._read_at > _FRESH_SECONDS:
            self._read_at = self._clock.monotonic()
            self._known = await self._read()
        return self._known

    def forget(self) -> None:
        """Reads afresh the next time: something did not go as this said."""
        self._known = None

    async def _read(self) -> Standing:
        async with self._storage.reading() as work:
            words = await work.index_states.find(name=WORDS) if self._indexed.name == VECTORS else None
            vectors = await work.index_states.find(name=self._indexed.name) if self._model else None
        if self._model is None:
            return Standing(None, words_problem(words))
        generation, problem = _vectors(vectors, self._model, self._indexed.noun)
        return Standing(generation, problem or words_problem(words))


def words_problem(state: IndexState | None) -> str | None:
    if state is not None and (state.cursor or state.model != WORDS_MODEL):
        return "The word index is being rebuilt; some messages may be missing."
    return None


def model_problem(state: IndexState, model: EmbeddingModel) -> str | None:
    """Why these vectors cannot be compared with those of the model, if they cannot."""
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
