"""The verb of `lore.imports`: read a chat export into the store, resumable and past bad lines."""

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from roomlore.core.attachments import Attachment, attachments_of, with_descriptions
from roomlore.core.audience import (
    BEGINNING,
    kind_learned,
    kinds_before,
    moves_by_id,
    stays_learned,
)
from roomlore.core.errors import Conflict, InvalidInput, NotFound, QuotaExceeded
from roomlore.core.intake import MAX_ROOM_NAME, Estimates, IntakeResult, Limits, carried, check, content_hash
from roomlore.core.models import CorrectedEntry, Correction, Message, StoredMessage
from roomlore.core.quotas import import_stopped
from roomlore.core.records import (
    Bad,
    ImportReport,
    Item,
    Parsed,
    Position,
)
from roomlore.core.reimport import Again, compared, metadata_after
from roomlore.ports.coordination import Telemetry
from roomlore.ports.exports import Export, ExportFile, FindExports, KeepApart, OpenExport
from roomlore.ports.language import Describer
from roomlore.ports.shared import Backends, Service
from roomlore.ports.verbs import MessageVerbs
from roomlore.services.imports.rooms_by_name import ChosenRooms, NamedChats, RoomsByName
from roomlore.services.imports.tally import KEPT_FILES, ImportTally, added_up

_BATCH = 1_000
_BATCH_CHARACTERS = 4_000_000
_MOST_PROCESSES = 64
_AHEAD = 3
"""Batches that are under way for each process."""
_MOVES = "moves"
"""The key under which a saved position keeps who came and went so far."""
_PAGE = 1_000
_DESCRIBED_AT_ONCE = 8
_DESCRIBED_SECONDS = 120
_MOST_DESCRIBED = 32 << 20
"""Bytes of a file that is described."""
_FORGOTTEN = "somebody"
"""Who corrected a link in the store it comes from, if they were forgotten there."""
_NOTHING = IntakeResult()
Progress = Callable[[int, int, int], None]
"""Called after each batch with (bytes read, total bytes, messages read)."""


Adding = Callable[[Sequence[Message]], Awaitable[Mapping[str, IntakeResult]]]
"""Store a batch, one room's messages in their order, without those that are in conflict. Return the result for each
room: ids alone would not tell it, as those of several rooms may be equal. A call may begin before an earlier one has
ended."""


InProcesses = Callable[[int], AbstractAsyncContextManager[Adding]]
"""Opens this many processes that add messages. This one adds them if it is a single one, or if no other one can see the
database."""


class LinkCorrections(Protocol):
    """The part that corrects links."""

    async def correct(
        self, room_id: str, message_id: str, *, answers: str | None, by: str, at: datetime | None
    ) -> CorrectedEntry: ...

    async def catch_up(self, corrected: CorrectedEntry) -> CorrectedEntry: ...

    async def corrections(self, room_id: str, *, before: int | None, limit: int) -> list[Correction]: ...


@dataclass(slots=True)
class _Reading:
    """One export in progress. `name`: its path. `there`: if a room was there before, of those with edited messages."""

    name: str
    export: Export
    tally: ImportTally
    progress: Progress | None
    started: datetime
    resumed: bool = False
    there: dict[str, bool] = field(default_factory=dict)
    estimates: Estimates = field(default_factory=Estimates)


@dataclass(frozen=True, slots=True)
class _Sent:
    """A batch that is being stored. `done`: what was read when it was."""

    reading: _Reading
    items: Sequence[Item]
    messages: Sequence[Message]
    results: asyncio.Future[Mapping[str, IntakeResult]] | None
    bytes_read: int


