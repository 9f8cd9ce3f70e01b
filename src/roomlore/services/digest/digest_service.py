"""Digests: who reads, and how far they have read; the messages of a span, of which `core/digest` chooses what to
show."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from roomlore.core.audience import ALWAYS, Viewer, Window, check_viewer, covers
from roomlore.core.digest.compose import DigestDraft
from roomlore.core.digest.digest import DIGEST_TOKENS, FEWEST_TOKENS, MAX_TOKENS, Digest
from roomlore.core.digest.talks import is_said
from roomlore.core.errors import Conflict, InvalidInput, NotFound
from roomlore.core.evolution.requests import Mode, check_mode
from roomlore.core.intake import MAX_ID_CHARS
from roomlore.core.linking.model import LinkModel
from roomlore.core.linking.room import is_seen, linked_alone
from roomlore.core.mentions import ids_named
from roomlore.core.models import Entry, Room
from roomlore.core.text import fold
from roomlore.core.transcript import spoken_text
from roomlore.ports.audience import room_shown
from roomlore.ports.shared import Backends, Service
from roomlore.ports.titles import headings_of
from roomlore.services.digest.writing import Writing, language_for
from roomlore.storage import UnitOfWork

_TRIES = 5
_NAMED = 8


def check_reader(user_id: object) -> str:
    """Return the id of a person. Raise `InvalidInput`."""
    if not isinstance(user_id, str) or not 0 < len(user_id) <= MAX_ID_CHARS:
        raise InvalidInput("reader_invalid", value=f"{user_id!r:.60}", most=MAX_ID_CHARS)
    return user_id


async def reader_named(work: UnitOfWork, *, room_id: str, given: str) -> str:
    """Return the sender id of a person of the room, told by id, or by a name that one person has. Raise `NotFound`
    if nobody, `InvalidInput` if several people are meant."""
    spoke = await work.rooms.participants(room_id=room_id)
    if given in spoke or await _only_reads(work, room_id, given):
        return given
    wanted = fold(given.removeprefix("@"))
    meant = [person for person, name in spoke.items() if wanted in (fold(person), fold(name))]
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise InvalidInput(
            "reader_name_shared", count=len(meant), room=repr(room_id), name=repr(given), known=_few(meant, {})
        )
    raise NotFound("reader_unknown", room=repr(room_id), name=f"{given!r:.80}", known=_few(list(spoke), spoke))


async def _only_reads(work: UnitOfWork, room_id: str, person: str) -> bool:
    """Return True if this is the id of a member, or of somebody who marked messages of the room as read."""
    known = await work.rooms.people(room_ids=[room_id], persons=[person])
    if room_id in known and person in known[room_id].people:
        return True
    return bool(await work.progress.marks(room_id=room_id, names=[_mark(person)]))


def _few(ids: list[str], names: Mapping[str, str]) -> str:
    """Return the first ids, each with a name that differs from it."""
    also = {own_id: f" ({name:.80})" for own_id in ids[:_NAMED] if (name := names.get(own_id)) and name != own_id}
    named = ", ".join(f"{own_id:.80}{also.get(own_id, '')}" for own_id in ids[:_NAMED])
    return f"{named} and {len(ids) - _NAMED} more" if len(ids) > _NAMED else named or "nobody"


async def read_up_to(work: UnitOfWork, *, room_id: str, user_id: str) -> int:
    """Return the arrival of the last message that a person wrote or marked as read, 0 if there is none."""
    name = _mark(user_id)
    marked = await work.progress.marks(room_id=room_id, names=[name])
    spoken = await work.rooms.last_spoken(room_id=room_id, sender_id=user_id)
    return max(marked.get(name, 0), spoken)


class ReadingMarks(Service):
    """The reading marks of one tenant."""

    def __init__(self, backends: Backends, *, tenant: str) -> None:
        super().__init__(backends)
        self._tenant = tenant

    async def move(self, room_id: str, user_id: str, message_id: str | None) -> int:
        """Mark what was said up to this message as read, the newest if None; return the arrival that the person has
        read up to. A mark never moves back."""
        name, tenant = _mark(check_reader(user_id)), self._tenant
        for _ in range(_TRIES):
            async with self._storage.writing(tenant) as work:
                arrival = await self._arrival(work, room_id, message_id)
                was = (await work.progress.marks(room_id=room_id, names=[name])).get(name, 0)
                if arrival <= was:
                    return was
                if await work.progress.move_mark(
                    room_id=room_id, name=name, arrival=arrival, was=was, now=self._clock.now()
                ):
                    return arrival
        raise Conflict("reading_mark_busy", reader=repr(user_id))

    async def _arrival(self, work: UnitOfWork, room_id: str, message_id: str | None) -> int:
        room = await work.rooms.get(room_id=room_id)
        if message_id is None:
            return room.next_arrival - 1
        arrival = await work.messages.arrival_of(room_id=room_id, message_id=message_id)
        if arrival is None:
            raise NotFound("message_unknown", room=repr(room_id), message=repr(message_id))
        return arrival


def _mark(user_id: str) -> str:
    return f"read:{user_id}"


MAX_READ, MAX_LOOKED_AT = 10_000, 50_000
"""The newest messages that a digest is made of, and how many are read to find them."""
_AT_ONCE = 1_000
_DEFAULT_SPAN = timedelta(days=1)
_TEXTS_READ = 200
"""The messages whose language counts."""


@dataclass(frozen=True, slots=True)
class _Span:
    """The messages of a digest: `messages` with an arrival above `after`, of which `entries` are the newest. Of a part
    of a room `after` is 0."""

    after: int
    messages: int
    entries: Sequence[Entry]


class DigestService(Service):
    """The digests of one tenant."""

    def __init__(self, backends: Backends, *, tenant: str, model: LinkModel, writing: Writing) -> None:
        super().__init__(backends)
        self._writing = writing
        self._tenant = tenant
        self._model = model

    async def make(
        self,
        room_id: str,
        *,
        since: datetime | None = None,
        for_user: str | None = None,
        max_tokens: int = DIGEST_TOKENS,
        viewer: str | None = None,
        mode: Mode = "auto",
        through: int | None = None,
    ) -> Digest:
        """Return the digest of a room; arguments as in `Lore.digest`. `through`: the arrival of the last message
        that it may cover."""
        writes = await self._writing.writes(check_mode(mode))
        if not isinstance(max_tokens, int) or not FEWEST_TOKENS <= max_tokens <= MAX_TOKENS:
            raise InvalidInput(
                "number_outside", name="max_tokens", value=f"{max_tokens!r:.60}", least=FEWEST_TOKENS, most=MAX_TOKENS
            )
        begin = _checked(since)
        reader = None if for_user is None else check_reader(for_user)
        shown_to = _viewer_of(viewer, reader)
        async with self._storage.reading(self._tenant) as work:
            room, windows = await room_shown(work, viewer=shown_to, room_id=room_id, now=self._clock.now())
            if through is not None:
                room = replace(room, next_arrival=min(room.next_arrival, through + 1))
            reader = await self._meant(work, room_id, reader, shown_to, windows)
            if begin is None and reader is not None and shown_to != Viewer("user", reader) and windows != ALWAYS:
                span = await self._since_seen(work, room, reader, windows)
            else:
                span = await self._span(work, room, begin, reader, windows)
            answered = await self._answered(work, room_id, span.entries, reader, windows)
            own = await self._own(work, room_id, reader) if writes and windows == ALWAYS else []
            people = await self._mentioned(work, room_id, span.entries) if windows == ALWAYS else {}
        entries = span.entries
        if windows != ALWAYS:
            entries = await asyncio.to_thread(linked_alone, self._model, [entry.message for entry in entries])
        draft = await asyncio.to_thread(
            DigestDraft,
            room_id,
            entries,
            max_tokens=max_tokens,
            count=self._tokens.count,
            for_user=reader,
            answered=answered,
            after=span.after,
            messages=span.messages,
            people=people,
        )
        titles = await self._titles(room, draft) if windows == ALWAYS else {}
        if not writes or not draft.talks:
            return await asyncio.to_thread(draft.finished, titles)
        language = language_for(own, [entry.message.text for entry in span.entries[-_TEXTS_READ:]])
        account = await self._writing.write(
            room_id, draft.talks, language=language, max_tokens=max_tokens, tenant=self._tenant
        )
        made = await asyncio.to_thread(draft.finished, titles, account.written, model=account.model)
        return replace(made, degraded=account.degraded)

    async def _own(self, work: UnitOfWork, room_id: str, reader: str | None) -> list[str]:
        """Return what the reader wrote last, which tells their language."""
        last = 0 if reader is None else await work.rooms.last_spoken(room_id=room_id, sender_id=reader)
        if not last:
            return []
        after = max(0, last - _TEXTS_READ)
        messages = await work.messages.page(room_id=room_id, after=after, limit=_TEXTS_READ, sender_id=reader)
        return [message.text for message in messages]

    async def _mentioned(self, work: UnitOfWork, room_id: str, entries: Sequence[Entry]) -> Mapping[str, str]:
        """Return the names of the people whom these messages mention by their ids."""
        ids = {person for entry in entries for person in ids_named(spoken_text(entry.message), entry.message.mentions)}
        return (await work.rooms.names_of(room_ids=[room_id], sender_ids=ids)).get(room_id, {})

    async def _titles(self, room: Room, draft: DigestDraft) -> Mapping[int, str]:
        """Return the titles of the threads that it shows as a whole. A viewer who may not see all of a room gets
        those made of what they see."""
        async with self._storage.reading(self._tenant) as work:
            made = await headings_of(work, room, draft.threads)
        return {thread: heading.title for thread, heading in made.items()}

    async def _meant(
        self, work: UnitOfWork, room_id: str, reader: str | None, viewer: Viewer | None, windows: Sequence[Window]
    ) -> str | None:
        """Return the id of the reader. Who else is in a room is told to those alone who may see all of it."""
        if reader is None or windows != ALWAYS or viewer == Viewer("user", reader):
            return reader
        return await reader_named(work, room_id=room_id, given=reader)

    async def _answered(
        self,
        work: UnitOfWork,
        room_id: str,
        entries: Sequence[Entry],
        reader: str | None,
        windows: Sequence[Window],
    ) -> frozenset[str]:
        """Return the ids of the reader's messages before these that some of these reply to."""
        here = {entry.message.id for entry in entries}
        targets = {entry.message.reply_to for entry in entries if entry.message.reply_to} - here
        if reader is None or not targets:
            return frozenset()
        known = await work.messages.origins(room_id=room_id, message_ids=sorted(targets))
        return frozenset(
            name for name, was in known.items() if was.sender_id == reader and covers(windows, was.first, was.last)
        )

    async def _span(
        self, work: UnitOfWork, room: Room, since: datetime | None, reader: str | None, windows: Sequence[Window]
    ) -> _Span:
        """Return the messages of the digest. It depends on nothing that the viewer may not see."""
        after, begin = 0, since
        if since is None and reader is not None:
            after = await read_up_to(work, room_id=room.room_id, user_id=reader)
        elif since is None and (last := await self._last(work, room, windows)) is not None:
            begin = last - _DEFAULT_SPAN
        if begin is not None:
            first = await work.messages.first_since(room_id=room.room_id, since=begin)
            after = room.next_arrival - 1 if first is None else first - 1
        entries = await self._read(work, room, after, begin, windows)
        if windows != ALWAYS:
            return _Span(0, len(entries), entries)
        known = 0
        if len(entries) >= MAX_READ:
            later = await work.messages.count(room_id=room.room_id, after=room.next_arrival - 1)
            known = await work.messages.count(room_id=room.room_id, after=after) - later
        return _Span(after, max(known, len(entries)), entries)

    async def _since_seen(self, work: UnitOfWork, room: Room, reader: str, windows: Sequence[Window]) -> _Span:
        """Return the messages after the last one of the reader's that the viewer may see. Where the reader stopped
        reading is not told to others who see a part of the room."""
        entries = await self._read(work, room, 0, None, windows)
        own = [place for place, entry in enumerate(entries) if entry.message.sender_id == reader]
        since = entries[own[-1] + 1 :] if own else entries
        return _Span(0, len(since), since)

    async def _last(self, work: UnitOfWork, room: Room, windows: Sequence[Window]) -> datetime | None:
        """Return when the newest message that may be seen was sent."""
        if windows == ALWAYS:
            return room.last_sent_at
        async for part in self._parts(work, room, 0):
            if seen := [entry.message.dated_at for entry in part if is_seen(entry.message, windows)]:
                return max(seen)
        return None

    async def _read(
        self, work: UnitOfWork, room: Room, after: int, since: datetime | None, windows: Sequence[Window]
    ) -> list[Entry]:
        """Return the newest messages above an arrival that may be seen. Notices, tool calls and messages without words,
        which no digest shows, do not count towards `MAX_READ`."""
        entries: list[Entry] = []
        spoken = 0
        async for part in self._parts(work, room, after):
            for entry in reversed(part):
                if (since is None or entry.message.dated_at >= since) and is_seen(entry.message, windows):
                    entries.append(entry)
                    spoken += is_said(entry)
                    if spoken == MAX_READ or len(entries) == MAX_LOOKED_AT:
                        return entries[::-1]
        return entries[::-1]

    async def _parts(self, work: UnitOfWork, room: Room, after: int) -> AsyncIterator[list[Entry]]:
        """Yield the messages above an arrival, the newest part first, so that other requests are served."""
        before = room.next_arrival
        while before > after + 1:
            count = min(_AT_ONCE, before - after - 1)
            part = await work.messages.tail(room_id=room.room_id, limit=count, before=before)
            if above := [entry for entry in part if entry.message.arrival > after]:
                yield above
            if len(part) < count or len(above) < len(part):
                return
            before = part[0].message.arrival


def _checked(since: datetime | None) -> datetime | None:
    if since is not None and not isinstance(since, datetime):
        raise InvalidInput("since_not_datetime", value=f"{since!r:.60}")
    return since.replace(tzinfo=UTC) if since is not None and since.tzinfo is None else since


def _viewer_of(viewer: str | None, reader: str | None) -> Viewer | None:
    """Return the viewer. Raise `InvalidInput` if a person asks for the digest of another."""
    shown_to = None if viewer is None else check_viewer(viewer)
    if shown_to is not None and shown_to.kind == "user" and reader not in (None, shown_to.id):
        raise InvalidInput("digest_viewer_differs", reader=f"{reader!r:.60}", viewer=f"{viewer!r:.60}")
    return shown_to
