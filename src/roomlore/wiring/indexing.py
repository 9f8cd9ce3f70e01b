"""The embedder, the vectors, and the upkeep of the indexes."""

from dataclasses import dataclass

from roomlore.adapters.embedding import open_offline, open_openai
from roomlore.adapters.embedding.cache import RememberedEmbedder
from roomlore.adapters.qdrant import open_qdrant
from roomlore.adapters.sql import SqlStorage
from roomlore.adapters.sql.vector_choice import open_vectors
from roomlore.core.linking.model import LinkModel
from roomlore.ports.language import Embedder
from roomlore.ports.storage import INDEXING, RELINKING
from roomlore.ports.vectors import VectorIndex
from roomlore.services.indexing import (
    DenseSearch,
    Indexed,
    IndexedMemories,
    IndexedMessages,
    IndexingService,
    LinkIndexing,
    Standings,
    VectorIndexing,
    WordIndexing,
)
from roomlore.services.memory_search import MemorySearch, MemorySearchCache
from roomlore.services.messages import VectorsDue
from roomlore.settings import Settings
from roomlore.wiring.models import Common

_SWEEP_SECONDS = 15.0
_LATE_SECONDS = 1.0
"""Vectors are made in the background anyway; the words of a message are found at once."""
_MIB = 1024 * 1024


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


async def make_indexing(common: Common, storage: SqlStorage, embedder: Embedder | None, model: LinkModel) -> Indexing:
    """Return the indexing. `model`: links messages. `embedder`: the caller's own, in place of the configured one."""
    embedder = embedder or make_embedder(common.settings)
    vectors = None
    if embedder is not None:
        common.closing.push_async_callback(embedder.close)
        vectors = await _vectors(common.settings, storage)
        common.closing.push_async_callback(vectors.close)
    kinds: tuple[Indexed, Indexed] = (IndexedMessages(), IndexedMemories())
    meaning = embedder.model if embedder else None
    standings = [Standings(storage=storage, clock=common.clock, model=meaning, indexed=kind) for kind in kinds]
    index = IndexingService(
        storage=storage,
        words=WordIndexing(storage=storage, clock=common.clock, ids=common.ids),
        vectors=[
            VectorIndexing(
                indexed=kind,
                storage=storage,
                vectors=vectors,
                embedder=embedder,
                clock=common.clock,
                ids=common.ids,
                telemetry=common.telemetry,
                lease_seconds=common.settings.index_lease_seconds,
            )
            for kind in kinds
            if embedder and vectors
        ],
        links=LinkIndexing(
            storage=storage,
            model=model,
            clock=common.clock,
            ids=common.ids,
            lease_seconds=common.settings.index_lease_seconds,
        ),
        model=meaning,
        standings=standings,
        clock=common.clock,
    )
    if common.background:
        common.jobs.handle(INDEXING, index.catch_up, every_seconds=_SWEEP_SECONDS)
        common.jobs.handle(RELINKING, index.relink_slowly, every_seconds=_SWEEP_SECONDS)
    messages, memories = (
        DenseSearch(
            collection=kind.collection,
            embedder=embedder,
            vectors=vectors,
            standings=its,
            clock=common.clock,
            jobs=common.jobs,
        )
        for kind, its in zip(kinds, standings, strict=True)
    )
    return Indexing(
        embedder=embedder,
        index=index,
        dense=messages,
        memories=memories,
        due=VectorsDue(embedding=embedder is not None, jobs=common.jobs),
        vectors=vectors,
    )


def make_embedder(settings: Settings) -> Embedder | None:
    """Return the configured embedder, or None; no request is sent yet."""
    if settings.embeddings == "offline":
        return RememberedEmbedder(open_offline())
    if settings.embeddings == "openai":
        return RememberedEmbedder(
            open_openai(
                url=settings.embedding_url,
                api_key=settings.embedding_api_key,
                model=settings.embedding_model,
                dimensions=settings.embedding_dimensions,
                timeout_seconds=settings.embedding_timeout_seconds,
                query_prefix=settings.embedding_query_prefix,
                passage_prefix=settings.embedding_passage_prefix,
            )
        )
    return None


def uses_qdrant(settings: Settings) -> bool:
    return settings.vectors == "qdrant" or (settings.vectors == "auto" and bool(settings.qdrant_url))


def make_qdrant(settings: Settings) -> VectorIndex:
    return open_qdrant(
        settings.qdrant_url,
        api_key=settings.qdrant_api_key or None,
        prefix=settings.qdrant_prefix,
        timeout_seconds=settings.qdrant_timeout_seconds,
    )


async def _vectors(settings: Settings, storage: SqlStorage) -> VectorIndex:
    if settings.vectors == "qdrant" or uses_qdrant(settings):
        return make_qdrant(settings)
    return await open_vectors(
        storage, kind=settings.vectors, cache_bytes=settings.search_cache_mb * _MIB, late_seconds=_LATE_SECONDS
    )


def make_memory_search(common: Common, indexing: Indexing) -> MemorySearch:
    """Return the search of memories; nothing is read yet."""
    return MemorySearch(
        cache=MemorySearchCache(storage=common.storage, clock=common.clock),
        meaning=indexing.memories,
        embedder=indexing.embedder,
        clock=common.clock,
        jobs=common.jobs,
        telemetry=common.telemetry,
    )
