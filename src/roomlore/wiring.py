"""From settings to adapters to services: the one place that knows them all."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from roomlore.adapters.embedding import open_offline, open_openai
from roomlore.adapters.inprocess.clock import SystemClock
from roomlore.adapters.inprocess.ids import TimeOrderedIds
from roomlore.adapters.inprocess.jobs import InProcessJobs
from roomlore.adapters.inprocess.remembered import RememberedEmbedder
from roomlore.adapters.inprocess.telemetry import PrometheusTelemetry
from roomlore.adapters.qdrant import open_qdrant
from roomlore.adapters.sql import SqlStorage, connect
from roomlore.adapters.sql.vector_choice import open_vectors
from roomlore.adapters.tokens import EncodingTokens
from roomlore.adapters.weights import load_link_model
from roomlore.core.context import ContextOptions
from roomlore.core.errors import InvalidInput
from roomlore.core.intake import Limits
from roomlore.core.linking import LinkModel
from roomlore.core.models import DEFAULT_TENANT
from roomlore.importers import open_import
from roomlore.ports.coordination import Clock, Ids
from roomlore.ports.indexing import INDEXING
from roomlore.ports.language import Embedder, TokenCounter
from roomlore.ports.storage import Storage
from roomlore.ports.vectors import VectorIndex
from roomlore.services.contexts import ContextService, TuningService, UsageRecorder
from roomlore.services.imports import ImportService
from roomlore.services.indexing import IndexingService, Standings, VectorIndexing, WordIndexing
from roomlore.services.keys import KeyService
from roomlore.services.messages import (
    DenseSearch,
    FactsCache,
    Ingest,
    MessageSearch,
    MessageService,
    RoomCache,
    VectorsDue,
)
from roomlore.services.rooms import RoomService
from roomlore.settings import Settings, context_options

_SWEEP_SECONDS = 15.0
_LATE_SECONDS = 1.0
"""Vectors are made behind the callers' backs anyway; the words of a message are found at once."""
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Resources:
    """What all tenants of one process share."""

    settings: Settings
    options: ContextOptions
    storage: Storage
    tokens: TokenCounter
    model: LinkModel
    clock: Clock
    ids: Ids
    telemetry: PrometheusTelemetry
    rooms: RoomCache
    recorder: UsageRecorder
    facts: FactsCache
    dense: DenseSearch
    due: VectorsDue
    index: IndexingService


class Lore:
    """One tenant's view of roomlore: `messages`, `context`, `rooms`, `keys`, `imports`, `tuning`; and `index`, which
    all tenants share."""

    def __init__(self, resources: Resources, tenant: str) -> None:
        if not tenant or not isinstance(tenant, str):
            raise InvalidInput(f"A tenant is a non-empty string, not {tenant!r}; leave it out for the default one.")
        self._resources = shared = resources
        self.tenant = tenant
        self.messages = MessageService(
            tenant=tenant,
            storage=shared.storage,
            ingest=Ingest(
                tenant=tenant,
                storage=shared.storage,
                model=shared.model,
                tokens=shared.tokens,
                clock=shared.clock,
                rooms=shared.rooms,
                due=shared.due,
            ),
            tokens=shared.tokens,
            clock=shared.clock,
            telemetry=shared.telemetry,
            limits=_limits(shared.settings),
            due=shared.due,
            search=MessageSearch(
                tenant=tenant,
                storage=shared.storage,
                facts=shared.facts,
                dense=shared.dense,
                clock=shared.clock,
                telemetry=shared.telemetry,
                zone=ZoneInfo(shared.settings.time_zone),
            ),
        )
        self.index = shared.index
        self.context = ContextService(
            tenant=tenant,
            storage=shared.storage,
            clock=shared.clock,
            ids=shared.ids,
            telemetry=shared.telemetry,
            recorder=shared.recorder,
            options=shared.options,
            experiment=shared.settings.experiment,
            recording=shared.settings.enable_async_data_collection,
        )
        self.rooms = RoomService(tenant=tenant, storage=shared.storage, clock=shared.clock, options=shared.options)
        self.keys = KeyService(tenant=tenant, storage=shared.storage, clock=shared.clock, ids=shared.ids)
        self.imports = ImportService(
            tenant=tenant,
            storage=shared.storage,
            messages=self.messages,
            clock=shared.clock,
            limits=_limits(shared.settings),
            open_export=open_import,
        )
        self.tuning = TuningService(tenant=tenant, storage=shared.storage, clock=shared.clock, options=shared.options)

    @property
    def settings(self) -> Settings:
        return self._resources.settings

    @property
    def storage(self) -> Storage:
        """The storage port, for code that brings its own queries: benches, backups, extensions."""
        return self._resources.storage

    def for_tenant(self, tenant: str) -> "Lore":
        """The same for another tenant, on the same connections."""
        return Lore(self._resources, tenant)

    def metrics(self) -> Mapping[str, float | None]:
        """The figures of this process under the names of the specification (`avg_context_build_time_ms`, ...)."""
        return self._resources.telemetry.metrics()

    def prometheus(self) -> bytes:
        """The same measurements as Prometheus text."""
        return self._resources.telemetry.render()

    async def ping(self) -> None:
        """Returns when the database answers; raises `StorageUnavailable`."""
        await self._resources.storage.ping()


