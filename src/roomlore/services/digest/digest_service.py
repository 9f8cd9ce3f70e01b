"""Digests: read the messages of a span, and have `core/digest` choose what to show of them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from roomlore.core.audience import ALWAYS, END, Viewer, Window, check_viewer, covers
from roomlore.core.digest.compose import make_digest
from roomlore.core.digest.digest import Digest
from roomlore.core.errors import InvalidInput
from roomlore.core.linking.model import LinkModel
from roomlore.core.linking.part import is_seen, linked_alone
from roomlore.core.models import Entry, Room
from roomlore.ports.audience import room_shown
from roomlore.ports.coordination import Clock
from roomlore.ports.language import TokenCounter
from roomlore.ports.storage import Storage, UnitOfWork
from roomlore.services.digest.marks import check_reader, read_up_to

DIGEST_TOKENS = 800
FEWEST_TOKENS, MAX_TOKENS = 50, 100_000
MAX_READ = 10_000
_AT_ONCE = 1_000
_DEFAULT_SPAN = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class _Span:
    """The messages of a digest: those with an arrival above `after`, sent at `since` or later, of which `entries` are
    the newest. Of a part of a room `after` is 0."""

    after: int
    messages: int
    entries: Sequence[Entry]


class DigestService:
    """The digests of one tenant."""

    def __init__(self, *, tenant: str, storage: Storage, clock: Clock, tokens: TokenCounter, model: LinkModel) -> None:
        self._tenant = tenant
        self._model = model
        self._storage = storage
        self._clock = clock
        self._tokens = tokens

    async def make(
        self,
        room_id: str,
        *,
        since: datetime | None = None,
        for_user: str | None = None,
        max_tokens: int = DIGEST_TOKENS,
        viewer: str | None = None,
    ) -> Digest:
        """Return the digest of a room; arguments as in `Lore.digest`."""
        if not isinstance(max_tokens, int) or not FEWEST_TOKENS <= max_tokens <= MAX_TOKENS:
            raise InvalidInput(
                f"max_tokens is {max_tokens!r:.60}; it must be a whole number from {FEWEST_TOKENS} to {MAX_TOKENS}."
            )
        begin = _checked(since)
        reader = None if for_user is None else check_reader(for_user)
        whom = _whom(viewer, reader)
        async with self._storage.reading() as work:
            room, windows = await room_shown(
                work, tenant=self._tenant, viewer=whom, room_id=room_id, now=self._clock.now()
            )
            if windows == ALWAYS:
                span = await self._span(work, room, begin, reader)
            else:
                span = await self._part(work, room, windows, begin, reader)
            answered = await self._answered(work, room_id, span.entries, reader, windows)
        make = partial(
            make_digest,
            room_id,
            max_tokens=max_tokens,
            count=self._tokens.count,
            for_user=reader,
            answered=answered,
            after=span.after,
            messages=span.messages,
        )
        if windows == ALWAYS:
            return await asyncio.to_thread(make, span.entries)
        said = [one.message for one in span.entries]
        return await asyncio.to_thread(lambda: make(linked_alone(self._model, said)))

    async def _answered(
        self,
        work: UnitOfWork,
        room_id: str,
        entries: Sequence[Entry],
        reader: str | None,
        windows: Sequence[Window],
    ) -> frozenset[str]:
        """Return the ids of the reader's messages before these that some of these reply to."""
        here = {one.message.id for one in entries}
        targets = {one.message.reply_to for one in entries if one.message.reply_to} - here
        if reader is None or not targets:
            return frozenset()
        known = await work.messages.origins(tenant=self._tenant, room_id=room_id, message_ids=sorted(targets))
        return frozenset(
            name for name, was in known.items() if was.sender_id == reader and covers(windows, was.first, was.last)
        )

    async def _part(
        self, work: UnitOfWork, room: Room, windows: Sequence[Window], since: datetime | None, reader: str | None
    ) -> _Span:
        """Return the span for a viewer who sees a part of the room. When it begins does not depend on the rest."""
        after, before = 0, room.next_arrival
        if since is None and reader is not None:
            after = await read_up_to(work, tenant=self._tenant, room_id=room.room_id, user_id=reader)
        if windows[-1].end < END:
            end = windows[-1].end + timedelta(microseconds=1)
            first = await work.messages.first_since(tenant=self._tenant, room_id=room.room_id, since=end)
            before = before if first is None else first
        entries = [one for one in await self._read(work, room, after, since, before) if is_seen(one.message, windows)]
        if since is None and reader is None and entries:
            begin = max(one.message.at for one in entries) - _DEFAULT_SPAN
            entries = [one for one in entries if one.message.at >= begin]
        return _Span(0, len(entries), entries)

    async def _span(self, work: UnitOfWork, room: Room, since: datetime | None, reader: str | None) -> _Span:
        after, begin = 0, since
        if since is None and reader is not None:
            after = await read_up_to(work, tenant=self._tenant, room_id=room.room_id, user_id=reader)
        elif since is None and room.last_sent_at is not None:
            begin = room.last_sent_at - _DEFAULT_SPAN
        if begin is not None:
            first = await work.messages.first_since(tenant=self._tenant, room_id=room.room_id, since=begin)
            after = room.next_arrival - 1 if first is None else first - 1
        entries = await self._read(work, room, after, begin, room.next_arrival)
        missing = len(entries) == MAX_READ
        known = await work.messages.count(tenant=self._tenant, room_id=room.room_id, after=after) if missing else 0
        return _Span(after, max(known, len(entries)), entries)

    async def _read(self, work: UnitOfWork, room: Room, after: int, since: datetime | None, before: int) -> list[Entry]:
        """Return the newest messages between two arrivals, in parts so that other requests are served."""
        parts: list[list[Entry]] = []
        missing = MAX_READ
        while missing and before > after + 1:
            count = min(missing, _AT_ONCE, before - after - 1)
            part = await work.messages.tail(tenant=self._tenant, room_id=room.room_id, limit=count, before=before)
            parts.append([one for one in part if one.message.arrival > after])
            missing -= len(parts[-1])
            if len(part) < count or len(parts[-1]) < len(part):
                break
            before = part[0].message.arrival
        found = (entry for part in reversed(parts) for entry in part)
        return [entry for entry in found if since is None or entry.message.at >= since]


def _checked(since: datetime | None) -> datetime | None:
    if since is not None and not isinstance(since, datetime):
        raise InvalidInput(f"since is {since!r:.60}; it must be a datetime.")
    return since.replace(tzinfo=UTC) if since is not None and since.tzinfo is None else since


def _whom(viewer: str | None, reader: str | None) -> Viewer | None:
    """Return the viewer. Raise `InvalidInput` if a person asks for the digest of another."""
    whom = None if viewer is None else check_viewer(viewer)
    if whom is not None and whom.kind == "user" and reader not in (None, whom.id):
        raise InvalidInput(f"The digest of {reader!r:.60} is not for {viewer!r:.60}; name the same person in both.")
    return whom
