"""One tenant's view of roomlore, and opening it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from datetime import datetime
from functools import cached_property
from os import PathLike, fspath
from typing import TypeVar, Unpack

from roomlore import services
from roomlore.core import DEFAULT_TENANT
from roomlore.core.digest.digest import DIGEST_TOKENS, Digest
from roomlore.core.digest.overview import Overview
from roomlore.core.errors import InvalidInput
from roomlore.core.evolution.requests import Mode
from roomlore.core.experiments import Experiment
from roomlore.core.health import Finding
from roomlore.core.memory.versions import AddedFact
from roomlore.core.memory.writing import MemoryFields, NewMemory
from roomlore.core.models import Room
from roomlore.core.search.hits import SearchAnswer
from roomlore.ports.coordination import Telemetry
from roomlore.ports.verbs import DueWork
from roomlore.services.contexts import ContextService, TuningService, UsageService
from roomlore.services.indexing import IndexingService
from roomlore.services.jobs import JobService
from roomlore.services.messages import Ingest, MessageSearch, MessageService, RoomsSearch, SearchFilters, Searching
from roomlore.services.models import ModelService
from roomlore.services.quotas import QuotaService
from roomlore.services.sessions import SessionService
from roomlore.settings import Settings
from roomlore.settings.registry import importers
from roomlore.storage import Storage, connect, is_in_memory
from roomlore.wiring.doctor import diagnose
from roomlore.wiring.import_processes import Given, ThisProcess, import_processes
from roomlore.wiring.naming import scope_about
from roomlore.wiring.resources import Closing, Own, OwnBackends, Resources, make_resources

_Search = TypeVar("_Search", bound=Searching)


class Lore:
    """One tenant's view of roomlore: the plain verbs `remember`, `ask` and `digest`; and `messages`, `links`,
    `context`, `usage`, `sessions`, `memories`, `recall`, `privacy`, `rooms`, `keys`, `quotas`, `archives`, `imports`,
    `tuning`, `evaluation`, and `index` and `models`, which all tenants share. Each is built when it is first used."""

    def __init__(self, resources: Resources, tenant: str) -> None:
        if not tenant or not isinstance(tenant, str):
            raise InvalidInput("tenant_invalid", value=repr(tenant))
        self._resources = resources
        self.tenant = tenant

    @cached_property
    def messages(self) -> MessageService:
        return self._messages(self._ingest_now)

    @cached_property
    def links(self) -> "services.links.LinkService":
        shared = self._resources
        return services.links.LinkService(shared, tenant=self.tenant, model=shared.model, moves=shared.moves)

    @cached_property
    def index(self) -> IndexingService:
        return self._resources.indexing.index

    @cached_property
    def context(self) -> ContextService:
        shared = self._resources
        return ContextService(
            shared,
            tenant=self.tenant,
            recorder=shared.recorder,
            past=self._search.before,
            options=shared.options,
            experiment=Experiment(shared.settings.context.experiment),
            zone=shared.settings.search.zone,
            recording=shared.settings.context.enable_async_data_collection,
            strategies=shared.strategies,
            rooms=shared.rooms,
        )

    @cached_property
    def usage(self) -> UsageService:
        return UsageService(self._resources, tenant=self.tenant, recorder=self._resources.recorder)

    @cached_property
    def sessions(self) -> SessionService:
        shared = self._resources
        return SessionService(
            tenant=self.tenant, parts=shared.sessions, writer=self._ingest_now.add, later=shared.summaries
        )

    @cached_property
    def memories(self) -> "services.memories.MemoryService":
        shared = self._resources
        return services.memories.MemoryService(
            shared,
            tenant=self.tenant,
            writer=services.memories.MemoryWriter(
                shared, tenant=self.tenant, cache=shared.in_force, zone=self.settings.search.zone
            ),
            past=services.memories.MemoryPast(shared, tenant=self.tenant),
            reviser=services.memories.Reviser(shared, tenant=self.tenant, cache=shared.in_force),
            read_memories=importers().read_memories,
            evolver=shared.evolver,
            searcher=shared.searcher.search,
        )

    @cached_property
    def recall(self) -> "services.recall.RecallService":
        return services.recall.RecallService(tenant=self.tenant, parts=self._resources.recall)

    @cached_property
    def models(self) -> ModelService:
        return self._resources.models

    @cached_property
    def jobs(self) -> JobService:
        shared = self._resources
        return JobService(
            tenant=self.tenant,
            durable=shared.durable,
            sweeps=shared.sweeps,
            clock=shared.clock,
            telemetry=shared.telemetry,
            shared=shared.shares_work,
        )

    @cached_property
    def replies(self) -> "services.replies.ReplyService":
        shared = self._resources
        counting = self._ingest(shared.due, refuses=False)  # a reply that was paid for is stored
        return services.replies.ReplyService(
            tenant=self.tenant,
            parts=shared.replies,
            messages=self._messages(counting),
            contexts=self.context,
            sessions=SessionService(
                tenant=self.tenant, parts=shared.sessions, writer=counting.add, later=shared.summaries
            ),
            recalls=shared.recalls,
        )

    @cached_property
    def privacy(self) -> "services.privacy.PrivacyService":
        shared = self._resources
        return services.privacy.PrivacyService(
            tenant=self.tenant,
            storage=shared.storage,
            forgetter=shared.forgetter,
            forgettings=shared.forgettings,
            verifier=shared.verifier,
        )

    @cached_property
    def rooms(self) -> "services.rooms.RoomService":
        shared = self._resources
        return services.rooms.RoomService(
            shared,
            tenant=self.tenant,
            options=shared.options,
            move_mark=self._move_mark,
            deletions=lambda: shared.room_deletions,
        )

    async def _move_mark(self, room_id: str, user_id: str, message_id: str | None) -> int:
        marks = services.digest.ReadingMarks(self._resources, tenant=self.tenant)
        return await marks.move(room_id, user_id, message_id)

    @cached_property
    def keys(self) -> "services.keys.KeyService":
        return services.keys.KeyService(self._resources, tenant=self.tenant)

    @cached_property
    def quotas(self) -> QuotaService:
        return QuotaService(self._resources, tenant=self.tenant, keeper=self._resources.quotas)

    @cached_property
    def archives(self) -> "services.archives.ArchiveService":
        shared = self._resources
        return services.archives.ArchiveService(tenant=self.tenant, storage=shared.storage, archiver=shared.archiver)

    @cached_property
    def imports(self) -> "services.imports.ImportService":
        shared = self._resources
        return services.imports.ImportService(
            shared,
            tenant=self.tenant,
            messages=self.messages,
            links=self.links,
            limits=shared.limits,
            find_exports=importers().find,
            keep_apart=importers().keep_apart,
            open_export=importers().open_import,
            time_zone=shared.settings.search.zone.key,
            in_processes=self._in_processes,
            describer=shared.describer,
        )

    def _in_processes(self, count: int) -> "AbstractAsyncContextManager[services.imports.Adding]":
        shared = self._resources
        if count == 1 or is_in_memory(shared.url):
            return nullcontext(ThisProcess(self._ingest(shared.imports_due), shared.telemetry).add)
        given = Given(
            url=shared.url,
            tenant=self.tenant,
            encoding=shared.settings.context.token_encoding,
            room_cache_bytes=shared.rooms.size_bytes,
            embedding=shared.indexing.embedder is not None,
            quotas=shared.settings.quotas.limits(),
            link_kernel=shared.settings.work.link_kernel,
        )
        return import_processes(count, given=given, due=shared.imports_due, telemetry=shared.telemetry)

    @cached_property
    def tuning(self) -> TuningService:
        return TuningService(tenant=self.tenant, storage=self._resources.storage, options=self._resources.options)

    @cached_property
    def evaluation(self) -> "services.evaluation.EvaluationService":
        shared = self._resources
        return services.evaluation.EvaluationService(
            shared,
            tenant=self.tenant,
            model=shared.model,
            options=shared.options,
            messages=self.messages,
            remembers=self.memories.search,
            digest=self.digest,
            contexts=self.context,
        )

    @cached_property
    def _digests(self) -> "services.digest.DigestService":
        shared = self._resources
        return services.digest.DigestService(shared, tenant=self.tenant, model=shared.model, writing=shared.writing)

    @cached_property
    def _overviews(self) -> "services.digest.OverviewService":
        return services.digest.OverviewService(self._resources, tenant=self.tenant, model=self._resources.model)

    @cached_property
    def _ingest_now(self) -> Ingest:
        return self._ingest(self._resources.due)

    def _ingest(self, due: DueWork, *, refuses: bool = True) -> Ingest:
        shared = self._resources
        return Ingest(
            shared,
            tenant=self.tenant,
            model=shared.model,
            rooms=shared.rooms,
            due=due,
            quotas=shared.quotas,
            refuses=refuses,
            one_writer=shared.one_writer,
        )

    def _messages(self, ingest: Ingest) -> MessageService:
        shared = self._resources
        return MessageService(
            shared,
            tenant=self.tenant,
            ingest=ingest,
            limits=shared.limits,
            due=shared.indexing.due,
            edits=shared.edits_due,
            search=self._search,
            search_rooms=self._searching(RoomsSearch),
            model=shared.model,
            archives=shared.archiver,
        )

    @cached_property
    def _search(self) -> MessageSearch:
        return self._searching(MessageSearch)

    def _searching(self, kind: type[_Search]) -> _Search:
        """Return a search of messages of this kind."""
        shared = self._resources
        return kind(
            shared,
            tenant=self.tenant,
            rooms=shared.rooms,
            facts=shared.facts,
            dense=shared.indexing.dense,
            zone=shared.settings.search.zone,
        )

    @property
    def settings(self) -> Settings:
        return self._resources.settings

    @property
    def storage(self) -> Storage:
        """The storage port, for code that brings its own queries: benches, backups, extensions."""
        return self._resources.storage

    @property
    def telemetry(self) -> Telemetry:
        """The port for measurements and spans."""
        return self._resources.telemetry

    def for_tenant(self, tenant: str) -> "Lore":
        """Return the same for another tenant, on the same connections."""
        return Lore(self._resources, tenant)

    def now(self) -> datetime:
        """Return the current time by roomlore's clock (aware, UTC)."""
        return self._resources.clock.now()

    def metrics(self) -> Mapping[str, float | None]:
        """Return the figures of this process under the names of the specification (`avg_context_build_time_ms`,
        ...)."""
        return self._resources.telemetry.metrics()

    def prometheus(self) -> bytes:
        """Return the same measurements as Prometheus text."""
        return self._resources.telemetry.render()

    def series(self, name: str) -> Sequence[tuple[Mapping[str, str], float]]:
        """Return the values of one metric, such as `roomlore_searches_total`: each with its labels. Raise
        `KeyError`."""
        return self._resources.telemetry.series(name)

    def bounds(self, name: str) -> tuple[float, ...]:
        """Return the upper bounds of a histogram's buckets, except the last. Raise `KeyError`."""
        return self._resources.telemetry.bounds(name)

    async def remember(
        self, about: Room | str, statement: str, *, viewer: str | None = None, **fields: Unpack[MemoryFields]
    ) -> AddedFact:
        """Remember a statement about a room, a person or an agent, and return the stored fact.

        `about`: a room, or the name or id of a room or a person; 'room:Crew', 'user:anna' or 'agent:bot' say which. A
        person's name alone is taken for the id of the only one who has it; after 'user:' stands an id, and if nobody
        has it, `notes` of the fact say who may be meant. `fields`: those of `NewMemory`, such as `valid_until`.
        `viewer`: 'room:team' or 'user:anna' adds it: what a room adds was said there now, and a name alone is a room's.
        A fact that exists in the same words, or by its `memory_id`, is returned as it is (`outcome`). Raise
        `InvalidInput` for a name that several have, `NotFound` for one that nobody has, `Conflict`,
        `StorageUnavailable`.
        """
        scope = await scope_about(self, about, viewer=viewer)
        new = NewMemory(scope=scope, statement=statement, **fields)
        return (await self.memories.add_told([new], viewer=viewer))[0]

    async def ask(
        self, room: Room | str | None, question: str, *, viewer: str | None = None, **filters: Unpack[SearchFilters]
    ) -> SearchAnswer:
        """Return the messages that answer a question, best first, each with its reason: of a room, by its id or name,
        or of all rooms for None. `viewer` and `filters`: those of `messages.search`, such as `since` and `limit`. Raise
        as it does, and `InvalidInput` for a name that several rooms have."""
        room_id = room.room_id if isinstance(room, Room) else room and await self.rooms.named(room, viewer=viewer)
        return await self.messages.search(room_id, question, viewer=viewer, **filters)

    async def digest(
        self,
        room_id: str,
        *,
        since: datetime | None = None,
        for_user: str | None = None,
        max_tokens: int = DIGEST_TOKENS,
        viewer: str | None = None,
        mode: Mode = "auto",
    ) -> Digest:
        """Return what happened in a room, thread by thread, in at most `max_tokens` tokens: first what concerns the
        reader, then decisions, open questions, and the rest by weight.

        It begins at `since`; else after the last message that `for_user` wrote or marked as read
        (`rooms.mark_read`); else a day before the room's newest message. Of more than 10,000 messages the newest are
        read. `for_user`: a sender id, or a name that one person of the room has. `viewer`, 'room:team' or 'user:anna':
        only what that room or person may see counts; without one everything is shown, and you decide to whom. `mode`:
        'offline' takes the messages' own sentences; 'auto' has the model of `digest_model` write, in the reader's
        language, if one of its providers has a key, and 'llm' raises `ModelUnavailable` if none has. What the model
        does not write in time, or not by the messages, is made as offline (`Digest.degraded`). Raise `InvalidInput`,
        `NotFound`, `StorageUnavailable`.
        """
        return await self._digests.make(
            room_id, since=since, for_user=for_user, max_tokens=max_tokens, viewer=viewer, mode=mode
        )

    async def overview(
        self, *, since: datetime, person: str | None = None, viewer: str | None = None, part: int = 1
    ) -> Overview:
        """Return what matters in all rooms since a time: what waits for a person (a sender id) and what was decided in
        the rooms of that person; without one, what was decided and which questions are open anywhere.

        Of many messages it looks at the newest (`Overview.back_to`); `part` 2 and so on, up to 100, look at those
        before. `viewer` as in `digest`. Raise `InvalidInput`, `StorageUnavailable`.
        """
        return await self._overviews.make(since=since, person=person, viewer=viewer, part=part)

    async def examine(self, *, timeout_seconds: float = 10.0) -> list[Finding]:
        """Return what `roomlore doctor` finds, for the database that is open here. No model and no embedder is asked,
        and the database's pages are not checked."""
        used = self.settings.changed(database_url=self._resources.url)
        return await diagnose(used, embed=False, integrity="off", timeout_seconds=timeout_seconds)

    async def ping(self) -> None:
        """Return when the database answers. Raise `StorageUnavailable`."""
        await self._resources.storage.ping()

    async def ready(self) -> None:
        """Return if the database answers and takes writes, which is tried every few seconds at most. Raise
        `StorageUnavailable`."""
        await self._resources.readiness.check()

    async def close(self) -> None:
        """Close the database and all else that was opened with it, for the views of other tenants too. Later calls
        raise `StorageUnavailable`; if `fallback_on_error` is on, a context is empty instead and says why in `degraded`.
        Closing again does nothing."""
        await self._resources.closing.aclose()


