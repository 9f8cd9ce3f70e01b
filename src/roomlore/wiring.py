"""From settings to adapters to services: the one place that knows them all."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from roomlore.adapters.inprocess.clock import SystemClock
from roomlore.adapters.inprocess.ids import TimeOrderedIds
from roomlore.adapters.inprocess.telemetry import PrometheusTelemetry
from roomlore.adapters.sql import connect
from roomlore.adapters.tokens import EncodingTokens
from roomlore.adapters.weights import load_link_model
from roomlore.core.context import ContextOptions
from roomlore.core.errors import InvalidInput
from roomlore.core.intake import Limits
from roomlore.core.linking import LinkModel
from roomlore.core.models import DEFAULT_TENANT
from roomlore.importers import open_import
from roomlore.ports.coordination import Clock, Ids
from roomlore.ports.language import TokenCounter
from roomlore.ports.storage import Storage
from roomlore.services.contexts import ContextService, TuningService, UsageRecorder
from roomlore.services.imports import ImportService
from roomlore.services.keys import KeyService
from roomlore.services.messages import Ingest, MessageService, RoomCache
from roomlore.services.rooms import RoomService
from roomlore.settings import Settings, context_options


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


class Lore:
    """One tenant's view of roomlore: `messages`, `context`, `rooms`, `keys`, `imports`, `tuning`."""

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
            ),
            tokens=shared.tokens,
            clock=shared.clock,
            telemetry=shared.telemetry,
            limits=_limits(shared.settings),
        )
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


@asynccontextmanager
async def open_lore(
    url: str | None = None, *, tenant: str = DEFAULT_TENANT, settings: Settings | None = None
) -> AsyncIterator[Lore]:
    """Opens roomlore on a database, making it if it is new, and closes it when the block ends.

    `url`: `sqlite:///path`, `sqlite://` (memory), `postgresql://...`, or a path that ends in .db; by default the
    setting `database_url`. Raises `InvalidInput` for bad settings, `StorageUnavailable`.
    """
    settings = settings or Settings()
    storage = await connect(url or settings.database_url)
    clock = SystemClock()
    telemetry = PrometheusTelemetry(clock)
    recorder = UsageRecorder(storage=storage, telemetry=telemetry)
    resources = Resources(
        settings=settings,
        options=context_options(settings),
        storage=storage,
        tokens=EncodingTokens(settings.token_encoding),
        model=load_link_model(),
        clock=clock,
        ids=TimeOrderedIds(),
        telemetry=telemetry,
        rooms=RoomCache(size=settings.room_cache_size, telemetry=telemetry),
        recorder=recorder,
    )
    try:
        yield Lore(resources, tenant)
    finally:
        await recorder.close()
        await storage.close()