class _Line:
    """Batches and exports in the order in which they were read: begun up to `ahead` batches early, and ended one after
    another."""

    def __init__(self, adding: Adding, ahead: int) -> None:
        self._adding = adding
        self._ahead = ahead
        self.added = 0
        """The messages that were added so far."""
        self._ends: deque[tuple[asyncio.Future[Any] | None, Callable[[], Awaitable[None]]]] = deque()

    def add(self, messages: Sequence[Message]) -> asyncio.Future[Mapping[str, IntakeResult]] | None:
        """Begin to store a batch."""
        return asyncio.ensure_future(self._add(messages)) if messages else None

    async def _add(self, messages: Sequence[Message]) -> Mapping[str, IntakeResult]:
        """Store a batch. If the tenant's quota allows a part of it, store that part, then raise `QuotaExceeded`."""
        try:
            results = await self._adding(messages)
        except QuotaExceeded as refused:
            if refused.used >= refused.most or len(messages) == 1:
                raise
            half = len(messages) // 2
            return _joined(await self._add(messages[:half]), await self._add(messages[half:]))
        self.added += sum(len(result.added) for result in results.values())
        return results

    async def put(self, end: Callable[[], Awaitable[None]], sent: asyncio.Future[Any] | None = None) -> None:
        """Append what is to be done at the end of a batch or export, and do what is due."""
        self._ends.append((sent, end))
        while len(self._ends) > self._ahead:
            await self._next()

    async def finish(self) -> None:
        """Do all that is left."""
        while self._ends:
            await self._next()

    async def drop(self) -> None:
        """Cancel what is left."""
        left = [sent for sent, _ in self._ends if sent is not None]
        for sent in left:
            sent.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _next(self) -> None:
        await self._ends[0][1]()
        self._ends.popleft()


class _Describing:
    """Puts the files of new messages into words."""

    def __init__(self, describer: Describer, reading: _Reading, telemetry: Telemetry) -> None:
        self._describer = describer
        self._export = reading.export
        self._tally = reading.tally
        self._telemetry = telemetry
        self._turn = asyncio.Semaphore(_DESCRIBED_AT_ONCE)

    async def of(self, batch: Sequence[Item], taken: Collection[tuple[str, str]]) -> list[Item]:
        """Return the batch with descriptions. Messages that are `taken` stay as they are."""
        return list(await asyncio.gather(*(self._item(item, taken) for item in batch)))

    async def _item(self, item: Item, taken: Collection[tuple[str, str]]) -> Item:
        if not isinstance(item, Parsed) or (item.message.room_id, item.message.id) in taken:
            return item
        held = {place: attachment for place, attachment in enumerate(attachments_of(item.message)) if attachment.file}
        if not held:
            return item
        texts = await asyncio.gather(*map(self._described, held.values()))
        descriptions = {place: text for place, text in zip(held, texts, strict=True) if text}
        self._tally.described += len(descriptions)
        return replace(item, message=with_descriptions(item.message, descriptions)) if descriptions else item

    async def _described(self, attachment: Attachment) -> str:
        async with self._turn:
            content = await asyncio.to_thread(self._export.attached, attachment.file, _MOST_DESCRIBED)
            if content is None:
                return ""
            try:
                async with asyncio.timeout(_DESCRIBED_SECONDS):
                    text = await self._describer.describe(attachment, content)
            except Exception as error:  # noqa: BLE001 - the caller's own code; the message counts for more
                self._tally.undescribed += 1
                self._telemetry.unforeseen(error)
                return ""
            return text.strip() if isinstance(text, str) else ""


