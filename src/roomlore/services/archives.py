"""Retention: old messages go into archives, and can be brought back.

An archive is one file of JSON lines, packed with gzip, as `roomlore export` writes them. Its row is stored before the
file is written, and the messages are erased after the file is durable, in the transaction that marks the row as kept.
So a kill at any instant loses nothing: what is left over is known by its row, and removed by the next run. A run whose
lease was lost finds its row in another phase, and erases nothing.
"""

import asyncio
import gzip
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from roomlore.core.errors import Conflict, InvalidInput, NotFound, StorageDamaged, StorageUnavailable
from roomlore.core.intake import as_stored, carried
from roomlore.core.json_values import texts_in
from roomlore.core.linking.model import LinkModel
from roomlore.core.linking.room import linked_alone
from roomlore.core.models import Entry, StoredMessage
from roomlore.core.records import Record, from_record, to_line
from roomlore.ports.archives import ArchiveFiles
from roomlore.ports.durable import DurableWork, Json, Steps, Ticks, Times, work_name
from roomlore.ports.paging import evolution_pages
from roomlore.ports.shared import Backends, Service
from roomlore.ports.verbs import DueWork
from roomlore.storage import Storage
from roomlore.storage.values import Archive

RETENTION = "retention"
_MESSAGES = 2_000
_PAGE = 200
_LEASE, _LEASE_TIME = "archives", timedelta(minutes=5)
_WAIT_SECONDS = 30.0
_LOOK_SECONDS = 0.2
MAX_DAYS = 36_500


@dataclass(frozen=True, slots=True)
class ArchiveReport:
    """The result of a run. `rooms`, `messages`, `archives`: how many were archived or brought back. `records`:
    evolutions whose raw answers were removed."""

    rooms: int = 0
    messages: int = 0
    archives: int = 0
    records: int = 0