async def connect_lore(
    url: str | PathLike[str] | None = None,
    *,
    tenant: str = DEFAULT_TENANT,
    settings: Settings | None = None,
    background: bool = True,
    **own: Unpack[OwnBackends],
) -> Lore:
    """Open roomlore on a database with the arguments of `roomlore.open`, if no one block can hold it. End with
    `await lore.close()`; a client that was not closed warns with a `ResourceWarning`.

    Raises `InvalidInput` for bad settings, `StorageUnavailable`.
    """
    return await connect_with(Own(**own), url, tenant=tenant, settings=settings, background=background)


async def connect_with(
    own: Own,
    url: str | PathLike[str] | None,
    *,
    tenant: str,
    settings: Settings | None,
    background: bool,
    whole: bool = True,
) -> Lore:
    """Open roomlore with the caller's own backends, as `connect_lore`. `whole`: make and import everything now, so that
    no call waits for that."""
    if isinstance(url, Settings):
        raise InvalidInput("settings_by_position")
    settings = settings or Settings()
    url = fspath(url) if isinstance(url, PathLike) else url or settings.database.database_url
    closing = Closing()
    try:
        storage = await connect(url)
        closing.push_async_callback(storage.close)
        resources = await make_resources(
            settings, storage, url, own=own, closing=closing, background=background, whole=whole
        )
        if whole:
            _import_all()
        return Lore(resources, tenant)
    except BaseException:
        await closing.aclose()
        raise


