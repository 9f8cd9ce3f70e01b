"""The embedder, the vectors, and what keeps indexes in step."""

from contextlib import AsyncExitStack
from dataclasses import dataclass

from roomlore.adapters.embedding import open_offline, open_openai
from roomlore.adapters.inprocess.remembered import RememberedEmbedder
from roomlore.adapters.qdrant import open_qdrant
from roomlore.adapters.sql import SqlStorage
from roomlore.adapters.sql.vector_choice import open_vectors
from roomlore.core.linking import LinkModel
from roomlore.ports.coordination import Clock, Ids, Jobs, Telemetry
from roomlore.ports.indexing import INDEXING, RELINKING
from roomlore.ports.language import Embedder
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
from roomlore.services.messages import VectorsDue
from roomlore.settings import Settings

_SWEEP_SECONDS = 15.0
_LATE_SECONDS = 1.0
"""Vectors are made behind the callers' backs anyway; the words of a message are found at once."""
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Indexing:
    """What finds messages, and memories, by meaning, and what keeps the indexes. `embedder`: None where meanings are
    not known."""

    embedder: Embedder | None
    index: IndexingService
    dense: DenseSearch
    memories: DenseSearch
    due: VectorsDue
    vectors: VectorIndex | None
    """None where no embedder is configured."""


async def make_indexing(
    settings: Settings,
    storage: SqlStorage,
    embedder: Embedder | None,
    *,
    model: LinkModel,
    clock: Clock,
    ids: Ids,
    telemetry: Telemetry,
    jobs: Jobs,
    closing: AsyncExitStack,
    background: bool,
) -> Indexing:
    """`model`: that links messages. `embedder`: one of the caller's, in the place of the one that the settings name."""
    embedder = embedder or make_embedder(settings)
    vectors = None
    if embedder is not None:
        closing.push_async_callback(embedder.close)
        vectors = await _vectors(settings, storage)
        closing.push_async_callback(vectors.close)
    kinds: tuple[Indexed, Indexed] = (IndexedMessages(), IndexedMemories())
    meaning = embedder.model if embedder else None
    standings = [Standings(storage=storage, clock=clock, model=meaning, indexed=kind) for kind in kinds]
    index = IndexingService(
        storage=storage,
        words=WordIndexing(storage=storage, clock=clock, ids=ids),
        vectors=[
            VectorIndexing(
                indexed=kind,
                storage=storage,
                vectors=vectors,
                embedder=embedder,
                clock=clock,
                ids=ids,
                telemetry=telemetry,
                lease_seconds=settings.index_lease_seconds,
            )
            for kind in kinds
            if embedder and vectors
        ],
        links=LinkIndexing(
            storage=storage, model=model, clock=clock, ids=ids, lease_seconds=settings.index_lease_seconds
        ),
        model=meaning,
        standings=standings,
        clock=clock,
    )
    if background:
        jobs.handle(INDEXING, index.catch_up, every_seconds=_SWEEP_SECONDS)
        jobs.handle(RELINKING, index.relink_slowly, every_seconds=_SWEEP_SECONDS)
    messages, memories = (
        DenseSearch(
            collection=kind.collection, embedder=embedder, vectors=vectors, standings=its, clock=clock, jobs=jobs
        )
        for kind, its in zip(kinds, standings, strict=True)
    )
    return Indexing(
        embedder=embedder,
        index=index,
        dense=messages,
        memories=memories,
        due=VectorsDue(embedding=embedder is not None, jobs=jobs),
        vectors=vectors,
    )


def make_embedder(settings: Settings) -> Embedder | None:
    """The one that the settings name; nothing is asked of it yet."""
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