def _limits(settings: Settings) -> Limits:
    return Limits(text_chars=settings.max_text_chars, batch_messages=settings.max_batch_messages)


def _embedder(settings: Settings) -> Embedder | None:
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


async def _vectors(settings: Settings, storage: SqlStorage) -> VectorIndex:
    if settings.vectors == "qdrant" or (settings.vectors == "auto" and settings.qdrant_url):
        return open_qdrant(
            settings.qdrant_url,
            api_key=settings.qdrant_api_key or None,
            prefix=settings.qdrant_prefix,
            timeout_seconds=settings.qdrant_timeout_seconds,
        )
    return await open_vectors(
        storage, kind=settings.vectors, cache_bytes=settings.search_cache_mb * _MIB, late_seconds=_LATE_SECONDS
    )


@asynccontextmanager
async def open_lore(
    url: str | None = None,
    *,
    tenant: str = DEFAULT_TENANT,
    settings: Settings | None = None,
    embedder: Embedder | None = None,
    background: bool = True,
) -> AsyncIterator[Lore]:
    """Opens roomlore on a database, making it if it is new, and closes it when the block ends.

    `url`: `sqlite:///path`, `sqlite://` (memory), `postgresql://...`, or a path that ends in .db; by default the
    setting `database_url`. `embedder`: one of your own, in the place of the one that the settings name. `background`:
    whether indexes are kept in step behind the calls; if not, `lore.index.drain()` does it. Raises `InvalidInput` for
    bad settings, `StorageUnavailable`.
    """
    settings = settings or Settings()
    async with AsyncExitStack() as closing:
        storage = await connect(url or settings.database_url)
        closing.push_async_callback(storage.close)
        resources = await _resources(settings, storage, embedder or _embedder(settings), closing, background=background)
        yield Lore(resources, tenant)


async def _resources(
    settings: Settings, storage: SqlStorage, embedder: Embedder | None, closing: AsyncExitStack, *, background: bool
) -> Resources:
    clock, ids = SystemClock(), TimeOrderedIds()
    telemetry = PrometheusTelemetry(clock)
    vectors = None
    if embedder is not None:
        closing.push_async_callback(embedder.close)
        vectors = await _vectors(settings, storage)
        closing.push_async_callback(vectors.close)
    recorder = UsageRecorder(storage=storage, telemetry=telemetry)
    closing.push_async_callback(recorder.close)
    jobs = InProcessJobs(telemetry=telemetry)
    standings = Standings(storage=storage, clock=clock, model=embedder.model if embedder else None)
    index = IndexingService(
        storage=storage,
        words=WordIndexing(storage=storage, clock=clock, ids=ids),
        vectors=VectorIndexing(
            storage=storage,
            vectors=vectors,
            embedder=embedder,
            clock=clock,
            ids=ids,
            telemetry=telemetry,
            lease_seconds=settings.index_lease_seconds,
        )
        if embedder and vectors
        else None,
        model=embedder.model if embedder else None,
        standings=standings,
    )
    if background:
        jobs.handle(INDEXING, index.catch_up, every_seconds=_SWEEP_SECONDS)
    closing.push_async_callback(jobs.close)
    return Resources(
        settings=settings,
        options=context_options(settings),
        storage=storage,
        tokens=EncodingTokens(settings.token_encoding),
        model=load_link_model(),
        clock=clock,
        ids=ids,
        telemetry=telemetry,
        rooms=RoomCache(size=settings.room_cache_size, telemetry=telemetry),
        recorder=recorder,
        facts=FactsCache(size_bytes=settings.search_cache_mb * _MIB // 4),
        dense=DenseSearch(embedder=embedder, vectors=vectors, standings=standings, clock=clock, jobs=jobs),
        due=VectorsDue(embedding=embedder is not None, jobs=jobs),
        index=index,
    )