def _import_all() -> None:
    for package in (services, importers()):
        for name in package.__all__:
            getattr(package, name)


@asynccontextmanager
async def open_for_command(settings: Settings, *, tenant: str) -> AsyncIterator[Lore]:
    """Open roomlore for one piece of work, without background work; a part that it does not use is not imported."""
    lore = await connect_with(Own(), None, tenant=tenant, settings=settings, background=False, whole=False)
    try:
        yield lore
    finally:
        await lore.close()


@asynccontextmanager
async def open_lore(
    url: str | PathLike[str] | None = None,
    *,
    tenant: str = DEFAULT_TENANT,
    settings: Settings | None = None,
    background: bool = True,
    **own: Unpack[OwnBackends],
) -> AsyncIterator[Lore]:
    """Open roomlore on a database, create it if it is new, and close it when the block ends.

    `url`: `sqlite:///path`, `sqlite://` (memory), `postgresql://...`, or a path that ends in .db, as text or as a
    `Path`; by default the setting `database_url`. `settings`: as in `settings=roomlore.Settings(auto_checkpoint=True)`;
    by default those of roomlore.yaml and the environment. `background`: keep indexes in step, make due checkpoints and
    run durable work in the background; if False, call `lore.index.drain()`, `lore.sessions.catch_up()` and
    `lore.jobs.catch_up()`.

    `own`: your own backends and strategies, such as `embedder` or `vectors`, see `OwnBackends`.

    Raise `InvalidInput` for bad settings, `StorageUnavailable`.
    """
    lore = await connect_with(Own(**own), url, tenant=tenant, settings=settings, background=background)
    try:
        yield lore
    finally:
        await lore.close()
