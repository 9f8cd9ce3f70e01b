"""Digests: read the messages of a span, and have `core/digest` choose what to show of them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from roomlore.core.audience import ALWAYS, NEVER, Viewer, Window, check_viewer, covers
from roomlore.core.digest.compose import make_digest
from roomlore.core.digest.digest import Digest
from roomlore.core.errors import InvalidInput, unknown_room
from roomlore.core.models import Entry, Room
from roomlore.ports.audience import view_for
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
    the newest."""

    after: int
    messages: int
    entries: Sequence[Entry]


class DigestService:
    """The digests of one tenant."""

    def __init__(self, *, tenant: str, storage: Storage, clock: Clock, tokens: TokenCounter) -> None:
        self._tenant = tenant
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
            windows = await self._windows(work, whom, room_id)
            room = await work.rooms.find(tenant=self._tenant, room_id=room_id)
            if room is None or windows == NEVER:
                raise unknown_room(room_id)
            span = await self._span(work, room, begin, reader)
            entries = [one for one in span.entries if covers(windows, one.message.at, one.message.at)]
            answered = await self._answered(work, room_id, entries, reader)
        return await asyncio.to_thread(
            make_digest,
            room_id,
            entries,
            max_tokens=max_tokens,
            count=self._tokens.count,
            for_user=reader,
            answered=answered,
            after=span.after,
            messages=span.messages if windows == ALWAYS else len(entries),
        )

    async def _answered(
        self, work: UnitOfWork, room_id: str, entries: Sequence[Entry], reader: str | None
    ) -> frozenset[str]:
        """Return the ids of the reader's messages before these that some of these reply to."""
        here = {one.message.id for one in entries}
        targets = {one.message.reply_to for one in entries if one.message.reply_to} - here
        if reader is None or not targets:
            return frozenset()
        known = await work.messages.origins(tenant=self._tenant, room_id=room_id, message_ids=sorted(targets))
        return frozenset(name for name, origin in known.items() if origin.sender_id == reader)

    async def _windows(self, work: UnitOfWork, viewer: Viewer | None, room_id: str) -> tuple[Window, ...]:
        """Return the times whose messages the viewer may see."""
        if viewer is None or viewer == Viewer("room", room_id):
            return ALWAYS
        view = await view_for(work, tenant=self._tenant, viewer=viewer, rooms=[room_id], now=self._clock.now())
        return tuple(view.windows.get(room_id, NEVER))

    async def _span(self, work: UnitOfWork, room: Room, since: datetime | None, reader: str | None) -> _Span:
        after, begin = 0, since
        if since is None and reader is not None:
            after = await read_up_to(work, tenant=self._tenant, room_id=room.room_id, user_id=reader)
        elif since is None and room.last_sent_at is not None:
            begin = room.last_sent_at - _DEFAULT_SPAN
        if begin is not None:
            first = await work.messages.first_since(tenant=self._tenant, room_id=room.room_id, since=begin)
            after = room.next_arrival - 1 if first is None else first - 1
        entries = await self._read(work, room, after, begin)
        missing = len(entries) == MAX_READ
        known = await work.messages.count(tenant=self._tenant, room_id=room.room_id, after=after) if missing else 0
        return _Span(after, max(known, len(entries)), entries)

    async def _read(self, work: UnitOfWork, room: Room, after: int, since: datetime | None) -> list[Entry]:
        """Return the newest messages above an arrival, in parts so that other requests are served."""
        parts: list[list[Entry]] = []
        before, missing = room.next_arrival, MAX_READ
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
