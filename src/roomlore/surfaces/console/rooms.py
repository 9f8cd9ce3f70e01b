"""Rooms, what was said in one with its threads apart, and one thread by itself."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from starlette.responses import Response

from roomlore.core.errors import InvalidInput
from roomlore.core.models import Entry
from roomlore.surfaces.console.frame import Page
from roomlore.surfaces.console.inert import LONGEST
from roomlore.surfaces.console.lanes import Row, lanes
from roomlore.wiring import Lore

_ROOMS = 50
_MESSAGES = 60
MOST_MESSAGES = 10_000
_LIMITS = (_MESSAGES, 500, MOST_MESSAGES)
_AT_ONCE = 500
_THREAD = 200
_SHORTEST = 200
_TEXTS = 500_000
_CHARACTERS = 40_000_000
_AROUND = 1_200
_WRITTEN_OUT = 9
"""Characters: of texts on a page, of a page, about a message, and at most for a character where none can be shown."""


@dataclass(frozen=True, slots=True)
class Said:
    """A message and where it stands among the threads of its page. `answers`: the id of what it most likely answers,
    where that is on the page."""

    entry: Entry
    row: Row
    answers: str | None


async def listed(page: Page) -> Response:
    after = page.asked("after") or None
    found = await page.lore.rooms.page(after=after, limit=_ROOMS)
    following = found[-1].room_id if len(found) == _ROOMS else None
    return page.show("rooms.html", rooms=found, next=following, after=after)


async def room(page: Page) -> Response:
    """The newest messages, or those before an arrival, in order of arrival; 60 or as many as `limit` says."""
    lore, room_id, before = page.lore, page.needed("id"), page.number("before")
    limit = page.number("limit") or _MESSAGES
    if limit > MOST_MESSAGES:
        raise InvalidInput(f"limit is {limit}; it must be a whole number from 1 to {MOST_MESSAGES}.")
    known = await lore.rooms.get(room_id)
    longest = _longest(limit)
    entries, is_session = await _read(lore, room_id, limit, before, longest)
    shown = await asyncio.to_thread(said, _fitting(entries, longest))
    first = shown[0].entry.message.arrival if shown else 0
    last = shown[-1].entry.message.arrival if shown else 0
    later = last + limit + 1
    return page.show(
        "room.html",
        streamed=len(shown) > _MESSAGES,
        room=known,
        room_id=room_id,
        is_session=is_session,
        said=shown,
        longest=longest,
        limit=None if limit == _MESSAGES else limit,
        limits=_LIMITS,
        at=limit,
        cut=len(shown) < len(entries) or longest < LONGEST,
        older=first if first > 1 else None,
        newer=later if before is not None and later < known.next_arrival else None,
        newest=before is None or last + 1 >= known.next_arrival,
        last=last,
        before=before,
    )


async def _read(lore: Lore, room_id: str, limit: int, before: int | None, longest: int) -> tuple[list[Entry], bool]:
    """A part at a time, so that nobody else waits while much is read, and of each text no more than is shown: a room
    may hold more than memory does."""
    parts: list[list[Entry]] = []
    missing, at_once = limit, _MESSAGES
    async with lore.storage.reading() as work:
        while missing:
            count = min(missing, at_once)
            part = await work.messages.tail(tenant=lore.tenant, room_id=room_id, limit=count, before=before)
            parts.append([_short(entry, longest) for entry in part])
            at_once = _AT_ONCE if sum(len(entry.message.text) for entry in part) < _TEXTS else _MESSAGES
            if len(part) < count:
                break
            missing, before = missing - count, part[0].message.arrival
        session = await work.sessions.find(tenant=lore.tenant, conversation_id=room_id)
    return [entry for part in reversed(parts) for entry in part], bool(session and session.version)


def _short(entry: Entry, longest: int) -> Entry:
    """With one character more than is shown, which tells that there is more."""
    message = entry.message
    if len(message.text) <= longest and not message.metadata:
        return entry
    return replace(entry, message=replace(message, text=message.text[: longest + 1], metadata={}))


def _longest(limit: int) -> int:
    """How much of each text is shown: the more messages, the less."""
    return max(_SHORTEST, min(LONGEST, _TEXTS // limit))


def _fitting(entries: Sequence[Entry], longest: int) -> Sequence[Entry]:
    """The newest that make a page a browser can bear, whatever their texts and ids hold; at least one."""
    left = _CHARACTERS
    for place in range(len(entries) - 1, -1, -1):
        message = entries[place].message
        left -= _AROUND + _WRITTEN_OUT * (min(len(message.text), longest) + 2 * len(message.room_id + message.id))
        if left < 0:
            return entries[min(place + 1, len(entries) - 1) :]
    return entries


async def news(page: Page) -> Response:
    """How many messages came since an arrival: a piece of a page."""
    lore, room_id = page.lore, page.needed("id")
    known = await lore.rooms.get(room_id)
    count = max(0, known.next_arrival - 1 - (page.number("after") or 0))
    return page.show("news.html", room=known, count=count)


async def thread(page: Page) -> Response:
    room_id, message_id = page.needed("id"), page.needed("message")
    entries = [_short(entry, LONGEST) for entry in await page.lore.rooms.thread(room_id, message_id, limit=_THREAD)]
    shown = await asyncio.to_thread(said, entries)
    streamed = len(shown) > _MESSAGES
    return page.show("thread.html", streamed=streamed, room_id=room_id, said=shown, longest=LONGEST, most=_THREAD)


def said(entries: Sequence[Entry]) -> list[Said]:
    ids = {entry.message.arrival: entry.message.id for entry in entries}
    rows = lanes([(entry.message.arrival, entry.link.thread) for entry in entries])
    return [Said(entry, row, _answered(entry, ids)) for entry, row in zip(entries, rows, strict=True)]


def _answered(entry: Entry, ids: dict[int, str]) -> str | None:
    return None if entry.link.kind == "new" or entry.link.parent is None else ids.get(entry.link.parent)
