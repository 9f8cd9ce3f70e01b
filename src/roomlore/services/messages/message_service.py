"""The verbs of `lore.messages`."""

import logging
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from roomlore.core.analysis import read_anew, with_answered
from roomlore.core.attachments import counted_text
from roomlore.core.audience import Viewer, check_viewer
from roomlore.core.errors import (
    MOST_LISTED,
    Conflict,
    InvalidInput,
    NotFound,
    StorageUnavailable,
    several_ids,
    unknown_room,
)
from roomlore.core.intake import Limits, check, check_page
from roomlore.core.linking.model import LinkModel
from roomlore.core.linking.room import WINDOW, linked_alone
from roomlore.core.models import AddReport, Entry, Message, StoredMessage
from roomlore.core.records import parse_time
from roomlore.core.search.facts import RoomPart, is_whole
from roomlore.core.search.hits import SearchAnswer, SearchMode
from roomlore.ports.archives import ArchivedMessages
from roomlore.ports.audience import gone, room_shown, unknown_viewer
from roomlore.ports.paging import every_room
from roomlore.ports.shared import Backends, Service
from roomlore.ports.verbs import DueWork
from roomlore.services.messages.due import VectorsDue
from roomlore.services.messages.ingest import Ingest
from roomlore.services.messages.planning import by_room, in_thread_if_large, report_of, weight
from roomlore.services.messages.search import AskedAt, Filters, MessageSearch, RoomsSearch

if TYPE_CHECKING:
    from roomlore.storage import UnitOfWork

OnConflict = Literal["raise", "report"]

_PAGE = 500


_LOOKED_UP = 20
"""The most new rooms of a batch for which rooms of that name are looked for."""

log = logging.getLogger(__name__)


