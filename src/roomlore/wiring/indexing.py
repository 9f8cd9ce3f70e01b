"""The embedder, the vectors, and the upkeep of the indexes."""

from __future__ import annotations

from dataclasses import dataclass

from roomlore import services
from roomlore.adapters.embedding import RememberedEmbedder
from roomlore.adapters.weights import load_answer_model
from roomlore.core.chat import read_providers
from roomlore.core.linking.model import LinkModel
from roomlore.ports.backends import EMBEDDERS, VECTORS, Host
from roomlore.ports.coordination import INDEXING, RELINKING, Clock
from roomlore.ports.language import Embedder
from roomlore.ports.vectors import VectorIndex
from roomlore.services.indexing import (
    DenseSearch,
    Indexed,
    IndexedMemories,
    IndexedMessages,
    IndexingService,
    IndexStateReader,
    LinkIndexing,
    VectorIndexing,
    WordIndexing,
)
from roomlore.services.messages import VectorsDue
from roomlore.settings import Settings
from roomlore.wiring.models import Common, host_of, opened, usable

_SWEEP_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Indexing:
    """The searches of messages and memories by meaning, and the upkeep of the indexes. `embedder`: None for search by
    words alone."""

    embedder: Embedder | None
    index: IndexingService
    dense: DenseSearch
    memories: DenseSearch
    due: VectorsDue
    vectors: VectorIndex | None
    """None if no embedder is configured."""


async def make_indexing(
    common: Common, model: LinkModel, *, embedder: Embedder | None, vectors: VectorIndex | None
) -> Indexing:
    """Return the indexing. `model`: links messages. `embedder`, `vectors`: the caller's own, in place of those that are
    configured."""
    embedder = embedder or make_embedder(common.settings, common.clock)
    if embedder is None:
        vectors = None
    else:
        common.closing.push_async_callback(embedder.close)
        vectors = vectors or await _vectors(common)
        common.closing.push_async_callback(vectors.close)
    kinds: tuple[Indexed, Indexed] = (IndexedMessages(), IndexedMemories())
    meaning = embedder.model if embedder else None
    states = [IndexStateReader(common, model=meaning, indexed=kind) for kind in kinds]
    index = IndexingService(
        common,
        words=WordIndexing(common),
        vectors=[
            VectorIndexing(
                common,
                indexed=kind,
                vectors=vectors,
                embedder=embedder,
            )
            for kind in kinds
            if embedder and vectors
        ],
        links=LinkIndexing(
            common,
            model=model,
        ),
        model=meaning,
        states=states,
    )
    if common.background:
        common.jobs.handle(INDEXING, index.catch_up, every_seconds=_SWEEP_SECONDS)
        common.jobs.handle(RELINKING, index.relink_slowly, every_seconds=_SWEEP_SECONDS)
    messages, memories = (
        DenseSearch(
            collection=kind.collection,
            embedder=embedder,
            vectors=vectors,
            states=its,
            clock=common.clock,
            jobs=common.jobs,
        )
        for kind, its in zip(kinds, states, strict=True)
    )
    return Indexing(
        embedder=embedder,
        index=index,
        dense=messages,
        memories=memories,
        due=VectorsDue(embedding=embedder is not None, jobs=common.jobs),
        vectors=vectors,
    )


def make_embedder(settings: Settings, clock: Clock) -> Embedder | None:
    """Return the configured embedder, or None; no request is sent yet."""
    candidates = settings.candidates(EMBEDDERS)
    if not candidates:
        return None
    providers = read_providers(settings.language_models.providers)
    keys = settings.environment_keys(provider.key_variable for provider in providers.values() if provider.key_variable)
    host = Host(url="", clock=clock, providers=providers, keys=keys)
    return RememberedEmbedder(opened(candidates[0], settings, host))


async def _vectors(common: Common) -> VectorIndex:
    host = host_of(common)
    candidates = await usable(VECTORS, common.settings, host)
    return opened(candidates[0], common.settings, host)


def make_memory_search(common: Common, indexing: Indexing) -> services.memory_search.MemorySearch:
    """Return the search of memories; nothing is read yet."""
    embedder = indexing.embedder
    learned = load_answer_model() if embedder else None
    return services.memory_search.MemorySearch(
        cache=services.memory_search.MemorySearchCache(storage=common.storage, clock=common.clock),
        meaning=indexing.memories,
        embedder=embedder,
        answers=learned if embedder and learned and learned.model == embedder.model.name else None,
        clock=common.clock,
        jobs=common.jobs,
        telemetry=common.telemetry,
    )