class Archiver(Service):
    """Archive and bring back messages, for all tenants. One run of a tenant at a time: a lease keeps others away."""

    def __init__(self, backends: Backends, *, files: ArchiveFiles, model: LinkModel, due: DueWork) -> None:
        super().__init__(backends)
        self._files = files
        self._model = model
        self._due = due

    async def archive(self, *, tenant: str, days: int, room_id: str | None = None) -> ArchiveReport:
        """Archive the messages that were sent more than so many days ago, of one room or all."""
        before = self._clock.now() - timedelta(days=days)
        rooms = messages = archives = 0
        async with self._alone(tenant) as holder:
            await self._tidy(tenant)
            async for room in self._rooms_due(tenant, before, room_id):
                took = 0
                while count := await self._archive_some(tenant, room, before):
                    took, archives = took + count, archives + 1
                    await self._extend(tenant, holder)
                rooms, messages = rooms + bool(took), messages + took
        return ArchiveReport(rooms, messages, archives)

    async def restore(self, *, tenant: str, archives: Sequence[Archive]) -> ArchiveReport:
        """Bring messages back to their places, and delete the files; without archives that others brought back."""
        messages = 0
        async with self._alone(tenant) as holder:
            await self._tidy(tenant)
            kept = {kept_archive.archive_id for kept_archive in await self.kept(tenant)}
            left = [candidate for candidate in archives if candidate.archive_id in kept]
            for archive in left:
                messages += await self._bring_back(tenant, archive)
                await self._extend(tenant, holder)
        return ArchiveReport(len({restored.room_id for restored in left}), messages, len(left))

    async def kept(self, tenant: str, room_id: str | None = None) -> list[Archive]:
        """Return the archives of the tenant, or of one room, the oldest first."""
        archives: list[Archive] = []
        while True:
            after = archives[-1].archive_id if archives else ""
            async with self._storage.reading(tenant) as work:
                page = await work.archives.page(room_id=room_id, after=after, limit=_PAGE)
            archives += page
            if len(page) < _PAGE:
                return [archive for archive in archives if archive.phase == "kept"]

    async def lines(self, archive: Archive) -> list[bytes]:
        """Return the lines of an archive. Raise `NotFound` if its file is missing, `StorageDamaged` if it is not the
        one that was written."""
        content = await asyncio.to_thread(self._files.read, archive.file)
        if hashlib.sha256(content).hexdigest() != archive.checksum:
            raise StorageDamaged("archive_damaged", file=archive.file)
        return (await asyncio.to_thread(gzip.decompress, content)).splitlines(keepends=True)

    async def damage(self, archive: Archive) -> str:
        """Return what is wrong with the file of an archive, in a sentence; '' if nothing is."""
        try:
            await self.lines(archive)
        except NotFound:
            return f"The archive {archive.file} is not there."
        except StorageDamaged:
            return f"The archive {archive.file} was changed or damaged."
        except StorageUnavailable as error:
            return str(error)
        return ""

    async def messages_of(self, *, tenant: str, user_id: str) -> int:
        """Return how many messages of the person are in archives."""
        count = 0
        for archive in await self.kept(tenant):
            records = await asyncio.to_thread(_read, await self._lines_left(tenant, archive))
            count += sum(record.message.sender_id == user_id for record in records)
        return count

    async def bring_back(
        self, *, tenant: str, user_id: str, names: Collection[str], tells: Callable[[str], bool]
    ) -> int:
        """Bring back every archive of a room in which the person spoke, and every other one that has their id, a name
        of theirs, or a text that tells of them."""
        about = await self._about(tenant, user_id, names, tells)
        if about:
            await self.restore(tenant=tenant, archives=about)
        return len(about)

    async def delete_all(self, *, tenant: str, room_id: str) -> None:
        """Delete every archive of a room that nobody sees any more, with its file."""
        async with self._storage.reading(tenant) as work:
            if not await work.archives.page(room_id=room_id, after="", limit=1):
                return
        async with self._alone(tenant):
            for archive in await self.kept(tenant, room_id):
                async with self._storage.writing(tenant) as work:
                    await work.archives.turn(archive_id=archive.archive_id, phase="gone", was="kept")
            await self._tidy(tenant)

    async def bring_back_messages(self, *, tenant: str, room_id: str, message_ids: Sequence[str]) -> int:
        """Bring back the archives that hold these messages."""
        async with self._storage.reading(tenant) as work:
            of_messages = await work.archives.of_messages(room_id=room_id, message_ids=message_ids)
        holding = set(of_messages.values())
        if holding:
            archives = [archive for archive in await self.kept(tenant, room_id) if archive.archive_id in holding]
            await self.restore(tenant=tenant, archives=archives)
        return len(holding)

    async def _about(
        self, tenant: str, user_id: str, known: Collection[str], tells: Callable[[str], bool]
    ) -> list[Archive]:
        archives = await self.kept(tenant)
        if not archives:
            return []
        async with self._storage.reading(tenant) as work:
            rooms = {one.room_id for one in await work.maintenance.rooms_of(user_id=user_id)}
        names = {user_id, *known}
        for archive in archives:
            for record in await asyncio.to_thread(_read, await self._lines_left(tenant, archive)):
                if record.message.sender_id == user_id:
                    rooms.add(archive.room_id)
                    names.add(record.message.sender_name)
        names.discard("")
        return [
            candidate
            for candidate in archives
            if candidate.room_id in rooms
            or await asyncio.to_thread(_has, await self._lines_left(tenant, candidate), names, tells)
        ]

    async def _lines_left(self, tenant: str, archive: Archive) -> list[bytes]:
        """Return the lines of an archive; none if others brought it back meanwhile."""
        try:
            return await self.lines(archive)
        except NotFound:
            if archive in await self.kept(tenant, archive.room_id):
                raise
            return []

    async def _rooms_due(self, tenant: str, before: datetime, room_id: str | None) -> AsyncIterator[str]:
        if room_id is not None:
            yield room_id
            return
        after = ""
        while True:
            async with self._storage.reading(tenant) as work:
                page = await work.archives.rooms_due(before=before, after=after, limit=_PAGE)
            for room in page:
                yield room
            if len(page) < _PAGE:
                return
            after = page[-1]

    async def _archive_some(self, tenant: str, room_id: str, before: datetime) -> int:
        """Move a part of the room into one archive, and return how many messages it has."""
        async with self._storage.reading(tenant) as work:
            messages = await work.archives.due(room_id=room_id, before=before, limit=_MESSAGES)
        if not messages:
            return 0
        content = await asyncio.to_thread(_packed, messages)
        archive_id = self._ids.new()
        owner = hashlib.sha256(tenant.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        archive = Archive(
            archive_id=archive_id,
            room_id=room_id,
            phase="writing",
            file=f"{owner}/{archive_id}.jsonl.gz",
            first_arrival=messages[0].arrival,
            last_arrival=messages[-1].arrival,
            messages=len(messages),
            bytes=len(content),
            checksum=hashlib.sha256(content).hexdigest(),
            archived_at=self._clock.now(),
        )
        async with self._storage.writing(tenant) as work:
            await work.archives.add(archive=archive)
        await asyncio.to_thread(self._files.write, archive.file, content)
        if await self._erase(tenant, archive, messages, before):
            return len(messages)
        await self._tidy(tenant)
        return await self._archive_some(tenant, room_id, before)

    async def _erase(self, tenant: str, archive: Archive, messages: Sequence[StoredMessage], before: datetime) -> bool:
        """Erase the messages that the file has, unless one of them was changed or the file was removed meanwhile."""
        its = archive.archive_id
        async with self._storage.writing(tenant) as work:
            if await work.rooms.lock_known(room_id=archive.room_id) is None:
                return False
            if await work.archives.due(room_id=archive.room_id, before=before, limit=_MESSAGES) != list(messages):
                return False
            if not await work.archives.turn(archive_id=its, phase="kept", was="writing"):
                return False
            arrivals = [message.arrival for message in messages]
            entries = await work.messages.by_id(
                room_id=archive.room_id, message_ids=[message.id for message in messages]
            )
            await work.messages.erase(room_id=archive.room_id, arrivals=arrivals, now=archive.archived_at)
            await self._due.note(work, archive.room_id, entries)
        self._due.announce()
        return True

    async def _bring_back(self, tenant: str, archive: Archive) -> int:
        records = await asyncio.to_thread(_read, await self.lines(archive))
        async with self._storage.writing(tenant) as work:
            room = await work.rooms.lock_known(room_id=archive.room_id)
            if not await work.archives.turn(archive_id=archive.archive_id, phase="gone", was="kept"):
                return 0  # another process was faster
            entries: list[Entry] = []
            if room is not None:  # else only the file is left, and goes
                erased = await work.archives.erased(room_id=archive.room_id, archive=archive)
                entries = await asyncio.to_thread(self._entries, records, erased)
                await work.messages.restore(room_id=archive.room_id, entries=entries)
                await self._due.note(work, archive.room_id, entries)
        self._due.announce()
        await self._tidy(tenant)
        return len(entries)

    def _entries(self, records: Iterable[Record], erased: dict[str, int]) -> list[Entry]:
        """Return the messages in their places. Features and links are worked out again, among themselves."""
        stored = [record for record in records if record.message.id in erased]
        stored.sort(key=lambda record: erased[record.message.id])
        counts = self._tokens.count([record.message.text for record in stored])
        now = self._clock.now()
        return linked_alone(
            self._model,
            [
                as_stored(carried(record), arrival=erased[record.message.id], tokens=tokens, previous=None, now=now)
                for record, tokens in zip(stored, counts, strict=True)
            ],
        )

    async def _tidy(self, tenant: str) -> None:
        """Delete the files of archives whose writing was broken off, or whose messages are back."""
        after = ""
        while True:
            async with self._storage.reading(tenant) as work:
                page = await work.archives.page(room_id=None, after=after, limit=_PAGE)
            for archive in page:
                if archive.phase != "kept" and await self._given_up(tenant, archive):
                    await asyncio.to_thread(self._files.delete, archive.file)
                    async with self._storage.writing(tenant) as work:
                        await work.archives.drop(archive_id=archive.archive_id)
            if len(page) < _PAGE:
                return
            after = page[-1].archive_id

    async def _given_up(self, tenant: str, archive: Archive) -> bool:
        """Return True if the file can be deleted: nobody may erase its messages from now on."""
        if archive.phase == "gone":
            return True
        async with self._storage.writing(tenant) as work:
            return await work.archives.turn(archive_id=archive.archive_id, phase="gone", was="writing")

    @asynccontextmanager
    async def _alone(self, tenant: str) -> AsyncIterator[str]:
        """Hold the lease on the tenant's archives. Raise `Conflict` if another holds it for long."""
        holder = self._ids.new()
        until = self._clock.monotonic() + _WAIT_SECONDS
        while not await self._extend(tenant, holder):
            if self._clock.monotonic() >= until:
                raise Conflict("archiving_elsewhere")
            await asyncio.sleep(_LOOK_SECONDS)
        try:
            yield holder
        finally:
            async with self._storage.writing(tenant) as work:
                await work.progress.free_lease(name=_LEASE, holder=holder)

    async def _extend(self, tenant: str, holder: str) -> bool:
        now = self._clock.now()
        async with self._storage.writing(tenant) as work:
            return await work.progress.take_lease(name=_LEASE, holder=holder, now=now, until=now + _LEASE_TIME)


class Retention(Service):
    """The retention of all tenants, by a schedule. `days`: None if messages stay; `record_days`: None if the raw
    answers of models stay. `times`: None if there is nothing to do."""

    def __init__(
        self,
        backends: Backends,
        *,
        durable: DurableWork,
        archiver: Archiver,
        times: Times | None,
        days: int | None,
        record_days: int | None,
    ) -> None:
        super().__init__(backends)
        self._durable = durable
        self._archiver = archiver
        self._ticks = Ticks(storage=backends.storage, clock=backends.clock, times=times, mark=RETENTION)
        self._days = days
        self._record_days = record_days

    async def sweep(self) -> list[str]:
        """Enqueue the work of the last scheduled time, unless that was done, and return the ids of the work."""
        due = await self._ticks.due()
        if due is None:
            return []
        async with self._storage.reading() as work:
            tenants = await work.tenants.all()
        enqueued = []
        for tenant in tenants:
            work_id = work_name(tenant, RETENTION, f"{due.tick:011d}")
            partition = work_name(tenant, RETENTION, "all")
            await self._durable.start(RETENTION, work_id=work_id, partition=partition, arguments={"tenant": tenant})
            enqueued.append(work_id)
        await self._ticks.handled(due)
        return enqueued

    async def work(self, steps: Steps, arguments: Json) -> None:
        """Do what is due for a tenant, as durable work. Begun again after a kill, it goes on with what is left."""
        done = await self.run(str(arguments["tenant"]))
        await steps.report(f"archived {done.messages} messages; removed the raw answers of {done.records} records")

    async def run(self, tenant: str) -> ArchiveReport:
        """Do what is due for a tenant now."""
        done = ArchiveReport()
        if self._days is not None:
            done = await self._archiver.archive(tenant=tenant, days=self._days)
        if self._record_days is not None:
            before = self._clock.now() - timedelta(days=self._record_days)
            done = replace(done, records=await self._expire_records(tenant, before))
        return done

    async def _expire_records(self, tenant: str, before: datetime) -> int:
        """Remove the raw answers of evolutions. The records stay, since memories and their log name them."""
        count = 0
        async for page in evolution_pages(self._storage, tenant):
            due = [
                evolution
                for evolution in page
                if evolution.finished_at < before and (evolution.raw_answer or evolution.quarantined)
            ]
            if due:
                count += await self._empty(tenant, [evolution.evolution_id for evolution in due])
        return count

    async def _empty(self, tenant: str, evolution_ids: Sequence[str]) -> int:
        async with self._storage.writing(tenant) as work:
            records = await work.maintenance.lock_evolutions(evolution_ids=evolution_ids)
            for record in records:
                emptied = replace(record, raw_answer="", quarantined=())
                await work.maintenance.rewrite_evolution(evolution=emptied)
            return len(records)


class ArchiveService:
    """The archives of one tenant."""

    def __init__(self, *, tenant: str, storage: Storage, archiver: Archiver) -> None:
        self._tenant = tenant
        self._storage = storage
        self._archiver = archiver

    async def run(self, *, days: int, room_id: str | None = None) -> ArchiveReport:
        """Archive the messages that were sent more than `days` days ago, of one room or all. Raise `InvalidInput`,
        `NotFound` for an unknown room, `StorageUnavailable` if a file cannot be written: then nothing is erased."""
        if isinstance(days, bool) or not isinstance(days, int) or not 0 <= days <= MAX_DAYS:
            raise InvalidInput("number_to_give_outside", name="days", value=f"{days!r:.60}", most=MAX_DAYS)
        if room_id is not None:
            async with self._storage.reading(self._tenant) as work:
                await work.rooms.get(room_id=room_id)
        return await self._archiver.archive(tenant=self._tenant, days=days, room_id=room_id)

    async def kept(self, room_id: str | None = None) -> list[Archive]:
        """Return the archives, or those of one room, the oldest first."""
        return await self._archiver.kept(self._tenant, room_id)

    async def restore(self, archive_id: str | None = None, *, room_id: str | None = None) -> ArchiveReport:
        """Bring the messages of one archive back, or of all archives of a room, and delete the files. The next run
        archives them again, unless the retention is changed. Raise `NotFound` for an unknown archive or a missing file,
        `StorageDamaged` for a damaged one, `InvalidInput`."""
        if (archive_id is None) == (room_id is None):
            raise InvalidInput("archive_not_named")
        archives = await self._archiver.kept(self._tenant, room_id)
        chosen = [archive for archive in archives if archive_id in (None, archive.archive_id)]
        if archive_id is not None and not chosen:
            raise NotFound("archive_unknown", archive=f"{archive_id!r:.80}")
        return await self._archiver.restore(tenant=self._tenant, archives=chosen)

    async def check(self) -> list[str]:
        """Return what is wrong with the files of the archives, one sentence each; empty if nothing is."""
        return [
            why for archive in await self._archiver.kept(self._tenant) if (why := await self._archiver.damage(archive))
        ]


def _packed(messages: Sequence[StoredMessage]) -> bytes:
    return gzip.compress(b"".join(map(to_line, messages)), mtime=0)


def _read(lines: Iterable[bytes]) -> list[Record]:
    return [from_record(json.loads(line)) for line in lines]


def _has(lines: Iterable[bytes], names: set[str], tells: Callable[[str], bool]) -> bool:
    """Return True if a text in these lines has one of the names, or tells of the person."""
    texts = (text for line in lines for text in texts_in(json.loads(line)))
    return any(tells(text) or any(name in text for name in names) for text in texts)