class MessageService(Service):
    """The messages of one tenant. `due`, `edits`: the work that deleted messages, and edited ones, make due."""

    def __init__(
        self,
        backends: Backends,
        *,
        tenant: str,
        ingest: Ingest,
        limits: Limits,
        due: VectorsDue,
        edits: DueWork,
        search: MessageSearch,
        search_rooms: RoomsSearch,
        model: LinkModel,
        archives: ArchivedMessages,
    ) -> None:
        super().__init__(backends)
        self._archives = archives
        self._tenant = tenant
        self._ingest = ingest
        self._limits = limits
        self._due = due
        self._edits = edits
        self._search = search
        self._search_rooms = search_rooms
        self._model = model

    async def add(self, messages: Message | Sequence[Message], *, on_conflict: OnConflict = "raise") -> AddReport:
        """Store one message or a batch (of any rooms) in one transaction, in the order given.

        An id that exists already with the same content changes nothing and is a duplicate. With other content it is a
        conflict: `on_conflict="raise"` stores nothing and raises `Conflict`; `"report"` stores the rest and lists it.
        Messages are stored in the room whose id they give, even if it is the name of another one; `new_rooms` of the
        report tells. Raise `InvalidInput` for input that cannot be stored, `StorageUnavailable`.
        """
        if not isinstance(messages, Iterable | Message):
            raise InvalidInput("messages_to_add_invalid", value=f"{messages!r:.60}")
        batch = [messages] if isinstance(messages, Message) else list(messages)
        if on_conflict not in ("raise", "report"):
            raise InvalidInput("on_conflict_invalid", value=repr(on_conflict))
        # Not in a thread for a long text, which is quickly checked: the next message would come first.
        await in_thread_if_large(weight(batch, texts=False), lambda: check(batch, self._limits))
        report = report_of(await self._ingest.add(by_room(batch), strict=on_conflict == "raise"))
        self._telemetry.count("roomlore_messages_added_total", len(report.added))
        return await self._with_namesakes(report) if report.new_rooms else report

    async def _with_namesakes(self, report: AddReport) -> AddReport:
        """Return the report with the rooms whose name is the id of a new room. The messages are stored, so this
        does not fail."""
        names = dict(report.new_rooms)
        try:
            async with self._storage.reading(self._tenant) as work:
                for room_id in islice(report.new_rooms, _LOOKED_UP):
                    like = await work.rooms.named_like(part=room_id, limit=MOST_LISTED + 1, whole=True)
                    names[room_id] = tuple(namesake.room_id for namesake in like if namesake.room_id != room_id)[
                        :MOST_LISTED
                    ]
        except StorageUnavailable:
            return report
        for room_id, others in names.items():
            if others:
                log.warning(
                    "a room was made whose id is the name of another", extra={"room_id": room_id, "named": others}
                )
        return replace(report, new_rooms=names)

    async def get(self, room_id: str, message_id: str, *, viewer: str | None = None) -> Entry:
        """Return the message with its features and link. Raise `NotFound` if it does not exist or was deleted, or if
        the viewer ('room:team' or 'user:anna') may not see it.

        A platform reply names the sender of the message it answers, if that is stored. For a viewer who may see only a
        part of the room, features and link follow from that part alone, and `arrival` is the place in it.
        """
        async with self._storage.reading(self._tenant) as work:
            part = await self._part(work, room_id, viewer)
            if part is None:
                entry = await self._entry(work, room_id, message_id)
                return with_answered(entry, await self._answered(work, entry.message))
            entries = await work.messages.by_id(room_id=room_id, message_ids=[message_id])
            arrival = entries[0].message.arrival if entries else 0
            arrivals = part.facts.arrivals[part.facts.arrivals <= arrival][-WINDOW:].tolist()
            if not entries or arrivals[-1:] != [arrival]:
                raise _unknown_message(room_id, message_id)
            shown = await self._search_rooms.told(work, part, arrivals)
            if arrival not in shown:
                raise _unknown_message(room_id, message_id)
            answered = await self._answered(work, shown[arrival])
        alone = partial(linked_alone, self._model, list(shown.values()))
        return with_answered((await in_thread_if_large(weight(list(shown.values())), alone))[-1], answered)

    async def _answered(self, work: "UnitOfWork", message: StoredMessage) -> Sequence[Entry]:
        wanted = [message.reply_to] if message.reply_to else []
        return await work.messages.by_id(room_id=message.room_id, message_ids=wanted)

    async def named(self, room_id: str, part: str) -> str:
        """Return the id of the message of the room that is `part`, or the only one that begins or ends with it.

        Raise `NotFound` if there is none, `InvalidInput` that lists some of them if several match.
        """
        if not isinstance(part, str) or not part:
            raise InvalidInput("message_id_blank", value=f"{part!r:.60}")
        async with self._storage.reading(self._tenant) as work:
            await work.rooms.get(room_id=room_id)
            if await work.messages.by_id(room_id=room_id, message_ids=[part]):
                return part
            if await work.messages.arrival_of(room_id=room_id, message_id=part) is not None:
                raise await self._missing_in_whole(work, room_id, part)
            ids = await work.messages.ids_like(room_id=room_id, part=part, limit=MOST_LISTED + 1)
            if not ids:
                raise await self._missing_in_whole(work, room_id, part)
        if len(ids) > 1:
            raise several_ids(part, ids)
        return ids[0]

    async def page(
        self, room_id: str, *, after: int = 0, limit: int = 100, viewer: str | None = None
    ) -> list[StoredMessage]:
        """Return up to `limit` messages in order of arrival, those above `after`.

        `viewer`: only what 'room:team' or 'user:anna' may see; of a room that they may see in part, `arrival` is the
        place in that part. Raise `NotFound` for an unknown room, and one of which the viewer may see nothing.
        """
        check_page(limit=limit, after=after)
        async with self._storage.reading(self._tenant) as work:
            if (part := await self._part(work, room_id, viewer)) is not None:
                arrivals = part.facts.arrivals[after : after + limit].tolist()
                return list((await self._search_rooms.told(work, part, arrivals)).values())
            await work.rooms.get(room_id=room_id)
            return await work.messages.page(room_id=room_id, after=after, limit=limit)

    async def search(
        self,
        room_id: str | None = None,
        query: str = "",
        *,
        viewer: str | None = None,
        limit: int = 10,
        mode: SearchMode = "hybrid",
        sender_ids: Sequence[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        asked_at: AskedAt = None,
        conversation: bool = False,
        neighbours: bool = False,
    ) -> SearchAnswer:
        """Return the messages that answer the query best, at most `limit` (1 to 200), best first: of the room, or
        without one of all rooms, ranked as one (at most the 200 used last, and 200,000 messages). Those that score far
        below the best are left out.

        `viewer`, 'room:team' or 'user:anna': only what that room or person may see is found, and nothing else changes
        a score; a room of which it may see nothing is unknown, and the answer's `hint` says if the viewer itself is.
        Without it everything is searched, and you decide whom to show it to. `mode`: 'hybrid' searches by words and by
        meaning, and by words alone if no embedder is configured or the index cannot be used; the answer's `mode` and
        `degraded` say so. 'lexical' searches by words alone. `sender_ids`, `since`, `until`: if given, only messages of
        these senders, sent in [`since`, `until`), are found. Time expressions in the query are read relative to
        `asked_at`: now by default, or a time, or 'newest' for the time of the newest message; if the query contains
        only a time, everything sent then is found. If nothing is from then, `hint` says so, and the hits are of other
        times. With `conversation` each hit brings the nearest messages of its conversation, at most 12 with itself;
        with `neighbours` messages are found, too, that have none of the words but stand beside some that do. Raise
        `InvalidInput`, `NotFound` for an unknown room, `StorageUnavailable`.
        """
        options: Any = {"limit": limit, "mode": mode, "asked_at": asked_at, "conversation": conversation}
        options |= {"filters": Filters.of(sender_ids, since, until), "neighbours": neighbours}
        if viewer is None:
            if room_id is None:
                return await self._search_rooms.search(None, query, **options)
            return await self._search.search(room_id, query, **options)
        return await self._search_for(check_viewer(viewer), room_id, query, options)

    async def _search_for(
        self, viewer: Viewer, room_id: str | None, query: str, options: Mapping[str, Any]
    ) -> SearchAnswer:
        async with self._storage.reading(self._tenant) as work:
            part = None if room_id is None else await self._part(work, room_id, str(viewer))
            unknown = await unknown_viewer(work, viewer=viewer, now=self._clock.now())
        if room_id is None or part is not None:
            answer = await self._search_rooms.search(viewer, query, room_id=room_id, **options)
        else:
            answer = await self._search.search(room_id, query, **options)
        if not unknown:
            return answer
        # Why nothing is found for somebody unknown is that; but senders may be misspelt as well.
        more = answer.hint if answer.hits or options["filters"].senders else None
        return replace(answer, hint=" ".join(filter(None, (unknown, more))))

    async def edit(
        self,
        room_id: str,
        message_id: str,
        *,
        text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        mentions: Sequence[str] | None = None,
        edited_at: datetime | None = None,
    ) -> StoredMessage:
        """Change the given fields and analyse the message again; its position, time and links stay. The archive of an
        archived message is brought back.

        `edited_at`: when it was edited, now by default. Raise `Conflict` if the stored message was edited later than
        that, so that edits may arrive in any order; `NotFound`, `InvalidInput`.
        """
        if text is None and metadata is None and mentions is None:
            raise InvalidInput("change_missing")
        if not isinstance(mentions, list | tuple | None):
            raise InvalidInput("mentions_invalid", value=f"{mentions!r:.60}")
        try:
            return await self._edit(room_id, message_id, text, metadata, mentions, edited_at)
        except NotFound:
            if not await self._bring_back(room_id, [message_id]):
                raise
        return await self._edit(room_id, message_id, text, metadata, mentions, edited_at)

    async def _edit(
        self,
        room_id: str,
        message_id: str,
        text: str | None,
        metadata: Mapping[str, Any] | None,
        mentions: Sequence[str] | None,
        edited_at: datetime | None,
    ) -> StoredMessage:
        at = self._clock.now() if edited_at is None else parse_time(edited_at)
        if at is None:
            raise InvalidInput("edited_at_invalid", value=f"{edited_at!r:.60}")
        async with self._storage.writing(self._tenant) as work:
            await self._lock(work, room_id)
            entry = await self._entry(work, room_id, message_id)
            if edited_at is not None and entry.message.edited_at is not None and entry.message.edited_at > at:
                raise Conflict(
                    "message_edited_later", message_id=repr(message_id), at=entry.message.edited_at.isoformat()
                )
            message = replace(
                entry.message,
                text=entry.message.text if text is None else text,
                metadata=entry.message.metadata if metadata is None else metadata,
                mentions=entry.message.mentions if mentions is None else tuple(mentions),
                edited_at=at,
            )
            check([message], self._limits)
            people = await work.rooms.participants(room_id=room_id)
            changed = await in_thread_if_large(
                weight([message]) + len(people),
                lambda: read_anew(entry, message, people, self._tokens.count([counted_text(message)])[0]),
            )
            await work.messages.replace(room_id=room_id, entries=[changed])
            await self._edits.note(work, room_id, [changed])
        self._edits.announce()
        return changed.message

    async def delete(self, room_id: str, message_ids: str | Sequence[str]) -> int:
        """Empty and hide these messages; return how many existed. Their ids stay taken. Deleting them again changes
        nothing. The archives of those that are archived are brought back, so that nothing of them stays in a file."""
        ids = [message_ids] if isinstance(message_ids, str) else list(message_ids)
        gone = await self._delete(room_id, ids)
        left = [message_id_ for message_id_ in ids if message_id_ not in gone]
        if left and await self._bring_back(room_id, left):
            gone |= await self._delete(room_id, left)
        return len(gone)

    async def _bring_back(self, room_id: str, message_ids: Sequence[str]) -> int:
        return await self._archives.bring_back_messages(tenant=self._tenant, room_id=room_id, message_ids=message_ids)

    async def _delete(self, room_id: str, ids: Sequence[str]) -> set[str]:
        async with self._storage.writing(self._tenant) as work:
            await self._lock(work, room_id)
            entries = await work.messages.by_id(room_id=room_id, message_ids=ids)
            if entries:
                await work.messages.erase(
                    room_id=room_id, arrivals=[entry.message.arrival for entry in entries], now=self._clock.now()
                )
                await self._due.note(work, room_id, entries)
        self._due.announce()
        return {entry.message.id for entry in entries}

    async def export(self, room_id: str | None = None) -> AsyncIterator[StoredMessage]:
        """Yield every message of the room, or of all rooms by room id, in order of arrival."""
        if room_id is None:
            async for room in every_room(self._storage, self._tenant):
                async for message in self.export(room.room_id):
                    yield message
            return
        after = 0
        while page := await self.page(room_id, after=after, limit=_PAGE):
            for message in page:
                yield message
            after = page[-1].arrival

    async def _part(self, work: "UnitOfWork", room_id: str, viewer: str | None) -> RoomPart | None:
        """Return what the viewer may see of the room, None for all of it. Raise `NotFound` if that is nothing."""
        if viewer is None:
            return None
        shown_to, now = check_viewer(viewer), self._clock.now()
        room, windows = await room_shown(work, viewer=shown_to, room_id=room_id, now=now)
        return None if is_whole(windows) else await self._search_rooms.part(work, room, windows)

    async def _entry(self, work: "UnitOfWork", room_id: str, message_id: str) -> Entry:
        entries = await work.messages.by_id(room_id=room_id, message_ids=[message_id])
        if not entries:
            raise await self._missing_in_whole(work, room_id, message_id)
        return entries[0]

    async def _missing_in_whole(self, work: "UnitOfWork", room_id: str, message_id: str) -> NotFound:
        """Return the error about a message that is not here, for a caller who may see the whole room."""
        problem = await gone(work, room_id=room_id, message_id=message_id)
        return problem or _unknown_message(room_id, message_id)

    async def _lock(self, work: "UnitOfWork", room_id: str) -> None:
        if await work.rooms.lock_known(room_id=room_id) is None:
            raise unknown_room(room_id)


def _unknown_message(room_id: str, message_id: str) -> NotFound:
    return NotFound("message_unknown", room=repr(room_id), message=f"{message_id!r:.80}")
