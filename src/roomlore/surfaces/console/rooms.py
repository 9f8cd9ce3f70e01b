"""The pages of rooms, threads and messages, with threads drawn as lanes beside the messages."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from starlette.responses import Response

from roomlore.core.errors import InvalidInput
from roomlore.core.models import Entry
from roomlore.surfaces.console.frame import LONGEST, Page
from roomlore.wiring import Lore

LANES = 6
COLOURS = 8
SHAPES = ("●", "■", "▲", "◆", "★", "✚", "▼")
"""Together with the colours 56 looks, so that colour alone never distinguishes threads."""

Part = Literal["none", "pass", "only", "first", "middle", "last"]


@dataclass(frozen=True, slots=True)
class Look:
    """The look of a thread on a page. `number`: arrival of its first message, which names it."""

    number: int
    colour: int
    shape: str


@dataclass(frozen=True, slots=True)
class Cell:
    part: Part
    look: Look | None = None


_NONE = Cell("none")


@dataclass(frozen=True, slots=True)
class Row:
    """A message's own thread, and what each lane shows beside it."""

    look: Look
    cells: tuple[Cell, ...]


def lanes(messages: Sequence[tuple[int, int]]) -> list[Row]:
    """Return a row for each message, given as (arrival, arrival of its thread's first message). Two threads share a
    lane only one after the other; if all lanes are taken a thread has none."""
    spans = _spans(messages)
    looks = {thread: _look(order, thread) for order, thread in enumerate(spans)}
    lane_of = _assigned(spans)
    going: list[int | None] = [None] * max((lane + 1 for lane in lane_of.values()), default=0)
    rows = []
    for place, (_, thread) in enumerate(messages):
        if thread in lane_of:
            going[lane_of[thread]] = thread
        rows.append(Row(looks[thread], tuple(_cell(other, thread, place, spans, looks) for other in going)))
        going = [other if other is not None and spans[other][1] > place else None for other in going]
    return rows


def _cell(
    other: int | None, thread: int, place: int, spans: dict[int, tuple[int, int]], looks: dict[int, Look]
) -> Cell:
    return _NONE if other is None else Cell(_part(spans[other], place, mine=other == thread), looks[other])


def _spans(messages: Sequence[tuple[int, int]]) -> dict[int, tuple[int, int]]:
    """Return the first and last row of each thread, in order of appearance."""
    spans: dict[int, tuple[int, int]] = {}
    for place, (_, thread) in enumerate(messages):
        spans[thread] = (spans.get(thread, (place, place))[0], place)
    return spans


def _assigned(spans: dict[int, tuple[int, int]]) -> dict[int, int]:
    free_from = [0] * LANES
    found: dict[int, int] = {}
    for thread, (first, last) in spans.items():
        lane = next((one for one in range(LANES) if free_from[one] <= first), None)
        if lane is not None:
            found[thread], free_from[lane] = lane, last + 1
    return found


def _part(span: tuple[int, int], place: int, *, mine: bool) -> Part:
    if not mine:
        return "pass"
    if span[0] == span[1]:
        return "only"
    return "first" if place == span[0] else "last" if place == span[1] else "middle"


def _look(order: int, thread: int) -> Look:
    return Look(thread, order % COLOURS, SHAPES[order % len(SHAPES)])


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
"""Characters: of texts on a page, of a page, in addition for each message, and the most for a character that cannot be
shown."""


@dataclass(frozen=True, slots=True)
class Said:
    """A message and its place among the threads of its page. `answers`: the id of the message that it most likely
    answers, if that is on the page."""

    entry: Entry
    row: Row
    answers: str | None


async def listed(page: Page) -> Response:
    after = page.asked("after") or None
    found = await page.lore.rooms.page(after=after, limit=_ROOMS, viewer=page.viewer)
    following = found[-1].room_id if len(found) == _ROOMS else None
    return page.show("rooms.html", rooms=found, next=following, after=after)


async def room(page: Page) -> Response:
    """Return the page of the newest messages, or of those before an arrival, in order of arrival; 60, or `limit`."""
    lore, room_id, before = page.lore, await page.room(), page.number("before")
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
    """Return messages, read in parts so that other requests are served, with each text cut to what is shown: a room may
    be larger than memory."""
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
    """Return the entry cut to one character more than is shown, which tells that there is more."""
    message = entry.message
    if len(message.text) <= longest and not message.metadata:
        return entry
    return replace(entry, message=replace(message, text=message.text[: longest + 1], metadata={}))


def _longest(limit: int) -> int:
    """Return how many characters of each text are shown: the more messages, the fewer."""
    return max(_SHORTEST, min(LONGEST, _TEXTS // limit))


def _fitting(entries: Sequence[Entry], longest: int) -> Sequence[Entry]:
    """Return the newest messages that fit on a page, whatever their texts and ids hold; at least one."""
    left = _CHARACTERS
    for place in range(len(entries) - 1, -1, -1):
        message = entries[place].message
        left -= _AROUND + _WRITTEN_OUT * (min(len(message.text), longest) + 2 * len(message.room_id + message.id))
        if left < 0:
            return entries[min(place + 1, len(entries) - 1) :]
    return entries


async def news(page: Page) -> Response:
    """Return the number of messages since an arrival, as a piece of a page."""
    lore, room_id = page.lore, await page.room()
    known = await lore.rooms.get(room_id)
    count = max(0, known.next_arrival - 1 - (page.number("after") or 0))
    return page.show("news.html", room=known, count=count)


async def thread(page: Page) -> Response:
    lore, room_id, message_id = page.lore, await page.room(), page.needed("message")
    entries = [_short(entry, LONGEST) for entry in await lore.rooms.thread(room_id, message_id, limit=_THREAD)]
    shown = await asyncio.to_thread(said, entries)
    streamed = len(shown) > _MESSAGES
    return page.show("thread.html", streamed=streamed, room_id=room_id, said=shown, longest=LONGEST, most=_THREAD)


def said(entries: Sequence[Entry]) -> list[Said]:
    ids = {entry.message.arrival: entry.message.id for entry in entries}
    rows = lanes([(entry.message.arrival, entry.link.thread) for entry in entries])
    return [Said(entry, row, _answered(entry, ids)) for entry, row in zip(entries, rows, strict=True)]


def _answered(entry: Entry, ids: dict[int, str]) -> str | None:
    return None if entry.link.kind == "new" or entry.link.parent is None else ids.get(entry.link.parent)