class ImportService(Service):
    """Imports exports for one tenant."""

    def __init__(
        self,
        backends: Backends,
        *,
        tenant: str,
        messages: MessageVerbs,
        links: LinkCorrections,
        limits: Limits,
        find_exports: FindExports,
        keep_apart: KeepApart,
        open_export: OpenExport,
        time_zone: str,
        in_processes: InProcesses,
        describer: Describer | None,
    ) -> None:
        super().__init__(backends)
        self._tenant = tenant
        self._messages = messages
        self._links = links
        self._limits = limits
        self._find = find_exports
        self._keep_apart = keep_apart
        self._open = open_export
        self._time_zone = time_zone
        self._in_processes = in_processes
        self._describer = describer

    async def run(
        self,
        paths: Path | str | Sequence[Path | str],
        *,
        format: str | None = None,  # noqa: A002 - the word users know
        room_id: str | None = None,
        timezone: str | None = None,
        day: str | None = None,
        resume: bool = True,
        progress: Progress | None = None,
        processes: int = 1,
    ) -> ImportReport:
        """Read exports into the store, batch by batch; records that cannot be read are skipped and listed.

        `paths`: files, folders or zips; a folder or zip may hold several exports, each of which is read in its own
        format. What may be an export and was not read is named in the report. A chat of which the export has no id,
        only a name, goes into the stored room that has its messages; another chat of that name gets a room of its own,
        and the report names both. `format`: None detects it, else only exports of that format are read. `room_id`: put
        everything into this room; refused for several exports, which are several chats. `timezone`: of exports with
        local times, the setting `time_zone` by default; the report says which was used. `day`: ISO date of the first
        line of an IRC log without dates. `resume`: continue an import of the same file that broke off. `progress`:
        called for each export. Importing a file again adds nothing twice. `processes`: how many processes link
        and store the messages; those of one room stay in their order in one process, so a single room gains
        nothing. A database in memory has one. Raise `InvalidInput`, `QuotaExceeded` once as much is stored as
        the tenant may add, `StorageUnavailable`, `Unavailable`.
        """
        if isinstance(processes, bool) or not isinstance(processes, int) or not 1 <= processes <= _MOST_PROCESSES:
            raise InvalidInput(
                "number_from_one_to_outside", name="processes", value=repr(processes), most=_MOST_PROCESSES
            )
        given_paths = [paths] if isinstance(paths, str | Path) else list(paths)
        looked = [await asyncio.to_thread(self._find, path, format) for path in given_paths]
        exports = [file for search in looked for file in search.exports]
        if not exports:
            raise InvalidInput("import_nothing")
        if room_id and len(exports) > 1:
            raise InvalidInput("exports_into_one_room", count=len(exports), room=repr(room_id))
        given = {"room_id": room_id, "timezone": timezone, "day": day, "local_zone": self._time_zone}
        reports: list[ImportReport] = []
        async with self._in_processes(processes) as adding:
            line = _Line(adding, _AHEAD * processes if processes > 1 else 0)
            try:
                seen = set[str]()
                chosen = await self._rooms(exports, given)
                for file, rooms in zip(exports, chosen.ids, strict=True):
                    export = await asyncio.to_thread(
                        self._open, file.path, file.format, member=file.member, rooms=rooms, **given
                    )
                    if export.fingerprint in seen:
                        await line.finish()
                    seen.add(export.fingerprint)
                    await self._import(file.label, export, line, reports, resume=resume, progress=progress)
                await line.finish()
            except QuotaExceeded as refused:
                raise import_stopped(refused, added=line.added) from refused
            finally:
                await line.drop()
        left_out = [left for search in looked for left in search.left_out]
        report = added_up(reports)
        return replace(
            report,
            left_out=tuple(left_out[:KEPT_FILES]),
            left_out_count=len(left_out),
            apart={room_id: name for room_id in report.rooms if (name := chosen.named(room_id)) is not None},
            continued=tuple(room_id for room_id in report.rooms if room_id in chosen.continued),
        )

    async def _rooms(self, files: Sequence[ExportFile], given: Mapping[str, Any]) -> ChosenRooms:
        """Choose the rooms of chats that have no id, only a name, unless one room is given for all."""
        if given["room_id"]:
            return ChosenRooms(tuple({} for _ in files))
        named = await asyncio.to_thread(self._keep_apart, files)
        reads = [partial(self._items, file, given) for file in files]
        chats = [NamedChats(rooms, read) for rooms, read in zip(named, reads, strict=True)]
        return await RoomsByName(tenant=self._tenant, storage=self._storage).choose(chats)

    def _items(self, file: ExportFile, given: Mapping[str, Any], rooms: Mapping[str, str]) -> Generator[Item]:
        export = self._open(file.path, file.format, member=file.member, rooms=rooms, **given)
        try:
            yield from export
        finally:
            export.close()

    async def _import(
        self,
        name: str,
        export: Export,
        line: _Line,
        reports: list[ImportReport],
        *,
        resume: bool,
        progress: Progress | None,
    ) -> None:
        """Read an export. Its report is appended when all of it is stored."""
        try:
            tally = ImportTally()
            reading = _Reading(name, export, tally, progress, self._clock.now())
            reading.resumed = resume and await self._resume(export, tally)
            await self._read(reading, line)
        finally:
            await asyncio.to_thread(export.close)
        await line.put(lambda: self._end(reading, reports))

    async def _end(self, reading: _Reading, reports: list[ImportReport]) -> None:
        export, tally = reading.export, reading.tally
        for room_id in tally.rooms:
            await self._learn(room_id, tally)
        async with self._storage.reading(self._tenant) as work:
            for room_id in tally.rooms:
                room = await work.rooms.find(room_id=room_id)
                tally.titles[room_id] = room.title if room is not None else room_id
        async with self._storage.writing(self._tenant) as work:
            await work.progress.forget_import_position(source=export.fingerprint)
        reports.append(
            tally.report(
                reading.name,
                format=export.format,
                time_zone=export.time_zone,
                repaired=export.source.repaired,
                total_bytes=export.source.total_bytes,
                resumed=reading.resumed,
                now=self._clock.now(),
            )
        )

    async def _resume(self, export: Export, tally: ImportTally) -> bool:
        async with self._storage.reading(self._tenant) as work:
            saved = await work.progress.import_position(source=export.fingerprint)
        if saved is None:
            return False
        position = json.loads(saved)
        tally.remember(position.pop(_MOVES, []))
        export.resume(position)
        return True

    async def _read(self, reading: _Reading, line: _Line) -> None:
        items = iter(reading.export)
        most = min(_BATCH, self._limits.batch_messages)
        while batch := await asyncio.to_thread(_next_batch, items, most):
            if self._describer is not None:
                batch = await _Describing(self._describer, reading, self._telemetry).of(batch, await self._taken(batch))
            batch, messages = self._timed(batch, reading)
            sent = _Sent(reading, batch, messages, line.add(messages), reading.export.source.bytes_read)
            await line.put(partial(self._store_rest, sent), sent.results)
            changing = any(isinstance(item, Parsed) and _changes_others(item) for item in batch)
            if changing or await self._edits(reading, batch):
                await line.finish()  # What follows is linked with messages as they are now.

    async def _edits(self, reading: _Reading, batch: Sequence[Item]) -> bool:
        """Return True if the batch may change messages that are there: it has edited ones of a room that was there
        before."""
        edited = {item.message.room_id for item in batch if isinstance(item, Parsed) and item.edited_at is not None}
        if new := edited - reading.there.keys():
            async with self._storage.reading(self._tenant) as work:
                for room_id in new:
                    room = await work.rooms.find(room_id=room_id)
                    reading.there[room_id] = room is not None and room.created_at < reading.started
        return any(reading.there[room_id] for room_id in edited)

    async def _taken(self, batch: Sequence[Item]) -> set[tuple[str, str]]:
        """Return the room and id of those messages of the batch with attachments that are stored already."""
        ids_by_room: dict[str, list[str]] = {}
        for item in batch:
            if isinstance(item, Parsed) and attachments_of(item.message):
                ids_by_room.setdefault(item.message.room_id, []).append(item.message.id)
        taken = set[tuple[str, str]]()
        if ids_by_room:
            async with self._storage.reading(self._tenant) as work:
                for room_id, ids in ids_by_room.items():
                    prints = await work.messages.fingerprints(room_id=room_id, message_ids=ids)
                    taken.update((room_id, message_id) for message_id in prints)
        return taken

    async def _store_rest(self, sent: _Sent) -> None:
        """Wait until a batch is stored, and store what else it told and how far the export is read."""
        batch, tally, export = sent.items, sent.reading.tally, sent.reading.export
        results = await sent.results if sent.results is not None else {}
        for item in batch:
            if isinstance(item, Parsed) and item.deletes:
                await self._messages.delete(item.message.room_id, item.deletes)
        tally.take(sent.messages, results)
        for room_id, result in results.items():
            if not (result.gone or result.conflicts):
                continue
            its = [message for message in sent.messages if message.room_id == room_id]
            if result.gone:
                await self._take_gone(room_id, its, result, tally)
            if result.conflicts:
                await self._take_conflicts(room_id, its, result, tally)
        await self._correct(batch)
        for room_id in tally.listen(batch, {message.room_id for message in sent.messages}):
            await self._learn(room_id, tally)
        await self._save(export, {**batch[-1].position, _MOVES: tally.moves()})
        if sent.reading.progress is not None:
            sent.reading.progress(sent.bytes_read, export.source.total_bytes, tally.read)

    async def _take_gone(
        self, room_id: str, messages: Sequence[Message], result: IntakeResult, tally: ImportTally
    ) -> None:
        """Count the messages that were deleted or archived here. One that the export calls recalled is deleted from its
        archive, too."""
        async with self._storage.reading(self._tenant) as work:
            archived = set(await work.archives.of_messages(room_id=room_id, message_ids=result.gone))
        for message in messages:
            if message.id in archived and _is_recalled(message):
                await self._messages.delete(room_id, message.id)
                archived.discard(message.id)
        tally.archived += sum(message_id in archived for message_id in result.gone)
        tally.deleted += sum(message_id not in archived for message_id in result.gone)

    async def _take_conflicts(
        self, room_id: str, messages: Sequence[Message], result: IntakeResult, tally: ImportTally
    ) -> None:
        """Compare messages with the stored ones that have their ids and other contents. What was edited since is
        changed, what was recalled is deleted; what was redacted here stays so."""
        conflicting = set(result.conflicts)
        async with self._storage.reading(self._tenant) as work:
            entries = await work.messages.by_id(room_id=room_id, message_ids=sorted(conflicting))
        stored: dict[str, StoredMessage | None] = {entry.message.id: entry.message for entry in entries}
        counted = {kept.id: content_hash(kept) for kept in stored.values() if kept is not None}
        just_added = set(result.added)
        for message in messages:
            if message.id in just_added:
                just_added.discard(message.id)
            elif message.id in conflicting and counted.get(message.id) != content_hash(message):
                stored[message.id] = await self._take_conflict(stored.get(message.id), message, tally)

    async def _take_conflict(
        self, stored: StoredMessage | None, message: Message, tally: ImportTally
    ) -> StoredMessage | None:
        """Count a message, and change or delete the stored one. Return what is stored then."""
        if stored is None:
            tally.deleted += 1
            return None
        if _is_recalled(message):
            await self._messages.delete(message.room_id, message.id)
            tally.deleted += 1
            return None
        again = compared(stored, message)
        if again is Again.EDITED:
            return await self._edit(stored, message, tally)
        if again is Again.SAME:
            tally.duplicates += 1
        elif again is Again.OLDER:
            tally.older += 1
        elif again is Again.REDACTED:
            tally.redacted += 1
        else:
            tally.conflict(message)
        return stored

    async def _edit(self, stored: StoredMessage, message: Message, tally: ImportTally) -> StoredMessage | None:
        """Change a message as its sender did. Return what is stored then."""
        assert isinstance(message, StoredMessage)
        try:
            changed = await self._messages.edit(
                message.room_id,
                message.id,
                text=message.text,
                metadata=metadata_after(stored, message),
                mentions=message.mentions,
                edited_at=message.edited_at,
            )
        except Conflict:
            tally.older += 1
            return stored
        except NotFound:
            tally.deleted += 1
            return None
        tally.edited += 1
        return changed

    async def _correct(self, batch: Sequence[Item]) -> None:
        """Correct links as in the store that the messages come from. A message that is not here any more has none, and
        neither has one whose answered message is not, or came later here. What was corrected here before stays."""
        known: dict[str, set[str]] = {}
        corrected: CorrectedEntry | None = None
        for item in batch:
            if not isinstance(item, Parsed) or item.corrected is None:
                continue
            room_id, message_id, correction = item.message.room_id, item.message.id, item.corrected
            with suppress(NotFound, InvalidInput, Conflict):
                if room_id not in known:
                    known[room_id] = await self._corrected(room_id)
                if message_id not in known[room_id]:
                    by = correction.by or _FORGOTTEN
                    corrected = await self._links.correct(
                        room_id, message_id, answers=correction.answers, by=by, at=correction.at
                    )
                    known[room_id].add(message_id)
        if corrected is not None:
            await self._links.catch_up(corrected)

    async def _corrected(self, room_id: str) -> set[str]:
        """Return the ids of the messages that the log of the room names, also if the correction was taken back."""
        corrected: set[str] = set()
        before: int | None = None
        while page := await self._links.corrections(room_id, before=before, limit=_PAGE):
            corrected |= {correction.message_id for correction in page}
            before = page[-1].number
        return corrected

    async def _learn(self, room_id: str, tally: ImportTally) -> None:
        """Store what the export told of a room: its kind, who came and went, and all members unless the room has newer
        messages than the export."""
        tallied = tally.rooms[room_id]
        async with self._storage.writing(self._tenant) as work:
            room = await work.rooms.lock_known(room_id=room_id)
            if room is None:
                return
            now = self._clock.now()
            before = (await work.rooms.people(room_ids=[room_id]))[room_id]
            old = before.complete and (tallied.newest is None or tallied.newest < (room.last_sent_at or tallied.newest))
            facts = replace(tallied.facts, members=None) if old else tallied.facts
            kind = kind_learned(room.kind, facts.kind)
            if kind != room.kind:
                since = BEGINNING if room.kind else None
                past = kinds_before(room.kind, room.past_kinds, kind, since, now)
                await work.rooms.set_kind(room_id=room_id, kind=kind, past=past)
            if facts.name and not room.name:
                await work.rooms.rename(room_id=room_id, name=" ".join(facts.name.split())[:MAX_ROOM_NAME])
            known = {person: presence.stays for person, presence in before.people.items()}
            names = await work.rooms.participants(room_id=room_id) if tallied.moves else {}
            moves = [timed_move for move, at in tallied.moves for timed_move in moves_by_id(move, at, names)]
            stays, complete = stays_learned(known, facts, moves, now), before.complete or facts.members is not None
            if complete != before.complete or stays != {person: its for person, its in known.items() if its}:
                await work.rooms.set_members(room_id=room_id, stays=stays, complete=complete)
            tally.found[room_id] = (await work.rooms.people(room_ids=[room_id]))[room_id]

    def _timed(self, batch: Sequence[Item], reading: _Reading) -> tuple[list[Item], list[Message]]:
        """Return the batch and the messages to store, with estimates for the times that are missing or cannot be
        right."""
        read_messages = [self._message(item, reading.tally) for item in batch]
        messages = reading.estimates.fill(
            (message for message in read_messages if message is not None), self._clock.now()
        )
        reading.tally.undated = reading.estimates.made
        filled = iter(messages)
        with_times = [
            replace(item, message=next(filled)) if message is not None and isinstance(item, Parsed) else item
            for item, message in zip(batch, read_messages, strict=True)
        ]
        return with_times, messages

    def _message(self, item: Item, tally: ImportTally) -> Message | None:
        """Return the message to store, with what another store knew of it; None, and tallied, if it cannot be
        stored."""
        if isinstance(item, Bad):
            tally.skip(item)
            return None
        try:
            check([item.message], self._limits)
        except InvalidInput as error:
            tally.skip(Bad(item.position, tally.seen + 1, str(error), item.message.id[:80]))
            return None
        tally.seen += 1
        return carried(item)

    async def _save(self, export: Export, position: Position) -> None:
        async with self._storage.writing(self._tenant) as work:
            await work.progress.save_import_position(
                source=export.fingerprint, position=json.dumps(position), now=self._clock.now()
            )


def _next_batch(items: Iterator[Item], most: int) -> list[Item]:
    """Return up to `most` items, fewer if their texts are long."""
    batch: list[Item] = []
    characters = 0
    for item in islice(items, most):
        batch.append(item)
        characters += len(item.message.text) if isinstance(item, Parsed) else 0
        if characters > _BATCH_CHARACTERS:
            break
    return batch


def _changes_others(item: Parsed) -> bool:
    """Return True if the item changes messages or links beside adding its own message."""
    return item.corrected is not None or bool(item.deletes) or _is_recalled(item.message)


def _is_recalled(message: Message) -> bool:
    """Return True if the export says that the message was recalled."""
    return message.metadata.get("deleted") is True


def _joined(first: Mapping[str, IntakeResult], rest: Mapping[str, IntakeResult]) -> Mapping[str, IntakeResult]:
    """Return the results of two parts of a batch as those of all of it."""
    return {
        room_id: first.get(room_id, _NOTHING) + rest.get(room_id, _NOTHING)
        for room_id in dict.fromkeys((*first, *rest))
    }
